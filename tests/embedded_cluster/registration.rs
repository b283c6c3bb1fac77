use crate::support::{Peer, expect_code};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::store_codec::body_crc;
use rocketmq_sync::protocol::body::{
    ClusterInfo, DataVersion, GetBrokerMemberGroupResponseBody, KVTable, RegisterBrokerBody, TopicConfig,
    TopicRouteData,
};
use rocketmq_sync::protocol::header::{
    DeleteKVConfigRequestHeader, GetBrokerMemberGroupRequestHeader, GetKVConfigRequestHeader,
    GetKVListByNamespaceRequestHeader, GetRouteInfoRequestHeader, PutKVConfigRequestHeader,
    QueryDataVersionRequestHeader, RegisterBrokerRequestHeader, RegisterTopicRequestHeader,
    UnRegisterBrokerRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::time::Clock;
use std::time::Duration;

const BROKER: RegisterBrokerRequestHeader<'static> = RegisterBrokerRequestHeader {
    broker_name: "remote",
    broker_addr: "192.0.2.1:10911",
    cluster_name: "C",
    ha_server_addr: "192.0.2.1:10912",
    broker_id: 0,
    heartbeat_timeout_millis: None,
    enable_acting_master: None,
    compressed: false,
    body_crc32: 0,
};

fn register(name_server: &Peer, header: &RegisterBrokerRequestHeader<'_>, topics: &[&str]) -> RemotingCommand {
    let mut body = RegisterBrokerBody::default();
    for name in topics {
        let topic = TopicConfig { topic_name: (*name).into(), ..TopicConfig::default() };
        body.topic_config_serialize_wrapper.topic_config_table.insert((*name).into(), topic);
    }
    body.topic_config_serialize_wrapper.data_version.counter = 1;
    let body = body.encode();
    let header = RegisterBrokerRequestHeader { body_crc32: body_crc(&body).cast_signed(), ..*header };
    name_server.invoke(RemotingCommand::request(RequestCode::REGISTER_BROKER, &header).with_body(body))
}

fn ask(name_server: &Peer, topic: &str) -> RemotingCommand {
    let header = GetRouteInfoRequestHeader { topic, accept_standard_json_only: None };
    name_server.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &header)
}

#[test]
fn a_broker_of_another_process_registers_and_is_found_beside_the_embedded_ones() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    expect_code(&register(&name_server, &BROKER, &["T"]), ResponseCode::SYSTEM_ERROR);
    expect_code(&register(&name_server, &BROKER, &["T", "U"]), ResponseCode::SUCCESS);
    let route = TopicRouteData::decode(&ask(&name_server, "T").body).unwrap();
    let names: Vec<_> = route.broker_datas.iter().map(|broker| &*broker.broker_name).collect();
    assert_eq!(names, ["broker-a", "remote"]);
    assert_eq!(route.queue_datas[1].read_queue_nums, 16);
    let info = name_server.call_with_body(RequestCode::GET_BROKER_CLUSTER_INFO, "");
    let info = ClusterInfo::decode(&info.body).unwrap();
    assert_eq!(&*info.broker_addr_table["remote"].broker_addrs[&0], "192.0.2.1:10911");

    let slave = RegisterBrokerRequestHeader { broker_id: 1, broker_addr: "192.0.2.2:1", ..BROKER };
    let answer = register(&name_server, &slave, &["T", "U"]);
    assert_eq!(answer.ext_fields.get("masterAddr"), Some("192.0.2.1:10911"));
    assert_eq!(answer.ext_fields.get("haServerAddr"), Some("192.0.2.1:10912"));
    let header = GetBrokerMemberGroupRequestHeader { cluster_name: "C", broker_name: "remote" };
    let group = name_server.call(RequestCode::GET_BROKER_MEMBER_GROUP, &header);
    let group = GetBrokerMemberGroupResponseBody::decode(&group.body).unwrap().broker_member_group.unwrap();
    assert_eq!(group.broker_addrs.len(), 2);

    for (id, address) in [(0, "192.0.2.1:10911"), (1, "192.0.2.2:1")] {
        let header = UnRegisterBrokerRequestHeader {
            broker_name: "remote",
            broker_addr: address,
            cluster_name: "C",
            broker_id: id,
        };
        expect_code(&ask(&name_server, "U"), ResponseCode::SUCCESS);
        expect_code(&name_server.call(RequestCode::UNREGISTER_BROKER, &header), ResponseCode::SUCCESS);
    }
    expect_code(&ask(&name_server, "U"), ResponseCode::TOPIC_NOT_EXIST);
    expect_code(&ask(&name_server, "T"), ResponseCode::SUCCESS);
}

#[test]
fn a_broker_that_hangs_up_or_falls_silent_is_forgotten() {
    let clock = Clock::manual();
    let cluster = EmbeddedCluster::builder().clock(clock.clone()).start().unwrap();
    let (name_server, other) = (Peer::new(cluster.name_servers()), Peer::new(cluster.name_servers()));
    register(&name_server, &BROKER, &["T", "U"]);
    drop(name_server);
    crate::support::eventually("its close is seen", || {
        ask(&other, "T").response_code() == ResponseCode::TOPIC_NOT_EXIST
    });
    let brief = RegisterBrokerRequestHeader { heartbeat_timeout_millis: Some(5000), ..BROKER };
    register(&other, &brief, &["T", "U"]);
    clock.advance(Duration::from_millis(5000));
    expect_code(&ask(&other, "T"), ResponseCode::SUCCESS);
    clock.advance(Duration::from_millis(1));
    expect_code(&ask(&other, "T"), ResponseCode::TOPIC_NOT_EXIST);
    // The embedded broker stays.
    expect_code(&ask(&other, "TBW102"), ResponseCode::SUCCESS);
}

#[test]
fn versions_of_topics_are_compared_and_single_topics_added() {
    let cluster = EmbeddedCluster::start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    let query = |counter: i64| {
        let header = QueryDataVersionRequestHeader {
            broker_name: "remote",
            broker_addr: "192.0.2.1:10911",
            cluster_name: "C",
            broker_id: 0,
        };
        let body = DataVersion { counter, ..DataVersion::default() }.encode();
        name_server.invoke(RemotingCommand::request(RequestCode::QUERY_DATA_VERSION, &header).with_body(body))
    };
    let unknown = query(1);
    assert_eq!((unknown.ext_fields.get("changed"), unknown.body.len()), (Some("true"), 0));
    register(&name_server, &BROKER, &["T", "U"]);
    let known = query(1);
    assert_eq!(known.ext_fields.get("changed"), Some("false"));
    assert_eq!(DataVersion::decode(&known.body).unwrap().counter, 1);
    assert_eq!(query(2).ext_fields.get("changed"), Some("true"));

    let add = |broker: &str, topic: &str| {
        let body =
            format!(r#"{{"queueDatas":[{{"brokerName":"{broker}","perm":6,"readQueueNums":2,"writeQueueNums":2}}]}}"#);
        let request =
            RemotingCommand::request(RequestCode::REGISTER_TOPIC_IN_NAMESRV, &RegisterTopicRequestHeader { topic });
        expect_code(&name_server.invoke(request.with_body(body.into())), ResponseCode::SUCCESS);
    };
    add("remote", "added");
    expect_code(&ask(&name_server, "added"), ResponseCode::SUCCESS);
    add("nobody", "nowhere");
    expect_code(&ask(&name_server, "nowhere"), ResponseCode::TOPIC_NOT_EXIST);
}

#[test]
fn broker_ids_have_quotes_only_for_those_who_ask_for_standard_json() {
    let cluster = EmbeddedCluster::start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    for (version, standard, quoted) in [(400, None, false), (401, None, true), (400, Some(true), true)] {
        let header = GetRouteInfoRequestHeader { topic: "TBW102", accept_standard_json_only: standard };
        let mut request = RemotingCommand::request(RequestCode::GET_ROUTEINFO_BY_TOPIC, &header);
        request.version = version;
        let body = String::from_utf8(name_server.invoke(request).body.to_vec()).unwrap();
        assert_eq!(body.contains(r#"{"0":"127.0.0.1:"#), quoted, "{body}");
        assert_eq!(body.contains(r#"{0:"127.0.0.1:"#), !quoted, "{body}");
    }
    let info = name_server.call_with_body(RequestCode::GET_BROKER_CLUSTER_INFO, "").body;
    assert!(String::from_utf8(info.to_vec()).unwrap().contains(r#"{0:"127.0.0.1:"#));
}

#[test]
fn what_is_damaged_is_refused() {
    let cluster = EmbeddedCluster::start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    let wrong_sum = RegisterBrokerRequestHeader { body_crc32: 7, ..BROKER };
    let compressed = RegisterBrokerRequestHeader { compressed: true, ..BROKER };
    for (header, body) in [(wrong_sum, "{}"), (compressed, "{}"), (BROKER, "[]")] {
        let request = RemotingCommand::request(RequestCode::REGISTER_BROKER, &header);
        expect_code(&name_server.invoke(request.with_body(body.into())), ResponseCode::SYSTEM_ERROR);
    }
    expect_code(&ask(&name_server, "T"), ResponseCode::TOPIC_NOT_EXIST);
}

#[test]
fn values_are_kept_by_name_space_and_outlive_a_restart() {
    let cluster = EmbeddedCluster::start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    let get = |name_server: &Peer, namespace, key| {
        name_server.call(RequestCode::GET_KV_CONFIG, &GetKVConfigRequestHeader { namespace, key })
    };
    expect_code(&get(&name_server, "ORDER_TOPIC_CONFIG", "T"), ResponseCode::QUERY_NOT_FOUND);
    let put = PutKVConfigRequestHeader { namespace: "ORDER_TOPIC_CONFIG", key: "T", value: "broker-a:4" };
    expect_code(&name_server.call(RequestCode::PUT_KV_CONFIG, &put), ResponseCode::SUCCESS);
    cluster.restart_name_server().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    assert_eq!(get(&name_server, "ORDER_TOPIC_CONFIG", "T").ext_fields.get("value"), Some("broker-a:4"));
    let list = GetKVListByNamespaceRequestHeader { namespace: "ORDER_TOPIC_CONFIG" };
    let list = name_server.call(RequestCode::GET_KVLIST_BY_NAMESPACE, &list);
    assert_eq!(KVTable::decode(&list.body).unwrap().table["T"], "broker-a:4");
    // A broker that registers is told.
    let told = register(&name_server, &BROKER, &["T", "U"]);
    assert_eq!(KVTable::decode(&told.body).unwrap().table["T"], "broker-a:4");
    let delete = DeleteKVConfigRequestHeader { namespace: "ORDER_TOPIC_CONFIG", key: "T" };
    expect_code(&name_server.call(RequestCode::DELETE_KV_CONFIG, &delete), ResponseCode::SUCCESS);
    expect_code(&get(&name_server, "ORDER_TOPIC_CONFIG", "T"), ResponseCode::QUERY_NOT_FOUND);
}

#[test]
fn a_broker_that_comes_with_another_name_leaves_nothing_of_the_old_one() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    for name in ["one", "two", "three"] {
        let header = RegisterBrokerRequestHeader { broker_name: name, ..BROKER };
        expect_code(&register(&name_server, &header, &["T", "U"]), ResponseCode::SUCCESS);
    }
    let route = TopicRouteData::decode(&ask(&name_server, "T").body).unwrap();
    let names: Vec<_> = route.broker_datas.iter().map(|broker| &*broker.broker_name).collect();
    assert_eq!(names, ["broker-a", "three"]);
    let long = "n".repeat(300);
    let header = RegisterBrokerRequestHeader { broker_name: &long, ..BROKER };
    expect_code(&register(&name_server, &header, &["T", "U"]), ResponseCode::SYSTEM_ERROR);
    expect_code(&register(&name_server, &BROKER, &["T", &long]), ResponseCode::SYSTEM_ERROR);
}
