//! The user's own choice of a queue.

use crate::base::java_hash::string_hash;
use crate::message::{Message, MessageQueue};

/// Chooses the queue of a message, so that messages that belong together stay in order.
///
/// The list is in the same order for every producer: by broker name, then id. Closures implement it:
///
/// ```
/// use rocketmq_sync::{Message, MessageQueue, MessageQueueSelector};
/// fn by_length() -> impl MessageQueueSelector {
///     |queues: &[MessageQueue], message: &Message| Some(message.body().len() % queues.len())
/// }
/// # let _ = by_length();
/// ```
#[doc(alias = "org.apache.rocketmq.client.producer.MessageQueueSelector")]
pub trait MessageQueueSelector {
    /// The index of the queue in the list, which is never empty; `None` refuses the send.
    fn select(&self, queues: &[MessageQueue], message: &Message) -> Option<usize>;
}

impl<F: Fn(&[MessageQueue], &Message) -> Option<usize>> MessageQueueSelector for F {
    fn select(&self, queues: &[MessageQueue], message: &Message) -> Option<usize> {
        self(queues, message)
    }
}

/// Chooses by the hash of a key, as Java's `SelectMessageQueueByHash` does with a string: equal keys go to one queue,
/// from producers in either language, as long as the number of queues stays.
#[derive(Debug, Clone)]
pub struct SelectByHash<'a>(
    /// What belongs together: an order number, a customer.
    pub &'a str,
);

impl MessageQueueSelector for SelectByHash<'_> {
    fn select(&self, queues: &[MessageQueue], _: &Message) -> Option<usize> {
        let count = i32::try_from(queues.len()).ok()?;
        // Java takes the remainder first and its absolute value second, so the smallest hash is no exception.
        let at = string_hash(self.0).checked_rem(count)?.unsigned_abs();
        Some(at as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_hash_finds_a_queue() {
        let queues: Vec<_> = (0..3).map(|id| MessageQueue::new("t", "b", id)).collect();
        let message = Message::new("t", "x");
        assert_eq!(SelectByHash("polygenelubricants").select(&queues, &message), Some(2));
        assert_eq!(SelectByHash("TagA").select(&queues, &message), Some(2598919 % 3));
        assert_eq!(SelectByHash("x").select(&[], &message), None);
    }
}
