//! The ring of the consistent-hash strategy: where members and queues stand on it.
//!
//! Positions are signed 64-bit numbers, since Java lets users bring a hash function that returns a `long`; the one that
//! everybody uses returns the first four bytes of an MD5, so 0 to 2^32 - 1.

use super::Members;
use super::hash::share_names;
use super::routed::{NOBODY, Routed};
use crate::message::MessageQueue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Turns a key into a position.
pub(super) type HashFunction = dyn Fn(&str) -> i64 + Send + Sync;

/// The position of a key by MD5: its first four bytes, big-endian, unsigned.
pub(super) fn md5_position(key: &str) -> i64 {
    let digest = md5::compute(key);
    i64::from(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
}

/// Where the queues of a list stand. It does not depend on the members, so it outlives them.
pub(super) struct QueuePositions {
    /// Position and index of each queue, by position.
    sorted: Vec<(i64, u32)>,
}

impl QueuePositions {
    pub(super) fn new(queues: &[MessageQueue], hash: impl Fn(&str) -> i64) -> Self {
        let mut key = String::new();
        // Queues that follow each other mostly differ in their number alone.
        let mut shared: Option<(&MessageQueue, usize)> = None;
        let mut sorted: Vec<(i64, u32)> = Vec::with_capacity(queues.len());
        for (queue, index) in queues.iter().zip(0..) {
            match shared {
                Some((last, end)) if share_names(last, queue) => key.truncate(end),
                _ => {
                    key.clear();
                    for part in ["MessageQueue [topic=", queue.topic(), ", brokerName=", queue.broker_name()] {
                        key.push_str(part);
                    }
                    key.push_str(", queueId=");
                    shared = Some((queue, key.len()));
                }
            }
            if queue.queue_id() < 0 {
                key.push('-');
            }
            push_number(&mut key, queue.queue_id().unsigned_abs());
            key.push(']');
            sorted.push((hash(&key), index));
        }
        sorted.sort_unstable();
        Self { sorted }
    }
}

/// The members' nodes, in order of position.
pub(super) struct Ring {
    nodes: Vec<(i64, u32)>,
    members: Arc<Members>,
    /// The positions of each member's nodes, members in order; empty when an id is listed twice.
    positions: Vec<i64>,
    nodes_each: u32,
}

impl Ring {
    /// Puts `nodes_each` nodes of every member onto the ring. Positions of members that `earlier` has too are taken
    /// from there; it must have been made with the same number of nodes and the same function.
    pub(super) fn new(
        members: &Arc<Members>,
        nodes_each: u32,
        hash: impl Fn(&str) -> i64,
        earlier: Option<&Ring>,
    ) -> Self {
        let mut ring = Self { nodes: Vec::new(), members: members.clone(), positions: Vec::new(), nodes_each };
        let mut key = String::new();
        if members.has_duplicates() {
            ring.nodes = one_by_one(members, nodes_each, |id, replica| position(&mut key, id, replica, &hash));
            return ring;
        }
        ring.positions.reserve(members.len() * nodes_each as usize);
        for id in members.ids() {
            match earlier.and_then(|earlier| earlier.positions_of(id)) {
                Some(known) => ring.positions.extend_from_slice(known),
                None => ring.positions.extend((0..nodes_each).map(|replica| position(&mut key, id, replica, &hash))),
            }
        }
        let owners = (0..members.len() as u32).flat_map(|member| (0..nodes_each).map(move |_| member));
        ring.nodes = ring.positions.iter().copied().zip(owners).collect();
        ring.nodes.sort_unstable();
        // Of two nodes in one place the one put later stays. `dedup_by` keeps the earlier: give it the later's owner.
        ring.nodes.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = later.1;
            }
            same
        });
        ring
    }

    fn positions_of(&self, id: &str) -> Option<&[i64]> {
        if self.positions.is_empty() {
            return None;
        }
        let start = self.members.index_of(id)? * self.nodes_each as usize;
        self.positions.get(start..start + self.nodes_each as usize)
    }

    /// Gives each queue to the first node at or after it; past the last node, to the first of all.
    pub(super) fn route(&self, queues: &QueuePositions) -> Routed {
        let mut owners = vec![NOBODY; queues.sorted.len()];
        if let Some((_, first)) = self.nodes.first() {
            let mut nodes = self.nodes.iter().peekable();
            for (position, queue) in &queues.sorted {
                while nodes.next_if(|(node, _)| node < position).is_some() {}
                owners[*queue as usize] = nodes.peek().map_or(*first, |(_, owner)| *owner);
            }
        }
        Routed::new(self.members.len(), &owners)
    }
}

fn position(key: &mut String, id: &str, replica: u32, hash: impl Fn(&str) -> i64) -> i64 {
    key.clear();
    key.push_str(id);
    key.push('-');
    push_number(key, replica);
    hash(key)
}

/// As Java does it, node by node. An id that comes again goes on numbering at the count of its nodes that are still on
/// the ring: others may have taken the place of some.
fn one_by_one(members: &Members, nodes_each: u32, mut position: impl FnMut(&str, u32) -> i64) -> Vec<(i64, u32)> {
    let mut ring = BTreeMap::new();
    let mut on_ring = vec![0u32; members.len()];
    for id in members.ids() {
        let owner = members.index_of(id).unwrap_or_default();
        let from = on_ring[owner];
        for replica in from..from.saturating_add(nodes_each) {
            if let Some(driven_out) = ring.insert(position(id, replica), owner as u32) {
                on_ring[driven_out as usize] -= 1;
            }
            on_ring[owner] += 1;
        }
    }
    ring.into_iter().collect()
}

/// Decimal digits, without the cost of the formatting machinery: there are ten thousand keys in a large group.
fn push_number(key: &mut String, mut number: u32) {
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

    fn members(ids: &[&str]) -> Arc<Members> {
        Arc::new(Members::in_order(ids.iter().map(|id| Arc::from(*id)).collect()))
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 7, 10, 4_294_967_295] {
            let mut key = "x".to_owned();
            push_number(&mut key, number);
            assert_eq!(key, format!("x{number}"));
        }
    }

    #[test]
    fn a_ring_made_from_an_earlier_one_is_the_same() {
        let before = Ring::new(&members(&["a", "b", "c", "d"]), 10, md5_position, None);
        let now = members(&["b", "c", "e", "f", "a"]);
        let renewed = Ring::new(&now, 10, md5_position, Some(&before));
        assert_eq!(renewed.nodes, Ring::new(&now, 10, md5_position, None).nodes);
        let asked = std::cell::Cell::new(0);
        let count = |key: &str| {
            asked.set(asked.get() + 1);
            md5_position(key)
        };
        Ring::new(&now, 10, count, Some(&before));
        assert_eq!(asked.get(), 20, "only the nodes of e and f were hashed");
    }

    #[test]
    fn of_nodes_in_one_place_the_last_one_put_stays() {
        let everyone_at_seven = |_: &str| 7;
        for ids in [&["a", "b", "c"][..], &["c", "a", "b", "a", "c"]] {
            let ring = Ring::new(&members(ids), 3, everyone_at_seven, None);
            let last = members(ids).index_of(ids[ids.len() - 1]).unwrap();
            assert_eq!(ring.nodes, [(7, last as u32)]);
        }
    }
}
