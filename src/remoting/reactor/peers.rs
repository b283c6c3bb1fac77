//! Addresses: each has a state of its own, so that waiting for one never holds up another.
//!
//! ```text
//!          call             name known           connected
//!   Idle --------> Resolving ----------> Dialing -----------> Open
//!    ^   \____________________________/   |  |                 |
//!    |          a number, no name         |  | next target     | lost: proven -> Idle
//!    |                                    v                    | not proven, or "go away" again
//!    +---------- next call ---------- Backoff <----------------+
//! ```
//!
//! Calls wait at an address while it is resolved or dialled, each to its own deadline. When the dial fails, all of them
//! fail with its cause. During the back-off a call waits when the next dial comes before its deadline; else it fails
//! at once. An address that nobody calls is forgotten some time after its last failure.

use super::Reactor;
use crate::base::net::HostPort;
use crate::error::{Error, ErrorKind};
use crate::remoting::call::Place;
use crate::remoting::dispatcher::Resolved;
use crate::remoting::op::{ConnectionId, Op};
use crate::remoting::stats::count;
use crate::remoting::timers::{Due, TimerKey};
use crate::remoting::wire::Frame;
use crate::thread::contain;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the failures of an address are remembered after its back-off.
const REMEMBER: Duration = Duration::from_secs(60);
/// One-way frames that may wait for a connection to one address.
const MAX_ONEWAYS: usize = 1024;

#[derive(Default)]
pub(super) struct Peer {
    state: State,
    waiting: VecDeque<Waiting>,
    oneways: usize,
    oneway_bytes: usize,
    /// Failures in a row.
    failures: u32,
    pub(super) last_error: Option<Error>,
    known: Option<Known>,
    resolve_timer: Option<TimerKey>,
    redial_timer: Option<TimerKey>,
    forget_timer: Option<TimerKey>,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Resolving,
    Dialing {
        id: ConnectionId,
        /// What is to be tried when this dial fails.
        next: VecDeque<SocketAddr>,
        until: Instant,
    },
    Open(ConnectionId),
    Backoff(Instant),
}

/// The addresses of a host name.
struct Known {
    addresses: Vec<SocketAddr>,
    /// When they were resolved; none when they are to be resolved again and serve only if that fails.
    since: Option<Instant>,
}

enum Waiting {
    Call(i32),
    Oneway(Frame),
}

impl Reactor {
    /// Sends a call to its address, or lets it wait there.
    pub(super) fn place_call(&mut self, opaque: i32) {
        let Some((address, deadline)) =
            self.calls.get(&opaque).and_then(|call| Some((call.address.clone()?, call.deadline.instant())))
        else {
            return;
        };
        if let Err(error) = self.admit_address(&address) {
            return self.fail_call(opaque, error);
        }
        let now = self.now;
        let Some(peer) = self.peers.get_mut(&address) else { return };
        match peer.state {
            State::Open(id) => self.send_call(opaque, id),
            State::Backoff(until) if until >= deadline => {
                let wait = until.saturating_duration_since(now);
                let text = format!("not dialled: failures in a row: {}, tried again in {wait:.1?}", peer.failures);
                let error = match peer.last_error.clone() {
                    Some(cause) => {
                        Error::new(ErrorKind::Connect, format!("{text}; the last: {cause}")).with_source(cause)
                    }
                    None => Error::new(ErrorKind::Connect, text),
                };
                self.fail_call(opaque, error);
            }
            _ => {
                peer.waiting.push_back(Waiting::Call(opaque));
                self.dial_for_waiting(&address);
            }
        }
    }

    /// Sends a one-way request to an address, or lets it wait there. Nobody is told when it is lost.
    pub(super) fn send_to(&mut self, address: &Arc<str>, frame: Frame) {
        let sent = if self.closing.is_some() {
            Err(Error::new(ErrorKind::Closed, "the client is shut down"))
        } else {
            self.admit_address(address).and_then(|()| self.try_send_to(address, frame))
        };
        if let Err(error) = sent {
            count(&self.counters.dropped_oneways);
            log::debug!("a one-way request was dropped: {}", error.with_address(&**address));
        }
    }

    fn try_send_to(&mut self, address: &Arc<str>, frame: Frame) -> Result<(), Error> {
        let until = self.now + self.config.connect_timeout;
        let Some(peer) = self.peers.get_mut(address) else { return Ok(()) };
        match peer.state {
            State::Open(id) => self.transmit(id, frame),
            State::Backoff(end) if end >= until => Err(Error::new(ErrorKind::Connect, "it has just failed to connect")),
            _ => {
                let bytes = peer.oneway_bytes + frame.len();
                let is_full = peer.oneways >= MAX_ONEWAYS || bytes > self.config.write_queue_bytes;
                if is_full && peer.oneways > 0 {
                    return Err(Error::new(ErrorKind::Busy, "too many wait for a connection"));
                }
                peer.oneways += 1;
                peer.oneway_bytes = bytes;
                peer.waiting.push_back(Waiting::Oneway(frame));
                self.dial_for_waiting(address);
                Ok(())
            }
        }
    }

    /// Makes room for the state of an address.
    fn admit_address(&mut self, address: &Arc<str>) -> Result<(), Error> {
        if !self.peers.contains_key(address) {
            if self.peers.len() >= self.config.max_connections {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!("{} addresses are in use already", self.config.max_connections),
                ));
            }
            self.peers.insert(Arc::clone(address), Peer::default());
        }
        Ok(())
    }

    /// Something waits at the address: sees to it that it is dialled, now or when its back-off is over.
    fn dial_for_waiting(&mut self, address: &Arc<str>) {
        let Some(peer) = self.peers.get_mut(address) else { return };
        match peer.state {
            State::Idle => self.begin_dial(address),
            State::Backoff(until) if until <= self.now => self.begin_dial(address),
            State::Backoff(until) if peer.redial_timer.is_none() => {
                peer.redial_timer = Some(self.timers.add(until, Due::Redial(Arc::clone(address))));
            }
            State::Backoff(_) | State::Resolving | State::Dialing { .. } | State::Open(_) => {}
        }
    }

    pub(super) fn on_redial(&mut self, address: &Arc<str>) {
        let Some(peer) = self.peers.get_mut(address) else { return };
        peer.redial_timer = None;
        let calls = &self.calls;
        let is_wanted = peer.waiting.iter().any(|waiting| match waiting {
            Waiting::Call(opaque) => calls.contains_key(opaque),
            Waiting::Oneway(_) => true,
        });
        if is_wanted {
            self.dial_for_waiting(address);
        } else {
            peer.waiting.clear(); // all have given up
        }
    }

    fn begin_dial(&mut self, address: &Arc<str>) {
        let Some(peer) = self.peers.get_mut(address) else { return };
        self.timers.remove(peer.redial_timer.take());
        self.timers.remove(peer.forget_timer.take());
        count(&self.counters.dials);
        let parsed = HostPort::parse(address)
            .and_then(|host| Ok((host.literal().map_err(|error| cannot_connect(&error).with_source(error))?, host)));
        let host = match parsed {
            Ok((Some(target), _)) => return self.start_dial(address, vec![target]),
            Ok((None, host)) => host,
            Err(error) => return self.address_failed(address, error),
        };
        let fresh = |since: Instant| self.now.saturating_duration_since(since) < self.config.resolve_again;
        if let Some(known) = peer.known.as_ref().filter(|known| known.since.is_some_and(fresh)) {
            let targets = known.addresses.clone();
            return self.start_dial(address, targets);
        }
        peer.state = State::Resolving;
        let until = self.now + self.config.connect_timeout;
        peer.resolve_timer = Some(self.timers.add(until, Due::Resolve(Arc::clone(address))));
        let (resolver, reactor) = (Arc::clone(&self.config.resolver), Arc::clone(&self.handle));
        let name = Arc::clone(address);
        let queued = self.dispatcher.resolve(move || {
            let outcome = contain(|| resolver.resolve(&host.host, host.port))
                .unwrap_or_else(|panic| Err(io::Error::other(format!("the resolver panicked: {panic}"))));
            reactor.push(Op::Resolved { address: name, outcome });
        });
        if !queued {
            self.on_resolved(address, Err(io::Error::other("too many names are being resolved")));
        }
    }

    pub(super) fn on_resolve_overdue(&mut self, address: &Arc<str>) {
        self.on_resolved(address, Err(io::Error::new(io::ErrorKind::TimedOut, "the resolver is too slow")));
    }

    pub(super) fn on_resolved(&mut self, address: &Arc<str>, outcome: Resolved) {
        let Some(peer) = self.peers.get_mut(address) else { return };
        let outcome = outcome.and_then(|addresses| {
            let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            if addresses.is_empty() { Err(none()) } else { Ok(addresses) }
        });
        let targets = match outcome {
            Ok(addresses) => {
                peer.known = Some(Known { addresses: addresses.clone(), since: Some(self.now) });
                addresses
            }
            // The last good set is better than none.
            Err(error) => match &peer.known {
                Some(known) => {
                    log::warn!("{address} could not be resolved again, so its old addresses serve on: {error}");
                    known.addresses.clone()
                }
                None => {
                    if matches!(peer.state, State::Resolving) {
                        let text = format!("the host name could not be resolved: {error}");
                        self.address_failed(address, Error::new(ErrorKind::Connect, text).with_source(error));
                    }
                    return;
                }
            },
        };
        // A late answer only refreshes what is known.
        if matches!(peer.state, State::Resolving) {
            self.start_dial(address, targets);
        }
    }

    fn start_dial(&mut self, address: &Arc<str>, targets: Vec<SocketAddr>) {
        let until = self.now + self.config.connect_timeout;
        if let Some(peer) = self.peers.get_mut(address) {
            self.timers.remove(peer.resolve_timer.take());
        }
        self.dial_next(address, targets.into(), until, None);
    }

    /// Dials the first of the targets that can be dialled at all. Each has an equal share of the time that is left.
    fn dial_next(
        &mut self,
        address: &Arc<str>,
        mut targets: VecDeque<SocketAddr>,
        until: Instant,
        mut last: Option<Error>,
    ) {
        while let Some(target) = targets.pop_front() {
            let left = until.saturating_duration_since(self.now);
            let share = left / u32::try_from(targets.len() + 1).unwrap_or(u32::MAX);
            match self.connect(target, address, self.now + share) {
                Ok(id) => {
                    if let Some(peer) = self.peers.get_mut(address) {
                        peer.last_error = last.or(peer.last_error.take());
                        peer.state = State::Dialing { id, next: targets, until };
                    }
                    return;
                }
                Err(error) => last = Some(cannot_connect_to(target, address, &error).with_source(error)),
            }
        }
        if let Some(known) = self.peers.get_mut(address).and_then(|peer| peer.known.as_mut()) {
            known.since = None; // the name may point elsewhere by now
        }
        let error = last.unwrap_or_else(|| Error::new(ErrorKind::Connect, "there is no address to connect to"));
        self.address_failed(address, error);
    }

    pub(super) fn on_dial_overdue(&mut self, id: ConnectionId) {
        let error = io::Error::new(io::ErrorKind::TimedOut, "no answer to the attempt to connect");
        self.on_dial_failed(id, error);
    }

    /// One target has failed: the next one is tried.
    pub(super) fn on_dial_failed(&mut self, id: ConnectionId, error: io::Error) {
        let Some((address, target)) = self.take_dial(id) else { return };
        let Some(peer) = self.peers.get_mut(&address) else { return };
        match std::mem::take(&mut peer.state) {
            State::Dialing { id: dialled, next, until } if dialled == id => {
                let error = cannot_connect_to(target, &address, &error).with_source(error);
                log::debug!("{error}");
                self.dial_next(&address, next, until, Some(error));
            }
            other => peer.state = other,
        }
    }

    /// A connection is open: what waits for it is sent.
    pub(super) fn on_dialled(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(address) = link.address.clone() else { return };
        let target = link.handle.as_ref().map(|handle| handle.peer_addr());
        let hooks = self.dispatcher.hooks.read().clone();
        link.greeting = !hooks.is_empty();
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.state = State::Open(id);
        if let (Some(known), Some(target)) = (&mut peer.known, target) {
            // The next dial begins with the address that works.
            known.addresses.sort_by_key(|known| *known != target);
        }
        let waiting = peer.take_waiting();
        self.handle.connected.lock().insert(Arc::clone(&address));
        for waiting in waiting {
            match waiting {
                Waiting::Call(opaque) => {
                    if self.calls.get(&opaque).is_some_and(|call| call.place == Place::Waiting) {
                        self.send_call(opaque, id);
                    }
                }
                Waiting::Oneway(frame) => self.send_to(&address, frame),
            }
        }
        if !hooks.is_empty() {
            let greeted = Greeted { id, reactor: Arc::clone(&self.handle) };
            let counters = Arc::clone(&self.counters);
            self.dispatcher.run(move || {
                let _greeted = greeted;
                for hook in hooks {
                    if let Err(panic) = contain(|| hook(&address)) {
                        count(&counters.panics);
                        log::error!("a hook for new connections panicked: {panic}");
                    }
                }
            });
        }
    }

    /// The peer has sent something that is no good-bye: its failures are forgotten.
    pub(super) fn on_proven(&mut self, id: ConnectionId) {
        let Some(address) = self.links.get(&id).and_then(|link| link.address.as_ref()) else { return };
        if let Some(peer) = self.peers.get_mut(address).filter(|peer| peer.is_open_on(id)) {
            peer.failures = 0;
            peer.last_error = None;
        }
    }

    /// The peer behind this connection goes away: no new calls on it, and the address may be dialled again; at once the
    /// first time, after a growing pause when it says so on each new connection.
    pub(super) fn retire_gently(&mut self, id: ConnectionId, address: &Arc<str>) {
        if let Some(link) = self.links.get_mut(&id) {
            link.draining = true;
            self.mark_dirty(id); // closed at the end of the turn when nothing is owed
        }
        let Some(peer) = self.peers.get_mut(address).filter(|peer| peer.is_open_on(id)) else { return };
        let pause = self.backoff.pause(peer.failures);
        peer.failures = peer.failures.saturating_add(1);
        peer.state = if pause.is_zero() { State::Idle } else { State::Backoff(self.now + pause) };
        self.handle.connected.lock().remove(address);
        log::info!("{address} is going away; the next call goes over a new connection");
        self.set_forget(address);
    }

    /// An open connection, or one being dialled, was closed.
    pub(super) fn on_link_lost(&mut self, id: ConnectionId, address: &Arc<str>, proven: bool, error: &Error) {
        let Some(peer) = self.peers.get_mut(address) else { return };
        match peer.state {
            State::Open(open) if open == id => {
                self.handle.connected.lock().remove(address);
                if !proven {
                    return self.address_failed(address, error.clone());
                }
                log::info!("the connection is lost: {error}");
                peer.state = State::Idle;
                self.set_forget(address);
            }
            State::Dialing { id: dialled, .. } if dialled == id => self.address_failed(address, error.clone()),
            _ => {}
        }
    }

    /// There is no connection and none to come for now: all that waits fails with the cause.
    fn address_failed(&mut self, address: &Arc<str>, error: Error) {
        count(&self.counters.failed_dials);
        let Some(peer) = self.peers.get_mut(address) else { return };
        peer.failures = peer.failures.saturating_add(1);
        peer.last_error = Some(error.clone());
        let error = error.with_address(&**address);
        if peer.failures == 1 {
            log::warn!("{error}");
        } else {
            log::debug!("{error} ({} times in a row)", peer.failures);
        }
        peer.state = State::Backoff(self.now + self.backoff.pause(peer.failures));
        self.timers.remove(peer.resolve_timer.take());
        let waiting = peer.take_waiting();
        self.set_forget(address);
        self.fail_waiting(waiting, &error);
    }

    fn fail_waiting(&mut self, waiting: VecDeque<Waiting>, error: &Error) {
        for waiting in waiting {
            match waiting {
                Waiting::Call(opaque) => {
                    if self.calls.get(&opaque).is_some_and(|call| call.place == Place::Waiting) {
                        self.fail_call(opaque, error.clone());
                    }
                }
                Waiting::Oneway(_) => count(&self.counters.dropped_oneways),
            }
        }
    }

    fn set_forget(&mut self, address: &Arc<str>) {
        let Some(peer) = self.peers.get_mut(address) else { return };
        let from = if let State::Backoff(until) = peer.state { until } else { self.now };
        let timer = self.timers.add(from + REMEMBER, Due::Forget(Arc::clone(address)));
        self.timers.remove(peer.forget_timer.replace(timer));
    }

    /// Drops what is known of an address that nobody has called for a while.
    pub(super) fn forget(&mut self, address: &Arc<str>) {
        let Some(peer) = self.peers.get_mut(address) else { return };
        peer.forget_timer = None;
        if matches!(peer.state, State::Idle | State::Backoff(_)) {
            if peer.waiting.is_empty() {
                self.peers.remove(address);
            } else {
                self.set_forget(address);
            }
        }
    }

    /// Closes the connection to an address, fails what waits for it, and forgets it.
    pub(super) fn close_address(&mut self, address: &Arc<str>) {
        let error = Error::new(ErrorKind::Closed, "the connection was closed on this side").with_address(&**address);
        let Some(mut peer) = self.peers.remove(address) else { return };
        [peer.resolve_timer, peer.redial_timer, peer.forget_timer].into_iter().for_each(|key| self.timers.remove(key));
        let waiting = peer.take_waiting();
        match peer.state {
            State::Open(id) => {
                self.handle.connected.lock().remove(address);
                self.close_link(id, error.clone());
            }
            State::Dialing { id, .. } => self.close_link(id, error.clone()),
            State::Idle | State::Resolving | State::Backoff(_) => {}
        }
        self.fail_waiting(waiting, &error);
    }

    /// At shutdown: gives up all dials and forgets all addresses; open connections stay until they have written.
    pub(super) fn drop_peers(&mut self) {
        let gone = Error::new(ErrorKind::Closed, "the client was shut down");
        for (_, mut peer) in std::mem::take(&mut self.peers) {
            [peer.resolve_timer, peer.redial_timer, peer.forget_timer]
                .into_iter()
                .for_each(|key| self.timers.remove(key));
            let waiting = peer.take_waiting();
            if let State::Dialing { id, .. } = peer.state {
                self.close_link(id, gone.clone());
            }
            self.fail_waiting(waiting, &gone);
        }
        self.handle.connected.lock().clear();
    }

    /// Takes a dial that failed out of the table.
    fn take_dial(&mut self, id: ConnectionId) -> Option<(Arc<str>, SocketAddr)> {
        let (address, target) = self.links.get(&id)?.dial()?;
        self.drop_dial(id);
        Some((address, target))
    }
}

impl Peer {
    fn is_open_on(&self, id: ConnectionId) -> bool {
        matches!(self.state, State::Open(open) if open == id)
    }

    fn take_waiting(&mut self) -> VecDeque<Waiting> {
        self.oneways = 0;
        self.oneway_bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

/// Tells the reactor that the hooks have run, also when they could not be run at all.
struct Greeted {
    id: ConnectionId,
    reactor: Arc<crate::remoting::handle::ReactorHandle>,
}

impl Drop for Greeted {
    fn drop(&mut self) {
        self.reactor.push(Op::Greeted { connection: self.id });
    }
}

fn cannot_connect(error: &io::Error) -> Error {
    Error::new(ErrorKind::Connect, format!("cannot connect: {error}"))
}

/// Names the target as well when the address is a host name.
fn cannot_connect_to(target: SocketAddr, address: &str, error: &io::Error) -> Error {
    let target = crate::base::net::format_address(target);
    if target == address {
        cannot_connect(error)
    } else {
        Error::new(ErrorKind::Connect, format!("cannot connect to {target}: {error}"))
    }
}
