//! Decimal integers as bytes, in both directions.
//!
//! The standard formatter and parser go digit by digit and through trait objects; a pull request has ten numbers, and
//! these calls would be most of its cost. Here eight digits are made, or read, at a time, side by side in a 64-bit word.

use crate::protocol::scan::short_word;

/// Room that [`write_decimal`] needs: the longest `i64` with its sign has 20 bytes, written as 1 + 8 + 8 + 8.
pub(crate) const ROOM: usize = 25;

const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

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

/// Writes the number at the start of `out` and returns its length. What is behind it in `out` is overwritten, too.
#[inline]
pub(crate) fn write_decimal(value: i64, out: &mut [u8; ROOM]) -> usize {
    const EIGHT: u64 = 100_000_000;
    if let digit @ 0..10 = value {
        out[0] = b'0' + digit as u8;
        return 1;
    }
    out[0] = b'-';
    let at = usize::from(value < 0);
    let value = value.unsigned_abs();
    if value < EIGHT {
        return first_digits(value, out, at);
    }
    let (front, last) = (value / EIGHT, value % EIGHT);
    let at = if front < EIGHT {
        first_digits(front, out, at)
    } else {
        let at = first_digits(front / EIGHT, out, at);
        next_digits(front % EIGHT, out, at)
    };
    next_digits(last, out, at)
}

/// Writes a number below 10^8 at `at`, without leading zeros, and returns where it ends.
#[inline]
fn first_digits(value: u64, out: &mut [u8; ROOM], at: usize) -> usize {
    let digits = eight_digits(value);
    // Leading zeros are the low bytes; the last digit stays even when it is one.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    let text = (digits | ASCII_ZEROS) >> (zeros * 8);
    out[at..at + 8].copy_from_slice(&text.to_le_bytes());
    at + 8 - zeros as usize
}

/// Writes all eight digits at `at`, and returns where they end.
#[inline]
fn next_digits(value: u64, out: &mut [u8; ROOM], at: usize) -> usize {
    out[at..at + 8].copy_from_slice(&(eight_digits(value) | ASCII_ZEROS).to_le_bytes());
    at + 8
}

/// Reads a number as Java's `parseLong` does: an optional sign, then digits, and nothing else.
#[inline]
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let value = match digits.len() {
        0 => return None,
        1..=3 => parse_three(digits)?,
        4..=8 => parse_eight(digits)?,
        9..=16 => {
            let (first, last) = digits.split_at(digits.len() - 8);
            parse_eight(first)? * 100_000_000 + parse_eight(last)?
        }
        _ => parse_long(digits)?,
    };
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Reads a few digits, one by one.
#[inline]
fn parse_three(digits: &[u8]) -> Option<u64> {
    let mut value = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
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
        let mut out = [b'x'; ROOM];
        let length = write_decimal(value, &mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
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
