//! One queue that a consumer holds, as its user sees it.

use super::held::{HeldQueue, Progress, QueuePhase};
use super::order::seat::QueueLock;
use crate::message::MessageQueue;
use std::time::{Duration, Instant};

/// One queue that a consumer holds, as it stood when it was asked for.
#[derive(Debug, Clone)]
pub struct QueueState {
    queue: MessageQueue,
    epoch: u64,
    phase: QueuePhase,
    held_for: Duration,
    next_offset: i64,
    commit_offset: Option<i64>,
    stored_offset: Option<i64>,
    cached_messages: usize,
    cached_bytes: u64,
    since_pull: Option<Duration>,
    since_progress: Option<Duration>,
    is_suspended: bool,
    standing_still: Option<String>,
    lock: Option<QueueLock>,
    since_lock: Option<Duration>,
}

impl QueueState {
    /// The queue.
    pub fn queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// The number of this ownership; each one of a consumer has another.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Where the ownership stands.
    pub fn phase(&self) -> QueuePhase {
        self.phase
    }

    /// How long the queue has been ours.
    pub fn held_for(&self) -> Duration {
        self.held_for
    }

    /// The offset that the next pull asks for.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The lowest offset that is not finished; `None` while the start is not known.
    pub fn commit_offset(&self) -> Option<i64> {
        self.commit_offset
    }

    /// The last offset that the broker confirmed to have stored for us.
    pub fn committed_offset(&self) -> Option<i64> {
        self.stored_offset
    }

    /// Messages pulled and not finished.
    pub fn cached_messages(&self) -> usize {
        self.cached_messages
    }

    /// Bytes of their bodies.
    pub fn cached_bytes(&self) -> u64 {
        self.cached_bytes
    }

    /// Time since the last pull was sent.
    pub fn since_pull(&self) -> Option<Duration> {
        self.since_pull
    }

    /// Time since messages were last finished.
    pub fn since_progress(&self) -> Option<Duration> {
        self.since_progress
    }

    /// Whether the user has suspended the queue, its topic or the consumer.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Why the queue stands still, when it does; `suspended` when the user said so.
    pub fn standing_still(&self) -> Option<&str> {
        self.standing_still.as_deref()
    }

    /// Where the broker's lock of the queue stands; `None` when the consumer needs none, since it does not consume in
    /// order.
    pub fn lock(&self) -> Option<QueueLock> {
        self.lock
    }

    /// Time since the last request by which the broker confirmed the lock was sent; `None` when none did.
    pub fn since_lock(&self) -> Option<Duration> {
        self.since_lock
    }
}

impl QueueState {
    /// The same for a consumer that caches elsewhere than in the process queue.
    pub(crate) fn caching(self, messages: usize, bytes: u64, commit_offset: Option<i64>) -> Self {
        Self { cached_messages: messages, cached_bytes: bytes, commit_offset, ..self }
    }
}

impl HeldQueue {
    pub(crate) fn state(&self) -> QueueState {
        let cached = self.process().map(|process| process.cached()).unwrap_or_default();
        let progress = self.with_progress(|progress| progress.clone());
        let lock = self.order().and_then(|order| order.seat.view(Instant::now()));
        QueueState {
            queue: self.queue.clone(),
            epoch: self.epoch,
            phase: self.phase(),
            held_for: self.since().elapsed(),
            next_offset: progress.next_offset,
            commit_offset: self.commit_offset(),
            stored_offset: progress.stored,
            cached_messages: cached.messages,
            cached_bytes: cached.bytes,
            since_pull: progress.last_pull.map(|at| at.elapsed()),
            since_progress: progress.last_progress.map(|at| at.elapsed()),
            is_suspended: self.is_suspended(),
            standing_still: if self.is_suspended() {
                Some("suspended".into())
            } else {
                progress.standing.clone().or_else(|| self.waits_in_order(&progress))
            },
            lock: lock.as_ref().map(|lock| lock.lock),
            since_lock: lock.and_then(|lock| lock.granted).map(|at| at.elapsed()),
        }
    }

    /// Why an ordered queue waits, when it does.
    fn waits_in_order(&self, progress: &Progress) -> Option<String> {
        let order = self.order()?;
        let now = Instant::now();
        if let Some(view) = order.seat.view(now)
            && !order.seat.is_valid(now)
        {
            return Some(match &progress.lock_failure {
                Some(error) => format!("waits for the lock of the broker, which cannot be asked: {error}"),
                None if view.refusals > 0 => "waits for the lock of the broker, which another member has".to_owned(),
                None => "waits for the lock of the broker".to_owned(),
            });
        }
        if order.seat.is_taken_by_another(self.epoch) {
            return Some("waits for a listener that began before the queue's offset was changed".to_owned());
        }
        let (lanes, until) = order.lanes.lock().suspended()?;
        let left = until.saturating_duration_since(now);
        Some(format!("suspended by the listener for {left:?} more ({lanes} lanes)"))
    }
}
