//! The part of a push consumer that hands messages to a listener, as the rest of it sees it.
//!
//! Pulling, membership, the stop and the tools know this seam only, so that consuming in parallel and in order are two
//! services that can be exchanged.

use crate::consumer::held::HeldQueue;
use crate::message::MessageExt;
use crate::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) trait ConsumeService: Send + Sync {
    /// Takes messages that were entered into the queue's process queue. Must not wait.
    fn submit(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>);
    /// Whether the consumer as a whole has room; a queue that caches nothing is always pulled, so that none starves.
    fn has_room(&self) -> bool;
    /// An ownership ended: what it cached and nobody will finish, `bytes` of it, no longer counts.
    fn forget(&self, held: &HeldQueue, bytes: u64);
    fn counts(&self) -> Counts;
    /// Ends the workers, after all queues were given up; `false` when a listener had not returned by the deadline. Its
    /// thread ends when it does.
    fn join(&self, deadline: Deadline) -> bool;
}

/// How many messages went which way since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) consumed: u64,
    pub(crate) failed: u64,
}

/// The same while it is counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) consumed: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        Counts { consumed: self.consumed.load(Ordering::Relaxed), failed: self.failed.load(Ordering::Relaxed) }
    }
}

/// Bytes cached by the whole consumer.
pub(crate) struct Budget {
    used: AtomicU64,
    limit: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit }
    }

    pub(crate) fn take(&self, messages: &[MessageExt]) {
        self.used.fetch_add(messages.iter().map(size_of).sum(), Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used.saturating_sub(bytes)));
    }

    pub(crate) fn has_room(&self) -> bool {
        self.used.load(Ordering::Relaxed) <= self.limit
    }
}

/// What a message counts for in flow control.
pub(crate) fn size_of(message: &MessageExt) -> u64 {
    message.body().len() as u64
}
