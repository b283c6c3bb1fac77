//! Where code of others runs: callbacks, processors, hooks. On a small pool, or on the reactor's own thread.

use super::config::RemotingConfig;
use super::stats::{Counters, count};
use crate::error::Result;
use crate::sync::{Rank, RwLock};
use crate::thread::{WorkerPool, contain};
use crate::time::Deadline;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) type ConnectedHook = Arc<dyn Fn(&Arc<str>) + Send + Sync>;

/// How long an idle thread of the pool stays. Callbacks of long polls come every few seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Runs code of others, contained.
pub(crate) struct Dispatcher {
    /// None: run on the calling thread, which is the reactor's.
    pool: Option<WorkerPool>,
    /// Resolving blocks for as long as the name server of the system likes, and callbacks may wait for calls that need
    /// a name. So it has threads of its own, which exist only while something is resolved.
    resolvers: WorkerPool,
    max_requests: usize,
    pub(crate) hooks: RwLock<Vec<ConnectedHook>>,
    pub(crate) counters: Arc<Counters>,
}

impl Dispatcher {
    pub(crate) fn new(
        name: &str,
        threads: Option<usize>,
        config: &RemotingConfig,
        counters: &Arc<Counters>,
    ) -> Result<Self> {
        // What may wait in the pool is bounded before it gets here: callbacks by the permits of their calls, requests
        // by `max_requests`, news of connections by the connections.
        let pool = |threads| WorkerPool::new(&format!("{name}-call"), 0, threads, usize::MAX, KEEP_ALIVE);
        Ok(Self {
            pool: threads.map(pool).transpose()?,
            resolvers: WorkerPool::new(&format!("{name}-dns"), 0, 4, config.max_connections, Duration::from_secs(5))?,
            max_requests: config.max_requests,
            hooks: RwLock::new(Rank::Leaf, Vec::new()),
            counters: Arc::clone(counters),
        })
    }

    /// Whether code runs on the reactor's thread.
    pub(crate) fn is_inline(&self) -> bool {
        self.pool.is_none()
    }

    /// Runs a job. When the pool takes none any more, the job is dropped.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        match &self.pool {
            None => self.contained("a callback", job),
            Some(pool) => {
                let counters = Arc::clone(&self.counters);
                let contained = move || {
                    if let Err(panic) = contain(job) {
                        count(&counters.panics);
                        log::error!("a callback or hook panicked: {panic}");
                    }
                };
                if let Err(error) = pool.submit(contained) {
                    log::debug!("{error}");
                }
            }
        }
    }

    /// Runs a job for a request of a peer. Returns false, and drops it, when too many wait.
    pub(crate) fn run_request(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let Some(pool) = &self.pool else {
            self.contained("a request processor", job);
            return true;
        };
        if self.counters.queued_requests.fetch_add(1, Ordering::Relaxed) >= self.max_requests {
            self.counters.queued_requests.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let counters = Arc::clone(&self.counters);
        let submitted = pool.submit(move || {
            counters.queued_requests.fetch_sub(1, Ordering::Relaxed);
            job();
        });
        if submitted.is_err() {
            self.counters.queued_requests.fetch_sub(1, Ordering::Relaxed);
        }
        submitted.is_ok()
    }

    /// Runs a job that may block in the system's resolver. Returns false, and drops it, when too many wait.
    pub(crate) fn resolve(&self, job: impl FnOnce() + Send + 'static) -> bool {
        self.resolvers.submit(job).is_ok()
    }

    fn contained(&self, what: &str, job: impl FnOnce()) {
        if let Err(panic) = contain(job) {
            count(&self.counters.panics);
            log::error!("{what} panicked: {panic}");
        }
    }

    /// Lets the queued jobs run and joins the threads. A resolver that hangs in the system is not waited for: it holds
    /// nothing that anybody needs.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> bool {
        self.resolvers.shutdown(Deadline::after(Duration::ZERO));
        self.pool.as_ref().is_none_or(|pool| pool.shutdown(deadline))
    }
}

/// The outcome of resolving one host name.
pub(crate) type Resolved = std::io::Result<Vec<SocketAddr>>;
