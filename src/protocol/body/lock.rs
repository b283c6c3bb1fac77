//! Queue locks: `LOCK_BATCH_MQ` and `UNLOCK_BATCH_MQ` have bodies only.

use crate::message::MessageQueue;
use crate::protocol::body::json_body;
use serde::{Deserialize, Serialize};

/// Asks for the queues to be locked for a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LockBatchRequestBody {
    /// The client id that owns the locks. Embedded brokers must refuse a request without one.
    pub client_id: String,
    /// The consumer group.
    pub consumer_group: String,
    /// The queues.
    pub mq_set: Vec<MessageQueue>,
    /// For brokers among themselves (since 5.0); false.
    pub only_this_broker: bool,
}

/// Asks for locks to be given back; the same on the wire.
pub type UnlockBatchRequestBody = LockBatchRequestBody;

/// Answer to `LOCK_BATCH_MQ`: which of the queues the client holds now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockBatchResponseBody {
    /// The queues. Absent is none.
    #[serde(rename = "lockOKMQSet")]
    pub lock_ok_mq_set: Vec<MessageQueue>,
}

json_body!(LockBatchRequestBody, LockBatchResponseBody);
