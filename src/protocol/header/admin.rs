//! What administrators ask about topics and groups.

use crate::protocol::command_header::command_header;

command_header! {
    /// `GET_TOPIC_STATS_INFO` (202).
    pub struct GetTopicStatsInfoRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
    }
}

command_header! {
    /// `GET_CONSUME_STATS` (208): offsets of a group and its queues.
    pub struct GetConsumeStatsRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
        /// The topic; absent for all.
        pub topic: Option<&'a str> => "topic",
        /// Topics, each followed by `;` (since 5.3.2); they replace `topic`.
        pub topic_list: Option<&'a str> => "topicList",
    }
}

command_header! {
    /// `GET_CONSUMER_CONNECTION_LIST` (203): the members of a group; code 206 when it has none.
    pub struct GetConsumerConnectionListRequestHeader<'a> {
        /// The consumer group.
        pub consumer_group: &'a str => "consumerGroup",
    }
}

command_header! {
    /// `GET_PRODUCER_CONNECTION_LIST` (204).
    pub struct GetProducerConnectionListRequestHeader<'a> {
        /// The producer group.
        pub producer_group: &'a str => "producerGroup",
    }
}

command_header! {
    /// `QUERY_TOPIC_CONSUME_BY_WHO` (300): the groups of a topic.
    pub struct QueryTopicConsumeByWhoRequestHeader<'a> {
        /// The topic.
        pub topic: &'a str => "topic",
    }
}

command_header! {
    /// `QUERY_TOPICS_BY_CONSUMER` (343, since 5.0): the topics of a group.
    pub struct QueryTopicsByConsumerRequestHeader<'a> {
        /// The consumer group.
        pub group: &'a str => "group",
    }
}

command_header! {
    /// `QUERY_SUBSCRIPTION_BY_CONSUMER` (345, since 5.0).
    pub struct QuerySubscriptionByConsumerRequestHeader<'a> {
        /// The consumer group.
        pub group: &'a str => "group",
        /// The topic.
        pub topic: Option<&'a str> => "topic",
    }
}
