//! What brokers tell name servers about themselves.

use crate::protocol::command_header::command_header;

command_header! {
    /// `REGISTER_BROKER` (103); the topics are in the body, see
    /// [`RegisterBrokerBody`](crate::protocol::body::RegisterBrokerBody).
    pub struct RegisterBrokerRequestHeader<'a> {
        /// The broker.
        pub broker_name: &'a str => "brokerName",
        /// Its address, as clients are to be told.
        pub broker_addr: &'a str => "brokerAddr",
        /// Its cluster.
        pub cluster_name: &'a str => "clusterName",
        /// Where its slaves copy from.
        pub ha_server_addr: &'a str => "haServerAddr",
        /// 0 for a master, more for a slave.
        pub broker_id: i64 => "brokerId",
        /// After how long without a word the broker counts as gone, in milliseconds (since 5.0); else 120,000.
        pub heartbeat_timeout_millis: Option<i64> => "heartbeatTimeoutMillis",
        /// Whether a slave may stand in for the master (since 5.0).
        pub enable_acting_master: Option<bool> => "enableActingMaster",
        /// Whether the body is compressed.
        pub compressed: bool => "compressed" = false,
        /// CRC-32 of the body without its top bit; 0 is not checked.
        pub body_crc32: i32 => "bodyCrc32" = 0,
    }
}

command_header! {
    /// Answer to `REGISTER_BROKER`.
    pub struct RegisterBrokerResponseHeader<'a> {
        /// Where a slave copies from.
        pub ha_server_addr: Option<&'a str> => "haServerAddr",
        /// The master of a slave.
        pub master_addr: Option<&'a str> => "masterAddr",
    }
}

command_header! {
    /// `UNREGISTER_BROKER` (104).
    pub struct UnRegisterBrokerRequestHeader<'a> {
        /// The broker.
        pub broker_name: &'a str => "brokerName",
        /// Its address.
        pub broker_addr: &'a str => "brokerAddr",
        /// Its cluster.
        pub cluster_name: &'a str => "clusterName",
        /// Its id.
        pub broker_id: i64 => "brokerId",
    }
}

command_header! {
    /// `QUERY_DATA_VERSION` (322); the broker's version is in the body.
    pub struct QueryDataVersionRequestHeader<'a> {
        /// The broker.
        pub broker_name: &'a str => "brokerName",
        /// Its address.
        pub broker_addr: &'a str => "brokerAddr",
        /// Its cluster.
        pub cluster_name: &'a str => "clusterName",
        /// Its id.
        pub broker_id: i64 => "brokerId",
    }
}

command_header! {
    /// Answer to `QUERY_DATA_VERSION`.
    pub struct QueryDataVersionResponseHeader {
        /// Whether the name server knows another version, or none.
        pub changed: bool => "changed",
    }
}

command_header! {
    /// `BROKER_HEARTBEAT` (904, since 5.0).
    pub struct BrokerHeartbeatRequestHeader<'a> {
        /// The cluster.
        pub cluster_name: &'a str => "clusterName",
        /// The broker's address.
        pub broker_addr: &'a str => "brokerAddr",
        /// The broker.
        pub broker_name: &'a str => "brokerName",
    }
}

command_header! {
    /// `GET_BROKER_MEMBER_GROUP` (901, since 5.0).
    pub struct GetBrokerMemberGroupRequestHeader<'a> {
        /// The cluster.
        pub cluster_name: &'a str => "clusterName",
        /// The broker.
        pub broker_name: &'a str => "brokerName",
    }
}

command_header! {
    /// `REGISTER_TOPIC_IN_NAMESRV` (217, since 5.0); the queues are in the body, as a route.
    pub struct RegisterTopicRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
    }
}
