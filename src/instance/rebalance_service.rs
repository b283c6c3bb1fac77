//! `RebalanceService`: one thread on a timed condvar wait that runs the rounds of all consumers of the instance.
//!
//! A wake-up only sets a flag, so a storm of notices costs a handful of rounds: the first runs at once, those that come
//! within the minimum interval are one round at its end. Rounds never overlap, since one thread runs them all.
//! Source: `RebalanceService` of the Java client (02-consumer 5.1).

use super::registry::Registry;
use super::role::Round;
use crate::error::Result;
use crate::sync::{Condvar, Mutex, Rank};
use crate::thread::JoinGuard;
use crate::time::Deadline;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest wait is a day, so that adding it to an instant can never overflow.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Wakes the rebalance thread; shared with whoever may want a round.
#[derive(Clone)]
pub(crate) struct RebalanceWaker {
    shared: Arc<Shared>,
}

struct Shared {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

#[derive(Default)]
struct Wishes {
    round: bool,
    stop: bool,
}

impl RebalanceWaker {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared { wishes: Mutex::new(Rank::Thread, Wishes::default()), changed: Condvar::new() }),
        }
    }

    /// Asks for a round soon. Any number of calls before it starts are one round.
    pub(crate) fn wake(&self) {
        let mut wishes = self.shared.wishes.lock();
        if !wishes.round {
            wishes.round = true;
            self.shared.changed.notify_one();
        }
    }

    fn stop(&self) {
        self.shared.wishes.lock().stop = true;
        self.shared.changed.notify_one();
    }

    /// Waits until a round is due; `false` when the service stops.
    fn wait(&self, last: Option<Instant>, period: Duration, least: Duration) -> bool {
        let asleep_since = Instant::now();
        let mut wishes = self.shared.wishes.lock();
        loop {
            if wishes.stop {
                return false;
            }
            let until = due(wishes.round, asleep_since, last, period, least);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                wishes.round = false;
                return true;
            }
            wishes = self.shared.changed.wait_timeout(wishes, left);
        }
    }
}

/// When the next round is due. A wish is granted at once, but not within `least` of the start of the last round.
pub(crate) fn due(
    is_wished: bool,
    asleep_since: Instant,
    last: Option<Instant>,
    period: Duration,
    least: Duration,
) -> Instant {
    if is_wished { last.map_or(asleep_since, |last| last + least) } else { asleep_since + period.min(LONGEST) }
}

pub(crate) struct RebalanceService {
    waker: RebalanceWaker,
    thread: JoinGuard,
}

impl RebalanceService {
    pub(crate) fn start(
        registry: Arc<Registry>,
        waker: RebalanceWaker,
        period: Duration,
        least: Duration,
    ) -> Result<Self> {
        let thread = {
            let waker = waker.clone();
            JoinGuard::spawn("rmq-rebal", move || run(&registry, &waker, period, least))?
        };
        Ok(Self { waker, thread })
    }

    pub(crate) fn waker(&self) -> &RebalanceWaker {
        &self.waker
    }

    /// Ends the thread; `false` when it is still at work at the deadline, or is the caller.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> bool {
        self.waker.stop();
        self.thread.join(deadline)
    }
}

fn run(registry: &Registry, waker: &RebalanceWaker, period: Duration, least: Duration) {
    let mut last = None;
    let mut wait = period;
    while waker.wait(last, wait, least) {
        last = Some(Instant::now());
        wait = period;
        for consumer in registry.consumers() {
            let round = catch_unwind(AssertUnwindSafe(|| consumer.rebalance())).unwrap_or_else(|_| {
                log::error!("the rebalance round of group '{}' panicked; it is tried again", consumer.group());
                Round::Again(Duration::from_secs(1))
            });
            if let Round::Again(soon) = round {
                wait = wait.min(soon);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_of_wakes_is_one_round_and_none_is_lost() {
        let waker = RebalanceWaker::new();
        for _ in 0..10_000 {
            waker.wake();
        }
        assert!(waker.wait(None, LONGEST, Duration::ZERO));
        // Nothing is left over: the next wait ends by its period.
        let before = Instant::now();
        assert!(waker.wait(None, Duration::from_millis(20), Duration::ZERO));
        assert!(before.elapsed() >= Duration::from_millis(20));
        waker.wake();
        assert!(waker.wait(Some(Instant::now()), LONGEST, Duration::from_millis(20)));
        waker.stop();
        assert!(!waker.wait(None, LONGEST, Duration::ZERO));
    }
}
