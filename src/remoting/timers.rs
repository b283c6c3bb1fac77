//! The deadlines of the reactor, each removed when it has lost its meaning, so that their number follows the open
//! calls and connections and the reactor never wakes for one that is over.

use super::op::ConnectionId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// What is to be looked at when a moment has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// The deadline of a call, by its opaque.
    Call(i32),
    /// The dial of a connection takes too long.
    Dial(ConnectionId),
    /// A connection may be idle for too long.
    Idle(ConnectionId),
    /// A connection may not take what is to be written.
    Stall(ConnectionId),
    /// A connection may be dead: a call got no answer on it.
    Silence(ConnectionId),
    /// Resolving the name of an address takes too long.
    Resolve(Arc<str>),
    /// The back-off of an address that calls wait for is over.
    Redial(Arc<str>),
    /// An address that failed may be forgotten.
    Forget(Arc<str>),
    /// A listener may try to accept again, by its number.
    Accept(usize),
}

/// Names one entry, to remove it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerKey(Instant, u64);

#[derive(Debug, Default)]
pub(crate) struct Timers {
    waiting: BTreeMap<TimerKey, Due>,
    next_sequence: u64,
}

impl Timers {
    pub(crate) fn add(&mut self, at: Instant, due: Due) -> TimerKey {
        let key = TimerKey(at, self.next_sequence);
        self.next_sequence += 1;
        self.waiting.insert(key, due);
        key
    }

    /// Removes an entry, which may have come due before.
    pub(crate) fn remove(&mut self, key: Option<TimerKey>) {
        if let Some(key) = key {
            self.waiting.remove(&key);
        }
    }

    /// The first moment at which something comes due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(key, _)| key.0)
    }

    /// Takes the first entry that is due at `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Due> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn entries_come_due_in_order_and_removed_ones_never() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut timers = Timers::default();
        timers.add(at(20), Due::Call(2));
        let removed = timers.add(at(5), Due::Call(0));
        timers.add(at(10), Due::Call(1));
        timers.add(at(20), Due::Call(3));
        timers.remove(Some(removed));
        timers.remove(Some(removed));
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop(at(9)), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop(at(20))).collect();
        assert_eq!(due, [Due::Call(1), Due::Call(2), Due::Call(3)]);
        assert_eq!((timers.len(), timers.next()), (0, None));
    }
}
