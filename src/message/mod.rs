//! Messages and queues as values, and the form in which brokers store messages.

mod queue;
pub mod topic;

pub use queue::MessageQueue;
