//! The fields of each header by name, written and read back.

use super::*;
use crate::protocol::{RemotingCommand, RequestCode, SerializeType};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Writes the header in both forms, checks the names on the wire, sends it through a frame and reads it back.
///
/// A macro, because a function cannot say that it reads what it wrote with another lifetime.
macro_rules! round_trip {
    ($type:ty, $header:expr, [$($name:literal),+ $(,)?]) => {
        for form in [SerializeType::Json, SerializeType::Rocketmq] {
            let header: $type = $header;
            let request = RemotingCommand::request_in_form(form, RequestCode(0), &header);
            let names: BTreeSet<&str> = request.ext_fields.iter().map(|(name, _)| name).collect();
            assert_eq!(names, BTreeSet::from([$($name),+]), "{}", stringify!($type));
            let mut frame = Vec::new();
            request.encode_head(&mut frame);
            let received = RemotingCommand::decode(Bytes::from(frame.split_off(4))).unwrap();
            assert_eq!(received.header::<$type>().unwrap(), header);
        }
    };
}

#[test]
fn pulls_have_javas_names() {
    round_trip!(
        PullMessageRequestHeader<'_>,
        PullMessageRequestHeader {
            consumer_group: "g",
            topic: "t",
            queue_id: 1,
            queue_offset: 2,
            max_msg_nums: 3,
            sys_flag: 4,
            commit_offset: -5,
            suspend_timeout_millis: 6,
            subscription: Some("a || b"),
            sub_version: i64::MAX,
            expression_type: Some("TAG"),
            max_msg_bytes: Some(7),
            bname: Some("b"),
        },
        [
            "consumerGroup",
            "topic",
            "queueId",
            "queueOffset",
            "maxMsgNums",
            "sysFlag",
            "commitOffset",
            "suspendTimeoutMillis",
            "subscription",
            "subVersion",
            "expressionType",
            "maxMsgBytes",
            "bname",
        ]
    );
    round_trip!(
        PullMessageResponseHeader,
        PullMessageResponseHeader {
            suggest_which_broker_id: 1,
            next_begin_offset: 2,
            min_offset: -1,
            max_offset: 4,
            offset_delta: Some(5),
            topic_sys_flag: Some(6),
            group_sys_flag: Some(7),
            forbidden_type: Some(8),
        },
        [
            "suggestWhichBrokerId",
            "nextBeginOffset",
            "minOffset",
            "maxOffset",
            "offsetDelta",
            "topicSysFlag",
            "groupSysFlag",
            "forbiddenType",
        ]
    );
}

#[test]
fn offsets_have_javas_names() {
    round_trip!(
        QueryConsumerOffsetRequestHeader<'_>,
        QueryConsumerOffsetRequestHeader {
            consumer_group: "g",
            topic: "t",
            queue_id: 1,
            set_zero_if_not_found: Some(false),
            bname: Some("b"),
        },
        ["consumerGroup", "topic", "queueId", "setZeroIfNotFound", "bname"]
    );
    round_trip!(QueryConsumerOffsetResponseHeader, QueryConsumerOffsetResponseHeader { offset: 1 }, ["offset"]);
    round_trip!(
        UpdateConsumerOffsetRequestHeader<'_>,
        UpdateConsumerOffsetRequestHeader {
            consumer_group: "g",
            topic: "t",
            queue_id: 1,
            commit_offset: 2,
            bname: None
        },
        ["consumerGroup", "topic", "queueId", "commitOffset"]
    );
    round_trip!(
        GetMaxOffsetRequestHeader<'_>,
        GetMaxOffsetRequestHeader { topic: "t", queue_id: 1, committed: true, bname: Some("b") },
        ["topic", "queueId", "committed", "bname"]
    );
    round_trip!(GetMaxOffsetResponseHeader, GetMaxOffsetResponseHeader { offset: 1 }, ["offset"]);
    round_trip!(
        GetMinOffsetRequestHeader<'_>,
        GetMinOffsetRequestHeader { topic: "t", queue_id: 1, bname: Some("b") },
        ["topic", "queueId", "bname"]
    );
    round_trip!(GetMinOffsetResponseHeader, GetMinOffsetResponseHeader { offset: 0 }, ["offset"]);
    round_trip!(
        SearchOffsetRequestHeader<'_>,
        SearchOffsetRequestHeader {
            topic: "t",
            queue_id: 1,
            timestamp: 2,
            boundary_type: Some("LOWER"),
            bname: Some("b")
        },
        ["topic", "queueId", "timestamp", "boundaryType", "bname"]
    );
    round_trip!(SearchOffsetResponseHeader, SearchOffsetResponseHeader { offset: 1 }, ["offset"]);
    round_trip!(
        GetEarliestMsgStoretimeRequestHeader<'_>,
        GetEarliestMsgStoretimeRequestHeader { topic: "t", queue_id: 1, bname: Some("b") },
        ["topic", "queueId", "bname"]
    );
    round_trip!(
        GetEarliestMsgStoretimeResponseHeader,
        GetEarliestMsgStoretimeResponseHeader { timestamp: -1 },
        ["timestamp"]
    );
}

fn send() -> SendMessageRequestHeader<'static> {
    SendMessageRequestHeader {
        producer_group: "g",
        topic: "t",
        default_topic: "TBW102",
        default_topic_queue_nums: 4,
        queue_id: -1,
        sys_flag: 1,
        born_timestamp: 2,
        flag: 3,
        properties: Some("a\u{1}b\u{2}"),
        reconsume_times: Some(4),
        unit_mode: Some(false),
        max_reconsume_times: Some(5),
        batch: Some(true),
        bname: Some("b"),
    }
}

#[test]
fn sends_have_javas_letters_and_long_names_and_either_is_read() {
    round_trip!(
        SendMessageRequestHeader<'_>,
        send(),
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"]
    );
    round_trip!(
        LongNames<'_>,
        LongNames(send()),
        [
            "producerGroup",
            "topic",
            "defaultTopic",
            "defaultTopicQueueNums",
            "queueId",
            "sysFlag",
            "bornTimestamp",
            "flag",
            "properties",
            "reconsumeTimes",
            "unitMode",
            "maxReconsumeTimes",
            "batch",
            "bname",
        ]
    );
    round_trip!(
        SendMessageResponseHeader<'_>,
        SendMessageResponseHeader {
            msg_id: "m",
            queue_id: 1,
            queue_offset: 2,
            transaction_id: Some("t"),
            batch_uniq_id: Some("u"),
            recall_handle: Some("h"),
            msg_region: Some("r"),
            trace_on: Some(true),
        },
        ["msgId", "queueId", "queueOffset", "transactionId", "batchUniqId", "recallHandle", "MSG_REGION", "TRACE_ON"]
    );
}

#[test]
fn headers_towards_brokers_have_javas_names() {
    round_trip!(
        ConsumerSendMsgBackRequestHeader<'_>,
        ConsumerSendMsgBackRequestHeader {
            offset: 1,
            group: "g",
            delay_level: -1,
            origin_msg_id: Some("m"),
            origin_topic: Some("t"),
            unit_mode: false,
            max_reconsume_times: Some(16),
            bname: Some("b"),
        },
        ["offset", "group", "delayLevel", "originMsgId", "originTopic", "unitMode", "maxReconsumeTimes", "bname"]
    );
    round_trip!(
        UnregisterClientRequestHeader<'_>,
        UnregisterClientRequestHeader { client_id: "c", producer_group: Some("p"), consumer_group: Some("g") },
        ["clientID", "producerGroup", "consumerGroup"]
    );
    round_trip!(
        HeartbeatResponseHeader,
        HeartbeatResponseHeader { is_support_heart_beat_v2: Some(true), is_sub_change: Some(false) },
        ["IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE"]
    );
    round_trip!(
        EndTransactionRequestHeader<'_>,
        EndTransactionRequestHeader {
            producer_group: "g",
            tran_state_table_offset: 1,
            commit_log_offset: 2,
            commit_or_rollback: 8,
            from_transaction_check: true,
            msg_id: "m",
            transaction_id: Some("t"),
            topic: Some("t"),
            bname: Some("b"),
        },
        [
            "producerGroup",
            "tranStateTableOffset",
            "commitLogOffset",
            "commitOrRollback",
            "fromTransactionCheck",
            "msgId",
            "transactionId",
            "topic",
            "bname",
        ]
    );
    round_trip!(
        QueryMessageRequestHeader<'_>,
        QueryMessageRequestHeader {
            topic: "t",
            key: "k",
            max_num: 1,
            begin_timestamp: 2,
            end_timestamp: 3,
            unique_key_query: Some(true),
        },
        ["topic", "key", "maxNum", "beginTimestamp", "endTimestamp", "_UNIQUE_KEY_QUERY"]
    );
    round_trip!(
        CreateTopicRequestHeader<'_>,
        CreateTopicRequestHeader {
            topic: "t",
            default_topic: "TBW102",
            read_queue_nums: 8,
            write_queue_nums: 8,
            perm: 6,
            topic_filter_type: "SINGLE_TAG",
            topic_sys_flag: Some(0),
            order: false,
            attributes: Some("+a=b"),
            force: Some(false),
        },
        [
            "topic",
            "defaultTopic",
            "readQueueNums",
            "writeQueueNums",
            "perm",
            "topicFilterType",
            "topicSysFlag",
            "order",
            "attributes",
            "force",
        ]
    );
}

#[test]
fn headers_towards_clients_have_javas_names() {
    round_trip!(
        NotifyConsumerIdsChangedRequestHeader<'_>,
        NotifyConsumerIdsChangedRequestHeader { consumer_group: "g" },
        ["consumerGroup"]
    );
    round_trip!(
        CheckTransactionStateRequestHeader<'_>,
        CheckTransactionStateRequestHeader {
            tran_state_table_offset: 1,
            commit_log_offset: 2,
            msg_id: Some("m"),
            transaction_id: Some("t"),
            offset_msg_id: Some("o"),
            topic: Some("t"),
            bname: Some("b"),
        },
        ["tranStateTableOffset", "commitLogOffset", "msgId", "transactionId", "offsetMsgId", "topic", "bname"]
    );
    round_trip!(
        ResetOffsetRequestHeader<'_>,
        ResetOffsetRequestHeader {
            topic: "t",
            group: "g",
            timestamp: -1,
            is_force: true,
            queue_id: Some(-1),
            offset: Some(-1),
            bname: Some("b"),
        },
        ["topic", "group", "timestamp", "isForce", "queueId", "offset", "bname"]
    );
    round_trip!(
        GetConsumerStatusRequestHeader<'_>,
        GetConsumerStatusRequestHeader { topic: "t", group: "g", client_addr: Some("c") },
        ["topic", "group", "clientAddr"]
    );
    round_trip!(
        GetConsumerRunningInfoRequestHeader<'_>,
        GetConsumerRunningInfoRequestHeader { consumer_group: "g", client_id: "c", jstack_enable: true },
        ["consumerGroup", "clientId", "jstackEnable"]
    );
    round_trip!(
        ConsumeMessageDirectlyResultRequestHeader<'_>,
        ConsumeMessageDirectlyResultRequestHeader {
            consumer_group: "g",
            client_id: Some("c"),
            msg_id: Some("m"),
            broker_name: Some("b"),
            topic: Some("t"),
            topic_sys_flag: Some(0),
            group_sys_flag: Some(0),
        },
        ["consumerGroup", "clientId", "msgId", "brokerName", "topic", "topicSysFlag", "groupSysFlag"]
    );
}
