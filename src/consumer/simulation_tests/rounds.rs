//! Rounds, and what they give up.

use super::Millis;
use super::member::{Leaving, Life, ROUND};
use super::work::Why;
use super::world::{Event, Route, World};
use crate::consumer::held::{Exchange, HeldQueue, HeldTable};
use crate::consumer::rebalance::diff::Diff;
use crate::consumer::rebalance::{GroupView, QueueOwner};
use crate::error::{Error, ErrorKind, Result};
use crate::instance::rebalance_service::due;
use crate::instance::role::Round;
use crate::message::MessageQueue;
use crate::protocol::body::GetConsumerListByGroupResponseBody;
use crate::time::Deadline;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

/// The default of the client.
const LEAST: Millis = 250;

/// What a round may see, as its member sees it at that moment.
struct View<'a> {
    world: &'a World,
    member: usize,
    dice: u64,
    asked: RefCell<Vec<(usize, Option<Bytes>)>>,
    not_listed: Cell<bool>,
}

impl View<'_> {
    fn route(&self, topic: &str) -> Option<&Arc<Route>> {
        let at = self.world.topics.iter().position(|known| **known == *topic)?;
        self.world.members[self.member].routes[at].as_ref()
    }
}

impl GroupView for View<'_> {
    fn readable(&self, topic: &str) -> Option<Arc<[MessageQueue]>> {
        self.route(topic).map(|route| route.queues.clone())
    }

    fn brokers_of(&self, topic: &str) -> Vec<Arc<str>> {
        let brokers = self.route(topic).map(|route| &route.brokers[..]).unwrap_or_default();
        brokers.iter().map(|broker| self.world.brokers[*broker].address.clone()).collect()
    }

    fn member_list(&self, address: &Arc<str>) -> Result<Bytes> {
        let Some(broker) = self.world.brokers.iter().position(|broker| broker.address == *address) else {
            return Err(Error::new(ErrorKind::Connect, "no such broker"));
        };
        let us = &self.world.members[self.member].id;
        let answer = if self.world.reachable(self.member, broker) {
            self.world.brokers[broker].list(us, self.world.now, self.dice)
        } else {
            Err(Error::new(ErrorKind::Connect, "refused").with_address(&**address))
        };
        self.asked.borrow_mut().push((broker, answer.as_ref().ok().cloned()));
        answer
    }

    fn not_listed(&self) {
        self.not_listed.set(true);
    }
}

struct Owner<'a> {
    held: &'a HeldTable,
    applied: RefCell<Option<(Diff, Exchange, bool)>>,
}

impl QueueOwner for Owner<'_> {
    fn held(&self, topic: &str) -> Vec<MessageQueue> {
        self.held.owned_of(topic)
    }

    fn held_topics(&self) -> Vec<Arc<str>> {
        self.held.topics()
    }

    fn apply(&self, changes: Diff, alone: bool) {
        let exchange = self.held.exchange(&changes.drop, &changes.add);
        *self.applied.borrow_mut() = Some((changes, exchange, alone));
    }
}

impl World {
    /// Asks for a round soon.
    pub(super) fn wake(&mut self, member: usize) {
        let state = &mut self.members[member];
        if state.life == Life::Up && !state.is_wished {
            state.is_wished = true;
            self.schedule_round(member);
        }
    }

    fn schedule_round(&mut self, member: usize) {
        let state = &self.members[member];
        if state.in_round {
            return; // the end of the round comes here again
        }
        let (asleep_since, last) = (self.instant(state.asleep_since), state.last_round.map(|at| self.instant(at)));
        let at = due(state.is_wished, asleep_since, last, state.wait, Duration::from_millis(LEAST));
        let at = self.millis(at).max(self.now);
        let state = &mut self.members[member];
        state.round_mark += 1;
        let mark = state.round_mark;
        self.after(at - self.now, Event::Round { member, mark });
    }

    pub(super) fn round(&mut self, member: usize) {
        let now = self.now;
        let state = &mut self.members[member];
        state.is_wished = false;
        state.in_round = true;
        state.last_round = Some(now);
        state.wait = Duration::from_millis(ROUND);
        if state.life == Life::Stopping {
            return self.end_round(member);
        }
        let Some(mut rebalancer) = state.rebalancer.take() else { return };
        for broker in &mut self.brokers {
            broker.refresh();
        }
        let view = View {
            dice: self.rng.next(),
            world: self,
            member,
            asked: RefCell::new(Vec::new()),
            not_listed: Cell::new(false),
        };
        let owner = Owner { held: &self.members[member].held, applied: RefCell::new(None) };
        let round = rebalancer.round(&view, &self.topics, &owner);
        let (asked, not_listed) = (view.asked.into_inner(), view.not_listed.get());
        let applied = owner.applied.into_inner();
        self.members[member].rebalancer = Some(rebalancer);
        if let Round::Again(soon) = round {
            self.members[member].wait = soon;
        }
        for (broker, _) in &asked {
            self.connect(member, *broker, false);
        }
        if not_listed {
            self.beat(member);
        }
        let Some((changes, exchange, alone)) = applied else { return self.end_round(member) };
        self.say(|| format!("{} takes {:?}, gives up {:?}", self.name(member), changes.add, changes.drop));
        self.check_basis(member, &changes, &asked);
        for held in exchange.coming {
            self.begin_ownership(member, &held);
            let delay = if alone { 0 } else { self.plan.takeover };
            self.after(delay, Event::Locate { member, held, failures: 0 });
        }
        if exchange.going.is_empty() {
            return self.end_round(member);
        }
        let due = self.now + self.plan.grace;
        self.members[member].going = Some(Leaving { queues: exchange.going, due, is_storing: false });
        self.after(self.plan.grace, Event::GraceOver { member });
        self.check_drained(member);
    }

    fn end_round(&mut self, member: usize) {
        let now = self.now;
        let state = &mut self.members[member];
        state.in_round = false;
        state.asleep_since = now;
        self.schedule_round(member);
    }

    /// A round changes a topic only when a broker of the topic has listed this member.
    fn check_basis(&mut self, member: usize, changes: &Diff, asked: &[(usize, Option<Bytes>)]) {
        let us = self.members[member].id.clone();
        let lists = asked.iter().filter_map(|(broker, body)| Some((broker, body.as_ref()?)));
        let listing: Vec<_> = lists
            .filter(|(_, body)| {
                let list = GetConsumerListByGroupResponseBody::decode(body);
                list.is_ok_and(|list| list.consumer_id_list.contains(&us))
            })
            .map(|(broker, _)| *broker)
            .collect();
        for queue in changes.add.iter().chain(&changes.drop) {
            let topic = self.topics.iter().position(|topic| topic == queue.shared_topic());
            let route = topic.and_then(|topic| self.members[member].routes[topic].clone());
            if !route.is_some_and(|route| route.brokers.iter().any(|broker| listing.contains(broker))) {
                let name = self.name(member);
                self.fail(format!("{name} changes the ownership of {queue} and no broker has listed it"));
            }
        }
    }

    /// Goes on with what is being given up, once it is drained or its time is over.
    pub(super) fn check_drained(&mut self, member: usize) {
        let now = self.now;
        let state = &mut self.members[member];
        if state.life == Life::Gone {
            return;
        }
        for (leaving, why) in [(&mut state.going, Why::GiveUp), (&mut state.stop, Why::Stop)] {
            let Some(leaving) = leaving.as_mut().filter(|leaving| !leaving.is_storing) else { continue };
            let is_drained = |held: &Arc<HeldQueue>| held.wait_drained(Deadline::after(Duration::ZERO));
            if now >= leaving.due || leaving.queues.iter().all(is_drained) {
                leaving.is_storing = true;
                state.to_store.push_back(why);
            }
        }
        self.store_next(member);
    }

    /// What was given up is stored, or could not be.
    pub(super) fn gave_up(&mut self, member: usize) {
        let Some(going) = self.members[member].going.take() else { return };
        for held in &going.queues {
            self.members[member].held.remove(held);
            self.end_ownership(member, held);
        }
        self.end_round(member);
    }
}
