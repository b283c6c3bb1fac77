//! The brokers of a cluster, and plain lists and tables of names.

use crate::protocol::body::{BrokerData, json_body};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Answer to `GET_BROKER_CLUSTER_INFO`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInfo {
    /// The brokers by name.
    pub broker_addr_table: BTreeMap<Arc<str>, BrokerData>,
    /// The names of the brokers, by cluster.
    pub cluster_addr_table: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// The addresses of one broker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BrokerMemberGroup {
    /// The addresses by broker id.
    pub broker_addrs: BTreeMap<i64, Arc<str>>,
    /// The broker.
    pub broker_name: Arc<str>,
    /// Its cluster.
    pub cluster: Arc<str>,
}

/// Answer to `GET_BROKER_MEMBER_GROUP`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetBrokerMemberGroupResponseBody {
    /// The addresses; absent for an unknown broker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_member_group: Option<BrokerMemberGroup>,
}

/// Names of topics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicList {
    /// The broker that the list is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_addr: Option<String>,
    /// The topics.
    pub topic_list: BTreeSet<String>,
}

/// Names of groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupList {
    /// The groups.
    pub group_list: BTreeSet<String>,
}

/// Text by key: configuration values, and the runtime info of a broker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KVTable {
    /// The values.
    pub table: BTreeMap<String, String>,
}

json_body!(ClusterInfo, BrokerMemberGroup, GetBrokerMemberGroupResponseBody, TopicList, GroupList, KVTable);
