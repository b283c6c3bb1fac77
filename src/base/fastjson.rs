//! The dialect of fastjson, the JSON library of RocketMQ's Java side.
//!
//! What Java servers emit differs from JSON in two ways, both in the keys of objects: integers stand there without
//! quotes (`{0:"a"}`), and so do whole objects (`{{"queueId":1}:5}`). [`normalise`] makes JSON of it for `serde_json`:
//! integer keys get quotes, and an object as a key becomes the string of its own text. [`bare_object_keys`] turns the
//! latter back, for peers that read only that form. [`resolve_references`] puts in what fastjson left out because it
//! had written the same thing before.

mod references;

pub use references::resolve_references;

use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Deepest nesting that is looked into; `serde_json` refuses what is deeper.
const DEEPEST: usize = 128;

/// Turns the two deviations into JSON. Text that has none is returned as it is; so is text that is damaged or nested
/// too deeply, for the JSON parser to complain about.
///
/// ```
/// use rocketmq_sync::base::fastjson::normalise;
/// assert_eq!(&*normalise(br#"{"a":{0:1,-1:2}}"#), br#"{"a":{"0":1,"-1":2}}"#);
/// assert_eq!(&*normalise(br#"{{"q":1}:5}"#), br#"{"{\"q\":1}":5}"#);
/// ```
pub fn normalise(text: &[u8]) -> Cow<'_, [u8]> {
    match Walk::new(text).normalise() {
        Some(changed) => Cow::Owned(changed),
        None => Cow::Borrowed(text),
    }
}

/// Turns keys that are strings of an object's text, as [`normalise`] makes them, into bare objects. Every fastjson reads
/// those; versions before 1.2.69 read nothing else. The text must be JSON.
pub fn bare_object_keys(text: &[u8]) -> Cow<'_, [u8]> {
    match Walk::new(text).bare_object_keys() {
        Some(changed) => Cow::Owned(changed),
        None => Cow::Borrowed(text),
    }
}

/// A pass over a text that knows where keys are.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    /// For each open bracket, whether it is an object's.
    open: Vec<bool>,
    out: Vec<u8>,
    /// Up to where the text is in `out`.
    copied: usize,
}

impl<'a> Walk<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, open: Vec::new(), out: Vec::new(), copied: 0 }
    }

    fn normalise(mut self) -> Option<Vec<u8>> {
        while self.next_key()? {
            match self.text.get(self.at)? {
                b'-' | b'0'..=b'9' => {
                    let digits = self.text[self.at + 1..].iter().position(|b| !b.is_ascii_digit())?;
                    let key = self.at..self.at + 1 + digits;
                    self.copy();
                    self.out.push(b'"');
                    self.out.extend_from_slice(&self.text[key.clone()]);
                    self.out.push(b'"');
                    self.skip_to(key.end);
                }
                b'{' => {
                    let end = self.at + object_end(&self.text[self.at..])?;
                    self.copy();
                    self.out.push(b'"');
                    for &byte in &self.text[self.at..end] {
                        match byte {
                            b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', byte]),
                            // Blanks between tokens; a string may not hold them raw.
                            b'\t' | b'\n' | b'\r' => self.out.push(b' '),
                            byte => self.out.push(byte),
                        }
                    }
                    self.out.push(b'"');
                    self.skip_to(end);
                }
                _ => {}
            }
        }
        self.finish()
    }

    fn bare_object_keys(mut self) -> Option<Vec<u8>> {
        while self.next_key()? {
            let rest = &self.text[self.at..];
            if !rest.starts_with(b"\"{") {
                continue;
            }
            let end = self.at + string_end(rest)?;
            let object: String = serde_json::from_slice(&self.text[self.at..end]).ok()?;
            if serde_json::from_str::<BTreeMap<String, IgnoredAny>>(&object).is_err() {
                // Somebody's own text, which only starts with a brace.
                continue;
            }
            self.copy();
            self.out.extend_from_slice(object.as_bytes());
            self.skip_to(end);
        }
        self.finish()
    }

    /// Goes on to the next place where a key must be. `Some(false)` at the end of the text, `None` when it is damaged.
    fn next_key(&mut self) -> Option<bool> {
        while let Some(byte) = self.text.get(self.at) {
            let mut key_follows = false;
            match byte {
                b'"' => {
                    self.at += string_end(&self.text[self.at..])?;
                    continue;
                }
                b'{' | b'[' => {
                    self.open.push(*byte == b'{');
                    if self.open.len() > DEEPEST {
                        return None;
                    }
                    key_follows = *byte == b'{';
                }
                b'}' | b']' => {
                    self.open.pop()?;
                }
                b',' => key_follows = *self.open.last()?,
                _ => {}
            }
            self.at += 1;
            if key_follows {
                self.at += self.text[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
                return Some(true);
            }
        }
        Some(false)
    }

    fn copy(&mut self) {
        if self.out.is_empty() {
            self.out.reserve(self.text.len() + self.text.len() / 4);
        }
        self.out.extend_from_slice(&self.text[self.copied..self.at]);
    }

    fn skip_to(&mut self, end: usize) {
        self.at = end;
        self.copied = end;
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        if self.copied == 0 {
            return None;
        }
        self.out.extend_from_slice(&self.text[self.copied..]);
        Some(self.out)
    }
}

/// How long the string is that the text starts with, quotes included.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// How long the object is that the text starts with. It is a key, so nothing in it is looked into: keys of keys stay
/// as they are, or each level would double the text.
fn object_end(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0);
    loop {
        match text.get(at)? {
            b'"' => {
                at += string_end(&text[at..])?;
                continue;
            }
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
#[path = "fastjson_tests.rs"]
mod tests;
