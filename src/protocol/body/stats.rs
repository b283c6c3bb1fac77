//! Offsets and rates of topics and groups.

use crate::message::MessageQueue;
use crate::protocol::body::{json_body, queue_keys};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer to `GET_CONSUME_STATS`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeStats {
    /// Consumed messages a second.
    pub consume_tps: f64,
    /// Where the group stands, by queue.
    #[serde(with = "queue_keys")]
    pub offset_table: BTreeMap<MessageQueue, OffsetWrapper>,
}

/// Where a group stands in one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OffsetWrapper {
    /// The offset that the next message will get.
    pub broker_offset: i64,
    /// The committed offset.
    pub consumer_offset: i64,
    /// When the message at the committed offset was stored, in milliseconds.
    pub last_timestamp: i64,
    /// The offset of the last pull.
    pub pull_offset: i64,
}

/// Answer to `GET_TOPIC_STATS_INFO`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicStatsTable {
    /// What each queue holds.
    #[serde(with = "queue_keys")]
    pub offset_table: BTreeMap<MessageQueue, TopicOffset>,
    /// Messages a second (5.x).
    pub topic_put_tps: f64,
}

/// What one queue holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicOffset {
    /// When the last message was stored, in milliseconds.
    pub last_update_timestamp: i64,
    /// The offset that the next message will get.
    pub max_offset: i64,
    /// The lowest offset.
    pub min_offset: i64,
}

json_body!(bare keys: ConsumeStats, TopicStatsTable);
json_body!(OffsetWrapper, TopicOffset);
