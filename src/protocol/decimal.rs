//! Decimal integers as bytes, in both directions.
//!
//! The standard formatter and parser go through `str` and trait objects; a pull request has ten numbers, and these
//! calls are most of its cost.

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Longest decimal form of an `i64`, sign included.
const LONGEST: usize = 20;

/// A number as decimal digits, in a buffer of its own.
pub(crate) struct Decimal {
    digits: [u8; LONGEST],
    start: usize,
}

impl Decimal {
    #[inline]
    pub(crate) fn new(value: i64) -> Self {
        let mut digits = [0; LONGEST];
        let mut start = LONGEST;
        let mut rest = value.unsigned_abs();
        while rest >= 10 {
            let pair = (rest % 100) as usize * 2;
            rest /= 100;
            start -= 2;
            digits[start] = PAIRS[pair];
            digits[start + 1] = PAIRS[pair + 1];
        }
        // One digit is left, unless the number has an even count of them.
        if rest > 0 || value == 0 {
            start -= 1;
            digits[start] = b'0' + rest as u8;
        }
        if value < 0 {
            start -= 1;
            digits[start] = b'-';
        }
        Self { digits, start }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        // Digits and a sign: never fails.
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

/// Reads a number as Java's `parseLong` does: an optional sign, then digits, and nothing else.
#[inline]
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0u64;
    if digits.len() <= 18 {
        // Cannot overflow.
        for digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
    } else {
        for digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
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

    #[test]
    fn takes_what_java_takes_and_nothing_else() {
        for (text, value) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("+7", Some(7)),
            ("007", Some(7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("00000000000000000000000000000042", Some(42)),
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
        ] {
            assert_eq!(parse_i64(text.as_bytes()), value, "{text:?}");
        }
        assert_eq!(parse_i32(b"2147483647"), Some(i32::MAX));
        assert_eq!(parse_i32(b"2147483648"), None);
    }

    proptest! {
        #[test]
        fn writes_as_the_standard_library_does_and_reads_it_back(value in any::<i64>(), shift in 0u32..64) {
            let value = value >> shift;
            let decimal = Decimal::new(value);
            prop_assert_eq!(decimal.as_str(), value.to_string());
            prop_assert_eq!(parse_i64(decimal.as_bytes()), Some(value));
        }
    }
}
