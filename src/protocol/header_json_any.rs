//! The JSON form of a header in all its freedom: blanks, escapes, numbers as text, values of any kind, members of
//! newer peers.
//!
//! `serde_json` checks the grammar first, without recursion. Then the members can be cut out by a walk that only has
//! to know strings and brackets, so that custom values keep their source text (`1.50` stays `1.50`).

use crate::error::Result;
use crate::protocol::command::{RemotingCommand, SerializeType, malformed, new_opaque};
use crate::protocol::decimal::parse_i32;
use crate::protocol::ext_fields::ExtFields;
use crate::protocol::language::LanguageCode;
use crate::protocol::scan::cut;
use bytes::Bytes;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::BTreeMap;

pub(crate) fn decode(text: &str, body: Bytes) -> Result<RemotingCommand> {
    let text = text.trim_matches(BLANKS);
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|error| malformed("the JSON form is no JSON").with_source(error))?;
    let mut command = RemotingCommand {
        code: 0,
        language: LanguageCode::default(),
        version: 0,
        opaque: 0,
        flag: 0,
        remark: None,
        ext_fields: ExtFields::new(),
        serialize_type: SerializeType::Json,
        body,
    };
    let mut opaque = None;
    for (key, value) in members(text).ok_or_else(|| malformed("the JSON form is no object"))? {
        if value == "null" {
            continue;
        }
        match &*unescape(key) {
            "code" => command.code = int("code", value)?,
            "flag" => command.flag = int("flag", value)?,
            "version" => command.version = int("version", value)?,
            "opaque" => opaque = Some(int("opaque", value)?),
            "language" => {
                command.language = match parse_i32(value.as_bytes()) {
                    Some(number) => LanguageCode(number),
                    None => LanguageCode::from_name(&unescape(value)),
                }
            }
            "remark" => command.remark = Some(unescape(value).into_owned()),
            "extFields" => command.ext_fields = ext_fields(value)?,
            _ => {}
        }
    }
    command.opaque = opaque.unwrap_or_else(new_opaque);
    Ok(command)
}

fn int(member: &str, value: &str) -> Result<i32> {
    let number = unescape(value);
    parse_i32(number.trim().as_bytes())
        .ok_or_else(|| malformed(format_args!("{member} is '{}', which is no 32-bit integer", cut(&number, 40))))
}

fn ext_fields(value: &str) -> Result<ExtFields> {
    // As Java reads it: of a key that occurs twice the last value counts, and null is no value.
    let mut last = BTreeMap::new();
    for (key, value) in members(value).ok_or_else(|| malformed("extFields is no object"))? {
        last.insert(unescape(key), value);
    }
    let mut fields = ExtFields::new();
    fields.set_present();
    for (key, value) in last.into_iter().filter(|(key, value)| *value != "null" && !key.is_empty()) {
        fields.put(&key, &unescape(value));
    }
    Ok(fields)
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// The members of an object: keys with their quotes, values as they stand in the source. The text must be valid JSON.
fn members(object: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
    let mut rest = object.strip_prefix('{')?.trim_start_matches(BLANKS);
    Some(std::iter::from_fn(move || {
        let (key, after) = rest.split_at_checked(value_end(rest)?)?;
        let after = after.trim_start_matches(BLANKS).strip_prefix(':')?.trim_start_matches(BLANKS);
        let (value, after) = after.split_at_checked(value_end(after)?)?;
        let after = after.trim_start_matches(BLANKS);
        rest = after.strip_prefix(',').unwrap_or(after).trim_start_matches(BLANKS);
        Some((key, value))
    }))
}

/// How long the value is that the text, which must be valid JSON, starts with. `None` when it starts with none.
fn value_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    match bytes.first()? {
        b'"' | b'{' | b'[' => {}
        b'}' | b']' | b',' | b':' => return None,
        _ => return Some(bytes.iter().position(|b| b",:]} \t\r\n".contains(b)).unwrap_or(bytes.len())),
    }
    loop {
        match bytes.get(at)? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                at += 1;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The text between the quotes, or, of anything but a string, its source.
fn unescape(value: &str) -> Cow<'_, str> {
    let Some(quoted) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return Cow::Borrowed(value);
    };
    if !quoted.contains('\\') {
        return Cow::Borrowed(quoted);
    }
    match serde_json::from_str::<String>(value) {
        Ok(text) => Cow::Owned(text),
        // Half a surrogate pair, which Java's strings can hold and ours cannot. Nobody needs such a value, but it must
        // not cost the connection.
        Err(_) => Cow::Owned(replace_lone_surrogates(quoted)),
    }
}

fn replace_lone_surrogates(quoted: &str) -> String {
    // Every escape is put back as a string of its own, pairs together.
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let lengths: &[usize] = if rest.as_bytes().get(1) == Some(&b'u') { &[12, 6] } else { &[2] };
        let decoded = lengths.iter().find_map(|&length| {
            let escape = rest.get(..length)?;
            let one: String = serde_json::from_str(&format!("\"{escape}\"")).ok()?;
            (length < 12 || one.chars().count() == 1).then_some((one, length))
        });
        let (one, length) = decoded.unwrap_or_else(|| ("\u{FFFD}".into(), 6.min(rest.len())));
        text.push_str(&one);
        rest = rest.get(length..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}
