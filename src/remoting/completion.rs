//! How the outcome of a call reaches its waiter: a blocked thread, or a callback. Exactly once, on every path.
//!
//! Whoever holds a [`Completion`] owes its waiter an outcome. One that is dropped without (an operation that came after
//! the reactor's end, a panic on the way) tells its waiter that the client is gone.

use super::dispatcher::Dispatcher;
use super::stats::Counters;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::RemotingCommand;
use crate::sync::{Condvar, Mutex, Rank};
use crate::thread::contain;
use crate::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) type Outcome = Result<RemotingCommand>;
type Callback = Box<dyn FnOnce(Outcome) + Send>;

/// A place in the table of open calls, given back when dropped.
pub(crate) struct Permit(Arc<Counters>);

impl Permit {
    /// Takes a place when fewer than `max` are taken.
    pub(crate) fn take(counters: &Arc<Counters>, max: usize) -> Result<Self> {
        if counters.pending.fetch_add(1, Ordering::Relaxed) >= max {
            counters.pending.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::new(
                ErrorKind::Busy,
                format!("{max} calls wait for an answer already; send fewer at a time"),
            ));
        }
        Ok(Self(Arc::clone(counters)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a blocked thread finds its outcome.
pub(crate) struct Slot {
    state: Mutex<SlotState>,
    filled: Condvar,
}

enum SlotState {
    Empty,
    Filled(Box<Outcome>),
    /// The waiter has left; the outcome is for nobody.
    Abandoned,
}

impl Slot {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(Rank::Thread, SlotState::Empty), filled: Condvar::new() })
    }

    /// Waits for the outcome. The reactor watches the call's deadline and knows what the call was waiting for, so the
    /// waiter gives it a moment more before it leaves by itself.
    pub(crate) fn wait(&self, deadline: Deadline) -> Outcome {
        const GRACE: Duration = Duration::from_millis(200);
        let leave = Deadline::after(deadline.remaining().saturating_add(GRACE));
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, SlotState::Empty) {
                SlotState::Filled(outcome) => return *outcome,
                SlotState::Empty | SlotState::Abandoned => {}
            }
            let remaining = leave.remaining();
            if remaining.is_zero() {
                *state = SlotState::Abandoned;
                return Err(Error::new(ErrorKind::Timeout, "no answer in time, and the I/O thread is late, too"));
            }
            state = self.filled.wait_timeout(state, remaining);
        }
    }

    fn fill(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        if matches!(*state, SlotState::Empty) {
            *state = SlotState::Filled(Box::new(outcome));
            drop(state); // the waiter finds the lock free when it wakes
            self.filled.notify_one();
        }
    }
}

/// The debt of one outcome to one waiter.
pub(crate) struct Completion {
    to: Option<To>,
}

enum To {
    Thread(Arc<Slot>, Permit),
    Callback(PendingCallback),
}

impl Completion {
    pub(crate) fn to_thread(slot: Arc<Slot>, permit: Permit) -> Self {
        Self { to: Some(To::Thread(slot, permit)) }
    }

    pub(crate) fn to_callback(callback: Callback, permit: Permit) -> Self {
        Self {
            to: Some(To::Callback(PendingCallback { callback: Some(callback), outcome: None, permit: Some(permit) })),
        }
    }

    /// Delivers the outcome: wakes the thread, or hands the callback to the pool.
    pub(crate) fn complete(mut self, outcome: Outcome, dispatcher: &Dispatcher) {
        match self.to.take() {
            Some(To::Thread(slot, permit)) => {
                drop(permit); // before the thread goes on, so that it finds the table as it left it
                slot.fill(outcome);
            }
            Some(To::Callback(mut callback)) => {
                callback.outcome = Some(outcome);
                dispatcher.run(move || callback.run());
            }
            None => {}
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(To::Thread(slot, permit)) = self.to.take() {
            drop(permit);
            slot.fill(Err(gone()));
        }
        // A callback runs in its own drop.
    }
}

/// A callback with its outcome. When no pool takes it any more it runs where it is dropped: late is better than never.
struct PendingCallback {
    callback: Option<Callback>,
    outcome: Option<Outcome>,
    /// Held until the callback is through, so that the open calls bound the callbacks that wait as well.
    permit: Option<Permit>,
}

impl PendingCallback {
    fn run(&mut self) {
        let Some(callback) = self.callback.take() else { return };
        let outcome = self.outcome.take().unwrap_or_else(|| Err(gone()));
        if let Err(panic) = contain(move || callback(outcome)) {
            log::error!("the callback of a call panicked: {panic}");
            if let Some(permit) = &self.permit {
                permit.0.panics.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for PendingCallback {
    fn drop(&mut self) {
        self.run();
    }
}

/// Runs a callback that has not become a call: there was no permit, or nothing that could be sent.
pub(crate) fn refuse(callback: Callback, error: Error, dispatcher: &Dispatcher) {
    let mut callback = PendingCallback { callback: Some(callback), outcome: Some(Err(error)), permit: None };
    dispatcher.run(move || callback.run());
}

fn gone() -> Error {
    Error::new(ErrorKind::Closed, "the client was shut down before the answer came")
}
