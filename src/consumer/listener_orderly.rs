//! What a user's code is asked when messages come in order, and what it may answer.

use crate::message::{MessageExt, MessageQueue};
use std::time::Duration;

/// Least and longest time a listener may suspend for. Source: `ConsumeMessageOrderlyService.submitConsumeRequestLater`.
pub(crate) const SUSPEND: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(30);

/// Answer of an ordered listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeOrderlyStatus {
    /// The messages are handled. With automatic commit (the default) the offset may pass them; without it they wait for
    /// a later [`Commit`](Self::Commit).
    Success,
    /// The messages of this call come again after the suspend time, and nothing behind them before: nothing of the
    /// queue, or with `order_by_key` nothing of their key.
    SuspendCurrentQueueAMoment,
    /// The messages are handled, and with them all that succeeded since the last commit.
    Commit,
    /// Everything since the last commit comes again after the suspend time, these messages included. Not counted as a
    /// failed try. (The Java client counts it as success while commits are automatic; here it never loses a message.)
    Rollback,
}

/// Consumes the messages of a queue in order: the next ones come when the listener has returned and succeeded.
///
/// A call gets 1 to `consume_batch_size` messages, which succeed or fail together. A panic counts as
/// [`SuspendCurrentQueueAMoment`](ConsumeOrderlyStatus::SuspendCurrentQueueAMoment). A message may be delivered more
/// than once, as with any listener; then those behind it come again too, in order.
///
/// Closures implement it:
///
/// ```
/// use rocketmq_sync::{ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageExt, MessageListenerOrderly};
/// use std::time::Duration;
/// fn listener() -> impl MessageListenerOrderly {
///     |messages: &[MessageExt], context: &mut ConsumeOrderlyContext| {
///         if messages.iter().any(|message| message.body().is_empty()) {
///             context.set_suspend(Duration::from_millis(200));
///             return ConsumeOrderlyStatus::SuspendCurrentQueueAMoment;
///         }
///         ConsumeOrderlyStatus::Success
///     }
/// }
/// # let _ = listener();
/// ```
#[doc(alias = "org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly")]
pub trait MessageListenerOrderly: Send + Sync + 'static {
    /// Handles the messages. Called on the worker threads of the consumer, for different queues (or keys) at once.
    fn consume(&self, messages: &[MessageExt], context: &mut ConsumeOrderlyContext) -> ConsumeOrderlyStatus;
}

impl<F> MessageListenerOrderly for F
where
    F: Fn(&[MessageExt], &mut ConsumeOrderlyContext) -> ConsumeOrderlyStatus + Send + Sync + 'static,
{
    fn consume(&self, messages: &[MessageExt], context: &mut ConsumeOrderlyContext) -> ConsumeOrderlyStatus {
        self(messages, context)
    }
}

/// What a call of an ordered listener can see and say beside its answer. Each call begins with the defaults.
#[derive(Debug)]
pub struct ConsumeOrderlyContext {
    queue: MessageQueue,
    suspend: Option<Duration>,
    auto_commit: bool,
}

impl ConsumeOrderlyContext {
    pub(crate) fn new(queue: MessageQueue) -> Self {
        Self { queue, suspend: None, auto_commit: true }
    }

    pub(crate) fn reset(&mut self) {
        self.suspend = None;
        self.auto_commit = true;
    }

    /// The queue the messages were pulled from.
    pub fn message_queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// How long nothing comes after a suspension or a rollback. Default: the consumer's
    /// [`suspend_current_queue_time`](crate::PushConsumerBuilder::suspend_current_queue_time). Cut to 10 ms to 30 s.
    #[doc(alias = "setSuspendCurrentQueueTimeMillis")]
    pub fn set_suspend(&mut self, time: Duration) {
        self.suspend = Some(time.clamp(*SUSPEND.start(), *SUSPEND.end()));
    }

    /// The time set with [`set_suspend`](Self::set_suspend).
    pub fn suspend(&self) -> Option<Duration> {
        self.suspend
    }

    /// Whether a success is a commit. Default true. With false, messages that succeed stay uncommitted, and count as
    /// cached, until a call answers [`Commit`](ConsumeOrderlyStatus::Commit): commit before the cache limits are reached.
    pub fn set_auto_commit(&mut self, auto_commit: bool) {
        self.auto_commit = auto_commit;
    }

    /// Whether a success is a commit.
    pub fn is_auto_commit(&self) -> bool {
        self.auto_commit
    }
}
