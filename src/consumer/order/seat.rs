//! The seat of a queue: who of this process works on it, and whether its broker has locked it for us.
//!
//! Ownerships follow each other on one seat, so that a listener of a former one keeps the next one out, and a late
//! unlock cannot free what the next one has locked. Plain state: who asks the broker stands in `push/orderly/keeper.rs`.
//! Source of the times: `RebalanceImpl.lockAll`, `ProcessQueue` (02-consumer 5.7, T33).
//!
//! ```text
//!             ask             granted                 renewal is due
//!    Free ─────────▶ Asking ──────────▶ Held ─────────────────────────▶ Renewing
//!     ▲ ▲  refused,    │                 ▲  granted, or no answer          │ │ refused, or granted later than another
//!     │ └──no answer───┘                 └─────────────────────────────────┘ │ could have had it: the ownership is lost
//!     │                                  (it is valid for a while only)      ▼
//!     │  answered                     revoked                               Free or Held, for the next ownership
//!     └───────────── GivingBack ◀──────────────── Held
//!                         ▲        answered                   revoked
//!                         └───────────────────── Leaving ◀──────────── Asking, Renewing
//! ```
//!
//! `Leaving` exists because brokers work on requests in any order: an unlock sent while a lock request is on its way
//! could be done first, and the queue would stay locked for nobody.

use crate::sync::{Mutex, Rank};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A broker frees a lock 60 s after the last grant. Less is taken for sure, since its clock is another one.
const SURELY_KEPT: Duration = Duration::from_secs(58);
/// Pauses between two questions for a lock that another member has.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Times of the lock. `validity` is below what the broker keeps it for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockTimes {
    /// How often it is renewed.
    pub(crate) interval: Duration,
    /// How long after a grant messages are handed out.
    pub(crate) validity: Duration,
}

/// Where the broker's lock of a queue stands.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLock {
    /// Not held: not asked for yet, refused because another member has it, or given back.
    Free,
    /// The broker was asked for it.
    Asking,
    /// Held.
    Held,
    /// Held, and the broker was asked to hold it on.
    Renewing,
    /// Held once, and the broker did not confirm it in time: nothing is handed out until it does.
    Lapsed,
    /// To be given back once the broker has answered the last request for it.
    Leaving,
    /// The broker was told that it is given back.
    GivingBack,
}

/// What the broker's answer means for the ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockNews {
    /// It may begin, or go on.
    Granted,
    /// It cannot begin yet.
    Refused,
    /// Another member has the queue, or may have had it: the ownership is over.
    Lost,
    /// Nothing changed.
    Nothing,
    /// The ownership ended meanwhile: the lock is to be given back now.
    GiveBack,
}

/// What a broker answered to a request for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockAnswer {
    Granted,
    Refused,
    /// No answer, or an error: the lock is as it was, as far as is known.
    Failed,
}

/// What is to do about the lock of an ownership that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GiveBack {
    /// Tell the broker.
    Now,
    /// A listener still runs; whoever leaves the seat last tells the broker.
    WhenLeft,
    /// Nothing, or nothing yet.
    Nothing,
}

/// What follows when the last worker has left.
#[must_use = "somebody may wait for the seat"]
#[derive(Default)]
pub(crate) struct Left {
    /// Tells the ownership that waited.
    pub(crate) waiting: Option<Box<dyn FnOnce() + Send>>,
    /// The lock is to be given back now.
    pub(crate) gives_back: bool,
}

pub(crate) struct Seat {
    times: Option<LockTimes>,
    base: Instant,
    /// Milliseconds after `base` until which messages may be handed out.
    valid_until: AtomicU64,
    state: Mutex<State>,
}

struct State {
    /// The epoch of the ownership that has the seat; 0 when none has.
    owner: u64,
    /// Workers inside, all of one ownership.
    inside: usize,
    inside_of: u64,
    /// The latest ownership that waits, and what wakes it.
    waiting: Option<(u64, Box<dyn FnOnce() + Send>)>,
    lock: Lock,
    /// The request that counts; answers to earlier ones are of a former ownership.
    asked: u64,
    /// When the last granted request was sent.
    granted: Option<Instant>,
    /// A grant of a question asked before is no proof.
    doubted: Option<Instant>,
    next_ask: Instant,
    refusals: u32,
    /// Times that it could not be given back because a listener ran.
    put_off: i64,
    gives_back_when_left: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    Free,
    Asking,
    Held,
    Renewing,
    Leaving,
    GivingBack,
}

impl Seat {
    /// Without times no lock is needed.
    pub(crate) fn new(times: Option<LockTimes>, now: Instant) -> Self {
        let state = State {
            owner: 0,
            inside: 0,
            inside_of: 0,
            waiting: None,
            lock: Lock::Free,
            asked: 0,
            granted: None,
            doubted: None,
            next_ask: now,
            refusals: 0,
            put_off: 0,
            gives_back_when_left: false,
        };
        let valid_until = AtomicU64::new(if times.is_some() { 0 } else { u64::MAX });
        Self { times, base: now, valid_until, state: Mutex::new(Rank::QueueGate, state) }
    }

    /// Whether the queue is ours as far as its broker is concerned.
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        let now = u64::try_from(now.saturating_duration_since(self.base).as_millis()).unwrap_or(u64::MAX);
        now < self.valid_until.load(Ordering::SeqCst)
    }

    fn set_valid(&self, until: Option<Instant>) {
        let until = until.map_or(0, |until| until.saturating_duration_since(self.base).as_millis());
        self.valid_until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// A new ownership begins. It needs a grant of its own.
    pub(crate) fn claim(&self, epoch: u64, now: Instant) {
        let mut state = self.state.lock();
        state.owner = epoch;
        state.gives_back_when_left = false;
        state.next_ask = now;
        state.refusals = 0;
        if self.times.is_none() {
            return;
        }
        self.set_valid(None);
        state.granted = None;
        state.asked += 1;
        // What is being given back is asked for when that is done; a request on its way is answered first.
        state.lock = match state.lock {
            Lock::Free | Lock::Held => Lock::Free,
            Lock::Asking | Lock::Renewing => Lock::Leaving,
            other => other,
        };
    }

    /// The ownership is followed by another of the same queue, which has the lock too.
    pub(crate) fn pass_on(&self, epoch: u64) {
        self.state.lock().owner = epoch;
    }

    /// The ownership is over.
    pub(crate) fn release(&self, epoch: u64) {
        let mut state = self.state.lock();
        if state.owner == epoch {
            state.owner = 0;
            if self.times.is_some() {
                self.set_valid(None);
            }
        }
    }

    /// A worker of an ownership comes in. `false`: one of a former ownership is inside, and `wake` is called when the
    /// last of them has left.
    pub(crate) fn enter(&self, epoch: u64, wake: impl FnOnce() -> Box<dyn FnOnce() + Send>) -> bool {
        let mut state = self.state.lock();
        if state.inside > 0 && state.inside_of != epoch {
            // A worker that comes late, of an ownership that is over by now, must not take the place of the one that follows.
            if state.waiting.as_ref().is_none_or(|(other, _)| *other <= epoch) {
                state.waiting = Some((epoch, wake()));
            }
            return false;
        }
        state.inside += 1;
        state.inside_of = epoch;
        true
    }

    pub(crate) fn leave(&self) -> Left {
        let mut state = self.state.lock();
        state.inside -= 1;
        if state.inside > 0 {
            return Left::default();
        }
        let gives_back = std::mem::take(&mut state.gives_back_when_left) && state.owner == 0;
        let gives_back = gives_back && state.begin_to_give_back() == GiveBack::Now;
        Left { waiting: state.waiting.take().map(|(_, wake)| wake), gives_back }
    }

    /// Whether the broker is to be asked now; the number goes with the answer. Otherwise when it is next.
    pub(crate) fn ask(&self, epoch: u64, now: Instant) -> Result<u64, Option<Instant>> {
        let mut state = self.state.lock();
        let next = match state.lock {
            Lock::Free => Lock::Asking,
            Lock::Held => Lock::Renewing,
            _ => return Err(None),
        };
        if state.owner != epoch || self.times.is_none() {
            return Err(None);
        }
        if now < state.next_ask {
            return Err(Some(state.next_ask));
        }
        state.lock = next;
        state.asked += 1;
        Ok(state.asked)
    }

    /// The answer to a request sent at `sent`.
    pub(crate) fn answer(&self, asked: u64, answer: LockAnswer, sent: Instant, now: Instant) -> LockNews {
        let Some(times) = self.times else { return LockNews::Nothing };
        let mut state = self.state.lock();
        if state.lock == Lock::Leaving {
            state.lock = Lock::Held;
            // A claim waits for it when there is an owner: the same client gets the lock again.
            if state.owner != 0 {
                state.lock = Lock::Free;
                state.next_ask = now;
                return LockNews::Nothing;
            }
            return if state.begin_to_give_back() == GiveBack::Now { LockNews::GiveBack } else { LockNews::Nothing };
        }
        if state.asked != asked {
            return LockNews::Nothing;
        }
        let was_held = state.lock == Lock::Renewing;
        match answer {
            LockAnswer::Granted => {
                let is_doubtful = state.doubted.is_some_and(|doubted| sent < doubted);
                let before = if is_doubtful { state.granted } else { state.granted.replace(sent) };
                state.lock = Lock::Held;
                state.refusals = 0;
                state.next_ask = if is_doubtful { now } else { sent + times.interval };
                if is_doubtful {
                    // The broker may have forgotten it since.
                    return LockNews::Nothing;
                }
                if state.owner == 0 {
                    // A listener of an ownership that is over still runs; whoever leaves last gives the lock back.
                    return LockNews::Nothing;
                }
                self.set_valid(Some(sent + times.validity));
                let may_have_been_lost =
                    was_held && before.is_some_and(|before| now.saturating_duration_since(before) > SURELY_KEPT);
                if may_have_been_lost { LockNews::Lost } else { LockNews::Granted }
            }
            LockAnswer::Refused => {
                self.set_valid(None);
                state.granted = None;
                state.lock = Lock::Free;
                state.pause(now);
                if was_held { LockNews::Lost } else { LockNews::Refused }
            }
            LockAnswer::Failed => {
                state.lock = if was_held { Lock::Held } else { Lock::Free };
                state.pause(now);
                LockNews::Nothing
            }
        }
    }

    /// The broker may have forgotten the lock and locked the queue for another: it is asked at once, and nothing is handed
    /// out until it confirms.
    pub(crate) fn doubt(&self, now: Instant) {
        if self.times.is_some() {
            let mut state = self.state.lock();
            state.next_ask = now;
            state.doubted = Some(now);
            self.set_valid(None);
        }
    }

    /// The ownership that had the seat is over, and its offset is stored.
    pub(crate) fn give_back(&self) -> GiveBack {
        let mut state = self.state.lock();
        if state.owner != 0 || self.times.is_none() {
            return GiveBack::Nothing;
        }
        if state.inside > 0 {
            state.put_off += 1;
            state.gives_back_when_left = true;
            return GiveBack::WhenLeft;
        }
        state.begin_to_give_back()
    }

    /// The broker answered, or did not, that the lock is given back.
    pub(crate) fn given_back(&self, now: Instant) {
        let mut state = self.state.lock();
        state.lock = Lock::Free;
        state.next_ask = now;
    }

    pub(crate) fn view(&self, now: Instant) -> Option<LockView> {
        self.times?;
        let is_valid = self.is_valid(now);
        let state = self.state.lock();
        let lock = match state.lock {
            Lock::Free => QueueLock::Free,
            Lock::Asking => QueueLock::Asking,
            Lock::Held | Lock::Renewing if !is_valid => QueueLock::Lapsed,
            Lock::Held => QueueLock::Held,
            Lock::Renewing => QueueLock::Renewing,
            Lock::Leaving => QueueLock::Leaving,
            Lock::GivingBack => QueueLock::GivingBack,
        };
        Some(LockView { lock, granted: state.granted, put_off: state.put_off, refusals: state.refusals })
    }

    /// Whether a listener of an ownership other than this one still runs.
    pub(crate) fn is_taken_by_another(&self, epoch: u64) -> bool {
        let state = self.state.lock();
        state.inside > 0 && state.inside_of != epoch
    }
}

/// A lock, as the tools and the user see it.
pub(crate) struct LockView {
    pub(crate) lock: QueueLock,
    pub(crate) granted: Option<Instant>,
    pub(crate) put_off: i64,
    pub(crate) refusals: u32,
}

impl State {
    fn begin_to_give_back(&mut self) -> GiveBack {
        match self.lock {
            Lock::Held => {
                self.lock = Lock::GivingBack;
                self.granted = None;
                GiveBack::Now
            }
            Lock::Asking | Lock::Renewing => {
                self.lock = Lock::Leaving;
                GiveBack::Nothing
            }
            Lock::Free | Lock::Leaving | Lock::GivingBack => GiveBack::Nothing,
        }
    }

    /// The next question waits longer each time.
    fn pause(&mut self, now: Instant) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.refusals.min(8)).min(LONGEST_PAUSE);
        self.refusals = self.refusals.saturating_add(1);
        self.next_ask = now + pause;
    }
}

#[cfg(test)]
#[path = "seat_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "seat_world_tests.rs"]
mod world_tests;
