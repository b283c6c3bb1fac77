//! The server's side.

use crate::support::*;
use bytes::Bytes;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::{ConnectionHandle, Dispatch, RemotingConfig, RemotingServer, RequestProcessor};
use rocketmq_sync::sync::{Mutex, Rank};
use rocketmq_sync::time::Deadline;
use rocketmq_sync::{ErrorKind, Result};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Echoes bodies; "relay" asks the oldest other connection and answers with what it says; "flood N" pushes N MiB to the
/// requester; "panic" does.
struct Echo {
    open: Mutex<HashMap<u64, ConnectionHandle>>,
}

impl Echo {
    fn new() -> Arc<Self> {
        Arc::new(Self { open: Mutex::new(Rank::Leaf, HashMap::new()) })
    }
}

impl RequestProcessor for Echo {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let success = || RemotingCommand::response(ResponseCode::SUCCESS, None);
        match &request.body[..] {
            b"panic" => panic!("on purpose"),
            b"relay" => {
                let open: Vec<_> = self.open.lock().values().cloned().collect();
                let other = open.into_iter().filter(|other| other != connection).min_by_key(ConnectionHandle::id)?;
                let (back, opaque) = (connection.clone(), request.opaque);
                other.invoke_async(self::request("relayed"), PATIENCE, move |outcome| {
                    let code = if outcome.is_ok() { ResponseCode::SUCCESS } else { ResponseCode::SYSTEM_ERROR };
                    let body = outcome.map(|answer| answer.body).unwrap_or_default();
                    let answer = RemotingCommand::response(code, None).with_body(body);
                    back.send(RemotingCommand { opaque, ..answer }).expect("queued");
                });
                None
            }
            b"flood" => {
                let push = self::request("").oneway().with_body(Bytes::from(vec![0; 1 << 20]));
                let pushed: Result<Vec<()>> = (0..64).map(|_| connection.send(push.clone())).collect();
                Some(RemotingCommand::response(
                    if pushed.is_err_and(|error| error.kind() == ErrorKind::Busy) {
                        ResponseCode::SYSTEM_BUSY
                    } else {
                        ResponseCode::SUCCESS
                    },
                    None,
                ))
            }
            _ => Some(success().with_body(request.body)),
        }
    }

    fn connected(&self, connection: &ConnectionHandle) {
        self.open.lock().insert(connection.id(), connection.clone());
    }

    fn disconnected(&self, connection: &ConnectionHandle) {
        assert!(self.open.lock().remove(&connection.id()).is_some(), "told of its end without its beginning");
    }
}

const ANY: [u8; 4] = [127, 0, 0, 1];

fn server(config: RemotingConfig, dispatch: Dispatch) -> (Arc<Echo>, RemotingServer, SocketAddr) {
    let echo = Echo::new();
    let server = RemotingServer::start("server", &[(ANY, 0).into()], config, echo.clone(), dispatch).expect("a server");
    let address = server.local_addrs()[0];
    (echo, server, address)
}

#[track_caller]
fn ask(wire: &mut Wire, body: &str) -> RemotingCommand {
    let asked = request(body);
    wire.write(&asked);
    let answer = wire.read();
    assert_eq!((answer.opaque, answer.flag), (asked.opaque, 1));
    answer
}

#[test]
fn requests_are_answered_on_the_io_thread_and_on_a_pool() {
    for dispatch in [Dispatch::Inline, Dispatch::Pool(3)] {
        let (echo, server, address) = server(RemotingConfig::default(), dispatch);
        let client = client(RemotingConfig::default());
        let address: Arc<str> = address.to_string().into();
        for number in 0..100 {
            let answer = client.invoke(&address, request(&number.to_string()), PATIENCE).expect("an answer");
            assert_eq!(answer.body, number.to_string().as_bytes());
        }
        let failed = client.invoke(&address, request("panic"), PATIENCE).expect("an answer");
        assert_eq!(failed.response_code(), ResponseCode::SYSTEM_ERROR);
        assert_eq!((server.connections(), server.stats().panics), (1, 1));
        assert!(client.shutdown(Deadline::after(PATIENCE)));
        wait_for("the end is told", || echo.open.lock().is_empty());
        assert!(server.shutdown(Deadline::after(PATIENCE)));
    }
}

#[test]
fn a_request_is_relayed_to_another_connection_and_its_answer_back() {
    for dispatch in [Dispatch::Inline, Dispatch::Pool(1)] {
        let (echo, _server, address) = server(RemotingConfig::default(), dispatch);
        let mut other = Wire::connect(address);
        assert_eq!(ask(&mut other, "first").body, &b"first"[..]);
        let mut admin = Wire::connect(address);
        assert_eq!(ask(&mut admin, "second").body, &b"second"[..]);
        wait_for("both are known", || echo.open.lock().len() == 2);
        let asked = request("relay");
        admin.write(&asked);
        let relayed = other.read();
        assert_eq!((&relayed.body[..], relayed.is_response()), (&b"relayed"[..], false));
        other.answer(&relayed);
        let answer = admin.read();
        assert_eq!((answer.opaque, &answer.body[..]), (asked.opaque, &b"relayed"[..]));
        // When the other side goes, the relay fails at once.
        admin.write(&RemotingCommand { opaque: 77, ..request("relay") });
        other.read();
        drop(other);
        assert_eq!(admin.read().response_code(), ResponseCode::SYSTEM_ERROR);
    }
}

#[test]
fn a_client_that_does_not_read_is_closed_and_holds_up_nobody() {
    for dispatch in [Dispatch::Inline, Dispatch::Pool(2)] {
        let config = RemotingConfig { write_queue_bytes: 8 << 20, ..RemotingConfig::default() };
        let (_echo, server, address) = server(config, dispatch);
        let (mut lazy, mut good) = (Wire::connect(address), Wire::connect(address));
        lazy.write(&request("flood"));
        for number in 0..20 {
            assert_eq!(ask(&mut good, &number.to_string()).body, number.to_string().as_bytes());
        }
        wait_for("the lazy one is closed", || server.connections() == 1);
        assert_eq!(ask(&mut good, "still").body, &b"still"[..]);
    }
}

#[test]
fn a_client_that_asks_and_never_reads_is_closed_as_well() {
    let config = RemotingConfig { write_queue_bytes: 1 << 20, ..RemotingConfig::default() };
    let (_echo, server, address) = server(config, Dispatch::Inline);
    let mut lazy = Wire::connect(address);
    let body = "x".repeat(100_000);
    let asking = beside(move || {
        use std::io::Write as _;
        let mut bytes = Vec::new();
        let asked = request(&body);
        asked.encode_head(&mut bytes);
        bytes.extend_from_slice(&asked.body);
        // The server closes while this goes on.
        while lazy.stream.write_all(&bytes).is_ok() {}
    });
    asking.join().expect("no panic");
    wait_for("it is closed", || server.connections() == 0);
}

#[test]
fn a_connection_that_takes_nothing_for_too_long_is_closed() {
    let config = RemotingConfig { write_stall: Duration::from_millis(100), ..RemotingConfig::default() };
    let (_echo, server, address) = server(config, Dispatch::Inline);
    let mut lazy = Wire::connect(address);
    // More than the system's buffers take, less than the queue's limit.
    let large =
        RemotingCommand::request_without_header(RequestCode::HEART_BEAT).with_body(Bytes::from(vec![1; 12 << 20]));
    lazy.write(&large);
    wait_for("it is closed", || server.stats().accepted == 1 && server.connections() == 0);
}

#[test]
fn connections_over_the_limit_are_refused_and_room_is_used_again() {
    let (_echo, server, address) =
        server(RemotingConfig { max_connections: 2, ..Default::default() }, Dispatch::Inline);
    let (mut first, mut second) = (Wire::connect(address), Wire::connect(address));
    ask(&mut first, "1");
    ask(&mut second, "2");
    let mut third = Wire::connect(address);
    third.read_to_end();
    assert_eq!((server.connections(), server.stats().refused), (2, 1));
    drop(first);
    wait_for("there is room", || server.connections() == 1);
    ask(&mut Wire::connect(address), "4");
    ask(&mut second, "5");
}

#[test]
fn an_idle_connection_is_closed_on_both_sides_but_not_under_a_long_poll() {
    let idle = Duration::from_millis(100);
    let (_echo, server, address) = server(RemotingConfig { idle, ..Default::default() }, Dispatch::Inline);
    let mut wire = Wire::connect(address);
    ask(&mut wire, "1");
    wire.read_to_end();
    wait_for("it is gone", || server.connections() == 0);

    let peer = Peer::new();
    let client = Arc::new(client(RemotingConfig { idle, ..Default::default() }));
    let address = peer.address();
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request("poll"), PATIENCE)
    });
    let mut wire = peer.accept();
    let poll = wire.read();
    rocketmq_sync::thread::Latch::new().wait_timeout(4 * idle);
    wire.answer(&poll);
    call.join().expect("no panic").expect("an answer, although it took long");
    wire.read_to_end();
    wait_for("the end is noticed", || !client.is_connected(&address));
}

#[test]
fn a_server_starts_again_on_the_same_port() {
    let (_echo, server, address) = server(RemotingConfig::default(), Dispatch::Inline);
    let mut wire = Wire::connect(address);
    ask(&mut wire, "1");
    assert!(server.shutdown(Deadline::after(PATIENCE)));
    wire.read_to_end();
    let taken = |echo: Arc<Echo>| {
        RemotingServer::start("server", &[address], RemotingConfig::default(), echo, Dispatch::Inline)
    };
    let again = taken(Echo::new()).expect("the port is free");
    ask(&mut Wire::connect(address), "2");
    let error = taken(Echo::new()).expect_err("the port is taken");
    assert_eq!((error.kind(), error.address()), (ErrorKind::Io, Some(&*address.to_string())));
    drop(again);
}

/// Panics where the I/O thread itself asks.
struct Rude;

impl RequestProcessor for Rude {
    fn process(&self, _: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(request.body))
    }

    fn accepts(&self, code: RequestCode) -> bool {
        assert!(code == RequestCode::HEART_BEAT, "on purpose");
        true
    }

    fn connected(&self, _: &ConnectionHandle) {
        panic!("on purpose");
    }
}

#[test]
fn a_panic_on_the_io_thread_costs_one_connection_and_the_loop_goes_on() {
    let bind = [(ANY, 0).into()];
    let server = RemotingServer::start("server", &bind, RemotingConfig::default(), Arc::new(Rude), Dispatch::Inline)
        .expect("a server");
    let (mut good, mut bad) = (Wire::connect(server.local_addrs()[0]), Wire::connect(server.local_addrs()[0]));
    assert_eq!(ask(&mut good, "1").body, &b"1"[..]);
    bad.write(&RemotingCommand::request_without_header(RequestCode::PULL_MESSAGE));
    bad.read_to_end();
    assert_eq!(ask(&mut good, "2").body, &b"2"[..]);
    assert_eq!(server.stats().panics, 3, "two hooks and the request");
    wait_for("it is out of the table", || server.connections() == 1);
}

#[test]
fn many_small_and_large_frames_mix_on_one_connection() {
    let (_echo, _server, address) = server(RemotingConfig::default(), Dispatch::Inline);
    let client = client(RemotingConfig::default());
    let address: Arc<str> = address.to_string().into();
    let (tx, rx) = std::sync::mpsc::channel();
    let body = |number: usize| Bytes::from(vec![number as u8; if number % 50 == 7 { 300_000 } else { number % 90 }]);
    for number in 0..1000 {
        let (tx, sent) = (tx.clone(), request("").with_body(body(number)));
        client.invoke_async(&address, sent, PATIENCE, move |outcome| {
            tx.send((number, outcome)).expect("the test listens");
        });
    }
    for _ in 0..1000 {
        let (number, outcome) = rx.recv_timeout(PATIENCE).expect("an outcome");
        assert!(outcome.expect("an answer").body == body(number), "{number}");
    }
}
