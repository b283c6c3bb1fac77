//! The name of one queue.

use crate::base::java_hash::string_cmp;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// One queue: a topic, the broker that holds it, and its number there. Clones share the names.
///
/// Queues are ordered as Java orders them: by topic, broker name (both by UTF-16 code unit), then id.
///
/// ```
/// use rocketmq_sync::MessageQueue;
/// let queue = MessageQueue::new("orders", "broker-a", 3);
/// assert_eq!(queue.to_string(), "orders/broker-a/3");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[doc(alias = "org.apache.rocketmq.common.message.MessageQueue")]
pub struct MessageQueue {
    broker_name: Arc<str>,
    queue_id: i32,
    topic: Arc<str>,
}

impl MessageQueue {
    /// The queue `queue_id` of `topic` on `broker_name` (a name, not an address).
    pub fn new(topic: impl Into<Arc<str>>, broker_name: impl Into<Arc<str>>, queue_id: i32) -> Self {
        Self { topic: topic.into(), broker_name: broker_name.into(), queue_id }
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The topic, to be shared.
    pub fn shared_topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The name of the broker that holds the queue.
    pub fn broker_name(&self) -> &str {
        &self.broker_name
    }

    /// The broker name, to be shared.
    pub fn shared_broker_name(&self) -> &Arc<str> {
        &self.broker_name
    }

    /// The number of the queue on its broker, from 0.
    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }
}

fn shared_cmp(a: &Arc<str>, b: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(a, b) { Ordering::Equal } else { string_cmp(a, b) }
}

impl Ord for MessageQueue {
    fn cmp(&self, other: &Self) -> Ordering {
        shared_cmp(&self.topic, &other.topic)
            .then_with(|| shared_cmp(&self.broker_name, &other.broker_name))
            .then_with(|| self.queue_id.cmp(&other.queue_id))
    }
}

impl PartialOrd for MessageQueue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.topic, self.broker_name, self.queue_id)
    }
}

impl fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
