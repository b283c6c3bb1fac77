use crate::support::{PATIENCE, Peer, body, expect_code, heartbeat, peer, pull_header, pulled};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::protocol::header::PullMessageRequestHeader;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode, SubscriptionData};

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 1).start().unwrap()
}

fn condition(text: &str, sub_version: i64) -> SubscriptionData {
    SubscriptionData {
        expression_type: SubscriptionData::SQL92.into(),
        sub_string: text.into(),
        sub_version,
        topic: "T".into(),
        ..SubscriptionData::default()
    }
}

fn subscribe(client: &Peer, text: &str, sub_version: i64) {
    let mut beat = heartbeat("c1", "G", &[]);
    beat.consumer_data_set[0].subscription_data_set = vec![condition(text, sub_version)];
    client.beat(&beat);
}

/// A pull that goes by the heartbeat.
fn by_heartbeat(queue_offset: i64, sub_version: i64) -> PullMessageRequestHeader<'static> {
    PullMessageRequestHeader { sys_flag: 0, queue_offset, sub_version, ..pull_header("G", "T") }
}

fn check(client: &Peer, kind: &str, text: &str) -> RemotingCommand {
    let subscription = format!(r#"{{"topic":"T","subString":"{text}","expressionType":"{kind}"}}"#);
    let body = format!(r#"{{"clientId":"c","group":"G","subscriptionData":{subscription}}}"#);
    client.call_with_body(RequestCode::CHECK_CLIENT_CONFIG, body)
}

#[test]
fn only_messages_that_meet_the_condition_come() {
    let cluster = cluster();
    let client = peer(&cluster);
    subscribe(&client, "price between 10 and 20 and kind in ('a','b')", 1);
    for (text, price, kind) in
        [("cheap", "5", "a"), ("right", "15", "b"), ("other kind", "15", "c"), ("dear", "50", "a")]
    {
        client.send("T", 0, text, &[("price", price), ("kind", kind)]);
    }
    client.send("T", 0, "no number", &[("price", "x"), ("kind", "a")]);
    client.send("T", 0, "without", &[]);
    let answer = client.pull_as(&by_heartbeat(0, 1));
    expect_code(&answer, ResponseCode::SUCCESS);
    let (header, messages) = pulled(&answer);
    assert_eq!(messages.iter().map(body).collect::<Vec<_>>(), ["right"]);
    assert_eq!(header.next_begin_offset, 6);
    let (header, _) = pulled(&{
        let answer = client.pull_as(&by_heartbeat(2, 1));
        expect_code(&answer, ResponseCode::PULL_RETRY_IMMEDIATELY);
        answer
    });
    assert_eq!(header.next_begin_offset, 6);
}

#[test]
fn a_held_pull_is_woken_by_the_first_message_that_meets_the_condition() {
    let cluster = cluster();
    let client = peer(&cluster);
    subscribe(&client, "a > 5", 1);
    let header = PullMessageRequestHeader { sys_flag: 2, ..by_heartbeat(0, 1) };
    let held = client.start(RemotingCommand::request(RequestCode::PULL_MESSAGE, &header));
    client.max_offset("T", 0);
    client.send("T", 0, "no", &[("a", "5")]);
    client.max_offset("T", 0);
    assert!(held.is_empty());
    client.send("T", 0, "yes", &[("a", "6")]);
    let (header, messages) = pulled(&held.recv_timeout(PATIENCE).unwrap());
    assert_eq!((header.next_begin_offset, messages.len(), body(&messages[0]).as_str()), (2, 1, "yes"));
}

#[test]
fn a_condition_that_is_wrong_or_not_there_yet_is_told_apart() {
    let cluster = cluster();
    let client = peer(&cluster);
    client.send("T", 0, "x", &[("a", "7")]);
    subscribe(&client, "a >", 1);
    expect_code(&client.pull_as(&by_heartbeat(0, 1)), ResponseCode::FILTER_DATA_NOT_EXIST);
    subscribe(&client, "a > 5", 2);
    expect_code(&client.pull_as(&by_heartbeat(0, 2)), ResponseCode::SUCCESS);
    // The subscription is as new as the pull, but its condition did not compile.
    subscribe(&client, "a >", 3);
    expect_code(&client.pull_as(&by_heartbeat(0, 3)), ResponseCode::FILTER_DATA_NOT_LATEST);
    subscribe(&client, "a > 8", 4);
    expect_code(&client.pull_as(&by_heartbeat(0, 3)), ResponseCode::PULL_RETRY_IMMEDIATELY);
}

#[test]
fn a_condition_may_come_with_the_pull() {
    let cluster = cluster();
    let client = peer(&cluster);
    client.send("T", 0, "x", &[("a", "7")]);
    let with = |text| PullMessageRequestHeader {
        subscription: Some(text),
        expression_type: Some("SQL92"),
        ..pull_header("G", "T")
    };
    expect_code(&client.pull_as(&with("a > 5")), ResponseCode::SUCCESS);
    expect_code(&client.pull_as(&with("a > 9")), ResponseCode::PULL_RETRY_IMMEDIATELY);
    expect_code(&client.pull_as(&with("")), ResponseCode::SUBSCRIPTION_PARSE_FAILED);
    // What does not compile is no filter, as on a real broker.
    expect_code(&client.pull_as(&with("a >")), ResponseCode::SUCCESS);
}

#[test]
fn the_check_of_a_configuration_compiles_the_condition() {
    let cluster = cluster();
    let client = peer(&cluster);
    for (kind, text, code) in [
        ("TAG", "*", ResponseCode::SUCCESS),
        ("", "a >", ResponseCode::SUCCESS),
        ("SQL92", "a > 5", ResponseCode::SUCCESS),
        ("SQL92", "a >", ResponseCode::SUBSCRIPTION_PARSE_FAILED),
        ("SQL92", "", ResponseCode::SUBSCRIPTION_PARSE_FAILED),
        ("other", "a > 5", ResponseCode::SUBSCRIPTION_PARSE_FAILED),
    ] {
        expect_code(&check(&client, kind, text), code);
    }
    expect_code(&client.call_with_body(RequestCode::CHECK_CLIENT_CONFIG, ""), ResponseCode::SUCCESS);
    expect_code(&client.call_with_body(RequestCode::CHECK_CLIENT_CONFIG, "{}"), ResponseCode::SUCCESS);
}

#[test]
fn a_broker_with_its_property_filter_off_refuses_conditions() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).property_filter(false).start().unwrap();
    let client = peer(&cluster);
    subscribe(&client, "a > 5", 1);
    expect_code(&client.pull_as(&by_heartbeat(0, 1)), ResponseCode::SYSTEM_ERROR);
    expect_code(&check(&client, "SQL92", "a > 5"), ResponseCode::SYSTEM_ERROR);
    expect_code(&check(&client, "TAG", "*"), ResponseCode::SUCCESS);
}

#[test]
fn a_costly_condition_ends_a_read_early_and_the_next_one_goes_on() {
    let cluster = cluster();
    let client = peer(&cluster);
    let costly = format!("a = '1'{}", " or a = '1'".repeat(700));
    let long = "x".repeat(10_000);
    for _ in 0..40 {
        client.send("T", 0, "no", &[("a", "2"), ("b", &long)]);
    }
    client.send("T", 0, "yes", &[("a", "1")]);
    subscribe(&client, &costly, 1);
    let (mut offset, mut pulls) = (0, 0);
    let found = loop {
        let answer = client.pull_as(&by_heartbeat(offset, 1));
        let (header, messages) = pulled(&answer);
        (offset, pulls) = (header.next_begin_offset, pulls + 1);
        if let Some(message) = messages.first() {
            break body(message);
        }
        assert_eq!(answer.response_code(), ResponseCode::PULL_RETRY_IMMEDIATELY);
        assert!(pulls < 100, "each pull moves on");
    };
    assert_eq!((found.as_str(), offset), ("yes", 41));
    assert!(pulls > 1);
}
