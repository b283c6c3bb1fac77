//! What must hold: always, and at rest.

use super::member::{Batch, Life};
use super::plan::Class;
use super::world::World;
use crate::consumer::held::{HeldQueue, QueuePhase};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the checks know of an ownership, kept apart from what the code under test knows.
pub(super) struct Ownership {
    held: Arc<HeldQueue>,
    log: usize,
    /// Set when it is over: the offset that it would have stored then, which must not change any more.
    ended: Option<Option<i64>>,
    handed_to: i64,
    /// Pull tickets that are under way; a parked one does not count.
    tickets: i32,
}

/// What happened in a schedule, or in many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) schedules: u64,
    pub(super) changes: u64,
    pub(super) moves: u64,
    pub(super) messages: u64,
    pub(super) duplicates: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.changes += other.changes;
        self.moves += other.moves;
        self.messages += other.messages;
        self.duplicates += other.duplicates;
    }
}

impl World {
    pub(super) fn class(&self) -> Class {
        self.plan.class
    }

    pub(super) fn begin_ownership(&mut self, member: usize, held: &Arc<HeldQueue>) {
        let log = self.index[&held.queue];
        let owned = &self.members[member].owned;
        let other = owned.values().find(|other| other.log == log && other.ended.is_none());
        if let Some(other) = other.map(|other| other.held.epoch) {
            let name = self.name(member);
            self.fail(format!("{name} has two ownerships of {}, {other} and {}", held.queue, held.epoch));
        } else if owned.last_key_value().is_some_and(|(last, _)| *last >= held.epoch) {
            let name = self.name(member);
            self.fail(format!("the epochs of {name} do not rise: {}", held.epoch));
        }
        self.counts.moves += 1;
        let ownership = Ownership { held: held.clone(), log, ended: None, handed_to: i64::MIN, tickets: 0 };
        self.members[member].owned.insert(held.epoch, ownership);
    }

    /// The ownership is over; what it cached is given back, as the push consumer does, and its offset stays.
    pub(super) fn end_ownership(&mut self, member: usize, held: &Arc<HeldQueue>) {
        let before = held.commit_offset();
        if let Some(process) = held.process() {
            process.abandon();
        }
        let (phase, after) = (held.phase(), held.commit_offset());
        if phase != QueuePhase::Released || before != after {
            let name = self.name(member);
            self.fail(format!("{name} left {} {phase:?}, to be stored {before:?} and then {after:?}", held.queue));
        }
        if let Some(ownership) = self.members[member].owned.get_mut(&held.epoch)
            && ownership.ended.is_none()
        {
            ownership.ended = Some(after);
        }
    }

    /// Counts the pull tickets of an ownership: there is never more than one.
    pub(super) fn ticket(&mut self, member: usize, held: &HeldQueue, by: i32) {
        let Some(ownership) = self.members[member].owned.get_mut(&held.epoch) else { return };
        ownership.tickets += by;
        let tickets = ownership.tickets;
        if !(0..=1).contains(&tickets) && ownership.ended.is_none() {
            self.fail(format!("{} has {tickets} pull tickets", held.queue));
        }
    }

    /// An offset leaves a member for a broker.
    pub(super) fn check_commit(&mut self, member: usize, held: &HeldQueue, log: usize, offset: i64) {
        let name = self.name(member);
        let is_over = self.members[member].owned.get(&held.epoch).is_none_or(|ownership| ownership.ended.is_some());
        if is_over {
            self.fail(format!("{name} stores {offset} of {} under an ownership that is over", held.queue));
        }
        let finished_to = self.logs[log].finished_to();
        if offset > finished_to {
            self.fail(format!("{name} stores {offset} of {}, and {finished_to} is not finished", held.queue));
        }
    }

    /// An offset reaches a broker.
    pub(super) fn commit(&mut self, member: usize, log: usize, offset: i64) {
        let now = self.now;
        if offset > self.logs[log].finished_to() || offset < 0 {
            let name = self.name(member);
            let (queue, finished_to) = (self.logs[log].queue.clone(), self.logs[log].finished_to());
            self.fail(format!("the broker of {queue} stores {offset} for {name}, and {finished_to} is not finished"));
        }
        self.logs[log].store(offset, now);
    }

    /// Messages go to a listener.
    pub(super) fn check_hand_out(&mut self, member: usize, batch: &Batch, offsets: &[i64]) {
        let queue = &batch.held.queue;
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        let is_draining = batch.held.phase() == QueuePhase::Draining;
        let Some(ownership) = self.members[member].owned.get_mut(&batch.held.epoch) else { return };
        let (is_over, handed_to) = (ownership.ended.is_some(), ownership.handed_to);
        ownership.handed_to = handed_to.max(last + 1);
        if is_over {
            let name = self.name(member);
            self.fail(format!("{name} hands out {first} of {queue} under an ownership that is over"));
        } else if is_draining && first >= handed_to {
            let name = self.name(member);
            self.fail(format!("{name} hands out {first} of {queue} while it gives the queue up"));
        }
        for offset in offsets {
            if self.logs[batch.log].deliver(*offset) {
                self.counts.duplicates += 1;
                self.say(|| format!("{} sees {queue} {offset} again", self.name(member)));
                if self.class() == Class::Polite {
                    let name = self.name(member);
                    self.fail(format!("{name} sees {queue} {offset} again, and nothing went wrong"));
                }
            }
        }
    }

    /// A listener has returned, and `finished` messages counted as finished.
    pub(super) fn check_finished(&mut self, member: usize, batch: &Batch, offsets: &[i64], finished: usize) {
        let Some(ownership) = self.members[member].owned.get(&batch.held.epoch) else { return };
        let queue = &batch.held.queue;
        if let Some(commit) = ownership.ended {
            if finished > 0 || batch.held.commit_offset() != commit {
                let name = self.name(member);
                self.fail(format!("{name} finishes {offsets:?} of {queue} under an ownership that is over"));
            }
            return;
        }
        if finished != offsets.len() {
            let name = self.name(member);
            self.fail(format!("{finished} of {} messages of {queue} were finished by {name}", offsets.len()));
        }
        for offset in offsets {
            self.logs[batch.log].finish(*offset);
        }
    }

    /// Whether the group is where it must come to; if not, what is missing. It is asked often, and the text is made
    /// only when it `explains`.
    pub(super) fn at_rest(&self, explains: bool) -> Result<(), String> {
        let not_yet = |why: &dyn Fn() -> String| Err(if explains { why() } else { String::new() });
        if self.notices_under_way > 0 {
            return not_yet(&|| "notices are under way".to_owned());
        }
        let up: Vec<_> = (0..self.members.len()).filter(|at| self.members[*at].life == Life::Up).collect();
        let mut ids: Vec<_> = up.iter().map(|member| self.members[*member].id.clone()).collect();
        ids.sort();
        for broker in &self.brokers {
            let mut listed: Vec<_> = broker.table.values().cloned().collect();
            listed.sort();
            if listed != ids {
                return not_yet(&|| format!("broker {} lists {listed:?} and not {ids:?}", broker.address));
            }
        }
        let mut owners: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, member) in self.members.iter().enumerate().filter(|(_, member)| member.life != Life::Gone) {
            if member.life == Life::Stopping || member.in_round {
                return not_yet(&|| format!("{} is in a round or stops", self.name(at)));
            }
            for held in member.held.all() {
                if held.phase() != QueuePhase::Pulling {
                    return not_yet(&|| format!("{} of {} is {:?}", held.queue, self.name(at), held.phase()));
                }
                owners.entry(self.index[&held.queue]).or_default().push(at);
            }
            let live = member.owned.values().filter(|ownership| ownership.ended.is_none()).count();
            if live != member.held.all().len() {
                return not_yet(&|| {
                    format!("{} has {live} ownerships and holds {:?}", self.name(at), self.holding(at))
                });
            }
        }
        for (at, log) in self.logs.iter().enumerate() {
            match owners.get(&at).map_or(&[][..], |owners| &owners[..]) {
                [_] => {}
                owners => return not_yet(&|| format!("{} has the owners {owners:?}", log.queue)),
            }
            if log.finished_to() != log.end || log.stored != Some(log.end) {
                let (finished, stored) = (log.finished_to(), log.stored);
                return not_yet(&|| {
                    format!("{} ends at {}, finished to {finished}, stored {stored:?}", log.queue, log.end)
                });
            }
        }
        Ok(())
    }

    /// Offsets at rest never go back.
    pub(super) fn note_rest(&mut self) -> Result<(), String> {
        for log in &mut self.logs {
            let stored = log.stored.unwrap_or(0);
            if stored < log.at_rest {
                return Err(format!("{} was at {} when it was at rest and is at {stored}", log.queue, log.at_rest));
            }
            log.at_rest = stored;
        }
        Ok(())
    }
}
