//! A latch that is set once, and a thread that can be joined with a deadline.

use super::spawn_named;
use crate::error::Result;
use crate::sync::{Condvar, Mutex, Rank};
use crate::time::Deadline;
use std::fmt;
use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

/// Set once and never reset; any number of threads may wait for it. Clones share it.
#[derive(Clone)]
pub struct Latch {
    inner: Arc<(Mutex<bool>, Condvar)>,
}

impl Latch {
    /// A latch that is not set.
    pub fn new() -> Self {
        Self { inner: Arc::new((Mutex::new(Rank::Thread, false), Condvar::new())) }
    }

    /// Sets the latch and wakes all who wait. Returns whether this call was the one that set it.
    pub fn set(&self) -> bool {
        let before = std::mem::replace(&mut *self.inner.0.lock(), true);
        self.inner.1.notify_all();
        !before
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        *self.inner.0.lock()
    }

    /// Waits until it is set, for at most `timeout`. Returns whether it is set.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_until(Deadline::after(timeout))
    }

    /// Waits until it is set, at most until `deadline`. Returns whether it is set.
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        let mut set = self.inner.0.lock();
        while !*set {
            let remaining = deadline.remaining();
            if remaining.is_zero() {
                return false;
            }
            set = self.inner.1.wait_timeout(set, remaining);
        }
        true
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Latch").field(&self.is_set()).finish()
    }
}

/// A named thread whose end can be waited for with a deadline. Dropping it lets the thread go on alone.
#[derive(Debug)]
pub struct JoinGuard {
    ended: Latch,
    thread: Mutex<Option<JoinHandle<()>>>,
    id: ThreadId,
}

/// Sets the latch when the thread's closure is over, also by a panic.
struct SetOnDrop(Latch);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl JoinGuard {
    /// Starts the thread; see [`spawn_named`].
    ///
    /// # Errors
    /// As [`spawn_named`].
    pub fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> Result<Self> {
        let ended = Latch::new();
        let guard = SetOnDrop(ended.clone());
        let thread = spawn_named(name, move || {
            let _guard = guard;
            f();
        })?;
        let id = thread.thread().id();
        Ok(Self { ended, thread: Mutex::new(Rank::Thread, Some(thread)), id })
    }

    /// Waits until the thread is over. Returns false when the deadline came first, and at once when the thread asks
    /// for its own end.
    pub fn join(&self, deadline: Deadline) -> bool {
        if self.is_current() || !self.ended.wait_until(deadline) {
            return false;
        }
        // The closure is over, so that this waits for no more than the thread's last instructions.
        let thread = self.thread.lock().take();
        if let Some(Err(_)) = thread.map(JoinHandle::join) {
            log::error!("a service thread ended by a panic");
        }
        true
    }

    /// Whether the calling thread is this one.
    pub fn is_current(&self) -> bool {
        std::thread::current().id() == self.id
    }

    /// Whether the thread is over.
    pub fn is_over(&self) -> bool {
        self.ended.is_set()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latch_wakes_those_who_wait() {
        let latch = Latch::new();
        assert!(!latch.wait_timeout(Duration::ZERO));
        let waiter = latch.clone();
        let thread = JoinGuard::spawn("test-latch", move || assert!(waiter.wait_timeout(Duration::from_secs(10))));
        assert!(latch.set());
        assert!(!latch.set(), "only the first call sets it");
        assert!(thread.expect("a thread").join(Deadline::after(Duration::from_secs(10))));
    }

    #[test]
    fn join_gives_up_at_its_deadline_and_works_later() {
        let go = Latch::new();
        let wait = go.clone();
        let thread = JoinGuard::spawn("test-join", move || {
            wait.wait_timeout(Duration::from_secs(10));
        })
        .expect("a thread");
        assert!(!thread.join(Deadline::after(Duration::from_millis(5))));
        assert!(!thread.is_over());
        go.set();
        assert!(thread.join(Deadline::after(Duration::from_secs(10))));
        assert!(thread.join(Deadline::after(Duration::ZERO)), "joining twice is no error");
    }

    #[test]
    fn a_thread_that_panicked_counts_as_over() {
        let thread = JoinGuard::spawn("test-panic", || panic!("on purpose")).expect("a thread");
        assert!(thread.join(Deadline::after(Duration::from_secs(10))));
    }
}
