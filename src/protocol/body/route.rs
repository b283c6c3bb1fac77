//! `TopicRouteData`: where a topic is, in the answer to `GET_ROUTEINFO_BY_TOPIC`.

use crate::protocol::body::json_body;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The broker id of a master.
pub const MASTER_ID: i64 = 0;

/// Bits of [`QueueData::perm`].
pub mod perm {
    /// Messages can be written.
    pub const WRITE: i32 = 2;
    /// Messages can be read.
    pub const READ: i32 = 4;

    /// Whether consumers may use the queues.
    pub const fn is_readable(perm: i32) -> bool {
        perm & READ != 0
    }

    /// Whether producers may use the queues.
    pub const fn is_writable(perm: i32) -> bool {
        perm & WRITE != 0
    }
}

/// The brokers of a topic, and how many queues each has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.route.TopicRouteData")]
pub struct TopicRouteData {
    /// The brokers, with their addresses.
    pub broker_datas: Vec<BrokerData>,
    /// Legacy filter servers of a broker address.
    pub filter_server_table: BTreeMap<Arc<str>, Option<Vec<Arc<str>>>>,
    /// For topics with a global order: `broker:queues`, with `;` between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_topic_conf: Option<String>,
    /// The queues of each broker.
    pub queue_datas: Vec<QueueData>,
    /// For static topics: which broker holds which logical queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_queue_mapping_by_broker: Option<BTreeMap<Arc<str>, TopicQueueMappingInfo>>,
}

/// The queues of a topic on one broker.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.route.QueueData")]
pub struct QueueData {
    /// The broker.
    pub broker_name: Arc<str>,
    /// Bits, see [`perm`].
    pub perm: i32,
    /// How many queues consumers see.
    pub read_queue_nums: i32,
    /// Flags of the topic.
    #[serde(alias = "topicSynFlag")]
    pub topic_sys_flag: i32,
    /// How many queues producers see.
    pub write_queue_nums: i32,
}

/// The addresses of a broker.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.route.BrokerData")]
pub struct BrokerData {
    /// Its addresses by broker id; 0 is the master.
    pub broker_addrs: BTreeMap<i64, Arc<str>>,
    /// Its name.
    pub broker_name: Arc<str>,
    /// Its cluster.
    pub cluster: Arc<str>,
    /// Whether a slave may stand in for the master (5.x).
    pub enable_acting_master: bool,
    /// Its zone (5.x).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_name: Option<Arc<str>>,
}

/// Which logical queues of a static topic a broker holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingInfo")]
pub struct TopicQueueMappingInfo {
    /// The broker.
    pub bname: Arc<str>,
    /// Its own queue of each logical queue.
    pub curr_id_map: BTreeMap<i32, i32>,
    /// Whether the mapping is out of date.
    pub dirty: bool,
    /// The mapping with the highest epoch counts. As text when it is too large for a JavaScript number.
    #[serde(deserialize_with = "number_or_text")]
    pub epoch: i64,
    /// The scope, as in `__global__`.
    pub scope: Arc<str>,
    /// The topic.
    pub topic: Arc<str>,
    /// How many logical queues there are.
    pub total_queues: i32,
}

json_body!(TopicRouteData, QueueData, BrokerData, TopicQueueMappingInfo);

fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    struct NumberOrText;
    impl serde::de::Visitor<'_> for NumberOrText {
        type Value = i64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a 64-bit integer, perhaps as text")
        }

        fn visit_i64<E>(self, number: i64) -> Result<i64, E> {
            Ok(number)
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<i64, E> {
            i64::try_from(number).map_err(E::custom)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<i64, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_any(NumberOrText)
}
