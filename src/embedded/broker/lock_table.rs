//! Which client holds which queue of an orderly group.
//!
//! Kept from a real broker: locks belong to client ids, not to connections, so nothing that happens to a connection
//! frees one; they live 60 s from the last grant; an expired one is free for everybody; a broker restart forgets all.
//! Left out: the strict mode that asks other replicas. Expired locks are dropped when the table is full, so that it
//! is bounded; upstream keeps them for ever.

use crate::message::MessageQueue;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a lock lives after its last grant.
const LIFETIME: Duration = Duration::from_secs(60);
/// Most locks of all groups together.
const MOST: usize = 1_000_000;

#[derive(Debug)]
struct Lock {
    client_id: Arc<str>,
    granted: Instant,
}

impl Lock {
    fn is_live(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.granted) <= LIFETIME
    }
}

/// The locks of all groups on one broker.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    groups: HashMap<Arc<str>, HashMap<MessageQueue, Lock>>,
    locks: usize,
}

impl LockTable {
    /// Locks or renews; returns the queues that the client holds now.
    pub(crate) fn lock(
        &mut self,
        group: &str,
        client_id: &str,
        queues: impl IntoIterator<Item = MessageQueue>,
        now: Instant,
    ) -> Vec<MessageQueue> {
        let client_id: Arc<str> = client_id.into();
        queues.into_iter().filter(|queue| self.lock_one(group, &client_id, queue, now)).collect()
    }

    /// Frees those of the queues that the client holds.
    pub(crate) fn unlock(&mut self, group: &str, client_id: &str, queues: &[MessageQueue]) {
        let Some(locks) = self.groups.get_mut(group) else { return };
        for queue in queues {
            if locks.get(queue).is_some_and(|lock| &*lock.client_id == client_id) {
                locks.remove(queue);
                self.locks -= 1;
            }
        }
        if locks.is_empty() {
            self.groups.remove(group);
        }
    }

    /// Whether some queue of the group is locked, which is how a broker tells that a group is orderly.
    pub(crate) fn holds_any(&self, group: &str, now: Instant) -> bool {
        self.groups.get(group).is_some_and(|locks| locks.values().any(|lock| lock.is_live(now)))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn lock_one(&mut self, group: &str, client_id: &Arc<str>, queue: &MessageQueue, now: Instant) -> bool {
        if let Some(lock) = self.groups.get_mut(group).and_then(|locks| locks.get_mut(queue)) {
            if lock.client_id != *client_id && lock.is_live(now) {
                return false;
            }
            *lock = Lock { client_id: client_id.clone(), granted: now };
            return true;
        }
        if self.locks >= MOST {
            self.drop_expired(now);
        }
        if self.locks >= MOST {
            return false;
        }
        let lock = Lock { client_id: client_id.clone(), granted: now };
        self.groups.entry(group.into()).or_default().insert(queue.clone(), lock);
        self.locks += 1;
        true
    }

    fn drop_expired(&mut self, now: Instant) {
        self.groups.retain(|_, locks| {
            locks.retain(|_, lock| lock.is_live(now));
            !locks.is_empty()
        });
        self.locks = self.groups.values().map(HashMap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(id: i32) -> MessageQueue {
        MessageQueue::new("T", "broker-a", id)
    }

    #[test]
    fn grants_renews_refuses_and_takes_over_after_a_minute() {
        let mut table = LockTable::default();
        let start = Instant::now();
        assert_eq!(table.lock("G", "a", [queue(0), queue(1)], start), [queue(0), queue(1)]);
        assert_eq!(table.lock("G", "b", [queue(0), queue(2)], start), [queue(2)]);
        assert_eq!(table.lock("H", "b", [queue(0)], start), [queue(0)]);
        let later = start + Duration::from_secs(40);
        assert_eq!(table.lock("G", "a", [queue(0)], later), [queue(0)]);
        let end = start + Duration::from_secs(61);
        assert_eq!(table.lock("G", "b", [queue(0), queue(1)], end), [queue(1)]);
        assert!(table.holds_any("G", end));
        assert!(!table.holds_any("G", end + LIFETIME + Duration::from_millis(1)));
    }

    #[test]
    fn only_the_owner_unlocks() {
        let mut table = LockTable::default();
        let now = Instant::now();
        table.lock("G", "a", [queue(0)], now);
        table.unlock("G", "b", &[queue(0)]);
        assert!(table.holds_any("G", now));
        table.unlock("G", "a", &[queue(0), queue(9)]);
        assert!(!table.holds_any("G", now));
        assert_eq!(table.locks, 0);
    }
}
