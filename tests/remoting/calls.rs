//! Calls, from the caller to the peer and back.

use crate::support::*;
use rocketmq_sync::ErrorKind;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::RemotingConfig;
use rocketmq_sync::thread::Latch;
use rocketmq_sync::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

#[test]
fn answers_in_any_order_reach_their_own_callers() {
    let peer = Peer::new();
    let client = client(RemotingConfig::default());
    let (tx, rx) = channel();
    for number in 0..200 {
        let tx = tx.clone();
        client.invoke_async(&peer.address(), request(&number.to_string()), PATIENCE, move |outcome| {
            tx.send((number, outcome)).expect("the test listens");
        });
    }
    let mut wire = peer.accept();
    let asked: Vec<_> = (0..200).map(|_| wire.read()).collect();
    asked.iter().rev().for_each(|request| wire.answer(request));
    let mut seen = [false; 200];
    for _ in 0..200 {
        let (number, outcome) = rx.recv_timeout(PATIENCE).expect("an outcome");
        assert_eq!(outcome.expect("an answer").body, number.to_string().as_bytes());
        assert!(!std::mem::replace(&mut seen[number], true), "{number} came twice");
    }
    wait_for("nothing is left", || client.stats().pending_calls == 0 && client.stats().open_calls == 0);
}

#[test]
fn a_large_body_arrives_whole_both_ways() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(RemotingConfig::default()));
    let body: Vec<u8> = (0..10_000_019usize).map(|at| (at % 251) as u8).collect();
    let sent = RemotingCommand::request_without_header(RequestCode::HEART_BEAT).with_body(body.clone().into());
    let call = beside(move || client.invoke(&address, sent, PATIENCE));
    let mut wire = peer.accept();
    let asked = wire.read();
    assert!(asked.body == body);
    wire.answer(&asked);
    assert!(call.join().expect("no panic").expect("an answer").body == body);
}

#[test]
fn a_frame_over_the_limit_is_refused_before_it_is_sent() {
    let client = client(RemotingConfig { max_frame: 1000, ..RemotingConfig::default() });
    let address = Peer::new().address();
    let error = client.invoke(&address, request(&"x".repeat(1000)), PATIENCE).expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::MessageIllegal);
    assert_eq!(client.stats().dials, 0);
}

#[test]
fn a_call_without_answer_fails_alone_and_its_late_answer_is_dropped() {
    let peer = Peer::new();
    let address = peer.address();
    // Far below the time after which a silent peer is given up.
    let client = Arc::new(client(RemotingConfig::default()));
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request("slow"), Duration::from_millis(50))
    });
    let mut wire = peer.accept();
    let slow = wire.read();
    let error = call.join().expect("no panic").expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.is_outcome_unknown());
    let text = error.to_string();
    assert!(text.contains("HEART_BEAT") && text.contains("50ms") && text.contains(&*address), "{text}");
    wire.answer(&slow);
    wait_for("the late answer is seen", || client.stats().late_answers == 1);
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request("quick"), PATIENCE)
    });
    let quick = wire.read();
    wire.answer(&quick);
    assert_eq!(call.join().expect("no panic").expect("an answer").body, &b"quick"[..]);
    assert_eq!((client.stats().dials, client.stats().timeouts), (1, 1));
    assert!(peer.has_no_more_connections());
}

#[test]
fn a_slow_answer_does_not_cost_the_connection_while_others_come() {
    let peer = Peer::new();
    let address = peer.address();
    let config = RemotingConfig { silence: Duration::from_millis(100), ..RemotingConfig::default() };
    let client = Arc::new(client(config));
    let slow = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request("slow"), Duration::from_millis(60))
    });
    let mut wire = peer.accept();
    let unanswered = wire.read();
    // Other traffic for much longer than the silence that is allowed.
    for number in 0..20 {
        let call = beside({
            let (client, address) = (Arc::clone(&client), Arc::clone(&address));
            move || client.invoke(&address, request(&number.to_string()), PATIENCE)
        });
        let asked = wire.read();
        Latch::new().wait_timeout(Duration::from_millis(20));
        wire.answer(&asked);
        call.join().expect("no panic").expect("an answer");
    }
    assert_eq!(slow.join().expect("no panic").expect_err("no answer").kind(), ErrorKind::Timeout);
    wire.answer(&unanswered);
    wait_for("the late answer is seen", || client.stats().late_answers == 1);
    assert_eq!(client.stats().dials, 1);
}

#[test]
fn a_peer_that_falls_silent_is_retired_and_dialled_again() {
    let peer = Peer::new();
    let address = peer.address();
    let config = RemotingConfig { silence: Duration::from_millis(150), ..RemotingConfig::default() };
    let client = Arc::new(client(config));
    let (tx, rx) = channel();
    // A long poll shares the connection with a call that gets no answer in time.
    client.invoke_async(&address, request("long"), PATIENCE, move |outcome| {
        tx.send(outcome).expect("the test listens");
    });
    let mut first = peer.accept();
    first.read();
    let error = client.invoke(&address, request("short"), Duration::from_millis(30)).expect_err("silence");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let error = rx.recv_timeout(PATIENCE).expect("its outcome").expect_err("retired");
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.to_string().contains("silent"), "{error}");
    first.read_to_end();
    let call = beside(move || client.invoke(&address, request("again"), PATIENCE));
    let mut second = peer.accept();
    let asked = second.read();
    second.answer(&asked);
    call.join().expect("no panic").expect("an answer");
}

#[test]
fn a_connection_that_ends_fails_all_its_calls_once_with_the_cause() {
    let peer = Peer::new();
    let address = peer.address();
    let client = client(RemotingConfig::default());
    let outcomes = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = channel();
    for _ in 0..500 {
        let (tx, outcomes) = (tx.clone(), Arc::clone(&outcomes));
        client.invoke_async(&address, request(""), PATIENCE, move |outcome| {
            outcomes.fetch_add(1, Ordering::Relaxed);
            tx.send(outcome).expect("the test listens");
        });
    }
    let mut wire = peer.accept();
    let answered = wire.read();
    wire.answer(&answered);
    (1..500).for_each(|_| drop(wire.read()));
    drop(wire);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..500 {
        match rx.recv_timeout(PATIENCE).expect("an outcome") {
            Ok(_) => good += 1,
            Err(error) => {
                assert_eq!((error.kind(), error.address()), (ErrorKind::Closed, Some(&*address)));
                bad += 1;
            }
        }
    }
    assert_eq!((good, bad), (1, 499), "what came before the end counts");
    wait_for("nothing is left", || client.stats().pending_calls == 0);
    assert_eq!(outcomes.load(Ordering::Relaxed), 500);
    assert!(!client.is_connected(&address));
}

#[test]
fn an_answer_counts_on_the_connection_of_its_request_only() {
    let (good, bad) = (Peer::new(), Peer::new());
    let client = Arc::new(client(RemotingConfig::default()));
    let call = |peer: &Peer, body: &'static str| {
        let (client, address) = (Arc::clone(&client), peer.address());
        beside(move || client.invoke(&address, request(body), PATIENCE))
    };
    let (to_good, to_bad) = (call(&good, "good"), call(&bad, "bad"));
    let (mut good, mut bad) = (good.accept(), bad.accept());
    let (asked_good, asked_bad) = (good.read(), bad.read());
    bad.answer(&asked_good); // the number of a call that went elsewhere
    wait_for("the stray answer is seen", || client.stats().late_answers == 1);
    good.answer(&asked_good);
    bad.answer(&asked_bad);
    assert_eq!(to_good.join().expect("no panic").expect("an answer").body, &b"good"[..]);
    assert_eq!(to_bad.join().expect("no panic").expect("an answer").body, &b"bad"[..]);
}

#[test]
fn a_oneway_request_is_sent_and_nobody_waits() {
    let peer = Peer::new();
    let client = client(RemotingConfig::default());
    client.invoke_oneway(&peer.address(), request("first")).expect("queued");
    client.invoke_oneway(&peer.address(), request("second")).expect("queued");
    let mut wire = peer.accept();
    let (first, second) = (wire.read(), wire.read());
    assert!(first.is_oneway() && second.is_oneway());
    assert_eq!((&first.body[..], &second.body[..]), (&b"first"[..], &b"second"[..]));
    assert_eq!(client.stats().pending_calls, 0);
}

#[test]
fn a_panic_in_a_callback_is_contained_and_counted() {
    let peer = Peer::new();
    let client = client(RemotingConfig { call_threads: 1, ..RemotingConfig::default() });
    let (tx, rx) = channel();
    client.invoke_async(&peer.address(), request(""), PATIENCE, |_| panic!("on purpose"));
    client.invoke_async(&peer.address(), request(""), PATIENCE, move |outcome| {
        tx.send(outcome).expect("the test listens");
    });
    let mut wire = peer.accept();
    for _ in 0..2 {
        let asked = wire.read();
        wire.answer(&asked);
    }
    rx.recv_timeout(PATIENCE).expect("the second callback ran").expect("an answer");
    assert_eq!(client.stats().panics, 1);
    wait_for("nothing is left", || client.stats().pending_calls == 0);
}

#[test]
fn blocking_calls_from_callbacks_do_not_wait_for_the_pool() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(RemotingConfig { call_threads: 1, ..RemotingConfig::default() }));
    let (tx, rx) = channel();
    let (inner, to) = (Arc::clone(&client), Arc::clone(&address));
    client.invoke_async(&address, request("outer"), PATIENCE, move |_| {
        tx.send(inner.invoke(&to, request("inner"), PATIENCE)).expect("the test listens");
    });
    let mut wire = peer.accept();
    for _ in 0..2 {
        let asked = wire.read();
        wire.answer(&asked);
    }
    assert_eq!(rx.recv_timeout(PATIENCE).expect("an outcome").expect("an answer").body, &b"inner"[..]);
}

#[test]
fn calls_over_the_limit_are_refused_as_busy() {
    let peer = Peer::new();
    let address = peer.address();
    let client = client(RemotingConfig { max_pending: 2, ..RemotingConfig::default() });
    let (tx, rx) = channel();
    for _ in 0..3 {
        let tx = tx.clone();
        client.invoke_async(&address, request(""), PATIENCE, move |outcome| {
            tx.send(outcome).expect("the test listens");
        });
    }
    let error = rx.recv_timeout(PATIENCE).expect("the third comes back at once").expect_err("refused");
    assert_eq!((error.kind(), error.address()), (ErrorKind::Busy, Some(&*address)));
    assert_eq!(client.invoke(&address, request(""), PATIENCE).expect_err("refused").kind(), ErrorKind::Busy);
    let mut wire = peer.accept();
    for _ in 0..2 {
        let asked = wire.read();
        wire.answer(&asked);
        rx.recv_timeout(PATIENCE).expect("an outcome").expect("an answer");
    }
    wait_for("nothing is left", || client.stats().pending_calls == 0);
}

#[test]
fn an_idle_client_sleeps_until_something_happens() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(RemotingConfig::default()));
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request(""), PATIENCE)
    });
    let mut wire = peer.accept();
    let asked = wire.read();
    wire.answer(&asked);
    call.join().expect("no panic").expect("an answer");
    let quiet = |span| {
        let before = client.stats().turns;
        Latch::new().wait_timeout(span);
        client.stats().turns == before
    };
    wait_for("the last turns are over", || quiet(Duration::from_millis(20)));
    assert!(quiet(Duration::from_millis(500)), "it woke without a reason");
}
