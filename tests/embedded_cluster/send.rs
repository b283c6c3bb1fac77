use crate::support::{Peer, expect_code, peer, property_map, property_string, send_header};
use bytes::Bytes;
use rocketmq_sync::message::Message;
use rocketmq_sync::message::batch::encode_batch;
use rocketmq_sync::message::id::parse_offset_message_id;
use rocketmq_sync::protocol::header::{LongNames, SendMessageRequestHeader, SendMessageResponseHeader};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::{EmbeddedCluster, WhenFull};

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 4).start().unwrap()
}

#[test]
fn stores_the_message_with_what_the_broker_adds() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let (msg_id, offset) = broker.send("T", 1, "hello", &[("TAGS", "TagA"), ("KEYS", "k1 k2"), ("POP_CK", "x")]);
    let (address, position) = parse_offset_message_id(&msg_id).unwrap();
    assert_eq!((address, position, offset), (cluster.broker_address("broker-a").unwrap(), 0, 0));
    let messages = broker.pull("T", 1, 0);
    let message = &messages[0];
    let mut properties = property_map(message);
    assert_eq!(properties.remove("UNIQ_KEY").map(str::len), Some(32));
    let expected = [
        ("CLUSTER", "DefaultCluster"),
        ("KEYS", "k1 k2"),
        ("MSG_REGION", "DefaultRegion"),
        ("TAGS", "TagA"),
        ("TRACE_ON", "true"),
    ];
    assert_eq!(properties.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!((message.topic(), message.queue_id(), message.queue_offset()), ("T", 1, 0));
    assert!(message.born_host().ip().is_loopback());
    assert_eq!(message.store_host(), address);
    assert_eq!(message.offset_msg_id(), msg_id);
    assert_eq!((message.reconsume_times(), message.sys_flag()), (0, 0));
}

#[test]
fn positions_and_offsets_go_on_from_message_to_message() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let first = broker.send("T", 0, "one", &[]);
    let second = broker.send("T", 2, "two", &[]);
    let third = broker.send("T", 0, "three", &[]);
    let position = |sent: &(String, i64)| parse_offset_message_id(&sent.0).unwrap().1;
    assert!(position(&first) < position(&second) && position(&second) < position(&third));
    assert_eq!((first.1, second.1, third.1), (0, 0, 1));
    assert_eq!(broker.bodies("T", 0), ["one", "three"]);
    assert_eq!(broker.max_offset("T", 0), 2);
}

#[test]
fn answers_name_region_trace_and_unique_key() {
    let cluster = cluster();
    let text = property_string(&[("UNIQ_KEY", "MINE")]);
    let header = SendMessageRequestHeader { properties: Some(&text), queue_id: -1, ..send_header("T") };
    let answer = peer(&cluster).send_as(header, "x");
    let header: SendMessageResponseHeader<'_> = answer.header().unwrap();
    assert_eq!(header.transaction_id, Some("MINE"));
    assert_eq!((header.msg_region, header.trace_on), (Some("DefaultRegion"), Some(true)));
    assert!((0..4).contains(&header.queue_id));
    assert!(answer.remark.is_none() && answer.version >= 479);
}

#[test]
fn refuses_what_a_broker_refuses() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let long_name = "a".repeat(128);
    let long_properties = property_string(&[("a", &"x".repeat(33_000))]);
    let cases = [
        (SendMessageRequestHeader { queue_id: 4, ..send_header("T") }, "x", ResponseCode::INVALID_PARAMETER),
        (send_header("a b"), "x", ResponseCode::INVALID_PARAMETER),
        (send_header(""), "x", ResponseCode::INVALID_PARAMETER),
        (send_header(&long_name), "x", ResponseCode::INVALID_PARAMETER),
        (send_header("SCHEDULE_TOPIC_XXXX"), "x", ResponseCode::NO_PERMISSION),
        (SendMessageRequestHeader { default_topic: "NOPE", ..send_header("U") }, "x", ResponseCode::TOPIC_NOT_EXIST),
        (send_header("T"), "", ResponseCode::SYSTEM_ERROR),
        (
            SendMessageRequestHeader { properties: Some(&long_properties), ..send_header("T") },
            "x",
            ResponseCode::MESSAGE_ILLEGAL,
        ),
        (send_header("TBW102"), "x", ResponseCode::SUCCESS),
    ];
    for (header, body, code) in cases {
        let answer = broker.send_as(header, body);
        assert_eq!(answer.response_code(), code, "{header:?}: {:?}", answer.remark);
        assert_eq!(answer.ext_fields.get("MSG_REGION"), Some("DefaultRegion"));
    }
    let too_large = "x".repeat(4 * 1024 * 1024 + 1);
    expect_code(&broker.send_as(send_header("T"), &too_large), ResponseCode::MESSAGE_ILLEGAL);
    let nothing = broker.call_with_body(RequestCode::SEND_MESSAGE_V2, "x");
    expect_code(&nothing, ResponseCode::SYSTEM_ERROR);
    assert_eq!(broker.max_offset("T", 0), 0);
}

#[test]
fn takes_the_long_names_of_old_clients() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let header = LongNames(SendMessageRequestHeader { queue_id: 2, flag: 5, ..send_header("T") });
    let request = RemotingCommand::request(RequestCode::SEND_MESSAGE, &header).with_body(Bytes::from_static(b"v1"));
    expect_code(&broker.invoke(request), ResponseCode::SUCCESS);
    let message = &broker.pull("T", 2, 0)[0];
    assert_eq!((message.flag(), message.body()), (5, &b"v1"[..]));
}

#[test]
fn a_one_way_send_is_stored_without_an_answer() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let request = RemotingCommand::request(RequestCode::SEND_MESSAGE_V2, &send_header("T"));
    broker.client.invoke_oneway(&broker.address, request.with_body(Bytes::from_static(b"quiet"))).unwrap();
    // Requests of one connection are processed in their order.
    assert_eq!(broker.bodies("T", 0), ["quiet"]);
}

fn batch(broker: &Peer, header: SendMessageRequestHeader<'_>, messages: &[Message]) -> RemotingCommand {
    let header = SendMessageRequestHeader { batch: Some(true), ..header };
    let body = encode_batch(messages).unwrap();
    broker.invoke(RemotingCommand::request(RequestCode::SEND_BATCH_MESSAGE, &header).with_body(body))
}

#[test]
fn a_batch_becomes_single_messages_with_their_own_properties() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let messages = [Message::new("T", "one").with_tags("A"), Message::new("T", "two").with_flag(7)];
    let answer = batch(&broker, SendMessageRequestHeader { queue_id: 3, ..send_header("T") }, &messages);
    expect_code(&answer, ResponseCode::SUCCESS);
    let header: SendMessageResponseHeader<'_> = answer.header().unwrap();
    assert_eq!((header.msg_id.split(',').count(), header.queue_offset, header.transaction_id), (2, 0, None));
    let stored = broker.pull("T", 3, 0);
    assert_eq!(stored.iter().map(|m| (m.queue_offset(), m.flag())).collect::<Vec<_>>(), [(0, 0), (1, 7)]);
    assert_eq!(stored[0].tags(), Some("A"));
    assert!(stored[1].property("CLUSTER").is_none() && stored[1].unique_key().is_none());
}

#[test]
fn a_batch_is_refused_for_retry_topics_delays_and_garbage() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let one = [Message::new("T", "one")];
    expect_code(&batch(&broker, send_header("%RETRY%G"), &one), ResponseCode::MESSAGE_ILLEGAL);
    let delay = property_string(&[("DELAY", "3")]);
    let delayed = SendMessageRequestHeader { properties: Some(&delay), ..send_header("T") };
    expect_code(&batch(&broker, delayed, &one), ResponseCode::MESSAGE_ILLEGAL);
    let header = SendMessageRequestHeader { batch: Some(true), ..send_header("T") };
    let garbage =
        RemotingCommand::request(RequestCode::SEND_BATCH_MESSAGE, &header).with_body(Bytes::from_static(b"??"));
    expect_code(&broker.invoke(garbage), ResponseCode::SYSTEM_ERROR);
    assert_eq!(broker.max_offset("T", 0), 0);
}

#[test]
fn a_full_broker_refuses_with_the_code_of_a_full_disk() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).max_messages(2).start().unwrap();
    let broker = peer(&cluster);
    broker.send("T", 0, "1", &[]);
    broker.send("T", 0, "2", &[]);
    expect_code(&broker.send_as(send_header("T"), "3"), ResponseCode::SERVICE_NOT_AVAILABLE);
    assert_eq!(broker.bodies("T", 0), ["1", "2"]);
}

#[test]
fn a_full_broker_drops_the_oldest_when_told_to() {
    let builder = EmbeddedCluster::builder().topic("T", 1).when_full(WhenFull::DropOldest);
    let cluster = builder.max_bytes(1000).start().unwrap();
    let broker = peer(&cluster);
    for number in 0..10 {
        broker.send("T", 0, &number.to_string(), &[]);
    }
    let (min, max) = (broker.min_offset("T", 0), broker.max_offset("T", 0));
    assert!(max == 10 && min > 4, "{min} {max}");
    assert_eq!(broker.pull("T", 0, min).len() as i64, 10 - min);
    let large = "x".repeat(1000);
    expect_code(&broker.send_as(send_header("T"), &large), ResponseCode::SERVICE_NOT_AVAILABLE);
    assert_eq!(broker.min_offset("T", 0), min);
}
