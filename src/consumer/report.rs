//! What a stop of a consumer reports.

use crate::message::MessageQueue;
use std::collections::BTreeMap;

/// What a stop left behind.
#[derive(Debug, Clone, Default)]
pub struct ShutdownReport {
    pub(crate) consumed: u64,
    pub(crate) committed: BTreeMap<MessageQueue, i64>,
    pub(crate) unfinished: usize,
    pub(crate) uncommitted: usize,
    pub(crate) not_stored: Vec<MessageQueue>,
    pub(crate) threads_ended: bool,
}

impl ShutdownReport {
    /// Messages handled successfully since the start.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The offset that the broker confirmed for each queue that was held.
    pub fn committed(&self) -> &BTreeMap<MessageQueue, i64> {
        &self.committed
    }

    /// Messages that were with a listener, or waited to be sent back, when the time was up.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Messages that were handled and will come again all the same: the offset could not pass an unfinished one before
    /// them, or could not be stored.
    pub fn uncommitted(&self) -> usize {
        self.uncommitted
    }

    /// Queues whose offset could not be stored.
    pub fn not_stored(&self) -> &[MessageQueue] {
        &self.not_stored
    }

    /// Whether everything that was handed out is finished and stored, and every thread has ended.
    pub fn is_clean(&self) -> bool {
        self.unfinished == 0 && self.uncommitted == 0 && self.not_stored.is_empty() && self.threads_ended
    }
}
