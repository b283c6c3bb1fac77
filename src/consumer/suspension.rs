//! What a user has suspended. It outlives ownerships: a queue that comes back is as suspended as it went.

use crate::message::MessageQueue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is suspended or resumed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    Consumer,
    Topic(&'a str),
    Queue(&'a MessageQueue),
}

#[derive(Debug, Default)]
pub(crate) struct Suspensions {
    consumer: bool,
    topics: BTreeSet<Arc<str>>,
    queues: BTreeSet<MessageQueue>,
}

impl Suspensions {
    /// Each scope is suspended and resumed on its own.
    pub(crate) fn set(&mut self, scope: Scope<'_>, is_suspended: bool) {
        match (scope, is_suspended) {
            (Scope::Consumer, _) => self.consumer = is_suspended,
            (Scope::Topic(topic), true) => drop(self.topics.insert(topic.into())),
            (Scope::Topic(topic), false) => drop(self.topics.remove(topic)),
            (Scope::Queue(queue), true) => drop(self.queues.insert(queue.clone())),
            (Scope::Queue(queue), false) => drop(self.queues.remove(queue)),
        }
    }

    pub(crate) fn of_consumer(&self) -> bool {
        self.consumer
    }

    /// Whether a queue stands still.
    pub(crate) fn cover(&self, queue: &MessageQueue) -> bool {
        self.consumer || self.topics.contains(queue.topic()) || self.queues.contains(queue)
    }
}
