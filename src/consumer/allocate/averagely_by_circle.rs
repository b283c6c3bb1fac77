//! `AVG_BY_CIRCLE`: queues are dealt out one by one, round and round.

use super::{AllocateInput, AllocateMessageQueueStrategy, Share};
use crate::error::Result;

/// Deals queues out one by one. As even as averaging, and the queues of one broker go to many members, so that the loss
/// of a broker is felt by all alike. One member more or less moves nearly every queue.
#[derive(Debug, Clone, Copy, Default)]
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle")]
pub struct AllocateAveragelyByCircle;

impl AllocateMessageQueueStrategy for AllocateAveragelyByCircle {
    fn name(&self) -> &str {
        "AVG_BY_CIRCLE"
    }

    #[inline]
    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        Ok(match input.place()? {
            Some(place) => Share::every(place, input.members().len(), input.queues().len()),
            None => Share::none(),
        })
    }
}
