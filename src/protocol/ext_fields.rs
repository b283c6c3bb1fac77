//! The custom fields of a header (`extFields`): text to text, in the form the wire has them.
//!
//! A request is built, and an answer kept, in the very bytes of one of the two header forms, so that neither side
//! makes a map of strings. The JSON form is kept only while it is *plain*: compact, text values alone, and nothing
//! in it that needs an escape. Whatever else comes along is held in the binary form, which can carry any text.

use crate::protocol::SerializeType;
use crate::protocol::decimal::Decimal;
use crate::protocol::scan;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Room for the fields of a pull request, so that it is built in one allocation.
const FIRST_CAPACITY: usize = 384;

/// The custom fields of a header. Of a key that occurs twice the last value counts; order carries no meaning.
#[derive(Clone, Default)]
pub struct ExtFields {
    entries: Entries,
    form: SerializeType,
    /// A header may carry an object without members, and Java tells it from none.
    present: bool,
}

#[derive(Clone)]
enum Entries {
    /// Put together here.
    Built(Vec<u8>),
    /// A part of a frame that was checked when it was decoded.
    Received { frame: Bytes, range: Range<usize> },
}

impl Default for Entries {
    fn default() -> Self {
        Self::Built(Vec::new())
    }
}

/// Names of header fields that are logged as "set", because their values are secrets or the user's.
const REDACTED: [&str; 5] = ["AccessKey", "Signature", "SecurityToken", "properties", "i"];

impl ExtFields {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// No fields, to be built in the given form. A header that is sent in the form it was built in is copied in one
    /// piece; in the other form it is translated entry by entry.
    pub fn in_form(form: SerializeType) -> Self {
        Self { form, ..Self::default() }
    }

    /// Fields inside a received frame. The range must have been checked: in the binary form by
    /// [`check_binary`](scan::check_binary), in the JSON form by [`plain_object`](scan::plain_object).
    pub(crate) fn received(form: SerializeType, frame: Bytes, range: Range<usize>) -> Self {
        Self { entries: Entries::Received { frame, range }, form, present: true }
    }

    /// Whether the header has an object of fields at all, be it an empty one.
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Makes a header without fields carry an empty object, as Java does for header classes whose fields are all null.
    pub fn set_present(&mut self) {
        self.present = true;
    }

    /// Adds a field; a value given before under this key no longer counts.
    pub fn put(&mut self, key: &str, value: &str) {
        self.make_room();
        if self.form == SerializeType::Json && !(scan::is_plain(key) && scan::is_plain(value)) {
            self.translate(SerializeType::Rocketmq);
        }
        let form = self.form;
        append(self.built(), form, key, value);
    }

    /// Adds a number.
    pub fn put_int(&mut self, key: &str, value: i64) {
        let number = Decimal::new(value);
        self.put(key, number.as_str());
    }

    /// Adds a truth value.
    pub fn put_bool(&mut self, key: &str, value: bool) {
        self.put(key, if value { "true" } else { "false" });
    }

    /// Adds a field whose key is known when this crate is compiled.
    #[inline]
    pub(crate) fn put_key(&mut self, key: &'static Key, value: &str) {
        self.make_room();
        if self.form == SerializeType::Json && !scan::is_plain(value) {
            self.translate(SerializeType::Rocketmq);
        }
        self.put_plain(key, value.as_bytes());
    }

    /// Adds a number whose key is known when this crate is compiled.
    #[inline]
    pub(crate) fn put_key_int(&mut self, key: &'static Key, value: i64) {
        self.make_room();
        self.put_plain(key, Decimal::new(value).as_bytes());
    }

    #[inline]
    pub(crate) fn put_plain(&mut self, key: &'static Key, value: &[u8]) {
        let form = self.form;
        let out = self.built();
        match form {
            SerializeType::Json => {
                out.extend_from_slice(key.json);
                out.extend_from_slice(value);
                out.push(b'"');
            }
            SerializeType::Rocketmq => {
                out.extend_from_slice(key.binary);
                out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                out.extend_from_slice(value);
            }
        }
    }

    /// The value of the field, when it is there. A field without a value (null) is not there.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }

    /// The fields as they stand, in their order, those that no longer count included.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        // Both sides were checked to be text when they were put or received, so nothing is lost here.
        self.raw_iter().filter_map(|(key, value)| Some((str::from_utf8(key).ok()?, str::from_utf8(value).ok()?)))
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.to_map().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Takes the field away.
    pub fn remove(&mut self, key: &str) {
        if self.get(key).is_none() {
            return;
        }
        let mut rest = Self { form: self.form, present: true, ..Self::default() };
        for (name, value) in self.iter().filter(|(name, _)| *name != key) {
            rest.put(name, value);
        }
        *self = rest;
    }

    /// The values of the given keys, the last one of each.
    ///
    /// Walks the entries once. Peers that write the keys in the order of `keys` cost one comparison an entry.
    #[inline]
    pub(crate) fn collect<const N: usize>(&self, keys: &[&'static Key; N]) -> [Option<&[u8]>; N] {
        let mut values = [None; N];
        let mut expected = 0;
        for (name, value) in self.raw_iter() {
            let is_next = keys.get(expected).is_some_and(|key| key.name.as_bytes() == name);
            let found = if is_next { Some(expected) } else { keys.iter().position(|k| k.name.as_bytes() == name) };
            if let Some(found) = found {
                values[found] = Some(value);
                expected = found + 1;
            }
        }
        values
    }

    /// The form the entries are kept in, and their bytes.
    ///
    /// Binary: `i16 key length, key, i32 value length, value`, repeated. JSON: one byte, then `"key":"value"`,
    /// repeated; the byte is a brace or comma, and stands for the comma in front of the entry.
    pub(crate) fn raw(&self) -> (SerializeType, &[u8]) {
        (self.form, self.bytes())
    }

    pub(crate) fn raw_iter(&self) -> RawIter<'_> {
        RawIter { form: self.form, rest: self.bytes() }
    }

    fn bytes(&self) -> &[u8] {
        match &self.entries {
            Entries::Built(bytes) => bytes,
            Entries::Received { frame, range } => frame.get(range.clone()).unwrap_or_default(),
        }
    }

    #[inline]
    fn make_room(&mut self) {
        if !self.present {
            self.present = true;
            self.built().reserve(FIRST_CAPACITY);
        }
    }

    #[inline]
    fn built(&mut self) -> &mut Vec<u8> {
        if let Entries::Received { .. } = self.entries {
            self.entries = Entries::Built(self.bytes().to_vec());
        }
        match &mut self.entries {
            Entries::Built(bytes) => bytes,
            Entries::Received { .. } => unreachable!("replaced above"),
        }
    }

    #[cold]
    fn translate(&mut self, form: SerializeType) {
        let mut bytes = Vec::with_capacity(FIRST_CAPACITY.max(self.bytes().len()));
        for (key, value) in self.iter() {
            append(&mut bytes, form, key, value);
        }
        self.entries = Entries::Built(bytes);
        self.form = form;
    }

    fn to_map(&self) -> BTreeMap<&str, &str> {
        self.iter().collect()
    }
}

/// Adds an entry; in the JSON form both sides must be plain.
fn append(out: &mut Vec<u8>, form: SerializeType, key: &str, value: &str) {
    match form {
        SerializeType::Json => {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"\":\"");
            out.extend_from_slice(value.as_bytes());
            out.push(b'"');
        }
        SerializeType::Rocketmq => {
            // A longer key cannot be written: the length is a signed 16-bit number. Nobody's key is.
            let key = scan::cut(key, i16::MAX as usize);
            out.extend_from_slice(&(key.len() as u16).to_be_bytes());
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value.as_bytes());
        }
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for ExtFields {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut fields = Self::new();
        for (key, value) in entries {
            fields.put(key.as_ref(), value.as_ref());
        }
        fields
    }
}

impl PartialEq for ExtFields {
    fn eq(&self, other: &Self) -> bool {
        self.to_map() == other.to_map()
    }
}

impl Eq for ExtFields {}

impl fmt::Debug for ExtFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(key, value)| (key, if REDACTED.contains(&key) { "(set)" } else { value });
        f.debug_map().entries(self.to_map().into_iter().map(shown)).finish()
    }
}

/// A field name that is known when this crate is compiled, with its bytes in both forms. Made by [`key!`].
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) json: &'static [u8],
    pub(crate) binary: &'static [u8],
}

/// Makes a `&'static Key` of a literal.
macro_rules! key {
    ($name:literal) => {{
        const BINARY: [u8; $name.len() + 2] = $crate::protocol::ext_fields::binary_key($name);
        const KEY: $crate::protocol::ext_fields::Key = $crate::protocol::ext_fields::Key {
            name: $name,
            json: concat!(",\"", $name, "\":\"").as_bytes(),
            binary: &BINARY,
        };
        &KEY
    }};
}

pub(crate) use key;

/// The binary form of a key; refuses, at compile time, what would need an escape in the JSON form.
pub(crate) const fn binary_key<const N: usize>(name: &str) -> [u8; N] {
    let name = name.as_bytes();
    assert!(N == name.len() + 2 && !name.is_empty() && name.len() < 256, "a key has from 1 to 255 bytes");
    let mut key = [0; N];
    key[1] = name.len() as u8;
    let mut at = 0;
    while at < name.len() {
        assert!(name[at] > b' ' && name[at] < 0x7F && name[at] != b'"' && name[at] != b'\\', "a key is plain");
        key[at + 2] = name[at];
        at += 1;
    }
    key
}

/// Walks checked entries; should the check have been forgotten, it ends early instead of panicking.
#[derive(Debug)]
pub(crate) struct RawIter<'a> {
    form: SerializeType,
    rest: &'a [u8],
}

impl<'a> Iterator for RawIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value, rest) = match self.form {
            SerializeType::Rocketmq => {
                let (length, rest) = self.rest.split_first_chunk::<2>()?;
                let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
                let (length, rest) = rest.split_first_chunk::<4>()?;
                let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
                (key, value, rest)
            }
            SerializeType::Json => {
                let rest = self.rest.get(2..)?;
                let (key, rest) = rest.split_at_checked(scan::find_quote(rest)?)?;
                let rest = rest.get(3..)?;
                let (value, rest) = rest.split_at_checked(scan::find_quote(rest)?)?;
                (key, value, rest.get(1..)?)
            }
        };
        self.rest = rest;
        Some((key, value))
    }
}

#[cfg(test)]
#[path = "ext_fields_tests.rs"]
mod tests;
