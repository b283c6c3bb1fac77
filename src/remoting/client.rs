//! The client's side: calls to addresses.

use super::call::{Call, closed, encode};
use super::completion::Outcome;
use super::config::RemotingConfig;
use super::op::Op;
use super::processor::RequestProcessor;
use super::reactor::{Reactor, Running};
use super::stats::RemotingStats;
use super::wire::Frame;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{RemotingCommand, new_opaque};
use crate::time::Deadline;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Calls name servers and brokers, over one connection an address, and serves the requests they send back.
///
/// Dropping it shuts it down, as [`shutdown`](Self::shutdown) with two seconds.
pub struct RemotingClient {
    running: Running,
}

impl RemotingClient {
    /// Starts the I/O thread. `name` is the front part of the names of all threads; requests of peers go to `processor`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the system has no more threads or handles to give.
    pub fn start(name: &str, config: RemotingConfig, processor: Arc<dyn RequestProcessor>) -> Result<Self> {
        let threads = Some(config.call_threads.max(1));
        Ok(Self { running: Reactor::start(name, config, processor, threads, Vec::new())? })
    }

    /// Sends a request and waits for the answer, whatever its code is. The command's opaque is replaced.
    ///
    /// `timeout` covers everything: the dial, and sending the request once more when the peer says that it goes away.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] when there is no connection and none came about, [`ErrorKind::Closed`] when it ended,
    /// [`ErrorKind::Timeout`] when no answer came, [`ErrorKind::Broker`] with code 1500 when the peer goes away and so
    /// does the one that answers in its place, [`ErrorKind::Busy`] when too much is under way, [`ErrorKind::State`]
    /// after shutdown, [`ErrorKind::MessageIllegal`] when the frame is too large.
    pub fn invoke(&self, address: &Arc<str>, command: RemotingCommand, timeout: Duration) -> Result<RemotingCommand> {
        let reactor = &self.running.handle;
        let prepared = Call::blocking(reactor, address, command, timeout);
        let (call, slot) = prepared.map_err(|error| error.with_address(&**address))?;
        let deadline = call.deadline;
        reactor.push(Op::Call { call });
        slot.wait(deadline).map_err(|error| error.with_address(&**address))
    }

    /// As [`invoke`](Self::invoke), but gives the outcome to `callback`: exactly once, on the pool. While it runs it
    /// holds one of the pool's few threads.
    pub fn invoke_async(
        &self,
        address: &Arc<str>,
        command: RemotingCommand,
        timeout: Duration,
        callback: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        let callback: Box<dyn FnOnce(Outcome) + Send> = Box::new(callback);
        let Running { handle, dispatcher, .. } = &self.running;
        if let Some(call) = Call::with_callback(handle, dispatcher, Some(address), command, timeout, callback) {
            handle.push(Op::Call { call });
        }
    }

    /// Queues a request that gets no answer. That it was queued says nothing about its arrival: without a connection
    /// one is dialled, and when that fails the request is dropped and counted.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] when too much is queued, [`ErrorKind::State`] after shutdown,
    /// [`ErrorKind::MessageIllegal`] when the frame is too large.
    pub fn invoke_oneway(&self, address: &Arc<str>, command: RemotingCommand) -> Result<()> {
        let reactor = &self.running.handle;
        let mut command = command.oneway();
        command.opaque = new_opaque();
        let head = encode(&command, reactor.config.max_frame).map_err(|error| error.with_address(&**address))?;
        if reactor.is_closed() {
            return Err(closed().with_address(&**address));
        }
        if reactor.counters.queued_operations.load(Ordering::Relaxed) >= reactor.config.max_pending {
            return Err(Error::new(ErrorKind::Busy, "too many requests are queued").with_address(&**address));
        }
        reactor.push(Op::SendTo { address: Arc::clone(address), frame: Frame { head, body: command.body } });
        Ok(())
    }

    /// Closes the connection to an address, if there is one, and forgets the address. Calls under way fail.
    pub fn close_connection(&self, address: &Arc<str>) {
        self.running.handle.push(Op::CloseAddress { address: Arc::clone(address) });
    }

    /// Whether there is an open connection to the address that takes calls.
    pub fn is_connected(&self, address: &str) -> bool {
        self.running.handle.connected.lock().contains(address)
    }

    /// Adds a hook that runs on the pool for each new connection, with the address it was dialled for. A call that is
    /// sent once more because its first peer goes away waits for the hooks, so that one which sends a heartbeat comes
    /// first.
    pub fn on_connected(&self, hook: impl Fn(&Arc<str>) + Send + Sync + 'static) {
        self.running.dispatcher.hooks.write().push(Arc::new(hook));
    }

    /// Sizes of the tables, and what has happened so far.
    pub fn stats(&self) -> RemotingStats {
        self.running.handle.counters.snapshot()
    }

    /// Fails all calls, writes what is queued (for a second at most), closes all connections and joins the threads.
    /// Returns whether all have ended by the deadline; false also when a callback of the client calls this.
    pub fn shutdown(&self, deadline: Deadline) -> bool {
        self.running.shutdown(deadline)
    }
}

impl Running {
    pub(super) fn shutdown(&self, deadline: Deadline) -> bool {
        self.handle.push(Op::Shutdown { deadline });
        let io_ended = self.thread.join(deadline);
        self.dispatcher.shutdown(deadline) && io_ended
    }
}

impl Drop for RemotingClient {
    fn drop(&mut self) {
        self.shutdown(Deadline::after(Duration::from_secs(2)));
    }
}

impl fmt::Debug for RemotingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemotingClient").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
