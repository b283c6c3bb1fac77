//! `AVG`: contiguous blocks, the first ones longer by one where the division leaves a rest.

use super::{AllocateInput, AllocateMessageQueueStrategy, Share};
use crate::error::Result;

/// Shares out contiguous blocks of queues. The default of every RocketMQ client.
#[derive(Debug, Clone, Copy, Default)]
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely")]
pub struct AllocateAveragely;

impl AllocateMessageQueueStrategy for AllocateAveragely {
    fn name(&self) -> &str {
        "AVG"
    }

    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        let Some(index) = input.members().index_of(input.current()) else { return Ok(Share::Range(0..0)) };
        let (queues, members) = (input.queues().len(), input.members().len());
        let (each, rest) = (queues / members, queues % members);
        let start = index * each + index.min(rest);
        Ok(Share::Range(start..start + each + usize::from(index < rest)))
    }
}
