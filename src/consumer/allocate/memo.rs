//! What a strategy has worked out, found again by the identity of the lists it was worked out for.
//!
//! Lists are shared and never change, so the same object means the same content, and a look-up compares addresses. A
//! `Weak` beside each entry keeps the address from being used again while the entry is there, and does not keep the
//! list itself alive.

use super::Members;
use crate::error::Result;
use crate::message::MessageQueue;
use crate::sync::{Mutex, Rank};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Weak};

/// Values for lists of queues.
pub(super) struct PerQueues<T> {
    entries: HashMap<usize, (Weak<[MessageQueue]>, T), BuildHasherDefault<AddressHasher>>,
    /// Entries of lists that are gone are looked for when there are this many.
    prune_at: usize,
}

/// Fewer entries than this are never worth a look for dead ones.
const PRUNE_FROM: usize = 64;

impl<T> Default for PerQueues<T> {
    fn default() -> Self {
        Self { entries: HashMap::default(), prune_at: PRUNE_FROM }
    }
}

impl<T> PerQueues<T> {
    fn key(queues: &Arc<[MessageQueue]>) -> usize {
        Arc::as_ptr(queues).cast::<()>() as usize
    }

    #[inline]
    pub(super) fn get(&self, queues: &Arc<[MessageQueue]>) -> Option<&T> {
        self.entries.get(&Self::key(queues)).map(|(_, value)| value)
    }

    pub(super) fn insert(&mut self, queues: &Arc<[MessageQueue]>, value: T) {
        if self.entries.len() >= self.prune_at {
            self.entries.retain(|_, (list, _)| list.strong_count() > 0);
            self.prune_at = (self.entries.len() * 2).max(PRUNE_FROM);
        }
        self.entries.insert(Self::key(queues), (Arc::downgrade(queues), value));
    }
}

/// Values for a few lists of members, the one used last in front: a strategy object may serve several groups, and the
/// topics of one group may for a moment see different members.
pub(super) struct PerMembers<T> {
    entries: Vec<(Arc<Members>, T)>,
}

const MEMBERSHIPS: usize = 4;

impl<T> Default for PerMembers<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T> PerMembers<T> {
    /// The value for these members, as an object or, failing that, by content.
    #[inline]
    pub(super) fn get(&mut self, members: &Arc<Members>) -> Option<&mut T> {
        if self.entries.first().is_none_or(|(known, _)| !Arc::ptr_eq(known, members)) {
            let at = self.entries.iter().position(|(known, _)| Arc::ptr_eq(known, members) || known == members)?;
            self.entries[..=at].rotate_right(1);
            self.entries[0].0 = members.clone();
        }
        self.entries.first_mut().map(|(_, value)| value)
    }

    /// The value for the members used last, whoever they were.
    pub(super) fn latest(&self) -> Option<&T> {
        self.entries.first().map(|(_, value)| value)
    }

    /// The value for these members, made if there is none; the one longest unused makes room.
    pub(super) fn get_or_insert(&mut self, members: &Arc<Members>, make: impl FnOnce() -> T) -> &mut T {
        if self.get(members).is_none() {
            self.entries.truncate(MEMBERSHIPS - 1);
            self.entries.insert(0, (members.clone(), make()));
        }
        &mut self.entries[0].1
    }
}

/// Values for a list of queues under a list of members, to be shared between threads.
pub(super) struct Memo<T>(Mutex<PerMembers<PerQueues<Arc<T>>>>);

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Mutex::new(Rank::Leaf, PerMembers::default()))
    }
}

impl<T> Memo<T> {
    /// The value, made if there is none. Two threads at once may both make it; no lock is held meanwhile, so `make` may
    /// be code of the user.
    pub(super) fn get_or_try(
        &self,
        queues: &Arc<[MessageQueue]>,
        members: &Arc<Members>,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let known = self.0.lock().get(members).and_then(|lists| lists.get(queues).cloned());
        if let Some(value) = known {
            return Ok(value);
        }
        let value = Arc::new(make()?);
        self.0.lock().get_or_insert(members, PerQueues::default).insert(queues, value.clone());
        Ok(value)
    }
}

/// Addresses are multiples of eight and close together; one product spreads them.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(count: i32) -> Arc<[MessageQueue]> {
        (0..count).map(|id| MessageQueue::new("T", "b", id)).collect()
    }

    fn members(ids: &[&str]) -> Arc<Members> {
        Arc::new(Members::new(ids.iter().map(|id| Arc::from(*id)).collect()))
    }

    #[test]
    fn makes_a_value_once_for_the_same_lists() {
        let memo = Memo::default();
        let (queues, one, two) = (queues(3), members(&["a"]), members(&["a", "b"]));
        let get = |members: &Arc<Members>, value: i32| *memo.get_or_try(&queues, members, || Ok(value)).unwrap();
        assert_eq!([get(&one, 1), get(&one, 2), get(&two, 3), get(&one, 4), get(&two, 5)], [1, 1, 3, 1, 3]);
        assert_eq!(get(&members(&["a"]), 6), 1, "equal members in another object");
        let others: Vec<_> = (0..MEMBERSHIPS).map(|n| members(&[&n.to_string()])).collect();
        others.iter().for_each(|members| assert_eq!(get(members, 7), 7));
        assert_eq!(get(&one, 8), 8, "the membership longest unused made room");
    }

    #[test]
    fn forgets_lists_that_are_gone() {
        let mut lists = PerQueues::default();
        let kept: Vec<_> = (0..10).map(queues).collect();
        kept.iter().for_each(|list| lists.insert(list, list.len()));
        for n in 0..10 * PRUNE_FROM {
            lists.insert(&queues(1), n);
        }
        assert!(lists.entries.len() <= PRUNE_FROM + 1);
        assert!(kept.iter().all(|list| lists.get(list) == Some(&list.len())));
        assert_eq!(lists.get(&queues(1)), None);
    }
}
