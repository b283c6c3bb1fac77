//! Bytes that are no frames, and frames that answer nothing.

use crate::fake::*;
use crate::hostile_messages::resident_kib;
use bytes::Bytes;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::{NoRequests, RemotingClient, RemotingConfig};
use rocketmq_sync::thread::JoinGuard;
use rocketmq_sync::time::Deadline;
use rocketmq_sync::{ErrorKind, Message, Producer};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A peer that reads one frame, writes what it is told, and closes or waits for the other side to do so.
pub(crate) struct RawPeer {
    pub(crate) address: String,
    pub(crate) served: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: JoinGuard,
}

impl RawPeer {
    /// `answer` gets the number of the connection and the request's opaque, and returns what to write and whether to
    /// close then.
    pub(crate) fn start(answer: impl Fn(usize, i32) -> (Vec<u8>, bool) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (served, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, ending) = (served.clone(), stop.clone());
        let thread = JoinGuard::spawn("raw-peer", move || {
            for stream in listener.incoming() {
                if ending.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                serve(&mut stream, |opaque| answer(count.load(Ordering::SeqCst), opaque));
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, served, stop, thread: thread.unwrap() }
    }
}

impl Drop for RawPeer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        self.thread.join(Deadline::after(LONG));
    }
}

fn serve(stream: &mut TcpStream, answer: impl FnOnce(i32) -> (Vec<u8>, bool)) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut length = [0; 4];
    if stream.read_exact(&mut length).is_err() {
        return;
    }
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    if stream.read_exact(&mut frame).is_err() {
        return;
    }
    let opaque = RemotingCommand::decode(Bytes::from(frame)).unwrap().opaque;
    let (bytes, close) = answer(opaque);
    // The other side may have closed half way.
    if stream.write_all(&bytes).is_err() || close {
        return;
    }
    let mut rest = [0; 4096];
    while stream.read(&mut rest).is_ok_and(|read| read > 0) {}
}

/// A frame of this header type and header, and a body.
fn frame(kind: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = ((4 + header.len() + body.len()) as u32).to_be_bytes().to_vec();
    out.extend((u32::from(kind) << 24 | header.len() as u32).to_be_bytes());
    out.extend(header);
    out.extend(body);
    out
}

fn json(opaque: i64) -> Vec<u8> {
    let header = format!("{{\"code\":0,\"flag\":1,\"language\":\"JAVA\",\"opaque\":{opaque},\"version\":1}}");
    frame(0, header.as_bytes(), b"")
}

/// Every way to answer a request wrongly: a name, the bytes, and whether the connection is closed after them.
fn wrong_answers(opaque: i32) -> Vec<(&'static str, Vec<u8>, bool)> {
    let mut binary = vec![0, 0, 0, 0, 1]; // code, language, version
    binary.extend(opaque.to_be_bytes());
    binary.extend(1i32.to_be_bytes());
    let mut long_remark = binary.clone();
    long_remark.extend(i32::MAX.to_be_bytes());
    let mut negative_fields = binary.clone();
    negative_fields.extend(0i32.to_be_bytes());
    negative_fields.extend((-1i32).to_be_bytes());
    let mut good = json(opaque.into());
    good.truncate(good.len() - 3);
    vec![
        ("nothing, and closed", Vec::new(), true),
        ("half a length", vec![0, 0], true),
        ("a frame cut short", good, true),
        ("a length of zero", vec![0; 16], false),
        ("a negative length", vec![0xff; 64], false),
        ("the longest length", [&i32::MAX.to_be_bytes()[..], &[1; 64]].concat(), false),
        ("a length just over the limit", [&16_777_217u32.to_be_bytes()[..], &[0; 64]].concat(), false),
        ("a length below the header word", [&3u32.to_be_bytes()[..], &[0; 64]].concat(), false),
        (
            "a header longer than its frame",
            [&12u32.to_be_bytes()[..], &[0, 0xff, 0xff, 0xff], &[b'x'; 8]].concat(),
            false,
        ),
        ("an unknown header type", frame(7, b"{}", b""), false),
        ("JSON that is none", frame(0, b"{\"code\":0,", b""), false),
        ("JSON of another shape", frame(0, b"[1,2,3]", b""), false),
        ("JSON with text for numbers", frame(0, b"{\"code\":\"x\",\"opaque\":{}}", b""), false),
        ("JSON without end", frame(0, &b"[".repeat(100_000), b""), false),
        ("a header that is not text", frame(0, &[0xff; 40], b""), false),
        ("a binary header cut short", frame(1, &binary[..6], b""), false),
        ("a binary remark longer than the frame", frame(1, &long_remark, b""), false),
        ("binary fields of negative length", frame(1, &negative_fields, b""), false),
        ("the answer to another call", json(i64::from(opaque) + 1), true),
        ("the answer to no call", json(-1), true),
        ("an opaque of 64 bits", json(i64::MAX), false),
        ("text of another protocol", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec(), false),
    ]
}

#[test]
fn a_send_to_a_broker_that_answers_garbage_fails_with_a_typed_error_that_names_it() {
    let kinds = wrong_answers(0).len();
    for kind in 0..kinds {
        let what = wrong_answers(0)[kind].0;
        let peer = RawPeer::start(move |_, opaque| {
            let (_, bytes, close) = wrong_answers(opaque).swap_remove(kind);
            (bytes, close)
        });
        let fake = Fake::bare("a", "127.0.0.1:0".parse().unwrap());
        fake.state().routes.insert(TOPIC.into(), route(&[("a", 0, &peer.address)], 1));
        let builder = Producer::builder("p").name_servers(fake.address()).retry_times(0);
        let producer = builder.send_timeout(Duration::from_secs(3)).start().unwrap();
        let error = producer.send(&Message::new(TOPIC, "x")).unwrap_err();
        let kinds = [ErrorKind::Closed, ErrorKind::Protocol, ErrorKind::Timeout, ErrorKind::Connect, ErrorKind::Io];
        assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
        assert!(error.to_string().contains(&peer.address), "{what}: {error}");
        producer.shutdown(LONG);
    }
}

#[test]
fn a_consumer_whose_broker_speaks_garbage_goes_on_when_it_comes_to_its_senses() {
    let random = |seed: usize| {
        let mut state = seed as u64 * 2 + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..200).map(|_| next()).collect::<Vec<u8>>()
    };
    let peer = RawPeer::start(move |number, _| (random(number), number % 2 == 0));
    let fake = Fake::start(1);
    fake.store(0, 0..3);
    let good = fake.state().routes[TOPIC].clone();
    fake.state().routes.insert(TOPIC.into(), route(&[("a", 0, &peer.address)], 1));
    let (listener, seen) = collecting();
    let builder = fake.consumer().route_interval(Duration::from_millis(100));
    let consumer = builder.request_timeout(Duration::from_millis(500)).listener(listener).start().unwrap();
    wait_until("three bad connections", || peer.served.load(Ordering::SeqCst) >= 3);
    assert!(consumer.health().is_running());
    fake.state().routes.insert(TOPIC.into(), good);
    assert_eq!(take(&seen, 3).len(), 3);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_thousand_rounds_of_garbage_leave_no_calls_no_connections_and_no_memory_behind() {
    let peer = RawPeer::start(|number, opaque| {
        let all = wrong_answers(opaque);
        // Those that close at once; the others cost this test a time-out each.
        let kinds = [0, 1, 2, 4, 5, 9, 10, 14];
        let (_, bytes, _) = &all[kinds[number % kinds.len()]];
        (bytes.clone(), true)
    });
    let config = RemotingConfig {
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(1),
        ..RemotingConfig::default()
    };
    let client = RemotingClient::start("rmq-t", config, Arc::new(NoRequests)).unwrap();
    let address: Arc<str> = peer.address.as_str().into();
    let round = || {
        let request = RemotingCommand::request_without_header(RequestCode::HEART_BEAT);
        let error = client.invoke(&address, request, Duration::from_secs(20)).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::Timeout, "{error}");
    };
    (0..50).for_each(|_| round());
    let before = resident_kib();
    (0..1000).for_each(|_| round());
    let after = resident_kib();
    wait_until("nothing is left", || {
        let stats = client.stats();
        stats.pending_calls == 0 && stats.open_calls == 0 && stats.connections == 0
    });
    let stats = client.stats();
    assert!(stats.addresses <= 1 && stats.timers <= 4, "{stats:?}");
    assert_eq!(stats.panics, 0);
    // Other tests of this process work meanwhile; what grows with each round would be far above this.
    assert!(after < before + (64 << 10), "{before} KiB before, {after} KiB after");
    assert!(client.shutdown(Deadline::after(LONG)));
}

#[test]
fn answers_nobody_asked_for_disturb_no_call() {
    let fake = Fake::start(1);
    let producer = fake.producer();
    producer.send(&Message::new(TOPIC, "x")).unwrap();
    let connections = fake.connections();
    for opaque in (-50..50).chain([i32::MAX, i32::MIN]) {
        for connection in &connections {
            let mut answer = RemotingCommand::response(ResponseCode::SUCCESS, None);
            // Past the calls that are to come, too.
            answer.opaque = opaque.wrapping_mul(1_000_003);
            connection.send(answer).unwrap();
        }
    }
    let result = producer.send(&Message::new(TOPIC, "y")).unwrap();
    assert_eq!(result.queue_offset(), 5);
    assert_eq!(fake.state().accepted, 1);
}
