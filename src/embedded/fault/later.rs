//! Runs what was delayed, by the clock of the cluster.

use super::table::FaultTable;
use crate::sync::{Condvar, Mutex, Rank};
use crate::thread::spawn_named;
use crate::time::Clock;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Most that is delayed at once; what comes beyond is lost.
const MOST: usize = 100_000;
/// Longest delay.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

#[derive(Default)]
struct Inner {
    jobs: BTreeMap<(Instant, u64), Job>,
    added: u64,
    /// Started with the first job.
    thread: Option<JoinHandle<()>>,
    stopped: bool,
}

pub(super) struct Later {
    clock: Clock,
    inner: Mutex<Inner>,
    wake: Condvar,
}

impl Later {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, inner: Mutex::new(Rank::Leaf, Inner::default()), wake: Condvar::new() }
    }

    /// Runs `job` so much later; `table` is the one that this belongs to.
    pub(super) fn add(&self, table: &Arc<FaultTable>, by: Duration, job: Job) {
        let mut inner = self.inner.lock();
        if inner.stopped || inner.jobs.len() >= MOST {
            return;
        }
        if inner.thread.is_none() {
            let table = table.clone();
            match spawn_named("rmq-embed-flt", move || table.delayed().run()) {
                Ok(thread) => inner.thread = Some(thread),
                // With a clock that is moved by hand it goes without.
                Err(error) => log::error!("embedded cluster: nothing is delayed without a thread: {error}"),
            }
        }
        // An Instant cannot hold every time, and nobody waits longer than that.
        let at = (self.clock.now() + by.min(LONGEST), inner.added);
        inner.added += 1;
        inner.jobs.insert(at, job);
        self.wake.notify_all();
    }

    pub(super) fn run_due(&self) {
        while let Some(job) = self.pop_due() {
            // As a server contains a panic of its processor; the others must go on.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                log::error!("embedded cluster: a request that was delayed has panicked");
            }
        }
    }

    /// Ends the thread and forgets what is delayed.
    pub(super) fn stop(&self) {
        let thread = {
            let mut inner = self.inner.lock();
            inner.stopped = true;
            inner.jobs.clear();
            self.wake.notify_all();
            inner.thread.take()
        };
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            log::error!("embedded cluster: what was delayed has panicked");
        }
    }

    fn pop_due(&self) -> Option<Job> {
        let mut inner = self.inner.lock();
        let entry = inner.jobs.first_entry()?;
        (entry.key().0 <= self.clock.now()).then(|| entry.remove())
    }

    fn run(&self) {
        loop {
            self.run_due();
            let inner = self.inner.lock();
            if inner.stopped {
                return;
            }
            let now = self.clock.now();
            match inner.jobs.first_key_value().map(|((due, _), _)| *due) {
                Some(due) if due <= now => {}
                Some(due) => drop(self.wake.wait_timeout(inner, due - now)),
                None => drop(self.wake.wait(inner)),
            }
        }
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Later({} jobs)", self.inner.lock().jobs.len())
    }
}
