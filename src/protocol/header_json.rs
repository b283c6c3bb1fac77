//! The JSON form of a header.
//!
//! Peers write it compactly and without escapes almost always: that form is read by one walk over the bytes, which
//! leaves the custom fields where they are. Everything else goes to [`header_json_any`](super::header_json_any).

use crate::error::Result;
use crate::protocol::command::{RemotingCommand, SerializeType, malformed, new_opaque};
use crate::protocol::decimal::{Decimal, parse_i32};
use crate::protocol::ext_fields::ExtFields;
use crate::protocol::language::LanguageCode;
use crate::protocol::{header_json_any, scan};
use bytes::Bytes;
use std::ops::Range;

/// Appends the header, compactly: brokers up to 4.3 fail on an unknown language in a text with blanks.
pub(crate) fn encode(command: &RemotingCommand, out: &mut Vec<u8>) {
    let (form, entries) = command.ext_fields.raw();
    out.reserve(160 + entries.len());
    out.extend_from_slice(b"{\"code\":");
    put_int(out, command.code);
    if command.ext_fields.is_present() {
        out.extend_from_slice(b",\"extFields\":{");
        match form {
            // The first byte is the comma, or the brace, in front of the first entry.
            SerializeType::Json => out.extend_from_slice(entries.get(1..).unwrap_or_default()),
            SerializeType::Rocketmq => put_entries(out, &command.ext_fields),
        }
        out.push(b'}');
    }
    out.extend_from_slice(b",\"flag\":");
    put_int(out, command.flag);
    out.extend_from_slice(b",\"language\":\"");
    out.extend_from_slice(command.language.wire_name().as_bytes());
    out.extend_from_slice(b"\",\"opaque\":");
    put_int(out, command.opaque);
    if let Some(remark) = &command.remark {
        out.extend_from_slice(b",\"remark\":\"");
        put_text(out, remark.as_bytes());
        out.push(b'"');
    }
    out.extend_from_slice(b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    put_int(out, command.version);
    out.push(b'}');
}

fn put_int(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(Decimal::new(value.into()).as_bytes());
}

fn put_entries(out: &mut Vec<u8>, fields: &ExtFields) {
    for (at, (key, value)) in fields.raw_iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
        put_text(out, key);
        out.extend_from_slice(b"\":\"");
        put_text(out, value);
        out.push(b'"');
    }
}

/// Appends text as it stands between quotes, escaped as Java escapes it.
fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = scan::find_special(rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            control => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// The members of a header, as parts of the frame.
#[derive(Default)]
struct Members {
    code: i32,
    language: LanguageCode,
    version: i32,
    opaque: Option<i32>,
    flag: i32,
    remark: Option<Range<usize>>,
    ext_fields: Option<Range<usize>>,
}

/// Reads the header that is at `range` of `frame`.
pub(crate) fn decode(frame: Bytes, range: Range<usize>, body: Bytes) -> Result<RemotingCommand> {
    let text = str::from_utf8(&frame[range.clone()]).map_err(|_| malformed("the JSON form is not UTF-8"))?;
    let Some(members) = compact(&frame[..range.end], range.start) else {
        return header_json_any::decode(text, body);
    };
    let remark = match members.remark {
        // Cannot fail: the header is UTF-8, and the remark ends at its quotes.
        Some(range) => {
            Some(str::from_utf8(&frame[range]).map_err(|_| malformed("the remark is not UTF-8"))?.to_owned())
        }
        None => None,
    };
    let ext_fields = match members.ext_fields {
        Some(range) => ExtFields::received(SerializeType::Json, frame, range),
        None => ExtFields::new(),
    };
    Ok(RemotingCommand {
        code: members.code,
        language: members.language,
        version: members.version,
        opaque: members.opaque.unwrap_or_else(new_opaque),
        flag: members.flag,
        remark,
        ext_fields,
        serialize_type: SerializeType::Json,
        body,
    })
}

/// Reads a compact header without escapes and without members of its own. `None` for any other text, good or bad.
fn compact(bytes: &[u8], start: usize) -> Option<Members> {
    let mut members = Members::default();
    let mut at = start;
    if bytes.get(at)? != &b'{' {
        return None;
    }
    loop {
        // `at` is at the brace or comma in front of a member.
        let rest = bytes.get(at + 1..)?;
        at = match rest.get(1)? {
            b'c' if rest.starts_with(b"\"code\":") => int(bytes, at + 8, &mut members.code)?,
            b'e' if rest.starts_with(b"\"extFields\":{") => {
                let entries = scan::plain_object(bytes, at + 13)?;
                // An object without members has both its braces left.
                let end = entries.end + if entries.is_empty() { 2 } else { 1 };
                members.ext_fields = Some(entries);
                end
            }
            b'f' if rest.starts_with(b"\"flag\":") => int(bytes, at + 8, &mut members.flag)?,
            b'l' if rest.starts_with(b"\"language\":\"") => {
                let end = scan::plain_text(bytes, at + 13)?;
                members.language = language(&bytes[at + 13..end])?;
                end + 1
            }
            b'o' if rest.starts_with(b"\"opaque\":") => int(bytes, at + 10, members.opaque.insert(0))?,
            b'r' if rest.starts_with(b"\"remark\":\"") => {
                let end = scan::plain_text(bytes, at + 11)?;
                members.remark = Some(at + 11..end);
                end + 1
            }
            b's' if rest.starts_with(b"\"serializeTypeCurrentRPC\":\"") => scan::plain_text(bytes, at + 28)? + 1,
            b'v' if rest.starts_with(b"\"version\":") => int(bytes, at + 11, &mut members.version)?,
            _ => return None,
        };
        match bytes.get(at)? {
            b',' => {}
            b'}' if at + 1 == bytes.len() => return Some(members),
            _ => return None,
        }
    }
}

/// Reads the number at `at` and returns where it ends.
fn int(bytes: &[u8], at: usize, into: &mut i32) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
    // JSON knows no leading plus sign and no leading zeros; such texts are left to the strict reader.
    if matches!(rest, [b'+', ..] | [b'0', b'0'..=b'9', ..] | [b'-', b'0', ..]) {
        return None;
    }
    *into = parse_i32(&rest[..end])?;
    Some(at + end)
}

fn language(name: &[u8]) -> Option<LanguageCode> {
    match name {
        b"JAVA" => Some(LanguageCode::JAVA),
        b"RUST" => Some(LanguageCode::RUST),
        other => Some(LanguageCode::from_name(str::from_utf8(other).ok()?)),
    }
}
