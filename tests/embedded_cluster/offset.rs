use crate::support::{Peer, expect_code, peer, pull_header, pulled};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::MessageQueue;
use rocketmq_sync::protocol::body::ResetOffsetBody;
use rocketmq_sync::protocol::header::{
    GetEarliestMsgStoretimeRequestHeader, PullMessageRequestHeader, QueryConsumerOffsetRequestHeader,
    ResetOffsetRequestHeader, SearchOffsetRequestHeader, UpdateConsumerOffsetRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::time::Clock;
use std::time::Duration;

fn query(broker: &Peer, group: &str, topic: &str, queue_id: i32, zero: Option<bool>) -> RemotingCommand {
    let header = QueryConsumerOffsetRequestHeader {
        consumer_group: group,
        topic,
        queue_id,
        set_zero_if_not_found: zero,
        bname: None,
    };
    broker.call(RequestCode::QUERY_CONSUMER_OFFSET, &header)
}

fn commit(broker: &Peer, group: &str, topic: &str, commit_offset: i64) -> RemotingCommand {
    let header =
        UpdateConsumerOffsetRequestHeader { consumer_group: group, topic, queue_id: 0, commit_offset, bname: None };
    broker.call(RequestCode::UPDATE_CONSUMER_OFFSET, &header)
}

fn offset(answer: &RemotingCommand) -> Option<i64> {
    expect_code(answer, ResponseCode::SUCCESS);
    answer.ext_fields.get("offset").and_then(|text| text.parse().ok())
}

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 2).start().unwrap()
}

#[test]
fn a_new_group_starts_at_zero_only_where_the_first_message_is_still_there() {
    let cluster = cluster();
    let broker = peer(&cluster);
    expect_code(&query(&broker, "G", "T", 0, None), ResponseCode::QUERY_NOT_FOUND);
    expect_code(&query(&broker, "G", "nowhere", 0, None), ResponseCode::QUERY_NOT_FOUND);
    broker.send("T", 0, "a", &[]);
    assert_eq!(offset(&query(&broker, "G", "T", 0, None)), Some(0));
    assert_eq!(offset(&query(&broker, "G", "T", 0, Some(true))), Some(0));
    expect_code(&query(&broker, "G", "T", 0, Some(false)), ResponseCode::QUERY_NOT_FOUND);
}

#[test]
fn commits_need_group_and_topic_and_may_go_back() {
    let cluster = cluster();
    let broker = peer(&cluster);
    expect_code(&commit(&broker, "G", "T", 5), ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST);
    broker.heartbeat("c1", "G", &["T"]);
    expect_code(&commit(&broker, "G", "nowhere", 5), ResponseCode::TOPIC_NOT_EXIST);
    expect_code(&commit(&broker, "G", "T", 5), ResponseCode::SUCCESS);
    expect_code(&commit(&broker, "G", "T", 3), ResponseCode::SUCCESS);
    assert_eq!(offset(&query(&broker, "G", "T", 0, None)), Some(3));
    let mut broken = RemotingCommand::request_without_header(RequestCode::UPDATE_CONSUMER_OFFSET);
    broken.ext_fields.put("consumerGroup", "G");
    broken.ext_fields.put("topic", "T");
    expect_code(&broker.invoke(broken), ResponseCode::INVALID_PARAMETER);
}

#[test]
fn queues_tell_their_ends_and_search_by_time() {
    let clock = Clock::manual();
    let cluster = EmbeddedCluster::builder().topic("T", 2).clock(clock.clone()).start().unwrap();
    let broker = peer(&cluster);
    let earliest = |queue_id| {
        let header = GetEarliestMsgStoretimeRequestHeader { topic: "T", queue_id, bname: None };
        let answer = broker.call(RequestCode::GET_EARLIEST_MSG_STORETIME, &header);
        answer.ext_fields.get("timestamp").unwrap().parse::<i64>().unwrap()
    };
    let search = |timestamp, boundary_type| {
        let header = SearchOffsetRequestHeader { topic: "T", queue_id: 0, timestamp, boundary_type, bname: None };
        offset(&broker.call(RequestCode::SEARCH_OFFSET_BY_TIMESTAMP, &header)).unwrap()
    };
    assert_eq!((earliest(0), broker.max_offset("T", 0), broker.min_offset("nowhere", 7)), (-1, 0, 0));
    assert_eq!(search(0, None), 0);
    let start = clock.wall_millis();
    for _ in 0..3 {
        broker.send("T", 0, "x", &[]);
        broker.send("T", 0, "x", &[]);
        cluster.advance_clock(Duration::from_secs(10));
    }
    assert_eq!((earliest(0), earliest(1)), (start, -1));
    assert_eq!((search(start + 10_000, None), search(start + 10_000, Some("UPPER"))), (2, 3));
    assert_eq!((search(start + 15_000, Some("LOWER")), search(start + 15_000, Some("upper"))), (4, 3));
    assert_eq!((search(i64::MAX, None), search(i64::MAX, Some("UPPER"))), (6, 5));
}

#[test]
fn a_reset_takes_effect_at_the_next_pull() {
    let cluster = cluster();
    let broker = peer(&cluster);
    for number in 0..4 {
        broker.send("T", 0, &number.to_string(), &[]);
    }
    let reset = |topic: &str, group: &str, queue_id, offset| {
        let header =
            ResetOffsetRequestHeader { topic, group, timestamp: -1, is_force: true, queue_id, offset, bname: None };
        broker.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, &header)
    };
    expect_code(&reset("T", "G", None, None), ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST);
    broker.heartbeat("c1", "G", &["T"]);
    expect_code(&reset("nowhere", "G", None, None), ResponseCode::TOPIC_NOT_EXIST);
    expect_code(&reset("T", "G", Some(0), Some(6)), ResponseCode::SYSTEM_ERROR);

    let answer = reset("T", "G", Some(0), Some(2));
    expect_code(&answer, ResponseCode::SUCCESS);
    let table = ResetOffsetBody::decode(&answer.body).unwrap().offset_table;
    assert_eq!(table.into_iter().collect::<Vec<_>>(), [(MessageQueue::new("T", "broker-a", 0), 2)]);
    assert_eq!(offset(&query(&broker, "G", "T", 0, None)), Some(2));
    expect_code(&commit(&broker, "G", "T", 4), ResponseCode::SUCCESS);
    assert_eq!(offset(&query(&broker, "G", "T", 0, None)), Some(2));
    let header = PullMessageRequestHeader { queue_offset: 4, ..pull_header("G", "T") };
    let answer = broker.pull_as(&header);
    assert_eq!((answer.code, answer.remark.as_deref()), (21, Some("OFFSET_RESET")));
    assert_eq!(pulled(&answer).0.next_begin_offset, 2);
    expect_code(&broker.pull_as(&header), ResponseCode::PULL_NOT_FOUND);
    expect_code(&commit(&broker, "G", "T", 4), ResponseCode::SUCCESS);
    assert_eq!(offset(&query(&broker, "G", "T", 0, None)), Some(4));
    // All queues, to the end.
    let table = ResetOffsetBody::decode(&reset("T", "G", None, None).body).unwrap().offset_table;
    assert_eq!(table.into_values().collect::<Vec<_>>(), [4, 0]);
}
