//! Offsets of consumer groups: committed ones, ones pulled last, and resets that wait for their pull.
//!
//! Kept from a real broker: offsets may go backwards; queue ids are not checked against the topic; a pending reset
//! shadows the committed offset until a pull takes it. Left out: the file. The number of entries is bounded, because
//! queue ids come unchecked from clients.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

type ByQueue = BTreeMap<i32, i64>;
type ByTopic = BTreeMap<Arc<str>, ByQueue>;

/// The table takes no further entries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableFull;

/// Offsets of all groups on one broker.
#[derive(Debug)]
pub(crate) struct OffsetTable {
    committed: HashMap<Arc<str>, ByTopic>,
    /// Where the group's last pull ended; only shown in statistics.
    pulled: HashMap<Arc<str>, ByTopic>,
    resets: HashMap<Arc<str>, ByTopic>,
    entries: usize,
    most: usize,
}

impl OffsetTable {
    pub(crate) fn new(most: usize) -> Self {
        Self { committed: HashMap::new(), pulled: HashMap::new(), resets: HashMap::new(), entries: 0, most }
    }

    pub(crate) fn committed(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        look_up(&self.committed, group, topic, queue_id)
    }

    pub(crate) fn pulled(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        look_up(&self.pulled, group, topic, queue_id)
    }

    pub(crate) fn pending_reset(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        look_up(&self.resets, group, topic, queue_id)
    }

    /// Stores a committed offset as it is, also when it is lower than before.
    pub(crate) fn commit(&mut self, group: &str, topic: &str, queue_id: i32, offset: i64) -> Result<(), TableFull> {
        store(&mut self.committed, (&mut self.entries, self.most), group, topic, queue_id, offset)
    }

    /// Notes where a pull ended. A full table only makes the statistics poorer, so that is not an error.
    pub(crate) fn note_pull(&mut self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        let _ = store(&mut self.pulled, (&mut self.entries, self.most), group, topic, queue_id, offset);
    }

    /// Sets the committed offset and leaves a reset for the next pull of the queue.
    pub(crate) fn reset(&mut self, group: &str, topic: &str, queue_id: i32, offset: i64) -> Result<(), TableFull> {
        store(&mut self.resets, (&mut self.entries, self.most), group, topic, queue_id, offset)?;
        self.commit(group, topic, queue_id, offset)
    }

    /// Takes the reset that waits for a pull of this queue.
    pub(crate) fn take_reset(&mut self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let taken = self.resets.get_mut(group)?.get_mut(topic)?.remove(&queue_id);
        self.entries -= usize::from(taken.is_some());
        taken
    }

    /// Topics for which the group has committed offsets, in order.
    pub(crate) fn topics_of(&self, group: &str) -> Vec<Arc<str>> {
        self.committed.get(group).map(|topics| topics.keys().cloned().collect()).unwrap_or_default()
    }

    /// Groups that have committed offsets for the topic, in order.
    pub(crate) fn groups_of(&self, topic: &str) -> Vec<Arc<str>> {
        let mut groups: Vec<_> = self
            .committed
            .iter()
            .filter(|(_, topics)| topics.contains_key(topic))
            .map(|(group, _)| group.clone())
            .collect();
        groups.sort_unstable();
        groups
    }

    pub(crate) fn remove_topic(&mut self, topic: &str) {
        for table in [&mut self.committed, &mut self.pulled, &mut self.resets] {
            table.retain(|_, topics| {
                self.entries -= topics.remove(topic).map_or(0, |queues| queues.len());
                !topics.is_empty()
            });
        }
    }

    pub(crate) fn remove_group(&mut self, group: &str) {
        for table in [&mut self.committed, &mut self.pulled, &mut self.resets] {
            self.entries -= table.remove(group).map_or(0, |topics| topics.values().map(BTreeMap::len).sum());
        }
    }

    /// Takes over what another table has committed: all queues of each of its groups and topics, as they are there.
    pub(crate) fn adopt(&mut self, other: &Self) {
        for (group, topics) in &other.committed {
            let own = self.committed.entry(group.clone()).or_default();
            for (topic, queues) in topics {
                let before = own.insert(topic.clone(), queues.clone()).map_or(0, |queues| queues.len());
                self.entries = self.entries + queues.len() - before;
            }
        }
    }

    /// Forgets what a real broker keeps in memory only.
    pub(crate) fn restart(&mut self) {
        for table in [&mut self.pulled, &mut self.resets] {
            let gone: usize = table.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum();
            self.entries -= gone;
            table.clear();
        }
    }
}

fn look_up(table: &HashMap<Arc<str>, ByTopic>, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
    table.get(group)?.get(topic)?.get(&queue_id).copied()
}

fn store(
    table: &mut HashMap<Arc<str>, ByTopic>,
    (entries, most): (&mut usize, usize),
    group: &str,
    topic: &str,
    queue_id: i32,
    offset: i64,
) -> Result<(), TableFull> {
    if let Some(slot) =
        table.get_mut(group).and_then(|topics| topics.get_mut(topic)).and_then(|queues| queues.get_mut(&queue_id))
    {
        *slot = offset;
        return Ok(());
    }
    if *entries >= most {
        return Err(TableFull);
    }
    *entries += 1;
    table.entry(group.into()).or_default().entry(topic.into()).or_default().insert(queue_id, offset);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_shadows_until_it_is_taken_once() {
        let mut table = OffsetTable::new(10);
        table.commit("G", "T", 0, 7).unwrap();
        table.reset("G", "T", 0, 3).unwrap();
        assert_eq!(table.pending_reset("G", "T", 0), Some(3));
        assert_eq!(table.committed("G", "T", 0), Some(3));
        assert_eq!(table.take_reset("G", "T", 0), Some(3));
        assert_eq!(table.take_reset("G", "T", 0), None);
        assert_eq!(table.committed("G", "T", 0), Some(3));
    }

    #[test]
    fn takes_a_bounded_number_of_entries_and_gives_them_back() {
        let mut table = OffsetTable::new(3);
        table.commit("G", "T", 0, 1).unwrap();
        table.commit("G", "U", 0, 1).unwrap();
        table.note_pull("H", "T", 0, 9);
        assert_eq!(table.commit("G", "T", 1, 1), Err(TableFull));
        table.commit("G", "T", 0, 0).unwrap();
        assert_eq!(table.committed("G", "T", 0), Some(0));
        assert_eq!(table.groups_of("T"), ["G".into()]);
        table.remove_topic("T");
        assert_eq!(table.topics_of("G"), ["U".into()]);
        assert_eq!(table.entries, 1);
        table.reset("G", "U", 0, 1).unwrap();
        table.restart();
        assert_eq!(table.committed("G", "U", 0), Some(1));
        assert_eq!(table.pending_reset("G", "U", 0), None);
        table.remove_group("G");
        assert_eq!(table.entries, 0);
    }
}
