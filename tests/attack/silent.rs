//! Peers that accept and never answer.

use crate::fake::*;
use rocketmq_sync::protocol::RequestCode;
use rocketmq_sync::thread::Latch;
use rocketmq_sync::{ErrorKind, Message, Producer, PushConsumer};
use std::net::TcpListener;
use std::time::Duration;

/// The system accepts for it; nobody reads.
fn black_hole() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Runs something that must end by itself, and returns what it gave.
#[track_caller]
fn must_end<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        let _ = done.send(work());
    });
    let result = result.recv_timeout(LONG).unwrap_or_else(|_| panic!("not within {LONG:?}: {what}"));
    worker.join().unwrap();
    result
}

#[test]
fn a_send_fails_in_its_time_and_names_the_name_server_that_never_answers() {
    let (_hole, address) = black_hole();
    let builder = Producer::builder("p").name_servers(&*address).request_timeout(Duration::from_millis(300));
    let producer = builder.send_timeout(Duration::from_secs(1)).start().unwrap();
    let error = must_end("a send", move || {
        let error = producer.send(&Message::new(TOPIC, "x")).unwrap_err();
        producer.shutdown(Duration::from_millis(300));
        error
    });
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(error.to_string().contains(&address), "{error}");
}

#[test]
fn a_send_fails_in_its_time_and_names_the_broker_that_never_answers() {
    let (_hole, address) = black_hole();
    let fake = Fake::bare("a", "127.0.0.1:0".parse().unwrap());
    fake.state().routes.insert(TOPIC.into(), route(&[("a", 0, &address)], 2));
    let builder = Producer::builder("p").name_servers(fake.address());
    let producer = builder.send_timeout(Duration::from_millis(900)).start().unwrap();
    let error = must_end("a send", move || {
        let error = producer.send(&Message::new(TOPIC, "x")).unwrap_err();
        producer.shutdown(Duration::from_millis(300));
        error
    });
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(error.to_string().contains(&address), "{error}");
}

#[test]
fn a_consumer_starts_and_stops_in_its_times_while_the_name_server_never_answers() {
    let (_hole, address) = black_hole();
    let (listener, _seen) = collecting();
    let builder = PushConsumer::builder(GROUP).name_servers(address).subscribe(TOPIC, "*").listener(listener);
    let builder = builder.request_timeout(Duration::from_millis(300));
    let report = must_end("a start and a stop", move || {
        let consumer = builder.start().unwrap();
        assert!(consumer.assignment().is_empty());
        consumer.shutdown(Duration::from_secs(1))
    });
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_consumer_starts_and_stops_in_its_times_while_the_broker_never_answers() {
    let (_hole, address) = black_hole();
    let fake = Fake::bare("a", "127.0.0.1:0".parse().unwrap());
    fake.state().routes.insert(TOPIC.into(), route(&[("a", 0, &address)], 4));
    let (listener, _seen) = collecting();
    let builder = fake.consumer().request_timeout(Duration::from_millis(300)).listener(listener);
    must_end("a start and a stop", move || {
        let consumer = builder.start().unwrap();
        consumer.lag().unwrap();
        consumer.shutdown(Duration::from_secs(1));
        // Dropped after a stop: nothing more.
    });
}

#[test]
fn a_broker_that_falls_silent_holds_up_neither_the_stop_nor_its_report() {
    let fake = Fake::start(4);
    for queue in 0..4 {
        fake.store(queue, 0..5);
    }
    let (listener, seen) = collecting();
    let consumer = fake.consumer().request_timeout(Duration::from_millis(300)).listener(listener).start().unwrap();
    take(&seen, 20);
    fake.script(|_| Reply::Nothing);
    fake.store(0, 5..9);
    let report = must_end("a stop", move || consumer.shutdown(Duration::from_secs(1)));
    assert_eq!(report.consumed(), 20);
    // What was stored before it fell silent is not told as lost, and what was not is.
    let stored = fake.state().offsets.len();
    assert!(stored + report.not_stored().len() >= 4, "{report:?}");
}

#[test]
fn a_handle_dropped_while_the_name_server_hangs_ends_its_threads() {
    let fake = Fake::start(1);
    fake.script(|asked| if asked.is(RequestCode::GET_ROUTEINFO_BY_TOPIC) { Reply::Nothing } else { Reply::Usual });
    let begun = Latch::new();
    let told = begun.clone();
    let builder = fake.consumer().request_timeout(Duration::from_secs(1));
    let (listener, _seen) = collecting();
    must_end("a start and a drop", move || {
        let consumer = builder.listener(listener).start().unwrap();
        told.set();
        drop(consumer);
    });
    assert!(begun.is_set());
    wait_until("its connections are closed", || fake.connections().is_empty());
}
