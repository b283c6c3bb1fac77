//! Reading from the queues of a [`MessageStore`].
//!
//! Kept from a real broker (`DefaultMessageStore.getMessage`): the decisions and their order, and what they tell the
//! reader to ask for next. Everything counts as being in memory: 32 messages or 256 KiB an answer.

use super::filter::{Filter, READ_BUDGET};
use super::store::MessageStore;

/// Most index entries that one read looks at.
pub(crate) const MAX_SCANNED: usize = 800;
/// Most messages of one answer, whatever was asked for.
pub(crate) const MAX_ANSWER_MESSAGES: usize = 32;
/// Bytes after which an answer takes no further message; the first one always goes out.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// How a read ended; the names are those that go into the remark of a pull answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadStatus {
    Found,
    NoMatchedMessage,
    MessageWasRemoving,
    OffsetOverflowOne,
    OffsetOverflowBadly,
    OffsetTooSmall,
    NoMessageInQueue,
    OffsetReset,
}

impl ReadStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Found => "FOUND",
            Self::NoMatchedMessage => "NO_MATCHED_MESSAGE",
            Self::MessageWasRemoving => "MESSAGE_WAS_REMOVING",
            Self::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
            Self::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
            Self::OffsetTooSmall => "OFFSET_TOO_SMALL",
            Self::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
            Self::OffsetReset => "OFFSET_RESET",
        }
    }
}

/// What a read found.
#[derive(Debug)]
pub(crate) struct ReadAnswer {
    pub(crate) status: ReadStatus,
    pub(crate) next_offset: i64,
    pub(crate) min_offset: i64,
    pub(crate) max_offset: i64,
    /// Bytes of the log behind the last message looked at: how far its reader lags.
    pub(crate) behind: i64,
    /// Work that went into conditions.
    pub(crate) spent: usize,
    /// The records one behind the other, each as it was stored.
    pub(crate) records: Vec<u8>,
}

impl ReadAnswer {
    /// Whether the next offset corrects the one that was asked for.
    pub(crate) fn is_corrected(&self) -> bool {
        use ReadStatus::{NoMessageInQueue, OffsetOverflowBadly, OffsetTooSmall};
        matches!(self.status, NoMessageInQueue | OffsetOverflowBadly | OffsetTooSmall)
    }
}

/// Which end of a run of equal times, or of a gap, a search by time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boundary {
    Lower,
    Upper,
}

impl MessageStore {
    /// Reads from a queue that lies within its topic's range; a queue without messages is made by looking at it.
    pub(crate) fn read(
        &mut self,
        topic: &str,
        queue_id: i32,
        offset: i64,
        max_messages: i32,
        filter: &Filter,
    ) -> ReadAnswer {
        let slot = self.open(topic, queue_id);
        let queue = self.in_slot(slot);
        let (min, max) = (queue.min_offset, queue.max_offset());
        let answer = |status, next_offset| ReadAnswer {
            status,
            next_offset,
            min_offset: min,
            max_offset: max,
            behind: 0,
            spent: 0,
            records: Vec::new(),
        };
        if max == 0 {
            return answer(ReadStatus::NoMessageInQueue, 0);
        }
        if offset < min {
            return answer(ReadStatus::OffsetTooSmall, min);
        }
        if offset == max {
            return answer(ReadStatus::OffsetOverflowOne, offset);
        }
        if offset > max {
            return answer(ReadStatus::OffsetOverflowBadly, max);
        }

        // Below max, so the distance fits the length of the index.
        let start = (offset - min) as usize;
        let wanted = usize::try_from(max_messages).unwrap_or(0);
        // A real broker scans as far as the count asked for; bounded here, because the lock is held meanwhile.
        let scan = wanted.clamp(MAX_SCANNED, 10 * MAX_SCANNED);
        let mut taken: Vec<&[u8]> = Vec::new();
        let (mut bytes, mut scanned, mut matched, mut spent) = (0, 0, false, 0);
        let mut behind = 0;
        for entry in queue.entries.iter().skip(start).take(scan) {
            if spent > READ_BUDGET || (!taken.is_empty() && taken.len() >= wanted.min(MAX_ANSWER_MESSAGES)) {
                break;
            }
            let record = &self.entry(entry).record;
            // A record that was given up fails no condition: it is not there to be asked.
            if filter.passes_code(entry.tags_code) && (record.is_empty() || filter.passes_record(record, &mut spent)) {
                matched = true;
                if !taken.is_empty() && bytes + record.len() > MAX_ANSWER_BYTES {
                    break;
                }
                if !record.is_empty() {
                    bytes += record.len();
                    taken.push(record);
                }
            }
            scanned += 1;
            behind = self.distance_to_end(entry);
        }
        let status = match (taken.is_empty(), matched) {
            (false, _) => ReadStatus::Found,
            (true, true) => ReadStatus::MessageWasRemoving,
            (true, false) => ReadStatus::NoMatchedMessage,
        };
        let mut records = Vec::with_capacity(bytes);
        taken.iter().for_each(|record| records.extend_from_slice(record));
        let count = taken.len() as u64;
        let read = ReadAnswer { records, behind, spent, ..answer(status, offset + scanned) };
        self.handed_out += count;
        read
    }

    /// When the first message of a queue was stored.
    pub(crate) fn earliest_time(&self, topic: &str, queue_id: i32) -> Option<i64> {
        let queue = self.queue(topic, queue_id)?;
        queue.entries.front().map(|entry| self.entry(entry).store_time)
    }

    /// When the message at `offset` was stored.
    pub(crate) fn time_at(&self, topic: &str, queue_id: i32, offset: i64) -> Option<i64> {
        let queue = self.queue(topic, queue_id)?;
        let at = usize::try_from(offset.checked_sub(queue.min_offset)?).ok()?;
        queue.entries.get(at).map(|entry| self.entry(entry).store_time)
    }

    /// The offset that belongs to a time; see the table in the sheet on broker behaviour, section 6.4.
    pub(crate) fn offset_by_time(&self, topic: &str, queue_id: i32, millis: i64, boundary: Boundary) -> i64 {
        let Some(queue) = self.queue(topic, queue_id) else { return 0 };
        let offset = match boundary {
            Boundary::Lower => queue.entries.partition_point(|entry| self.entry(entry).store_time < millis),
            Boundary::Upper => {
                queue.entries.partition_point(|entry| self.entry(entry).store_time <= millis).saturating_sub(1)
            }
        };
        queue.min_offset + offset as i64
    }
}
