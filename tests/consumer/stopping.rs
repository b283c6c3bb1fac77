//! The stop: what is finished, stored, reported.

use crate::support::*;
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageExt, PushConsumer, RebalanceEvent, RebalanceListener,
};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

#[test]
fn running_listeners_finish_and_only_the_rest_comes_again() {
    let cluster = cluster("orders", 1);
    // One pull brings them all: of two lists the second one may begin before the first is used up.
    send(&cluster, "orders", 0..30);
    let (started, waiting) = channel();
    let gate = Arc::new(Barrier::new(3));
    let listener_gate = gate.clone();
    let first = builder(&cluster, "g", "orders")
        .consume_threads(2)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            started.send(Seen::of(&messages[0])).unwrap();
            listener_gate.wait();
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    let in_work = receive_until(&waiting, "both workers are at work", |all| all.len() == 2);
    let report = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| first.shutdown(LONG));
        wait_until("the stop has begun", || {
            first.assignment().iter().all(|state| state.phase() >= rocketmq_sync::QueuePhase::Draining)
        });
        gate.wait();
        stopping.join().unwrap()
    });
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.consumed(), 2);
    let (listener, seen) = recording(accept);
    let _second = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    let rest = receive_until(&seen, "the other 28", |all| all.len() == 28);
    let rest = counts(&rest);
    assert!(in_work.iter().all(|one| !rest.contains_key(&*one.body)), "{in_work:?} {rest:?}");
}

#[test]
fn a_listener_that_hangs_is_reported_and_its_message_comes_again() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..1);
    let (started, waiting) = channel();
    let (release, hang) = channel::<()>();
    let hang = std::sync::Mutex::new(hang);
    let first = builder(&cluster, "g", "orders")
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            started.send(Seen::of(&messages[0])).unwrap();
            let _ = hang.lock().unwrap().recv();
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    waiting.recv_timeout(LONG).unwrap();
    let report = first.shutdown(Duration::from_millis(50));
    assert_eq!(report.unfinished(), 1);
    assert!(!report.is_clean());
    let (listener, seen) = recording(accept);
    let _second = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    receive_until(&seen, "the unfinished message", |all| all.len() == 1);
    drop(release);
}

#[test]
fn a_stop_from_a_listener_neither_blocks_nor_loses() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..1);
    let consumer: Arc<OnceLock<PushConsumer>> = Arc::default();
    let inner = consumer.clone();
    let (sender, seen) = channel();
    let started = builder(&cluster, "g", "orders")
        .listener(move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            wait_until("the test has stored the consumer", || inner.get().is_some());
            sender.send(inner.get().unwrap().shutdown(LONG).is_clean()).unwrap();
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    consumer.set(started).unwrap();
    assert!(!seen.recv_timeout(LONG).unwrap(), "the listener itself was still running");
    let report = consumer.get().unwrap().shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.consumed(), 1);
}

/// Stops its consumer as soon as a queue is assigned.
struct StopOnAssignment(Arc<OnceLock<PushConsumer>>, std::sync::mpsc::Sender<bool>);

impl RebalanceListener for StopOnAssignment {
    fn assigned(&self, _: &RebalanceEvent) {
        wait_until("the test has stored the consumer", || self.0.get().is_some());
        let _ = self.1.send(self.0.get().unwrap().shutdown(LONG).is_clean());
    }
}

#[test]
fn a_stop_from_a_rebalance_listener_neither_blocks_nor_panics() {
    let cluster = cluster("orders", 1);
    let consumer: Arc<OnceLock<PushConsumer>> = Arc::default();
    let (sender, seen) = channel();
    let (listener, _) = recording(accept);
    let builder = builder(&cluster, "g", "orders").rebalance_listener(StopOnAssignment(consumer.clone(), sender));
    consumer.set(builder.listener(listener).start().unwrap()).unwrap();
    assert!(!seen.recv_timeout(LONG).unwrap(), "the round itself was still running");
    assert!(consumer.get().unwrap().shutdown(LONG).is_clean());
}

#[test]
fn a_second_stop_gives_the_same_report_and_a_drop_stops_too() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..5);
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    receive_until(&seen, "5 messages", |all| all.len() == 5);
    let first = consumer.shutdown(LONG);
    assert_eq!(consumer.shutdown(LONG).committed(), first.committed());
    drop(consumer);
    let (listener, _seen) = recording(accept);
    drop(builder(&cluster, "g", "orders").listener(listener).start().unwrap());
}

#[test]
fn a_half_configured_consumer_says_what_is_missing() {
    let error = PushConsumer::builder("g").name_servers("127.0.0.1:1").start().unwrap_err();
    assert!(error.to_string().contains("listener"), "{error}");
    let (listener, _) = recording(accept);
    let error = PushConsumer::builder("g")
        .name_servers("127.0.0.1:1")
        .listener(listener)
        .pull_batch_size(0)
        .start()
        .unwrap_err();
    assert!(error.to_string().contains("pull_batch_size is 0"), "{error}");
    let error = PushConsumer::builder("g").set("no_such_item", "1").unwrap_err();
    assert!(error.to_string().contains("no_such_item"), "{error}");
}
