//! Making and deleting topics and groups.

use crate::protocol::command_header::command_header;

command_header! {
    /// `UPDATE_AND_CREATE_TOPIC` (17).
    pub struct CreateTopicRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
        /// The template topic.
        pub default_topic: &'a str => "defaultTopic",
        /// How many queues consumers see.
        pub read_queue_nums: i32 => "readQueueNums",
        /// How many queues producers see.
        pub write_queue_nums: i32 => "writeQueueNums",
        /// Bits: 4 read, 2 write.
        pub perm: i32 => "perm",
        /// `SINGLE_TAG` or `MULTI_TAG`.
        pub topic_filter_type: &'a str => "topicFilterType",
        /// Flags of the topic.
        pub topic_sys_flag: Option<i32> => "topicSysFlag",
        /// Whether order is to be kept even when a broker is down.
        pub order: bool => "order" = false,
        /// `+key=value` and `-key`, with commas between them (since 5.0).
        pub attributes: Option<&'a str> => "attributes",
        /// Whether to change what must not change otherwise (since 5.0).
        pub force: Option<bool> => "force",
    }
}

command_header! {
    /// `DELETE_TOPIC_IN_BROKER` (215).
    pub struct DeleteTopicRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
    }
}

command_header! {
    /// `DELETE_SUBSCRIPTIONGROUP` (207).
    pub struct DeleteSubscriptionGroupRequestHeader<'a> {
        /// The consumer group.
        pub group_name: &'a str => "groupName",
        /// Whether its offsets go, too (since 5.0).
        pub clean_offset: bool => "cleanOffset" = false,
    }
}

command_header! {
    /// `GET_TOPIC_CONFIG` (351, since 5.0).
    pub struct GetTopicConfigRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
    }
}

command_header! {
    /// `GET_SUBSCRIPTIONGROUP_CONFIG` (352, since 5.0).
    pub struct GetSubscriptionGroupConfigRequestHeader<'a> {
        /// The consumer group.
        pub group: &'a str => "group",
    }
}
