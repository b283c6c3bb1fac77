//! The JSON form of a header.
//!
//! Peers write it compactly and without escapes almost always: that form is read by one walk over the bytes, which
//! leaves the custom fields where they are. Everything else goes to [`header_json_any`](super::header_json_any).

use crate::error::Result;
use crate::protocol::command::{RemotingCommand, SerializeType, malformed, new_opaque};
use crate::protocol::decimal::write_decimal;
use crate::protocol::ext_fields::ExtFields;
use crate::protocol::language::LanguageCode;
use crate::protocol::scan::Quotes;
use crate::protocol::writer::{SLACK, put_bytes, put_literal, put_text};
use crate::protocol::{header_json_any, scan};
use bytes::Bytes;
use std::ops::Range;

/// Appends the header, compactly: brokers up to 4.3 fail on an unknown language in a text with blanks.
pub(crate) fn encode(command: &RemotingCommand, out: &mut Vec<u8>) {
    let (form, entries) = command.ext_fields.raw();
    let start = out.len();
    // The members without remark and fields have less than 160 bytes, the longest numbers included.
    out.resize(start + 160 + SLACK + entries.len(), 0);
    let room = &mut out[start..];
    let mut at = put_literal(room, 0, b"{\"code\":");
    at = write_decimal(room, at, command.code.into());
    if command.ext_fields.is_present() && form == SerializeType::Json {
        at = put_literal(room, at, b",\"extFields\":{");
        // The first byte is the comma, or the brace, in front of the first entry.
        at = put_bytes(room, at, entries.get(1..).unwrap_or_default());
        at = put_literal(room, at, b"}");
    }
    at = put_literal(room, at, b",\"flag\":");
    at = write_decimal(room, at, command.flag.into());
    at = put_literal(room, at, b",\"language\":\"");
    at = put_text(room, at, command.language.wire_name().as_bytes()).0;
    at = put_literal(room, at, b"\",\"opaque\":");
    at = write_decimal(room, at, command.opaque.into());
    at = put_literal(room, at, b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    at = write_decimal(room, at, command.version.into());
    out.truncate(start + at);

    // What may need escapes.
    if command.ext_fields.is_present() && form == SerializeType::Rocketmq {
        out.extend_from_slice(b",\"extFields\":{");
        put_entries(out, &command.ext_fields);
        out.push(b'}');
    }
    if let Some(remark) = &command.remark {
        out.extend_from_slice(b",\"remark\":\"");
        put_escaped(out, remark.as_bytes());
        out.push(b'"');
    }
    out.push(b'}');
}

fn put_entries(out: &mut Vec<u8>, fields: &ExtFields) {
    for (at, (key, value)) in fields.entries().enumerate() {
        out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
        put_escaped(out, key);
        out.extend_from_slice(b"\":\"");
        put_escaped(out, value);
        out.push(b'"');
    }
}

/// Appends text as it stands between quotes, escaped as Java escapes it.
fn put_escaped(out: &mut Vec<u8>, text: &[u8]) {
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
    let header = &frame[range.clone()];
    let Some(members) = Some(header).filter(|header| scan::is_plain_ascii(header)).and_then(compact) else {
        let text = str::from_utf8(header).map_err(|_| malformed("the JSON form is not UTF-8"))?;
        return header_json_any::decode(text, body);
    };
    // ASCII all of it.
    let remark = members.remark.map(|remark| String::from_utf8_lossy(&header[remark]).into_owned());
    let ext_fields = match members.ext_fields {
        Some(fields) => {
            let fields = range.start + fields.start..range.start + fields.end;
            ExtFields::received(SerializeType::Json, frame, fields)
        }
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

/// Reads a compact header of plain ASCII, with the members that peers write. `None` for any other text, good or bad.
fn compact(header: &[u8]) -> Option<Members> {
    let mut members = Members::default();
    let mut quotes = Quotes::new(header);
    let mut at = 0;
    if header.first()? != &b'{' {
        return None;
    }
    loop {
        // `at` is at the brace or comma in front of a member.
        if quotes.next()? != at + 1 {
            return None;
        }
        let key_end = quotes.next()?;
        let value = key_end + 2;
        if *header.get(key_end + 1)? != b':' {
            return None;
        }
        at = match &header[at + 2..key_end] {
            b"code" => int(header, value, &mut members.code)?,
            b"flag" => int(header, value, &mut members.flag)?,
            b"opaque" => int(header, value, members.opaque.insert(0))?,
            b"version" => int(header, value, &mut members.version)?,
            b"extFields" => {
                let end;
                (end, quotes) = plain_object(header, value, quotes)?;
                members.ext_fields = Some(value..end);
                end + 1
            }
            b"language" => {
                let text = plain_text(value, &mut quotes)?;
                let end = text.end + 1;
                members.language = language(&header[text])?;
                end
            }
            b"remark" => members.remark.insert(plain_text(value, &mut quotes)?).end + 1,
            b"serializeTypeCurrentRPC" => plain_text(value, &mut quotes)?.end + 1,
            _ => return None,
        };
        match header.get(at)? {
            b',' => {}
            b'}' if at + 1 == header.len() => return Some(members),
            _ => return None,
        }
    }
}

/// The text whose opening quote must be at `at`.
#[inline(always)]
fn plain_text(at: usize, quotes: &mut Quotes<'_>) -> Option<Range<usize>> {
    (quotes.next()? == at).then_some(())?;
    Some(at + 1..quotes.next()?)
}

/// Where the closing brace is of an object of texts whose opening one must be at `at`; and the quotes behind it.
fn plain_object<'a>(header: &[u8], at: usize, mut quotes: Quotes<'a>) -> Option<(usize, Quotes<'a>)> {
    if header.get(at..at + 2)? == b"{}" {
        return Some((at + 1, quotes));
    }
    (header[at] == b'{').then_some(())?;
    let mut end = at;
    loop {
        // `end` is at the brace or comma in front of an entry.
        let key = plain_text(end + 1, &mut quotes)?;
        if *header.get(key.end + 1)? != b':' {
            return None;
        }
        end = plain_text(key.end + 2, &mut quotes)?.end + 1;
        match header.get(end)? {
            b',' => {}
            b'}' => return Some((end, quotes)),
            _ => return None,
        }
    }
}

/// Reads the number at `at` and returns where it ends.
#[inline]
fn int(header: &[u8], at: usize, into: &mut i32) -> Option<usize> {
    let digits = header.get(at..)?;
    let (negative, digits) = digits.strip_prefix(b"-").map_or((false, digits), |digits| (true, digits));
    let (mut value, mut length) = (0i64, 0);
    while let Some(digit @ b'0'..=b'9') = digits.get(length) {
        value = value * 10 + i64::from(digit - b'0');
        length += 1;
        if length > 10 {
            return None;
        }
    }
    // JSON knows no leading zeros; such texts are left to the strict reader, which refuses them.
    if length == 0 || (digits[0] == b'0' && (length > 1 || negative)) {
        return None;
    }
    *into = i32::try_from(if negative { -value } else { value }).ok()?;
    Some(at + usize::from(negative) + length)
}

#[inline]
fn language(name: &[u8]) -> Option<LanguageCode> {
    match name {
        b"JAVA" => Some(LanguageCode::JAVA),
        b"RUST" => Some(LanguageCode::RUST),
        other => Some(LanguageCode::from_name(str::from_utf8(other).ok()?)),
    }
}
