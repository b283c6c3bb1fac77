//! A member: joining, heartbeats, leaving. The decisions are those of the crate; what is simulated is the thread that
//! would wait.

use super::Millis;
use super::check::Ownership;
use super::strategy;
use super::work::{Storing, Why};
use super::world::{Event, Kind, Route, World};
use crate::consumer::held::{HeldQueue, HeldTable, QueuePhase};
use crate::consumer::rebalance::Rebalancer;
use crate::message::MessageQueue;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The defaults of the client.
pub(super) const ROUND: Millis = 20_000;
const BEAT: Millis = 30_000;
const BEAT_AGAIN: Millis = 1000;
const ROUTE: Millis = 30_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Up,
    Stopping,
    Gone,
}

pub(super) struct Link {
    pub(super) connection: u64,
    pub(super) last_arrival: Millis,
}

/// A pulled list on its way through the workers.
pub(super) struct Batch {
    pub(super) held: Arc<HeldQueue>,
    pub(super) log: usize,
    pub(super) offsets: Vec<i64>,
    pub(super) cursor: Cell<usize>,
}

/// Queues that are drained, then stored, then released.
pub(super) struct Leaving {
    pub(super) queues: Vec<Arc<HeldQueue>>,
    pub(super) due: Millis,
    pub(super) is_storing: bool,
}

pub(super) struct Member {
    pub(super) id: Arc<str>,
    pub(super) life: Life,
    pub(super) held: HeldTable,
    pub(super) rebalancer: Option<Rebalancer>,
    pub(super) links: Vec<Option<Link>>,
    pub(super) routes: Vec<Option<Arc<Route>>>,
    pub(super) route_mark: u64,
    pub(super) round_mark: u64,
    pub(super) is_wished: bool,
    pub(super) in_round: bool,
    pub(super) asleep_since: Millis,
    pub(super) last_round: Option<Millis>,
    pub(super) wait: Duration,
    pub(super) going: Option<Leaving>,
    pub(super) stop: Option<Leaving>,
    pub(super) farewells: usize,
    pub(super) beat_mark: u64,
    /// Brokers that a heartbeat is on its way to.
    pub(super) beating: BTreeSet<usize>,
    beats_accepted: usize,
    beats_failed: usize,
    beat_again: bool,
    is_introduced: bool,
    pub(super) storing: Option<Storing>,
    pub(super) to_store: VecDeque<Why>,
    pub(super) idle: usize,
    pub(super) work: VecDeque<Rc<Batch>>,
    pub(super) owned: BTreeMap<u64, Ownership>,
}

impl World {
    pub(super) fn join(&mut self) {
        let number = self.members.len();
        // A process that is started again may come back under the id it had.
        let gone = self.members.iter().rev().find(|member| member.life == Life::Gone);
        let again = gone.map(|member| member.id.clone()).filter(|_| !self.is_polite());
        let is_taken = |id: &Arc<str>| self.members.iter().any(|member| member.life != Life::Gone && member.id == *id);
        let dice = self.rng.next();
        let fresh = format!("10.0.{}.{}@{}#{}", dice % 7, dice >> 8 & 0xff, dice >> 16 & 0x7fff, number);
        let id = again.filter(|id| dice.is_multiple_of(3) && !is_taken(id)).unwrap_or_else(|| Arc::from(fresh));
        let strategy = strategy(self.plan.strategy);
        let group: Arc<str> = Arc::from("group");
        self.members.push(Member {
            life: Life::Up,
            held: HeldTable::new(group.clone()),
            rebalancer: Some(Rebalancer::new(group, id.clone(), strategy)),
            links: self.brokers.iter().map(|_| None).collect(),
            routes: vec![None; self.topics.len()],
            route_mark: 0,
            round_mark: 0,
            is_wished: false,
            in_round: false,
            asleep_since: self.now,
            last_round: None,
            wait: Duration::from_millis(ROUND),
            going: None,
            stop: None,
            farewells: 0,
            beat_mark: 0,
            beating: BTreeSet::new(),
            beats_accepted: 0,
            beats_failed: 0,
            beat_again: false,
            is_introduced: false,
            storing: None,
            to_store: VecDeque::new(),
            idle: self.plan.workers,
            work: VecDeque::new(),
            owned: BTreeMap::new(),
            id,
        });
        self.counts.changes += 1;
        self.say(|| format!("{} joins", self.name(number)));
        let missing = self.odds().route_missing;
        if self.rng.chance(missing) {
            self.beat(number);
            let delay = self.rng.between((200, 5000));
            self.route_after(number, delay);
        } else {
            self.poll_route(number);
        }
        let jitter = self.rng.below(1000);
        self.after(super::work::PERSIST - jitter, Event::Persist(number));
    }

    /// Dies without a word; its connections stay until the brokers notice.
    pub(super) fn crash(&mut self, member: usize, noticed: Millis) {
        self.say(|| format!("{} dies; the brokers notice after {noticed} ms", self.name(member)));
        self.members[member].life = Life::Gone;
        for broker in 0..self.brokers.len() {
            if let Some(link) = &self.members[member].links[broker] {
                let connection = link.connection;
                self.after(noticed, Event::Lost { broker, connection });
            }
        }
    }

    pub(super) fn poll_route(&mut self, member: usize) {
        if self.members[member].life != Life::Up {
            return;
        }
        let mut is_changed = false;
        for topic in 0..self.topics.len() {
            let route = &self.routes[topic];
            let known = &mut self.members[member].routes[topic];
            if !route.queues.is_empty() && known.as_ref().is_none_or(|known| !Arc::ptr_eq(known, route)) {
                *known = Some(route.clone());
                is_changed = true;
            }
        }
        if is_changed {
            // Brokers first, then the round.
            self.beat(member);
            self.wake(member);
        }
        self.route_after(member, ROUTE);
    }

    pub(super) fn route_after(&mut self, member: usize, delay: Millis) {
        self.members[member].route_mark += 1;
        let mark = self.members[member].route_mark;
        self.after(delay, Event::Route { member, mark });
    }

    pub(super) fn knows(&self, member: usize, broker: usize) -> bool {
        self.members[member].routes.iter().flatten().any(|route| route.brokers.contains(&broker))
    }

    /// Sends a heartbeat to every broker, unless one is under way; then another follows it.
    pub(super) fn beat(&mut self, member: usize) {
        let state = &mut self.members[member];
        if state.life != Life::Up {
            return;
        }
        if !state.beating.is_empty() {
            state.beat_again = true;
            return;
        }
        let targets: BTreeSet<_> = state.routes.iter().flatten().flat_map(|route| route.brokers.clone()).collect();
        (state.beats_accepted, state.beats_failed) = (0, 0);
        state.beating.clone_from(&targets);
        for broker in &targets {
            self.call(member, *broker, 0, Kind::Beat);
        }
        if targets.is_empty() {
            self.beat_done(member);
        }
    }

    pub(super) fn beat_answered(&mut self, member: usize, broker: usize, is_accepted: bool) {
        let state = &mut self.members[member];
        state.beating.remove(&broker);
        if is_accepted {
            state.beats_accepted += 1;
        } else {
            state.beats_failed += 1;
        }
        if state.beating.is_empty() {
            self.beat_done(member);
        }
    }

    fn beat_done(&mut self, member: usize) {
        let state = &mut self.members[member];
        let is_registered = state.beats_accepted > 0 && state.held.all().is_empty();
        let is_first = !std::mem::replace(&mut state.is_introduced, true);
        let delay = if std::mem::take(&mut state.beat_again) {
            0
        } else if state.beats_failed > 0 {
            BEAT_AGAIN
        } else {
            BEAT
        };
        state.beat_mark += 1;
        let mark = state.beat_mark;
        self.after(delay, Event::Beat { member, mark });
        if is_registered || is_first {
            self.wake(member);
        }
    }

    /// A graceful stop.
    pub(super) fn leave(&mut self, member: usize, timeout: Millis) {
        self.say(|| format!("{} begins to leave", self.name(member)));
        let due = self.now + timeout;
        let state = &mut self.members[member];
        state.life = Life::Stopping;
        let queues = state.held.stop_handing_out();
        state.stop = Some(Leaving { queues, due, is_storing: false });
        self.after(timeout, Event::GraceOver { member });
        self.check_drained(member);
    }

    pub(super) fn stopping_queues(&self, member: usize) -> Vec<Arc<HeldQueue>> {
        self.members[member].stop.as_ref().map_or_else(Vec::new, |stop| stop.queues.clone())
    }

    /// The offsets are stored: the rest of the stop.
    pub(super) fn stopped(&mut self, member: usize) {
        for held in self.members[member].held.all() {
            self.members[member].held.remove(&held);
            self.end_ownership(member, &held);
        }
        for broker in 0..self.brokers.len() {
            if self.members[member].links[broker].is_some() {
                self.members[member].farewells += 1;
                self.call(member, broker, 0, Kind::Leave);
            }
        }
        if self.members[member].farewells == 0 {
            self.left(member);
        }
    }

    pub(super) fn left(&mut self, member: usize) {
        self.say(|| format!("{} has left", self.name(member)));
        self.members[member].life = Life::Gone;
        for broker in 0..self.brokers.len() {
            if let Some(link) = &self.members[member].links[broker] {
                let connection = link.connection;
                let delay = self.latency();
                self.after(delay, Event::Lost { broker, connection });
            }
        }
    }

    pub(super) fn reset(&mut self, member: usize, log: usize, offset: i64) {
        if self.members[member].life == Life::Gone {
            return;
        }
        let held = self.members[member].held.all().into_iter().find(|held| held.queue == self.logs[log].queue);
        if let Some(held) = held {
            self.restart(member, &held, offset);
        }
    }

    /// As `restart_at` of the push consumer: the ownership ends and the next one begins in one step.
    pub(super) fn restart(&mut self, member: usize, held: &Arc<HeldQueue>, offset: i64) {
        let Some(next) = self.members[member].held.restart(held, offset) else { return };
        self.say(|| format!("{} begins {} again at {offset}", self.name(member), held.queue));
        self.end_ownership(member, held);
        self.begin_ownership(member, &next);
        self.members[member].to_store.push_back(Why::Corrected(next));
        self.store_next(member);
    }

    /// How many queues of each phase a member holds, for people.
    pub(super) fn holding(&self, member: usize) -> Vec<(MessageQueue, QueuePhase)> {
        self.members[member].held.all().iter().map(|held| (held.queue.clone(), held.phase())).collect()
    }
}
