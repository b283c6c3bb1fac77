//! What Java computes over strings: their hash and their order, both over UTF-16 code units.

use std::cmp::Ordering;

/// `String.hashCode`: `h = 31 * h + unit` over UTF-16 code units, wrapping at 32 bits. Brokers filter tags by it.
///
/// ```
/// use rocketmq_sync::base::java_hash::string_hash;
/// assert_eq!(string_hash("TagA"), 2598919);
/// assert_eq!(string_hash("Aa"), string_hash("BB"));
/// ```
pub fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `String.compareTo`, as an order. It differs from Rust's only where one side has a character beyond U+FFFF and the
/// other one from U+E000 to U+FFFF.
pub fn string_cmp(a: &str, b: &str) -> Ordering {
    let at = a.bytes().zip(b.bytes()).position(|(x, y)| x != y);
    match at {
        // One is the start of the other.
        None => a.len().cmp(&b.len()),
        // Lead bytes 0xEE, 0xEF stand for U+E000 to U+FFFF, and 0xF0 up for surrogate pairs, which Java sorts first.
        // The first difference may also sit in a continuation byte, where both characters are of one length class.
        Some(at) => {
            let (x, y) = (a.as_bytes()[at], b.as_bytes()[at]);
            match (x >= 0xF0, y >= 0xF0) {
                (true, false) if y >= 0xEE => Ordering::Less,
                (false, true) if x >= 0xEE => Ordering::Greater,
                _ => x.cmp(&y),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_java_does() {
        let known = [
            ("", 0),
            ("TagB", 2598920),
            ("*", 42),
            ("标签", 857175),
            ("😀", 1772899),
            ("polygenelubricants", i32::MIN),
        ];
        for (text, hash) in known {
            assert_eq!(string_hash(text), hash, "{text}");
        }
    }

    #[test]
    fn orders_as_utf16_does() {
        let samples =
            ["", "a", "ab", "b", "é", "\u{d7ff}", "\u{e000}", "\u{ffff}", "\u{10000}", "😀", "a\u{ffff}", "a😀"];
        for a in samples {
            for b in samples {
                let expected = a.encode_utf16().cmp(b.encode_utf16());
                assert_eq!(string_cmp(a, b), expected, "{a:?} {b:?}");
            }
        }
    }
}
