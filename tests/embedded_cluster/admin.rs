use crate::support::{Peer, expect_code, peer};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::MessageQueue;
use rocketmq_sync::message::id::parse_offset_message_id;
use rocketmq_sync::protocol::body::{ConsumeStats, GroupList, KVTable, TopicConfig, TopicStatsTable};
use rocketmq_sync::protocol::header::{
    CreateTopicRequestHeader, DeleteTopicRequestHeader, GetConsumeStatsRequestHeader, GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader, QueryMessageRequestHeader, QueryTopicConsumeByWhoRequestHeader,
    UpdateConsumerOffsetRequestHeader, ViewMessageRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};

fn create(broker: &Peer, topic: &str, read: i32, write: i32) -> RemotingCommand {
    let header = CreateTopicRequestHeader {
        topic,
        default_topic: "TBW102",
        read_queue_nums: read,
        write_queue_nums: write,
        perm: 6,
        topic_filter_type: "SINGLE_TAG",
        topic_sys_flag: Some(0),
        order: false,
        attributes: Some("+message.type=FIFO"),
        force: None,
    };
    broker.call(RequestCode::UPDATE_AND_CREATE_TOPIC, &header)
}

#[test]
fn topics_are_made_changed_described_and_deleted() {
    let cluster = EmbeddedCluster::start().unwrap();
    let broker = peer(&cluster);
    expect_code(&create(&broker, "a b", 1, 1), ResponseCode::INVALID_PARAMETER);
    for system in ["TBW102", "DefaultCluster", "broker-a", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x"] {
        expect_code(&create(&broker, system, 1, 1), ResponseCode::INVALID_PARAMETER);
    }
    expect_code(&create(&broker, "T", 3, 2), ResponseCode::SUCCESS);
    let config = |topic| broker.call(RequestCode::GET_TOPIC_CONFIG, &GetTopicConfigRequestHeader { topic });
    let described = TopicConfig::decode(&config("T").body).unwrap();
    assert_eq!((described.read_queue_nums, described.write_queue_nums), (3, 2));
    assert_eq!(described.attributes["message.type"], "FIFO");
    // A message may go to a queue that only readers know, but not beyond.
    broker.send("T", 2, "x", &[]);
    expect_code(&create(&broker, "T", 1, 1), ResponseCode::SUCCESS);
    assert_eq!(broker.max_offset("T", 2), 1);
    let delete = |topic| broker.call(RequestCode::DELETE_TOPIC_IN_BROKER, &DeleteTopicRequestHeader { topic });
    expect_code(&delete("TBW102"), ResponseCode::INVALID_PARAMETER);
    expect_code(&delete("T"), ResponseCode::SUCCESS);
    expect_code(&delete("T"), ResponseCode::SUCCESS);
    assert_eq!(broker.max_offset("T", 2), 0);
    expect_code(&config("T"), ResponseCode::TOPIC_NOT_EXIST);
}

#[test]
fn messages_are_found_by_place_by_key_and_by_unique_key() {
    let cluster = EmbeddedCluster::builder().topic("T", 2).start().unwrap();
    let broker = peer(&cluster);
    let (id, _) = broker.send("T", 0, "first", &[("KEYS", "k1 k2"), ("UNIQ_KEY", "U1")]);
    broker.send("T", 1, "second", &[("KEYS", "k2"), ("UNIQ_KEY", "U2")]);
    let view = |offset| broker.call(RequestCode::VIEW_MESSAGE_BY_ID, &ViewMessageRequestHeader { offset, topic: None });
    let (_, position) = parse_offset_message_id(&id).unwrap();
    let found = view(position);
    expect_code(&found, ResponseCode::SUCCESS);
    assert_eq!(&broker.pull("T", 0, 0)[0].offset_msg_id(), &id);
    expect_code(&view(position + 1), ResponseCode::SYSTEM_ERROR);

    let query = |key: &str, max_num, end_timestamp| {
        let header = QueryMessageRequestHeader {
            topic: "T",
            key,
            max_num,
            begin_timestamp: 0,
            end_timestamp,
            unique_key_query: None,
        };
        broker.call(RequestCode::QUERY_MESSAGE, &header)
    };
    let bodies = |answer: &RemotingCommand| {
        expect_code(answer, ResponseCode::SUCCESS);
        let decoded = rocketmq_sync::message::store_codec::decode_all(
            &answer.body,
            None,
            0,
            &rocketmq_sync::message::store_codec::DecodeOptions::default(),
        );
        decoded.messages.iter().map(crate::support::body).collect::<Vec<_>>()
    };
    assert_eq!(bodies(&query("k2", 32, i64::MAX)), ["first", "second"]);
    assert_eq!(bodies(&query("k2", 1, i64::MAX)), ["second"]);
    assert_eq!(bodies(&query("k1", 32, i64::MAX)), ["first"]);
    assert_eq!(bodies(&query("U2", 32, i64::MAX)), ["second"]);
    for (key, max_num, end) in [("k", 32, i64::MAX), ("k1", 0, i64::MAX), ("k1", 32, 1)] {
        expect_code(&query(key, max_num, end), ResponseCode::QUERY_NOT_FOUND);
    }
}

#[test]
fn tables_tell_how_far_topics_and_groups_are() {
    let cluster = EmbeddedCluster::builder().topic("T", 2).start().unwrap();
    let broker = peer(&cluster);
    broker.send("T", 0, "a", &[]);
    broker.send("T", 0, "b", &[]);
    broker.heartbeat("c1", "G", &["T"]);
    let header = UpdateConsumerOffsetRequestHeader {
        consumer_group: "G",
        topic: "T",
        queue_id: 0,
        commit_offset: 1,
        bname: None,
    };
    broker.call(RequestCode::UPDATE_CONSUMER_OFFSET, &header);
    let stats = broker.call(RequestCode::GET_TOPIC_STATS_INFO, &GetTopicStatsInfoRequestHeader { topic: "T" });
    let table = TopicStatsTable::decode(&stats.body).unwrap().offset_table;
    let queue = |id| MessageQueue::new("T", "broker-a", id);
    assert_eq!((table[&queue(0)].max_offset, table[&queue(1)].max_offset), (2, 0));
    assert!(table[&queue(0)].last_update_timestamp > 0);
    for topic in [None, Some("T")] {
        let header = GetConsumeStatsRequestHeader { consumer_group: "G", topic, topic_list: None };
        let stats = broker.call(RequestCode::GET_CONSUME_STATS, &header);
        let table = ConsumeStats::decode(&stats.body).unwrap().offset_table;
        let first = &table[&queue(0)];
        assert_eq!((first.broker_offset, first.consumer_offset, first.pull_offset, table.len()), (2, 1, 1, 2));
    }
    let header = QueryTopicConsumeByWhoRequestHeader { topic: "T" };
    let groups = broker.call(RequestCode::QUERY_TOPIC_CONSUME_BY_WHO, &header);
    assert!(GroupList::decode(&groups.body).unwrap().group_list.contains("G"));
}

#[test]
fn a_broker_tells_what_it_holds() {
    let cluster = EmbeddedCluster::builder().topic("T", 2).start().unwrap();
    let broker = peer(&cluster);
    broker.send("T", 0, "a", &[]);
    broker.send("T", 0, "b", &[("DELAY", "18")]);
    let answer = broker.call_with_body(RequestCode::GET_BROKER_RUNTIME_INFO, "");
    let table = KVTable::decode(&answer.body).unwrap().table;
    assert_eq!((&*table["storedMessages"], &*table["delayedMessages"], &*table["connections"]), ("2", "1", "1"));
}
