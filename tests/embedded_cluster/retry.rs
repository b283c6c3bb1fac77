use crate::support::{Peer, body, expect_code, peer, property_map, property_string, pull_header, pulled, send_header};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::MessageExt;
use rocketmq_sync::message::id::parse_offset_message_id;
use rocketmq_sync::protocol::body::SubscriptionGroupConfig;
use rocketmq_sync::protocol::header::{
    ConsumerSendMsgBackRequestHeader, PullMessageRequestHeader, SendMessageRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::time::Clock;
use std::time::Duration;

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 4).clock(Clock::manual()).start().unwrap()
}

fn send_back(broker: &Peer, offset: i64, delay_level: i32, most: Option<i32>) -> RemotingCommand {
    let header = ConsumerSendMsgBackRequestHeader {
        offset,
        group: "G",
        delay_level,
        origin_msg_id: None,
        origin_topic: None,
        unit_mode: false,
        max_reconsume_times: most,
        bname: None,
    };
    broker.call(RequestCode::CONSUMER_SEND_MSG_BACK, &header)
}

fn last(broker: &Peer, topic: &str) -> MessageExt {
    let offset = broker.max_offset(topic, 0) - 1;
    broker.pull(topic, 0, offset).pop().expect("a message")
}

#[test]
fn delayed_messages_come_at_their_time_in_their_order() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let (msg_id, offset) = broker.send("T", 2, "level 2", &[("DELAY", "2"), ("TAGS", "X")]);
    assert_eq!(offset, 0);
    broker.send("T", 2, "level 1", &[("DELAY", "1")]);
    broker.send("T", 2, "level 1 too", &[("DELAY", "1")]);
    broker.send("T", 2, "at once", &[("DELAY", "0")]);
    assert_eq!(broker.bodies("T", 2), ["at once"]);
    cluster.advance_clock(Duration::from_millis(999));
    assert_eq!(broker.bodies("T", 2).len(), 1);
    cluster.advance_clock(Duration::from_millis(1));
    assert_eq!(broker.bodies("T", 2), ["at once", "level 1", "level 1 too"]);
    cluster.advance_clock(Duration::from_secs(4));
    let message = &broker.pull("T", 2, 3)[0];
    assert_eq!((body(message), message.tags()), ("level 2".into(), Some("X")));
    let properties = property_map(message);
    assert_eq!((properties["DELAY"], properties["REAL_TOPIC"], properties["REAL_QID"]), ("2", "T", "2"));
    assert_ne!(message.offset_msg_id(), msg_id);
    // The tag counts again for filters.
    let header = PullMessageRequestHeader { queue_id: 2, subscription: Some("X"), ..pull_header("G", "T") };
    assert_eq!(pulled(&broker.pull_as(&header)).1.len(), 1);
}

#[test]
fn a_level_beyond_the_last_is_the_last() {
    let builder = EmbeddedCluster::builder().topic("T", 1).clock(Clock::manual()).delay_levels("1s 3s");
    let cluster = builder.start().unwrap();
    let broker = peer(&cluster);
    broker.send("T", 0, "x", &[("DELAY", "99")]);
    cluster.advance_clock(Duration::from_secs(3));
    assert_eq!(last(&broker, "T").property("DELAY"), Some("2"));
}

#[test]
fn delays_run_by_the_systems_clock_too_and_wake_who_waits() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).delay_levels("30ms").start().unwrap();
    let broker = peer(&cluster);
    broker.send("T", 0, "x", &[("DELAY", "1")]);
    let header = PullMessageRequestHeader { sys_flag: 6, ..pull_header("G", "T") };
    assert_eq!(pulled(&broker.pull_as(&header)).1.len(), 1);
}

#[test]
fn a_message_sent_back_comes_again_under_the_retry_topic_with_longer_delays() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let (first_id, _) = broker.send("T", 1, "hello", &[("KEYS", "k"), ("TAGS", "A"), ("UNIQ_KEY", "U")]);
    let mut position = parse_offset_message_id(&first_id).unwrap().1;
    for (times, delay) in [(1, 10), (2, 30), (3, 60)] {
        expect_code(&send_back(&broker, position, 0, None), ResponseCode::SUCCESS);
        cluster.advance_clock(Duration::from_millis(delay * 1000 - 1));
        assert_eq!(broker.max_offset("%RETRY%G", 0), times - 1);
        cluster.advance_clock(Duration::from_millis(1));
        let message = last(&broker, "%RETRY%G");
        assert_eq!((i64::from(message.reconsume_times()), body(&message)), (times, "hello".into()));
        let level = (2 + times).to_string();
        let mut properties = property_map(&message);
        for added in ["MSG_REGION", "TRACE_ON", "CLUSTER"] {
            properties.remove(added);
        }
        let expected = [
            ("DELAY", &*level),
            ("KEYS", "k"),
            ("ORIGIN_MESSAGE_ID", &*first_id),
            ("REAL_QID", "0"),
            ("REAL_TOPIC", "%RETRY%G"),
            ("RETRY_TOPIC", "T"),
            ("TAGS", "A"),
            ("UNIQ_KEY", "U"),
            ("WAIT", "false"),
        ];
        assert_eq!(properties.into_iter().collect::<Vec<_>>(), expected);
        position = message.commit_log_offset();
    }
}

#[test]
fn what_was_retried_often_enough_or_shall_not_be_is_a_dead_letter() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let (id, _) = broker.send("T", 1, "hello", &[]);
    let position = parse_offset_message_id(&id).unwrap().1;
    expect_code(&send_back(&broker, position, -1, None), ResponseCode::SUCCESS);
    let dead = last(&broker, "%DLQ%G");
    assert_eq!((dead.reconsume_times(), dead.property("DELAY"), dead.property("REAL_TOPIC")), (1, Some("0"), None));
    assert_eq!((dead.property("RETRY_TOPIC"), dead.property("ORIGIN_MESSAGE_ID")), (Some("T"), Some(&*id)));

    expect_code(&send_back(&broker, position, 1, Some(1)), ResponseCode::SUCCESS);
    cluster.advance_clock(Duration::from_secs(1));
    let retried = last(&broker, "%RETRY%G");
    expect_code(&send_back(&broker, retried.commit_log_offset(), 1, Some(1)), ResponseCode::SUCCESS);
    let dead = last(&broker, "%DLQ%G");
    assert_eq!((dead.queue_offset(), dead.reconsume_times()), (1, 2));
    // Stale, as upstream leaves it: what the delay wrote.
    assert_eq!(dead.property("REAL_TOPIC"), Some("%RETRY%G"));

    // An old client's limit is not looked at.
    let mut old = ConsumerSendMsgBackRequestHeader {
        offset: position,
        group: "G",
        delay_level: 1,
        origin_msg_id: None,
        origin_topic: None,
        unit_mode: false,
        max_reconsume_times: Some(0),
        bname: None,
    };
    let mut request = RemotingCommand::request(RequestCode::CONSUMER_SEND_MSG_BACK, &old);
    request.version = 120;
    expect_code(&broker.invoke(request), ResponseCode::SUCCESS);
    assert_eq!(broker.max_offset("%DLQ%G", 0), 2);
    old.delay_level = 0;
    let request = RemotingCommand::request(RequestCode::CONSUMER_SEND_MSG_BACK, &old);
    expect_code(&broker.invoke(request), ResponseCode::SUCCESS);
    assert_eq!(broker.max_offset("%DLQ%G", 0), 3);
}

#[test]
fn sending_back_fails_for_what_is_not_there() {
    let cluster = cluster();
    let broker = peer(&cluster);
    expect_code(&send_back(&broker, 12_345, 0, None), ResponseCode::SYSTEM_ERROR);
    let (id, _) = broker.send("T", 1, "hello", &[]);
    let position = parse_offset_message_id(&id).unwrap().1;
    expect_code(&send_back(&broker, position + 1, 0, None), ResponseCode::SYSTEM_ERROR);
    let none =
        SubscriptionGroupConfig { group_name: "G".into(), retry_queue_nums: 0, ..SubscriptionGroupConfig::default() };
    broker.call_with_body(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, none.encode());
    expect_code(&send_back(&broker, position, -1, None), ResponseCode::SUCCESS);
    assert_eq!(broker.max_offset("%DLQ%G", 0), 0);
}

#[test]
fn a_retry_that_the_client_sends_goes_to_the_dead_letters_beyond_its_limit() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let text = property_string(&[("RETRY_TOPIC", "T")]);
    let retry = |times, most| {
        let header = SendMessageRequestHeader {
            properties: Some(&text),
            reconsume_times: Some(times),
            max_reconsume_times: most,
            ..send_header("%RETRY%G")
        };
        expect_code(&broker.send_as(header, "x"), ResponseCode::SUCCESS);
        (broker.max_offset("%RETRY%G", 0), broker.max_offset("%DLQ%G", 0))
    };
    assert_eq!(retry(16, None), (1, 0));
    assert_eq!(retry(17, None), (1, 1));
    assert_eq!(retry(1, Some(1)), (2, 1));
    assert_eq!(retry(2, Some(1)), (2, 2));
    assert_eq!(last(&broker, "%DLQ%G").property("DELAY"), Some("-1"));
}

#[test]
fn a_full_broker_still_delivers_what_waits() {
    let builder = EmbeddedCluster::builder().topic("T", 1).clock(Clock::manual()).max_messages(3);
    let cluster = builder.start().unwrap();
    let broker = peer(&cluster);
    for number in 0..3 {
        broker.send("T", 0, &number.to_string(), &[("DELAY", "1")]);
    }
    expect_code(&broker.send_as(send_header("T"), "more"), ResponseCode::SERVICE_NOT_AVAILABLE);
    cluster.advance_clock(Duration::from_secs(1));
    assert_eq!(broker.bodies("T", 0), ["0", "1", "2"]);
    expect_code(&broker.send_as(send_header("T"), "more"), ResponseCode::SERVICE_NOT_AVAILABLE);
}
