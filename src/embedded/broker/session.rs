//! What the servers of one broker, a master and its slaves, know each for itself.
//!
//! All servers of a broker share its log, topics, groups and settings: a slave has what its master has at once, and
//! keeps it when the master stops. Kept from a real broker: clients, members, queue locks, held pulls and offsets are
//! each server's own; a slave takes the master's offsets over every 60 s (so commits to a slave are overwritten), and
//! only while the master runs; delayed messages and transactions wait for the master. Stronger: no lag.
//!
//! The tables of the server that works stand in [`State`] itself, so that handlers need not know of this; those of the
//! others are parked here.

use super::group::{ConsumerGroups, ProducerGroups};
use super::hold::HoldTable;
use super::lock_table::LockTable;
use super::offset_table::OffsetTable;
use super::pull::HeldPull;
use super::state::State;
use crate::remoting::ConnectionHandle;
use std::collections::HashMap;
use std::mem::swap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most entries of an offset table, and most pulls that wait at once.
pub(super) const MOST_OFFSETS: usize = 1_000_000;
pub(super) const MOST_HELD: usize = 100_000;
/// How often a slave takes the offsets of its master over.
const OFFSETS_PERIOD: Duration = Duration::from_secs(60);

/// The tables of one server that does not work at the moment.
#[derive(Debug)]
pub(super) struct Session {
    address: SocketAddr,
    connections: HashMap<u64, ConnectionHandle>,
    consumers: ConsumerGroups,
    producers: ProducerGroups,
    fingerprints: HashMap<Arc<str>, i32>,
    locks: LockTable,
    holds: HoldTable<HeldPull>,
    offsets: OffsetTable,
    next_scan: Option<Instant>,
    /// When a slave takes offsets over next; only while it runs.
    next_sync: Option<Instant>,
    is_running: bool,
}

impl Session {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connections: HashMap::new(),
            consumers: ConsumerGroups::default(),
            producers: ProducerGroups::default(),
            fingerprints: HashMap::new(),
            locks: LockTable::default(),
            holds: HoldTable::new(MOST_HELD),
            offsets: OffsetTable::new(MOST_OFFSETS),
            next_scan: None,
            next_sync: None,
            is_running: false,
        }
    }
}

impl State {
    /// Makes the tables of a server, 0 for the master, those that handlers see.
    pub(crate) fn enter(&mut self, role: usize) {
        if role != self.role {
            self.exchange(self.role);
            self.exchange(role);
            self.role = role;
        }
    }

    pub(crate) fn is_slave(&self) -> bool {
        self.role != 0
    }

    /// Does something for each server of the broker.
    pub(crate) fn in_each_session(&mut self, mut act: impl FnMut(&mut Self)) {
        let back = self.role;
        for role in 0..self.parked.len() {
            self.enter(role);
            act(self);
        }
        self.enter(back);
    }

    /// Whether the master serves.
    pub(crate) fn is_master_running(&self) -> bool {
        self.parked[0].is_running
    }

    /// The server that is entered starts or has ended.
    pub(crate) fn set_running(&mut self, running: bool) {
        let now = self.now();
        let session = &mut self.parked[self.role];
        session.is_running = running;
        // A slave takes them over when it starts, too.
        session.next_sync = (running && self.role != 0).then_some(now);
    }

    /// When a slave that is entered takes offsets over.
    pub(crate) fn next_sync(&self) -> Option<Instant> {
        self.parked[self.role].next_sync
    }

    /// Takes the master's offsets over if it is time.
    pub(crate) fn sync_offsets(&mut self, now: Instant) {
        if self.next_sync().is_none_or(|due| due > now) {
            return;
        }
        self.parked[self.role].next_sync = Some(now + OFFSETS_PERIOD);
        if self.is_slave() && self.is_master_running() {
            self.offsets.adopt(&self.parked[0].offsets);
        }
    }

    fn exchange(&mut self, role: usize) {
        let parked = &mut self.parked[role];
        swap(&mut self.address, &mut parked.address);
        swap(&mut self.connections, &mut parked.connections);
        swap(&mut self.consumers, &mut parked.consumers);
        swap(&mut self.producers, &mut parked.producers);
        swap(&mut self.fingerprints, &mut parked.fingerprints);
        swap(&mut self.locks, &mut parked.locks);
        swap(&mut self.holds, &mut parked.holds);
        swap(&mut self.offsets, &mut parked.offsets);
        swap(&mut self.next_scan, &mut parked.next_scan);
    }
}
