//! Settings of topics and groups.

use crate::protocol::SubscriptionData;
use crate::protocol::body::json_body;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The settings of a topic on a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicConfig {
    /// Attributes, as in `queue.type` (since 5.0).
    pub attributes: BTreeMap<String, String>,
    /// Whether order is to be kept even when a broker is down.
    pub order: bool,
    /// Bits, see [`perm`](crate::protocol::body::perm).
    pub perm: i32,
    /// How many queues consumers see.
    pub read_queue_nums: i32,
    /// `SINGLE_TAG` or `MULTI_TAG`.
    pub topic_filter_type: String,
    /// The topic.
    pub topic_name: Arc<str>,
    /// Flags of the topic.
    pub topic_sys_flag: i32,
    /// How many queues producers see.
    pub write_queue_nums: i32,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            order: false,
            perm: 6,
            read_queue_nums: 16,
            topic_filter_type: "SINGLE_TAG".into(),
            topic_name: "".into(),
            topic_sys_flag: 0,
            write_queue_nums: 16,
        }
    }
}

/// The settings of a consumer group on a broker. Members that a request leaves out get these defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionGroupConfig {
    /// Attributes (since 5.0).
    pub attributes: BTreeMap<String, String>,
    /// The broker to consume from.
    pub broker_id: i64,
    /// Whether broadcasting is allowed.
    pub consume_broadcast_enable: bool,
    /// Whether consuming is allowed.
    pub consume_enable: bool,
    /// Whether the group may start at the lowest offset.
    pub consume_from_min_enable: bool,
    /// Whether pops keep the order (since 5.0).
    pub consume_message_orderly: bool,
    /// How long a listener may take (since 5.0).
    pub consume_timeout_minute: i32,
    /// The consumer group.
    pub group_name: Arc<str>,
    /// How delays between retries grow (since 5.0).
    pub group_retry_policy: GroupRetryPolicy,
    /// Flags of the group.
    pub group_sys_flag: i32,
    /// Whether members are told of changes among them.
    pub notify_consumer_ids_changed_enable: bool,
    /// How often a message may come back before it is a dead letter.
    pub retry_max_times: i32,
    /// How many queues the retry topic has.
    pub retry_queue_nums: i32,
    /// What the group may subscribe to; absent for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data_set: Option<Vec<SubscriptionData>>,
    /// The broker to consume from when the master is busy.
    pub which_broker_when_consume_slowly: i64,
}

/// How delays between retries grow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupRetryPolicy {
    /// `CUSTOMIZED`, by delay levels, or `EXPONENTIAL`.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Default for GroupRetryPolicy {
    fn default() -> Self {
        Self { kind: "CUSTOMIZED".into() }
    }
}

impl Default for SubscriptionGroupConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            broker_id: 0,
            consume_broadcast_enable: true,
            consume_enable: true,
            consume_from_min_enable: true,
            consume_message_orderly: false,
            consume_timeout_minute: 15,
            group_name: "".into(),
            group_retry_policy: GroupRetryPolicy::default(),
            group_sys_flag: 0,
            notify_consumer_ids_changed_enable: true,
            retry_max_times: 16,
            retry_queue_nums: 1,
            subscription_data_set: None,
            which_broker_when_consume_slowly: 1,
        }
    }
}

/// When something was last changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataVersion {
    /// How often it was changed.
    pub counter: i64,
    /// The epoch of the controller (5.x).
    pub state_version: i64,
    /// When it was last changed, in milliseconds.
    pub timestamp: i64,
}

/// Answer to `GET_ALL_TOPIC_CONFIG`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicConfigSerializeWrapper {
    /// When a topic was last changed.
    pub data_version: DataVersion,
    /// The topics by name.
    pub topic_config_table: BTreeMap<Arc<str>, TopicConfig>,
}

/// Answer to `GET_ALL_SUBSCRIPTIONGROUP_CONFIG`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionGroupWrapper {
    /// When a group was last changed.
    pub data_version: DataVersion,
    /// The groups by name.
    pub subscription_group_table: BTreeMap<Arc<str>, SubscriptionGroupConfig>,
}

json_body!(TopicConfig, SubscriptionGroupConfig, DataVersion, TopicConfigSerializeWrapper, SubscriptionGroupWrapper);
