//! Messages and queues as values, and the form in which brokers store messages.
//!
//! [`Message`] is what a producer sends, [`MessageExt`] what a consumer receives. [`store_codec`] turns the body of a
//! pull answer into [`MessageExt`]s that are slices of it, and back. Everything here is bytes and values: no socket,
//! no thread, no lock.
//!
//! Source: `MessageDecoder`, `MessageConst`, `MessageSysFlag`, `MessageClientIDSetter` of Apache RocketMQ.

pub mod batch;
pub mod compress;
pub mod id;
mod message_ext;
mod outgoing;
pub mod properties;
mod queue;
pub mod store_codec;
pub mod sys_flag;
pub mod topic;
#[cfg(test)]
mod vectors;

pub use compress::BodyError;
pub use message_ext::MessageExt;
pub use outgoing::Message;
pub use queue::MessageQueue;
