use crate::support::{PATIENCE, Peer, eventually, expect_code, peer, pull_header, pulled};
use rocketmq_sync::protocol::RemotingCommand;
use rocketmq_sync::protocol::header::{
    GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader, GetRouteInfoRequestHeader, PullMessageRequestHeader,
};
use rocketmq_sync::{Clock, EmbeddedCluster, ErrorKind, Fault, RequestCode, ResponseCode};
use std::time::Duration;

/// For calls that are to fail.
const BRIEF: Duration = Duration::from_millis(300);

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 1).clock(Clock::manual()).start().unwrap()
}

fn max_offset() -> RemotingCommand {
    let header = GetMaxOffsetRequestHeader { topic: "T", queue_id: 0, committed: true, bname: None };
    RemotingCommand::request(RequestCode::GET_MAX_OFFSET, &header)
}

fn min_offset() -> RemotingCommand {
    let header = GetMinOffsetRequestHeader { topic: "T", queue_id: 0, bname: None };
    RemotingCommand::request(RequestCode::GET_MIN_OFFSET, &header)
}

#[track_caller]
fn fails(client: &Peer, request: RemotingCommand) -> ErrorKind {
    client.client.invoke(&client.address, request, BRIEF).unwrap_err().kind()
}

#[test]
fn a_request_can_be_lost_refused_or_end_its_connection() {
    let cluster = cluster();
    let client = peer(&cluster);
    let on = [RequestCode::GET_MAX_OFFSET];
    let lost = cluster.inject(Fault::lose().on(on).times(1));
    assert_eq!(fails(&client, max_offset()), ErrorKind::Timeout);
    let refused = cluster.inject(Fault::refuse(ResponseCode::SYSTEM_BUSY, "later").on(on).times(1));
    let answer = client.invoke(max_offset());
    assert_eq!((answer.response_code(), answer.remark.as_deref()), (ResponseCode::SYSTEM_BUSY, Some("later")));
    let closed = cluster.inject(Fault::close().on(on).times(1));
    assert_eq!(fails(&client, max_offset()), ErrorKind::Closed);
    expect_code(&peer(&cluster).invoke(max_offset()), ResponseCode::SUCCESS);
    assert_eq!([lost.hits(), refused.hits(), closed.hits()], [1, 1, 1]);
}

#[test]
fn a_lost_answer_is_not_a_lost_request() {
    let cluster = cluster();
    let client = peer(&cluster);
    let sends = [RequestCode::SEND_MESSAGE_V2];
    for fault in [Fault::lose_answer(), Fault::half_answer()] {
        let fault = cluster.inject(fault.on(sends).times(1));
        let header = crate::support::send_header("T");
        let request = RemotingCommand::request(RequestCode::SEND_MESSAGE_V2, &header).with_body("x".into());
        assert!(matches!(fails(&client, request), ErrorKind::Timeout | ErrorKind::Closed));
        assert_eq!(fault.hits(), 1);
    }
    assert_eq!(peer(&cluster).max_offset("T", 0), 2);
}

#[test]
fn a_delay_goes_by_the_clock_of_the_cluster() {
    let cluster = cluster();
    let client = peer(&cluster);
    let second = Duration::from_secs(1);
    for fault in [Fault::delay(second), Fault::delay_answer(second)] {
        let fault = cluster.inject(fault.on([RequestCode::GET_MAX_OFFSET]).times(1));
        let late = client.start(max_offset());
        expect_code(&client.invoke(min_offset()), ResponseCode::SUCCESS);
        cluster.advance_clock(Duration::from_millis(999));
        expect_code(&client.invoke(min_offset()), ResponseCode::SUCCESS);
        assert!(late.is_empty() && fault.hits() == 1);
        cluster.advance_clock(Duration::from_millis(1));
        expect_code(&late.recv_timeout(PATIENCE).unwrap(), ResponseCode::SUCCESS);
    }
}

#[test]
fn the_systems_clock_ends_a_delay_as_well() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    cluster.inject(Fault::delay(Duration::from_millis(20)));
    expect_code(&peer(&cluster).invoke(max_offset()), ResponseCode::SUCCESS);
}

#[test]
fn answers_can_come_twice_and_in_the_wrong_order() {
    let cluster = cluster();
    let client = peer(&cluster);
    cluster.inject(Fault::double_answer().on([RequestCode::GET_MAX_OFFSET]));
    expect_code(&client.invoke(max_offset()), ResponseCode::SUCCESS);
    cluster.clear_faults();
    cluster.inject(Fault::swap_answers().on([RequestCode::GET_MAX_OFFSET]).times(1));
    let first = client.start(max_offset());
    expect_code(&client.invoke(min_offset()), ResponseCode::SUCCESS);
    expect_code(&first.recv_timeout(PATIENCE).unwrap(), ResponseCode::SUCCESS);
    // One that would wait for ever goes out when the faults end.
    cluster.inject(Fault::swap_answers().times(1));
    let waiting = client.start(max_offset());
    eventually("it is handled", || {
        cluster.clear_faults();
        !waiting.is_empty()
    });
}

#[test]
fn the_answer_of_a_pull_that_waited_meets_its_fault() {
    let cluster = cluster();
    let client = peer(&cluster);
    cluster.inject(Fault::double_answer().on([RequestCode::PULL_MESSAGE]));
    let lost = cluster.inject(Fault::lose_answer().on([RequestCode::LITE_PULL_MESSAGE]).times(1));
    let header = PullMessageRequestHeader { sys_flag: 6, ..pull_header("G", "T") };
    let (kept, gone) = (
        client.start(RemotingCommand::request(RequestCode::PULL_MESSAGE, &header)),
        client.start(RemotingCommand::request(RequestCode::LITE_PULL_MESSAGE, &header)),
    );
    client.max_offset("T", 0);
    client.send("T", 0, "x", &[]);
    assert_eq!(pulled(&kept.recv_timeout(PATIENCE).unwrap()).1.len(), 1);
    client.max_offset("T", 0);
    assert!(gone.is_empty() && lost.hits() == 1);
}

#[test]
fn a_notice_can_be_lost_doubled_or_late() {
    let cluster = cluster();
    let (a, b) = (peer(&cluster), peer(&cluster));
    a.heartbeat("a", "G", &["T"]);
    a.expect_notice("G");
    let notices = [RequestCode::NOTIFY_CONSUMER_IDS_CHANGED];
    let lost = cluster.inject(Fault::lose().on(notices));
    b.heartbeat("b", "G", &["T"]);
    a.expect_silence();
    assert_eq!(lost.hits(), 2);
    lost.remove();
    cluster.inject(Fault::double_answer().on(notices).times(2));
    assert_eq!(cluster.forget_member("G", "b"), 1);
    assert_eq!(cluster.forget_member("G", "b"), 0);
    a.expect_silence();
    b.heartbeat("b", "G", &["T"]);
    for client in [&a, &b] {
        client.expect_notice("G");
        client.expect_notice("G");
    }
    cluster.inject(Fault::delay(Duration::from_secs(5)).on(notices));
    cluster.forget_member("G", "b");
    b.heartbeat("b", "G", &["T"]);
    a.expect_silence();
    cluster.advance_clock(Duration::from_secs(5));
    a.expect_notice("G");
}

#[test]
fn a_fault_can_be_of_one_server_only() {
    let cluster = EmbeddedCluster::builder().brokers(2).topic("T", 1).start().unwrap();
    let brokers: Vec<Peer> = cluster
        .broker_names()
        .into_iter()
        .map(|name| Peer::new(cluster.broker_address(name).unwrap().to_string()))
        .collect();
    let name_server = Peer::new(cluster.name_servers());
    let route = |topic| {
        let header = GetRouteInfoRequestHeader { topic, accept_standard_json_only: Some(true) };
        name_server.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &header).response_code()
    };
    cluster.inject(Fault::refuse(ResponseCode::SYSTEM_ERROR, "broken").on_broker("broker-b"));
    expect_code(&brokers[0].invoke(max_offset()), ResponseCode::SUCCESS);
    expect_code(&brokers[1].invoke(max_offset()), ResponseCode::SYSTEM_ERROR);
    assert_eq!(route("T"), ResponseCode::SUCCESS);
    cluster.clear_faults();
    cluster.inject(Fault::refuse(ResponseCode::TOPIC_NOT_EXIST, "gone").on_name_server());
    assert_eq!(route("T"), ResponseCode::TOPIC_NOT_EXIST);
    expect_code(&brokers[1].invoke(max_offset()), ResponseCode::SUCCESS);
}

#[test]
fn a_paused_broker_answers_when_it_goes_on() {
    let cluster = cluster();
    let client = peer(&cluster);
    client.send("T", 0, "x", &[]);
    cluster.pause_broker("broker-a").unwrap();
    let late = client.start(max_offset());
    // What is due waits as well.
    cluster.advance_clock(Duration::from_secs(1));
    assert!(late.recv_timeout(Duration::from_millis(50)).is_err());
    cluster.resume_broker("broker-a").unwrap();
    expect_code(&late.recv_timeout(PATIENCE).unwrap(), ResponseCode::SUCCESS);

    // A restart ends a pause.
    cluster.pause_broker("broker-a").unwrap();
    cluster.restart_broker("broker-a").unwrap();
    expect_code(&peer(&cluster).invoke(max_offset()), ResponseCode::SUCCESS);
    assert!(cluster.pause_broker("broker-x").is_err());
}
