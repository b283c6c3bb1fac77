//! Peers that do not keep to the protocol cost their own connection and nothing else.

use crate::support::*;
use bytes::Bytes;
use rocketmq_sync::ErrorKind;
use rocketmq_sync::protocol::{RemotingCommand, ResponseCode};
use rocketmq_sync::remoting::{Dispatch, NoRequests, RemotingConfig, RemotingServer};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

fn garbage() -> Vec<(&'static str, Vec<u8>)> {
    let frame = |body: &[u8]| [&(body.len() as u32).to_be_bytes()[..], body].concat();
    vec![
        ("no room for a header", frame(&[0; 3])),
        ("length over the limit", u32::MAX.to_be_bytes().to_vec()),
        ("negative length", 0x8000_0000u32.to_be_bytes().to_vec()),
        ("just over the limit", 16_777_213u32.to_be_bytes().to_vec()),
        ("another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        ("header longer than the frame", frame(&[0, 0, 0, 200, b'{', b'}'])),
        ("no JSON", frame(&[&[0, 0, 0, 7][..], b"garbage"].concat())),
        ("JSON of the wrong kind", frame(&[&[0, 0, 0, 2][..], b"[]"].concat())),
        ("unknown form", frame(&[&[9, 0, 0, 2][..], b"{}"].concat())),
        ("binary header cut short", frame(&[1, 0, 0, 5, 0, 0, 0, 0, 0])),
        ("binary header with a negative length", {
            let mut header = vec![1, 0, 0, 21, 0, 0, 12, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0];
            header.extend_from_slice(&(-1i32).to_be_bytes());
            header.extend_from_slice(&[0; 4]);
            frame(&header)
        }),
    ]
}

#[test]
fn garbage_fails_the_calls_of_its_connection_with_the_peers_address() {
    let config = RemotingConfig {
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(2),
        ..RemotingConfig::default()
    };
    let client = Arc::new(client(config));
    for (what, bytes) in garbage() {
        let peer = Peer::new();
        let address = peer.address();
        let call = beside({
            let (client, address) = (Arc::clone(&client), Arc::clone(&address));
            move || client.invoke(&address, request(""), PATIENCE)
        });
        let mut wire = peer.accept();
        wire.read();
        wire.stream.write_all(&bytes).expect("written");
        let error = call.join().expect("no panic").expect_err(what);
        assert_eq!((error.kind(), error.address()), (ErrorKind::Protocol, Some(&*address)), "{what}: {error}");
        wire.read_to_end();
    }
    assert_eq!((client.stats().pending_calls, client.stats().panics), (0, 0));
}

#[test]
fn every_truncated_answer_fails_the_call_as_closed() {
    let client = Arc::new(client(RemotingConfig {
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(2),
        ..RemotingConfig::default()
    }));
    let mut response = RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(Bytes::from_static(b"body"));
    let mut length = 0;
    loop {
        let peer = Peer::new();
        let call = beside({
            let (client, address) = (Arc::clone(&client), peer.address());
            move || client.invoke(&address, request(""), PATIENCE)
        });
        let mut wire = peer.accept();
        response.opaque = wire.read().opaque;
        let mut bytes = Vec::new();
        response.encode_head(&mut bytes);
        bytes.extend_from_slice(&response.body);
        wire.stream.write_all(&bytes[..length.min(bytes.len())]).expect("written");
        drop(wire);
        let outcome = call.join().expect("no panic");
        if length >= bytes.len() {
            outcome.expect("the whole answer");
            break;
        }
        assert_eq!(outcome.expect_err("cut short").kind(), ErrorKind::Closed, "{length}");
        length += 7;
    }
}

#[test]
fn answers_to_nobody_are_dropped_and_counted() {
    let peer = Peer::new();
    let client = Arc::new(client(RemotingConfig::default()));
    let call = beside({
        let (client, address) = (Arc::clone(&client), peer.address());
        move || client.invoke(&address, request("ok"), PATIENCE)
    });
    let mut wire = peer.accept();
    let asked = wire.read();
    for wrong in [asked.opaque.wrapping_add(1), asked.opaque.wrapping_sub(1), i32::MIN, i32::MAX] {
        wire.answer(&RemotingCommand { opaque: wrong, ..asked.clone() });
    }
    wire.answer(&asked);
    wire.answer(&asked); // twice
    call.join().expect("no panic").expect("an answer");
    wait_for("all five are counted", || client.stats().late_answers == 5);
}

#[test]
fn a_server_drops_a_connection_with_garbage_and_serves_the_others() {
    let server = RemotingServer::start(
        "server",
        &[([127, 0, 0, 1], 0).into()],
        RemotingConfig::default(),
        Arc::new(NoRequests),
        Dispatch::Inline,
    )
    .expect("a server");
    let address = server.local_addrs()[0];
    let mut good = Wire::connect(address);
    for (what, bytes) in garbage() {
        let mut bad = Wire::connect(address);
        bad.stream.write_all(&bytes).expect(what);
        bad.read_to_end();
        good.write(&request(""));
        assert_eq!(good.read().response_code(), ResponseCode::REQUEST_CODE_NOT_SUPPORTED, "{what}");
    }
    wait_for("one connection is left", || server.connections() == 1);
    assert_eq!(server.stats().panics, 0);
}
