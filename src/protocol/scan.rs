//! Looking at many bytes of a header at once, and the checks that make the plain forms trustworthy.

use std::ops::Range;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the high bit of each byte of `word` that equals `byte`; marks above the lowest one may be wrong.
#[inline(always)]
const fn equals(word: u64, byte: u8) -> u64 {
    let zero_where_equal = word ^ (ONES * byte as u64);
    zero_where_equal.wrapping_sub(ONES) & !zero_where_equal & HIGHS
}

/// Marks the bytes that end or disturb a plain text: a quote, a backslash, a control character.
#[inline(always)]
const fn special(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    control | equals(word, b'"') | equals(word, b'\\')
}

#[inline(always)]
fn find(bytes: &[u8], mark: impl Fn(u64) -> u64) -> Option<usize> {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let marks = mark(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return Some(at + marks.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    // The padding of all ones is no quote, no backslash and no control character.
    let tail = bytes.get(at..)?;
    let mut chunk = [0xFF; 8];
    chunk[..tail.len()].copy_from_slice(tail);
    let marks = mark(u64::from_le_bytes(chunk));
    (marks != 0).then(|| at + marks.trailing_zeros() as usize / 8)
}

/// Where the first quote is.
#[inline]
pub(crate) fn find_quote(bytes: &[u8]) -> Option<usize> {
    find(bytes, |word| equals(word, b'"'))
}

/// Where the first quote, backslash or control character is.
#[inline]
pub(crate) fn find_special(bytes: &[u8]) -> Option<usize> {
    find(bytes, special)
}

/// Whether the text may stand between quotes in JSON as it is.
#[inline]
pub(crate) fn is_plain(text: &str) -> bool {
    find_special(text.as_bytes()).is_none()
}

/// The text, or its longest start of at most `longest` bytes that is text.
pub(crate) fn cut(text: &str, longest: usize) -> &str {
    let mut end = longest.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The end of the plain text that starts at `at`, which is where its closing quote stands.
#[inline]
pub(crate) fn plain_text(bytes: &[u8], at: usize) -> Option<usize> {
    let end = at + find_special(bytes.get(at..)?)?;
    (bytes[end] == b'"').then_some(end)
}

/// The entries of the plain object of texts whose opening brace is at `at`, from that brace on, without the closing
/// one. `None` when it is not plain.
#[inline]
pub(crate) fn plain_object(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if bytes.get(at..at + 2)? == b"{}" {
        return Some(at..at);
    }
    let mut end = at;
    loop {
        // `end` is at the brace or comma in front of an entry.
        if *bytes.get(end + 1)? != b'"' {
            return None;
        }
        let colon = plain_text(bytes, end + 2)? + 1;
        if bytes.get(colon..colon + 2)? != b":\"" {
            return None;
        }
        end = plain_text(bytes, colon + 2)? + 1;
        match bytes.get(end)? {
            b',' => {}
            b'}' => return Some(at..end),
            _ => return None,
        }
    }
}

/// What is wrong with a block of binary entries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BinaryFault {
    /// A length is negative or beyond the block.
    Length,
    /// A key or value is not UTF-8.
    Text,
}

/// Checks a block of binary entries. `Ok(true)` when every entry has a key and a value; otherwise some of them are
/// null and must be taken out before the block is used.
#[inline]
pub(crate) fn check_binary(block: &[u8]) -> Result<bool, BinaryFault> {
    let ascii = block.is_ascii();
    let (mut rest, mut complete) = (block, true);
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<2>().ok_or(BinaryFault::Length)?;
        let length = usize::try_from(i16::from_be_bytes(*length)).map_err(|_| BinaryFault::Length)?;
        let (key, after) = after.split_at_checked(length).ok_or(BinaryFault::Length)?;
        let (length, after) = after.split_first_chunk::<4>().ok_or(BinaryFault::Length)?;
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| BinaryFault::Length)?;
        let (value, after) = after.split_at_checked(length).ok_or(BinaryFault::Length)?;
        if !ascii && (str::from_utf8(key).is_err() || str::from_utf8(value).is_err()) {
            return Err(BinaryFault::Text);
        }
        complete &= !key.is_empty() && !value.is_empty();
        rest = after;
    }
    Ok(complete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_object_is_compact_text_to_text_without_escapes() {
        for (text, expected) in [
            (r#"{}"#, Some(0..0)),
            (r#"{"a":"b"}"#, Some(0..8)),
            (r#"{"a":"b","":""}tail"#, Some(0..14)),
            (r#"{"a":"é😀"}"#, Some(0..13)),
            (r#"{"a" :"b"}"#, None),
            (r#"{"a": "b"}"#, None),
            (r#"{ "a":"b"}"#, None),
            (r#"{"a":"b",}"#, None),
            (r#"{"a":"b\n"}"#, None),
            ("{\"a\":\"b\u{1}\"}", None),
            (r#"{"a":1}"#, None),
            (r#"{"a":null}"#, None),
            (r#"{"a":"b""#, None),
            (r#"{"a"#, None),
            (r#"{"#, None),
            ("", None),
        ] {
            assert_eq!(plain_object(text.as_bytes(), 0), expected, "{text}");
        }
    }

    #[test]
    fn cuts_only_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 99), "aé");
    }

    proptest! {
        #[test]
        fn finds_what_a_byte_by_byte_search_finds(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(find_quote(&bytes), bytes.iter().position(|b| *b == b'"'));
            prop_assert_eq!(find_special(&bytes), bytes.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)));
        }

        #[test]
        fn finds_across_long_clean_stretches(clean in "[a-zé]{0,60}", tail in "[\"\\\\\u{1}]?") {
            let text = format!("{clean}{tail}");
            prop_assert_eq!(find_special(text.as_bytes()), (!tail.is_empty()).then_some(clean.len()));
        }
    }
}
