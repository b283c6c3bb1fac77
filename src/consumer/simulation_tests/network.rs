//! Connections, requests and answers, and what brokers do with them.

use super::Millis;
use super::member::Link;
use super::world::{Answer, Call, Event, Kind, World};

/// So long an answer may take before the caller gives it up; pulls may take longer.
const REQUEST_TIMEOUT: Millis = 3000;
const PULL_TIMEOUT: Millis = 30_000;
/// A broker answers a pull that found nothing after this long.
const HOLD: Millis = 15_000;

impl World {
    pub(super) fn reachable(&self, member: usize, broker: usize) -> bool {
        self.brokers[broker].is_up && self.cuts.get(&(member, broker)).is_none_or(|until| *until <= self.now)
    }

    /// The connection to a broker, opened when there is none.
    pub(super) fn connect(&mut self, member: usize, broker: usize, is_beat: bool) -> Option<u64> {
        if let Some(link) = &self.members[member].links[broker] {
            return Some(link.connection);
        }
        if !self.reachable(member, broker) {
            return None;
        }
        let connection = self.number();
        self.members[member].links[broker] = Some(Link { connection, last_arrival: self.now });
        self.brokers[broker].connections.insert(connection, member);
        if !is_beat && !self.members[member].beating.contains(&broker) {
            let delay = self.latency();
            self.after(delay, Event::BeatNow(member));
        }
        Some(connection)
    }

    /// Sends a request; it arrives behind those that were sent before on the same connection.
    pub(super) fn call(&mut self, member: usize, broker: usize, log: usize, kind: Kind) {
        let connection = self.connect(member, broker, matches!(kind, Kind::Beat));
        let number = self.number();
        let delay = self.latency();
        let call = Call { member, broker, connection: connection.unwrap_or(0), log, kind };
        self.calls.insert(number, call);
        match &mut self.members[member].links[broker] {
            Some(link) => {
                link.last_arrival = link.last_arrival.max(self.now + delay);
                let delay = link.last_arrival - self.now;
                self.after(delay, Event::Arrive(number));
            }
            None => self.after(delay, Event::Answered(number, Answer::Failed)),
        }
    }

    pub(super) fn answer(&mut self, number: u64, answer: Answer) {
        let Some(call) = self.calls.get(&number) else { return };
        let timeout = if matches!(call.kind, Kind::Pull { .. }) { PULL_TIMEOUT } else { REQUEST_TIMEOUT };
        let slow = self.odds().answer_slow;
        let mut delay = self.latency();
        if self.rng.chance(slow) {
            delay += self.rng.below(8000);
        }
        if delay > timeout {
            self.after(timeout, Event::Answered(number, Answer::Failed));
        } else {
            self.after(delay, Event::Answered(number, answer));
        }
    }

    /// A member's end of a connection is closed.
    pub(super) fn unlink(&mut self, member: usize, broker: usize) {
        let Some(link) = self.members[member].links[broker].take() else { return };
        let broken = self.calls.iter().filter(|(_, call)| call.connection == link.connection);
        for number in broken.map(|(number, _)| *number).collect::<Vec<_>>() {
            let delay = self.latency();
            self.after(delay, Event::Answered(number, Answer::Failed));
        }
    }

    /// Both ends of a connection are closed.
    pub(super) fn lose(&mut self, broker: usize, connection: u64) {
        let Some(member) = self.brokers[broker].connections.remove(&connection) else { return };
        let calls = &self.calls;
        for log in self.logs.iter_mut().filter(|log| log.broker == broker) {
            log.waiting.retain(|call| calls.get(call).is_some_and(|call| call.connection != connection));
        }
        self.unlink(member, broker);
        self.unregister(broker, connection);
    }

    pub(super) fn register(&mut self, broker: usize, connection: u64, member: usize) {
        let id = self.members[member].id.clone();
        if self.brokers[broker].table.insert(connection, id).is_none() {
            self.brokers[broker].changed();
            self.notify(broker);
        }
    }

    pub(super) fn unregister(&mut self, broker: usize, connection: u64) {
        if self.brokers[broker].table.remove(&connection).is_some() {
            self.brokers[broker].changed();
            self.notify(broker);
        }
    }

    /// Tells all members that the group changed.
    pub(super) fn notify(&mut self, broker: usize) {
        let odds = self.odds();
        for connection in self.brokers[broker].table.keys().copied().collect::<Vec<_>>() {
            let member = self.brokers[broker].connections[&connection];
            let times = if self.rng.chance(odds.notice_lost) {
                0
            } else {
                1 + usize::from(self.rng.chance(odds.notice_doubled))
            };
            for _ in 0..times {
                let mut delay = self.latency();
                if self.rng.chance(odds.notice_late) {
                    delay += self.rng.below(30_000);
                }
                self.notices_under_way += 1;
                self.after(delay, Event::Notice { member, broker, connection });
            }
        }
    }

    /// A request arrives.
    pub(super) fn serve(&mut self, number: u64) {
        let Some(call) = self.calls.get(&number) else { return };
        let (broker, connection, member, log) = (call.broker, call.connection, call.member, call.log);
        if !self.brokers[broker].connections.contains_key(&connection) {
            return;
        }
        match call.kind.clone() {
            Kind::Beat => {
                self.register(broker, connection, member);
                self.answer(number, Answer::Done);
            }
            Kind::Leave => {
                self.unregister(broker, connection);
                self.answer(number, Answer::Done);
            }
            Kind::Store { offset, .. } => {
                self.commit(member, log, offset);
                self.answer(number, Answer::Done);
            }
            Kind::Find { .. } => {
                let answer = self.logs[log].stored.map_or(Answer::Absent, Answer::Offset);
                self.answer(number, answer);
            }
            Kind::FindEnd { .. } => self.answer(number, Answer::Offset(self.logs[log].end)),
            Kind::Pull { commit, .. } => {
                if let Some(commit) = commit {
                    self.commit(member, log, commit);
                }
                if self.brokers[broker].table.is_empty() {
                    self.answer(number, Answer::Refused);
                } else {
                    self.answer_pull(number, false);
                }
            }
        }
    }

    /// Answers a pull with what is there, or holds it until something comes.
    pub(super) fn answer_pull(&mut self, number: u64, is_over: bool) {
        let Some(Call { log, kind: Kind::Pull { asked, .. }, .. }) = self.calls.get(&number) else { return };
        let (at, asked) = (*log, *asked);
        let log = &mut self.logs[at];
        if asked < log.min || asked > log.end {
            let (min, max) = (log.min, log.end);
            return self.answer(number, Answer::Moved { min, max, next: if asked < min { min } else { 0 } });
        }
        if asked == log.end && !is_over {
            log.waiting.push(number);
            return self.after(HOLD, Event::Expire { log: at, call: number });
        }
        let next = log.end.min(asked + self.plan.pull_batch);
        let messages: Vec<_> = (asked..next).filter(|offset| log.matches(*offset)).collect();
        let answer = if messages.is_empty() { Answer::Nothing { next } } else { Answer::Found { messages, next } };
        self.answer(number, answer);
    }
}
