//! The part of a push consumer that hands messages to a listener, as the rest of it sees it.
//!
//! Pulling, membership, the stop and the tools know this seam only, so that consuming in parallel and in order are two
//! services that can be exchanged.

use super::hooks::{ConsumeOutcome, Observer};
use super::stats::Tally;
use crate::consumer::held::HeldQueue;
use crate::error::Result;
use crate::instance::ClientInstance;
use crate::message::MessageExt;
use crate::protocol::body::ConsumeMessageDirectlyResult;
use crate::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// Finished messages are settled at least this often, so that the offset follows slow listeners too.
const SETTLE_EVERY: Duration = Duration::from_millis(5);
pub(crate) const SETTLE_AT: usize = 64;

pub(crate) trait ConsumeService: Send + Sync {
    /// Takes messages that were entered into the queue's process queue. Must not wait.
    fn submit(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>);
    /// The queue may be worked on again, if anything of it waits: it was suspended ([`HeldQueue::is_suspended`], to be
    /// asked before each call of a listener), or its broker's lock was missing.
    fn go_on(&self, held: &Arc<HeldQueue>);
    /// Whether the consumer as a whole has room; a queue that caches nothing is always pulled, so that none starves.
    fn has_room(&self) -> bool;
    /// What is cached counts for so many bytes.
    fn cached_bytes(&self) -> u64;
    /// An ownership ended: what it cached and nobody will finish, `bytes` of it, no longer counts.
    fn forget(&self, held: &HeldQueue, bytes: u64);
    /// Whether the listener is called in order.
    fn is_orderly(&self) -> bool;
    /// How many worker threads there are.
    fn threads(&self) -> usize;
    /// Changes their number; those in excess leave when their listener has returned.
    ///
    /// # Errors
    /// When a thread cannot be had.
    fn set_threads(&self, threads: usize) -> Result<()>;
    /// Settles what workers finished before the call they are in now, so that an offset to be stored is not behind it. They
    /// do it themselves when their listener returns; finishing a message twice changes nothing.
    fn settle_finished(&self) {}
    /// What each worker is doing, one line each, for `jstack` of the running info; those that wait for work are left out.
    fn activities(&self) -> Vec<String> {
        Vec::new()
    }
    /// A tool wants the listener to handle this message now. It runs here, on the calling thread, beside whatever the
    /// workers do; nothing is stored or sent back (02-consumer 9.6).
    fn consume_directly(&self, message: MessageExt) -> ConsumeMessageDirectlyResult;
    /// Ends the workers, after all queues were given up; `false` when a listener had not returned by the deadline. Its
    /// thread ends when it does.
    fn join(&self, deadline: Deadline) -> bool;
}

/// Bytes cached by the whole consumer.
pub(crate) struct Budget {
    /// Below 0 for a moment when an ownership ends between taking messages in and counting them here.
    used: AtomicI64,
    limit: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { used: AtomicI64::new(0), limit }
    }

    pub(crate) fn take(&self, messages: &[MessageExt]) {
        self.used.fetch_add(signed(messages.iter().map(size_of).sum()), Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(signed(bytes), Ordering::Relaxed);
    }

    pub(crate) fn has_room(&self) -> bool {
        self.used() <= self.limit
    }

    pub(crate) fn used(&self) -> u64 {
        u64::try_from(self.used.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What a message counts for in flow control.
pub(crate) fn size_of(message: &MessageExt) -> u64 {
    message.body().len() as u64
}

/// What follows when messages are finished, the same for every service.
pub(crate) struct Ledger {
    pub(crate) instance: Arc<ClientInstance>,
    pub(crate) budget: Budget,
    pub(crate) observer: Arc<Observer>,
}

impl Ledger {
    /// Tells the process queue what is finished, and wakes the pull that waited for room.
    pub(crate) fn settle(&self, held: &Arc<HeldQueue>, settling: &mut Settling) {
        settling.last = settling.now;
        if settling.tally != Tally::default() {
            self.observer.stats.of(held.queue.shared_topic()).add(&mut settling.tally);
        }
        if settling.offsets.is_empty() {
            return;
        }
        if let Some(process) = held.process() {
            settling.offsets.sort_unstable();
            let finished = process.finish(&settling.offsets, &held.limits());
            self.budget.give_back(finished.bytes);
            if finished.unparked {
                self.instance.submit_pull(held.ticket());
            }
            // Whoever settles need not be a worker that a drain waits for.
            held.look_drained();
        }
        settling.offsets.clear();
        held.with_progress(|progress| progress.last_progress = Some(Instant::now()));
    }
}

/// What one worker finished and has not settled.
#[derive(Default)]
pub(crate) struct Settling {
    offsets: Vec<i64>,
    tally: Tally,
    /// The time, where the worker has just looked at the clock; else it is looked at again.
    now: Option<Instant>,
    /// When it last settled, or began.
    last: Option<Instant>,
}

impl Settling {
    /// The worker begins with a list.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.now = Some(now);
        self.last = Some(now);
    }

    pub(crate) fn set_now(&mut self, now: Instant) {
        self.now = Some(now);
    }

    pub(crate) fn now(&self) -> Instant {
        self.now.unwrap_or_else(Instant::now)
    }

    pub(crate) fn add(&mut self, message: &MessageExt) {
        self.offsets.push(message.queue_offset());
    }

    pub(crate) fn finished(&self) -> &[i64] {
        &self.offsets
    }

    pub(crate) fn of(offsets: Vec<i64>) -> Self {
        Self { offsets, ..Self::default() }
    }

    /// Counts a call of the listener with `messages`.
    pub(crate) fn count(&mut self, messages: usize, outcome: &ConsumeOutcome) {
        self.tally.calls += 1;
        self.tally.took += outcome.took;
        self.tally.failed += outcome.failed as u64;
        self.tally.consumed += messages.saturating_sub(outcome.failed) as u64;
    }

    /// Counts messages of a call that took too long.
    pub(crate) fn count_timed_out(&mut self, messages: usize) {
        self.tally.failed += messages as u64;
        self.tally.timed_out += messages as u64;
    }

    pub(crate) fn is_due(&mut self) -> bool {
        if self.offsets.is_empty() {
            return false;
        }
        let now = self.now();
        let last = *self.last.get_or_insert(now);
        self.offsets.len() >= SETTLE_AT || now.saturating_duration_since(last) >= SETTLE_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::held::HeldTable;
    use crate::message::MessageQueue;

    #[test]
    fn whenever_an_ownership_ends_its_messages_count_for_nothing_afterwards() {
        let (table, budget) = (HeldTable::new("g".into()), Budget::new(1000));
        let held = table.acquire(&MessageQueue::new("t", "b", 0)).unwrap();
        let held = table.restart(&held, 0).unwrap();
        let count = |bytes: u64| budget.used.fetch_add(signed(bytes), Ordering::Relaxed);
        // A reset comes between the two steps that take an answer in.
        assert_eq!(held.take_in([(0, 100)].into_iter(), 1), [true]);
        budget.give_back(held.process().unwrap().abandon());
        count(100);
        assert_eq!(budget.used(), 0);
        // And before both.
        assert_eq!(held.take_in([(1, 100)].into_iter(), 2), [false]);
        assert_eq!((budget.used(), budget.has_room()), (0, true));
    }
}
