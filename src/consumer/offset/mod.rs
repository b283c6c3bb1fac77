//! Progress of the queues held: where it is read from and stored to.
//!
//! What to store is derived from the queues; nothing of it is kept here. [`OffsetStore`] is the one place that knows
//! whether brokers keep it (clustering) or a file (broadcasting).

mod brokers;
mod local_file;

pub(crate) use brokers::BrokerOffsets;
pub(crate) use local_file::LocalFile;

use super::held::{HeldQueue, QueuePhase};
use crate::api::StoredOffset;
use crate::error::Result;
use crate::message::MessageQueue;
use crate::time::Deadline;
use std::sync::Arc;
use std::time::Duration;

/// Where a consumer's progress is kept.
pub(crate) enum OffsetStore {
    Brokers(BrokerOffsets),
    LocalFile(LocalFile),
}

impl OffsetStore {
    /// What is stored of a queue; `done` runs on a call thread or here, exactly once.
    pub(crate) fn read(
        &self,
        queue: &MessageQueue,
        timeout: Duration,
        done: impl FnOnce(Result<StoredOffset>) + Send + 'static,
    ) {
        match self {
            Self::Brokers(brokers) => brokers.read(queue, timeout, done),
            Self::LocalFile(file) => done(Ok(file.read(queue).map_or(StoredOffset::Absent, StoredOffset::Value))),
        }
    }

    /// Stores the offsets of these queues, except those that are stored already, and waits until that is done. The
    /// caller sees to it that it runs once at a time, so that an older offset cannot overtake a newer one.
    pub(crate) fn store(&self, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        match self {
            Self::Brokers(brokers) => brokers.store(queues, deadline),
            Self::LocalFile(file) => file.store(queues),
        }
    }

    /// Whether pulls carry the offset to the broker.
    pub(crate) fn travels_with_pulls(&self) -> bool {
        matches!(self, Self::Brokers(_))
    }

    /// The file, when it is one.
    pub(crate) fn file(&self) -> Option<&LocalFile> {
        match self {
            Self::Brokers(_) => None,
            Self::LocalFile(file) => Some(file),
        }
    }
}

/// How a round of storing ended.
#[derive(Default)]
pub(crate) struct Stored {
    /// Queues whose offset is at the broker now, sent or found there already.
    pub(crate) stored: Vec<Arc<HeldQueue>>,
    /// Queues whose offset could not be stored.
    pub(crate) failed: Vec<Arc<HeldQueue>>,
}

/// What to store of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// No offset is known yet, or the ownership is over and the next one answers for the queue.
    Nothing,
    /// The broker has it already.
    Stored,
    Send(i64),
}

/// Decides what to store of a queue. Pure.
pub(crate) fn due(held: &HeldQueue) -> Due {
    if held.phase() == QueuePhase::Released {
        return Due::Nothing;
    }
    match held.commit_offset() {
        None => Due::Nothing,
        Some(offset) if held.with_progress(|progress| progress.stored == Some(offset) && !progress.is_doubtful) => {
            Due::Stored
        }
        Some(offset) => Due::Send(offset),
    }
}

/// The broker has stored this offset.
pub(crate) fn confirm(held: &HeldQueue, offset: i64) {
    if held.phase() != QueuePhase::Released {
        held.with_progress(|progress| {
            progress.stored = Some(offset);
            progress.is_doubtful = false;
        });
    }
}

/// The broker was out of reach. One that died may have lost the offsets it had not written yet, and a pull carries no
/// offset 0: what it confirmed is sent once more.
pub(crate) fn doubt(held: &HeldQueue) {
    held.with_progress(|progress| progress.is_doubtful = true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::held::HeldTable;
    use crate::message::MessageQueue;

    #[test]
    fn only_a_living_ownership_has_something_to_store() {
        let table = HeldTable::new("g".into());
        let held = table.acquire(&MessageQueue::new("t", "b", 0)).unwrap();
        assert_eq!(due(&held), Due::Nothing);
        held.advance(QueuePhase::Wanted, QueuePhase::Locating);
        assert!(held.begin(5, None));
        assert_eq!(due(&held), Due::Send(5));
        confirm(&held, 5);
        assert_eq!(due(&held), Due::Stored);
        held.take_in([(5, 1)].into_iter(), 6);
        held.pass_over(9);
        assert_eq!(due(&held), Due::Stored);
        doubt(&held);
        assert_eq!(due(&held), Due::Send(5));
        let next = table.restart(&held, 2).unwrap();
        assert_eq!(due(&held), Due::Nothing);
        assert_eq!(due(&next), Due::Send(2));
    }
}
