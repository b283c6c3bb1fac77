//! Maps whose keys are queues. In JSON the key is the text of the queue's own JSON, in a string; what stands bare in
//! fastjson's form has been brought to it before.

use crate::message::MessageQueue;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

pub(crate) fn serialize<V: Serialize, S: Serializer>(
    table: &BTreeMap<MessageQueue, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(table.len()))?;
    for (queue, value) in table {
        map.serialize_entry(&key(queue)?, value)?;
    }
    map.end()
}

pub(crate) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<MessageQueue, V>, D::Error> {
    deserializer.deserialize_map(Table(PhantomData))
}

fn key<E: serde::ser::Error>(queue: &MessageQueue) -> Result<String, E> {
    serde_json::to_string(queue).map_err(E::custom)
}

struct Table<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Table<V> {
    type Value = BTreeMap<MessageQueue, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object whose keys are queues")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut table = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let queue = serde_json::from_str(&key)
                .map_err(|error| A::Error::custom(format_args!("the key '{key}' is no queue: {error}")))?;
            table.insert(queue, map.next_value()?);
        }
        Ok(table)
    }
}

/// A table on its own, for tables inside tables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "V: Serialize + for<'a> Deserialize<'a>")]
pub(crate) struct QueueTable<V>(
    #[serde(with = "crate::protocol::body::queue_keys")] pub(crate) BTreeMap<MessageQueue, V>,
);
