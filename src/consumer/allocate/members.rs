//! The members of a group: an ordered list in which a place is found without a search.

use super::hash;
use crate::base::java_hash::string_cmp;
use std::fmt;
use std::sync::Arc;

/// The client ids of a group, in Java's order. One that is listed twice (two connections) stays listed twice, since
/// all members, Java's too, must compute alike.
///
/// Made once for a list of members and shared by all calls: strategies keep what they work out for the object, so the
/// same members should stay the same object.
///
/// ```
/// use rocketmq_sync::Members;
/// let members = Members::new(["10.0.0.7@9#1".into(), "10.0.0.10@8#1".into()].to_vec());
/// assert_eq!(members.index_of("10.0.0.10@8#1"), Some(0)); // ordered as text
/// assert_eq!(members.index_of("10.0.0.9@8#1"), None);
/// ```
#[doc(alias = "cidAll")]
pub struct Members {
    ids: Box<[Arc<str>]>,
    hashes: Box<[u64]>,
    /// Open addressing over the hashes, at most half full: the upper half of the hash, then the index plus one; 0 is
    /// free. Holds the first index of each id.
    table: Box<[u64]>,
    fingerprint: u64,
    distinct: usize,
}

const INDEX: u64 = u32::MAX as u64;

impl Members {
    /// Sorts the ids as Java does.
    pub fn new(mut ids: Vec<Arc<str>>) -> Self {
        // Up to U+D7FF, of lead byte 0xED, the orders of UTF-8 and UTF-16 are the same.
        if ids.iter().all(|id| id.bytes().all(|byte| byte < 0xEE)) {
            ids.sort_unstable();
        } else {
            ids.sort_unstable_by(|a, b| string_cmp(a, b));
        }
        Self::in_order(ids)
    }

    /// Keeps the ids in the order given: for tests and tools. The consumer always sorts.
    pub fn in_order(ids: Vec<Arc<str>>) -> Self {
        let hashes: Box<[u64]> = ids.iter().map(|id| hash::of_text(id)).collect();
        let mut table = vec![0u64; (ids.len() * 2).next_power_of_two().max(2)].into_boxed_slice();
        let (mut fingerprint, mut distinct) = (ids.len() as u64, 0);
        for (index, (id, hash)) in ids.iter().zip(&hashes).enumerate() {
            fingerprint = hash::of_pair(fingerprint.rotate_left(1), *hash);
            let free = probe(&table, *hash, |known| ids[known] == *id);
            if let Err(slot) = free {
                table[slot] = hash & !INDEX | (index as u64 + 1);
                distinct += 1;
            }
        }
        Self { ids: ids.into(), hashes, table, fingerprint, distinct }
    }

    /// The first index of the id.
    #[inline]
    pub fn index_of(&self, id: &str) -> Option<usize> {
        probe(&self.table, hash::of_text(id), |known| *self.ids[known] == *id).ok()
    }

    /// The ids, in order.
    pub fn ids(&self) -> &[Arc<str>] {
        &self.ids
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether an id is listed more than once: two clients that take themselves for the same member.
    pub fn has_duplicates(&self) -> bool {
        self.distinct < self.ids.len()
    }

    /// The hash of each id, in their order.
    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }
}

/// The index kept for a hash, or the free slot where it belongs.
#[inline]
fn probe(table: &[u64], hash: u64, is_wanted: impl Fn(usize) -> bool) -> Result<usize, usize> {
    let mask = table.len() - 1;
    let mut slot = hash as usize & mask;
    loop {
        match table[slot] {
            0 => return Err(slot),
            // The lower half of the hash chose the slot, the upper one tells most strangers without a look at the id.
            entry if (entry ^ hash) & !INDEX == 0 && is_wanted((entry & INDEX) as usize - 1) => {
                return Ok((entry & INDEX) as usize - 1);
            }
            _ => slot = (slot + 1) & mask,
        }
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.ids == other.ids
    }
}

impl Eq for Members {}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.ids).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arcs(ids: &[&str]) -> Vec<Arc<str>> {
        ids.iter().map(|id| Arc::from(*id)).collect()
    }

    #[test]
    fn finds_the_first_place_of_every_id_and_no_other() {
        let ids: Vec<String> = (0..1_000).map(|n| format!("10.0.{}.{}@{n}#{}", n % 7, n / 7, n * 7919)).collect();
        let members = Members::new(ids.iter().map(|id| Arc::from(id.as_str())).collect());
        for (index, id) in members.ids().iter().enumerate() {
            assert_eq!(members.index_of(id), Some(index));
            assert_eq!(members.index_of(&format!("{id} ")), None);
        }
        let twice = Members::in_order(arcs(&["b", "a", "b", "a", "c"]));
        assert_eq!(["a", "b", "c", "d", ""].map(|id| twice.index_of(id)), [Some(1), Some(0), Some(4), None, None]);
        assert!(twice.has_duplicates() && !members.has_duplicates());
        assert_eq!(Members::new(Vec::new()).index_of(""), None);
    }

    #[test]
    fn orders_as_utf16_whatever_characters_there_are() {
        let members = Members::new(arcs(&["\u{ffff}", "😀", "a", "é", "B"]));
        let order: Vec<&str> = members.ids().iter().map(|id| &**id).collect();
        assert_eq!(order, ["B", "a", "é", "😀", "\u{ffff}"]);
    }

    #[test]
    fn equal_lists_are_equal_and_others_are_not() {
        let members = Members::new(arcs(&["a", "b", "c"]));
        assert_eq!(members, Members::new(arcs(&["c", "b", "a"])));
        for other in [&["a", "b"][..], &["a", "b", "d"], &["a", "a", "b", "c"]] {
            assert_ne!(members, Members::new(arcs(other)));
        }
        assert_ne!(members, Members::in_order(arcs(&["b", "a", "c"])));
    }
}
