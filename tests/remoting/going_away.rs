//! Peers that answer with code 1500: they are about to leave.

use crate::support::*;
use rocketmq_sync::ErrorKind;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::RemotingConfig;
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};

fn config() -> RemotingConfig {
    RemotingConfig { backoff_min: std::time::Duration::from_millis(5), ..RemotingConfig::default() }
}

/// A request with fields and a body, to be found again.
fn route(topic: &str) -> RemotingCommand {
    let mut request = request("body");
    request.code = RequestCode::GET_ROUTEINFO_BY_TOPIC.value();
    request.ext_fields.put("topic", topic);
    request
}

#[test]
fn a_call_is_sent_once_more_with_all_fields_and_the_old_connection_drains() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(config()));
    let (tx, held) = channel();
    client.invoke_async(&address, request("held"), PATIENCE, move |outcome| {
        tx.send(outcome).expect("the test listens");
    });
    let mut old = peer.accept();
    let held_request = old.read();
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, route("T"), PATIENCE)
    });
    let first = old.read();
    old.answer_with(&first, ResponseCode::GO_AWAY);
    let mut new = peer.accept();
    let second = new.read();
    assert_ne!(second.opaque, first.opaque);
    assert_eq!(RemotingCommand { opaque: first.opaque, ..second.clone() }, first);
    new.answer(&second);
    assert_eq!(call.join().expect("no panic").expect("an answer").body, &b"body"[..]);

    old.answer(&held_request);
    assert_eq!(held.recv_timeout(PATIENCE).expect("an outcome").expect("an answer").body, &b"held"[..]);
    old.read_to_end(); // nothing is owed on it any more
    assert!(client.is_connected(&address));
    wait_for("the old connection is out of the table", || client.stats().connections == 1);
}

#[test]
fn a_second_good_bye_is_the_answer_and_the_next_call_finds_a_third_connection() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(config()));
    let call = |topic: &'static str| {
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        beside(move || client.invoke(&address, route(topic), PATIENCE))
    };
    let going = call("T");
    for _ in 0..2 {
        let mut wire = peer.accept();
        let asked = wire.read();
        wire.answer_with(&asked, ResponseCode::GO_AWAY);
        wire.read_to_end();
    }
    let error = going.join().expect("no panic").expect_err("both go away");
    assert_eq!((error.kind(), error.response_code()), (ErrorKind::Broker, Some(1500)));
    assert!(!error.is_outcome_unknown());
    let again = call("T");
    let mut third = peer.accept();
    let asked = third.read();
    third.answer(&asked);
    again.join().expect("no panic").expect("an answer");
    assert_eq!(client.stats().pending_calls, 0);
}

#[test]
fn a_heartbeat_sent_by_the_hook_comes_before_the_repeated_call() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(config()));
    let weak = Arc::downgrade(&client);
    client.on_connected(move |address| {
        if let Some(client) = Weak::upgrade(&weak) {
            client.invoke(address, request("heartbeat"), PATIENCE).expect("an answer");
        }
    });
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, route("T"), PATIENCE)
    });
    let mut old = peer.accept();
    // Both first: a connection on which nothing is owed after the good-bye is closed at once.
    let mut asked = [old.read(), old.read()];
    asked.sort_by_key(|asked| asked.request_code() != RequestCode::HEART_BEAT);
    old.answer(&asked[0]);
    old.answer_with(&asked[1], ResponseCode::GO_AWAY);
    let mut new = peer.accept();
    let first = new.read();
    assert_eq!(first.request_code(), RequestCode::HEART_BEAT);
    new.answer(&first);
    let second = new.read();
    assert_eq!(second.request_code(), RequestCode::GET_ROUTEINFO_BY_TOPIC);
    new.answer(&second);
    call.join().expect("no panic").expect("an answer");
}

#[test]
fn a_repeated_call_fails_when_the_address_is_gone() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(config()));
    let call = beside(move || client.invoke(&address, route("T"), PATIENCE));
    let mut wire = peer.accept();
    let asked = wire.read();
    drop(peer);
    wire.answer_with(&asked, ResponseCode::GO_AWAY);
    assert_eq!(call.join().expect("no panic").expect_err("nobody listens").kind(), ErrorKind::Connect);
    wire.read_to_end();
}
