//! Randomness for spreading and jitter; nothing secret depends on it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// 64 bits that differ between calls, processes and hosts. The standard library seeds its hash maps from the operating
/// system, and each state differs from the one before.
pub fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        assert_ne!(super::entropy(), super::entropy());
    }
}
