//! Connections: accepting, opening, reading, writing, closing, and noticing that one is dead.

use super::{FIRST_CONNECTION, Reactor};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{RemotingCommand, ResponseCode};
use crate::remoting::connection::ConnectionHandle;
use crate::remoting::op::ConnectionId;
use crate::remoting::stats::count;
use crate::remoting::timers::{Due, TimerKey};
use crate::remoting::wire::{Frame, Received, Wire};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes read from one connection before the others have their turn.
const READ_BUDGET: usize = 512 << 10;
/// Connections accepted before the others have their turn.
const ACCEPT_BUDGET: usize = 128;
/// Pause after the system refused to accept, for want of file handles in most cases.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Listener {
    pub(super) socket: TcpListener,
}

/// One connection: dialled or accepted, open or on the way.
pub(super) struct Link {
    stream: TcpStream,
    wire: Wire,
    /// Whom it was dialled to or accepted from.
    target: SocketAddr,
    /// The address as callers know it; none on accepted connections.
    pub(super) address: Option<Arc<str>>,
    /// None while it is being dialled.
    pub(super) handle: Option<ConnectionHandle>,
    dial_timer: Option<TimerKey>,
    idle_timer: Option<TimerKey>,
    stall: Option<Mark<u64>>,
    silence: Option<Mark<Instant>>,
    last_read: Instant,
    last_write: Instant,
    written: u64,
    /// Calls that wait for an answer on it, or for its hooks.
    pub(super) owed: usize,
    /// The peer goes away: no new calls, and closed when nothing is owed.
    pub(super) draining: bool,
    /// Whether the peer has sent anything but a good-bye.
    pub(super) proven: bool,
    /// Whether the hooks for a new connection are still to run.
    pub(super) greeting: bool,
    pub(super) held: Vec<i32>,
    is_dirty: bool,
    /// The peer has closed its side: read to the end, however short the reads are.
    read_closed: bool,
}

/// A timer and what was so when it was set.
#[derive(Clone, Copy)]
struct Mark<T> {
    timer: TimerKey,
    then: T,
}

impl Link {
    fn new(stream: TcpStream, target: SocketAddr, address: Option<Arc<str>>, max_frame: usize, now: Instant) -> Self {
        Self {
            stream,
            wire: Wire::new(max_frame),
            target,
            address,
            handle: None,
            dial_timer: None,
            idle_timer: None,
            stall: None,
            silence: None,
            last_read: now,
            last_write: now,
            written: 0,
            owed: 0,
            draining: false,
            proven: false,
            greeting: false,
            held: Vec::new(),
            is_dirty: false,
            read_closed: false,
        }
    }

    /// The address and the target of a dial that is under way.
    pub(super) fn dial(&self) -> Option<(Arc<str>, SocketAddr)> {
        self.handle.is_none().then(|| self.address.clone().map(|address| (address, self.target)))?
    }

    /// Whether nothing waits to be written.
    pub(super) fn is_drained(&self) -> bool {
        self.wire.is_drained()
    }
}

/// Numbers connections over all reactors of the process, so that handles of different ones never look equal.
fn next_id() -> ConnectionId {
    static NEXT: AtomicUsize = AtomicUsize::new(FIRST_CONNECTION);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Reactor {
    pub(super) fn listen(&mut self, mut socket: TcpListener) -> Result<()> {
        let token = Token(1 + self.listeners.len());
        self.poll.registry().register(&mut socket, token, Interest::READABLE)?;
        self.listeners.push(Listener { socket });
        Ok(())
    }

    pub(super) fn accept(&mut self, number: usize) {
        for _ in 0..ACCEPT_BUDGET {
            let Some(listener) = self.listeners.get(number) else { return };
            match listener.socket.accept() {
                Ok((stream, peer)) => self.on_accepted(stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The peer has given up, or a signal came.
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                Err(error) => {
                    log::warn!("no connection can be accepted for {ACCEPT_PAUSE:?}: {error}");
                    self.timers.add(self.now + ACCEPT_PAUSE, Due::Accept(number));
                    return;
                }
            }
        }
        self.timers.add(self.now, Due::Accept(number)); // readiness is reported once; there may be more
    }

    fn on_accepted(&mut self, mut stream: TcpStream, peer: SocketAddr) {
        let backlog = self.counters.queued_requests.load(Ordering::Relaxed);
        if self.links.len() >= self.config.max_connections || backlog > 2 * self.config.max_requests {
            count(&self.counters.refused);
            log::warn!("refused a connection from {peer}: {} are open", self.links.len());
            return;
        }
        let id = next_id();
        if let Err(error) = self.poll.registry().register(&mut stream, Token(id), both()) {
            log::warn!("refused a connection from {peer}: {error}");
            return;
        }
        count(&self.counters.accepted);
        self.links.insert(id, Link::new(stream, peer, None, self.config.max_frame, self.now));
        if let Err(error) = self.open_link(id, true) {
            self.close_link(id, Error::new(ErrorKind::Closed, error.to_string()));
        }
    }

    /// Begins to connect. The link stays without a handle until it is open.
    pub(super) fn connect(
        &mut self,
        target: SocketAddr,
        address: &Arc<str>,
        until: Instant,
    ) -> io::Result<ConnectionId> {
        let mut stream = TcpStream::connect(target)?;
        let id = next_id();
        self.poll.registry().register(&mut stream, Token(id), both())?;
        let mut link = Link::new(stream, target, Some(Arc::clone(address)), self.config.max_frame, self.now);
        link.dial_timer = Some(self.timers.add(until, Due::Dial(id)));
        self.links.insert(id, link);
        Ok(id)
    }

    /// Takes a dial that came to nothing out of the tables.
    pub(super) fn drop_dial(&mut self, id: ConnectionId) {
        let Some(mut link) = self.links.remove(&id) else { return };
        self.timers.remove(link.dial_timer);
        if let Err(error) = self.poll.registry().deregister(&mut link.stream) {
            log::debug!("connection {id} could not be taken out of the poll: {error}");
        }
    }

    /// Sets the options of a connected socket, watches it, and tells the processor of it.
    fn open_link(&mut self, id: ConnectionId, is_server: bool) -> io::Result<ConnectionHandle> {
        let Some(link) = self.links.get_mut(&id) else { return Err(io::ErrorKind::NotConnected.into()) };
        let local = link.stream.local_addr()?;
        let socket = SockRef::from(&link.stream);
        socket.set_tcp_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(30)).with_interval(Duration::from_secs(10));
        socket.set_tcp_keepalive(&keepalive)?;
        if self.config.send_buffer > 0 {
            socket.set_send_buffer_size(self.config.send_buffer)?;
        }
        if self.config.receive_buffer > 0 {
            socket.set_recv_buffer_size(self.config.receive_buffer)?;
        }
        let handle = ConnectionHandle::new(id, link.target, local, is_server, &self.handle, &self.dispatcher);
        link.handle = Some(handle.clone());
        link.last_read = self.now;
        link.last_write = self.now;
        self.timers.remove(link.dial_timer.take());
        link.idle_timer = Some(self.timers.add(self.now + self.config.idle, Due::Idle(id)));
        let (processor, news) = (Arc::clone(&self.processor), handle.clone());
        self.dispatcher.run(move || processor.connected(&news));
        Ok(handle)
    }

    pub(super) fn on_link_event(&mut self, id: ConnectionId, event: &Event) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.handle.is_none() && !self.finish_connect(id) {
            return;
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        link.read_closed |= event.is_read_closed() || event.is_error();
        if event.is_writable() && !link.wire.is_drained() {
            self.mark_dirty(id);
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read_link(id);
        }
    }

    /// Looks how a dial stands. True when the connection is open.
    fn finish_connect(&mut self, id: ConnectionId) -> bool {
        let Some(link) = self.links.get(&id) else { return false };
        let state = match link.stream.take_error() {
            Ok(None) => link.stream.peer_addr(),
            Ok(Some(error)) | Err(error) => Err(error),
        };
        let outcome = match state {
            // A dial to a closed port of this host can meet itself when the port is in the ephemeral range.
            Ok(peer) if link.stream.local_addr().is_ok_and(|local| local == peer) => {
                Err(io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused (the dial met itself)"))
            }
            Ok(_) => self.open_link(id, false),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => return false, // still under way
            Err(error) => Err(error),
        };
        match outcome {
            Ok(_) => {
                self.on_dialled(id);
                true
            }
            Err(error) => {
                self.on_dial_failed(id, error);
                false
            }
        }
    }

    pub(super) fn read_link(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.handle.is_some()) else { return };
        let mut inbox = std::mem::take(&mut self.inbox);
        // On Windows readiness is reported anew only after a read that would have blocked.
        let until_blocked = link.read_closed || cfg!(windows);
        let received = link.wire.receive(&mut link.stream, &mut self.scratch, &mut inbox, READ_BUDGET, until_blocked);
        link.last_read = self.now;
        if let Some(mark) = link.silence.take() {
            self.timers.remove(Some(mark.timer));
        }
        self.counters.frames_in.fetch_add(inbox.len() as u64, Ordering::Relaxed);
        for frame in inbox.drain(..) {
            match RemotingCommand::decode(frame) {
                Ok(command) => self.on_command(id, command),
                Err(error) => {
                    self.close_link(id, error);
                    break;
                }
            }
        }
        self.inbox = inbox;
        match received {
            Ok(Received::Drained) => {}
            Ok(Received::More) => self.ready.push(id),
            Ok(Received::Closed) => {
                self.close_link(id, Error::new(ErrorKind::Closed, "the peer closed the connection"));
            }
            Err(error) => self.close_link(id, error),
        }
    }

    fn on_command(&mut self, id: ConnectionId, command: RemotingCommand) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let is_response = command.is_response();
        let is_good_bye = is_response && command.response_code() == ResponseCode::GO_AWAY;
        if !link.proven && !is_good_bye {
            link.proven = true;
            self.on_proven(id);
        }
        if is_response {
            self.on_response(id, command);
        } else {
            self.on_request(id, command);
        }
    }

    /// Queues a frame on a connection; it is written at the end of the turn, together with others.
    pub(super) fn transmit(&mut self, id: ConnectionId, frame: Frame) -> Result<()> {
        let handle = self.links.get(&id).and_then(|link| link.handle.as_ref());
        let Some(handle) = handle else { return Err(Error::new(ErrorKind::Closed, "the connection is closed")) };
        if !handle.admit(frame.len()) {
            return Err(Error::new(
                ErrorKind::Busy,
                "the peer does not read, and too much waits to be written to it already",
            ));
        }
        self.send_counted(id, frame);
        Ok(())
    }

    /// As [`transmit`](Self::transmit), for a frame whose bytes are counted already.
    pub(super) fn send_counted(&mut self, id: ConnectionId, frame: Frame) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.wire.enqueue(frame);
        count(&self.counters.frames_out);
        self.mark_dirty(id);
    }

    pub(super) fn mark_dirty(&mut self, id: ConnectionId) {
        if let Some(link) = self.links.get_mut(&id)
            && !std::mem::replace(&mut link.is_dirty, true)
        {
            self.dirty.push(id);
        }
    }

    pub(super) fn flush_link(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.is_dirty = false;
        match link.wire.flush(&mut link.stream) {
            Ok(0) => {}
            Ok(written) => {
                link.written += written as u64;
                link.last_write = self.now;
                if let Some(handle) = &link.handle {
                    handle.written(written);
                }
            }
            Err(error) => {
                let text = format!("the connection broke while writing: {error}");
                return self.close_link(id, Error::new(ErrorKind::Closed, text).with_source(error));
            }
        }
        match (link.wire.is_drained(), link.stall) {
            (true, Some(mark)) => {
                self.timers.remove(Some(mark.timer));
                link.stall = None;
            }
            (false, None) => {
                let timer = self.timers.add(self.now + self.config.write_stall, Due::Stall(id));
                link.stall = Some(Mark { timer, then: link.written });
            }
            _ => {}
        }
        if link.draining && link.owed == 0 && link.wire.is_drained() {
            self.close_link(id, Error::new(ErrorKind::Closed, "the peer was going away"));
        }
    }

    pub(super) fn on_idle(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let quiet_since = link.last_read.max(link.last_write);
        let end = quiet_since + self.config.idle;
        if end <= self.now && link.owed == 0 {
            let text = format!("the connection was idle for {:?}", self.config.idle);
            return self.close_link(id, Error::new(ErrorKind::Closed, text));
        }
        let again = if end > self.now { end } else { self.now + self.config.idle };
        link.idle_timer = Some(self.timers.add(again, Due::Idle(id)));
    }

    pub(super) fn on_stall(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        match link.stall.take() {
            Some(mark) if mark.then == link.written => {
                let text = format!("the peer took no byte for {:?} although some wait", self.config.write_stall);
                self.close_link(id, Error::new(ErrorKind::Closed, text));
            }
            _ => self.mark_dirty(id), // it moves; the flush sets the next mark
        }
    }

    /// A call sent at `since` got no answer in time. When not a byte has come since then either, the connection may be
    /// dead; a slow answer to one call is no reason to take the connection from the others.
    pub(super) fn suspect(&mut self, id: ConnectionId, since: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.last_read <= since && link.silence.is_none() {
            let timer = self.timers.add(since + self.config.silence, Due::Silence(id));
            link.silence = Some(Mark { timer, then: since });
        }
    }

    pub(super) fn on_silence(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.silence.take().is_some_and(|mark| link.last_read <= mark.then) {
            let text = format!("the peer left a call without answer and was silent for {:?}", self.config.silence);
            self.close_link(id, Error::new(ErrorKind::Closed, text));
        }
    }

    /// Closes a connection: every call on it fails with this error, once, and its address may be dialled again.
    pub(super) fn close_link(&mut self, id: ConnectionId, error: Error) {
        let Some(mut link) = self.links.remove(&id) else { return };
        if let Err(error) = self.poll.registry().deregister(&mut link.stream) {
            log::debug!("connection {id} could not be taken out of the poll: {error}");
        }
        let timers =
            [link.dial_timer, link.idle_timer, link.stall.map(|mark| mark.timer), link.silence.map(|mark| mark.timer)];
        timers.into_iter().for_each(|timer| self.timers.remove(timer));
        let error = match &link.address {
            Some(address) => error.with_address(&**address),
            None => error.with_address(link.target.to_string()),
        };
        log::debug!("connection {id} ends: {error}");
        if let Some(address) = &link.address {
            self.on_link_lost(id, address, link.proven, &error);
        }
        if link.owed > 0 {
            let lost: Vec<i32> = self
                .calls
                .iter()
                .filter(|(_, call)| call.place.connection() == Some(id))
                .map(|(opaque, _)| *opaque)
                .collect();
            for opaque in lost {
                self.fail_call(opaque, error.clone());
            }
        }
        if let Some(handle) = link.handle {
            handle.mark_closed();
            let processor = Arc::clone(&self.processor);
            self.dispatcher.run(move || processor.disconnected(&handle));
        }
    }
}

fn both() -> Interest {
    Interest::READABLE | Interest::WRITABLE
}
