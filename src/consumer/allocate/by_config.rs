//! `CONFIG`: a fixed list.

use super::{AllocateInput, AllocateMessageQueueStrategy, Share};
use crate::error::Result;
use crate::message::MessageQueue;
use std::sync::Arc;

/// Gives this member the queues it was made with, whoever else is in the group.
///
/// Nothing is checked, as in Java: the list is not compared with the queues that exist nor with what other members are
/// given, and it is returned for every topic that is asked about, so a consumer with this strategy should subscribe to
/// the one topic that the list is about.
#[derive(Debug, Clone)]
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig")]
pub struct AllocateByConfig {
    queues: Arc<[MessageQueue]>,
}

impl AllocateByConfig {
    /// This member reads these queues.
    pub fn new(queues: impl IntoIterator<Item = MessageQueue>) -> Self {
        Self { queues: queues.into_iter().collect() }
    }
}

impl AllocateMessageQueueStrategy for AllocateByConfig {
    fn name(&self) -> &str {
        "CONFIG"
    }

    fn allocate(&self, _: &AllocateInput<'_>) -> Result<Share> {
        Ok(Share::own(self.queues.clone()))
    }
}
