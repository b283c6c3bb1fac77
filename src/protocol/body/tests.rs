use super::*;
use crate::message::MessageQueue;
use crate::protocol::{LanguageCode, SubscriptionData};
use std::collections::{BTreeMap, BTreeSet};

// The samples are what the Java classes of RocketMQ 5.3 wrote, with fastjson 1.2.83.

const HEARTBEAT: &str = r#"{"clientID":"192.168.0.10@12345#1","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"CG","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1700000000001,"tagsSet":[],"topic":"%RETRY%CG"},{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB","subVersion":1700000000000,"tagsSet":["TagA","TagB"],"topic":"TopicTest"}],"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"PG"}],"withoutSub":false}"#;
const ROUTE: &str = r#"{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}"#;
const LEGACY_ROUTE: &str = r#"{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}"#;
const LOCK: &str = r#"{"clientId":"cid","consumerGroup":"CG","mqSet":[{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}],"onlyThisBroker":false}"#;
const LOCKED: &str = r#"{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}]}"#;
const ASSIGNMENT: &str =
    r#"{"clientId":"cid","consumerGroup":"CG","messageModel":"CLUSTERING","strategyName":"AVG","topic":"TopicTest"}"#;
const ASSIGNED: &str = r#"{"messageQueueAssignments":[{"messageQueue":{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"},"mode":"PULL"}]}"#;
const REQUEST_MODE: &str = r#"{"consumerGroup":"CG","mode":"POP","popShareQueueNum":0,"topic":"TopicTest"}"#;
const STATUS: &str = r#"{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-a","queueId":1,"topic":"TopicTest"}:200,{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:100}}"#;
const RUNNING_INFO: &str = r#"{"jstack":"main TID: 1","mqPopTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:{"droped":false,"lastPopTimestamp":0,"waitAckCount":0}},"mqTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":10,"droped":false,"lastConsumeTimestamp":0,"lastLockTimestamp":0,"lastPullTimestamp":0,"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}},"properties":{"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY","PROP_CONSUMER_START_TIMESTAMP":"1700000000000"},"statusTable":{"TopicTest":{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":0.0,"consumeRT":0.0,"pullRT":0.0,"pullTPS":0.0}},"subscriptionSet":[{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"T"}],"userConsumerInfo":{}}"#;
const RESET: &str = r#"{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"TopicTest"}:200,{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:100}}"#;
const RESET_LIST: &str = r#"{"offsetTable":[{"brokerName":"broker-a","offset":100,"queueId":0,"topic":"TopicTest"}]}"#;
const DIRECTLY: &str = r#"{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":3}"#;
const CONSUMERS: &str = r#"{"connectionSet":[{"clientAddr":"10.0.0.9:51234","clientId":"cid","language":"RUST","version":479}],"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","subscriptionTable":{"TopicTest":{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"TopicTest"}}}"#;
const PRODUCERS: &str =
    r#"{"connectionSet":[{"clientAddr":"10.0.0.9:51234","clientId":"cid","language":"RUST","version":479}]}"#;
const CONSUME_STATS: &str = r#"{"consumeTps":0.0,"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:{"brokerOffset":10,"consumerOffset":8,"lastTimestamp":1700000000000,"pullOffset":9}}}"#;
const TOPIC_STATS: &str = r#"{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:{"lastUpdateTimestamp":1700000000000,"maxOffset":10,"minOffset":0}},"topicPutTps":0.0}"#;
const CLUSTER: &str = r#"{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}},"clusterAddrTable":{"DefaultCluster":["broker-a"]}}"#;
const MEMBERS: &str =
    r#"{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}"#;
const OFFSETS: &str = r#"{"offsetTable":{"TopicTest@CG":{0:5,1:6}}}"#;
const DATA_VERSION: &str = r#"{"counter":0,"stateVersion":0,"timestamp":1700000000000}"#;
const CHECK_CLIENT: &str = r#"{"clientId":"cid","group":"CG","subscriptionData":{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"T"}}"#;
const TIME_SPAN: &str = r#"{"consumeTimeSpanSet":[{"consumeTimeStamp":1700000000000,"consumeTimeStampStr":"2023-11-14#22:13:20:000","delayTime":5,"maxTimeStamp":1700000000001,"maxTimeStampStr":"x","messageQueue":{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"},"minTimeStamp":2,"minTimeStampStr":"y"}]}"#;
const BROKER_STATS: &str = r#"{"statsDay":{"avgpt":0.0,"sum":0,"tps":0.0},"statsHour":{"avgpt":0.0,"sum":0,"tps":0.0},"statsMinute":{"avgpt":0.5,"sum":7,"tps":1.0}}"#;
const STATS_LIST: &str = r#"{"brokerAddr":"10.0.0.1:10911","consumeStatsList":[{"CG":[{"consumeTps":0.0,"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:{"brokerOffset":10,"consumerOffset":8,"lastTimestamp":1700000000000,"pullOffset":9}}}]}],"totalDiff":0,"totalInflightDiff":0}"#;
const TOPIC_CONFIG: &str = r#"{"attributes":{},"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"TopicTest","topicSysFlag":0,"writeQueueNums":4}"#;
const GROUP_CONFIG: &str = r#"{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"CG","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}"#;

fn value(text: &[u8]) -> Value {
    serde_json::from_slice(&fastjson::normalise(text)).unwrap()
}

/// Reads the sample, writes it, compares the content; then reads every cut form of it, which must be errors.
macro_rules! round_trip {
    ($type:ty, $sample:expr) => {{
        let sample: &str = $sample;
        let body = <$type>::decode(sample.as_bytes()).unwrap();
        let written = body.encode();
        assert_eq!(value(&written), value(sample.as_bytes()), "{}", String::from_utf8_lossy(&written));
        assert_eq!(<$type>::decode(&written).unwrap(), body);
        for end in 0..sample.len() {
            let error = <$type>::decode(&sample.as_bytes()[..end]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol);
        }
        <$type>::decode(b"{}").unwrap();
        (body, written)
    }};
}

#[test]
fn heartbeats_are_what_java_writes() {
    let (beat, written) = round_trip!(HeartbeatData, HEARTBEAT);
    assert_eq!(written, HEARTBEAT, "same order, too");
    let consumer = &beat.consumer_data_set[0];
    assert_eq!(consumer.consume_type, ConsumeType::Passively);
    assert_eq!(consumer.message_model, MessageModel::Clustering);
    assert_eq!(consumer.consume_from_where, ConsumeFromWhere::LastOffset);
    let expected = SubscriptionData::tag_expression("TopicTest", "TagA || TagB", 1_700_000_000_000).unwrap();
    assert_eq!(consumer.subscription_data_set[1], expected);
}

#[test]
fn routes_are_read_in_both_forms_and_written_in_the_standard_one() {
    let (route, written) = round_trip!(TopicRouteData, ROUTE);
    assert_eq!(written, ROUTE);
    let (legacy, written) = round_trip!(TopicRouteData, LEGACY_ROUTE);
    assert_eq!(written, ROUTE);
    assert_eq!(route, legacy);
    assert_eq!(&*route.broker_datas[0].broker_addrs[&MASTER_ID], "10.0.0.1:10911");
}

#[test]
fn routes_of_every_age_are_read() {
    let text = r#" { "orderTopicConf" : "a:4;b:4" , "filterServerTable":{"x:1":null,"y:2":["z"]},
        "brokerDatas":[{"brokerAddrs":{ -1 : "{0:1}", 12:"\u4f60:1"},"brokerName":"b{0:","zoneName":"z","cluster":null,"new":{3:[{4:5}]}}],
        "queueDatas":[{"brokerName":"b{0:","topicSynFlag":3}], "later":{0:{{"a":1}:2}},
        "topicQueueMappingByBroker":{"b":{"bname":"b","currIdMap":{0:1,"2":3},"epoch":"9223372036854775807","scope":"__global__"}}}"#;
    let route = TopicRouteData::decode(text.as_bytes()).unwrap();
    assert_eq!(route.queue_datas[0].topic_sys_flag, 3);
    let addresses: Vec<_> = route.broker_datas[0].broker_addrs.iter().map(|(id, address)| (*id, &**address)).collect();
    assert_eq!(addresses, [(-1, "{0:1}"), (12, "你:1")]);
    assert_eq!(route.order_topic_conf.as_deref(), Some("a:4;b:4"));
    let mapping = &route.topic_queue_mapping_by_broker.unwrap()["b"];
    assert_eq!((mapping.epoch, mapping.curr_id_map.clone()), (i64::MAX, BTreeMap::from([(0, 1), (2, 3)])));
}

#[test]
fn locks_and_assignments_are_what_java_writes() {
    assert_eq!(round_trip!(LockBatchRequestBody, LOCK).1, LOCK);
    assert_eq!(round_trip!(LockBatchResponseBody, LOCKED).1, LOCKED);
    assert_eq!(LockBatchResponseBody::default().encode(), r#"{"lockOKMQSet":[]}"#);
    round_trip!(QueryAssignmentRequestBody, ASSIGNMENT);
    let (assigned, _) = round_trip!(QueryAssignmentResponseBody, ASSIGNED);
    assert_eq!(assigned.message_queue_assignments.unwrap()[0].mode, MessageRequestMode::Pull);
    assert!(QueryAssignmentResponseBody::decode(b"{}").unwrap().message_queue_assignments.is_none());
    round_trip!(SetMessageRequestModeRequestBody, REQUEST_MODE);
}

#[test]
fn bodies_keyed_by_queues_are_written_with_bare_objects() {
    let (status, written) = round_trip!(GetConsumerStatusBody, STATUS);
    assert_eq!(status.message_queue_table[&MessageQueue::new("TopicTest", "broker-a", 1)], 200);
    assert!(written.starts_with(br#"{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"#));
    let (info, written) = round_trip!(ConsumerRunningInfo, RUNNING_INFO);
    assert_eq!(
        written,
        RUNNING_INFO.replace(
            "PROP_CONSUME_TYPE\":\"CONSUME_PASSIVELY\",\"PROP_CONSUMER_START_TIMESTAMP\":\"1700000000000",
            "PROP_CONSUMER_START_TIMESTAMP\":\"1700000000000\",\"PROP_CONSUME_TYPE\":\"CONSUME_PASSIVELY"
        )
    );
    assert_eq!(info.mq_table.values().next().unwrap().commit_offset, 10);
    assert_eq!(round_trip!(ConsumeStats, CONSUME_STATS).1, CONSUME_STATS);
    assert_eq!(round_trip!(TopicStatsTable, TOPIC_STATS).1, TOPIC_STATS);
    assert_eq!(round_trip!(ConsumeStatsList, STATS_LIST).1, STATS_LIST);
}

#[test]
fn the_form_with_text_for_queues_is_read_too() {
    let text = r#"{"offsetTable":{"{\"brokerName\":\"b \\\" {\",\"queueId\":1,\"topic\":\"T\"}":7}}"#;
    let body = ResetOffsetBody::decode(text.as_bytes()).unwrap();
    assert_eq!(body.offset_table, BTreeMap::from([(MessageQueue::new("T", "b \" {", 1), 7)]));
    assert_eq!(ResetOffsetBody::decode(&body.encode()).unwrap(), body);
}

#[test]
fn the_status_of_many_clients_nests_tables() {
    let table = BTreeMap::from([(MessageQueue::new("T", "b", 0), 5)]);
    let body = GetConsumerStatusBody { consumer_table: BTreeMap::from([("c".into(), table)]), ..Default::default() };
    let text = br#"{"consumerTable":{"c":{{"brokerName":"b","queueId":0,"topic":"T"}:5}},"messageQueueTable":{}}"#;
    assert_eq!(body.encode(), &text[..]);
    assert_eq!(GetConsumerStatusBody::decode(text).unwrap(), body);
}

#[test]
fn resets_come_as_a_map_or_as_a_list() {
    let (map, _) = round_trip!(ResetOffsetBody, RESET);
    assert_eq!(map.offset_table.len(), 2);
    let list = ResetOffsetBody::decode(RESET_LIST.as_bytes()).unwrap();
    assert_eq!(list.offset_table, BTreeMap::from([(MessageQueue::new("TopicTest", "broker-a", 0), 100)]));
    assert_eq!(value(&list.encode_list()), value(RESET_LIST.as_bytes()));
    for text in [r#"{"offsetTable":[{"offset":1}]}"#, r#"{"offsetTable":5}"#, r#"{"offsetTable":{"x":5}}"#] {
        assert_eq!(ResetOffsetBody::decode(text.as_bytes()).unwrap_err().kind(), ErrorKind::Protocol);
    }
}

#[test]
fn answers_of_clients_are_what_java_writes() {
    assert_eq!(round_trip!(ConsumeMessageDirectlyResult, DIRECTLY).1, DIRECTLY);
    let failed = ConsumeMessageDirectlyResult {
        consume_result: ConsumeResult::ThrowException,
        remark: Some("no".into()),
        ..Default::default()
    };
    let text =
        r#"{"autoCommit":true,"consumeResult":"CR_THROW_EXCEPTION","order":false,"remark":"no","spentTimeMills":0}"#;
    assert_eq!(failed.encode(), text);
}

#[test]
fn answers_of_brokers_and_name_servers_are_read_and_written() {
    let (consumers, _) = round_trip!(ConsumerConnection, CONSUMERS);
    assert_eq!(consumers.connection_set[0].language, LanguageCode::RUST);
    round_trip!(ProducerConnection, PRODUCERS);
    let (cluster, _) = round_trip!(ClusterInfo, CLUSTER);
    assert_eq!(cluster.broker_addr_table["broker-a"].broker_addrs.len(), 2);
    round_trip!(BrokerMemberGroup, MEMBERS);
    round_trip!(GetBrokerMemberGroupResponseBody, &format!("{{\"brokerMemberGroup\":{MEMBERS}}}"));
    round_trip!(KVTable, r#"{"table":{"brokerVersionDesc":"V5_3_3"}}"#);
    round_trip!(TopicList, r#"{"topicList":["TopicTest"]}"#);
    round_trip!(TopicList, r#"{"brokerAddr":"a:1","topicList":["TopicTest"]}"#);
    round_trip!(GroupList, r#"{"groupList":["CG"]}"#);
    let (offsets, _) = round_trip!(ConsumerOffsetTable, OFFSETS);
    assert_eq!(offsets.offset_table["TopicTest@CG"], BTreeMap::from([(0, 5), (1, 6)]));
    round_trip!(DataVersion, DATA_VERSION);
    round_trip!(CheckClientRequestBody, CHECK_CLIENT);
    round_trip!(QueryConsumeTimeSpanBody, TIME_SPAN);
    round_trip!(BrokerStatsData, BROKER_STATS);
    let ids = r#"{"consumerIdList":["a@1","b@2"]}"#;
    assert_eq!(round_trip!(GetConsumerListByGroupResponseBody, ids).1, ids);
}

#[test]
fn settings_have_the_defaults_of_brokers() {
    let (topic, written) = round_trip!(TopicConfig, TOPIC_CONFIG);
    assert_eq!(written, TOPIC_CONFIG);
    assert_eq!(
        TopicConfig { topic_name: "TopicTest".into(), read_queue_nums: 4, write_queue_nums: 4, ..Default::default() },
        topic
    );
    let (group, written) = round_trip!(SubscriptionGroupConfig, GROUP_CONFIG);
    assert_eq!(written, GROUP_CONFIG);
    assert_eq!(SubscriptionGroupConfig { group_name: "CG".into(), ..Default::default() }, group);
    round_trip!(
        TopicConfigSerializeWrapper,
        &format!("{{\"dataVersion\":{DATA_VERSION},\"topicConfigTable\":{{\"TopicTest\":{TOPIC_CONFIG}}}}}")
    );
    round_trip!(
        SubscriptionGroupWrapper,
        &format!("{{\"dataVersion\":{DATA_VERSION},\"subscriptionGroupTable\":{{\"CG\":{GROUP_CONFIG}}}}}")
    );
}

#[test]
fn absent_and_null_members_have_their_defaults_and_new_constants_are_unknown() {
    let beat = HeartbeatData::decode(
        br#"{"clientID":null,"consumerDataSet":[{"consumeType":"PUSH","messageModel":null,"subscriptionDataSet":[{"topic":"T","codeSet":null,"subString":null}]}],"producerDataSet":null,"heartbeatFingerprint":null,"x":[[{}]]}"#,
    )
    .unwrap();
    let consumer = &beat.consumer_data_set[0];
    assert_eq!((consumer.consume_type, consumer.message_model), (ConsumeType::Unknown, MessageModel::Unknown));
    let all = SubscriptionData { topic: "T".into(), ..Default::default() };
    assert_eq!(consumer.subscription_data_set, [all]);
    assert!(beat.client_id.is_empty() && beat.producer_data_set.is_empty());
}

#[test]
fn references_stand_for_what_was_written_before() {
    let text = br#"{"mqPopTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"waitAckCount":3}},
        "mqTable":{{"$ref":"$.mqPopTable.null"}:{"commitOffset":10}},"subscriptionSet":[{"topic":"S"},{"$ref":"$.subscriptionSet[0]"},{"$ref":"$.nope"}]}"#;
    let info = ConsumerRunningInfo::decode(text).unwrap();
    assert_eq!(info.mq_table.keys().collect::<Vec<_>>(), [&MessageQueue::new("T", "b", 0)]);
    let topics: Vec<&str> = info.subscription_set.iter().map(|s| &*s.topic).collect();
    assert_eq!(topics, ["S", "S"]);
}

#[test]
fn damage_is_an_error_with_an_excerpt_and_depth_has_an_end() {
    let error = TopicRouteData::decode(b"<html>no route</html>").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(
        error.to_string().contains("TopicRouteData of 21 bytes") && error.to_string().contains("<html>no"),
        "{error}"
    );
    let members = ["{\"a\":", "[", "{0:", "{{\"x\":1}:", "{\"brokerDatas\":[", "{\"$ref\":"];
    for (text, closing) in members.iter().map(|open| (open.repeat(20_000), open.len())) {
        let closed = format!("{text}1{}", "}".repeat(closing * 20_000));
        for text in [text, closed] {
            assert!(TopicRouteData::decode(text.as_bytes()).is_err());
            assert!(ResetOffsetBody::decode(text.as_bytes()).is_err());
        }
    }
    for text in ["", "null", "[]", "\"\"", "\u{FEFF}{}", "{}{}", "{\"queueDatas\":{}}", "{\"queueDatas\":[5]}"] {
        assert!(TopicRouteData::decode(text.as_bytes()).is_err(), "{text}");
    }
    assert!(TopicRouteData::decode(b"{\"orderTopicConf\":\"\xff\"}").is_err());
}

#[test]
fn every_changed_byte_of_a_body_is_survived() {
    fn each_change(sample: &str, read: impl Fn(&[u8])) {
        for at in 0..sample.len() {
            for byte in [0, b'"', b'}', b'0'] {
                let mut changed = sample.as_bytes().to_vec();
                changed[at] = byte;
                read(&changed);
            }
        }
    }
    each_change(LEGACY_ROUTE, |changed| {
        if let Ok(body) = TopicRouteData::decode(changed) {
            assert_eq!(TopicRouteData::decode(&body.encode()).unwrap(), body);
        }
    });
    each_change(RUNNING_INFO, |changed| {
        if let Ok(body) = ConsumerRunningInfo::decode(changed) {
            assert_eq!(ConsumerRunningInfo::decode(&body.encode()).unwrap(), body);
        }
    });
}

#[test]
fn sets_of_names_lose_repetitions() {
    let list = TopicList::decode(br#"{"topicList":["b","a","b"]}"#).unwrap();
    assert_eq!(list.topic_list, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
}
