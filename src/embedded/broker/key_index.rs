//! Finds messages by topic and key: a hash table whose chains run from the newest message to older ones.
//!
//! The shape is that of a real broker's index files: entries in order of arrival, each with a link to the entry before
//! it in the same slot. So adding takes no allocation of its own, and forgetting the oldest entries only moves a
//! bound: a chain ends where it leaves the entries that are still there. Left out: the limit of one index file, and
//! the time range, which the caller checks on the message itself.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

const FIRST_SLOTS: usize = 1024;
/// No entry; entries are numbered from 1.
const NONE: u64 = 0;

#[derive(Debug)]
struct Entry {
    hash: u64,
    /// Number of the next older entry of the slot.
    older: u64,
    /// Sequence number of the message in the log.
    seq: u64,
}

/// Index of keys; see the head of this file.
#[derive(Debug, Default)]
pub(crate) struct KeyIndex {
    hasher: RandomState,
    /// Number of the newest entry, per slot. The length is a power of two, or 0 while nothing was added.
    slots: Vec<u64>,
    entries: VecDeque<Entry>,
    /// How many entries were forgotten; the first one still there has this number plus 1.
    forgotten: u64,
}

impl KeyIndex {
    pub(crate) fn insert(&mut self, topic: &str, key: &str, seq: u64) {
        if self.entries.len() >= self.slots.len() {
            self.grow();
        }
        let hash = self.hash(topic, key);
        self.link(hash, seq);
    }

    /// Messages whose key has the same hash, newest first.
    pub(crate) fn candidates(&self, topic: &str, key: &str) -> impl Iterator<Item = u64> {
        let hash = self.hash(topic, key);
        let mut number = self.slots.get(self.slot(hash)).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            loop {
                let entry = self.entry(number)?;
                number = entry.older;
                if entry.hash == hash {
                    return Some(entry.seq);
                }
            }
        })
    }

    /// Forgets the messages before `seq`.
    pub(crate) fn forget_below(&mut self, seq: u64) {
        while self.entries.front().is_some_and(|entry| entry.seq < seq) {
            self.entries.pop_front();
            self.forgotten += 1;
        }
    }

    fn hash(&self, topic: &str, key: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(topic.as_bytes());
        hasher.write_u8(b'#');
        hasher.write(key.as_bytes());
        hasher.finish()
    }

    fn slot(&self, hash: u64) -> usize {
        hash as usize & self.slots.len().wrapping_sub(1)
    }

    fn entry(&self, number: u64) -> Option<&Entry> {
        let at = number.checked_sub(self.forgotten + 1)?;
        self.entries.get(usize::try_from(at).ok()?)
    }

    fn link(&mut self, hash: u64, seq: u64) {
        let slot = self.slot(hash);
        let number = self.forgotten + self.entries.len() as u64 + 1;
        let older = std::mem::replace(&mut self.slots[slot], number);
        self.entries.push_back(Entry { hash, older, seq });
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(FIRST_SLOTS);
        self.slots = vec![NONE; slots];
        for entry in std::mem::take(&mut self.entries) {
            self.link(entry.hash, entry.seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(index: &KeyIndex, topic: &str, key: &str) -> Vec<u64> {
        index.candidates(topic, key).collect()
    }

    #[test]
    fn finds_the_newest_first_and_forgets_the_oldest() {
        let mut index = KeyIndex::default();
        assert!(found(&index, "T", "k").is_empty());
        for seq in 0..5000 {
            index.insert("T", "same", seq);
            index.insert("T", &format!("own-{seq}"), seq);
        }
        assert_eq!(found(&index, "T", "own-4321"), [4321]);
        assert_eq!(found(&index, "T", "same").len(), 5000);
        assert_eq!(found(&index, "T", "same")[..2], [4999, 4998]);
        assert!(found(&index, "U", "same").is_empty());
        index.forget_below(4998);
        assert_eq!(found(&index, "T", "same"), [4999, 4998]);
        assert!(found(&index, "T", "own-4321").is_empty());
        for seq in 5000..30_000 {
            index.insert("T", "more", seq);
        }
        assert_eq!(found(&index, "T", "same"), [4999, 4998]);
    }
}
