use crate::support::{Peer, expect_code, peer, send_header};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::protocol::body::{ClusterInfo, TopicList, TopicRouteData};
use rocketmq_sync::protocol::header::{
    DeleteTopicFromNamesrvRequestHeader, DeleteTopicRequestHeader, GetRouteInfoRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};

fn ask(name_server: &Peer, topic: &str) -> RemotingCommand {
    let header = GetRouteInfoRequestHeader { topic, accept_standard_json_only: Some(true) };
    name_server.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &header)
}

fn route(name_server: &Peer, topic: &str) -> TopicRouteData {
    let answer = ask(name_server, topic);
    expect_code(&answer, ResponseCode::SUCCESS);
    TopicRouteData::decode(&answer.body).unwrap()
}

#[test]
fn tells_the_queues_of_a_topic_on_each_broker() {
    let cluster = EmbeddedCluster::builder().brokers(2).topic("orders", 8).start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    let route = route(&name_server, "orders");
    let queues: Vec<_> = route.queue_datas.iter().map(|q| (&*q.broker_name, q.read_queue_nums, q.perm)).collect();
    assert_eq!(queues, [("broker-a", 8, 6), ("broker-b", 8, 6)]);
    for broker in &route.broker_datas {
        let address = cluster.broker_address(&broker.broker_name).unwrap().to_string();
        assert_eq!(&*broker.broker_addrs[&0], address);
        assert_eq!(&*broker.cluster, "DefaultCluster");
    }
}

#[test]
fn the_body_is_json_with_quoted_keys() {
    let cluster = EmbeddedCluster::start().unwrap();
    let answer = ask(&Peer::new(cluster.name_servers()), "TBW102");
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(json["queueDatas"][0]["perm"], 7);
    assert_eq!(json["queueDatas"][0]["writeQueueNums"], 8);
    assert!(json["brokerDatas"][0]["brokerAddrs"]["0"].is_string());
}

#[test]
fn a_first_message_makes_the_topic_and_its_route_before_it_is_answered() {
    let cluster = EmbeddedCluster::start().unwrap();
    let (broker, name_server) = (peer(&cluster), Peer::new(cluster.name_servers()));
    let unknown = ask(&name_server, "fresh");
    expect_code(&unknown, ResponseCode::TOPIC_NOT_EXIST);
    broker.send("fresh", 1, "hello", &[]);
    let queues = &route(&name_server, "fresh").queue_datas[0];
    assert_eq!((queues.read_queue_nums, queues.write_queue_nums, queues.perm), (4, 4, 6));
}

#[test]
fn without_auto_creation_the_template_has_no_route_and_the_send_fails() {
    let cluster = EmbeddedCluster::builder().auto_create_topics(false).start().unwrap();
    expect_code(&ask(&Peer::new(cluster.name_servers()), "TBW102"), ResponseCode::TOPIC_NOT_EXIST);
    expect_code(&peer(&cluster).send_as(send_header("fresh"), "x"), ResponseCode::TOPIC_NOT_EXIST);
    cluster.create_topic("fresh", 2).unwrap();
    expect_code(&peer(&cluster).send_as(send_header("fresh"), "x"), ResponseCode::SUCCESS);
}

#[test]
fn a_topic_deleted_on_the_broker_stays_routable_until_it_is_deleted_here() {
    let cluster = EmbeddedCluster::builder().topic("orders", 1).start().unwrap();
    let (broker, name_server) = (peer(&cluster), Peer::new(cluster.name_servers()));
    let deleted = broker.call(RequestCode::DELETE_TOPIC_IN_BROKER, &DeleteTopicRequestHeader { topic: "orders" });
    expect_code(&deleted, ResponseCode::SUCCESS);
    assert_eq!(route(&name_server, "orders").queue_datas.len(), 1);
    let header = DeleteTopicFromNamesrvRequestHeader { topic: "orders", cluster_name: None };
    expect_code(&name_server.call(RequestCode::DELETE_TOPIC_IN_NAMESRV, &header), ResponseCode::SUCCESS);
    expect_code(&ask(&name_server, "orders"), ResponseCode::TOPIC_NOT_EXIST);
}

#[test]
fn lists_brokers_and_topics_and_refuses_what_it_does_not_know() {
    let cluster = EmbeddedCluster::builder().brokers(2).cluster_name("C1").topic("orders", 1).start().unwrap();
    let name_server = Peer::new(cluster.name_servers());
    let info = name_server.call_with_body(RequestCode::GET_BROKER_CLUSTER_INFO, "");
    let info = ClusterInfo::decode(&info.body).unwrap();
    assert_eq!(info.cluster_addr_table["C1"].len(), 2);
    assert_eq!(info.broker_addr_table.len(), 2);
    let topics = name_server.call_with_body(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "");
    let topics = TopicList::decode(&topics.body).unwrap().topic_list;
    assert!(topics.contains("orders") && topics.contains("TBW102") && topics.contains("C1"));
    let unknown = name_server.call_with_body(RequestCode::HEART_BEAT, "");
    expect_code(&unknown, ResponseCode::REQUEST_CODE_NOT_SUPPORTED);
    let nameless = name_server.call_with_body(RequestCode::GET_ROUTEINFO_BY_TOPIC, "");
    expect_code(&nameless, ResponseCode::SYSTEM_ERROR);
}
