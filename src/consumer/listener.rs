//! What a user's code is asked, and what it may answer.

use crate::message::{MessageExt, MessageQueue};
use std::collections::BTreeMap;

/// Answer of a concurrent listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeConcurrentlyStatus {
    /// The messages are handled; the offset may pass them.
    ConsumeSuccess,
    /// Deliver them again later: with the broker's growing delay, or that of
    /// [`ConsumeConcurrentlyContext::set_delay_level`].
    ReconsumeLater,
}

/// Consumes messages of a queue in parallel, in no order.
///
/// A call gets 1 to `consume_batch_size` messages of one queue. A panic counts as
/// [`ReconsumeLater`](ConsumeConcurrentlyStatus::ReconsumeLater) for all messages of the call. A message may be
/// delivered more than once: after a failure, when queues move between members, after a crash.
///
/// Closures implement it:
///
/// ```
/// use rocketmq_sync::{ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageExt, MessageListenerConcurrently};
/// fn listener() -> impl MessageListenerConcurrently {
///     |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
///         for (index, message) in messages.iter().enumerate() {
///             if message.body().is_empty() {
///                 context.retry(index); // only this one comes again
///             }
///         }
///         ConsumeConcurrentlyStatus::ConsumeSuccess
///     }
/// }
/// # let _ = listener();
/// ```
#[doc(alias = "org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently")]
pub trait MessageListenerConcurrently: Send + Sync + 'static {
    /// Handles the messages. Called on the worker threads of the consumer, many at a time.
    fn consume(&self, messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus;
}

impl<F> MessageListenerConcurrently for F
where
    F: Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus + Send + Sync + 'static,
{
    fn consume(&self, messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus {
        self(messages, context)
    }
}

/// What a call of a concurrent listener can see and say beside its answer.
#[derive(Debug)]
pub struct ConsumeConcurrentlyContext {
    queue: MessageQueue,
    delay_level: i32,
    ack_index: Option<usize>,
    /// Messages that come again, with a delay level of their own.
    retried: BTreeMap<usize, Option<i32>>,
}

impl ConsumeConcurrentlyContext {
    pub(crate) fn new(queue: MessageQueue) -> Self {
        Self { queue, delay_level: 0, ack_index: None, retried: BTreeMap::new() }
    }

    pub(crate) fn reset(&mut self) {
        self.delay_level = 0;
        self.ack_index = None;
        self.retried.clear();
    }

    /// The delay level of the message at `index`, should it come again.
    pub(crate) fn delay_level(&self, index: usize) -> i32 {
        self.retried.get(&index).copied().flatten().unwrap_or(self.delay_level)
    }

    /// The queue the messages were pulled from; for messages that came again, one of the group's retry topic.
    pub fn message_queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// The delay of the messages that come again: 0 (default) lets the broker choose by the number of tries, 1 to 18
    /// name one of its levels, -1 sends them to the dead-letter topic at once. Other values are cut to this range.
    pub fn set_delay_level(&mut self, level: i32) {
        self.delay_level = clamp(level);
    }

    /// With `ConsumeSuccess`: the messages behind this index come again. Without it all are handled.
    #[doc(alias = "ackIndex")]
    pub fn set_ack_index(&mut self, index: usize) {
        self.ack_index = Some(index);
    }

    /// The message at this index comes again, whatever the answer is. Once any index is named,
    /// [`ReconsumeLater`](ConsumeConcurrentlyStatus::ReconsumeLater) concerns the named ones only.
    pub fn retry(&mut self, index: usize) {
        self.retried.insert(index, None);
    }

    /// As [`retry`](Self::retry), with a delay level for this message alone; levels are those of
    /// [`set_delay_level`](Self::set_delay_level).
    pub fn retry_with_delay(&mut self, index: usize, level: i32) {
        self.retried.insert(index, Some(clamp(level)));
    }

    /// Whether the message at `index` of `count` must come again.
    pub(crate) fn is_failed(&self, status: ConsumeConcurrentlyStatus, index: usize) -> bool {
        if self.retried.contains_key(&index) {
            return true;
        }
        match status {
            ConsumeConcurrentlyStatus::ConsumeSuccess => self.ack_index.is_some_and(|acked| index > acked),
            ConsumeConcurrentlyStatus::ReconsumeLater => self.retried.is_empty(),
        }
    }
}

/// Brokers have 18 levels by default; they cut larger ones to what they have.
fn clamp(level: i32) -> i32 {
    level.clamp(-1, 18)
}

#[cfg(test)]
mod tests {
    use super::ConsumeConcurrentlyStatus::{ConsumeSuccess, ReconsumeLater};
    use super::*;

    fn failed(status: ConsumeConcurrentlyStatus, prepare: impl Fn(&mut ConsumeConcurrentlyContext)) -> Vec<usize> {
        let mut context = ConsumeConcurrentlyContext::new(MessageQueue::new("t", "b", 0));
        prepare(&mut context);
        (0..5).filter(|index| context.is_failed(status, *index)).collect()
    }

    #[test]
    fn a_plain_answer_is_for_the_whole_batch() {
        assert_eq!(failed(ConsumeSuccess, |_| ()), Vec::<usize>::new());
        assert_eq!(failed(ReconsumeLater, |_| ()), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_acknowledge_index_limits_a_success() {
        assert_eq!(failed(ConsumeSuccess, |context| context.set_ack_index(2)), [3, 4]);
        assert_eq!(failed(ConsumeSuccess, |context| context.set_ack_index(99)), Vec::<usize>::new());
        assert_eq!(failed(ReconsumeLater, |context| context.set_ack_index(2)), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn single_messages_can_fail_with_either_answer() {
        let mark = |context: &mut ConsumeConcurrentlyContext| {
            context.retry(1);
            context.retry(4);
        };
        assert_eq!(failed(ConsumeSuccess, mark), [1, 4]);
        assert_eq!(failed(ReconsumeLater, mark), [1, 4]);
    }

    #[test]
    fn a_message_may_have_a_delay_of_its_own() {
        let mut context = ConsumeConcurrentlyContext::new(MessageQueue::new("t", "b", 0));
        context.set_delay_level(4);
        context.retry(0);
        context.retry_with_delay(1, -1);
        context.retry_with_delay(2, 99);
        assert_eq!([0, 1, 2, 3].map(|index| context.delay_level(index)), [4, -1, 18, 4]);
        context.reset();
        assert_eq!(context.delay_level(1), 0);
    }
}
