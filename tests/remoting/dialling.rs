//! Addresses that refuse, swallow, move or are many.

use crate::support::*;
use rocketmq_sync::ErrorKind;
use rocketmq_sync::base::net::Resolver;
use rocketmq_sync::remoting::{RemotingClient, RemotingConfig};
use rocketmq_sync::sync::{Mutex, Rank};
use rocketmq_sync::thread::Latch;
use rocketmq_sync::time::Deadline;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An address where nobody listens.
fn closed_port() -> Arc<str> {
    Peer::new().address()
}

/// A listener that takes no more connections: the system leaves further ones without any answer.
struct BlackHole {
    address: SocketAddr,
    _listener: socket2::Socket,
    _filling: Vec<std::net::TcpStream>,
}

impl BlackHole {
    fn new() -> Self {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        listener.bind(&any.into()).expect("a free port");
        listener.listen(0).expect("a listener");
        let address = listener.local_addr().ok().and_then(|address| address.as_socket()).expect("an address");
        let fill = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
        let filling = std::iter::from_fn(fill).take(16).collect();
        Self { address, _listener: listener, _filling: filling }
    }

    fn address(&self) -> Arc<str> {
        self.address.to_string().into()
    }
}

#[track_caller]
fn serve_one(client: &Arc<RemotingClient>, peer: &Peer, address: &Arc<str>) {
    let call = beside({
        let (client, address) = (Arc::clone(client), Arc::clone(address));
        move || client.invoke(&address, request("ok"), PATIENCE)
    });
    let mut wire = peer.accept();
    let asked = wire.read();
    wire.answer(&asked);
    call.join().expect("no panic").expect("an answer");
}

#[test]
fn a_refused_address_fails_at_once_and_then_without_a_dial() {
    let config = RemotingConfig { backoff_min: PATIENCE, backoff_max: PATIENCE, ..RemotingConfig::default() };
    let client = client(config);
    let address = closed_port();
    let error = client.invoke(&address, request(""), PATIENCE).expect_err("refused");
    assert_eq!((error.kind(), error.address()), (ErrorKind::Connect, Some(&*address)));
    assert!(!error.is_outcome_unknown());
    let error = client.invoke(&address, request(""), Duration::from_secs(1)).expect_err("not dialled");
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("not dialled") && error.to_string().contains("refused"), "{error}");
    assert_eq!((client.stats().dials, client.stats().pending_calls), (1, 0));
}

#[test]
fn a_call_that_can_outwait_the_back_off_reaches_a_peer_that_came_back() {
    let config = RemotingConfig {
        backoff_min: Duration::from_millis(300),
        backoff_max: Duration::from_millis(300),
        ..RemotingConfig::default()
    };
    let client = Arc::new(client(config));
    let address = closed_port();
    assert_eq!(client.invoke(&address, request(""), PATIENCE).expect_err("refused").kind(), ErrorKind::Connect);
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || client.invoke(&address, request("ok"), PATIENCE)
    });
    let listener = TcpListener::bind(&*address).expect("the port is still free");
    let mut wire = Wire::over(listener.accept().expect("a connection").0);
    let asked = wire.read();
    wire.answer(&asked);
    call.join().expect("no panic").expect("an answer");
    assert_eq!(client.stats().dials, 2);
}

#[test]
fn a_black_hole_fails_its_callers_in_their_time_and_holds_up_nobody_else() {
    let (hole, peer) = (BlackHole::new(), Peer::new());
    let client = Arc::new(client(RemotingConfig { connect_timeout: PATIENCE, ..RemotingConfig::default() }));
    let stuck: Vec<_> = (0..4)
        .map(|_| {
            let (client, address) = (Arc::clone(&client), hole.address());
            beside(move || client.invoke(&address, request(""), Duration::from_millis(300)))
        })
        .collect();
    let address = peer.address();
    let call = beside({
        let (client, address) = (Arc::clone(&client), Arc::clone(&address));
        move || {
            for _ in 0..50 {
                client.invoke(&address, request("ok"), PATIENCE).expect("an answer");
            }
        }
    });
    let mut wire = peer.accept();
    for _ in 0..50 {
        let asked = wire.read();
        wire.answer(&asked);
    }
    call.join().expect("no panic");
    for call in stuck {
        let error = call.join().expect("no panic").expect_err("no connection");
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert!(error.to_string().contains("300ms"), "{error}");
    }
    assert_eq!(client.stats().dials, 2, "one for the good address, and all callers of the hole share the other");
    assert!(client.shutdown(Deadline::after(PATIENCE)));
}

#[test]
fn a_dial_ends_at_the_connect_timeout() {
    let hole = BlackHole::new();
    let client = client(RemotingConfig { connect_timeout: Duration::from_millis(50), ..RemotingConfig::default() });
    let error = client.invoke(&hole.address(), request(""), PATIENCE).expect_err("no connection");
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert_eq!(client.stats().failed_dials, 1);
    wait_for("the dial is out of the table", || client.stats().connections == 0);
}

/// A resolver whose answers the test sets.
#[derive(Default)]
struct Names {
    answers: Option<Mutex<io::Result<Vec<SocketAddr>>>>,
    asked: AtomicUsize,
    /// Names that begin with "slow" wait for this.
    release: Latch,
}

impl Names {
    fn with(addresses: Vec<SocketAddr>) -> Arc<Self> {
        Arc::new(Self { answers: Some(Mutex::new(Rank::Leaf, Ok(addresses))), ..Self::default() })
    }

    fn set(&self, answer: io::Result<Vec<SocketAddr>>) {
        *self.answers.as_ref().expect("made with answers").lock() = answer;
    }
}

impl Resolver for Names {
    fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if host.starts_with("slow") {
            self.release.wait_timeout(PATIENCE);
        }
        match &*self.answers.as_ref().expect("made with answers").lock() {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

fn socket_of(peer: &Peer) -> SocketAddr {
    peer.address().parse().expect("an address")
}

#[test]
fn all_addresses_of_a_name_are_tried_and_the_name_is_asked_again_after_failure() {
    let (dead, first, second) = (closed_port(), Peer::new(), Peer::new());
    let names = Names::with(vec![dead.parse().expect("an address"), socket_of(&first)]);
    let config = RemotingConfig {
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        resolver: names.clone(),
        ..RemotingConfig::default()
    };
    let client = Arc::new(client(config));
    let address: Arc<str> = "broker.example:10911".into();
    serve_one(&client, &first, &address); // the connection ends with its peer's side
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);

    // The name's last good set serves when it cannot be resolved any more.
    names.set(Err(io::Error::other("no name server")));
    wait_for("the end is noticed", || !client.is_connected(&address));
    drop(first);
    wait_for("all addresses are dead", || {
        client.invoke(&address, request(""), PATIENCE).expect_err("refused").kind() == ErrorKind::Connect
    });
    names.set(Ok(vec![socket_of(&second)]));
    serve_one(&client, &second, &address);
    assert!(names.asked.load(Ordering::SeqCst) >= 2);
}

#[test]
fn a_name_that_is_slow_to_resolve_holds_up_nobody_else() {
    let peer = Peer::new();
    let names = Names::with(vec![socket_of(&peer)]);
    let config = RemotingConfig { resolver: names.clone(), ..RemotingConfig::default() };
    let client = Arc::new(client(config));
    let slow: Arc<str> = "slow.example:1".into();
    let error = client.invoke(&slow, request(""), Duration::from_millis(50)).expect_err("still resolving");
    assert_eq!(error.kind(), ErrorKind::Connect);
    serve_one(&client, &peer, &peer.address());
    names.release.set();
    serve_one(&client, &peer, &slow);
    let bad = client.invoke(&"no port".into(), request(""), PATIENCE).expect_err("no address");
    assert_eq!(bad.kind(), ErrorKind::Config);
    names.set(Ok(Vec::new()));
    let none = client.invoke(&"empty.example:1".into(), request(""), PATIENCE).expect_err("no address");
    assert!(none.kind() == ErrorKind::Connect && none.to_string().contains("empty.example:1"), "{none}");
}

#[test]
fn the_hook_for_new_connections_runs_for_each() {
    let peer = Peer::new();
    let address = peer.address();
    let client = Arc::new(client(RemotingConfig::default()));
    let (tx, rx) = std::sync::mpsc::channel();
    client.on_connected(move |address| tx.send(Arc::clone(address)).expect("the test listens"));
    client.on_connected(|_| panic!("on purpose"));
    for _ in 0..2 {
        serve_one(&client, &peer, &address);
        assert_eq!(rx.recv_timeout(PATIENCE).expect("the hook ran"), address);
        wait_for("the end is noticed", || !client.is_connected(&address));
    }
    client.close_connection(&address);
    wait_for("the address is forgotten", || client.stats().addresses == 0);
}

/// Keeps up to 1,000 calls under way until `total` have ended; returns how many of them failed.
fn many_failing_calls(client: &Arc<RemotingClient>, address: &Arc<str>, total: usize) -> usize {
    let (tx, rx) = std::sync::mpsc::channel();
    let mut failed = 0;
    for started in 0..total + 1000 {
        if started >= 1000 {
            failed += usize::from(rx.recv_timeout(PATIENCE).expect("an outcome"));
        }
        if started < total {
            let tx = tx.clone();
            client.invoke_async(address, request(""), Duration::from_secs(5), move |outcome| {
                tx.send(outcome.is_err()).expect("the test listens");
            });
        }
    }
    failed
}

#[test]
fn nothing_is_left_of_100_000_failed_calls() {
    const TOTAL: usize = 50_000;
    let config = RemotingConfig {
        backoff_min: Duration::from_micros(100),
        backoff_max: Duration::from_millis(1),
        ..RemotingConfig::default()
    };
    let client = Arc::new(client(config));
    assert_eq!(many_failing_calls(&client, &closed_port(), TOTAL), TOTAL);

    let slammer = Arc::new(Peer::new());
    let (address, stop) = (slammer.address(), Latch::new());
    let slamming = beside({
        let (slammer, stop) = (Arc::clone(&slammer), stop.clone());
        move || {
            while !stop.is_set() {
                if slammer.has_no_more_connections() {
                    std::thread::park_timeout(Duration::from_micros(50));
                }
            }
        }
    });
    assert_eq!(many_failing_calls(&client, &address, TOTAL), TOTAL);
    stop.set();
    slamming.join().expect("no panic");
    wait_for("the tables are empty", || {
        let stats = client.stats();
        stats.pending_calls == 0 && stats.open_calls == 0 && stats.queued_operations == 0 && stats.connections == 0
    });
    let stats = client.stats();
    assert!(stats.addresses <= 2 && stats.timers <= 4, "{stats:?}");
    client.close_connection(&address);
    assert!(client.shutdown(Deadline::after(PATIENCE)));
}
