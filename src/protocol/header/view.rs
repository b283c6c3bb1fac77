//! Looking for single messages.

use crate::protocol::command_header::command_header;

command_header! {
    /// `VIEW_MESSAGE_BY_ID` (33): the message at a place in the log.
    pub struct ViewMessageRequestHeader<'a> {
        /// The commit-log offset.
        pub offset: i64 => "offset",
        /// The topic.
        pub topic: Option<&'a str> => "topic",
    }
}

command_header! {
    /// `QUERY_MESSAGE` (12): messages by key. The index goes by hash, so what comes must be checked.
    pub struct QueryMessageRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The key.
        pub key: &'a str => "key",
        /// How many messages at most.
        pub max_num: i32 => "maxNum",
        /// The earliest store time, in milliseconds.
        pub begin_timestamp: i64 => "beginTimestamp",
        /// The latest store time, in milliseconds.
        pub end_timestamp: i64 => "endTimestamp",
        /// Whether the key is a unique key. Signed requests must leave it out, or say that they are of version 399.
        pub unique_key_query: Option<bool> => "_UNIQUE_KEY_QUERY",
    }
}

command_header! {
    /// Answer to `QUERY_MESSAGE`.
    pub struct QueryMessageResponseHeader {
        /// When the index was last written, in milliseconds.
        pub index_last_update_timestamp: i64 => "indexLastUpdateTimestamp",
        /// Up to where in the log the index reaches.
        pub index_last_update_phyoffset: i64 => "indexLastUpdatePhyoffset",
    }
}
