//! Queue allocation: which member of a group reads which queue.

mod averagely;

pub use averagely::AllocateAveragely;

use crate::error::Result;
use crate::message::MessageQueue;
use std::sync::Arc;

/// Decides the share of one member. Every member of a group computes its own share from the same sorted input, so a
/// strategy must depend on nothing else.
#[doc(alias = "org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy")]
pub trait AllocateMessageQueueStrategy: Send + Sync {
    /// The name by which members and tools know the strategy.
    fn name(&self) -> &str;

    /// The share of `input.current()`.
    ///
    /// # Errors
    /// For input that the strategy cannot work with; the member then keeps what it holds.
    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share>;
}

/// What a strategy decides on.
#[derive(Debug, Clone, Copy)]
pub struct AllocateInput<'a> {
    group: &'a str,
    current: &'a str,
    queues: &'a Arc<[MessageQueue]>,
    members: &'a Arc<Members>,
}

impl<'a> AllocateInput<'a> {
    /// The share of `current` is wanted, of `queues` in order.
    pub fn new(group: &'a str, current: &'a str, queues: &'a Arc<[MessageQueue]>, members: &'a Arc<Members>) -> Self {
        Self { group, current, queues, members }
    }

    /// The consumer group.
    pub fn group(&self) -> &'a str {
        self.group
    }

    /// The client id whose share is wanted.
    pub fn current(&self) -> &'a str {
        self.current
    }

    /// The queues, in order.
    pub fn queues(&self) -> &'a Arc<[MessageQueue]> {
        self.queues
    }

    /// The members, in order.
    pub fn members(&self) -> &'a Arc<Members> {
        self.members
    }
}

/// The client ids of a group, in Java's order. One that is listed twice (two connections) stays listed twice, since
/// all members, Java's too, must compute alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    ids: Vec<Arc<str>>,
}

impl Members {
    /// Sorts the ids.
    pub fn new(mut ids: Vec<Arc<str>>) -> Self {
        ids.sort_by(|a, b| crate::base::java_hash::string_cmp(a, b));
        Self { ids }
    }

    /// The first index of the id.
    pub fn index_of(&self, id: &str) -> Option<usize> {
        let at = self.ids.partition_point(|known| crate::base::java_hash::string_cmp(known, id).is_lt());
        self.ids.get(at).is_some_and(|known| &**known == id).then_some(at)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// A share, as indexes into the queues it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// Queues side by side.
    Range(std::ops::Range<usize>),
}

impl Share {
    /// The queues of the share.
    pub fn to_vec(&self, queues: &[MessageQueue]) -> Vec<MessageQueue> {
        match self {
            Self::Range(range) => queues.get(range.clone()).unwrap_or_default().to_vec(),
        }
    }
}
