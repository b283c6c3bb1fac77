//! What a broker asks of a client. Administrators send some of it to a broker, which passes it on.

use crate::protocol::command_header::command_header;

command_header! {
    /// `NOTIFY_CONSUMER_IDS_CHANGED` (40), one way: the members of a group have changed, rebalance now.
    pub struct NotifyConsumerIdsChangedRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
    }
}

command_header! {
    /// `RESET_CONSUMER_CLIENT_OFFSET` (220), one way, broker to client: only the names count there, the offsets are in
    /// the body. `INVOKE_BROKER_TO_RESET_OFFSET` (222), administrator to broker: everything counts.
    pub struct ResetOffsetRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The consumer group.
        pub group: &'a str => "group",
        /// The time to go back to in milliseconds; -1 is the end of the queue.
        pub timestamp: i64 => "timestamp",
        /// Whether to go forward as well.
        pub is_force: bool => "isForce" = false,
        /// The queue (since 5.1); absent or -1 for all of them.
        pub queue_id: Option<i32> => "queueId",
        /// The offset (since 5.1), for a single queue; absent or -1 to go by the time.
        pub offset: Option<i64> => "offset",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// `GET_CONSUMER_STATUS_FROM_CLIENT` (221) and `INVOKE_BROKER_TO_GET_CONSUMER_STATUS` (223): the offsets of a client.
    pub struct GetConsumerStatusRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The consumer group.
        pub group: &'a str => "group",
        /// A client id, despite its name; absent for all clients.
        pub client_addr: Option<&'a str> => "clientAddr",
    }
}

command_header! {
    /// `GET_CONSUMER_RUNNING_INFO` (307): what a client is doing.
    pub struct GetConsumerRunningInfoRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
        /// The client id.
        pub client_id: &'a str => "clientId",
        /// Whether the stacks of its threads are wanted.
        pub jstack_enable: bool => "jstackEnable" = false,
    }
}

command_header! {
    /// `CONSUME_MESSAGE_DIRECTLY` (309): consume the message in the body now.
    pub struct ConsumeMessageDirectlyResultRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
        /// The client id.
        pub client_id: Option<&'a str> => "clientId",
        /// The offset message id.
        pub msg_id: Option<&'a str> => "msgId",
        /// The name of the broker that passes the request on.
        pub broker_name: Option<&'a str> => "brokerName",
        /// The topic.
        pub topic: Option<&'a str> => "topic",
        /// Flags of the topic (since 5.0).
        pub topic_sys_flag: Option<i32> => "topicSysFlag",
        /// Flags of the group (since 5.0).
        pub group_sys_flag: Option<i32> => "groupSysFlag",
    }
}
