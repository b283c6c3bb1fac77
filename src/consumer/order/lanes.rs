//! The lanes of one ownership: which of its messages must wait for which. Pure; no threads, no clock.
//!
//! In a lane messages are in order and at most one worker is in it. A queue in order is one lane; ordered by key it has
//! one for each sharding key with messages cached, and one for all messages without a key, of which nothing says that
//! they may overtake each other. An empty lane is dropped, since there may be any number of keys.
//!
//! ```text
//!            put              take                 put_back: nothing left
//!    Idle ─────────▶ Ready ─────────▶ Running ───────────────────────────▶ (dropped)
//!                     ▲  ▲               │  │ only uncommitted ones left, or the ownership ends
//!                     │  └── more left ──┤  └───────────────────────────▶ Idle
//!                     │      or blocked  │ suspended or rolled back
//!                     └─── wake ─── Suspended
//! ```
//!
//! Workers hear of ready lanes by a *token*, of which each ownership has at most one on its way: whoever takes it passes
//! another on if more lanes are ready, so that busy queues get as many workers as they have lanes, and a message costs
//! no wake-up of its own.

use super::run::{Item, Run};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Names a lane; `None` is the one of messages without a key, and the only one of a queue in order.
pub(crate) type LaneKey = Option<Arc<str>>;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// What is left is ready, behind other lanes.
    More,
    /// The listener waits with it until then.
    Suspended(Instant),
    /// What is left is ready, and nothing may be handed out for the moment.
    Blocked,
    /// Nothing more is handed out.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Ready,
    Running,
    /// With the number of the suspension, so that the timer of an earlier one wakes nothing.
    Suspended(u64, Instant),
}

#[derive(Debug)]
struct Lane<T> {
    /// In order; while the lane runs, those that came since.
    messages: Vec<T>,
    /// So many of the first were handed out and wait for a commit.
    uncommitted: usize,
    state: State,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { messages: Vec::new(), uncommitted: 0, state: State::Idle }
    }
}

#[derive(Debug)]
pub(crate) struct Lanes<T> {
    by_key: bool,
    whole: Lane<T>,
    keyed: HashMap<Arc<str>, Lane<T>>,
    ready: VecDeque<LaneKey>,
    has_token: bool,
    is_closed: bool,
    suspensions: u64,
}

impl<T: Item> Lanes<T> {
    pub(crate) fn new(by_key: bool) -> Self {
        Self {
            by_key,
            whole: Lane::default(),
            keyed: HashMap::new(),
            ready: VecDeque::new(),
            has_token: false,
            is_closed: false,
            suspensions: 0,
        }
    }

    /// Takes messages, in the order of their offsets and above all that came before.
    pub(crate) fn put(&mut self, messages: Vec<T>) {
        if self.is_closed || messages.is_empty() {
            return;
        }
        if !self.by_key {
            self.whole.append(messages);
            return Self::make_ready(&mut self.whole, &None, &mut self.ready);
        }
        for message in messages {
            let Some(key) = message.key() else {
                self.whole.append(vec![message]);
                Self::make_ready(&mut self.whole, &None, &mut self.ready);
                continue;
            };
            if let Some(lane) = self.keyed.get_mut(key) {
                if lane.state == State::Idle {
                    Self::make_ready(lane, &Some(Arc::from(key)), &mut self.ready);
                }
                lane.messages.push(message);
            } else {
                let name: Arc<str> = Arc::from(key);
                let mut lane = Lane { messages: vec![message], ..Lane::default() };
                Self::make_ready(&mut lane, &Some(name.clone()), &mut self.ready);
                self.keyed.insert(name, lane);
            }
        }
    }

    fn make_ready(lane: &mut Lane<T>, key: &LaneKey, ready: &mut VecDeque<LaneKey>) {
        if lane.state == State::Idle {
            lane.state = State::Ready;
            ready.push_back(key.clone());
        }
    }

    /// Whether the caller is to send a token: a lane is ready and no token is on its way.
    #[must_use = "the token is on its way from now on"]
    pub(crate) fn offer(&mut self) -> bool {
        let is_due = !self.has_token && !self.ready.is_empty();
        self.has_token |= is_due;
        is_due
    }

    /// The token arrived.
    pub(crate) fn accept(&mut self) {
        self.has_token = false;
    }

    /// The next lane for a worker, with everything in it.
    pub(crate) fn take(&mut self) -> Option<(LaneKey, Run<T>)> {
        let key = self.ready.pop_front()?;
        let lane = self.lane(&key)?;
        lane.state = State::Running;
        let run = Run::new(std::mem::take(&mut lane.messages), std::mem::take(&mut lane.uncommitted));
        Some((key, run))
    }

    /// A worker leaves a lane. For a suspension returns its number, to be woken with.
    pub(crate) fn put_back(&mut self, key: &LaneKey, run: Run<T>, end: RunEnd) -> Option<u64> {
        if self.is_closed {
            return None;
        }
        let number = self.suspensions;
        let lane = self.lane(key)?;
        let (mut rest, uncommitted) = run.rest();
        rest.append(&mut lane.messages);
        let is_through = rest.len() == uncommitted;
        lane.messages = rest;
        lane.uncommitted = uncommitted;
        lane.state = match end {
            RunEnd::Suspended(until) => State::Suspended(number, until),
            RunEnd::More | RunEnd::Blocked if !is_through => State::Ready,
            _ => State::Idle,
        };
        let (state, is_empty) = (lane.state, lane.messages.is_empty());
        match state {
            State::Ready if end == RunEnd::Blocked => self.ready.push_front(key.clone()),
            State::Ready => self.ready.push_back(key.clone()),
            State::Suspended(..) => {
                self.suspensions += 1;
                return Some(number);
            }
            _ if is_empty => {
                if let Some(key) = key {
                    self.keyed.remove(key);
                }
            }
            _ => {}
        }
        None
    }

    /// A suspension is over.
    pub(crate) fn wake(&mut self, key: &LaneKey, number: u64) {
        let Some(lane) = self.lane(key) else { return };
        if matches!(lane.state, State::Suspended(of, _) if of == number) {
            lane.state = State::Ready;
            self.ready.push_back(key.clone());
        }
    }

    /// The ownership is over: drops everything, also what workers bring back.
    pub(crate) fn close(&mut self) {
        *self = Self { is_closed: true, ..Self::new(self.by_key) };
    }

    /// Whether a lane that is ready would begin below `offset`.
    pub(crate) fn is_ready_below(&self, offset: i64) -> bool {
        self.ready
            .iter()
            .filter_map(|key| self.look(key))
            .any(|lane| lane.messages.get(lane.uncommitted).is_some_and(|message| message.offset() < offset))
    }

    /// The suspended lanes: how many, and when the first of them goes on.
    pub(crate) fn suspended(&self) -> Option<(usize, Instant)> {
        let all = std::iter::once(&self.whole).chain(self.keyed.values());
        let times = all.filter_map(|lane| match lane.state {
            State::Suspended(_, until) => Some(until),
            _ => None,
        });
        times.fold(None, |sum, until| match sum {
            None => Some((1, until)),
            Some((count, first)) => Some((count + 1, first.min(until))),
        })
    }

    fn lane(&mut self, key: &LaneKey) -> Option<&mut Lane<T>> {
        match key {
            None => Some(&mut self.whole),
            Some(key) => self.keyed.get_mut(key),
        }
    }

    fn look(&self, key: &LaneKey) -> Option<&Lane<T>> {
        match key {
            None => Some(&self.whole),
            Some(key) => self.keyed.get(key),
        }
    }
}

impl<T> Lane<T> {
    fn append(&mut self, mut messages: Vec<T>) {
        if self.messages.is_empty() {
            self.messages = messages;
        } else {
            self.messages.append(&mut messages);
        }
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
