//! What is stored, and when.

use super::buffer::NotCommitted;
use super::core::Core;
use crate::consumer::held::HeldQueue;
use crate::consumer::member::STORE_TIME;
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use crate::time::Deadline;
use std::sync::Arc;

impl Core {
    /// What the auto-commit job does.
    pub(super) fn commit_handled(&self) {
        let ended = self.buffer.find_ended();
        if ended > 0 {
            log::warn!(
                "group '{}': a thread ended with {ended} polled messages, which do not count as handled and hold the \
                 offset back; let each thread end with a commit",
                self.member.group
            );
        }
        let held = self.member.held.all();
        self.buffer.commit(&held);
        self.member.store(&held, Deadline::after(STORE_TIME));
    }

    /// Stores everything that is handled, and waits for it.
    pub(super) fn commit(&self, queues: &[Arc<HeldQueue>]) -> Result<()> {
        self.buffer.commit(queues);
        let stored = self.member.store(queues, Deadline::after(STORE_TIME));
        if stored.failed.is_empty() {
            return Ok(());
        }
        let mut failed: Vec<_> = stored.failed.iter().map(|held| held.queue.clone()).collect();
        failed.sort();
        let text = format!(
            "the offsets of {failed:?} could not be stored for group '{}' yet; they are tried again",
            self.member.group
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
