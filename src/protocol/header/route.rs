//! Requests to a name server: routes and configuration values.

use crate::protocol::command_header::command_header;

command_header! {
    /// `GET_ROUTEINFO_BY_TOPIC` (105): the queues of a topic and the addresses of its brokers.
    pub struct GetRouteInfoRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// Asks for JSON with quoted keys (since 4.9.4). Always to be sent as true.
        pub accept_standard_json_only: Option<bool> => "acceptStandardJsonOnly",
    }
}

command_header! {
    /// `GET_TOPICS_BY_CLUSTER` (224).
    pub struct GetTopicsByClusterRequestHeader<'a> {
        /// The cluster.
        pub cluster: &'a str => "cluster",
    }
}

command_header! {
    /// `DELETE_TOPIC_IN_NAMESRV` (216).
    pub struct DeleteTopicFromNamesrvRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The cluster; absent means all.
        pub cluster_name: Option<&'a str> => "clusterName",
    }
}

command_header! {
    /// `PUT_KV_CONFIG` (100).
    pub struct PutKVConfigRequestHeader<'a> {
        /// The name space, as in `ORDER_TOPIC_CONFIG`.
        pub namespace: &'a str => "namespace",
        /// The key.
        pub key: &'a str => "key",
        /// The value.
        pub value: &'a str => "value",
    }
}

command_header! {
    /// `GET_KV_CONFIG` (101).
    pub struct GetKVConfigRequestHeader<'a> {
        /// The name space.
        pub namespace: &'a str => "namespace",
        /// The key.
        pub key: &'a str => "key",
    }
}

command_header! {
    /// Answer to `GET_KV_CONFIG`.
    pub struct GetKVConfigResponseHeader<'a> {
        /// The value.
        pub value: Option<&'a str> => "value",
    }
}

command_header! {
    /// `DELETE_KV_CONFIG` (102).
    pub struct DeleteKVConfigRequestHeader<'a> {
        /// The name space.
        pub namespace: &'a str => "namespace",
        /// The key.
        pub key: &'a str => "key",
    }
}

command_header! {
    /// `GET_KVLIST_BY_NAMESPACE` (219).
    pub struct GetKVListByNamespaceRequestHeader<'a> {
        /// The name space.
        pub namespace: &'a str => "namespace",
    }
}
