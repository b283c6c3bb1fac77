//! Calls, from the caller to the peer and back.

use crate::support::*;
use rocketmq_sync::ErrorKind;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::RemotingConfig;
use rocketmq_sync::time::Deadline;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_blocking_call_gets_its_answer() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(RemotingConfig::default()));
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request("hello"), PATIENCE)
    });
    let mut wire = peer.accept();
    let asked = wire.read();
    assert_eq!((asked.request_code(), &asked.body[..]), (RequestCode::HEART_BEAT, &b"hello"[..]));
    wire.answer(&asked);
    let answer = call.join().expect("no panic").expect("an answer");
    assert_eq!((answer.response_code(), &answer.body[..]), (ResponseCode::SUCCESS, &b"hello"[..]));
    assert!(client.is_connected(&address));
    assert!(client.shutdown(Deadline::after(PATIENCE)));
    assert!(!client.is_connected(&address));
    wire.read_to_end();
    let error = client.invoke(&address, request(""), PATIENCE).expect_err("shut down");
    assert_eq!((error.kind(), error.address()), (ErrorKind::State, Some(&*address)));
}
