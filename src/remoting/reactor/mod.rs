//! The reactor: one thread that owns all sockets of a client or server, the table of open calls, and their deadlines.
//!
//! ```text
//! callers --push--> ops --+                        +--> slots (blocked threads)
//!                         v                        |
//!   sockets <--------> reactor: one turn ----------+--> pool (callbacks, requests of peers, hooks)
//!                         ^                        |
//! deadlines --------------+                        +--> write queues, flushed once a turn
//! ```
//!
//! A turn takes the operations, looks at what is due, writes what is queued, sleeps until something happens, and reads.
//! Nothing here is shared or locked, and nothing blocks. Files: `links` opens, reads, writes and closes
//! connections; `peers` knows the state of each address, `dial` opens connections to it; `calls` leads each call to its
//! one outcome.
//!
//! The thread is supervised: a panic while one connection is handled closes that connection, and the loop goes on.

mod calls;
mod dial;
mod links;
mod peers;

use self::links::{Link, Listener};
use self::peers::Peer;
use super::backoff::Backoff;
use super::call::Call;
use super::config::RemotingConfig;
use super::dispatcher::Dispatcher;
use super::handle::ReactorHandle;
use super::op::{ConnectionId, Op};
use super::processor::RequestProcessor;
use super::stats::{Counters, count};
use super::timers::{Due, Timers};
use super::wire::SCRATCH;
use crate::error::{Error, ErrorKind, Result};
use crate::thread::{JoinGuard, contain};
use bytes::Bytes;
use mio::event::Event;
use mio::{Events, Poll, Token};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const WAKER: Token = Token(0);
/// Listeners have the tokens from 1, connections from here.
const FIRST_CONNECTION: usize = 1 << 16;
/// Operations of one turn, so that callers who never pause do not keep the sockets waiting.
const OPS_PER_TURN: usize = 4096;
/// Writing what is left at the end is a courtesy that a peer that does not read cannot stretch.
const LINGER: Duration = Duration::from_secs(1);

pub(crate) struct Reactor {
    poll: Poll,
    handle: Arc<ReactorHandle>,
    dispatcher: Arc<Dispatcher>,
    processor: Arc<dyn RequestProcessor>,
    counters: Arc<Counters>,
    config: RemotingConfig,
    listeners: Vec<Listener>,
    links: HashMap<ConnectionId, Link, NumberHash>,
    peers: HashMap<Arc<str>, Peer>,
    calls: HashMap<i32, Box<Call>, NumberHash>,
    timers: Timers,
    backoff: Backoff,
    /// Connections with something new to write.
    dirty: Vec<ConnectionId>,
    /// Connections whose reading stopped at the budget of a turn.
    ready: Vec<ConnectionId>,
    scratch: Vec<u8>,
    inbox: Vec<Bytes>,
    /// The time of this turn.
    now: Instant,
    /// Set at shutdown: when to end although something is unwritten.
    closing: Option<Instant>,
    /// The connection being handled, to be closed when handling it panics.
    current: Option<ConnectionId>,
}

/// What is left of a reactor outside its thread.
pub(crate) struct Running {
    pub(crate) handle: Arc<ReactorHandle>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) thread: JoinGuard,
}

impl Reactor {
    /// Starts the thread `name-io`, and on demand the pool `name-call` of `threads` threads; with none, code of others
    /// runs on the reactor's thread.
    pub(crate) fn start(
        name: &str,
        config: RemotingConfig,
        processor: Arc<dyn RequestProcessor>,
        threads: Option<usize>,
        listeners: Vec<mio::net::TcpListener>,
    ) -> Result<Running> {
        let poll = Poll::new()?;
        let counters = Arc::new(Counters::default());
        let dispatcher = Arc::new(Dispatcher::new(name, threads, &config, &counters)?);
        let handle = Arc::new(ReactorHandle::new(poll.registry(), WAKER, config.clone(), Arc::clone(&counters))?);
        let mut reactor = Self {
            poll,
            handle: Arc::clone(&handle),
            dispatcher: Arc::clone(&dispatcher),
            processor,
            counters,
            listeners: Vec::new(),
            links: HashMap::default(),
            peers: HashMap::new(),
            calls: HashMap::default(),
            timers: Timers::default(),
            backoff: Backoff::new(config.backoff_min, config.backoff_max),
            dirty: Vec::new(),
            ready: Vec::new(),
            scratch: vec![0; SCRATCH],
            inbox: Vec::new(),
            now: Instant::now(),
            closing: None,
            current: None,
            config,
        };
        for listener in listeners {
            reactor.listen(listener)?;
        }
        let thread = JoinGuard::spawn(&format!("{name}-io"), move || reactor.run())?;
        Ok(Running { handle, dispatcher, thread })
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        loop {
            match contain(|| self.turn(&mut events)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(panic) => self.recover(&panic),
            }
        }
        let all: Vec<_> = self.links.keys().copied().collect();
        for id in all {
            self.close_link(id, Error::new(ErrorKind::Closed, "the client or server was shut down"));
        }
        self.publish_sizes();
        self.handle.close();
    }

    /// One turn; false ends the loop.
    fn turn(&mut self, events: &mut Events) -> bool {
        self.now = Instant::now();
        for _ in 0..OPS_PER_TURN {
            let Some(op) = self.handle.pop() else { break };
            self.on_op(op);
        }
        while let Some(due) = self.timers.pop(self.now) {
            self.on_due(due);
        }
        while let Some(id) = self.dirty.pop() {
            self.flush_link(id);
        }
        if let Some(end) = self.closing
            && (self.now >= end || self.links.values().all(Link::is_drained))
        {
            return false;
        }
        self.publish_sizes();
        self.sleep(events);
        self.now = Instant::now();
        for event in events.iter() {
            if let Err(panic) = contain(|| self.on_event(event)) {
                self.recover(&panic);
            }
        }
        for id in std::mem::take(&mut self.ready) {
            self.current = Some(id);
            if let Err(panic) = contain(|| self.read_link(id)) {
                self.recover(&panic);
            }
            self.current = None;
        }
        true
    }

    fn sleep(&mut self, events: &mut Events) {
        let has_work = !self.ready.is_empty() || !self.dirty.is_empty();
        let timeout = if has_work || !self.handle.prepare_sleep() {
            Some(Duration::ZERO)
        } else {
            let next = [self.timers.next(), self.closing].into_iter().flatten().min();
            next.map(|at| at.saturating_duration_since(Instant::now()))
        };
        let polled = self.poll.poll(events, timeout);
        self.handle.awake();
        count(&self.counters.turns);
        if let Err(error) = polled {
            events.clear();
            if error.kind() != std::io::ErrorKind::Interrupted {
                log::error!("waiting for sockets failed: {error}");
                std::thread::park_timeout(Duration::from_millis(10)); // never spin on a lasting error
            }
        }
    }

    fn on_op(&mut self, op: Op) {
        match op {
            Op::Call { call } => self.begin_call(call, None),
            Op::CallOn { connection, call } => self.begin_call(call, Some(connection)),
            Op::SendTo { address, frame } => self.send_to(&address, frame),
            Op::Send { connection, frame } => self.send_counted(connection, frame),
            Op::SendLast { connection, frame } => {
                self.send_counted(connection, frame);
                self.flush_link(connection);
                self.close_link(
                    connection,
                    Error::new(ErrorKind::Closed, "the connection ended: it was cut on this side"),
                );
            }
            Op::Close { connection, reason } => {
                self.close_link(connection, Error::new(ErrorKind::Closed, format!("the connection ended: {reason}")));
            }
            Op::CloseAddress { address } => self.close_address(&address),
            Op::Resolved { address, outcome } => self.on_resolved(&address, outcome),
            Op::Greeted { connection } => self.on_greeted(connection),
            Op::Shutdown { deadline } => {
                let end = deadline.instant().min(self.now + LINGER);
                self.begin_closing(end);
            }
        }
    }

    fn on_due(&mut self, due: Due) {
        match due {
            Due::Call(opaque) => self.on_call_overdue(opaque),
            Due::Dial(id) => self.on_dial_overdue(id),
            Due::Idle(id) => self.on_idle(id),
            Due::Stall(id) => self.on_stall(id),
            Due::Silence(id) => self.on_silence(id),
            Due::Resolve(address) => self.on_resolve_overdue(&address),
            Due::Redial(address) => self.on_redial(&address),
            Due::Forget(address) => self.forget(&address),
            Due::Accept(listener) => self.accept(listener),
        }
    }

    fn on_event(&mut self, event: &Event) {
        match event.token() {
            WAKER => {}
            Token(number) if number < FIRST_CONNECTION => self.accept(number - 1),
            Token(id) => {
                self.current = Some(id);
                self.on_link_event(id, event);
                self.current = None;
            }
        }
    }

    fn begin_closing(&mut self, end: Instant) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some(end);
        for mut listener in std::mem::take(&mut self.listeners) {
            // Closing the socket takes it out of the poll as well.
            if let Err(error) = self.poll.registry().deregister(&mut listener.socket) {
                log::debug!("a listener could not be taken out of the poll: {error}");
            }
        }
        let gone = Error::new(ErrorKind::Closed, "the client was shut down before the answer came");
        let calls: Vec<_> = self.calls.keys().copied().collect();
        for opaque in calls {
            self.fail_call(opaque, gone.clone());
        }
        self.drop_peers();
    }

    /// After a panic: the connection that was being handled may be in any state, so it goes.
    fn recover(&mut self, panic: &str) {
        count(&self.counters.panics);
        log::error!("the I/O thread goes on after a panic, which is a bug of this library: {panic}");
        if let Some(id) = self.current.take() {
            let error = Error::new(ErrorKind::Closed, "the connection was closed after an internal error");
            if let Err(again) = contain(|| self.close_link(id, error)) {
                log::error!("closing the connection panicked as well: {again}");
            }
        }
    }

    fn publish_sizes(&self) {
        let sizes = [
            (&self.counters.connections, self.links.len()),
            (&self.counters.addresses, self.peers.len()),
            (&self.counters.open_calls, self.calls.len()),
            (&self.counters.timers, self.timers.len()),
        ];
        for (counter, size) in sizes {
            counter.store(size, Ordering::Relaxed);
        }
    }
}

/// Spreads numbers that this side hands out one after another. They are not chosen by peers, so nothing stronger is
/// needed.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

type NumberHash = BuildHasherDefault<NumberHasher>;

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u64(u64::from(number as u32));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        // The table takes its position from the low bits and its tag from the high ones.
        self.0 ^ (self.0 >> 32)
    }
}
