//! The script as it happens: members, brokers, routes and operators.

use super::Millis;
use super::broker::Log;
use super::member::Life;
use super::plan::Act;
use super::world::{Event, Route, World};
use crate::message::MessageQueue;
use std::sync::Arc;

/// A broker that is away for longer is taken out of the routes.
const UNLISTED_AFTER: Millis = 10_000;

impl World {
    pub(super) fn act(&mut self, act: Act) {
        let up: Vec<_> = (0..self.members.len()).filter(|at| self.members[*at].life == Life::Up).collect();
        let pick = |who: u64| up.get((who % up.len().max(1) as u64) as usize).copied();
        match act {
            Act::Join if up.len() < self.plan.most_members => self.join(),
            Act::Join => {}
            Act::Leave { who, timeout } => {
                if let Some(member) = pick(who) {
                    self.counts.changes += 1;
                    self.leave(member, timeout);
                }
            }
            Act::Crash { who, noticed } => {
                if let Some(member) = pick(who) {
                    self.counts.changes += 1;
                    self.crash(member, noticed);
                }
            }
            Act::Restart { broker, down, forgets } => {
                let broker = (broker % self.brokers.len() as u64) as usize;
                if self.brokers[broker].is_up {
                    self.counts.changes += 1;
                    self.broker_down(broker, down, forgets);
                }
            }
            Act::Cut { who, broker, lasts } => {
                let broker = (broker % self.brokers.len() as u64) as usize;
                if let Some(member) = pick(who) {
                    self.counts.changes += 1;
                    self.say(|| format!("{} is cut off from broker {broker} for {lasts} ms", self.name(member)));
                    self.cuts.insert((member, broker), self.now + lasts);
                    if let Some(link) = &self.members[member].links[broker] {
                        self.lose(broker, link.connection);
                    }
                }
            }
            Act::WrongList { broker, how, lasts } => {
                let broker = (broker % self.brokers.len() as u64) as usize;
                self.say(|| format!("broker {broker} lists members wrongly for {lasts} ms: {how:?}"));
                self.brokers[broker].wrong = Some((how, self.now + lasts));
            }
            Act::Reset { topic, part } => self.operator_resets(topic, part),
            Act::Trim { queue, part } => {
                let log = (queue % self.logs.len() as u64) as usize;
                let log = &mut self.logs[log];
                let stored = log.stored.unwrap_or(log.min).max(log.min);
                log.min += (stored - log.min) * part as i64 / 100;
                let (queue, min) = (log.queue.clone(), log.min);
                self.say(|| format!("{queue} is trimmed to {min}"));
            }
            Act::Grow { topic, broker } => {
                let topic = (topic % self.topics.len() as u64) as usize;
                let broker = (broker % self.brokers.len() as u64) as usize;
                if self.brokers[broker].is_up && self.logs.len() < 200 {
                    self.add_queue(topic, broker);
                    self.change_route(topic);
                    self.say(|| format!("topic {topic} grows on broker {broker}"));
                }
            }
            Act::Produce { queue, step, queues, messages } => {
                for turn in 0..queues {
                    let at = queue.wrapping_add(turn.wrapping_mul(step | 1)) % self.logs.len() as u64;
                    self.produce(at as usize, messages);
                }
            }
        }
    }

    pub(super) fn calm(&mut self) {
        self.say(|| "the faults stop".to_owned());
        self.is_calm = true;
        self.cuts.clear();
        for broker in 0..self.brokers.len() {
            self.brokers[broker].wrong = None;
            self.broker_up(broker);
        }
        if !self.members.iter().any(|member| member.life == Life::Up) {
            self.join();
        }
    }

    pub(super) fn add_queue(&mut self, topic: usize, broker: usize) {
        let name = self.brokers[broker].name.clone();
        let is_here = |log: &&Log| log.broker == broker && *log.queue.shared_topic() == self.topics[topic];
        let id = self.logs.iter().filter(is_here).count();
        let queue = MessageQueue::new(self.topics[topic].clone(), name, id as i32);
        self.index.insert(queue.clone(), self.logs.len());
        self.logs.push(Log::new(queue, broker, self.plan.filtered));
    }

    pub(super) fn change_routes(&mut self) {
        for topic in 0..self.topics.len() {
            self.change_route(topic);
        }
    }

    pub(super) fn change_route(&mut self, topic: usize) {
        let is_listed = |log: &&Log| !self.brokers[log.broker].is_unlisted;
        let logs = self.logs.iter().filter(|log| *log.queue.shared_topic() == self.topics[topic]).filter(is_listed);
        let mut queues: Vec<_> = logs.clone().map(|log| log.queue.clone()).collect();
        queues.sort();
        let mut brokers: Vec<_> = logs.map(|log| log.broker).collect();
        brokers.sort_unstable();
        brokers.dedup();
        // Name servers answer with nothing at all for a topic without a broker, and members keep what they know.
        if !queues.is_empty() && *queues != *self.routes[topic].queues {
            self.routes[topic] = Arc::new(Route { queues: queues.into(), brokers });
        }
    }

    pub(super) fn broker_down(&mut self, broker: usize, down: Millis, forgets: bool) {
        self.say(|| format!("broker {broker} goes away for {down} ms{}", if forgets { ", and forgets" } else { "" }));
        let state = &mut self.brokers[broker];
        state.is_up = false;
        state.table.clear();
        state.changed();
        let connections = std::mem::take(&mut state.connections);
        for log in self.logs.iter_mut().filter(|log| log.broker == broker) {
            log.waiting.clear();
            if forgets {
                log.forget(self.now);
            }
        }
        for member in connections.into_values() {
            self.unlink(member, broker);
        }
        self.after(down, Event::BrokerUp(broker));
        self.after(UNLISTED_AFTER, Event::Unlist(broker));
    }

    pub(super) fn broker_up(&mut self, broker: usize) {
        if !self.brokers[broker].is_up {
            self.say(|| format!("broker {broker} is back"));
            self.brokers[broker].is_up = true;
        }
        if std::mem::take(&mut self.brokers[broker].is_unlisted) {
            self.change_routes();
        }
    }

    pub(super) fn produce(&mut self, log: usize, messages: u64) {
        // Producers go elsewhere while a broker is away.
        if self.brokers[self.logs[log].broker].is_up {
            self.counts.messages += messages;
            self.logs[log].produce(messages);
            for call in std::mem::take(&mut self.logs[log].waiting) {
                self.answer_pull(call, false);
            }
        }
    }

    pub(super) fn operator_resets(&mut self, topic: u64, part: u64) {
        let topic = (topic % self.topics.len() as u64) as usize;
        for at in 0..self.logs.len() {
            let log = &self.logs[at];
            let (min, broker) = (log.min, log.broker);
            let Some(stored) = log.stored.filter(|stored| *stored >= min) else { continue };
            if *log.queue.shared_topic() != self.topics[topic] {
                continue;
            }
            let offset = min + (stored - min) * part as i64 / 100;
            self.say(|| format!("an operator resets {} from {stored} to {offset}", log.queue));
            self.logs[at].wanted_again_from(offset);
            for connection in self.brokers[broker].table.keys().copied().collect::<Vec<_>>() {
                let member = self.brokers[broker].connections[&connection];
                let delay = self.latency();
                self.after(delay, Event::Reset { member, log: at, offset });
            }
        }
    }
}
