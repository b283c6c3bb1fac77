//! What was pulled and not handed out, and what is out with which thread.
//!
//! One lock covers both, so that an offset to store is never derived from half a step. Each queue keeps its own list, and
//! queues take turns. A batch counts as handled when the thread that got it says so (by polling again, by a commit, by
//! the stop), so a thread that polls never finishes the work of another one. Of what a thread has out of a queue only
//! the lowest offset matters, which bounds the memory of a user who never commits.

use super::shelf::{Counts, Queue, State, Thread, size_of};
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::process_queue::{Full, Limits};
use crate::instance::role::PullTicket;
use crate::message::{MessageExt, MessageQueue};
use crate::sync::{Condvar, Mutex, Rank};
use crate::time::Deadline;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// While a stop waits for polling threads, it looks so often whether they have ended.
const LOOK_FOR_ENDED: Duration = Duration::from_millis(50);

pub(super) struct Buffer {
    state: Mutex<State>,
    changed: Condvar,
    limits: Limits,
    /// Messages of all queues together.
    limit_for_all: usize,
    /// Whether polling again says that what was polled before is handled.
    auto: bool,
}

/// How a poll ended.
pub(super) enum Polled {
    Messages(Vec<MessageExt>),
    Nothing,
    Woken,
    Closed,
}

/// Whether a queue may be pulled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Go,
    /// The ticket waits here; whoever makes room submits it.
    Rest(&'static str),
    /// The ownership is over.
    Over,
}

/// Why explicit offsets cannot be committed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotCommitted {
    NotHeld,
    /// Only what was handed out can be handled; the position comes with it.
    Beyond(i64),
}

impl Buffer {
    pub(super) fn new(limits: Limits, limit_for_all: usize, auto: bool) -> Self {
        let state = Mutex::new(Rank::QueueGate, State::default());
        Self { state, changed: Condvar::new(), limits, limit_for_all, auto }
    }

    /// An ownership begins. What was cached under an earlier one of the queue is gone.
    pub(super) fn open(&self, held: Arc<HeldQueue>) -> Vec<PullTicket> {
        let mut state = self.state.lock();
        // Another thread may have renewed the ownership before this one came here.
        if state.queues.get(&held.queue).is_some_and(|known| known.held.epoch > held.epoch) {
            return Vec::new();
        }
        let name = held.queue.clone();
        state.stand_down(&name);
        let (batches, messages, bytes) = Default::default();
        let queue = Queue { held, batches, messages, bytes, is_in_turn: false, is_committed: false };
        let before = state.queues.insert(name, queue);
        self.shrink(&mut state, before)
    }

    /// An ownership is over.
    pub(super) fn forget(&self, held: &HeldQueue) -> Vec<PullTicket> {
        let mut state = self.state.lock();
        if state.queues.get(&held.queue).is_none_or(|known| known.held.epoch > held.epoch) {
            return Vec::new();
        }
        state.stand_down(&held.queue);
        let before = state.queues.remove(&held.queue);
        self.shrink(&mut state, before)
    }

    fn shrink(&self, state: &mut State, gone: Option<Queue>) -> Vec<PullTicket> {
        state.messages -= gone.map_or(0, |queue| queue.messages);
        self.admitted(state)
    }

    /// Decides on a pull; see [`Admission`].
    pub(super) fn admit(&self, held: &HeldQueue) -> Admission {
        let mut state = self.state.lock();
        let Some(queue) = state.of(held) else { return Admission::Over };
        match self.obstacle(queue, state.paused.contains(&held.queue), state.messages) {
            Some(why) => {
                state.resting.insert(held.queue.clone());
                Admission::Rest(why)
            }
            None => Admission::Go,
        }
    }

    fn obstacle(&self, queue: &Queue, is_paused: bool, total: usize) -> Option<&'static str> {
        if is_paused {
            return Some("paused");
        }
        match queue.full(&self.limits) {
            Some(Full::Messages) => Some("flow control: messages"),
            Some(Full::Bytes) => Some("flow control: bytes"),
            Some(Full::Span) => Some("flow control: span"),
            // A queue that caches nothing is always pulled, so that none starves.
            None if total > self.limit_for_all && queue.messages > 0 => Some("flow control: all queues together"),
            None => None,
        }
    }

    /// The tickets of resting queues that may be pulled now.
    fn admitted(&self, state: &mut State) -> Vec<PullTicket> {
        let State { queues, paused, resting, messages, .. } = state;
        let mut tickets = Vec::new();
        resting.retain(|name| {
            let Some(queue) = queues.get(name) else { return false };
            let rests = self.obstacle(queue, paused.contains(name), *messages).is_some();
            if !rests {
                tickets.push(queue.held.ticket());
            }
            rests
        });
        tickets
    }

    /// A pull brought these messages, and the next one begins at `next`; whether any of them is new. Changes nothing when
    /// the ownership is over.
    pub(super) fn take_in(&self, held: &HeldQueue, mut messages: Vec<MessageExt>, next: i64) -> bool {
        let mut state = self.state.lock();
        let State { queues, turns, messages: total, .. } = &mut *state;
        let known = queues.get_mut(&held.queue).filter(|known| known.held.epoch == held.epoch);
        let Some(queue) = known.filter(|_| held.is_pulling()) else { return false };
        let mut known_to = held.with_progress(|progress| std::mem::replace(&mut progress.next_offset, next));
        messages.retain(|message| {
            let is_new = message.queue_offset() >= known_to;
            known_to = known_to.max(message.queue_offset().saturating_add(1));
            is_new
        });
        if messages.is_empty() {
            return false;
        }
        *total += messages.len();
        queue.messages += messages.len();
        queue.bytes += messages.iter().map(size_of).sum::<u64>();
        queue.batches.push_back(messages);
        if !std::mem::replace(&mut queue.is_in_turn, true) {
            turns.push_back(held.queue.clone());
        }
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Gives one pulled batch to the calling thread, waiting for it until the deadline. The tickets are to be submitted.
    pub(super) fn poll(&self, deadline: Deadline) -> (Polled, Vec<PullTicket>) {
        let me = std::thread::current().id();
        let mut state = self.state.lock();
        if self.auto {
            state.settle(Some(me));
        }
        let seen = state.wakeups;
        loop {
            if state.is_closed {
                return (Polled::Closed, Vec::new());
            }
            if std::mem::take(&mut state.is_woken) || state.wakeups != seen {
                return (Polled::Woken, Vec::new());
            }
            if let Some(messages) = state.hand_out(me) {
                return (Polled::Messages(messages), self.admitted(&mut state));
            }
            let left = deadline.remaining();
            if left.is_zero() {
                return (Polled::Nothing, Vec::new());
            }
            state.waiting += 1;
            state = self.changed.wait_timeout(state, left);
            state.waiting -= 1;
        }
    }

    /// Ends the polls that wait now, or else the next one.
    pub(super) fn wake(&self) {
        let mut state = self.state.lock();
        if state.waiting > 0 {
            state.wakeups += 1;
        } else {
            state.is_woken = true;
        }
        self.changed.notify_all();
    }

    /// From now on nothing is handed out.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    pub(super) fn pause(&self, queues: &[MessageQueue]) {
        self.state.lock().paused.extend(queues.iter().cloned());
    }

    pub(super) fn resume(&self, queues: &[MessageQueue]) -> Vec<PullTicket> {
        let mut state = self.state.lock();
        let State { queues: known, turns, paused, .. } = &mut *state;
        for name in queues {
            paused.remove(name);
            if let Some(queue) = known.get_mut(name)
                && !queue.batches.is_empty()
                && !std::mem::replace(&mut queue.is_in_turn, true)
            {
                turns.push_back(name.clone());
            }
        }
        let tickets = self.admitted(&mut state);
        drop(state);
        self.changed.notify_all();
        tickets
    }

    pub(super) fn paused(&self) -> Vec<MessageQueue> {
        self.state.lock().paused.iter().cloned().collect()
    }

    /// What the calling thread has in hand counts as handled.
    pub(super) fn settle_mine(&self) {
        self.state.lock().settle(Some(std::thread::current().id()));
        self.changed.notify_all();
    }

    /// What any thread has in hand counts as handled.
    pub(super) fn settle_all(&self) {
        let mut state = self.state.lock();
        let threads: Vec<_> = state.threads.keys().copied().collect();
        for thread in threads {
            state.settle(thread);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Everything of the queue below `offset` counts as handled, whoever has it.
    pub(super) fn settle_below(&self, name: &MessageQueue, offset: i64) -> Result<(), NotCommitted> {
        let mut state = self.state.lock();
        let Some(held) = state.queues.get(name).map(|queue| queue.held.clone()) else {
            return Err(NotCommitted::NotHeld);
        };
        let Some(position) = state.position(&held) else { return Err(NotCommitted::NotHeld) };
        if offset > position {
            return Err(NotCommitted::Beyond(position));
        }
        state.settle_where(|out| {
            if out.held.epoch == held.epoch && out.from < offset {
                // Offsets may be missing in between, so this many at the most are left.
                let left = usize::try_from((out.to - offset).max(0)).unwrap_or(usize::MAX).min(out.messages);
                let done = out.messages - left;
                (out.from, out.messages) = (offset, left);
                done
            } else {
                0
            }
        });
        state.advance(&held);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Derives the offset to store of each queue anew, and marks it as committed.
    pub(super) fn commit(&self, queues: &[Arc<HeldQueue>]) {
        let mut state = self.state.lock();
        for held in queues {
            state.advance(held);
            if let Some(queue) = state.queues.get_mut(&held.queue).filter(|queue| queue.held.epoch == held.epoch) {
                queue.is_committed = true;
            }
        }
    }

    /// Whether an offset of this ownership was ever committed.
    pub(super) fn is_committed(&self, held: &HeldQueue) -> bool {
        self.state.lock().of(held).is_some_and(|queue| queue.is_committed)
    }

    /// The first offset that was not handed out; `None` while the start is not known.
    pub(super) fn position(&self, held: &HeldQueue) -> Option<i64> {
        self.state.lock().position(held)
    }

    /// The lowest offset that is not handled.
    pub(super) fn handled(&self, held: &HeldQueue) -> Option<i64> {
        self.state.lock().handled(held)
    }

    /// Messages and bytes cached, and whether the pull ticket rests here.
    pub(super) fn cached(&self, held: &HeldQueue) -> (usize, u64, bool) {
        let state = self.state.lock();
        state.of(held).map_or((0, 0, false), |queue| (queue.messages, queue.bytes, state.resting.contains(&held.queue)))
    }

    /// The lowest and the highest offset cached.
    pub(super) fn cached_range(&self, held: &HeldQueue) -> Option<(i64, i64)> {
        self.state.lock().of(held)?.range()
    }

    pub(super) fn counts(&self) -> Counts {
        self.state.lock().counts
    }

    /// Waits until no living thread has anything in hand, or the deadline.
    pub(super) fn wait_settled(&self, deadline: Deadline) {
        let mut state = self.state.lock();
        while state.threads.values().any(|thread| !thread.out.is_empty() && thread.is_alive()) {
            let left = deadline.remaining();
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left.min(LOOK_FOR_ENDED));
        }
    }

    /// Finds threads that ended with messages in hand, and returns how many messages. They may have ended in a panic, so
    /// these messages are not handled, and no offset passes them.
    pub(super) fn find_ended(&self) -> usize {
        let mut state = self.state.lock();
        let ended: Vec<_> =
            state.threads.iter().filter(|(id, thread)| id.is_some() && !thread.is_alive()).map(|(id, _)| *id).collect();
        let mut found = 0;
        for id in ended {
            let Some(thread) = state.threads.remove(&id) else { continue };
            let all = state.threads.entry(None).or_insert_with(|| Thread { alive: Weak::new(), out: Vec::new() });
            for out in thread.out {
                found += out.messages;
                // Of several threads of one ownership only the lowest offset matters.
                match all.out.iter_mut().find(|known| Arc::ptr_eq(&known.held, &out.held)) {
                    Some(known) => {
                        known.from = known.from.min(out.from);
                        known.to = known.to.max(out.to);
                        known.messages += out.messages;
                        out.held.leave();
                    }
                    None => all.out.push(out),
                }
            }
        }
        if let Some(all) = state.threads.get_mut(&None) {
            all.out.retain(|out| out.held.phase() != QueuePhase::Released);
        }
        found
    }

    /// Messages in hand of these ownerships.
    pub(super) fn in_hand(&self, queues: &[Arc<HeldQueue>]) -> usize {
        let state = self.state.lock();
        let out = state.threads.values().flat_map(|thread| &thread.out);
        out.filter(|out| queues.iter().any(|held| Arc::ptr_eq(held, &out.held))).map(|out| out.messages).sum()
    }
}
