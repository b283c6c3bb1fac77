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
use crate::error::{Error, ErrorKind};
use crate::remoting::call::Place;
use crate::remoting::op::ConnectionId;
use crate::remoting::stats::count;
use crate::remoting::timers::{Due, TimerKey};
use crate::remoting::wire::Frame;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the failures of an address are remembered after its back-off.
const REMEMBER: Duration = Duration::from_secs(60);
/// One-way frames that may wait for a connection to one address.
const MAX_ONEWAYS: usize = 1024;

#[derive(Default)]
pub(super) struct Peer {
    pub(super) state: State,
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) oneways: usize,
    oneway_bytes: usize,
    /// Failures in a row.
    pub(super) failures: u32,
    pub(super) last_error: Option<Error>,
    pub(super) known: Option<Known>,
    pub(super) resolve_timer: Option<TimerKey>,
    pub(super) redial_timer: Option<TimerKey>,
    pub(super) forget_timer: Option<TimerKey>,
}

#[derive(Default)]
pub(super) enum State {
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
pub(super) struct Known {
    pub(super) addresses: Vec<SocketAddr>,
    /// When they were resolved; none when they are to be resolved again and serve only if that fails.
    pub(super) since: Option<Instant>,
}

pub(super) enum Waiting {
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
    pub(super) fn dial_for_waiting(&mut self, address: &Arc<str>) {
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
    pub(super) fn address_failed(&mut self, address: &Arc<str>, error: Error) {
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
}

impl Peer {
    fn is_open_on(&self, id: ConnectionId) -> bool {
        matches!(self.state, State::Open(open) if open == id)
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<Waiting> {
        self.oneways = 0;
        self.oneway_bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}
