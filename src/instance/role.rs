//! What the instance knows of the clients on it. Producers and consumers implement these; no arrow runs back.

use crate::error::Result;
use crate::protocol::body::{ConsumeMessageDirectlyResult, ConsumerData, ConsumerRunningInfo};
use crate::time::Deadline;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::message::MessageQueue;

/// The one pull that circulates for a queue. It names the ownership it was made for, so that it dies with it.
#[derive(Clone)]
pub(crate) struct PullTicket {
    pub(crate) group: Arc<str>,
    pub(crate) queue: MessageQueue,
    pub(crate) epoch: u64,
}

impl fmt::Debug for PullTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} (epoch {})", self.queue, self.group, self.epoch)
    }
}

/// How a rebalance round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// What is held is what was assigned.
    Settled,
    /// A step failed or is not over; the next round should not wait for the period.
    Again(Duration),
}

/// Gets the result of a message that a tool had a consumer handle, on any thread.
pub(crate) type DirectAnswer = Box<dyn FnOnce(Result<ConsumeMessageDirectlyResult>) + Send>;

/// A consumer, as its instance sees it.
pub(crate) trait ConsumerRole: Send + Sync {
    /// The consumer group; one consumer an instance and group.
    fn group(&self) -> &Arc<str>;
    /// What this consumer adds to each heartbeat.
    fn heartbeat_data(&self) -> ConsumerData;
    /// Topics whose routes must be kept fresh, the group's retry topic included.
    fn topics(&self) -> Vec<Arc<str>>;
    /// One rebalance round. Called by one thread at a time.
    fn rebalance(&self) -> Round;
    /// One pull: decide, send, and let the answer make the next ticket. Must not wait for an answer.
    fn pull(&self, ticket: PullTicket);
    /// Stores the progress of all queues held.
    fn persist_offsets(&self, deadline: Deadline);
    /// A heartbeat was accepted by all brokers of the consumer's topics that could be reached.
    fn registered(&self);
    /// A new connection to the broker of this address is open; the broker may have restarted.
    fn connected(&self, address: &str);
    /// The connection to this address is gone; a broker there may be restarting.
    fn disconnected(&self, address: &str);
    /// What the broker's tools ask a consumer, answered on a call thread; `None` when this kind does not serve it.
    /// `with_threads`: also what its threads are doing.
    fn running_info(&self, with_threads: bool) -> Option<ConsumerRunningInfo>;
    /// A tool wants the listener to handle one stored message now. Called on a call thread, so the listener must run on
    /// another.
    fn consume_directly(&self, record: Bytes, broker_name: Option<&str>, answer: DirectAnswer);
    /// The offsets this consumer would store now, for the queues of a topic it holds.
    fn consume_offsets(&self, topic: &str) -> Vec<(MessageQueue, i64)>;
    /// An operator's new offsets for queues of a topic.
    fn reset_offsets(&self, topic: &str, offsets: Vec<(MessageQueue, i64)>);
}

/// A producer, as its instance sees it.
pub(crate) trait ProducerRole: Send + Sync {
    /// The producer group.
    fn group(&self) -> &Arc<str>;
    /// Topics whose routes must be kept fresh.
    fn topics(&self) -> Vec<Arc<str>>;
}
