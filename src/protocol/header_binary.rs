//! The ROCKETMQ binary form of a header.
//!
//! `i16 code, u8 language, i16 version, i32 opaque, i32 flag, i32 length + remark, i32 length + fields`, where the
//! fields are `i16 length + key, i32 length + value` until their length is used up. A length of 0 stands for null.

use crate::error::Result;
use crate::protocol::command::{RemotingCommand, SerializeType, malformed};
use crate::protocol::ext_fields::ExtFields;
use crate::protocol::language::LanguageCode;
use crate::protocol::scan::{BinaryFault, check_binary};
use byteorder::{BE, ByteOrder};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes in front of the remark: everything of fixed size, and the length of the remark.
const FIXED: usize = 17;

/// Appends the header. A code over 32767 loses its upper bits: the form has no room for them.
pub(crate) fn encode(command: &RemotingCommand, out: &mut Vec<u8>) {
    let (form, entries) = command.ext_fields.raw();
    let remark = command.remark.as_deref().unwrap_or_default();
    out.reserve(FIXED + 8 + remark.len() + entries.len());

    let mut fixed = [0; FIXED];
    BE::write_u16(&mut fixed[0..], command.code as u16);
    fixed[2] = command.language.wire_byte();
    BE::write_u16(&mut fixed[3..], command.version as u16);
    BE::write_i32(&mut fixed[5..], command.opaque);
    BE::write_i32(&mut fixed[9..], command.flag);
    BE::write_u32(&mut fixed[13..], remark.len() as u32);
    out.extend_from_slice(&fixed);
    out.extend_from_slice(remark.as_bytes());

    if form == SerializeType::Rocketmq {
        out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
        out.extend_from_slice(entries);
        return;
    }
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    for (key, value) in command.ext_fields.entries() {
        if key.len() <= i16::MAX as usize {
            out.extend_from_slice(&(key.len() as u16).to_be_bytes());
            out.extend_from_slice(key);
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value);
        }
    }
    let length = out.len() - length_at - 4;
    BE::write_u32(&mut out[length_at..], length as u32);
}

/// Reads the header that is at `range` of `frame`. Bytes of it behind the fields are ignored.
pub(crate) fn decode(frame: Bytes, range: Range<usize>, body: Bytes) -> Result<RemotingCommand> {
    let header = &frame[range.clone()];
    let Some((fixed, rest)) = header.split_first_chunk::<FIXED>() else {
        return Err(malformed(format_args!("{} bytes of the binary form are too few", header.len())));
    };
    let (remark, rest) = take(rest, BE::read_i32(&fixed[13..]), "remark")?;
    let remark = match remark {
        [] => None,
        text => Some(str::from_utf8(text).map_err(|_| malformed("the remark is not UTF-8"))?.to_owned()),
    };
    let Some((length, rest)) = rest.split_first_chunk::<4>() else {
        return Err(malformed("it ends before the length of its fields"));
    };
    let (entries, unused) = take(rest, i32::from_be_bytes(*length), "fields")?;
    let complete = check_binary(entries).map_err(|fault| match fault {
        BinaryFault::Length => malformed("a key or value is longer than the fields, or its length is negative"),
        BinaryFault::Text => malformed("a key or value is not UTF-8"),
    })?;

    let (code, language, version) = (BE::read_i16(fixed), fixed[2], BE::read_i16(&fixed[3..]));
    let (opaque, flag) = (BE::read_i32(&fixed[5..]), BE::read_i32(&fixed[9..]));
    let end = range.end - unused.len();
    let entries = end - entries.len()..end;
    let ext_fields = if entries.is_empty() {
        ExtFields::in_form(SerializeType::Rocketmq)
    } else if complete {
        ExtFields::received(SerializeType::Rocketmq, frame, entries)
    } else {
        without_nulls(&ExtFields::received(SerializeType::Rocketmq, frame, entries))
    };
    Ok(RemotingCommand {
        code: code.into(),
        language: LanguageCode(language.into()),
        version: version.into(),
        opaque,
        flag,
        remark,
        ext_fields,
        serialize_type: SerializeType::Rocketmq,
        body,
    })
}

fn take<'a>(rest: &'a [u8], length: i32, what: &str) -> Result<(&'a [u8], &'a [u8])> {
    let parts = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    parts.ok_or_else(|| malformed(format_args!("the {what} have length {length} of {} bytes", rest.len())))
}

/// The fields that have both a key and a value. A null value also hides what came before it under the same key.
#[cold]
fn without_nulls(fields: &ExtFields) -> ExtFields {
    let last: BTreeMap<&str, &str> = fields.iter().collect();
    let mut kept = ExtFields::in_form(SerializeType::Rocketmq);
    kept.set_present();
    for (key, value) in last.into_iter().filter(|(key, value)| !key.is_empty() && !value.is_empty()) {
        kept.put(key, value);
    }
    kept
}
