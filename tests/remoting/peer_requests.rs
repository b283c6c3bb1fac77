//! Requests that a broker sends to its clients.

use crate::support::*;
use bytes::Bytes;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::{ConnectionHandle, RemotingClient, RemotingConfig, RequestProcessor};
use rocketmq_sync::thread::Latch;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does what the body of a request says.
#[derive(Default)]
struct Scripted {
    release: Latch,
    running: AtomicUsize,
    connected: AtomicUsize,
    disconnected: AtomicUsize,
}

impl RequestProcessor for Scripted {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let answer = RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(request.body.clone());
        match &request.body[..] {
            b"panic" => panic!("on purpose"),
            b"later" => {
                let mut later = answer;
                later.opaque = request.opaque;
                connection.send(later).expect("queued");
                None
            }
            b"large" => Some(answer.with_body(Bytes::from(vec![0; 20 << 20]))),
            b"wait" => {
                self.running.fetch_add(1, Ordering::SeqCst);
                self.release.wait_timeout(PATIENCE);
                Some(answer)
            }
            _ => Some(answer),
        }
    }

    fn accepts(&self, code: RequestCode) -> bool {
        code == RequestCode::HEART_BEAT
    }

    fn connected(&self, _: &ConnectionHandle) {
        self.connected.fetch_add(1, Ordering::SeqCst);
    }

    fn disconnected(&self, _: &ConnectionHandle) {
        self.disconnected.fetch_add(1, Ordering::SeqCst);
    }
}

fn connected(config: RemotingConfig) -> (Arc<Scripted>, RemotingClient, Wire) {
    let (scripted, peer) = (Arc::new(Scripted::default()), Peer::new());
    let client = RemotingClient::start("test", config, scripted.clone()).expect("a client");
    client.invoke_oneway(&peer.address(), request("")).expect("queued");
    let mut wire = peer.accept();
    wire.read();
    (scripted, client, wire)
}

/// Sends a request with this body to the client and returns the answer.
#[track_caller]
fn ask(wire: &mut Wire, body: &str, opaque: i32) -> RemotingCommand {
    wire.write(&RemotingCommand { opaque, ..request(body) });
    let answer = wire.read();
    assert_eq!((answer.opaque, answer.flag), (opaque, 1), "{body}");
    answer
}

#[test]
fn requests_are_answered_at_once_later_or_with_an_error() {
    let (scripted, client, mut wire) = connected(RemotingConfig::default());
    assert_eq!(ask(&mut wire, "now", 7).body, &b"now"[..]);
    assert_eq!(ask(&mut wire, "later", -7).body, &b"later"[..]);
    let failed = ask(&mut wire, "panic", 8);
    assert_eq!(failed.response_code(), ResponseCode::SYSTEM_ERROR);
    assert!(failed.remark.expect("a remark").contains("on purpose"));
    assert_eq!(client.stats().panics, 1);
    let large = ask(&mut wire, "large", 9);
    assert_eq!(large.response_code(), ResponseCode::SYSTEM_ERROR, "an answer that fits no frame");
    let mut unknown = request("");
    unknown.code = 98_765;
    wire.write(&unknown);
    let answer = wire.read();
    assert_eq!((answer.code, answer.opaque), (3, unknown.opaque));
    assert_eq!(answer.remark.as_deref(), Some(" request type 98765 not supported"));
    drop(wire);
    wait_for("the end is told", || scripted.disconnected.load(Ordering::SeqCst) == 1);
    assert_eq!(scripted.connected.load(Ordering::SeqCst), 1);
}

#[test]
fn a_oneway_request_is_never_answered() {
    let (_, _client, mut wire) = connected(RemotingConfig::default());
    for body in ["now", "panic", "large"] {
        wire.write(&request(body).oneway());
    }
    let mut unknown = request("").oneway();
    unknown.code = 98_765;
    wire.write(&unknown);
    assert_eq!(ask(&mut wire, "last", 1).body, &b"last"[..], "the only answer");
}

#[test]
fn a_full_pool_answers_busy_and_goes_on() {
    let config = RemotingConfig { call_threads: 1, max_requests: 2, ..RemotingConfig::default() };
    let (scripted, client, mut wire) = connected(config);
    wire.write(&RemotingCommand { opaque: 1, ..request("wait") });
    wait_for("the pool is busy", || scripted.running.load(Ordering::SeqCst) == 1);
    for opaque in 2..=3 {
        wire.write(&RemotingCommand { opaque, ..request("queued") });
    }
    wait_for("two are queued", || client.stats().queued_requests == 2);
    let busy = ask(&mut wire, "refused", 4);
    assert_eq!(busy.response_code(), ResponseCode::SYSTEM_BUSY);
    assert!(busy.remark.expect("a remark").starts_with("[OVERLOAD]"));
    scripted.release.set();
    let mut answered: Vec<_> = (0..3).map(|_| wire.read().opaque).collect();
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3]);
}

#[test]
fn a_request_may_have_the_number_of_a_call_under_way() {
    let (_, client, mut wire) = connected(RemotingConfig::default());
    let address: Arc<str> = wire.stream.local_addr().expect("an address").to_string().into();
    let call = beside(move || client.invoke(&address, request("ours"), PATIENCE));
    let ours = wire.read();
    assert_eq!(ask(&mut wire, "theirs", ours.opaque).body, &b"theirs"[..]);
    wire.answer(&ours);
    assert_eq!(call.join().expect("no panic").expect("an answer").body, &b"ours"[..]);
}
