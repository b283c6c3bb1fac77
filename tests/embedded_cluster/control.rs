use crate::support::{PATIENCE, Peer, address, eventually, expect_code, peer, pull_header, pulled};
use rocketmq_sync::message::id::parse_offset_message_id;
use rocketmq_sync::protocol::header::{
    GetRouteInfoRequestHeader, PullMessageRequestHeader, QueryConsumerOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader, ViewMessageRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::time::Clock;
use rocketmq_sync::{EmbeddedCluster, ErrorKind};
use std::time::{Duration, Instant};

fn route_code(cluster: &EmbeddedCluster, topic: &str) -> ResponseCode {
    let header = GetRouteInfoRequestHeader { topic, accept_standard_json_only: Some(true) };
    Peer::new(cluster.name_servers()).call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &header).response_code()
}

#[test]
fn a_broker_that_restarts_keeps_messages_topics_and_offsets_and_loses_its_clients() {
    let cluster = EmbeddedCluster::builder().brokers(2).topic("T", 1).start().unwrap();
    let address_before = address(&cluster);
    let broker = peer(&cluster);
    let (msg_id, _) = broker.send("T", 0, "kept", &[]);
    broker.heartbeat("c1", "G", &["T"]);
    let commit = UpdateConsumerOffsetRequestHeader {
        consumer_group: "G",
        topic: "T",
        queue_id: 0,
        commit_offset: 1,
        bname: None,
    };
    broker.call(RequestCode::UPDATE_CONSUMER_OFFSET, &commit);
    let held = PullMessageRequestHeader { sys_flag: 6, queue_offset: 1, ..pull_header("G", "T") };
    let held = broker.start(RemotingCommand::request(RequestCode::PULL_MESSAGE, &held));
    broker.max_offset("T", 0);

    cluster.stop_broker("broker-a").unwrap();
    assert!(held.recv_timeout(PATIENCE).is_err(), "the held pull failed with its connection");
    let failed = broker.client.invoke(
        &broker.address,
        RemotingCommand::request_without_header(RequestCode::HEART_BEAT),
        Duration::from_millis(300),
    );
    assert!(failed.is_err());
    assert_eq!(route_code(&cluster, "T"), ResponseCode::SUCCESS, "the other broker has it");
    cluster.restart_broker("broker-a").unwrap();
    assert_eq!(address(&cluster), address_before);

    let broker = peer(&cluster);
    expect_code(&broker.members("G"), ResponseCode::SYSTEM_ERROR);
    assert_eq!(broker.bodies("T", 0), ["kept"]);
    let query = QueryConsumerOffsetRequestHeader {
        consumer_group: "G",
        topic: "T",
        queue_id: 0,
        set_zero_if_not_found: None,
        bname: None,
    };
    assert_eq!(broker.call(RequestCode::QUERY_CONSUMER_OFFSET, &query).ext_fields.get("offset"), Some("1"));
    let (_, offset) = parse_offset_message_id(&msg_id).unwrap();
    let view = ViewMessageRequestHeader { offset, topic: None };
    expect_code(&broker.call(RequestCode::VIEW_MESSAGE_BY_ID, &view), ResponseCode::SUCCESS);
    assert!(cluster.stop_broker("broker-x").is_err());
}

#[test]
fn delayed_messages_wait_for_a_broker_that_is_away() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).clock(Clock::manual()).start().unwrap();
    peer(&cluster).send("T", 0, "late", &[("DELAY", "1")]);
    cluster.stop_broker("broker-a").unwrap();
    assert_eq!(route_code(&cluster, "T"), ResponseCode::TOPIC_NOT_EXIST);
    cluster.advance_clock(Duration::from_secs(60));
    cluster.restart_broker("broker-a").unwrap();
    let broker = peer(&cluster);
    eventually("it is delivered after the start", || broker.bodies("T", 0) == ["late"]);
}

#[test]
fn a_name_server_that_is_away_does_not_disturb_the_brokers_and_knows_all_when_it_is_back() {
    let cluster = EmbeddedCluster::builder().brokers(2).topic("T", 1).start().unwrap();
    let before = cluster.name_servers();
    cluster.stop_name_server();
    let broker = peer(&cluster);
    broker.send("made-meanwhile", 0, "x", &[]);
    cluster.stop_broker("broker-b").unwrap();
    cluster.restart_name_server().unwrap();
    assert_eq!(cluster.name_servers(), before);
    assert_eq!(route_code(&cluster, "made-meanwhile"), ResponseCode::SUCCESS);
    assert_eq!(route_code(&cluster, "nowhere"), ResponseCode::TOPIC_NOT_EXIST);
}

#[test]
fn several_clusters_live_side_by_side() {
    let clusters: Vec<_> = (0..3).map(|_| EmbeddedCluster::builder().brokers(2).start().unwrap()).collect();
    let addresses: std::collections::BTreeSet<_> = clusters.iter().map(EmbeddedCluster::name_servers).collect();
    assert_eq!(addresses.len(), 3);
    peer(&clusters[0]).send("T", 0, "x", &[]);
    peer(&clusters[1]).max_offset("T", 0);
    assert_eq!(peer(&clusters[1]).max_offset("T", 0), 0);
}

#[test]
fn starts_within_milliseconds() {
    let started = Instant::now();
    let cluster = EmbeddedCluster::start().unwrap();
    println!("started in {:?}", started.elapsed());
    let started = Instant::now();
    cluster.stop();
    println!("stopped in {:?}", started.elapsed());
}

#[test]
fn settings_that_are_wrong_are_named() {
    let builder = EmbeddedCluster::builder;
    let cases = [
        (builder().brokers(0), "brokers: 0"),
        (builder().brokers(65), "brokers: 65"),
        (builder().broker_names(["a", "a"]), "'a' occurs twice"),
        (builder().broker_names(["a b"]), "'a b'"),
        (builder().cluster_name(""), "cluster_name"),
        (builder().delay_levels("1x"), "'1x'"),
        (builder().topic("a b", 1), "'a b'"),
        (builder().topic("T", 65_537), "65537"),
        (builder().max_bytes(0), "max_bytes 0"),
        (builder().bind("0.0.0.0".parse().unwrap()), "advertise"),
    ];
    for (builder, part) in cases {
        let error = builder.start().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(part), "{error}");
    }
    let cluster = EmbeddedCluster::start().unwrap();
    assert!(cluster.create_topic("a b", 1).is_err());
    let taken = cluster.broker_address("broker-a").unwrap().port();
    let error = builder().name_server_port(taken).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn a_broker_on_all_addresses_tells_the_one_to_use() {
    let builder = EmbeddedCluster::builder().bind("0.0.0.0".parse().unwrap());
    let cluster = builder.advertise("127.0.0.1".parse().unwrap()).topic("T", 1).start().unwrap();
    assert!(cluster.name_servers().starts_with("127.0.0.1:"));
    let broker = peer(&cluster);
    let (id, _) = broker.send("T", 0, "x", &[]);
    assert_eq!(Some(parse_offset_message_id(&id).unwrap().0), cluster.broker_address("broker-a"));
    let answer = broker.pull_as(&pull_header("G", "T"));
    assert_eq!(pulled(&answer).1.len(), 1);
}
