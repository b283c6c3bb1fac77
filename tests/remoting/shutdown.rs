//! The end, under trouble.

use crate::support::*;
use rocketmq_sync::ErrorKind;
use rocketmq_sync::remoting::RemotingConfig;
use rocketmq_sync::thread::Latch;
use rocketmq_sync::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How often the storm below is repeated; a long run sets the variable.
fn rounds() -> usize {
    std::env::var("REMOTING_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(25)
}

#[test]
fn shutdown_ends_while_50_connections_fail() {
    let peers: Vec<Peer> = (0..50).map(|_| Peer::new()).collect();
    for round in 0..rounds() {
        let client = Arc::new(client(RemotingConfig::default()));
        let outcomes = Arc::new(AtomicUsize::new(0));
        let mut wires = Vec::new();
        for peer in &peers {
            for _ in 0..4 {
                let outcomes = Arc::clone(&outcomes);
                client.invoke_async(&peer.address(), request(""), PATIENCE, move |outcome| {
                    assert!(outcome.is_err());
                    outcomes.fetch_add(1, Ordering::SeqCst);
                });
            }
        }
        wires.extend(peers.iter().map(Peer::accept));
        let failing = beside(move || drop(wires));
        assert!(client.shutdown(Deadline::after(PATIENCE)), "round {round}");
        failing.join().expect("no panic");
        assert_eq!(outcomes.load(Ordering::SeqCst), 200, "round {round}: each call has one outcome");
        assert_eq!((client.stats().pending_calls, client.stats().panics), (0, 0));
    }
}

#[test]
fn open_calls_fail_at_shutdown_and_later_ones_are_refused() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(RemotingConfig::default()));
    let blocked = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request(""), PATIENCE)
    });
    let mut wire = peer.accept();
    wire.read();
    assert!(client.shutdown(Deadline::after(PATIENCE)));
    assert_eq!(blocked.join().expect("no panic").expect_err("shut down").kind(), ErrorKind::Closed);
    let (tx, rx) = channel();
    client.invoke_async(&address, request(""), PATIENCE, move |outcome| tx.send(outcome).expect("the test listens"));
    assert_eq!(rx.recv_timeout(PATIENCE).expect("an outcome").expect_err("refused").kind(), ErrorKind::State);
    assert_eq!(client.invoke_oneway(&address, request("")).expect_err("refused").kind(), ErrorKind::State);
    assert!(client.shutdown(Deadline::after(PATIENCE)), "twice is no error");
}

#[test]
fn what_was_queued_before_shutdown_is_still_written() {
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
    for number in 0..100 {
        client.invoke_oneway(&address, request(&number.to_string())).expect("queued");
    }
    assert!(client.shutdown(Deadline::after(PATIENCE)));
    for number in 0..100 {
        assert_eq!(wire.read().body, number.to_string().as_bytes());
    }
    assert!(wire.try_read().is_none());
}

#[test]
fn a_callback_that_never_ends_does_not_hold_shutdown_beyond_its_deadline() {
    let peer = Peer::new();
    let client = client(RemotingConfig { call_threads: 1, ..RemotingConfig::default() });
    let release = Latch::new();
    let (tx, rx) = channel();
    let wait = release.clone();
    client.invoke_async(&peer.address(), request(""), PATIENCE, move |_| {
        tx.send(()).expect("the test listens");
        wait.wait_timeout(PATIENCE);
    });
    let mut wire = peer.accept();
    let asked = wire.read();
    wire.answer(&asked);
    rx.recv_timeout(PATIENCE).expect("the callback runs");
    assert!(!client.shutdown(Deadline::after(Duration::from_millis(50))));
    release.set();
    assert!(client.shutdown(Deadline::after(PATIENCE)));
}

#[test]
fn the_last_reference_may_be_dropped_in_a_callback() {
    let peer = Peer::new();
    let client = Arc::new(client(RemotingConfig::default()));
    let (tx, rx) = channel();
    let inner = Arc::clone(&client);
    let (go, gone) = (Latch::new(), Latch::new());
    let wait = go.clone();
    let after = gone.clone();
    client.invoke_async(&peer.address(), request(""), PATIENCE, move |_| {
        wait.wait_timeout(PATIENCE);
        drop(inner);
        after.set();
        tx.send(()).expect("the test listens");
    });
    let mut wire = peer.accept();
    let asked = wire.read();
    wire.answer(&asked);
    drop(client);
    go.set();
    rx.recv_timeout(PATIENCE).expect("the drop came to an end");
    assert!(gone.is_set());
    wire.read_to_end();
}

#[test]
fn a_callback_under_a_blocked_peer_is_told_at_its_deadline_although_nothing_moves() {
    let peer = Peer::new();
    let client = client(RemotingConfig::default());
    let (tx, rx) = channel();
    client.invoke_async(&peer.address(), request(""), Duration::from_millis(20), move |outcome| {
        tx.send(outcome).expect("the test listens");
    });
    let _wire = peer.accept();
    assert_eq!(rx.recv_timeout(PATIENCE).expect("an outcome").expect_err("no answer").kind(), ErrorKind::Timeout);
}
