//! What is stored, and when.

use super::buffer::NotCommitted;
use super::core::Core;
use crate::consumer::held::HeldQueue;
use crate::consumer::offset::Stored;
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use crate::time::Deadline;
use std::sync::Arc;

impl Core {
    /// Stores the committed offsets of these queues, except those the broker has already.
    pub(super) fn store_committed(&self, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        let _one_at_a_time = self.storing.lock();
        self.store_locked(queues, deadline)
    }

    /// As [`store_committed`](Self::store_committed), by whoever has the lock.
    pub(super) fn store_locked(&self, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        // Without a commit an ownership says nothing about the group, its start offset neither.
        let committed: Vec<_> = queues.iter().filter(|held| self.buffer.is_committed(held)).cloned().collect();
        self.store.store(&committed, deadline)
    }

    /// What the auto-commit job does.
    pub(super) fn commit_handled(&self) {
        let ended = self.buffer.find_ended();
        if ended > 0 {
            log::warn!(
                "group '{}': a thread ended with {ended} polled messages, which do not count as handled and hold the \
                 offset back; let each thread end with a commit",
                self.group
            );
        }
        let held = self.held.all();
        self.buffer.commit(&held);
        self.store_committed(&held, Deadline::after(super::STORE_TIME));
    }

    /// Stores everything that is handled, and waits for it.
    pub(super) fn commit(&self, queues: &[Arc<HeldQueue>]) -> Result<()> {
        self.buffer.commit(queues);
        let stored = self.store_committed(queues, Deadline::after(super::STORE_TIME));
        if stored.failed.is_empty() {
            return Ok(());
        }
        let mut failed: Vec<_> = stored.failed.iter().map(|held| held.queue.clone()).collect();
        failed.sort();
        let text = format!(
            "the offsets of {failed:?} could not be stored for group '{}' yet; they are tried again",
            self.group
        );
        Err(Error::new(ErrorKind::Timeout, text))
    }

    pub(super) fn commit_offsets(&self, offsets: &[(MessageQueue, i64)]) -> Result<()> {
        let mut queues = Vec::new();
        for (queue, offset) in offsets {
            let held = self.owned(queue)?;
            self.buffer.settle_below(queue, *offset).map_err(|why| match why {
                NotCommitted::NotHeld => Error::new(
                    ErrorKind::State,
                    format!("the start offset of {queue} is not known yet, so nothing of it can be committed"),
                ),
                NotCommitted::Beyond(position) => Error::new(
                    ErrorKind::Config,
                    format!("offset {offset} of {queue} is above its position {position}: nothing of that was polled"),
                ),
            })?;
            queues.push(held);
        }
        self.commit(&queues)
    }
}
