//! Apache RocketMQ client for programs on plain threads.
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations, unreachable_pub)]

// The layers below the client API. Public for the benches, tests and tools of this repository; hidden, because they
// are not under semantic versioning: anything in them may change in a patch release.
#[doc(hidden)]
pub mod base;
#[doc(hidden)]
pub mod message;
#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod remoting;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod thread;
#[doc(hidden)]
pub mod time;

mod api;
mod config;
mod consumer;
mod embedded;
mod error;
mod instance;
mod producer;

pub use crate::consumer::allocate::{AllocateAveragely, AllocateInput, AllocateMessageQueueStrategy, Members, Share};
pub use crate::consumer::event::{ConsumerEvent, RebalanceEvent, RebalanceListener};
pub use crate::consumer::held::QueuePhase;
pub use crate::consumer::listener::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently,
};
pub use crate::consumer::push::{PushConsumer, PushConsumerBuilder, QueueState, ShutdownReport};
pub use crate::consumer::rebalance::start_offset::ConsumeFromWhere;
pub use crate::embedded::{EmbeddedCluster, EmbeddedClusterBuilder, WhenFull};
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::message::{BodyError, Message, MessageExt, MessageQueue};
pub use crate::producer::{MessageQueueSelector, Producer, ProducerBuilder, SelectByHash, SendResult, SendStatus};
