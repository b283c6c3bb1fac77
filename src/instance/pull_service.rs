//! `PullMessageService`: one thread that takes pull tickets from a blocking queue and hands each to its consumer.
//!
//! Tickets for later wait in a heap of the same thread, so that a throttled or failing queue needs no other one.
//! Source: `PullMessageService` of the Java client (02-consumer 7.1).

use super::registry::Registry;
use super::role::PullTicket;
use crate::error::Result;
use crate::thread::JoinGuard;
use crate::time::Deadline;
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After a panic in the pull path the ticket comes again so much later.
const AFTER_PANIC: Duration = Duration::from_secs(1);

enum Entry {
    Now(PullTicket),
    Later(Instant, PullTicket),
    Stop,
}

pub(crate) struct PullMessageService {
    // Unbounded by type, bounded by design: exactly one ticket circulates for each queue that a consumer holds.
    sender: Sender<Entry>,
    thread: JoinGuard,
}

impl PullMessageService {
    pub(crate) fn start(registry: Arc<Registry>) -> Result<Self> {
        let (sender, receiver) = unbounded();
        let thread = JoinGuard::spawn("rmq-pull", move || run(&registry, &receiver))?;
        Ok(Self { sender, thread })
    }

    pub(crate) fn submit(&self, ticket: PullTicket) {
        // The receiver is gone only after shutdown, when no queue is held any more.
        let _ = self.sender.send(Entry::Now(ticket));
    }

    pub(crate) fn submit_later(&self, ticket: PullTicket, delay: Duration) {
        let _ = self.sender.send(Entry::Later(Instant::now() + delay, ticket));
    }

    /// Ends the thread; `false` when it is still at work at the deadline, or is the caller.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> bool {
        let _ = self.sender.send(Entry::Stop);
        self.thread.join(deadline)
    }
}

/// A ticket in the heap; earliest first, then in order of arrival.
struct Waiting {
    due: Instant,
    order: u64,
    ticket: PullTicket,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.order) == (other.due, other.order)
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

fn run(registry: &Registry, receiver: &Receiver<Entry>) {
    let mut waiting: BinaryHeap<Reverse<Waiting>> = BinaryHeap::new();
    let mut order = 0u64;
    loop {
        let entry = match waiting.peek() {
            None => match receiver.recv() {
                Ok(entry) => entry,
                Err(_) => return,
            },
            Some(Reverse(next)) => match receiver.recv_deadline(next.due) {
                Ok(entry) => entry,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => match waiting.pop() {
                    Some(Reverse(due)) => Entry::Now(due.ticket),
                    None => continue,
                },
            },
        };
        match entry {
            Entry::Stop => return,
            Entry::Later(due, ticket) => {
                order += 1;
                waiting.push(Reverse(Waiting { due, order, ticket }));
            }
            Entry::Now(ticket) => {
                // An unknown group has stopped: its tickets die here.
                let Some(consumer) = registry.consumer(&ticket.group) else { continue };
                if catch_unwind(AssertUnwindSafe(|| consumer.pull(ticket.clone()))).is_err() {
                    log::error!("pulling {ticket:?} panicked; it is tried again in {AFTER_PANIC:?}");
                    order += 1;
                    waiting.push(Reverse(Waiting { due: Instant::now() + AFTER_PANIC, order, ticket }));
                }
            }
        }
    }
}
