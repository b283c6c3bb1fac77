//! `HeartbeatData`: what a client tells every broker about itself.

use crate::protocol::SubscriptionData;
use crate::protocol::body::json_body;
use crate::protocol::body::open_enum::open_enum;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

open_enum! {
    /// How a consumer gets its messages.
    #[doc(alias = "org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType")]
    pub enum ConsumeType {
        /// It pulls.
        Actively = "CONSUME_ACTIVELY",
        /// A push consumer, as it looks to its user.
        Passively = "CONSUME_PASSIVELY",
        /// It pops (5.x).
        Pop = "CONSUME_POP",
    }
}

open_enum! {
    /// Whether the members of a group share the messages or each gets all of them.
    #[doc(alias = "org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel")]
    pub enum MessageModel {
        /// They share them.
        Clustering = "CLUSTERING",
        /// Each gets all of them.
        Broadcasting = "BROADCASTING",
    }
}

open_enum! {
    /// Where a group without a committed offset starts, as the wire has it.
    #[doc(alias = "org.apache.rocketmq.common.consumer.ConsumeFromWhere")]
    pub enum ConsumeFromWhere {
        /// At the end of the queue.
        LastOffset = "CONSUME_FROM_LAST_OFFSET",
        /// At its start.
        FirstOffset = "CONSUME_FROM_FIRST_OFFSET",
        /// At a time.
        Timestamp = "CONSUME_FROM_TIMESTAMP",
        /// Deprecated.
        LastOffsetAndFromMinWhenBootFirst = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        /// Deprecated.
        MinOffset = "CONSUME_FROM_MIN_OFFSET",
        /// Deprecated.
        MaxOffset = "CONSUME_FROM_MAX_OFFSET",
    }
}

/// A client with its producer and consumer groups. Per group the set of subscriptions is the whole of it: what is not
/// in it the broker forgets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData")]
pub struct HeartbeatData {
    /// The client id.
    #[serde(rename = "clientID")]
    pub client_id: String,
    /// Its consumers.
    pub consumer_data_set: Vec<ConsumerData>,
    /// Not 0 in the second version of the heartbeat (since 5.1.3), which may leave subscriptions out.
    pub heartbeat_fingerprint: i32,
    /// Its producers.
    pub producer_data_set: Vec<ProducerData>,
    /// Whether the subscriptions are left out, so that those known before stay. Only with a fingerprint.
    pub without_sub: bool,
}

/// A producer group.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.heartbeat.ProducerData")]
pub struct ProducerData {
    /// The group.
    pub group_name: Arc<str>,
}

/// A consumer group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.heartbeat.ConsumerData")]
pub struct ConsumerData {
    /// Where it starts without a committed offset.
    pub consume_from_where: ConsumeFromWhere,
    /// How it gets its messages.
    pub consume_type: ConsumeType,
    /// The group.
    pub group_name: Arc<str>,
    /// Whether its members share the messages.
    pub message_model: MessageModel,
    /// What it subscribes to; in clustering also its own retry topic.
    pub subscription_data_set: Vec<SubscriptionData>,
    /// False.
    pub unit_mode: bool,
}

json_body!(HeartbeatData, ProducerData, ConsumerData);
