//! One thread that runs small hand-over closures at their time.
//!
//! The closures push to a channel or submit to a pool; they never block and never do the work themselves, because all
//! that is due later waits for them. The thread sleeps until the next item is due and has no tick.

use super::{JoinGuard, contain};
use crate::error::Result;
use crate::sync::{Condvar, Mutex, Rank};
use crate::time::Deadline;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The timer; see the module's text. Dropping it drops what waits, as [`shutdown`](Self::shutdown) does, but does not
/// wait for the thread.
pub struct Timer {
    shared: Arc<Shared>,
    thread: JoinGuard,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: BinaryHeap<Item>,
    next_sequence: u64,
    closed: bool,
}

struct Item {
    at: Instant,
    /// Keeps items of one moment in the order in which they came.
    sequence: u64,
    run: Box<dyn FnOnce() + Send>,
}

impl Timer {
    /// Starts the timer's thread.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) when the system has no more threads to give.
    pub fn start(name: &str) -> Result<Self> {
        let state = State { waiting: BinaryHeap::new(), next_sequence: 0, closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(Rank::Thread, state), changed: Condvar::new() });
        let thread = JoinGuard::spawn(name, {
            let shared = Arc::clone(&shared);
            move || shared.run()
        })?;
        Ok(Self { shared, thread })
    }

    /// Runs `f` on the timer's thread after `delay`. After [`shutdown`](Self::shutdown) it is dropped at once.
    pub fn schedule(&self, delay: Duration, f: impl FnOnce() + Send + 'static) {
        let at = Deadline::after(delay).instant();
        let mut state = self.shared.state.lock();
        if state.closed {
            drop(state); // what the closure owns is dropped outside the lock
            return;
        }
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        let is_first = state.waiting.peek().is_none_or(|first| at < first.at);
        state.waiting.push(Item { at, sequence, run: Box::new(f) });
        drop(state);
        if is_first {
            self.shared.changed.notify_one();
        }
    }

    /// How many items wait.
    pub fn waiting(&self) -> usize {
        self.shared.state.lock().waiting.len()
    }

    /// Drops what waits and joins the thread, unless the call comes from one of its own closures.
    pub fn shutdown(&self) {
        self.close();
        self.thread.join(Deadline::after(Duration::MAX));
    }

    fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        drop(dropped);
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        while !state.closed {
            let now = Instant::now();
            state = match state.waiting.peek().map(|first| first.at) {
                None => self.changed.wait(state),
                Some(at) if at > now => self.changed.wait_timeout(state, at - now),
                Some(_) => {
                    let due = state.waiting.pop();
                    drop(state);
                    if let Some(Err(panic)) = due.map(|item| contain(item.run)) {
                        log::error!("an item of a timer panicked: {panic}");
                    }
                    self.state.lock()
                }
            };
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

// The heap gives its greatest item first: the earliest is the greatest.
impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam::channel::unbounded;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn items_run_in_the_order_of_their_times() {
        let timer = Timer::start("test-timer").expect("a thread");
        let (tx, rx) = unbounded();
        for (delay, name) in [(60, "third"), (20, "second"), (0, "first")] {
            let tx = tx.clone();
            timer.schedule(Duration::from_millis(delay), move || tx.send(name).expect("the test listens"));
        }
        let got: Vec<_> = (0..3).map(|_| rx.recv_timeout(PATIENCE).expect("an item")).collect();
        assert_eq!(got, ["first", "second", "third"]);
        assert_eq!(timer.waiting(), 0);
    }

    #[test]
    fn a_panic_does_not_end_the_timer() {
        let timer = Timer::start("test-timer").expect("a thread");
        let (tx, rx) = unbounded();
        timer.schedule(Duration::ZERO, || panic!("on purpose"));
        timer.schedule(Duration::ZERO, move || tx.send(()).expect("the test listens"));
        rx.recv_timeout(PATIENCE).expect("the second item");
    }

    #[test]
    fn shutdown_drops_what_waits_and_joins() {
        let timer = Timer::start("test-timer").expect("a thread");
        let (tx, rx) = unbounded::<()>();
        timer.schedule(Duration::MAX, move || drop(tx));
        timer.shutdown();
        assert!(rx.recv_timeout(PATIENCE).is_err(), "the item was dropped and not run");
        assert!(timer.thread.is_over());
        timer.schedule(Duration::ZERO, || panic!("a closed timer runs nothing"));
        assert_eq!(timer.waiting(), 0);
    }

    #[test]
    fn shutdown_from_an_item_does_not_wait_for_itself() {
        let timer = Arc::new(Timer::start("test-timer").expect("a thread"));
        let (tx, rx) = unbounded();
        let inner = Arc::clone(&timer);
        timer.schedule(Duration::ZERO, move || {
            inner.shutdown();
            tx.send(()).expect("the test listens");
        });
        rx.recv_timeout(PATIENCE).expect("the item came to its end");
        assert!(timer.thread.join(Deadline::after(PATIENCE)));
    }
}
