//! The JSON events of `consume` and `produce`. Scripts read them: keys may be added, none renamed or removed.

use crate::moment;
use rocketmq_sync::{MessageExt, MessageQueue};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Serialize)]
pub struct Started<'a> {
    pub event: &'static str,
    pub group: &'a str,
    pub client_id: &'a str,
}

/// What the listener decided about a message.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Ok,
    Retry,
}

#[derive(Serialize)]
pub struct Received<'a> {
    pub event: &'static str,
    pub topic: &'a str,
    pub broker: &'a str,
    pub queue: i32,
    pub offset: i64,
    pub msg_id: &'a str,
    pub unique_key: Option<&'a str>,
    pub tags: Option<&'a str>,
    pub keys: Option<&'a str>,
    pub reconsume_times: i64,
    pub born: u64,
    pub stored: u64,
    pub properties: BTreeMap<&'a str, &'a str>,
    pub body_len: usize,
    pub body_sha256: String,
    pub result: Decision,
    /// When the listener decided, in microseconds since the epoch.
    pub at: u64,
}

impl<'a> Received<'a> {
    pub fn new(message: &'a MessageExt, msg_id: &'a str, result: Decision) -> Self {
        let queue = message.message_queue();
        Self {
            event: "message",
            topic: message.topic(),
            broker: queue.broker_name(),
            queue: queue.queue_id(),
            offset: message.queue_offset(),
            msg_id,
            unique_key: message.unique_key(),
            tags: message.tags(),
            keys: message.keys(),
            reconsume_times: message.reconsume_times().into(),
            born: moment::millis(message.born_time()),
            stored: moment::millis(message.store_time()),
            properties: message.properties().collect(),
            body_len: message.body().len(),
            body_sha256: Sha256::digest(message.body()).iter().map(|byte| format!("{byte:02x}")).collect(),
            result,
            at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |at| at.as_micros() as u64),
        }
    }
}

#[derive(Serialize)]
pub struct Rebalanced<'a> {
    /// `assigned`, `revoked` or `lost`.
    pub event: &'static str,
    #[serde(serialize_with = "queue_triples")]
    pub queues: &'a [MessageQueue],
    pub owned: usize,
}

#[derive(Serialize)]
pub struct Problem<'a> {
    pub event: &'static str,
    pub kind: &'a str,
    pub text: String,
}

#[derive(Serialize)]
pub struct Stopped<'a> {
    pub event: &'static str,
    pub reason: &'static str,
    pub consumed: u64,
    pub uncommitted: usize,
    pub unfinished: usize,
    #[serde(serialize_with = "offsets_by_queue")]
    pub committed: &'a BTreeMap<MessageQueue, i64>,
}

/// An event of one of the members of `mqcat members`.
#[derive(Serialize)]
pub struct OfMember<'a, E> {
    #[serde(flatten)]
    pub event: &'a E,
    pub member: &'a str,
}

#[derive(Serialize)]
pub struct Sent<'a> {
    pub event: &'static str,
    pub seq: u64,
    pub status: &'static str,
    pub broker: Option<&'a str>,
    pub queue: Option<i32>,
    pub offset: Option<i64>,
    pub msg_id: Option<String>,
    pub offset_msg_id: Option<String>,
}

#[derive(Serialize)]
pub struct Failed<'a> {
    pub event: &'static str,
    pub seq: u64,
    pub error: &'a str,
}

#[derive(Serialize)]
pub struct Done {
    pub event: &'static str,
    pub sent: u64,
    pub failed: u64,
}

fn queue_triples<S: Serializer>(queues: &&[MessageQueue], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(queues.iter().map(|queue| (queue.topic(), queue.broker_name(), queue.queue_id())))
}

fn offsets_by_queue<S: Serializer>(offsets: &&BTreeMap<MessageQueue, i64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(offsets.iter().map(|(queue, offset)| (queue.to_string(), offset)))
}
