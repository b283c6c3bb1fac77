//! Apache RocketMQ client for programs on plain threads.
//!
//! A [`PushConsumer`] joins a consumer group on a running Apache RocketMQ cluster (4.9.x and 5.x), gets its share of
//! the queues, hands each message to a listener at least once, hands over when members come and go, and stops without
//! losing progress. A [`Producer`] sends. An [`EmbeddedCluster`] is a name server and brokers in memory, on the same
//! wire protocol, for tests, examples and programs on one machine. Everything runs on dedicated threads; there is no
//! async runtime in the dependency tree.
//!
//! # A consumer
//!
//! ```
//! use rocketmq_sync::{ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, EmbeddedCluster, Message, MessageExt};
//! use rocketmq_sync::{ConsumeFromWhere, Producer, PushConsumer};
//! use std::time::Duration;
//!
//! # fn main() -> rocketmq_sync::Result<()> {
//! let cluster = EmbeddedCluster::builder().topic("orders", 4).start()?;
//! let producer = Producer::builder("shop").name_servers(cluster.name_servers()).start()?;
//! producer.send(&Message::new("orders", "one order").with_tags("paid"))?;
//!
//! let (seen, orders) = std::sync::mpsc::channel();
//! let consumer = PushConsumer::builder("billing")
//!     .name_servers(cluster.name_servers()) // the only line that changes for a real cluster
//!     .subscribe("orders", "paid || refunded")
//!     .consume_from(ConsumeFromWhere::FirstOffset)
//!     .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
//!         for message in messages {
//!             seen.send(message.body().to_vec()).unwrap();
//!         }
//!         ConsumeConcurrentlyStatus::ConsumeSuccess
//!     })
//!     .start()?;
//! assert_eq!(orders.recv_timeout(Duration::from_secs(30)).unwrap(), b"one order");
//! assert!(consumer.shutdown(Duration::from_secs(10)).is_clean());
//! # Ok(())
//! # }
//! ```
//!
//! # Delivery
//!
//! At least once. The offset that is stored for a group is the lowest one that is neither handled nor stored
//! elsewhere, so a crash at any moment loses nothing; it may repeat messages, as may a failure and a queue that moves
//! while a listener runs. A message that fails goes back to the broker and comes again after a delay that grows with
//! the number of tries, until it becomes a dead letter in `%DLQ%<group>`.
//!
//! # Threads
//!
//! A client instance (one for each client by default, shared by clients of equal `instance_name`) runs `rmq-io` (all
//! sockets), `rmq-call` (two, callbacks), `rmq-timer`, `rmq-house` (one when idle, more while housekeeping waits for
//! peers), `rmq-pull` and `rmq-rebal`; a push consumer adds `rmq-use`, its workers. A panic of a listener or another
//! piece of user code is caught, logged and counts as a failure of what it was called for.
//!
//! # Logging
//!
//! By the [`log`] facade. `error`: something is lost or passed over, or user code panicked. `warn`: something fails and
//! is tried again, told when it begins. `info`: queues come and go, what was failing works again. `debug`: single
//! requests and connections. Bodies, property values and secrets are in no line.
//!
//! # Errors
//!
//! An [`Error`] has a [kind](ErrorKind) to branch on, the broker's code and remark as data, the address, and its
//! sources. Its text says what happened, to which topic, group or queue, and what to do.
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

/// A rebalance round without its sockets, for the benches of this repository; not under semantic versioning either.
#[doc(hidden)]
pub mod rebalance_round {
    pub use crate::consumer::held::{Exchange, HeldQueue, HeldTable};
    pub use crate::consumer::rebalance::diff::Diff;
    pub use crate::consumer::rebalance::{GroupView, QueueOwner, Rebalancer};
    pub use crate::instance::role::Round;
}

mod api;
mod config;
mod consumer;
mod embedded;
mod error;
mod instance;
mod producer;

pub use crate::consumer::allocate::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateBalanced, AllocateByConfig, AllocateByMachineRoom,
    AllocateConsistentHash, AllocateInput, AllocateMachineRoomNearby, AllocateMessageQueueStrategy,
    MachineRoomResolver, Members, Share, ShareIter,
};
pub use crate::consumer::event::{ConsumerEvent, RebalanceEvent, RebalanceListener};
pub use crate::consumer::health::Health;
pub use crate::consumer::held::QueuePhase;
pub use crate::consumer::listener::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently,
};
pub use crate::consumer::listener_orderly::{ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageListenerOrderly};
pub use crate::consumer::lite_pull::{LitePullConsumer, LitePullConsumerBuilder};
pub use crate::consumer::message_model::MessageModel;
pub use crate::consumer::order::seat::QueueLock;
pub use crate::consumer::push::{
    ConsumeCall, ConsumeHook, ConsumeOutcome, ConsumeReturn, ConsumerStats, PushConsumer, PushConsumerBuilder, Rates,
    TopicStats,
};
pub use crate::consumer::queue_state::QueueState;
pub use crate::consumer::rebalance::start_offset::ConsumeFromWhere;
pub use crate::consumer::report::ShutdownReport;
pub use crate::consumer::selector::MessageSelector;
pub use crate::embedded::{EmbeddedCluster, EmbeddedClusterBuilder, Fault, InjectedFault, WhenFull};
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::message::{BodyError, Message, MessageExt, MessageQueue};
pub use crate::producer::{MessageQueueSelector, Producer, ProducerBuilder, SelectByHash, SendResult, SendStatus};
pub use crate::protocol::{RequestCode, ResponseCode};
pub use crate::time::Clock;

/// Compiles the Rust code of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
