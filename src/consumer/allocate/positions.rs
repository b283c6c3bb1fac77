//! From keys to positions on the ring.
//!
//! Positions are signed 64-bit numbers, since Java lets users bring a hash function that returns a `long`; the one that
//! everybody uses returns the first four bytes of an MD5, so 0 to 2^32 - 1.

use super::md5_lanes::{Batch, LANES, LONGEST_KEY};
use std::sync::Arc;

/// How a key becomes a position.
#[derive(Clone)]
pub(super) enum HashFunction {
    /// The first four bytes of the MD5, big-endian, unsigned.
    Md5,
    /// The user's.
    Own(Arc<dyn Fn(&str) -> i64 + Send + Sync>),
}

/// The position of one key by MD5.
pub(super) fn md5_position(key: &str) -> i64 {
    let digest = md5::compute(key);
    i64::from(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
}

/// Takes keys one by one and gives their positions in the same order, hashing several at once where it can.
pub(super) struct Positions<'a> {
    function: &'a HashFunction,
    found: Vec<i64>,
    waiting: Box<Batch>,
}

impl<'a> Positions<'a> {
    pub(super) fn new(function: &'a HashFunction, keys: usize) -> Self {
        Self { function, found: Vec::with_capacity(keys), waiting: Box::new(Batch::new()) }
    }

    pub(super) fn push(&mut self, key: &str) {
        match self.function {
            HashFunction::Own(hash) => self.found.push(hash(key)),
            HashFunction::Md5 if key.len() <= LONGEST_KEY => {
                self.waiting.push(key.as_bytes());
                if self.waiting.len() == LANES {
                    self.hash_waiting();
                }
            }
            HashFunction::Md5 => {
                self.hash_waiting();
                self.found.push(md5_position(key));
            }
        }
    }

    /// Positions that are known already.
    pub(super) fn extend(&mut self, known: &[i64]) {
        self.hash_waiting();
        self.found.extend_from_slice(known);
    }

    pub(super) fn into_vec(mut self) -> Vec<i64> {
        self.hash_waiting();
        self.found
    }

    fn hash_waiting(&mut self) {
        if self.waiting.len() > 0 {
            self.found.extend(self.waiting.take().map(i64::from));
        }
    }
}

/// Decimal digits, without the cost of the formatting machinery: there are ten thousand keys in a large group.
pub(super) fn push_number(key: &mut String, mut number: u32) {
    let mut digits = [0u8; 10];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    key.extend(digits[start..].iter().map(|digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 7, 10, 4_294_967_295] {
            let mut key = "x".to_owned();
            push_number(&mut key, number);
            assert_eq!(key, format!("x{number}"));
        }
    }

    #[test]
    fn positions_come_in_the_order_of_the_keys_however_long_they_are() {
        let keys: Vec<String> = (0..40).map(|n| "k".repeat(n * n % 130)).collect();
        let mut positions = Positions::new(&HashFunction::Md5, keys.len());
        keys.iter().take(30).for_each(|key| positions.push(key));
        positions.extend(&[-1, -2]);
        keys.iter().skip(30).for_each(|key| positions.push(key));
        let mut expected: Vec<i64> = keys.iter().map(|key| md5_position(key)).collect();
        expected.splice(30..30, [-1, -2]);
        assert_eq!(positions.into_vec(), expected);
    }
}
