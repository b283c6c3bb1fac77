//! Assignments that a broker makes (5.x), in place of a rebalance by the client.

use crate::message::MessageQueue;
use crate::protocol::body::open_enum::open_enum;
use crate::protocol::body::{MessageModel, json_body};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

open_enum! {
    /// How the messages of an assignment are fetched.
    pub enum MessageRequestMode {
        /// By pulls.
        Pull = "PULL",
        /// By pops.
        Pop = "POP",
    }
}

/// `QUERY_ASSIGNMENT` (400).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryAssignmentRequestBody {
    /// The client id.
    pub client_id: String,
    /// The consumer group.
    pub consumer_group: String,
    /// Whether the members share the messages.
    pub message_model: MessageModel,
    /// The strategy, `AVG` or `AVG_BY_CIRCLE`.
    pub strategy_name: String,
    /// The topic.
    pub topic: String,
}

/// Answer to `QUERY_ASSIGNMENT`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryAssignmentResponseBody {
    /// The queues; absent when the broker has no valid result, so that the client keeps what it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_queue_assignments: Option<Vec<MessageQueueAssignment>>,
}

/// One assigned queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageQueueAssignment {
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<BTreeMap<String, String>>,
    /// The queue; of pops its number may be -1 for all of them.
    pub message_queue: MessageQueue,
    /// How to fetch.
    #[serde(default)]
    pub mode: MessageRequestMode,
}

/// `SET_MESSAGE_REQUEST_MODE` (401).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetMessageRequestModeRequestBody {
    /// The consumer group.
    pub consumer_group: String,
    /// How its members fetch.
    pub mode: MessageRequestMode,
    /// How many clients share a queue of pops.
    pub pop_share_queue_num: i32,
    /// The topic.
    pub topic: String,
}

json_body!(QueryAssignmentRequestBody, QueryAssignmentResponseBody, SetMessageRequestModeRequestBody);
