//! One ownership of one queue; `table` has those of a consumer.
//!
//! An ownership begins when a queue is assigned and ends when it is released; the next one of the same queue is another
//! object with another epoch. Whatever was started under it (a pull, a listener call, a commit) holds this object, so a
//! late result meets the phase `Released` and changes nothing.
//!
//! ```text
//!             assigned           start offset known            revoked, or the offset was corrected
//!   Wanted ────────────▶ Locating ────────────────▶ Pulling ──────────────▶ Draining ─────▶ Released
//!      │                    │  ▲ failed: again later   │ throttled: the ticket is parked in the process queue,
//!      │                    └──┘                       └ and whoever makes room submits it
//!      └──────── revoked ───┴────────────────────────────────────────────────────────────────▲
//! ```

mod table;

pub use table::{Exchange, HeldTable};

use super::order::Order;
use super::process_queue::{Limits, ProcessQueue};
use crate::instance::role::PullTicket;
use crate::message::MessageQueue;
use crate::sync::{Condvar, Mutex, Rank};
use crate::time::Deadline;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering};
use std::time::Instant;

/// Where an ownership stands; see the drawing at the head of this file.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum QueuePhase {
    /// Assigned; the previous owner gets a moment to store its offset.
    Wanted,
    /// Asking where to start.
    Locating,
    /// Being pulled and consumed.
    Pulling,
    /// No new messages are handed out; running listeners end.
    Draining,
    /// Over.
    Released,
}

impl QueuePhase {
    fn from_u8(value: u8) -> Self {
        match value {
            0 => Self::Wanted,
            1 => Self::Locating,
            2 => Self::Pulling,
            3 => Self::Draining,
            _ => Self::Released,
        }
    }
}

/// One ownership of one queue; see the head of this file.
pub struct HeldQueue {
    pub(crate) queue: MessageQueue,
    pub(crate) epoch: u64,
    group: Arc<str>,
    since: Instant,
    phase: AtomicU8,
    /// Workers that may be inside a listener with messages of this ownership.
    running: AtomicUsize,
    /// Behind the highest offset that was handed to a listener; its complement once nothing new is handed out. One word,
    /// so that no worker raises it behind a drain that has looked at it.
    handed_to: AtomicI64,
    /// Nothing is pulled and nothing new is handed out. Changed under the table's lock.
    suspended: AtomicBool,
    limits: Mutex<Limits>,
    /// Counts the times that a drain may have come to its end, for whoever waits for it.
    idle: Mutex<u64>,
    idle_changed: Condvar,
    process: std::sync::OnceLock<ProcessQueue>,
    progress: Mutex<Progress>,
    /// Present when the consumer consumes in order.
    order: Option<Order>,
}

/// The pull side of an ownership; one pull circulates, so only its holder writes most of this.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) next_offset: i64,
    pub(crate) suggested_broker_id: i64,
    pub(crate) last_pull: Option<Instant>,
    /// When it was last asked where to start.
    pub(crate) last_asked: Option<Instant>,
    pub(crate) last_progress: Option<Instant>,
    /// The highest offset that the broker confirmed to have stored for us.
    pub(crate) stored: Option<i64>,
    /// The broker may have lost what it confirmed: it was out of reach since.
    pub(crate) is_doubtful: bool,
    pub(crate) failures: u32,
    pub(crate) empty_answers: u32,
    /// Corrections of the offset in a row, over renewed ownerships.
    pub(crate) corrections: u32,
    /// A place where an answer was damaged, and how often.
    pub(crate) damage: Option<(i64, u32)>,
    /// Why it stands still, for people.
    pub(crate) standing: Option<String>,
    /// Where an ownership before this one had come to, or what the start policy said while the lock was waited for: where
    /// it begins if nothing is stored.
    pub(crate) reached: Option<i64>,
    /// Whether that was asked for while the lock was waited for.
    pub(crate) is_policy_asked: bool,
    /// Why the broker could not be asked for the queue's lock.
    pub(crate) lock_failure: Option<String>,
}

impl HeldQueue {
    fn new(
        queue: MessageQueue,
        epoch: u64,
        group: Arc<str>,
        order: Option<Order>,
        limits: Limits,
        is_suspended: bool,
    ) -> Self {
        Self {
            queue,
            epoch,
            group,
            since: Instant::now(),
            phase: AtomicU8::new(QueuePhase::Wanted as u8),
            running: AtomicUsize::new(0),
            handed_to: AtomicI64::new(0),
            suspended: AtomicBool::new(is_suspended),
            limits: Mutex::new(Rank::Leaf, limits),
            idle: Mutex::new(Rank::Thread, 0),
            idle_changed: Condvar::new(),
            process: std::sync::OnceLock::new(),
            progress: Mutex::new(
                Rank::Offsets,
                Progress {
                    next_offset: 0,
                    suggested_broker_id: 0,
                    last_pull: None,
                    last_asked: None,
                    last_progress: None,
                    stored: None,
                    is_doubtful: false,
                    failures: 0,
                    empty_answers: 0,
                    corrections: 0,
                    damage: None,
                    standing: None,
                    reached: None,
                    is_policy_asked: false,
                    lock_failure: None,
                },
            ),
            order,
        }
    }

    pub(crate) fn order(&self) -> Option<&Order> {
        self.order.as_ref()
    }

    pub(crate) fn phase(&self) -> QueuePhase {
        QueuePhase::from_u8(self.phase.load(Ordering::SeqCst))
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Moves to `to` if the ownership stands at `from`.
    pub(crate) fn advance(&self, from: QueuePhase, to: QueuePhase) -> bool {
        self.phase.compare_exchange(from as u8, to as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The start offset is known: from now on it is pulled.
    pub(crate) fn begin(&self, start: i64, stored: Option<i64>) -> bool {
        if self.process.set(ProcessQueue::new(start)).is_err() {
            return false; // it has begun already
        }
        {
            let mut progress = self.progress.lock();
            progress.next_offset = start;
            progress.stored = stored;
            progress.failures = 0;
            progress.standing = None;
        }
        self.advance(QueuePhase::Locating, QueuePhase::Pulling)
    }

    /// Present from `Pulling` on.
    pub(crate) fn process(&self) -> Option<&ProcessQueue> {
        self.process.get()
    }

    /// What a next owner must start from; `None` while no start offset is known.
    pub(crate) fn commit_offset(&self) -> Option<i64> {
        self.process().map(ProcessQueue::commit_offset)
    }

    /// The offset that a pull carries to a master; 0 is not carried, since it reads as "none" there.
    pub(crate) fn carried_commit(&self) -> Option<i64> {
        self.commit_offset().filter(|commit| *commit > 0)
    }

    /// A pull brought these messages, as (offset, size), and the next one begins at `next`. Tells for each message
    /// whether it is to be handed on; call it before that, since a fast worker must not finish what is not known (field
    /// report 29).
    pub(crate) fn take_in(&self, messages: impl Iterator<Item = (i64, usize)>, next: i64) -> Vec<bool> {
        let Some(process) = self.process() else { return messages.map(|_| false).collect() };
        let taken = process.put(messages, next);
        self.with_progress(|progress| progress.next_offset = next);
        taken
    }

    /// A pull brought nothing, and the next one begins at `next`: everything in between was filtered away.
    pub(crate) fn pass_over(&self, next: i64) {
        if let Some(process) = self.process() {
            process.advance(next);
        }
        self.with_progress(|progress| progress.next_offset = next);
    }

    pub(crate) fn with_progress<R>(&self, f: impl FnOnce(&mut Progress) -> R) -> R {
        f(&mut self.progress.lock())
    }

    pub(crate) fn ticket(&self) -> PullTicket {
        PullTicket { group: self.group.clone(), queue: self.queue.clone(), epoch: self.epoch }
    }

    /// How much of it may be cached now.
    pub(crate) fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::SeqCst)
    }

    /// Parks the caller's ticket if the queue is suspended; whoever resumes it submits the ticket.
    pub(crate) fn park_if_suspended(&self) -> bool {
        self.process().is_some_and(|process| process.park_while(|| self.is_suspended()))
    }

    pub(crate) fn is_pulling(&self) -> bool {
        self.phase() == QueuePhase::Pulling
    }

    /// A worker begins to work on messages of this ownership. `false`: it is over.
    pub(crate) fn enter(&self) -> bool {
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.phase() != QueuePhase::Released {
            return true;
        }
        self.leave();
        false
    }

    pub(crate) fn leave(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.look_drained();
        }
    }

    /// Something that a drain waits for may be done; also called when messages are finished by others than a worker that
    /// has entered.
    pub(crate) fn look_drained(&self) {
        if !self.is_pulling() {
            *self.idle.lock() += 1;
            self.idle_changed.notify_all();
        }
    }

    /// Whether the messages from `first` to `last` may go to a listener; only between [`enter`](Self::enter) and
    /// [`leave`](Self::leave).
    ///
    /// While it drains, only those below what was handed out before: they would otherwise keep the offset behind
    /// messages that are finished, which the next owner would then see again. What is refused is not asked for again, so
    /// nothing above it may be handed out later: the drain would wait for the refused in vain.
    pub(crate) fn may_hand_out(&self, first: i64, last: i64) -> bool {
        if !matches!(self.phase(), QueuePhase::Pulling | QueuePhase::Draining) {
            return false;
        }
        let to = last.saturating_add(1);
        let mut known = self.handed_to.load(Ordering::SeqCst);
        while (0..to).contains(&known) {
            match self.handed_to.compare_exchange_weak(known, to, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => known = now,
            }
        }
        known >= 0 || first < !known
    }

    fn handed_to(&self) -> i64 {
        let known = self.handed_to.load(Ordering::SeqCst);
        if known < 0 { !known } else { known }
    }

    /// Nothing new is handed out from now on. `false` when it was so already.
    pub(crate) fn stop_handing_out(&self) -> bool {
        let is_first = [QueuePhase::Pulling, QueuePhase::Wanted, QueuePhase::Locating]
            .into_iter()
            .any(|from| self.advance(from, QueuePhase::Draining));
        let seal = |known: i64| (known >= 0).then_some(!known);
        let _ = self.handed_to.fetch_update(Ordering::SeqCst, Ordering::SeqCst, seal);
        is_first
    }

    /// Messages that were handed out and are not finished.
    pub(crate) fn running_messages(&self) -> usize {
        self.process().map_or(0, |process| process.unfinished_below(self.handed_to()))
    }

    /// A suspended queue hands out nothing, so gaps stay as they are: what is finished behind them comes again.
    fn is_drained(&self) -> bool {
        if self.running.load(Ordering::SeqCst) > 0 {
            return false;
        }
        if self.is_suspended() {
            return true;
        }
        let handed_to = self.handed_to();
        match &self.order {
            // What a listener suspended, or did not commit, is not waited for: it is the next owner's.
            Some(order) => !order.lanes.lock().is_ready_below(handed_to),
            None => self.commit_offset().is_none_or(|lowest| lowest >= handed_to),
        }
    }

    /// Waits until everything that was handed out is finished; `false` when the deadline came first.
    pub(crate) fn wait_drained(&self, deadline: Deadline) -> bool {
        loop {
            // The process queue's lock ranks below this one, so it is asked with this one free; the count tells
            // whether anything happened in between.
            let seen = *self.idle.lock();
            if self.is_drained() {
                return true;
            }
            let mut idle = self.idle.lock();
            while *idle == seen {
                let left = deadline.remaining();
                if left.is_zero() {
                    return false;
                }
                idle = self.idle_changed.wait_timeout(idle, left);
            }
        }
    }

    pub(crate) fn release(&self) {
        self.phase.store(QueuePhase::Released as u8, Ordering::SeqCst);
    }
}

impl fmt::Debug for HeldQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} (epoch {}, {:?})", self.queue, self.group, self.epoch, self.phase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::process_queue::LimitPlan;
    use crate::consumer::suspension::Scope;
    use std::time::Duration;

    fn table() -> (HeldTable, MessageQueue) {
        (HeldTable::new("g".into()), MessageQueue::new("t", "b", 0))
    }

    #[test]
    fn a_ticket_of_an_ended_ownership_finds_nothing() {
        let (table, queue) = table();
        let first = table.acquire(&queue).unwrap();
        assert!(table.acquire(&queue).is_none());
        let second = table.renew(&first).unwrap();
        assert!(table.get(&queue, first.epoch).is_none());
        assert!(table.get(&queue, second.epoch).is_some());
        assert!(table.renew(&first).is_none());
        table.remove(&first); // ends nothing but itself
        assert!(table.get(&queue, second.epoch).is_some());
        assert_eq!(first.phase(), QueuePhase::Released);
    }

    #[test]
    fn a_queue_that_is_given_up_is_not_begun_again() {
        let (table, queue) = table();
        let held = table.acquire(&queue).unwrap();
        let Exchange { going, coming } = table.exchange(std::slice::from_ref(&queue), &[]);
        assert!(Arc::ptr_eq(&going[0], &held) && coming.is_empty());
        assert!(table.restart(&held, 3).is_none(), "an operator's reset while it drains");
        table.remove(&held);
        assert!(table.all().is_empty());
    }

    fn pulling() -> Arc<HeldQueue> {
        let (table, queue) = table();
        let held = table.acquire(&queue).unwrap();
        held.advance(QueuePhase::Wanted, QueuePhase::Locating);
        assert!(held.begin(7, None));
        held.process().unwrap().put((7..10).map(|offset| (offset, 1)), 10);
        held
    }

    const LIMITS: Limits = Limits { messages: 100, bytes: 100, span: 100 };

    #[test]
    fn a_drain_waits_for_what_was_handed_out_and_lets_nothing_new_start() {
        let held = pulling();
        assert!(held.enter() && held.may_hand_out(8, 8));
        assert!(held.stop_handing_out());
        assert!(!held.may_hand_out(9, 9), "new work while it drains");
        assert!(held.may_hand_out(7, 7), "a gap below work that was handed out is closed");
        assert!(!held.wait_drained(Deadline::after(Duration::from_millis(5))));
        held.process().unwrap().finish(&[7, 8], &LIMITS);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| held.wait_drained(Deadline::after(Duration::from_secs(10))));
            held.leave();
            assert!(waiter.join().unwrap());
        });
        assert_eq!(held.commit_offset(), Some(9));
    }

    #[test]
    fn what_a_drain_refuses_is_below_nothing_that_is_handed_out() {
        for _ in 0..2000 {
            let held = pulling();
            assert!(held.enter() && held.enter());
            let start = std::sync::Barrier::new(3);
            let together = |work: &dyn Fn() -> bool| {
                start.wait();
                work()
            };
            std::thread::scope(|scope| {
                let low = scope.spawn(|| together(&|| held.may_hand_out(7, 7)));
                let high = scope.spawn(|| together(&|| held.may_hand_out(9, 9)));
                together(&|| held.stop_handing_out());
                let (low, high) = (low.join().unwrap(), high.join().unwrap());
                assert!(low || !high, "9 is handed out, and 7 below it never will be");
            });
        }
    }

    #[test]
    fn a_drain_ends_when_others_finish_what_a_worker_left_behind() {
        let held = pulling();
        assert!(held.enter() && held.may_hand_out(7, 7));
        held.stop_handing_out();
        held.leave();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| held.wait_drained(Deadline::after(Duration::from_secs(60))));
            assert!(!held.wait_drained(Deadline::after(Duration::from_millis(20))), "7 is timed out, not settled");
            held.process().unwrap().finish(&[7], &LIMITS);
            held.look_drained();
            assert!(waiter.join().unwrap());
        });
    }

    #[test]
    fn nothing_starts_under_an_ownership_that_is_over() {
        let held = pulling();
        held.release();
        assert!(!held.enter());
        assert!(held.wait_drained(Deadline::after(Duration::from_secs(10))));
    }

    #[test]
    fn what_is_suspended_stays_so_over_every_ownership_until_that_scope_is_resumed() {
        let (table, queue) = table();
        let first = table.acquire(&queue).unwrap();
        assert!(table.set_suspended(Scope::Topic("t"), true).is_empty() && first.is_suspended());
        assert!(table.set_suspended(Scope::Consumer, true).is_empty());
        let second = table.renew(&first).unwrap();
        assert!(second.is_suspended());
        table.remove(&second);
        let third = table.acquire(&queue).unwrap();
        assert!(third.is_suspended());
        assert!(table.set_suspended(Scope::Consumer, false).is_empty() && third.is_suspended(), "the topic still is");
        assert_eq!(table.set_suspended(Scope::Topic("t"), false).len(), 1);
        assert!(table.set_suspended(Scope::Queue(&queue), false).is_empty(), "it was not");
        let other = MessageQueue::new("t", "b", 1);
        assert!(table.set_suspended(Scope::Queue(&other), true).is_empty());
        assert!(!third.is_suspended(), "another queue");
        assert!(table.acquire(&other).unwrap().is_suspended(), "suspended before it was held");
    }

    #[test]
    fn a_suspended_queue_is_given_up_with_its_gaps() {
        let (table, queue) = table();
        let held = table.acquire(&queue).unwrap();
        let held = table.restart(&held, 7).unwrap();
        held.take_in((7..10).map(|offset| (offset, 1)), 10);
        assert!(held.enter() && held.may_hand_out(8, 8));
        held.process().unwrap().finish(&[8], &LIMITS);
        table.set_suspended(Scope::Queue(&queue), true);
        held.stop_handing_out();
        assert!(!held.wait_drained(Deadline::after(Duration::from_millis(5))), "a listener is at it");
        held.leave();
        assert!(held.wait_drained(Deadline::after(Duration::from_secs(10))));
        assert_eq!(held.commit_offset(), Some(7));
    }

    #[test]
    fn a_topic_s_limit_follows_the_queues_held_of_it() {
        let plan = LimitPlan { topic_messages: Some(12), ..LimitPlan::of_queues(LIMITS) };
        let table = HeldTable::new("g".into()).with_limits(plan);
        let queues: Vec<_> = (0..3).map(|id| MessageQueue::new("t", "b", id)).collect();
        let other = MessageQueue::new("other", "b", 0);
        let limits = || table.all().iter().map(|held| held.limits().messages).collect::<Vec<_>>();
        table.exchange(&[], &[queues.clone(), vec![other]].concat());
        assert_eq!(limits(), [12, 4, 4, 4]);
        let Exchange { going, .. } = table.exchange(&queues[..1], &[]);
        table.remove(&going[0]);
        assert_eq!(limits(), [12, 6, 6]);
        let held = table.all()[1].clone();
        assert_eq!(table.renew(&held).unwrap().limits().messages, 6);
    }
}
