//! Decimal integers as bytes, in both directions.
//!
//! The standard formatter and parser go digit by digit and through trait objects; a pull request has ten numbers, and
//! these calls would be most of its cost. Here eight digits are made, or read, at a time, side by side in a 64-bit word.

use crate::protocol::scan::short_word;

/// Bytes of the longest number, its sign included.
pub(crate) const LONGEST: usize = 20;

const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;
const EIGHT_DIGITS: u64 = 100_000_000;

/// The eight digits of a number below 10^8, each in a byte, the first one in the lowest.
#[inline]
const fn eight_digits(value: u64) -> u64 {
    // Two numbers of four digits, four of two, eight of one; the factors are 1/100 and 1/10 as binary fractions.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (twos - tens * 10) << 8
}

/// A number below 10^8 as text: its bytes, the first one in the lowest, and how many they are.
#[inline]
const fn short_decimal(value: u64) -> (u64, usize) {
    let digits = eight_digits(value);
    // Leading zeros are the low bytes; the last digit stays even when it is one.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    ((digits | ASCII_ZEROS) >> (zeros * 8), 8 - zeros as usize)
}

/// Writes the number at `at` and returns where it ends. Up to seven bytes behind it are overwritten, too.
#[inline]
pub(crate) fn write_decimal(out: &mut [u8], at: usize, value: i64) -> usize {
    // Negative numbers are large ones here.
    if (value as u64) < EIGHT_DIGITS {
        let value = value as u64;
        let (text, length) = match value {
            0..10 => (value | 0x30, 1),
            10..100 => ((value / 10) | (value % 10) << 8 | 0x3030, 2),
            _ => short_decimal(value),
        };
        return write_word(out, at, text, length);
    }
    write_large(out, at, value)
}

#[inline(always)]
fn write_word(out: &mut [u8], at: usize, word: u64, length: usize) -> usize {
    out[at..][..8].copy_from_slice(&word.to_le_bytes());
    at + length
}

/// Apart from the short numbers, which then need no room on the stack.
#[inline(never)]
fn write_large(out: &mut [u8], mut at: usize, value: i64) -> usize {
    if value < 0 {
        at = write_word(out, at, b'-'.into(), 1);
    }
    let value = value.unsigned_abs();
    let (front, last) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
    if front >= EIGHT_DIGITS {
        let (text, length) = short_decimal(front / EIGHT_DIGITS);
        at = write_word(out, at, text, length);
        at = write_word(out, at, eight_digits(front % EIGHT_DIGITS) | ASCII_ZEROS, 8);
    } else if front > 0 {
        let (text, length) = short_decimal(front);
        at = write_word(out, at, text, length);
    } else {
        // A negative number of few digits.
        let (text, length) = short_decimal(last);
        return write_word(out, at, text, length);
    }
    write_word(out, at, eight_digits(last) | ASCII_ZEROS, 8)
}

/// Reads a number as Java's `parseLong` does: an optional sign, then digits, and nothing else.
#[inline]
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    // Most numbers in headers are small. A byte that is no digit makes more than 9 here.
    let digit = |byte: u8| i64::from(byte.wrapping_sub(b'0'));
    match *text {
        [a] if digit(a) < 10 => Some(digit(a)),
        [a, b] if digit(a) < 10 && digit(b) < 10 => Some(digit(a) * 10 + digit(b)),
        _ => parse_any(text),
    }
}

#[inline(never)]
fn parse_any(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let value = match digits.len() {
        0 => return None,
        1..=8 => parse_eight(digits)?,
        9..=16 => {
            let (first, last) = digits.split_at(digits.len() - 8);
            parse_eight(first)? * EIGHT_DIGITS + parse_eight(last)?
        }
        _ => parse_long(digits)?,
    };
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Reads one to eight digits.
#[inline]
fn parse_eight(digits: &[u8]) -> Option<u64> {
    const SIXES: u64 = 0x0606_0606_0606_0606;
    const NIBBLES: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    // Zeros in front, that is in the low bytes, make it eight digits.
    let missing = 8 - digits.len() as u32;
    let word = match missing {
        0 => short_word(digits),
        missing => short_word(digits) << (missing * 8) | ASCII_ZEROS >> (64 - missing * 8),
    };
    // A digit has the upper half 3, and keeps it when 6 is added; the first test rules out carries in the second.
    if word & NIBBLES != ASCII_ZEROS || word.wrapping_add(SIXES) & NIBBLES != ASCII_ZEROS {
        return None;
    }
    let ones = word & !NIBBLES;
    let twos = (ones * 10 + (ones >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF)
}

/// Reads digits whose number may be too large.
#[cold]
#[inline(never)]
fn parse_long(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        value.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Reads a number as Java's `parseInt` does.
#[inline]
pub(crate) fn parse_i32(text: &[u8]) -> Option<i32> {
    i32::try_from(parse_i64(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: i64) -> String {
        let mut out = [b'x'; 2 + LONGEST + 8];
        let end = write_decimal(&mut out, 2, value);
        assert_eq!(&out[..2], b"xx");
        String::from_utf8(out[2..end].to_vec()).unwrap()
    }

    #[test]
    fn takes_what_java_takes_and_nothing_else() {
        for (text, value) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("+7", Some(7)),
            ("007", Some(7)),
            ("0000000000000000000000000000000000042", Some(42)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999999", None),
            ("", None),
            ("-", None),
            ("+", None),
            ("--1", None),
            (" 1", None),
            ("1 ", None),
            ("1.0", None),
            ("0x10", None),
            ("1e3", None),
            ("12345678:", None),
            ("1234567/", None),
            ("1\u{e9}", None),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), value, "{text:?}");
        }
        assert_eq!(parse_i32(b"2147483647"), Some(i32::MAX));
        assert_eq!(parse_i32(b"2147483648"), None);
    }

    #[test]
    fn every_byte_that_is_no_digit_is_refused_at_every_place() {
        for length in 1..=20 {
            for at in 0..length {
                for byte in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
                    let mut text = vec![b'1'; length];
                    text[at] = byte;
                    let sign = at == 0 && length > 1 && matches!(byte, b'+' | b'-');
                    assert_eq!(parse_i64(&text).is_some(), sign, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn writes_numbers_at_the_edges() {
        let powers = (0..19).map(|power| 10i64.pow(power));
        for value in powers.flat_map(|power| [power - 1, power, power + 1]).chain([i64::MAX, i64::MIN, 0]) {
            assert_eq!(written(value), value.to_string());
            assert_eq!(written(value.wrapping_neg()), value.wrapping_neg().to_string());
        }
    }

    proptest! {
        #[test]
        fn writes_as_the_standard_library_does_and_reads_it_back(value in any::<i64>(), shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(written(value), value.to_string());
            prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }
    }
}
