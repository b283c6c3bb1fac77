//! `PULL_MESSAGE` (11) and `LITE_PULL_MESSAGE` (361, since 5.0; the same, served by other threads).
//!
//! Left out: `requestSource` and `proxyFrowardClientId`, which only proxies send.

use crate::protocol::command_header::command_header;

command_header! {
    /// Asks for messages of one queue.
    pub struct PullMessageRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
        /// The topic.
        pub topic: &'a str => "topic",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// The first queue offset wanted.
        pub queue_offset: i64 => "queueOffset",
        /// How many messages at most.
        pub max_msg_nums: i32 => "maxMsgNums",
        /// Bits of `PullSysFlag`, which say what the fields below are good for.
        pub sys_flag: i32 => "sysFlag",
        /// The offset to commit, with the commit bit; else 0.
        pub commit_offset: i64 => "commitOffset",
        /// How long the broker may hold the request when it has nothing, with the suspend bit.
        pub suspend_timeout_millis: i64 => "suspendTimeoutMillis",
        /// The filter expression, with the subscription bit.
        pub subscription: Option<&'a str> => "subscription",
        /// The version of the subscription.
        pub sub_version: i64 => "subVersion",
        /// `TAG` or `SQL92`; absent is `TAG`. Never empty: a broker would parse no tags then.
        pub expression_type: Option<&'a str> => "expressionType",
        /// How many bytes at most (since 5.0).
        pub max_msg_bytes: Option<i32> => "maxMsgBytes",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// What a broker says beside the messages, with codes 0, 19, 20 and 21 alike.
    // In the order in which Java's hash map has the fields, since a header that comes in order is read fastest.
    pub struct PullMessageResponseHeader {
        /// The broker id to pull from next.
        pub suggest_which_broker_id: i64 => "suggestWhichBrokerId",
        /// Flags of the group (since 5.0).
        pub group_sys_flag: Option<i32> => "groupSysFlag",
        /// The offset to ask for next; it passes over messages that the filter held back.
        pub next_begin_offset: i64 => "nextBeginOffset",
        /// With code 16, what is forbidden (since 5.0).
        pub forbidden_type: Option<i32> => "forbiddenType",
        /// For static topics: to be added to the queue offset of every message (since 5.0).
        pub offset_delta: Option<i64> => "offsetDelta",
        /// The offset that the next message of the queue will get.
        pub max_offset: i64 => "maxOffset",
        /// The lowest offset of the queue.
        pub min_offset: i64 => "minOffset",
        /// Flags of the topic (since 5.0).
        pub topic_sys_flag: Option<i32> => "topicSysFlag",
    }
}
