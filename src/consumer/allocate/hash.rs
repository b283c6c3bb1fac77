//! Hashes over names, the same in every process, on every machine and in every release.
//!
//! Members of a group agree on shares by them ([`AllocateBalanced`](super::AllocateBalanced)), so what they return can
//! never change; the tests below and the recorded shares in `tests/allocation_properties.rs` hold it.

use crate::message::MessageQueue;
use std::sync::Arc;

/// Digits of pi and e: any odd constants without pattern would do.
const SEED: u64 = 0x243F_6A88_85A3_08D3;
const FOLD: u64 = 0xB7E1_5162_8AED_2A6B;

/// Both halves of the product, folded onto each other: each bit of the input reaches all bits of the result.
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Spreads what differs in any bit over all bits.
const fn mixed(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ x >> 32
}

/// A hash of a text, eight bytes at a time.
pub(super) fn of_text(text: &str) -> u64 {
    let mut hash = SEED ^ text.len() as u64;
    let mut chunks = text.as_bytes().chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        hash = fold(hash ^ word, FOLD);
    }
    let rest = chunks.remainder().iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    mixed(fold(hash ^ rest, FOLD))
}

/// A hash of each queue: of its topic, broker and number.
pub(super) fn of_queues(queues: &[MessageQueue]) -> Vec<u64> {
    // Queues that follow each other mostly differ in their number alone.
    let mut shared: Option<(&MessageQueue, u64)> = None;
    let of_queue =
        |queue: &MessageQueue, broker: u64| mixed(broker.wrapping_add((queue.queue_id() as u64).wrapping_mul(FOLD)));
    let mut hashes = Vec::with_capacity(queues.len());
    for queue in queues {
        let broker = match shared {
            Some((last, broker)) if share_names(last, queue) => broker,
            _ => of_text(queue.topic()).rotate_left(23) ^ of_text(queue.broker_name()),
        };
        shared = Some((queue, broker));
        hashes.push(of_queue(queue, broker));
    }
    hashes
}

/// Whether two queues share the texts of topic and broker. Equal texts in different places do not count.
pub(super) fn share_names(a: &MessageQueue, b: &MessageQueue) -> bool {
    Arc::ptr_eq(a.shared_broker_name(), b.shared_broker_name()) && Arc::ptr_eq(a.shared_topic(), b.shared_topic())
}

/// A hash of a queue and a member together, from the hash of each.
#[inline]
pub(super) const fn of_pair(queue: u64, member: u64) -> u64 {
    mixed(queue ^ member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_never_change() {
        let known = [
            ("", 0x807C_C6BC_3706_20EA),
            ("a", 0x3809_AF35_5D50_3048),
            ("10.0.0.1@70#153529457077613", 0x5FB0_7662_0E30_63C6),
            ("клиент", 0xFED0_61B6_D462_5688),
        ];
        for (text, hash) in known {
            assert_eq!(of_text(text), hash, "{text:?}");
        }
        let first = MessageQueue::new("TopicTest", "broker-a", 7);
        let second = MessageQueue::new(first.shared_topic().clone(), first.shared_broker_name().clone(), 8);
        let hashes = of_queues(&[first.clone(), second.clone()]);
        assert_eq!(hashes, [0xB2AA_8576_7B1A_E698, 0xC006_DCB9_7622_06D6]);
        assert_eq!(of_queues(&[second]), hashes[1..], "whatever list it is in");
        assert_eq!(of_pair(hashes[0], of_text("a")), 0xDB83_96AC_9E6A_AAFD);
    }

    #[test]
    fn texts_that_differ_in_one_byte_or_by_zero_bytes_differ() {
        let texts = ["", "\0", "\0\0", "12345678", "12345678\0", "12345679", "1234567", "a2345678"];
        for (at, a) in texts.iter().enumerate() {
            assert!(texts[at + 1..].iter().all(|b| of_text(a) != of_text(b)), "{a:?}");
        }
    }
}
