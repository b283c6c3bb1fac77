//! One custom field in each of the two forms.

use crate::protocol::decimal::write_decimal;
use crate::protocol::key::Key;
use crate::protocol::scan::cut;
use crate::protocol::writer::{put_bytes, put_literal, put_start, put_text};

/// Most bytes of an entry beside its key and its value, in either form.
pub(crate) const AROUND: usize = 6;

/// How an entry is written. Everything is written at a place and returns the place behind it.
pub(crate) trait EntryForm {
    /// An entry of any key and value.
    fn entry(out: &mut [u8], at: usize, key: &str, value: &str) -> usize;

    /// An entry whose value is a number.
    fn int(out: &mut [u8], at: usize, key: &Key, value: i64) -> usize;

    /// An entry whose value is text, and whether the form can carry that text as it is.
    fn text(out: &mut [u8], at: usize, key: &Key, value: &str) -> (usize, bool);
}

/// `,"key":"value"`. The key must be plain; a value that is not makes the entry useless.
#[derive(Debug)]
pub(crate) struct Json;

impl EntryForm for Json {
    fn entry(out: &mut [u8], at: usize, key: &str, value: &str) -> usize {
        let at = put_literal(out, at, b",\"");
        let at = put_bytes(out, at, key.as_bytes());
        let at = put_literal(out, at, b"\":\"");
        let at = put_bytes(out, at, value.as_bytes());
        put_literal(out, at, b"\"")
    }

    fn int(out: &mut [u8], at: usize, key: &Key, value: i64) -> usize {
        let (room, length) = key.json_room();
        let at = put_start(out, at, room, length);
        let at = write_decimal(out, at, value);
        put_literal(out, at, b"\"")
    }

    fn text(out: &mut [u8], at: usize, key: &Key, value: &str) -> (usize, bool) {
        let (room, length) = key.json_room();
        let at = put_start(out, at, room, length);
        let (at, plain) = put_text(out, at, value.as_bytes());
        (put_literal(out, at, b"\""), plain)
    }
}

/// `i16 length, key, i32 length, value`.
#[derive(Debug)]
pub(crate) struct Binary;

impl EntryForm for Binary {
    fn entry(out: &mut [u8], at: usize, key: &str, value: &str) -> usize {
        // A longer key cannot be written: the length is a signed 16-bit number. Nobody's key is.
        let key = cut(key, i16::MAX as usize);
        let at = put_literal(out, at, &(key.len() as u16).to_be_bytes());
        let at = put_bytes(out, at, key.as_bytes());
        let at = put_literal(out, at, &(value.len() as u32).to_be_bytes());
        put_bytes(out, at, value.as_bytes())
    }

    fn int(out: &mut [u8], at: usize, key: &Key, value: i64) -> usize {
        let (room, length) = key.binary_room();
        let at = put_start(out, at, room, length);
        let end = write_decimal(out, at + 4, value);
        put_literal(out, at, &((end - at - 4) as u32).to_be_bytes());
        end
    }

    fn text(out: &mut [u8], at: usize, key: &Key, value: &str) -> (usize, bool) {
        let (room, length) = key.binary_room();
        let at = put_start(out, at, room, length);
        let at = put_literal(out, at, &(value.len() as u32).to_be_bytes());
        (put_text(out, at, value.as_bytes()).0, true)
    }
}
