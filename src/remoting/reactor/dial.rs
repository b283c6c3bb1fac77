//! Dialling: a host name becomes addresses, the addresses are tried in turn, and what waited is sent.

use super::Reactor;
use super::peers::{Known, State, Waiting};
use crate::base::net::{HostPort, format_address};
use crate::error::{Error, ErrorKind};
use crate::remoting::call::Place;
use crate::remoting::dispatcher::Resolved;
use crate::remoting::handle::ReactorHandle;
use crate::remoting::op::{ConnectionId, Op};
use crate::remoting::stats::count;
use crate::remoting::timers::Due;
use crate::thread::contain;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

impl Reactor {
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

    pub(super) fn begin_dial(&mut self, address: &Arc<str>) {
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

    /// Takes a dial that failed out of the table.
    fn take_dial(&mut self, id: ConnectionId) -> Option<(Arc<str>, SocketAddr)> {
        let (address, target) = self.links.get(&id)?.dial()?;
        self.drop_dial(id);
        Some((address, target))
    }
}

/// Tells the reactor that the hooks have run, also when they could not be run at all.
struct Greeted {
    id: ConnectionId,
    reactor: Arc<ReactorHandle>,
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
    let target = format_address(target);
    if target == address {
        cannot_connect(error)
    } else {
        Error::new(ErrorKind::Connect, format!("cannot connect to {target}: {error}"))
    }
}
