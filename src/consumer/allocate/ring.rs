//! The ring of the consistent-hash strategy: where members and queues stand on it.

use super::Members;
use super::hash::share_names;
use super::positions::{HashFunction, Positions, push_number};
use super::routed::{NOBODY, Routed};
use crate::message::MessageQueue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the queues of a list stand. It does not depend on the members, so it outlives them.
pub(super) struct QueuePositions {
    /// Position and index of each queue, by position.
    sorted: Vec<(i64, u32)>,
}

impl QueuePositions {
    pub(super) fn new(queues: &[MessageQueue], function: &HashFunction) -> Self {
        let mut positions = Positions::new(function, queues.len());
        let mut key = String::new();
        // Queues that follow each other mostly differ in their number alone.
        let mut shared: Option<(&MessageQueue, usize)> = None;
        for queue in queues {
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
            positions.push(&key);
        }
        let mut sorted: Vec<(i64, u32)> = positions.into_vec().into_iter().zip(0..).collect();
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
        function: &HashFunction,
        earlier: Option<&Ring>,
    ) -> Self {
        let mut ring = Self { nodes: Vec::new(), members: members.clone(), positions: Vec::new(), nodes_each };
        if members.has_duplicates() {
            ring.nodes = one_by_one(members, nodes_each, function);
            return ring;
        }
        let mut positions = Positions::new(function, members.len() * nodes_each as usize);
        let mut key = String::new();
        for id in members.ids() {
            match earlier.and_then(|earlier| earlier.positions_of(id)) {
                Some(known) => positions.extend(known),
                None => push_nodes(&mut positions, &mut key, id, 0..nodes_each),
            }
        }
        ring.positions = positions.into_vec();
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

/// The keys of a member's nodes.
fn push_nodes(positions: &mut Positions<'_>, key: &mut String, id: &str, replicas: std::ops::Range<u32>) {
    key.clear();
    key.push_str(id);
    key.push('-');
    let end = key.len();
    for replica in replicas {
        key.truncate(end);
        push_number(key, replica);
        positions.push(key);
    }
}

/// As Java does it, member by member. An id that comes again goes on numbering at the count of its nodes that are still
/// on the ring: others may have taken the place of some.
fn one_by_one(members: &Members, nodes_each: u32, function: &HashFunction) -> Vec<(i64, u32)> {
    let mut ring = BTreeMap::new();
    let mut on_ring = vec![0u32; members.len()];
    let mut key = String::new();
    for (index, id) in members.ids().iter().enumerate() {
        let owner = members.index_of(id).unwrap_or(index);
        let from = on_ring[owner];
        let mut positions = Positions::new(function, nodes_each as usize);
        push_nodes(&mut positions, &mut key, id, from..from.saturating_add(nodes_each));
        for position in positions.into_vec() {
            if let Some(driven_out) = ring.insert(position, owner as u32) {
                on_ring[driven_out as usize] -= 1;
            }
            on_ring[owner] += 1;
        }
    }
    ring.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn members(ids: &[&str]) -> Arc<Members> {
        Arc::new(Members::in_order(ids.iter().map(|id| Arc::from(*id)).collect()))
    }

    #[test]
    fn a_ring_made_from_an_earlier_one_is_the_same() {
        let before = Ring::new(&members(&["a", "b", "c", "d"]), 10, &HashFunction::Md5, None);
        let now = members(&["b", "c", "e", "f", "a"]);
        let renewed = Ring::new(&now, 10, &HashFunction::Md5, Some(&before));
        assert_eq!(renewed.nodes, Ring::new(&now, 10, &HashFunction::Md5, None).nodes);
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let function = HashFunction::Own(Arc::new(move |key| {
            counter.fetch_add(1, Ordering::Relaxed);
            key.len() as i64
        }));
        Ring::new(&now, 10, &function, Some(&before));
        assert_eq!(asked.load(Ordering::Relaxed), 20, "only the nodes of e and f were hashed");
    }

    #[test]
    fn of_nodes_in_one_place_the_last_one_put_stays() {
        let all_at_seven = HashFunction::Own(Arc::new(|_| 7));
        for ids in [&["a", "b", "c"][..], &["c", "a", "b", "a", "c"]] {
            let ring = Ring::new(&members(ids), 3, &all_at_seven, None);
            let last = members(ids).index_of(ids[ids.len() - 1]).unwrap();
            assert_eq!(ring.nodes, [(7, last as u32)]);
        }
    }
}
