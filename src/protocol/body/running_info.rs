//! `ConsumerRunningInfo`: what a consumer tells administrators about itself.

use crate::message::MessageQueue;
use crate::protocol::SubscriptionData;
use crate::protocol::body::{json_body, queue_keys};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer to `GET_CONSUMER_RUNNING_INFO`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerRunningInfo {
    /// The stacks of its threads, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jstack: Option<String>,
    /// Queues it pops from.
    #[serde(with = "queue_keys")]
    pub mq_pop_table: BTreeMap<MessageQueue, PopProcessQueueInfo>,
    /// Queues it pulls from.
    #[serde(with = "queue_keys")]
    pub mq_table: BTreeMap<MessageQueue, ProcessQueueInfo>,
    /// Settings as text; the constants of this type name those that tools read.
    pub properties: BTreeMap<String, String>,
    /// Rates by topic.
    pub status_table: BTreeMap<String, ConsumeStatus>,
    /// What it subscribes to.
    pub subscription_set: Vec<SubscriptionData>,
    /// Whatever the user adds.
    pub user_consumer_info: BTreeMap<String, String>,
}

impl ConsumerRunningInfo {
    /// Property: the name servers, each followed by `;`.
    pub const NAMESERVER_ADDR: &'static str = "PROP_NAMESERVER_ADDR";
    /// Property: how many threads consume.
    pub const THREADPOOL_CORE_SIZE: &'static str = "PROP_THREADPOOL_CORE_SIZE";
    /// Property: whether the listener is an orderly one.
    pub const CONSUMEORDERLY: &'static str = "PROP_CONSUMEORDERLY";
    /// Property: the name of a `ConsumeType`.
    pub const CONSUME_TYPE: &'static str = "PROP_CONSUME_TYPE";
    /// Property: the version of the client, as in `V5_3_3`.
    pub const CLIENT_VERSION: &'static str = "PROP_CLIENT_VERSION";
    /// Property: when the consumer was started, in milliseconds.
    pub const CONSUMER_START_TIMESTAMP: &'static str = "PROP_CONSUMER_START_TIMESTAMP";
}

/// One queue of a consumer. Times are in milliseconds, 0 for never.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProcessQueueInfo {
    /// How many messages are cached.
    pub cached_msg_count: i32,
    /// The highest offset of them.
    pub cached_msg_max_offset: i64,
    /// The lowest offset of them.
    pub cached_msg_min_offset: i64,
    /// How large they are.
    #[serde(rename = "cachedMsgSizeInMiB")]
    pub cached_msg_size_in_mib: i32,
    /// The offset that is or will be committed.
    pub commit_offset: i64,
    /// Whether the queue was given up. The wire has it misspelt.
    #[serde(rename = "droped")]
    pub dropped: bool,
    /// When a message was last consumed.
    pub last_consume_timestamp: i64,
    /// When the queue was last locked.
    pub last_lock_timestamp: i64,
    /// When the queue was last pulled.
    pub last_pull_timestamp: i64,
    /// Whether it is locked.
    pub locked: bool,
    /// How many messages an orderly listener has in hand.
    pub transaction_msg_count: i32,
    /// The highest offset of them.
    pub transaction_msg_max_offset: i64,
    /// The lowest offset of them.
    pub transaction_msg_min_offset: i64,
    /// How often giving the lock back was tried.
    pub try_unlock_times: i64,
}

/// One queue of a consumer that pops.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PopProcessQueueInfo {
    /// Whether the queue was given up. The wire has it misspelt.
    #[serde(rename = "droped")]
    pub dropped: bool,
    /// When it was last popped, in milliseconds.
    pub last_pop_timestamp: i64,
    /// How many messages wait for their acknowledgement.
    pub wait_ack_count: i32,
}

/// Rates of a topic. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeStatus {
    /// Messages that failed, in the last hour.
    pub consume_failed_msgs: i64,
    /// Failed messages a second.
    #[serde(rename = "consumeFailedTPS")]
    pub consume_failed_tps: f64,
    /// Consumed messages a second.
    #[serde(rename = "consumeOKTPS")]
    pub consume_ok_tps: f64,
    /// How long consuming takes.
    #[serde(rename = "consumeRT")]
    pub consume_rt: f64,
    /// How long a pull takes.
    #[serde(rename = "pullRT")]
    pub pull_rt: f64,
    /// Pulled messages a second.
    #[serde(rename = "pullTPS")]
    pub pull_tps: f64,
}

json_body!(bare keys: ConsumerRunningInfo);
json_body!(ProcessQueueInfo, PopProcessQueueInfo, ConsumeStatus);
