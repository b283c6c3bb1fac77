use crate::support::{Peer, address, eventually, expect_code, heartbeat, peer};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::protocol::body::{
    ConsumerConnection, GetConsumerListByGroupResponseBody, HeartbeatData, MessageModel, ProducerConnection,
    SubscriptionGroupConfig,
};
use rocketmq_sync::protocol::header::{
    GetConsumerConnectionListRequestHeader, GetProducerConnectionListRequestHeader, UnregisterClientRequestHeader,
};
use rocketmq_sync::protocol::{LanguageCode, RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::time::{Clock, Deadline};
use std::time::Duration;

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 4).topic("U", 4).start().unwrap()
}

fn ids(broker: &Peer, group: &str) -> Vec<String> {
    let answer = broker.members(group);
    if answer.response_code() != ResponseCode::SUCCESS {
        return Vec::new();
    }
    let body = GetConsumerListByGroupResponseBody::decode(&answer.body).unwrap();
    body.consumer_id_list.iter().map(ToString::to_string).collect()
}

fn unregister(client: &Peer, group: &str) {
    let header = UnregisterClientRequestHeader { client_id: "any", producer_group: None, consumer_group: Some(group) };
    expect_code(&client.call(RequestCode::UNREGISTER_CLIENT, &header), ResponseCode::SUCCESS);
}

#[test]
fn a_heartbeat_makes_a_member_and_the_retry_topic() {
    let cluster = cluster();
    let client = peer(&cluster);
    expect_code(&client.members("G"), ResponseCode::SYSTEM_ERROR);
    let answer = client.heartbeat("c1", "G", &["T"]);
    assert_eq!(answer.ext_fields.get("IS_SUPPORT_HEART_BEAT_V2"), Some("true"));
    assert_eq!(answer.ext_fields.get("IS_SUB_CHANGE"), Some("true"));
    client.expect_notice("G");
    assert_eq!(ids(&client, "G"), ["c1"]);
    client.send("%RETRY%G", 0, "retry topic is there", &[]);
    client.heartbeat("c1", "G", &["T"]);
    client.expect_silence();
}

#[test]
fn everybody_is_told_of_newcomers_of_leavers_and_of_closed_connections() {
    let cluster = cluster();
    let (a, b, c) = (peer(&cluster), peer(&cluster), peer(&cluster));
    a.heartbeat("a", "G", &["T"]);
    a.expect_notice("G");
    b.heartbeat("b", "G", &["T"]);
    a.expect_notice("G");
    b.expect_notice("G");
    c.heartbeat("c", "G", &["T"]);
    [&a, &b, &c].into_iter().for_each(|client| client.expect_notice("G"));
    assert_eq!(ids(&a, "G"), ["a", "b", "c"]);
    unregister(&b, "G");
    a.expect_notice("G");
    c.expect_notice("G");
    assert_eq!(ids(&a, "G"), ["a", "c"]);
    c.client.shutdown(Deadline::after(Duration::from_secs(5)));
    a.expect_notice("G");
    assert_eq!(ids(&a, "G"), ["a"]);
    [&a, &b].into_iter().for_each(Peer::expect_silence);
}

#[test]
fn a_topic_that_appears_or_vanishes_is_a_change_and_a_new_version_is_none() {
    let cluster = cluster();
    let client = peer(&cluster);
    let beat = |topics: &[&str], version| {
        let mut beat = heartbeat("a", "G", topics);
        beat.consumer_data_set[0].subscription_data_set.iter_mut().for_each(|sub| sub.sub_version = version);
        client.beat(&beat);
    };
    beat(&["T"], 1);
    client.expect_notice("G");
    beat(&["T"], 2);
    client.expect_silence();
    beat(&["T", "U"], 2);
    client.expect_notice("G");
    beat(&["U"], 2);
    client.expect_notice("G");
    client.expect_silence();
}

#[test]
fn two_connections_of_one_client_id_are_two_members() {
    let cluster = cluster();
    let (old, new) = (peer(&cluster), peer(&cluster));
    old.heartbeat("same", "G", &["T"]);
    new.heartbeat("same", "G", &["T"]);
    assert_eq!(ids(&new, "G"), ["same", "same"]);
    drop(old);
    eventually("the old connection is gone", || ids(&new, "G") == ["same"]);
}

#[test]
fn broadcasting_groups_and_groups_that_do_not_want_notices_get_none() {
    let cluster = cluster();
    let client = peer(&cluster);
    let mut beat = heartbeat("a", "B", &["T"]);
    beat.consumer_data_set[0].message_model = MessageModel::Broadcasting;
    client.beat(&beat);
    let config = SubscriptionGroupConfig {
        group_name: "Q".into(),
        notify_consumer_ids_changed_enable: false,
        ..SubscriptionGroupConfig::default()
    };
    let answer = client.call_with_body(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.encode());
    expect_code(&answer, ResponseCode::SUCCESS);
    client.heartbeat("a", "Q", &["T"]);
    client.expect_silence();
    assert_eq!((ids(&client, "B"), ids(&client, "Q")), (vec!["a".into()], vec!["a".into()]));
}

#[test]
fn a_silent_member_is_removed_and_its_connection_closed_but_nobody_is_told() {
    let clock = Clock::manual();
    let cluster = EmbeddedCluster::builder().topic("T", 4).clock(clock).start().unwrap();
    let (silent, lively) = (peer(&cluster), peer(&cluster));
    silent.heartbeat("silent", "G", &["T"]);
    cluster.advance_clock(Duration::from_secs(60));
    lively.heartbeat("lively", "G", &["T"]);
    lively.expect_notice("G");
    cluster.advance_clock(Duration::from_secs(60));
    assert_eq!(ids(&lively, "G").len(), 2);
    cluster.advance_clock(Duration::from_secs(11));
    assert_eq!(ids(&lively, "G"), ["lively"]);
    eventually("the connection is closed", || !silent.client.is_connected(&silent.address));
    lively.expect_silence();
}

#[test]
fn a_slim_heartbeat_keeps_the_subscriptions_and_a_new_fingerprint_is_reported() {
    let cluster = cluster();
    let client = peer(&cluster);
    let beat = |fingerprint, without_sub| {
        let topics: &[&str] = if without_sub { &[] } else { &["T"] };
        let beat = HeartbeatData { heartbeat_fingerprint: fingerprint, without_sub, ..heartbeat("a", "G", topics) };
        client.beat(&beat).ext_fields.get("IS_SUB_CHANGE").unwrap() == "true"
    };
    assert!(!beat(7, false));
    assert!(!beat(7, true));
    assert!(beat(8, false));
    let table = connections(&client, "G").subscription_table;
    assert_eq!(table.keys().collect::<Vec<_>>(), ["T"]);
}

fn connections(client: &Peer, group: &str) -> ConsumerConnection {
    let header = GetConsumerConnectionListRequestHeader { consumer_group: group };
    let answer = client.call(RequestCode::GET_CONSUMER_CONNECTION_LIST, &header);
    expect_code(&answer, ResponseCode::SUCCESS);
    ConsumerConnection::decode(&answer.body).unwrap()
}

#[test]
fn an_administrator_sees_who_is_connected() {
    let cluster = cluster();
    let client = peer(&cluster);
    client.heartbeat("a", "G", &["T"]);
    let seen = connections(&client, "G");
    assert_eq!((seen.message_model, seen.connection_set.len()), (MessageModel::Clustering, 1));
    let connection = &seen.connection_set[0];
    assert_eq!((&*connection.client_id, connection.language, connection.version), ("a", LanguageCode::RUST, 479));
    assert!(connection.client_addr.starts_with("127.0.0.1:"));
    let header = GetConsumerConnectionListRequestHeader { consumer_group: "nobody" };
    let answer = client.call(RequestCode::GET_CONSUMER_CONNECTION_LIST, &header);
    expect_code(&answer, ResponseCode::CONSUMER_NOT_ONLINE);
    let header = GetProducerConnectionListRequestHeader { producer_group: "PG" };
    let answer = client.call(RequestCode::GET_PRODUCER_CONNECTION_LIST, &header);
    assert_eq!(ProducerConnection::decode(&answer.body).unwrap().connection_set.len(), 1);
}

#[test]
fn malformed_heartbeats_change_nothing() {
    let cluster = cluster();
    let client = peer(&cluster);
    let mut nameless = heartbeat("a", "G", &["T", "U"]);
    nameless.consumer_data_set[0].subscription_data_set[1].topic.clear();
    let anonymous = heartbeat("", "G", &["T"]);
    for body in [nameless.encode(), anonymous.encode(), "not json".into(), "".into()] {
        let answer = client.call_with_body(RequestCode::HEART_BEAT, body);
        expect_code(&answer, ResponseCode::SYSTEM_ERROR);
    }
    expect_code(&client.members("G"), ResponseCode::SYSTEM_ERROR);
    // A group that cannot be made is passed over, and the others are registered.
    let mut beat = heartbeat("a", "a b", &["T"]);
    beat.consumer_data_set.extend(heartbeat("a", "G", &["T"]).consumer_data_set);
    client.beat(&beat);
    assert_eq!(ids(&client, "G"), ["a"]);
    expect_code(&client.members("a b"), ResponseCode::SYSTEM_ERROR);
}

#[test]
fn unknown_codes_are_answered_as_unknown() {
    let cluster = cluster();
    let answer = peer(&cluster).invoke(RemotingCommand::request_without_header(RequestCode(99_999)));
    expect_code(&answer, ResponseCode::REQUEST_CODE_NOT_SUPPORTED);
}

#[test]
fn many_clients_that_join_at_once_all_hear_of_the_last_one() {
    const CLIENTS: usize = 40;
    let cluster = cluster();
    let address = address(&cluster);
    let clients: Vec<Peer> = (0..CLIENTS).map(|_| Peer::new(address.clone())).collect();
    std::thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            scope.spawn(move || client.heartbeat(&format!("c{number:02}"), "G", &["T"]));
        }
    });
    assert_eq!(ids(&clients[0], "G").len(), CLIENTS);
    let notices: usize = clients
        .iter()
        .map(|client| {
            client.expect_notice("G");
            client.max_offset("T", 0);
            1 + client.pushed.len()
        })
        .sum();
    // The n-th to join makes n notices.
    assert_eq!(notices, CLIENTS * (CLIENTS + 1) / 2);
}
