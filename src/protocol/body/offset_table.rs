//! Offsets of many queues: resets that brokers push, and what a client says of itself.

use crate::message::MessageQueue;
use crate::protocol::body::queue_keys::{self, QueueTable};
use crate::protocol::body::{DataVersion, json_body};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The offsets that the queues of a group are set to: body of request 220, and answer to 222.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[doc(alias = "ResetOffsetBodyForC")]
pub struct ResetOffsetBody {
    /// The offset to go on from, by queue.
    #[serde(serialize_with = "queue_keys::serialize", deserialize_with = "map_or_list")]
    pub offset_table: BTreeMap<MessageQueue, i64>,
}

impl ResetOffsetBody {
    /// Writes the list form, which a broker pushes when the administrator's language is C++. Reading takes both.
    pub fn encode_list(&self) -> bytes::Bytes {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct List<'a> {
            offset_table: Vec<QueueOffset<'a>>,
        }
        #[derive(Serialize)]
        struct QueueOffset<'a> {
            #[serde(flatten)]
            queue: &'a MessageQueue,
            offset: i64,
        }
        let entries = self.offset_table.iter().map(|(queue, &offset)| QueueOffset { queue, offset });
        super::encode(&List { offset_table: entries.collect() })
    }
}

fn map_or_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<MessageQueue, i64>, D::Error> {
    struct MapOrList;
    impl<'de> Visitor<'de> for MapOrList {
        type Value = BTreeMap<MessageQueue, i64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object whose keys are queues, or a list of queues with offsets")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            queue_keys::deserialize(serde::de::value::MapAccessDeserializer::new(map))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct Entry {
                topic: String,
                broker_name: String,
                queue_id: i32,
                offset: i64,
            }
            let mut table = BTreeMap::new();
            while let Some(entry) = list.next_element::<Entry>()? {
                table.insert(MessageQueue::new(entry.topic, entry.broker_name, entry.queue_id), entry.offset);
            }
            Ok(table)
        }
    }
    deserializer.deserialize_any(MapOrList)
}

/// The file in which a broadcasting consumer keeps its offsets. Unlike bodies it is not read when the table is missing:
/// that is damage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[doc(alias = "OffsetSerializeWrapper")]
pub struct LocalOffsets {
    /// The offset to go on from, by queue.
    #[serde(with = "queue_keys")]
    pub offset_table: BTreeMap<MessageQueue, i64>,
}

/// Where a consumer stands: a client fills `message_queue_table` (221), a broker collects them in `consumer_table` (223).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetConsumerStatusBody {
    /// The tables of the clients, by client id.
    #[serde(with = "tables")]
    pub consumer_table: BTreeMap<String, BTreeMap<MessageQueue, i64>>,
    /// The offsets of one client.
    #[serde(with = "queue_keys")]
    pub message_queue_table: BTreeMap<MessageQueue, i64>,
}

/// Answer to `GET_ALL_CONSUMER_OFFSET`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerOffsetTable {
    /// When an offset was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_version: Option<DataVersion>,
    /// By `topic@group`, the offset of each queue.
    pub offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
}

json_body!(ConsumerOffsetTable);
json_body!(bare keys: ResetOffsetBody, LocalOffsets, GetConsumerStatusBody);

mod tables {
    use super::{BTreeMap, Deserialize, Deserializer, MessageQueue, QueueTable};
    use serde::Serializer;

    type Tables = BTreeMap<String, BTreeMap<MessageQueue, i64>>;

    pub(super) fn serialize<S: Serializer>(tables: &Tables, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(tables.iter().map(|(client, table)| (client, QueueTable(table.clone()))))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tables, D::Error> {
        let tables = BTreeMap::<String, QueueTable<i64>>::deserialize(deserializer)?;
        Ok(tables.into_iter().map(|(client, table)| (client, table.0)).collect())
    }
}
