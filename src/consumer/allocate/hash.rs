//! Hashes over names, the same in every process, on every machine and in every release.
//!
//! Members of a group agree on shares by them ([`AllocateBalanced`](super::AllocateBalanced)), so what they return can
//! never change; the tests below and the recorded shares in `tests/allocation_properties.rs` hold it.

use crate::message::MessageQueue;
use std::sync::Arc;

/// Digits of pi and e: any odd constants without pattern would do.
const PI: u64 = 0x243F_6A88_85A3_08D3;
const E: u64 = 0xB7E1_5162_8AED_2A6B;

/// Both halves of the product, folded onto each other: each bit of either side reaches all bits of the result.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// A hash of a text, sixteen bytes a step, after the manner of wyhash.
#[inline]
pub(super) fn of_text(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = PI;
    // The last sixteen bytes, which may overlap the step before, or the few that there are.
    let [a, b] = match (bytes.last_chunk::<16>(), bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(last), _, _) => {
            let (steps, rest) = bytes.as_chunks::<16>();
            // A text that is a number of whole steps has the last one in `last`.
            for step in &steps[..steps.len() - usize::from(rest.is_empty())] {
                let [a, b] = words(step);
                hash = fold(a ^ E, b ^ hash);
            }
            words(last)
        }
        (None, Some(first), Some(last)) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
        _ => [bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0],
    };
    fold(E ^ bytes.len() as u64, fold(a ^ E, b ^ hash))
}

#[inline]
fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*bytes);
    [both as u64, (both >> 64) as u64]
}

/// A hash of each queue: of its topic, broker and number.
pub(super) fn of_queues(queues: &[MessageQueue]) -> Vec<u64> {
    // Queues that follow each other mostly differ in their number alone.
    let mut shared: Option<(&MessageQueue, u64)> = None;
    let of_queue = |queue: &MessageQueue, broker| fold(fold(broker ^ PI, queue.queue_id() as u64 ^ E) ^ PI, E);
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
    fold(queue, member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_never_change() {
        let known = [
            ("", 0x07A4_5CCF_82B4_5E1F),
            ("a", 0x6CBC_725F_893E_AA37),
            ("10.0.0.1@70#153529457077613", 0x10B7_6AF3_5557_EB9B),
            ("клиент", 0x7144_8B20_A9D9_37E9),
            ("sixteen bytes..!", 0x192B_9A57_5F79_EE65),
        ];
        for (text, hash) in known {
            assert_eq!(of_text(text), hash, "{text:?}");
        }
        let first = MessageQueue::new("TopicTest", "broker-a", 7);
        let second = MessageQueue::new(first.shared_topic().clone(), first.shared_broker_name().clone(), 8);
        let hashes = of_queues(&[first.clone(), second.clone()]);
        assert_eq!(hashes, [0x1982_192B_FC6B_45C5, 0x10C7_1866_0CDE_E7AF]);
        assert_eq!(of_queues(&[second]), hashes[1..], "whatever list it is in");
        assert_eq!(of_pair(hashes[0], of_text("a")), 0x4126_6FF0_B4E2_A4B2);
    }

    #[test]
    fn texts_that_differ_in_one_byte_or_by_zero_bytes_differ() {
        let texts = ["", "\0", "\0\0", "12345678", "12345678\0", "12345679", "1234567", "a2345678"];
        for (at, a) in texts.iter().enumerate() {
            assert!(texts[at + 1..].iter().all(|b| of_text(a) != of_text(b)), "{a:?}");
        }
    }
}
