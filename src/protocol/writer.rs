//! Writing short pieces into room that is there already.
//!
//! Headers are made of pieces of a few bytes. To append each to a `Vec` costs a check of its room and a call to copy.
//! Here constants are copied by a fixed count of instructions and short texts by words, and the place to write at goes
//! in and out as a value: kept in memory, each piece would wait for the one before to be stored.
//!
//! The room must hold everything that is written and [`SLACK`] bytes more.

use crate::protocol::scan::{find_special, short_word, special};

/// Bytes that may be touched behind what is written.
pub(crate) const SLACK: usize = 32;

/// Writes the first `length` of the bytes at `at`, and returns where they end.
#[inline(always)]
pub(crate) fn put_start<const N: usize>(out: &mut [u8], at: usize, bytes: &[u8; N], length: usize) -> usize {
    out[at..][..N].copy_from_slice(bytes);
    at + length
}

/// Writes the bytes.
#[inline(always)]
pub(crate) fn put_literal<const N: usize>(out: &mut [u8], at: usize, bytes: &[u8; N]) -> usize {
    put_start(out, at, bytes, N)
}

/// Writes bytes that may be many.
#[inline]
pub(crate) fn put_bytes(out: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    out[at..][..bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}

/// Writes text that is short as a rule. Also says whether it is plain: free of what JSON would have to escape.
#[inline]
pub(crate) fn put_text(out: &mut [u8], start: usize, text: &[u8]) -> (usize, bool) {
    let end = start + text.len();
    if text.len() <= 8 {
        let word = short_word(text);
        out[start..][..8].copy_from_slice(&word.to_le_bytes());
        return (end, special(word | padding(text.len())) == 0);
    }
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) if text.len() <= 16 => {
            // They overlap, and the same bytes meet.
            out[start..][..8].copy_from_slice(first);
            out[end - 8..][..8].copy_from_slice(last);
            (end, special(u64::from_le_bytes(*first)) | special(u64::from_le_bytes(*last)) == 0)
        }
        _ => (put_bytes(out, start, text), find_special(text).is_none()),
    }
}

/// Ones for the bytes that a word of so many bytes lacks.
#[inline]
const fn padding(length: usize) -> u64 {
    if length < 8 { u64::MAX << (length * 8) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::decimal::write_decimal;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn writes_what_it_is_told_and_tells_plain_text(text in ".{0,30}", number in any::<i64>()) {
            let mut out = [0; 400];
            let at = put_literal(&mut out, 0, b"<<");
            let (at, plain) = put_text(&mut out, at, text.as_bytes());
            let at = put_start(&mut out, at, b"=....", 1);
            let at = write_decimal(&mut out, at, number);
            let at = put_bytes(&mut out, at, b">");
            prop_assert_eq!(str::from_utf8(&out[..at]).unwrap(), format!("<<{text}={number}>"));
            prop_assert_eq!(plain, !text.chars().any(|c| matches!(c, '"' | '\\' | '\0'..' ')));
        }
    }
}
