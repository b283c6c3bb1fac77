//! The scheduled executor: jobs that run by the clock or on demand, on a small elastic pool.
//!
//! A job never overlaps itself, and one that hangs delays no other: the timer thread only hands a due job to the pool,
//! which grows while its workers are busy (field report 12: one thread for all housekeeping stalls everything behind a
//! dead address).

use crate::error::Result;
use crate::sync::{Mutex, Rank};
use crate::thread::{Timer, WorkerPool};
use crate::time::Deadline;
use std::sync::Arc;
use std::time::Duration;

/// Workers at the most: the kinds of jobs of an instance, and some for work started by answers.
const MOST_WORKERS: usize = 8;
const KEEP_ALIVE: Duration = Duration::from_secs(30);

pub(crate) struct ScheduledExecutor {
    timer: Timer,
    pool: WorkerPool,
}

impl ScheduledExecutor {
    pub(crate) fn start() -> Result<Arc<Self>> {
        let pool = WorkerPool::new("rmq-house", 1, MOST_WORKERS, 65_536, KEEP_ALIVE)?;
        Ok(Arc::new(Self { timer: Timer::start("rmq-timer")?, pool }))
    }

    /// Hands `work` to another thread's queue, `delay` from now. It runs on the timer thread and must not block.
    pub(crate) fn hand_over_after(&self, delay: Duration, work: impl FnOnce() + Send + 'static) {
        self.timer.schedule(delay, work);
    }

    /// Runs `work` on the pool.
    pub(crate) fn soon(&self, work: impl FnOnce() + Send + 'static) {
        if let Err(error) = self.pool.submit(work) {
            log::warn!("a housekeeping job was not run: {error}");
        }
    }

    pub(crate) fn shutdown(&self, deadline: Deadline) -> bool {
        self.timer.shutdown();
        self.pool.shutdown(deadline)
    }
}

/// A job with a period that can also be asked to run now.
pub(crate) struct Job {
    executor: std::sync::Weak<ScheduledExecutor>,
    work: Box<dyn Fn() -> Duration + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: bool,
    again: bool,
    stopped: bool,
    /// The timer entry that counts; entries of earlier arms find another number and do nothing.
    armed: u64,
}

impl Job {
    /// `work` returns how long to wait until its next run.
    pub(crate) fn new(
        executor: &Arc<ScheduledExecutor>,
        work: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            executor: Arc::downgrade(executor),
            work: Box::new(work),
            state: Mutex::new(Rank::Thread, State::default()),
        })
    }

    /// Runs it `delay` from now instead of when it was due.
    pub(crate) fn run_after(self: &Arc<Self>, delay: Duration) {
        let armed = {
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            state.armed += 1;
            state.armed
        };
        let Some(executor) = self.executor.upgrade() else { return };
        let job = Arc::downgrade(self);
        executor.hand_over_after(delay, move || {
            if let Some(job) = job.upgrade()
                && job.state.lock().armed == armed
            {
                job.run_now();
            }
        });
    }

    /// Runs it on the pool at once, or once more after the run that is under way.
    pub(crate) fn run_now(self: &Arc<Self>) {
        {
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            if state.running {
                state.again = true;
                return;
            }
            state.running = true;
        }
        let Some(executor) = self.executor.upgrade() else { return };
        let job = self.clone();
        executor.soon(move || job.run());
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
    }

    fn run(self: &Arc<Self>) {
        let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.work)())).unwrap_or_else(|_| {
            log::error!("a housekeeping job panicked; it goes on with its next run");
            Duration::from_secs(1)
        });
        let again = {
            let mut state = self.state.lock();
            state.running = false;
            std::mem::take(&mut state.again)
        };
        if again {
            self.run_now();
        } else {
            self.run_after(next);
        }
    }
}
