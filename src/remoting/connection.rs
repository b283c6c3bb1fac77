//! What others hold of one connection: its identity, and ways to send on it.

use super::call::{Call, encode};
use super::completion::Outcome;
use super::dispatcher::Dispatcher;
use super::handle::ReactorHandle;
use super::op::{ConnectionId, Op};
use super::wire::Frame;
use crate::base::net::format_address;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::RemotingCommand;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// One connection, to send answers, pushes and calls on. Cheap to clone; stays valid, and useless, when the connection
/// is gone. Two handles are equal when they name the same connection.
#[derive(Clone)]
pub struct ConnectionHandle {
    shared: Arc<Shared>,
}

struct Shared {
    id: ConnectionId,
    peer: SocketAddr,
    local: SocketAddr,
    is_server: bool,
    /// Bytes that wait to be written, those in operations the reactor has not taken included.
    queued: AtomicUsize,
    closed: AtomicBool,
    reactor: Arc<ReactorHandle>,
    dispatcher: Arc<Dispatcher>,
}

impl ConnectionHandle {
    pub(crate) fn new(
        id: ConnectionId,
        peer: SocketAddr,
        local: SocketAddr,
        is_server: bool,
        reactor: &Arc<ReactorHandle>,
        dispatcher: &Arc<Dispatcher>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                id,
                peer,
                local,
                is_server,
                queued: AtomicUsize::new(0),
                closed: AtomicBool::new(false),
                reactor: Arc::clone(reactor),
                dispatcher: Arc::clone(dispatcher),
            }),
        }
    }

    /// A number that no other connection of this process has had.
    pub fn id(&self) -> u64 {
        self.shared.id as u64
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared.peer
    }

    /// The address of this side.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// Whether the connection is open, as far as is known.
    pub fn is_open(&self) -> bool {
        !self.shared.closed.load(Ordering::Relaxed)
    }

    /// Queues a response or one-way request as it is, opaque and flag included. Never blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] when the connection is gone; [`ErrorKind::Busy`] when the peer does not read and too much
    /// waits for it (a server then closes the connection); [`ErrorKind::MessageIllegal`] when the frame is too large.
    pub fn send(&self, command: RemotingCommand) -> Result<()> {
        let head = encode(&command, self.shared.reactor.config.max_frame)?;
        let frame = Frame { head, body: command.body };
        if !self.is_open() || self.shared.reactor.is_closed() {
            return Err(Error::new(ErrorKind::Closed, "the connection is closed").with_address(self.address()));
        }
        if !self.admit(frame.len()) {
            if self.shared.is_server {
                let reason = "the peer does not read what is sent to it";
                self.shared.reactor.push(Op::Close { connection: self.shared.id, reason });
            }
            return Err(Error::new(ErrorKind::Busy, "too much waits to be written").with_address(self.address()));
        }
        self.shared.reactor.push(Op::Send { connection: self.shared.id, frame });
        Ok(())
    }

    /// Sends the first half of a frame, as far as the socket takes it at once, and closes the connection: what a peer
    /// sees of a server that dies while it answers.
    pub(crate) fn send_half(&self, command: RemotingCommand) {
        let Ok(mut head) = encode(&command, self.shared.reactor.config.max_frame) else { return self.close() };
        let half = (head.len() + command.body.len()) / 2;
        let body = command.body.slice(..half.saturating_sub(head.len()));
        head.truncate(half);
        let frame = Frame { head, body };
        // Counted like every frame; whether there is room for it does not matter at the end.
        self.shared.queued.fetch_add(frame.len(), Ordering::Relaxed);
        self.shared.reactor.push(Op::SendLast { connection: self.shared.id, frame });
    }

    /// Sends a request and gives the answer, or what went wrong, to `callback`: exactly once, on the pool of the client
    /// or server, or on its I/O thread when it has none. The command's opaque is replaced.
    pub fn invoke_async(
        &self,
        command: RemotingCommand,
        timeout: Duration,
        callback: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        let shared = &self.shared;
        let address = self.address();
        let callback: Box<dyn FnOnce(Outcome) + Send> =
            Box::new(move |outcome| callback(outcome.map_err(|error| error.with_address(address))));
        let call = Call::with_callback(&shared.reactor, &shared.dispatcher, None, command, timeout, callback);
        if let Some(call) = call {
            shared.reactor.push(Op::CallOn { connection: shared.id, call });
        }
    }

    /// Closes the connection. Calls under way on it fail.
    pub fn close(&self) {
        self.shared.reactor.push(Op::Close { connection: self.shared.id, reason: "it was closed on this side" });
    }

    fn address(&self) -> String {
        format_address(self.shared.peer)
    }

    /// Counts bytes that are going to be written; refuses when too many wait. One frame is always taken.
    pub(crate) fn admit(&self, bytes: usize) -> bool {
        let before = self.shared.queued.fetch_add(bytes, Ordering::Relaxed);
        let admitted = before == 0 || before + bytes <= self.shared.reactor.config.write_queue_bytes;
        if !admitted {
            self.shared.queued.fetch_sub(bytes, Ordering::Relaxed);
        }
        admitted
    }

    /// Bytes were written.
    pub(crate) fn written(&self, bytes: usize) {
        self.shared.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn mark_closed(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionHandle")
            .field("id", &self.shared.id)
            .field("peer", &self.shared.peer)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}

impl PartialEq for ConnectionHandle {
    fn eq(&self, other: &Self) -> bool {
        self.shared.id == other.shared.id
    }
}

impl Eq for ConnectionHandle {}

impl Hash for ConnectionHandle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shared.id.hash(state);
    }
}
