//! The state behind a buffer's lock: what is cached of each queue, what is in whose hand, and the offsets that follow.

use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::process_queue::{Full, Limits};
use crate::message::{MessageExt, MessageQueue};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Instant;

thread_local! {
    /// Gone when the thread is: that is how others see that it has ended.
    static ALIVE: Arc<()> = Arc::new(());
}

#[derive(Default)]
pub(super) struct State {
    pub(super) queues: BTreeMap<MessageQueue, Queue>,
    /// Queues with messages, in the order in which they are next.
    pub(super) turns: VecDeque<MessageQueue>,
    /// Kept through rebalances.
    pub(super) paused: BTreeSet<MessageQueue>,
    /// Queues whose pull ticket waits here.
    pub(super) resting: BTreeSet<MessageQueue>,
    pub(super) messages: usize,
    /// `None`: threads that have ended.
    pub(super) threads: HashMap<Option<ThreadId>, Thread>,
    pub(super) waiting: usize,
    /// Raised by each wakeup while somebody waits; otherwise the next poll finds `is_woken`.
    pub(super) wakeups: u64,
    pub(super) is_woken: bool,
    pub(super) is_closed: bool,
    pub(super) counts: Counts,
}

/// Messages since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) polled: u64,
    pub(super) handled: u64,
}

pub(super) struct Queue {
    pub(super) held: Arc<HeldQueue>,
    pub(super) batches: VecDeque<Vec<MessageExt>>,
    pub(super) messages: usize,
    pub(super) bytes: u64,
    pub(super) is_in_turn: bool,
    /// Whether an offset of this ownership was committed.
    pub(super) is_committed: bool,
}

pub(super) struct Thread {
    pub(super) alive: Weak<()>,
    pub(super) out: Vec<Out>,
}

/// What a thread has in hand of one ownership: everything from `from`, below `to`.
pub(super) struct Out {
    pub(super) held: Arc<HeldQueue>,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) messages: usize,
}

impl State {
    /// Takes a queue out of the turns, and its ticket out of its rest: what comes next of it makes its own.
    pub(super) fn stand_down(&mut self, name: &MessageQueue) {
        self.resting.remove(name);
        self.turns.retain(|turn| turn != name);
    }

    /// What is cached of this ownership, unless it is over.
    pub(super) fn of(&self, held: &HeldQueue) -> Option<&Queue> {
        self.queues.get(&held.queue).filter(|queue| queue.held.epoch == held.epoch)
    }

    pub(super) fn hand_out(&mut self, me: ThreadId) -> Option<Vec<MessageExt>> {
        while let Some(name) = self.turns.pop_front() {
            let Some(queue) = self.queues.get_mut(&name) else { continue };
            queue.is_in_turn = false;
            let Some((first, last)) = queue.front().filter(|_| !self.paused.contains(&name)) else { continue };
            let thread = self.threads.entry(Some(me)).or_insert_with(Thread::current);
            let known = thread.out.iter_mut().find(|out| Arc::ptr_eq(&out.held, &queue.held));
            // An ownership waits for those who have entered it, so entering comes first.
            if known.is_none() && !queue.held.enter() {
                continue;
            }
            if !queue.held.may_hand_out(first, last) {
                if known.is_none() {
                    queue.held.leave();
                }
                continue;
            }
            let Some(messages) = queue.batches.pop_front() else { continue };
            queue.messages -= messages.len();
            queue.bytes -= messages.iter().map(size_of).sum::<u64>();
            self.messages -= messages.len();
            self.counts.polled += messages.len() as u64;
            let to = last.saturating_add(1);
            match known {
                Some(out) => {
                    out.to = to;
                    out.messages += messages.len();
                }
                None => {
                    // Of ended ownerships nothing is left to commit, and somebody may seek for ever.
                    thread.out.retain(|out| out.held.phase() != QueuePhase::Released);
                    let (held, messages) = (queue.held.clone(), messages.len());
                    thread.out.push(Out { held, from: first, to, messages });
                }
            }
            if !queue.batches.is_empty() {
                queue.is_in_turn = true;
                self.turns.push_back(name);
            }
            return Some(messages);
        }
        None
    }

    pub(super) fn settle(&mut self, thread: Option<ThreadId>) {
        let Some(thread) = self.threads.remove(&thread) else { return };
        for out in thread.out {
            self.counts.handled += out.messages as u64;
            self.left(&out.held);
        }
    }

    /// Lets `take` count what is handled of each; what has nothing left is settled.
    pub(super) fn settle_where(&mut self, mut take: impl FnMut(&mut Out) -> usize) {
        let mut done = Vec::new();
        for thread in self.threads.values_mut() {
            for out in &mut thread.out {
                self.counts.handled += take(out) as u64;
            }
            done.extend(thread.out.extract_if(.., |out| out.from >= out.to));
        }
        self.threads.retain(|_, thread| !thread.out.is_empty());
        for out in done {
            self.left(&out.held);
        }
    }

    /// A thread has nothing in hand of this ownership any more. The offset goes first: who waits for the thread to leave
    /// reads it then.
    pub(super) fn left(&self, held: &Arc<HeldQueue>) {
        self.advance(held);
        held.with_progress(|progress| progress.last_progress = Some(Instant::now()));
        held.leave();
    }

    pub(super) fn advance(&self, held: &HeldQueue) {
        if let (Some(process), Some(handled)) = (held.process(), self.handled(held)) {
            process.advance(handled);
        }
    }

    pub(super) fn handled(&self, held: &HeldQueue) -> Option<i64> {
        let out = self.threads.values().flat_map(|thread| &thread.out);
        let lowest = out.filter(|out| out.held.epoch == held.epoch).map(|out| out.from).min();
        lowest.or_else(|| self.position(held))
    }

    pub(super) fn position(&self, held: &HeldQueue) -> Option<i64> {
        held.process()?;
        let cached = self.of(held).and_then(Queue::front).map(|(first, _)| first);
        Some(cached.unwrap_or_else(|| held.with_progress(|progress| progress.next_offset)))
    }
}

impl Queue {
    /// First and last offset of the batch that is next.
    pub(super) fn front(&self) -> Option<(i64, i64)> {
        let batch = self.batches.front()?;
        Some((batch.first()?.queue_offset(), batch.last()?.queue_offset()))
    }

    pub(super) fn range(&self) -> Option<(i64, i64)> {
        Some((self.batches.front()?.first()?.queue_offset(), self.batches.back()?.last()?.queue_offset()))
    }

    /// Whether it holds more than it may.
    pub(super) fn full(&self, limits: &Limits) -> Option<Full> {
        let span = self.range().map_or(0, |(first, last)| last - first);
        limits.exceeded(self.messages, self.bytes, span)
    }
}

impl Thread {
    pub(super) fn current() -> Self {
        // A thread that is just ending counts as ended.
        Self { alive: ALIVE.try_with(Arc::downgrade).unwrap_or_default(), out: Vec::new() }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive.strong_count() > 0
    }
}

pub(super) fn size_of(message: &MessageExt) -> u64 {
    message.body().len() as u64
}
