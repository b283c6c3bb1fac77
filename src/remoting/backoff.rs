//! How long to leave an address alone that failed.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Doubles the pause with each failure in a row, up to a maximum, and shakes it so that the clients of a broker that
/// comes back do not all dial at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    random: u64,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        // The standard library's hash keys are its only source of randomness that is always there.
        let random = RandomState::new().build_hasher().finish() | 1;
        Self { min, max, random }
    }

    /// The pause after this many failures in a row: between half of the doubled minimum and all of it.
    pub(crate) fn pause(&mut self, failures: u32) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let doubled = self.min.saturating_mul(1 << (failures - 1).min(20)).min(self.max);
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = (self.random >> 40) as u32; // 24 bits
        doubled / 2 + (doubled / 2).mul_f64(f64::from(share) / f64::from(1 << 24))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_to_its_maximum_and_is_never_twice_the_same() {
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(10));
        let mut backoff = Backoff::new(min, max);
        assert_eq!(backoff.pause(0), Duration::ZERO);
        for failures in [1, 2, 5, 8, 9, 50, u32::MAX] {
            let full = min.saturating_mul(1 << (failures - 1).min(20)).min(max);
            let pauses: Vec<_> = (0..32).map(|_| backoff.pause(failures)).collect();
            assert!(pauses.iter().all(|pause| *pause >= full / 2 && *pause <= full), "{failures}: {pauses:?}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{failures}: no jitter");
        }
    }
}
