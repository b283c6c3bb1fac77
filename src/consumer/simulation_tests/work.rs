//! A member at work: locating, pulling, listening, storing. The decisions are those of the crate.

use super::Millis;
use super::member::{Batch, Life};
use super::world::{Answer, Call, Event, Kind, World};
use crate::api::pull::{PullResult, PullStatus};
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::offset::{self, Due};
use crate::consumer::process_queue::Limits;
use crate::consumer::pull::flow_control::{Correction, back_off, correct};
use crate::consumer::rebalance::start_offset::{ConsumeFromWhere, Policy, policy};
use bytes::Bytes;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The defaults of the client.
pub(super) const PERSIST: Millis = 5000;
const PULL_ERROR_DELAY: Millis = 1000;
const LOCATE_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_LOCATE_PAUSE: Duration = Duration::from_secs(5);
const UNREGISTERED_PAUSE: Duration = Duration::from_millis(100);
const KEPT_FOR: Millis = 5000;
/// Between taking stock of what is to be stored and sending it; a thread may be held up there.
const HELD_UP: Millis = 3;
const SIZE: usize = 100;

/// Why offsets are stored. One at a time, as in the client.
pub(super) enum Why {
    Periodic,
    GiveUp,
    Stop,
    Corrected(Arc<HeldQueue>),
}

pub(super) struct Storing {
    why: Why,
    queues: Vec<Arc<HeldQueue>>,
    left: usize,
}

impl World {
    fn limits(&self) -> Limits {
        Limits { messages: self.plan.cached, bytes: 1 << 30, span: self.plan.cached as i64 * 4 }
    }

    fn log_of(&self, held: &HeldQueue) -> usize {
        self.index[&held.queue]
    }

    pub(super) fn locate(&mut self, member: usize, held: &Arc<HeldQueue>, failures: u32) {
        if self.members[member].life != Life::Up {
            return;
        }
        let is_first = held.advance(QueuePhase::Wanted, QueuePhase::Locating);
        if !(is_first || held.phase() == QueuePhase::Locating) {
            return;
        }
        let log = self.log_of(held);
        let broker = self.logs[log].broker;
        if self.knows(member, broker) {
            self.call(member, broker, log, Kind::Find { held: held.clone(), failures });
        } else {
            self.not_located(member, held, failures);
        }
    }

    fn not_located(&mut self, member: usize, held: &Arc<HeldQueue>, failures: u32) {
        let pause = back_off(failures + 1, LOCATE_PAUSE, LONGEST_LOCATE_PAUSE).as_millis() as Millis;
        self.after(pause, Event::Locate { member, held: held.clone(), failures: failures + 1 });
    }

    fn located(&mut self, member: usize, held: &Arc<HeldQueue>, start: i64, is_stored: bool) {
        if held.begin(start, is_stored.then_some(start)) {
            let log = self.log_of(held);
            if !is_stored {
                self.logs[log].begins_at(start);
            }
            self.say(|| format!("{} begins {} at {start}", self.name(member), held.queue));
            self.ticket(member, held, 1);
            self.after(0, Event::Pull { member, held: held.clone() });
        }
    }

    /// An answer, or the failure of a request, reaches its member.
    pub(super) fn answered(&mut self, call: Call, answer: Answer) {
        let Call { member, broker, log, kind, .. } = call;
        match (kind, answer) {
            (Kind::Beat, answer) => self.beat_answered(member, broker, matches!(answer, Answer::Done)),
            (Kind::Leave, _) => {
                self.members[member].farewells -= 1;
                if self.members[member].farewells == 0 {
                    self.left(member);
                }
            }
            (Kind::Store { held, offset }, answer) => {
                if matches!(answer, Answer::Done) {
                    offset::confirm(&held, offset);
                }
                self.store_answered(member);
            }
            (Kind::Find { held, .. } | Kind::FindEnd { held, .. }, Answer::Offset(offset)) if offset < 0 => {
                self.fail(format!("a broker named {offset} for {}", held.queue));
            }
            (Kind::Find { held, .. }, Answer::Offset(offset)) => self.located(member, &held, offset, true),
            (Kind::Find { held, failures }, Answer::Absent) => {
                let from =
                    if self.plan.from_end { ConsumeFromWhere::LastOffset } else { ConsumeFromWhere::FirstOffset };
                match policy(from, held.queue.topic()) {
                    Policy::Zero => self.located(member, &held, 0, false),
                    Policy::Max | Policy::At(_) => self.call(member, broker, log, Kind::FindEnd { held, failures }),
                }
            }
            (Kind::FindEnd { held, .. }, Answer::Offset(offset)) => self.located(member, &held, offset, false),
            (Kind::Find { held, failures } | Kind::FindEnd { held, failures }, _) => {
                self.not_located(member, &held, failures);
            }
            (Kind::Pull { held, asked, .. }, answer) => {
                if held.is_pulling() && self.members[member].life == Life::Up {
                    self.pulled(member, &held, log, asked, answer);
                }
            }
        }
    }

    /// A pull ticket is taken up.
    pub(super) fn pull(&mut self, member: usize, held: &Arc<HeldQueue>) {
        let state = &self.members[member];
        let is_current = state.held.get(&held.queue, held.epoch).is_some_and(|current| Arc::ptr_eq(&current, held));
        if state.life != Life::Up || !is_current || !held.is_pulling() {
            return;
        }
        let Some(process) = held.process() else { return };
        if process.admit(&self.limits()).is_err() {
            return self.ticket(member, held, -1); // parked
        }
        let log = self.log_of(held);
        let broker = self.logs[log].broker;
        if !self.knows(member, broker) {
            self.route_after(member, 0);
            return self.after(PULL_ERROR_DELAY, Event::Pull { member, held: held.clone() });
        }
        let commit = held.carried_commit();
        if let Some(commit) = commit {
            self.check_commit(member, held, log, commit);
        }
        let asked = held.with_progress(|progress| progress.next_offset);
        self.call(member, broker, log, Kind::Pull { held: held.clone(), asked, commit });
    }

    fn pulled(&mut self, member: usize, held: &Arc<HeldQueue>, log: usize, asked: i64, answer: Answer) {
        let mut pause = 0;
        match answer {
            Answer::Found { messages, next } => {
                held.with_progress(|progress| progress.failures = 0);
                let taken = held.take_in(messages.iter().map(|offset| (*offset, SIZE)), next.max(asked));
                let taken = messages.into_iter().zip(taken).filter_map(|(offset, taken)| taken.then_some(offset));
                let offsets: Vec<_> = taken.collect();
                if !offsets.is_empty() {
                    let batch = Batch { held: held.clone(), log, offsets, cursor: Cell::new(0) };
                    self.offer(member, Rc::new(batch));
                }
            }
            Answer::Nothing { next } => held.pass_over(next.max(asked)),
            Answer::Moved { min, max, next } => {
                let answer = PullResult {
                    status: PullStatus::OffsetIllegal,
                    next_begin_offset: next,
                    min_offset: min,
                    max_offset: max,
                    suggest_which_broker_id: 0,
                    offset_delta: 0,
                    body: Bytes::new(),
                };
                match correct(asked, held.commit_offset().unwrap_or(asked), &answer) {
                    Correction::GoOnAt(at) => held.pass_over(at),
                    Correction::RestartAt(at) => return self.restart(member, held, at),
                }
            }
            Answer::Refused => {
                let failures = held.with_progress(|progress| {
                    progress.failures += 1;
                    progress.failures
                });
                self.beat(member);
                let most = Duration::from_millis(PULL_ERROR_DELAY);
                pause = back_off(failures, UNREGISTERED_PAUSE, most).as_millis() as Millis;
            }
            Answer::Failed | Answer::Done | Answer::Offset(_) | Answer::Absent => {
                offset::doubt(held);
                self.route_after(member, 0);
                pause = PULL_ERROR_DELAY;
            }
        }
        self.after(pause, Event::Pull { member, held: held.clone() });
    }

    /// Messages for the listener.
    pub(super) fn offer(&mut self, member: usize, batch: Rc<Batch>) {
        if self.members[member].life != Life::Gone {
            self.members[member].work.push_back(batch);
            self.employ(member);
        }
    }

    /// Idle workers take what there is.
    fn employ(&mut self, member: usize) {
        while self.members[member].idle > 0
            && let Some(batch) = self.members[member].work.pop_front()
        {
            if batch.held.enter() {
                self.members[member].idle -= 1;
                self.work_on(member, batch, false);
            }
        }
    }

    fn work_on(&mut self, member: usize, batch: Rc<Batch>, mut passed_on: bool) {
        let start = batch.cursor.get();
        let end = (start + self.plan.batch).min(batch.offsets.len());
        batch.cursor.set(end);
        if start < end {
            let (first, last) = (batch.offsets[start], batch.offsets[end - 1]);
            if batch.held.may_hand_out(first, last) {
                self.check_hand_out(member, &batch, &batch.offsets[start..end]);
                if !passed_on && end < batch.offsets.len() {
                    self.members[member].work.push_back(batch.clone());
                    passed_on = true;
                }
                let time = if self.is_calm { (1, 20) } else { self.plan.listener };
                let delay = self.rng.between(time);
                return self.after(delay, Event::Chunk { member, batch, range: start..end, passed_on });
            }
        }
        batch.held.leave();
        self.members[member].idle += 1;
        self.check_drained(member);
    }

    /// The listener returns.
    pub(super) fn chunk_done(&mut self, member: usize, batch: Rc<Batch>, range: Range<usize>, passed_on: bool) {
        if self.members[member].life == Life::Gone {
            return;
        }
        let fails = self.odds().send_back_fails;
        let (mut offsets, mut kept) = (Vec::new(), Vec::new());
        for offset in &batch.offsets[range] {
            // Failed, and the broker does not take it back: it stays unfinished and is offered again.
            if fails > 0 && self.rng.chance(fails) && batch.held.phase() != QueuePhase::Released {
                kept.push(*offset);
            } else {
                offsets.push(*offset);
            }
        }
        if !kept.is_empty() {
            let (held, log) = (batch.held.clone(), batch.log);
            let batch = Rc::new(Batch { held, log, offsets: kept, cursor: Cell::new(0) });
            self.after(KEPT_FOR, Event::Offer { member, batch });
        }
        if let Some(process) = batch.held.process() {
            let finished = process.finish(&offsets, &self.limits());
            self.check_finished(member, &batch, &offsets, finished.messages);
            if finished.unparked {
                self.ticket(member, &batch.held, 1);
                self.after(0, Event::Pull { member, held: batch.held.clone() });
            }
        }
        self.work_on(member, batch, passed_on);
        self.employ(member);
    }

    pub(super) fn persist(&mut self, member: usize) {
        if self.members[member].life != Life::Gone {
            self.members[member].to_store.push_back(Why::Periodic);
            self.store_next(member);
        }
    }

    /// Begins the next round of storing, when none is under way.
    pub(super) fn store_next(&mut self, member: usize) {
        let state = &mut self.members[member];
        if state.storing.is_some() {
            return;
        }
        let Some(why) = state.to_store.pop_front() else { return };
        let queues = match &why {
            Why::Periodic => state.held.all(),
            Why::GiveUp => state.going.as_ref().map_or_else(Vec::new, |going| going.queues.clone()),
            Why::Stop => self.stopping_queues(member),
            Why::Corrected(held) => vec![held.clone()],
        };
        let delay = if matches!(why, Why::Periodic) { self.rng.below(HELD_UP) } else { 0 };
        self.members[member].storing = Some(Storing { why, queues, left: 0 });
        self.after(delay, Event::Send { member });
    }

    pub(super) fn send_stores(&mut self, member: usize) {
        let state = &mut self.members[member];
        if state.life == Life::Gone {
            return;
        }
        let Some(storing) = &mut state.storing else { return };
        // One more than there are, so that it cannot end before all are sent.
        storing.left = 1;
        for held in std::mem::take(&mut storing.queues) {
            let Due::Send(offset) = offset::due(&held) else { continue };
            let log = self.log_of(&held);
            let broker = self.logs[log].broker;
            if self.knows(member, broker) {
                self.check_commit(member, &held, log, offset);
                if let Some(storing) = &mut self.members[member].storing {
                    storing.left += 1;
                }
                self.call(member, broker, log, Kind::Store { held, offset });
            }
        }
        self.store_answered(member);
    }

    fn store_answered(&mut self, member: usize) {
        let Some(storing) = &mut self.members[member].storing else { return };
        storing.left -= 1;
        if storing.left > 0 {
            return;
        }
        let Some(storing) = self.members[member].storing.take() else { return };
        match storing.why {
            Why::Periodic => self.after(PERSIST, Event::Persist(member)),
            Why::GiveUp => self.gave_up(member),
            Why::Stop => self.stopped(member),
            Why::Corrected(held) => {
                self.ticket(member, &held, 1);
                self.after(0, Event::Pull { member, held });
            }
        }
        self.store_next(member);
    }
}
