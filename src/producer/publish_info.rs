//! Which queue is next: round robin, away from the broker that just failed. Source: `TopicPublishInfo` (04-producer 3.5).

use crate::base::rng;
use crate::instance::route_table::TopicRoute;
use crate::message::MessageQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The writable queues of a topic, and where the round stands.
#[derive(Debug)]
pub(crate) struct TopicPublishInfo {
    pub(crate) queues: Arc<[MessageQueue]>,
    /// The queues come from the template of a topic that does not exist yet.
    pub(crate) is_template: bool,
    next: AtomicUsize,
}

impl TopicPublishInfo {
    /// Starts somewhere, so that many short-lived producers do not all fill the first queue.
    pub(crate) fn new(route: &TopicRoute) -> Self {
        Self::starting_at(route.writable.clone(), false, rng::entropy() as usize)
    }

    /// The queues a broker will make for `topic` on its first message: at most `most` on each broker.
    pub(crate) fn from_template(template: &TopicRoute, topic: &Arc<str>, most: i32) -> Self {
        let queues = template
            .writable
            .iter()
            .filter(|queue| queue.queue_id() < most)
            .map(|queue| MessageQueue::new(topic.clone(), queue.shared_broker_name().clone(), queue.queue_id()))
            .collect();
        Self::starting_at(queues, true, rng::entropy() as usize)
    }

    fn starting_at(queues: Arc<[MessageQueue]>, is_template: bool, start: usize) -> Self {
        Self { queues, is_template, next: AtomicUsize::new(start) }
    }

    /// The next queue, on a broker that has not `failed` if there is one. The counter wraps without harm.
    pub(crate) fn next_queue(&self, failed: &[Arc<str>]) -> Option<&MessageQueue> {
        let count = self.queues.len();
        if count == 0 {
            return None;
        }
        let turn = || self.next.fetch_add(1, Ordering::Relaxed) % count;
        let fresh = (0..if failed.is_empty() { 0 } else { count })
            .map(|_| &self.queues[turn()])
            .find(|queue| !failed.contains(queue.shared_broker_name()));
        Some(fresh.unwrap_or_else(|| &self.queues[turn()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(brokers: &[&str], start: usize) -> TopicPublishInfo {
        let queues: Vec<_> =
            brokers.iter().flat_map(|broker| (0..2).map(|id| MessageQueue::new("t", *broker, id))).collect();
        TopicPublishInfo::starting_at(queues.into(), false, start)
    }

    #[test]
    fn the_round_is_even_also_where_the_counter_wraps() {
        let info = info(&["a", "b"], usize::MAX - 41);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..100 {
            *counts.entry(info.next_queue(&[]).unwrap().clone()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 4);
        assert!(counts.values().all(|count| (24..=26).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_failed_broker_comes_last() {
        let info = info(&["a", "b"], 0);
        for _ in 0..10 {
            assert_eq!(info.next_queue(&["a".into()]).unwrap().broker_name(), "b");
        }
        assert!(info.next_queue(&["a".into(), "b".into()]).is_some());
        assert!(super::TopicPublishInfo::starting_at(Arc::from([]), false, 0).next_queue(&[]).is_none());
    }
}
