//! The server's side: listeners, on the same reactor.

use super::config::RemotingConfig;
use super::processor::RequestProcessor;
use super::reactor::{Reactor, Running};
use super::stats::RemotingStats;
use crate::error::{Error, ErrorKind, Result};
use crate::time::Deadline;
use mio::net::TcpListener;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Where the requests of a server are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// On the I/O thread: for processors that only look into memory and never block. Everything happens in the order
    /// in which it came in; callbacks of [`ConnectionHandle::invoke_async`](super::ConnectionHandle::invoke_async)
    /// run there, too.
    Inline,
    /// On a pool of at most this many threads.
    Pool(usize),
}

/// Accepts connections and answers requests. Dropping it shuts it down, as [`shutdown`](Self::shutdown) with two
/// seconds.
pub struct RemotingServer {
    running: Running,
    local_addrs: Vec<SocketAddr>,
}

impl RemotingServer {
    /// Listens on the addresses and starts the I/O thread. Port 0 takes a free port; see
    /// [`local_addrs`](Self::local_addrs).
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when one of the addresses cannot be listened on, or the system has no more threads to give.
    pub fn start(
        name: &str,
        bind: &[SocketAddr],
        config: RemotingConfig,
        processor: Arc<dyn RequestProcessor>,
        dispatch: Dispatch,
    ) -> Result<Self> {
        let mut listeners = Vec::with_capacity(bind.len());
        let mut local_addrs = Vec::with_capacity(bind.len());
        for address in bind {
            let listening = TcpListener::bind(*address).and_then(|socket| Ok((socket.local_addr()?, socket)));
            let (local, socket) = listening.map_err(|source| {
                Error::new(ErrorKind::Io, format!("cannot listen: {source}"))
                    .with_address(address.to_string())
                    .with_source(source)
            })?;
            local_addrs.push(local);
            listeners.push(socket);
        }
        let threads = match dispatch {
            Dispatch::Inline => None,
            Dispatch::Pool(threads) => Some(threads.max(1)),
        };
        Ok(Self { running: Reactor::start(name, config, processor, threads, listeners)?, local_addrs })
    }

    /// The addresses it listens on, in the order in which they were given, with the ports that were chosen.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.stats().connections
    }

    /// Sizes of the tables, and what has happened so far.
    pub fn stats(&self) -> RemotingStats {
        self.running.handle.counters.snapshot()
    }

    /// Stops listening, writes what is queued (for a second at most), closes all connections and joins the threads.
    /// Returns whether all have ended by the deadline; false also when a processor of the server calls this.
    pub fn shutdown(&self, deadline: Deadline) -> bool {
        self.running.shutdown(deadline)
    }
}

impl Drop for RemotingServer {
    fn drop(&mut self) {
        self.shutdown(Deadline::after(Duration::from_secs(2)));
    }
}

impl fmt::Debug for RemotingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemotingServer")
            .field("local_addrs", &self.local_addrs)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
