//! `AVG`: contiguous blocks, the first ones longer by one where the division leaves a rest.

use super::{AllocateInput, AllocateMessageQueueStrategy, Share};
use crate::error::Result;

/// Shares out contiguous blocks of queues. The default of every RocketMQ client.
///
/// One member more or less moves every block but the first: about half the queues of a small group, most of a large
/// one. [`AllocateBalanced`](super::AllocateBalanced) is as even and moves far fewer.
#[derive(Debug, Clone, Copy, Default)]
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely")]
pub struct AllocateAveragely;

impl AllocateMessageQueueStrategy for AllocateAveragely {
    fn name(&self) -> &str {
        "AVG"
    }

    #[inline]
    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        let Some(place) = input.place()? else { return Ok(Share::none()) };
        let (queues, members) = (input.queues().len(), input.members().len());
        let (each, rest) = (queues / members, queues % members);
        let start = place * each + place.min(rest);
        Ok(Share::range(start..start + each + usize::from(place < rest)))
    }
}
