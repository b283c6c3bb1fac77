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
    /// When that entry is due, if somebody asked for it. A run that ends meanwhile may not put it off: what was asked for
    /// during the run is not done by the run.
    asked_for: Option<Deadline>,
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
        self.arm(delay, true);
    }

    fn arm(self: &Arc<Self>, delay: Duration, is_asked_for: bool) {
        let armed = {
            let mut state = self.state.lock();
            let due = Deadline::after(delay);
            if state.stopped || (!is_asked_for && state.asked_for.is_some_and(|asked_for| asked_for <= due)) {
                return;
            }
            state.asked_for = is_asked_for.then_some(due);
            state.armed += 1;
            state.armed
        };
        let Some(executor) = self.executor.upgrade() else { return };
        let job = Arc::downgrade(self);
        executor.hand_over_after(delay, move || {
            if let Some(job) = job.upgrade()
                && job.is_due(armed)
            {
                job.run_now();
            }
        });
    }

    fn is_due(&self, armed: u64) -> bool {
        let mut state = self.state.lock();
        let is_due = state.armed == armed;
        if is_due {
            state.asked_for = None;
        }
        is_due
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
            self.arm(next, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam::channel::{Receiver, Sender, bounded, unbounded};

    const LONG: Duration = Duration::from_secs(60);
    const NEVER: Duration = Duration::from_secs(3_600);

    /// A job that says when it begins and waits until it may end; it returns `next`.
    fn job(executor: &Arc<ScheduledExecutor>, next: Duration) -> (Arc<Job>, Receiver<()>, Sender<()>) {
        let (begin, begun) = unbounded();
        let (end, ended) = bounded(0);
        let job = Job::new(executor, move || {
            begin.send(()).unwrap();
            ended.recv_timeout(LONG).unwrap();
            next
        });
        (job, begun, end)
    }

    #[test]
    fn a_run_that_ends_does_not_put_off_what_was_asked_for_meanwhile() {
        let executor = ScheduledExecutor::start().unwrap();
        let (job, begun, end) = job(&executor, NEVER);
        job.run_now();
        begun.recv_timeout(LONG).unwrap();
        job.run_after(Duration::from_millis(200));
        end.send(()).unwrap();
        begun.recv_timeout(LONG).expect("the run that was asked for");
        job.stop();
        end.send(()).unwrap();
        assert!(executor.shutdown(Deadline::after(LONG)));
    }

    #[test]
    fn a_run_that_wants_another_one_sooner_than_was_asked_for_gets_it() {
        let executor = ScheduledExecutor::start().unwrap();
        let (job, begun, end) = job(&executor, Duration::from_millis(1));
        job.run_after(NEVER);
        job.run_now();
        for _ in 0..3 {
            begun.recv_timeout(LONG).expect("the next run");
            end.send(()).unwrap();
        }
        begun.recv_timeout(LONG).unwrap();
        job.stop();
        end.send(()).unwrap();
        assert!(executor.shutdown(Deadline::after(LONG)));
    }
}
