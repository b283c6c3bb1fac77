//! The stop: what is stored and reported.

use crate::support::*;
use crossbeam::channel::unbounded as channel;
use rocketmq_sync::ErrorKind;
use std::time::Duration;

#[test]
fn the_stop_stores_what_its_caller_polled() {
    let cluster = cluster("orders", 2);
    send(&cluster, 0..40);
    let consumer = subscribed(&cluster, "g");
    poll_count(&consumer, 40);
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.consumed(), report.committed().values().sum::<i64>()), (40, 40));
    assert_eq!(consumer.poll(LONG).unwrap_err().kind(), ErrorKind::State);
    assert_eq!(consumer.subscribe("orders", "*").unwrap_err().kind(), ErrorKind::State);
    assert_eq!(consumer.shutdown(LONG).consumed(), 40);
    let again = subscribed(&cluster, "g");
    assert!(again.poll(SHORT).unwrap().is_empty());
}

#[test]
fn a_stop_ends_waiting_polls_and_waits_for_those_at_work() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..10);
    let consumer = assigned(&cluster, "g");
    let (polled, at_work) = channel();
    let (go_on, work) = channel::<()>();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let batch = consumer.poll(LONG).unwrap();
            polled.send(batch.len()).unwrap();
            work.recv().unwrap();
            consumer.poll(LONG).unwrap_err().kind()
        });
        assert_eq!(at_work.recv_timeout(LONG).unwrap(), 10);
        let waiter = scope.spawn(|| consumer.poll(LONG).unwrap_err().kind());
        let stopping = scope.spawn(|| consumer.shutdown(LONG));
        assert_eq!(waiter.join().unwrap(), ErrorKind::State);
        assert!(!stopping.is_finished(), "a batch is in hand");
        go_on.send(()).unwrap();
        assert_eq!(worker.join().unwrap(), ErrorKind::State);
        let report = stopping.join().unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.committed()[&queue(0)], 10);
    });
}

#[test]
fn a_batch_that_is_never_finished_is_reported_and_comes_again() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..10);
    let consumer = assigned(&cluster, "g");
    let (go_on, work) = channel::<()>();
    let (polled, at_work) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            consumer.poll(LONG).unwrap();
            polled.send(()).unwrap();
            let _ = work.recv();
        });
        at_work.recv_timeout(LONG).unwrap();
        let report = consumer.shutdown(Duration::from_millis(20));
        assert_eq!(report.unfinished(), 10);
        drop(go_on);
    });
    assert_eq!(poll_count(&assigned(&cluster, "g"), 10)[0], 0);
}

#[test]
fn a_drop_while_unwinding_handles_nothing_and_a_drop_in_peace_does() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..10);
    let panicked = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let consumer = assigned(&cluster, "g");
            poll_count(&consumer, 10);
            panic!("while at work, on purpose");
        });
        worker.join().is_err()
    });
    assert!(panicked);
    let consumer = assigned(&cluster, "g");
    assert_eq!(poll_count(&consumer, 10)[0], 0, "they come again");
    drop(consumer);
    assert!(assigned(&cluster, "g").poll(SHORT).unwrap().is_empty());
}

#[test]
fn a_second_consumer_of_a_group_under_one_client_id_is_refused_and_harms_nothing() {
    let cluster = cluster("orders", 1);
    let build = || builder(&cluster, "g").subscribe("orders", "*").instance_name("twin").start();
    let first = build().unwrap();
    assert_eq!(build().unwrap_err().kind(), ErrorKind::State);
    send(&cluster, 0..1);
    poll_count(&first, 1);
    first.shutdown(LONG);
    build().unwrap();
}
