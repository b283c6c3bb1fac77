//! Peers that send what no client sends. The server's side of the frames has tests of its own; these look at what
//! reaches the handlers, and at whether others are still served.

use crate::support::{PATIENCE, Peer, address, expect_code, heartbeat, peer, pull_header, send_header};
use bytes::Bytes;
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::protocol::header::{PullMessageRequestHeader, SendMessageRequestHeader};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Sends the bytes and waits until the server hangs up.
fn shout(address: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may hang up before it has read all.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

#[test]
fn garbage_on_one_connection_does_not_disturb_another() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let honest = peer(&cluster);
    for server in [address(&cluster), cluster.name_servers()] {
        shout(&server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        shout(&server, &[0xFF; 64]);
        shout(&server, &[0, 0, 0, 8, 0, 0, 0, 4, b'{', b'}', b'{', b'}']);
        shout(&server, &[0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1]);
        shout(&server, &[0, 0, 0, 200, 0, 0, 0, 50, b'{']);
    }
    honest.send("T", 0, "still served", &[]);
    assert_eq!(honest.bodies("T", 0), ["still served"]);
}

#[test]
fn every_code_with_garbage_inside_is_answered() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let (broker, name_server) = (peer(&cluster), Peer::new(cluster.name_servers()));
    for code in RequestCode::ALL {
        for body in ["", "null", "{}", "[]", "{\"mqSet\":7}", "\u{0}\u{1}"] {
            let mut request = RemotingCommand::request_without_header(*code);
            request.body = Bytes::from_static(body.as_bytes());
            request.ext_fields.put("topic", "T");
            request.ext_fields.put("b", "T");
            request.ext_fields.put("queueId", "-9223372036854775808");
            request.ext_fields.put("consumerGroup", "\u{1}\u{2}");
            broker.invoke(request.clone());
            name_server.invoke(request);
        }
    }
    expect_code(&broker.send_as(send_header("T"), "x"), ResponseCode::SUCCESS);
}

#[test]
fn numbers_at_their_limits_are_answered() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let broker = peer(&cluster);
    broker.send("T", 0, "x", &[]);
    for number in [i64::MIN, -1, i64::MAX] {
        let header = PullMessageRequestHeader {
            queue_offset: number,
            max_msg_nums: number as i32,
            commit_offset: number,
            suspend_timeout_millis: number,
            sub_version: number,
            sys_flag: 1 | 4,
            ..pull_header("G", "T")
        };
        expect_code(&broker.pull_as(&header), ResponseCode::PULL_OFFSET_MOVED);
        let delay = number.to_string();
        broker.send("T", 0, "x", &[("DELAY", &delay)]);
        for code in [
            RequestCode::VIEW_MESSAGE_BY_ID,
            RequestCode::SEARCH_OFFSET_BY_TIMESTAMP,
            RequestCode::CONSUMER_SEND_MSG_BACK,
        ] {
            let mut request = RemotingCommand::request_without_header(code);
            for field in ["offset", "timestamp"] {
                request.ext_fields.put_int(field, number);
            }
            for field in ["queueId", "delayLevel"] {
                request.ext_fields.put_int(field, i64::from(number as i32));
            }
            request.ext_fields.put("topic", "T");
            request.ext_fields.put("group", "G");
            broker.invoke(request.clone());
            request.code = RequestCode::INVOKE_BROKER_TO_RESET_OFFSET.value();
            broker.invoke(request);
            // Takes the reset away again.
            broker.pull_as(&pull_header("G", "T"));
        }
    }
}

#[test]
fn a_wait_without_end_and_names_without_end_are_cut() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let broker = peer(&cluster);
    let header =
        PullMessageRequestHeader { sys_flag: 2 | 4, suspend_timeout_millis: i64::MAX, ..pull_header("G", "T") };
    let held = broker.start(RemotingCommand::request(RequestCode::PULL_MESSAGE, &header));
    broker.max_offset("T", 0);
    assert!(held.is_empty());
    // A frame that carries more than a pull is not kept.
    let fat = RemotingCommand::request(RequestCode::PULL_MESSAGE, &header).with_body(vec![0; 1 << 20].into());
    expect_code(&broker.invoke(fat), ResponseCode::PULL_NOT_FOUND);
    let endless = "c".repeat(1 << 20);
    for beat in [heartbeat(&endless, "G", &["T"]), heartbeat("c", "G", &[&endless])] {
        expect_code(&broker.call_with_body(RequestCode::HEART_BEAT, beat.encode()), ResponseCode::SYSTEM_ERROR);
    }
    broker.send("T", 0, "x", &[]);
    held.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn connections_beyond_the_limit_are_closed_and_the_others_served() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).max_connections(3).start().unwrap();
    let honest = peer(&cluster);
    honest.send("T", 0, "x", &[]);
    let others: Vec<_> = (0..2).map(|_| TcpStream::connect(address(&cluster)).unwrap()).collect();
    let mut refused = TcpStream::connect(address(&cluster)).unwrap();
    refused.set_read_timeout(Some(PATIENCE)).unwrap();
    // An end or a reset, but no wait.
    let outcome = refused.read(&mut [0; 1]);
    assert!(outcome.as_ref().is_ok_and(|read| *read == 0) || outcome.is_err_and(|e| e.kind() != ErrorKind::WouldBlock));
    assert_eq!(honest.bodies("T", 0), ["x"]);
    drop(others);
}

#[test]
fn a_frame_beyond_the_limit_ends_its_connection() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).max_frame(64 * 1024).start().unwrap();
    let honest = peer(&cluster);
    shout(&address(&cluster), &[0, 1, 0, 1, 0, 0, 0, 1]);
    honest.send("T", 0, &"x".repeat(60_000), &[]);
    assert_eq!(honest.bodies("T", 0)[0].len(), 60_000);
    for wrong in [EmbeddedCluster::builder().max_frame(1000), EmbeddedCluster::builder().max_connections(0)] {
        assert_eq!(wrong.start().unwrap_err().kind(), rocketmq_sync::ErrorKind::Config);
    }
}

#[test]
fn a_client_that_does_not_read_makes_nobody_wait() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let honest = peer(&cluster);
    honest.send("T", 0, &"x".repeat(4 << 20), &[]);
    let header = r#"{"code":11,"version":479,"opaque":1,"flag":0,"extFields":{"consumerGroup":"G","topic":"T","queueId":"0",
        "queueOffset":"0","maxMsgNums":"32","sysFlag":"4","commitOffset":"0","suspendTimeoutMillis":"0","subVersion":"0",
        "subscription":"*"}}"#;
    let mut frame = (header.len() as u32 + 4).to_be_bytes().to_vec();
    frame.extend_from_slice(&(header.len() as u32).to_be_bytes());
    frame.extend_from_slice(header.as_bytes());
    let mut deaf = TcpStream::connect(address(&cluster)).unwrap();
    deaf.set_write_timeout(Some(PATIENCE)).unwrap();
    // Far more answers than a connection may keep waiting: it is closed, and what is written then fails.
    let closed = (0..100_000).any(|_| deaf.write_all(&frame).is_err());
    assert!(closed, "the broker keeps taking requests of a peer that does not read");
    honest.send("T", 0, "still served", &[]);
}

#[test]
fn hundreds_of_thousands_of_properties_are_refused_before_they_are_read() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let broker = peer(&cluster);
    let text: String = (0..300_000).map(|number| format!("{number}\u{1}v\u{2}")).collect();
    let header = SendMessageRequestHeader { properties: Some(&text), ..send_header("T") };
    expect_code(&broker.send_as(header, "x"), ResponseCode::MESSAGE_ILLEGAL);
}

#[test]
fn more_pulls_than_one_arrival_may_wake_are_all_answered() {
    let cluster = EmbeddedCluster::builder().topic("T", 1).start().unwrap();
    let broker = peer(&cluster);
    broker.send("T", 0, "first", &[]);
    let header = PullMessageRequestHeader { queue_offset: 1, sys_flag: 2 | 4, ..pull_header("G", "T") };
    let pull = || broker.start(RemotingCommand::request(RequestCode::PULL_MESSAGE, &header));
    let held: Vec<_> = (0..40).map(|_| pull()).collect();
    broker.send("T", 0, &"x".repeat(300_000), &[]);
    for answer in held {
        expect_code(&answer.recv_timeout(PATIENCE).unwrap(), ResponseCode::SUCCESS);
    }
}
