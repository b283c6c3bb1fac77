//! Membership: heartbeats, leaving, and who belongs to a group. Queue locks have bodies only.

use crate::protocol::command_header::command_header;

command_header! {
    /// What a 5.x broker adds to its answer to `HEART_BEAT` (34); the request has no header.
    pub struct HeartbeatResponseHeader {
        /// Whether the broker understands beats without subscriptions (since 5.1.3).
        pub is_support_heart_beat_v2: Option<bool> => "IS_SUPPORT_HEART_BEAT_V2",
        /// Whether the next beat must have the subscriptions again.
        pub is_sub_change: Option<bool> => "IS_SUB_CHANGE",
    }
}

command_header! {
    /// `UNREGISTER_CLIENT` (35): a client leaves its groups.
    pub struct UnregisterClientRequestHeader<'a> {
        /// The client id.
        pub client_id: &'a str => "clientID",
        /// The producer group to leave.
        pub producer_group: Option<&'a str> => "producerGroup",
        /// The consumer group to leave.
        pub consumer_group: Option<&'a str> => "consumerGroup",
    }
}

command_header! {
    /// `GET_CONSUMER_LIST_BY_GROUP` (38): the client ids of a group; code 1 when it has none.
    pub struct GetConsumerListByGroupRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
    }
}
