//! Who is connected to a broker.

use crate::protocol::body::{ConsumeFromWhere, ConsumeType, MessageModel, json_body};
use crate::protocol::{LanguageCode, SubscriptionData};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One connected client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Connection {
    /// Its address, as the broker sees it.
    pub client_addr: String,
    /// Its client id.
    pub client_id: String,
    /// Its language.
    pub language: LanguageCode,
    /// Its version.
    pub version: i32,
}

/// Answer to `GET_CONSUMER_CONNECTION_LIST`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerConnection {
    /// The members.
    pub connection_set: Vec<Connection>,
    /// Where the group starts without a committed offset.
    pub consume_from_where: ConsumeFromWhere,
    /// How it gets its messages.
    pub consume_type: ConsumeType,
    /// Whether its members share the messages.
    pub message_model: MessageModel,
    /// What it subscribes to, by topic.
    pub subscription_table: BTreeMap<String, SubscriptionData>,
}

/// Answer to `GET_PRODUCER_CONNECTION_LIST`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProducerConnection {
    /// The members.
    pub connection_set: Vec<Connection>,
}

/// `CHECK_CLIENT_CONFIG` (46): whether a filter is legal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckClientRequestBody {
    /// The client id.
    pub client_id: String,
    /// The consumer group.
    pub group: String,
    /// The name space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The filter.
    pub subscription_data: SubscriptionData,
}

json_body!(CheckClientRequestBody, Connection, ConsumerConnection, ProducerConnection);
