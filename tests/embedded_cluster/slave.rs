use crate::support::{PATIENCE, Peer, body, expect_code, peer, pull_header, pulled, send_header};
use rocketmq_sync::protocol::RemotingCommand;
use rocketmq_sync::protocol::body::{GetConsumerListByGroupResponseBody, TopicRouteData};
use rocketmq_sync::protocol::header::{
    EndTransactionRequestHeader, GetRouteInfoRequestHeader, PullMessageRequestHeader, QueryConsumerOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
};
use rocketmq_sync::{Clock, EmbeddedCluster, RequestCode, ResponseCode};
use std::time::Duration;

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 1).slaves(1).clock(Clock::manual()).start().unwrap()
}

fn slave(cluster: &EmbeddedCluster) -> Peer {
    Peer::new(cluster.slave_address("broker-a", 1).unwrap().to_string())
}

/// Ids of the broker in the route of the topic.
fn ids(cluster: &EmbeddedCluster) -> Vec<i64> {
    let header = GetRouteInfoRequestHeader { topic: "T", accept_standard_json_only: Some(true) };
    let answer = Peer::new(cluster.name_servers()).call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &header);
    if answer.response_code() != ResponseCode::SUCCESS {
        return Vec::new();
    }
    TopicRouteData::decode(&answer.body).unwrap().broker_datas[0].broker_addrs.keys().copied().collect()
}

fn waiting_pull(queue_offset: i64) -> RemotingCommand {
    let header = PullMessageRequestHeader { sys_flag: 6, queue_offset, ..pull_header("G", "T") };
    RemotingCommand::request(RequestCode::PULL_MESSAGE, &header)
}

#[test]
fn a_slave_serves_what_its_master_has_also_while_the_master_is_away() {
    let cluster = cluster();
    peer(&cluster).send("T", 0, "x", &[]);
    let slave = slave(&cluster);
    assert_eq!((ids(&cluster), slave.bodies("T", 0)), (vec![0, 1], vec!["x".to_owned()]));
    // While the master is there the slave sends its readers back.
    let answer = slave.invoke(waiting_pull(1));
    expect_code(&answer, ResponseCode::PULL_RETRY_IMMEDIATELY);
    assert_eq!(pulled(&answer).0.suggest_which_broker_id, 0);

    cluster.stop_broker("broker-a").unwrap();
    assert_eq!((ids(&cluster), slave.bodies("T", 0)), (vec![1], vec!["x".to_owned()]));
    let held = slave.start(waiting_pull(1));
    slave.max_offset("T", 0);
    assert!(held.is_empty());
    cluster.restart_broker("broker-a").unwrap();
    assert_eq!(ids(&cluster), [0, 1]);
    peer(&cluster).send("T", 0, "y", &[]);
    let (header, messages) = pulled(&held.recv_timeout(PATIENCE).unwrap());
    assert_eq!((header.next_begin_offset, body(&messages[0]).as_str()), (2, "y"));
}

#[test]
fn a_slave_changes_nothing() {
    let cluster = cluster();
    let slave = slave(&cluster);
    expect_code(&slave.send_as(send_header("T"), "x"), ResponseCode::SYSTEM_BUSY);
    let end = EndTransactionRequestHeader {
        producer_group: "PG",
        tran_state_table_offset: 0,
        commit_log_offset: 0,
        commit_or_rollback: 8,
        from_transaction_check: false,
        msg_id: "any",
        transaction_id: None,
        topic: None,
        bname: None,
    };
    expect_code(&slave.call(RequestCode::END_TRANSACTION, &end), ResponseCode::SLAVE_NOT_AVAILABLE);
    for code in [RequestCode::UPDATE_AND_CREATE_TOPIC, RequestCode::INVOKE_BROKER_TO_RESET_OFFSET] {
        expect_code(&slave.call_with_body(code, ""), ResponseCode::SYSTEM_ERROR);
    }
    expect_code(&slave.call_with_body(RequestCode::CONSUMER_SEND_MSG_BACK, ""), ResponseCode::SYSTEM_BUSY);
    // An offset that makes no sense is not corrected.
    cluster.stop_broker("broker-a").unwrap();
    let far = PullMessageRequestHeader { queue_offset: 77, ..pull_header("G", "T") };
    let answer = slave.pull_as(&far);
    expect_code(&answer, ResponseCode::PULL_OFFSET_MOVED);
    assert_eq!(pulled(&answer).0.next_begin_offset, 77);
}

#[test]
fn members_are_those_of_each_server() {
    let cluster = cluster();
    let (master, slave) = (peer(&cluster), slave(&cluster));
    master.heartbeat("c1", "G", &["T"]);
    master.expect_notice("G");
    expect_code(&slave.members("G"), ResponseCode::SYSTEM_ERROR);
    slave.heartbeat("c2", "G", &["T"]);
    slave.expect_notice("G");
    master.expect_silence();
    let list = GetConsumerListByGroupResponseBody::decode(&slave.members("G").body).unwrap();
    assert_eq!(list.consumer_id_list, ["c2".into()]);
    cluster.stop_broker("broker-a").unwrap();
    expect_code(&slave.members("G"), ResponseCode::SUCCESS);
    cluster.stop_slave("broker-a", 1).unwrap();
    assert!(ids(&cluster).is_empty());
    cluster.restart_slave("broker-a", 1).unwrap();
    expect_code(&self::slave(&cluster).members("G"), ResponseCode::SYSTEM_ERROR);
    assert!(cluster.stop_slave("broker-a", 0).is_err() && cluster.slave_address("broker-a", 2).is_none());
}

#[test]
fn a_slave_takes_the_masters_offsets_over_while_it_lives() {
    let cluster = cluster();
    let (master, slave) = (peer(&cluster), slave(&cluster));
    let commit = |client: &Peer, commit_offset| {
        client.heartbeat("c", "G", &["T"]);
        let header = UpdateConsumerOffsetRequestHeader {
            consumer_group: "G",
            topic: "T",
            queue_id: 0,
            commit_offset,
            bname: None,
        };
        expect_code(&client.call(RequestCode::UPDATE_CONSUMER_OFFSET, &header), ResponseCode::SUCCESS);
    };
    let offset = |client: &Peer| {
        let header = QueryConsumerOffsetRequestHeader {
            consumer_group: "G",
            topic: "T",
            queue_id: 0,
            set_zero_if_not_found: None,
            bname: None,
        };
        let answer = client.call(RequestCode::QUERY_CONSUMER_OFFSET, &header);
        answer.ext_fields.get("offset").map(|text| text.parse::<i64>().unwrap())
    };
    commit(&master, 5);
    assert_eq!(offset(&slave), None);
    cluster.advance_clock(Duration::from_secs(60));
    assert_eq!(offset(&slave), Some(5));
    commit(&slave, 9);
    assert_eq!((offset(&slave), offset(&master)), (Some(9), Some(5)));
    cluster.advance_clock(Duration::from_secs(60));
    assert_eq!(offset(&slave), Some(5));
    cluster.stop_broker("broker-a").unwrap();
    commit(&slave, 9);
    cluster.advance_clock(Duration::from_secs(60));
    assert_eq!(offset(&slave), Some(9));
}

#[test]
fn delayed_messages_wait_for_the_master() {
    let cluster = cluster();
    peer(&cluster).send("T", 0, "late", &[("DELAY", "1")]);
    cluster.stop_broker("broker-a").unwrap();
    cluster.advance_clock(Duration::from_secs(5));
    assert!(slave(&cluster).bodies("T", 0).is_empty());
    cluster.restart_broker("broker-a").unwrap();
    cluster.advance_clock(Duration::from_millis(1));
    assert_eq!(slave(&cluster).bodies("T", 0), ["late"]);
}

#[test]
fn a_reader_far_behind_is_sent_to_a_slave() {
    let builder = EmbeddedCluster::builder().topic("T", 1).slaves(1).max_bytes(100_000);
    let cluster = builder.clone().start().unwrap();
    let suggested = |cluster: &EmbeddedCluster| {
        let broker = peer(cluster);
        let large = "x".repeat(10_000);
        for _ in 0..6 {
            broker.send("T", 0, &large, &[]);
        }
        let first = PullMessageRequestHeader { max_msg_nums: 1, ..pull_header("G", "T") };
        let last = PullMessageRequestHeader { queue_offset: 5, ..first };
        [first, last].map(|header| pulled(&broker.pull_as(&header)).0.suggest_which_broker_id)
    };
    assert_eq!(suggested(&cluster), [1, 0]);
    assert_eq!(suggested(&builder.slave_read(false).start().unwrap()), [0, 0]);
}
