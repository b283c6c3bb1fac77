//! `CONSUMER_SEND_MSG_BACK` (36): a consumer returns a message, to get it again later.

use crate::protocol::command_header::command_header;

command_header! {
    /// Names the message by its place in the broker's log, so it must go to the broker that stores it.
    pub struct ConsumerSendMsgBackRequestHeader<'a> {
        /// The commit-log offset of the message.
        pub offset: i64 => "offset",
        /// The consumer group.
        pub group: &'a str => "group",
        /// The delay level; 0 lets the broker choose, below 0 goes straight to the dead letters.
        pub delay_level: i32 => "delayLevel",
        /// The id of the message.
        pub origin_msg_id: Option<&'a str> => "originMsgId",
        /// The topic of the message.
        pub origin_topic: Option<&'a str> => "originTopic",
        /// Always false.
        pub unit_mode: bool => "unitMode" = false,
        /// How often the message may come back before it is a dead letter.
        pub max_reconsume_times: Option<i32> => "maxReconsumeTimes",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}
