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

/// Answer to `GET_BROKER_CONSUME_STATS`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeStatsList {
    /// The broker.
    pub broker_addr: String,
    /// Maps of one group each, with its stats by topic.
    pub consume_stats_list: Vec<BTreeMap<String, Vec<ConsumeStats>>>,
    /// How many messages are not consumed.
    pub total_diff: i64,
    /// How many of them were pulled.
    pub total_inflight_diff: i64,
}

/// Answer to `QUERY_CONSUME_TIME_SPAN`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryConsumeTimeSpanBody {
    /// The queues.
    pub consume_time_span_set: Vec<QueueTimeSpan>,
}

/// Store times of one queue, in milliseconds, and the same as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueTimeSpan {
    /// Of the message that is consumed next.
    #[serde(default)]
    pub consume_time_stamp: i64,
    /// The same.
    #[serde(default)]
    pub consume_time_stamp_str: String,
    /// How far it is behind.
    #[serde(default)]
    pub delay_time: i64,
    /// Of the last message.
    #[serde(default)]
    pub max_time_stamp: i64,
    /// The same.
    #[serde(default)]
    pub max_time_stamp_str: String,
    /// The queue.
    pub message_queue: MessageQueue,
    /// Of the first message.
    #[serde(default)]
    pub min_time_stamp: i64,
    /// The same.
    #[serde(default)]
    pub min_time_stamp_str: String,
}

/// Answer to `VIEW_BROKER_STATS_DATA`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BrokerStatsData {
    /// The last day.
    pub stats_day: BrokerStatsItem,
    /// The last hour.
    pub stats_hour: BrokerStatsItem,
    /// The last minute.
    pub stats_minute: BrokerStatsItem,
}

/// One statistic over one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerStatsItem {
    /// The sum over the count.
    pub avgpt: f64,
    /// The sum.
    pub sum: i64,
    /// The sum a second.
    pub tps: f64,
}

json_body!(bare keys: ConsumeStats, TopicStatsTable, ConsumeStatsList);
json_body!(QueryConsumeTimeSpanBody, BrokerStatsData);
