//! Clocks and deadlines.
//!
//! Durations, ages and time-outs use the monotonic clock; the wall clock is only for stamps that go on the wire.

use crate::sync::{Mutex, Rank};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Source of time: the system's, or one that a test moves by hand.
#[derive(Clone, Default)]
pub struct Clock {
    manual: Option<Arc<Mutex<Manual>>>,
}

struct Manual {
    now: Instant,
    wall: SystemTime,
}

impl Clock {
    /// The clock of the operating system.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands still until [`advance`](Self::advance) moves it. Clones share it.
    pub fn manual() -> Self {
        let manual = Manual { now: Instant::now(), wall: SystemTime::now() };
        Self { manual: Some(Arc::new(Mutex::new(Rank::Thread, manual))) }
    }

    /// The monotonic time.
    pub fn now(&self) -> Instant {
        match &self.manual {
            Some(manual) => manual.lock().now,
            None => Instant::now(),
        }
    }

    /// The wall-clock time.
    pub fn wall(&self) -> SystemTime {
        match &self.manual {
            Some(manual) => manual.lock().wall,
            None => SystemTime::now(),
        }
    }

    /// The wall-clock time in milliseconds since 1970, as stamps on the wire have it.
    pub fn wall_millis(&self) -> i64 {
        to_millis(self.wall())
    }

    /// Moves a manual clock forward; does nothing to the system's.
    pub fn advance(&self, by: Duration) {
        if let Some(manual) = &self.manual {
            let mut manual = manual.lock();
            manual.now += by;
            manual.wall += by;
        }
    }

    /// Sets the wall clock of a manual clock and leaves its monotonic time alone, as an administrator's change does.
    pub fn set_wall(&self, wall: SystemTime) {
        if let Some(manual) = &self.manual {
            manual.lock().wall = wall;
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.manual.is_some() { "Clock(manual)" } else { "Clock(system)" })
    }
}

/// Milliseconds since 1970, negative before it.
pub fn to_millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
    }
}

/// The time that milliseconds since 1970 stand for; out-of-range values are cut to what the system can hold.
pub fn from_millis(millis: i64) -> SystemTime {
    let distance = Duration::from_millis(millis.unsigned_abs());
    let time = if millis >= 0 { UNIX_EPOCH.checked_add(distance) } else { UNIX_EPOCH.checked_sub(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

/// A moment by which a call must be over. It goes down the call, so that every step sees what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline `timeout` from now; longer than a century counts as a century.
    pub fn after(timeout: Duration) -> Self {
        Self(Instant::now() + timeout.min(Duration::from_secs(100 * 365 * 86_400)))
    }

    /// What is left, zero when it is over.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        self.remaining().is_zero()
    }

    /// The moment itself.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// The earlier of this one and `timeout` from now.
    #[must_use]
    pub fn capped(self, timeout: Duration) -> Self {
        self.min(Self::after(timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn millis_round_trip_on_both_sides_of_the_epoch() {
        for millis in [0, 1, -1, 1_700_000_000_000, -62_000_000_000] {
            assert_eq!(to_millis(from_millis(millis)), millis);
        }
    }

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let clock = Clock::manual();
        let before = (clock.now(), clock.wall());
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.now() - before.0, Duration::from_secs(5));
        clock.set_wall(before.1);
        assert_eq!(clock.wall(), before.1);
        assert_eq!(clock.now() - before.0, Duration::from_secs(5));
    }
}
