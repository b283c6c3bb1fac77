//! An elastic pool of threads that run jobs from one bounded queue.
//!
//! A thread is added when a job finds none idle and the maximum is not reached, and leaves after `keep_alive` without
//! work while there are more than the minimum. Nothing is started before the first job. A panic ends the job, not the
//! thread; it is logged and counted.

use super::{contain, spawn_named};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Condvar, Mutex, MutexGuard, Rank};
use crate::time::Deadline;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// The pool; see the module's text. Dropping it refuses new jobs and lets the queued ones run, without waiting.
pub struct WorkerPool {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    state: Mutex<State>,
    /// Idle workers wait here.
    work: Condvar,
    /// Who waits for the end of the workers waits here.
    ended: Condvar,
    panics: AtomicU64,
    keep_alive: Duration,
    capacity: usize,
}

struct State {
    queue: VecDeque<Job>,
    min: usize,
    max: usize,
    /// Workers that run or are about to.
    threads: usize,
    /// Workers that wait for work.
    idle: usize,
    /// How many of the idle ones were woken and have not come round yet. While there is one, no other is woken: it
    /// takes the first job, and wakes the next worker when more are left. So a burst of short jobs wakes one worker or
    /// two and not one for each job, and no job pays for a system call that wakes nobody.
    woken: usize,
    closed: bool,
    next_number: u64,
    /// Threads that have not been joined. One that leaves by itself takes its handle out.
    handles: HashMap<ThreadId, JoinHandle<()>>,
}

impl WorkerPool {
    /// A pool of `min` to `max` threads named `name` and a number, with at most `capacity` jobs waiting.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when `max` is zero or below `min`.
    pub fn new(name: &str, min: usize, max: usize, capacity: usize, keep_alive: Duration) -> Result<Self> {
        if max == 0 || max < min {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "thread pool {name}: at most {max} threads with a minimum of {min}; the maximum must be at least 1 and not below the minimum"
                ),
            ));
        }
        let state = State {
            queue: VecDeque::new(),
            min,
            max,
            threads: 0,
            idle: 0,
            woken: 0,
            closed: false,
            next_number: 1,
            handles: HashMap::new(),
        };
        let shared = Shared {
            name: name.to_owned(),
            state: Mutex::new(Rank::Thread, state),
            work: Condvar::new(),
            ended: Condvar::new(),
            panics: AtomicU64::new(0),
            keep_alive,
            capacity,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Queues a job.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] when `capacity` jobs wait, [`ErrorKind::State`] after [`shutdown`](Self::shutdown),
    /// [`ErrorKind::Io`] when there is no thread yet and none can be started. The job is dropped then.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let job: Job = Box::new(job);
        let mut state = self.shared.state.lock();
        self.check(&state)?;
        if state.queue.len() >= state.idle && state.threads < state.max {
            match self.start_worker(&mut state) {
                Ok(()) => {}
                Err(error) if state.threads == 0 => return Err(error),
                Err(error) => log::warn!("{error}; {} threads of the pool go on", state.threads),
            }
        }
        state.queue.push_back(job);
        self.shared.wake_another(state);
        Ok(())
    }

    fn check(&self, state: &State) -> Result<()> {
        if state.closed {
            return Err(Error::new(ErrorKind::State, format!("thread pool {} is shut down", self.shared.name)));
        }
        if state.queue.len() >= self.shared.capacity {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("thread pool {}: {} jobs wait already", self.shared.name, self.shared.capacity),
            ));
        }
        Ok(())
    }

    /// Under the lock, so that the thread cannot end before its handle is kept. Threads are started rarely.
    fn start_worker(&self, state: &mut State) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = spawn_named(&format!("{}-{}", self.shared.name, state.next_number), move || shared.work())?;
        state.next_number += 1;
        state.threads += 1;
        state.handles.insert(thread.thread().id(), thread);
        Ok(())
    }

    /// Refuses new jobs, lets the queued ones run and waits for the threads to end. Returns whether all have.
    ///
    /// When the deadline comes first, the threads that are left go on with what is queued and end after it. A job of
    /// the pool may call this: its own thread is not waited for, and the answer is false.
    pub fn shutdown(&self, deadline: Deadline) -> bool {
        let mut state = self.shared.state.lock();
        state.closed = true;
        self.shared.work.notify_all();
        let own = usize::from(state.handles.contains_key(&std::thread::current().id()));
        while state.threads > own {
            let remaining = deadline.remaining();
            if remaining.is_zero() {
                return false;
            }
            state = self.shared.ended.wait_timeout(state, remaining);
        }
        if own > 0 {
            return false;
        }
        // They have given up their place in `threads` as their last act, so that no join takes long.
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        for (_, handle) in handles {
            if handle.join().is_err() {
                log::error!("a thread of the pool {} ended by a panic", self.shared.name);
            }
        }
        true
    }

    /// Changes the bounds; a maximum below the minimum or of zero is raised. Threads in excess leave after their job.
    pub fn resize(&self, min: usize, max: usize) {
        let mut state = self.shared.state.lock();
        state.min = min;
        state.max = max.max(min).max(1);
        self.shared.work.notify_all();
    }

    /// How many threads there are now.
    pub fn threads(&self) -> usize {
        self.shared.state.lock().threads
    }

    /// How many jobs wait.
    pub fn queued(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// How many jobs have panicked.
    pub fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Gives up the lock and wakes one worker when there is a job, one that sleeps, and none on its way.
    fn wake_another(&self, mut state: MutexGuard<'_, State>) {
        let wake = !state.queue.is_empty() && state.idle > 0 && state.woken == 0;
        if wake {
            state.woken = 1;
        }
        drop(state);
        if wake {
            self.work.notify_one();
        }
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if state.threads > state.max {
                break;
            }
            if let Some(job) = state.queue.pop_front() {
                self.wake_another(state);
                if let Err(panic) = contain(job) {
                    self.panics.fetch_add(1, Ordering::Relaxed);
                    log::error!("a job of the thread pool {} panicked: {panic}", self.name);
                }
                state = self.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            let spare = state.threads > state.min;
            let rest = Deadline::after(self.keep_alive);
            state.idle += 1;
            state = if spare { self.work.wait_timeout(state, self.keep_alive) } else { self.work.wait(state) };
            state.idle -= 1;
            // Whoever comes round takes a wake-up off the count, also one that was meant for another: that one finds
            // the count at zero or the queue empty and sleeps again. More are never owed than sleep.
            state.woken = state.woken.saturating_sub(1).min(state.idle);
            if spare && state.queue.is_empty() && rest.is_over() && state.threads > state.min {
                break;
            }
        }
        state.threads -= 1;
        if !state.closed {
            // Leaving on its own: nobody is going to join it.
            state.handles.remove(&std::thread::current().id());
        }
        // Another may have to take over what a thread in excess left.
        self.wake_another(state);
        self.ended.notify_all();
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.work.notify_all();
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("WorkerPool")
            .field("name", &self.shared.name)
            .field("threads", &state.threads)
            .field("queued", &state.queue.len())
            .field("closed", &state.closed)
            .finish()
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
