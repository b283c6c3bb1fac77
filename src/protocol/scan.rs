//! Looking at many bytes of a header at once, and the checks that make the plain forms trustworthy.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the high bit of each byte of `word` that equals `byte`; marks above the lowest one may be wrong.
#[inline]
const fn equals(word: u64, byte: u8) -> u64 {
    let zero_where_equal = word ^ (ONES * byte as u64);
    zero_where_equal.wrapping_sub(ONES) & !zero_where_equal & HIGHS
}

/// Marks the bytes that end or disturb a plain text: a quote, a backslash, a control character. Marks above the lowest
/// one may be wrong.
#[inline]
pub(crate) const fn special(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    control | equals(word, b'"') | equals(word, b'\\')
}

/// The bytes, of which the first eight count, as a little-endian word; missing ones are 0.
#[inline]
pub(crate) fn short_word(bytes: &[u8]) -> u64 {
    // The two reads overlap when there are fewer bytes than they have room for: the same bits meet.
    let quad = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (Some(word), ..) => u64::from_le_bytes(*word),
        (_, Some(first), Some(last), _) => quad(first) | quad(last) << ((bytes.len() - 4) * 8),
        (_, _, _, [a, rest @ ..]) => {
            let (b, c) = (rest.first().copied().unwrap_or(0), rest.get(1).copied().unwrap_or(0));
            u64::from(*a) | u64::from(b) << 8 | u64::from(c) << 16
        }
        _ => 0,
    }
}

#[inline]
fn find(bytes: &[u8], mark: impl Fn(u64) -> u64) -> Option<usize> {
    let mut at = 0;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let marks = mark(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return Some(at + marks.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let tail = &bytes[at..];
    if tail.is_empty() {
        return None;
    }
    // All ones are no quote, no backslash and no control character.
    let marks = mark(short_word(tail) | u64::MAX << (tail.len() * 8));
    (marks != 0).then(|| at + marks.trailing_zeros() as usize / 8)
}

/// Where the first quote is.
#[inline]
pub(crate) fn find_quote(bytes: &[u8]) -> Option<usize> {
    find(bytes, |word| equals(word, b'"'))
}

/// Where the first quote, backslash or control character is.
#[inline(never)]
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

/// The quotes of a text, one after the other.
///
/// Finds the quotes of 64 bytes at a time, by a loop without a branch that compilers turn into vector instructions. To
/// look for each quote from the one before would wait for it each time.
#[derive(Clone, Copy)]
pub(crate) struct Quotes<'a> {
    text: &'a [u8],
    /// Where the bytes of `mask` start.
    start: usize,
    /// A bit for each of 64 bytes: set for a quote that was not handed out.
    mask: u64,
}

const BLOCK: usize = 64;

impl<'a> Quotes<'a> {
    #[inline]
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, start: 0, mask: quote_mask(text, 0) }
    }

    /// Where the next quote is.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.start += BLOCK;
            if self.start >= self.text.len() {
                return None;
            }
            self.mask = quote_mask(self.text, self.start);
        }
        let at = self.start + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(at)
    }
}

/// A bit for each of the 64 bytes from `start` on, set where a quote is. A function of values, so that the state of
/// [`Quotes`] can stay in registers.
#[inline(never)]
fn quote_mask(text: &[u8], start: usize) -> u64 {
    let rest = text.get(start..).unwrap_or_default();
    match (rest.first_chunk::<BLOCK>(), text.last_chunk::<BLOCK>()) {
        (Some(block), _) => block_mask(block),
        // The last block starts earlier; what was looked at falls out.
        (None, Some(last)) if !rest.is_empty() => block_mask(last) >> (BLOCK - rest.len()),
        _ => rest.iter().rev().fold(0, |mask, byte| mask << 1 | u64::from(*byte == b'"')),
    }
}

#[inline(always)]
fn block_mask(block: &[u8; BLOCK]) -> u64 {
    let flags = block.map(|byte| u8::from(byte == b'"'));
    let mut mask = 0;
    for (at, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // Brings the lowest bits of eight bytes together in the highest byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (at * 8);
    }
    mask
}

/// Whether the bytes are ASCII without backslashes and control characters. Every quote is then the end of a text.
#[inline]
pub(crate) fn is_plain_ascii(bytes: &[u8]) -> bool {
    const WIDTH: usize = 32;
    #[inline(always)]
    fn is_plain(byte: &u8) -> bool {
        (0x20..0x80).contains(byte) & (*byte != b'\\')
    }
    let Some(last) = bytes.last_chunk::<WIDTH>() else {
        return bytes.iter().all(is_plain);
    };
    // No early exit, so that compilers make vector instructions of it; and no rest of single bytes, but a last piece
    // that overlaps what was looked at.
    let (pieces, _) = bytes.as_chunks::<WIDTH>();
    pieces.as_flattened().iter().chain(last).fold(true, |plain, byte| plain & is_plain(byte))
}

/// Whether the bytes are ASCII. The standard function takes the bytes behind the last 32 one by one.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let seen = words.iter().fold(0, |seen, word| seen | u64::from_le_bytes(*word));
    (seen | short_word(rest)) & HIGHS == 0
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
    let (mut rest, mut complete) = (block, true);
    while !rest.is_empty() {
        let (key, after) = short_part(rest).ok_or(BinaryFault::Length)?;
        let (value, after) = long_part(after).ok_or(BinaryFault::Length)?;
        complete &= !key.is_empty() & !value.is_empty();
        rest = after;
    }
    if is_ascii(block) {
        return Ok(complete);
    }
    // Lengths may be no ASCII, so this does not mean that the texts are none.
    check_texts(block).map(|()| complete)
}

#[cold]
fn check_texts(block: &[u8]) -> Result<(), BinaryFault> {
    let mut rest = block;
    while let Some((key, value, after)) = split_entry(rest) {
        if str::from_utf8(key).is_err() || str::from_utf8(value).is_err() {
            return Err(BinaryFault::Text);
        }
        rest = after;
    }
    Ok(())
}

/// Key and value of the first binary entry, and what follows it. `None` at the end, or when it is longer than the bytes.
#[inline]
pub(crate) fn split_entry(entries: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key, rest) = short_part(entries)?;
    let (value, rest) = long_part(rest)?;
    Some((key, value, rest))
}

/// What has its length in front as `i16`.
#[inline]
fn short_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let length = u16::from_be_bytes(*length);
    (length <= i16::MAX as u16).then_some(())?;
    rest.split_at_checked(length.into())
}

/// What has its length in front as `i32`.
#[inline]
pub(crate) fn long_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    // No block is as long as a negative length taken as unsigned.
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cuts_only_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 99), "aé");
    }

    #[test]
    fn one_byte_decides_wherever_it_stands() {
        for length in 1..130 {
            for at in 0..length {
                let mut bytes = vec![b'a'; length];
                assert!(is_plain_ascii(&bytes) && is_ascii(&bytes));
                bytes[at] = b'\\';
                assert!(!is_plain_ascii(&bytes) && is_ascii(&bytes));
                bytes[at] = 0x80;
                assert!(!is_plain_ascii(&bytes) && !is_ascii(&bytes));
            }
        }
    }

    proptest! {
        #[test]
        fn finds_what_a_byte_by_byte_search_finds(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let is_special = |b: &u8| matches!(b, b'"' | b'\\' | 0..0x20);
            prop_assert_eq!(find_quote(&bytes), bytes.iter().position(|b| *b == b'"'));
            prop_assert_eq!(find_special(&bytes), bytes.iter().position(is_special));
            let plain = bytes.iter().all(|b| matches!(b, 0x20..0x80) && *b != b'\\');
            prop_assert_eq!(is_plain_ascii(&bytes), plain);
            prop_assert_eq!(is_ascii(&bytes), bytes.is_ascii());
            let short = &bytes[..bytes.len().min(8)];
            let mut padded = [0; 8];
            padded[..short.len()].copy_from_slice(short);
            prop_assert_eq!(short_word(short), u64::from_le_bytes(padded));
        }

        #[test]
        fn finds_across_long_clean_stretches(clean in "[a-zé]{0,60}", tail in "[\"\\\\\u{1}]?") {
            let text = format!("{clean}{tail}");
            prop_assert_eq!(find_special(text.as_bytes()), (!tail.is_empty()).then_some(clean.len()));
        }

        #[test]
        fn hands_out_every_quote(text in "[\"a\u{22}\u{23}\u{21}é]{0,200}", clean in 0usize..150) {
            let text = format!("{}{text}", " ".repeat(clean));
            let mut quotes = Quotes::new(text.as_bytes());
            let found: Vec<_> = std::iter::from_fn(|| quotes.next()).collect();
            let expected: Vec<_> = text.bytes().enumerate().filter(|(_, b)| *b == b'"').map(|(at, _)| at).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(quotes.next(), None);
        }
    }
}
