//! The table of delay levels, and the clock of messages that wait for their time.
//!
//! A real broker walks one queue a level every 100 ms and keeps its place in a file. Kept: the level table (a setting),
//! waiting messages lie in `SCHEDULE_TOPIC_XXXX` at queue level - 1, order within a level. Stronger: a message is
//! delivered at its time, since a heap tells when the next one is due. Left out: the file, and the 100 ms grid.

use crate::error::{Error, ErrorKind, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// The levels of a broker that was not told otherwise.
pub(crate) const DEFAULT_LEVELS: &str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

/// The table of delays; level 1 is the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DelayLevels(Vec<Duration>);

impl DelayLevels {
    /// Reads the form of the broker setting `messageDelayLevel`: numbers with a unit of `ms`, `s`, `m`, `h` or `d`,
    /// separated by blanks. (`ms` is ours, for tests.)
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = |word: &str, why: &str| {
            Error::new(ErrorKind::Config, format!("delay_levels: '{word}' {why}; a level is written like 10s or 2m"))
        };
        let level = |word: &str| {
            let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, unit) = word.split_at(digits);
            let number: u64 = number.parse().map_err(|_| wrong(word, "has no number that fits"))?;
            let unit_millis = match unit {
                "ms" => 1,
                "s" => 1000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(wrong(word, "has none of the units ms, s, m, h, d")),
            };
            let millis = number.checked_mul(unit_millis).filter(|millis| *millis <= 366 * 86_400_000);
            millis.map(Duration::from_millis).ok_or_else(|| wrong(word, "is longer than a year"))
        };
        let levels: Vec<_> = text.split_ascii_whitespace().map(level).collect::<Result<_>>()?;
        if levels.is_empty() || levels.len() > 64 {
            return Err(Error::new(
                ErrorKind::Config,
                format!("delay_levels: {} levels; 1 to 64 are allowed", levels.len()),
            ));
        }
        Ok(Self(levels))
    }

    /// The level that is used when `level` is asked for, from 1 to the highest one.
    pub(crate) fn capped(&self, level: i32) -> i32 {
        level.clamp(1, self.0.len() as i32)
    }

    /// How long a message of this level waits.
    pub(crate) fn delay(&self, level: i32) -> Duration {
        self.0[self.capped(level) as usize - 1]
    }

    pub(crate) fn count(&self) -> i32 {
        self.0.len() as i32
    }
}

/// Positions of waiting messages by the time at which they are due; among equal times, in the order added.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    waiting: BinaryHeap<Reverse<(Instant, u64, i64)>>,
    added: u64,
}

impl Schedule {
    pub(crate) fn add(&mut self, due: Instant, position: i64) {
        self.added += 1;
        self.waiting.push(Reverse((due, self.added, position)));
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((due, ..))| *due)
    }

    /// The next message whose time has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<i64> {
        self.next_due().filter(|due| *due <= now)?;
        self.waiting.pop().map(|Reverse((_, _, position))| position)
    }

    /// Forgets what is gone from the store, once there is about twice as much here as the store's `messages`.
    pub(crate) fn tidy(&mut self, messages: usize, is_there: impl Fn(i64) -> bool) {
        if self.waiting.len() > 1024 + 2 * messages {
            self.waiting.retain(|Reverse((_, _, position))| is_there(*position));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_levels_and_names_the_wrong_word() {
        let levels = DelayLevels::parse(DEFAULT_LEVELS).unwrap();
        assert_eq!(levels.count(), 18);
        assert_eq!(levels.delay(3), Duration::from_secs(10));
        assert_eq!(levels.delay(18), Duration::from_secs(7200));
        assert_eq!(levels.capped(99), 18);
        assert_eq!(DelayLevels::parse("50ms 1s").unwrap().delay(1), Duration::from_millis(50));
        for (text, part) in [("1s 5x", "'5x'"), ("s", "'s'"), ("", "0 levels"), ("99999999999d", "longer")] {
            let error = DelayLevels::parse(text).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn what_was_dropped_is_forgotten_when_it_is_the_most() {
        let mut schedule = Schedule::default();
        (0..1100).for_each(|position| schedule.add(Instant::now(), position));
        schedule.tidy(100, |_| false);
        assert_eq!(schedule.len(), 1100);
        schedule.tidy(10, |position| position < 10);
        assert_eq!(schedule.len(), 10);
    }

    #[test]
    fn comes_out_by_time_and_then_in_order() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut schedule = Schedule::default();
        schedule.add(at(20), 1);
        schedule.add(at(10), 2);
        schedule.add(at(20), 3);
        assert_eq!(schedule.next_due(), Some(at(10)));
        assert_eq!(schedule.pop_due(at(9)), None);
        assert_eq!(schedule.pop_due(at(20)), Some(2));
        assert_eq!(schedule.pop_due(at(20)), Some(1));
        assert_eq!(schedule.pop_due(at(20)), Some(3));
        assert_eq!(schedule.pop_due(at(99)), None);
        assert_eq!(schedule.len(), 0);
    }
}
