//! Offsets: what a group has consumed, and what a queue holds.

use crate::protocol::command_header::command_header;

command_header! {
    /// `QUERY_CONSUMER_OFFSET` (14): the committed offset of a group.
    pub struct QueryConsumerOffsetRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
        /// The topic.
        pub topic: &'a str => "topic",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// False makes a 5.x broker answer "not found" (22) where it would answer 0 otherwise.
        pub set_zero_if_not_found: Option<bool> => "setZeroIfNotFound",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// Answer to `QUERY_CONSUMER_OFFSET`.
    pub struct QueryConsumerOffsetResponseHeader {
        /// The committed offset.
        pub offset: i64 => "offset",
    }
}

command_header! {
    /// `UPDATE_CONSUMER_OFFSET` (15): commits an offset; usually sent one way.
    pub struct UpdateConsumerOffsetRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
        /// The topic.
        pub topic: &'a str => "topic",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// The offset to go on from.
        pub commit_offset: i64 => "commitOffset",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// `GET_MAX_OFFSET` (30): the offset that the next message of the queue will get.
    pub struct GetMaxOffsetRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// Whether only replicated messages count (since 5.0).
        pub committed: bool => "committed" = true,
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// Answer to `GET_MAX_OFFSET`.
    pub struct GetMaxOffsetResponseHeader {
        /// The offset.
        pub offset: i64 => "offset",
    }
}

command_header! {
    /// `GET_MIN_OFFSET` (31): the offset of the oldest message of the queue.
    pub struct GetMinOffsetRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// Answer to `GET_MIN_OFFSET`.
    pub struct GetMinOffsetResponseHeader {
        /// The offset.
        pub offset: i64 => "offset",
    }
}

command_header! {
    /// `SEARCH_OFFSET_BY_TIMESTAMP` (29): the offset of the first message stored at or after a time.
    pub struct SearchOffsetRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// The time, in milliseconds.
        pub timestamp: i64 => "timestamp",
        /// `LOWER` or `UPPER`: which of several messages with that time (since 5.1.4). Absent is `LOWER`.
        pub boundary_type: Option<&'a str> => "boundaryType",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// Answer to `SEARCH_OFFSET_BY_TIMESTAMP`.
    pub struct SearchOffsetResponseHeader {
        /// The offset.
        pub offset: i64 => "offset",
    }
}

command_header! {
    /// `GET_EARLIEST_MSG_STORETIME` (32): when the oldest message of the queue was stored.
    pub struct GetEarliestMsgStoretimeRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The queue.
        pub queue_id: i32 => "queueId",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// Answer to `GET_EARLIEST_MSG_STORETIME`.
    pub struct GetEarliestMsgStoretimeResponseHeader {
        /// The time in milliseconds, -1 when the queue is empty.
        pub timestamp: i64 => "timestamp",
    }
}
