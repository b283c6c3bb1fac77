//! The messages of one broker, in memory: a log in order of arrival and, per queue, an index into it.
//!
//! A real broker keeps both in files, builds the index a moment after the answer to the sender, and deletes whole
//! files by age or when the disk fills. Kept: one running byte position for all topics (it is the look-up key of
//! send-back and of message ids, and never used twice), queue offsets from 0, store times that never go back along the
//! log, the decisions of a read in their exact order. Stronger here: a message can be read as soon as it is appended.
//! Left out: files, so everything is gone with the process; age limits. Bounds count records and their bytes; see
//! [`WhenFull`] for what happens at them.

use super::key_index::KeyIndex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// What a broker does with a new message when its memory is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Refuses it with code 14 (service not available), as a real broker does whose disk is full. Nothing is lost.
    #[default]
    Refuse,
    /// Drops the oldest messages of the broker, consumed or not; their queues' min offsets move up, as on a real
    /// broker that deletes old files.
    DropOldest,
}

/// How much a store may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of all records, as they are stored.
    pub(crate) bytes: usize,
    pub(crate) messages: usize,
    pub(crate) when_full: WhenFull,
}

/// Where the next message of a queue will lie. Valid until anything else is appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) queue_offset: i64,
    pub(crate) position: i64,
    pub(crate) store_time: i64,
    pub(crate) slot: u32,
}

#[derive(Debug)]
pub(super) struct LogEntry {
    position: i64,
    pub(super) store_time: i64,
    slot: u32,
    /// Empty once the record was given up before its turn.
    pub(super) record: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct QueueEntry {
    /// Sequence number in the log.
    seq: u64,
    pub(super) tags_code: i64,
}

#[derive(Debug)]
pub(super) struct Queue {
    topic: Arc<str>,
    pub(super) min_offset: i64,
    pub(super) entries: VecDeque<QueueEntry>,
}

impl Queue {
    pub(super) fn max_offset(&self) -> i64 {
        self.min_offset + self.entries.len() as i64
    }
}

/// Log and queues of one broker.
#[derive(Debug)]
pub(crate) struct MessageStore {
    limits: Limits,
    log: VecDeque<LogEntry>,
    /// Sequence number of the first log entry; entries are addressed by number so that queues find them in one step.
    base_seq: u64,
    next_position: i64,
    last_store_time: i64,
    bytes: usize,
    live: usize,
    /// Records that nobody can be waiting for (of deleted topics, delivered delay copies). A real broker still shows
    /// them by their id, so they stay until their room is needed.
    garbage: VecDeque<u64>,
    queues: Vec<Queue>,
    free_slots: Vec<u32>,
    by_topic: HashMap<Arc<str>, BTreeMap<i32, u32>>,
    keys: KeyIndex,
    pub(super) handed_out: u64,
}

impl MessageStore {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            log: VecDeque::new(),
            base_seq: 0,
            next_position: 0,
            last_store_time: i64::MIN,
            bytes: 0,
            live: 0,
            garbage: VecDeque::new(),
            queues: Vec::new(),
            free_slots: Vec::new(),
            by_topic: HashMap::new(),
            keys: KeyIndex::default(),
            handed_out: 0,
        }
    }

    /// Makes room for messages of `bytes` in all, by the policy of this store. All or nothing: `false` means that
    /// they must be refused and that nothing was dropped for them.
    #[must_use]
    pub(crate) fn admit(&mut self, bytes: usize, messages: usize) -> bool {
        if bytes > self.limits.bytes || messages > self.limits.messages {
            return false;
        }
        let fits =
            |store: &Self| store.bytes + bytes <= store.limits.bytes && store.live + messages <= store.limits.messages;
        while !fits(self) {
            if let Some(seq) = self.garbage.pop_front() {
                self.release(seq);
            } else if self.limits.when_full == WhenFull::DropOldest && !self.log.is_empty() {
                self.release(self.base_seq);
            } else {
                return false;
            }
        }
        true
    }

    /// The place of the next message of a queue, which is made if it does not exist yet.
    pub(crate) fn place(&mut self, topic: &str, queue_id: i32, now_millis: i64) -> Placement {
        let slot = self.open(topic, queue_id);
        Placement {
            queue_offset: self.queues[slot as usize].max_offset(),
            position: self.next_position,
            store_time: now_millis.max(self.last_store_time),
            slot,
        }
    }

    /// Appends the record made for `at`. The caller has asked [`admit`](Self::admit) before, or must get this message
    /// stored at any price (a delayed one that takes the place of its own copy).
    pub(crate) fn append<'k>(
        &mut self,
        at: Placement,
        record: Vec<u8>,
        tags_code: i64,
        keys: impl Iterator<Item = &'k str>,
    ) {
        debug_assert_eq!(at.position, self.next_position, "placed, then something else was appended");
        let seq = self.base_seq + self.log.len() as u64;
        self.next_position += record.len() as i64;
        self.last_store_time = at.store_time;
        self.bytes += record.len();
        self.live += 1;
        let queue = &mut self.queues[at.slot as usize];
        queue.entries.push_back(QueueEntry { seq, tags_code });
        for key in keys {
            self.keys.insert(&queue.topic, key, seq);
        }
        self.log.push_back(LogEntry {
            position: at.position,
            store_time: at.store_time,
            slot: at.slot,
            record: record.into_boxed_slice(),
        });
    }

    /// The record that starts exactly at `position`.
    pub(crate) fn at_position(&self, position: i64) -> Option<&[u8]> {
        self.seq_at(position).and_then(|seq| self.record(seq))
    }

    /// The record at an offset of a queue; empty when it is not there.
    pub(crate) fn record_in(&self, slot: u32, offset: i64) -> &[u8] {
        let queue = self.in_slot(slot);
        let at = usize::try_from(offset - queue.min_offset).ok();
        at.and_then(|at| queue.entries.get(at)).map_or(&[], |entry| &*self.entry(entry).record)
    }

    /// Gives up the record at `position` as soon as its room is needed.
    pub(crate) fn discard(&mut self, position: i64) {
        if let Some(seq) = self.seq_at(position) {
            self.garbage.push_back(seq);
        }
    }

    /// First stored offset and next offset of a queue; both 0 for a queue that was never looked at.
    pub(crate) fn bounds(&self, topic: &str, queue_id: i32) -> (i64, i64) {
        self.queue(topic, queue_id).map_or((0, 0), |queue| (queue.min_offset, queue.max_offset()))
    }

    /// The slot under which held pulls of a queue wait, if the queue exists.
    pub(crate) fn slot(&self, topic: &str, queue_id: i32) -> Option<u32> {
        self.by_topic.get(topic)?.get(&queue_id).copied()
    }

    /// Records that carry the key, newest first, until `take` says that it has enough. By hash: look at the key again.
    pub(crate) fn by_key(&self, topic: &str, key: &str, mut take: impl FnMut(i64, i64, &[u8]) -> bool) {
        for seq in self.keys.candidates(topic, key) {
            if seq < self.base_seq {
                break;
            }
            let entry = &self.log[(seq - self.base_seq) as usize];
            if !entry.record.is_empty() && !take(entry.position, entry.store_time, &entry.record) {
                break;
            }
        }
    }

    /// Deletes the queues of a topic and returns their slots, whose held pulls the caller must answer.
    pub(crate) fn delete_topic(&mut self, topic: &str) -> Vec<u32> {
        let slots: Vec<u32> = self.by_topic.remove(topic).unwrap_or_default().into_values().collect();
        for slot in &slots {
            let queue = &mut self.queues[*slot as usize];
            self.garbage.extend(queue.entries.drain(..).map(|entry| entry.seq));
            queue.min_offset = 0;
        }
        self.free_slots.extend(&slots);
        slots
    }

    /// Bytes of the records held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How full it is, from 0 to 1, by bytes.
    pub(crate) fn fullness(&self) -> f64 {
        self.bytes as f64 / self.limits.bytes.max(1) as f64
    }

    /// Number of messages given to pulls so far, each time counted.
    pub(crate) fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Number of messages taken so far.
    pub(crate) fn appended(&self) -> u64 {
        self.base_seq + self.log.len() as u64
    }

    /// Number of records held.
    pub(crate) fn messages(&self) -> usize {
        self.live
    }

    pub(super) fn in_slot(&self, slot: u32) -> &Queue {
        &self.queues[slot as usize]
    }

    /// What the log holds for an entry of a queue.
    pub(super) fn entry(&self, entry: &QueueEntry) -> &LogEntry {
        // Entries of queues go before those of the log do, so the number is in range.
        &self.log[(entry.seq - self.base_seq) as usize]
    }

    /// Bytes of the log from the start of a message on.
    pub(super) fn distance_to_end(&self, entry: &QueueEntry) -> i64 {
        self.next_position - self.entry(entry).position
    }

    /// The slot of a queue, which is made if it does not exist yet.
    pub(super) fn open(&mut self, topic: &str, queue_id: i32) -> u32 {
        if let Some(slot) = self.slot(topic, queue_id) {
            return slot;
        }
        let topic: Arc<str> = match self.by_topic.get_key_value(topic) {
            Some((name, _)) => name.clone(),
            None => topic.into(),
        };
        let queue = Queue { topic: topic.clone(), min_offset: 0, entries: VecDeque::new() };
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.queues[slot as usize] = queue;
                slot
            }
            None => {
                self.queues.push(queue);
                (self.queues.len() - 1) as u32
            }
        };
        self.by_topic.entry(topic).or_default().insert(queue_id, slot);
        slot
    }

    pub(super) fn queue(&self, topic: &str, queue_id: i32) -> Option<&Queue> {
        self.slot(topic, queue_id).map(|slot| self.in_slot(slot))
    }

    fn seq_at(&self, position: i64) -> Option<u64> {
        let at = self.log.partition_point(|entry| entry.position < position);
        (self.log.get(at)?.position == position).then_some(self.base_seq + at as u64)
    }

    fn record(&self, seq: u64) -> Option<&[u8]> {
        let entry = self.log.get(usize::try_from(seq.checked_sub(self.base_seq)?).ok()?)?;
        (!entry.record.is_empty()).then_some(&*entry.record)
    }

    /// Frees a record, then whatever at the head of its queue and of the log is free.
    fn release(&mut self, seq: u64) {
        let Some(at) = seq.checked_sub(self.base_seq).map(|at| at as usize) else { return };
        let Some(entry) = self.log.get_mut(at) else { return };
        if entry.record.is_empty() {
            return;
        }
        self.bytes -= entry.record.len();
        self.live -= 1;
        entry.record = Box::default();
        let slot = entry.slot;

        // The slot may have a new queue by now; its entries are younger and alive, so nothing of it is taken.
        let queue = &mut self.queues[slot as usize];
        while let Some(first) = queue.entries.front() {
            if !self.log[(first.seq - self.base_seq) as usize].record.is_empty() {
                break;
            }
            queue.entries.pop_front();
            queue.min_offset += 1;
        }
        // The oldest record is the first of its queue, so a free one at the head is in no queue any more.
        while self.log.front().is_some_and(|entry| entry.record.is_empty()) {
            self.log.pop_front();
            self.base_seq += 1;
        }
        self.keys.forget_below(self.base_seq);
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
