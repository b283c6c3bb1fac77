//! Ownerships that end, and callbacks that end them, while work is under way: nothing is lost, nothing stays counted.

use crate::support::*;
use rocketmq_sync::protocol::{RequestCode, ResponseCode};
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeOrderlyContext, ConsumeOrderlyStatus, ConsumerEvent,
    EmbeddedCluster, Fault, Message, MessageExt, MessageModel, PushConsumer, PushConsumerBuilder, QueuePhase,
    ShutdownReport,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Waits that only a defect makes long.
const FOR_EVER: Duration = Duration::from_secs(600);

fn committed(report: &ShutdownReport, topic: &str) -> i64 {
    report.committed().iter().filter(|(queue, _)| queue.topic() == topic).map(|(_, at)| at).sum()
}

#[test]
fn a_drain_ends_when_a_message_that_was_timed_out_is_sent_back_at_last() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..1);
    let codes = [RequestCode::CONSUMER_SEND_MSG_BACK, RequestCode::SEND_MESSAGE, RequestCode::SEND_MESSAGE_V2];
    let fault = cluster.inject(Fault::refuse(ResponseCode::SYSTEM_BUSY, "on purpose").on(codes));
    let (release, hang) = channel::<()>();
    let hang = Mutex::new(hang);
    let consumer = builder(&cluster, "g", "orders")
        .consume_timeout(Duration::from_millis(50))
        .revoke_grace(FOR_EVER)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            if messages[0].reconsume_times() == 0 {
                let _ = hang.lock().unwrap().recv();
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    wait_until("its time is up, and no broker takes it back", || consumer.failed() == 1 && fault.hits() > 0);
    drop(release);
    wait_until("the listener has returned", || consumer.stats().topics["orders"].calls == 1);
    consumer.unsubscribe("orders").unwrap();
    wait_until("the queue drains", || consumer.assignment().iter().any(|state| state.phase() == QueuePhase::Draining));
    fault.remove();
    wait_until("the queue is given up", || held(&consumer, "orders").is_empty());
    wait_until("it came again and was handled", || consumer.consumed() == 1);
    let stats = consumer.stats();
    assert_eq!((stats.topics["orders"].timed_out, stats.topics["orders"].consumed, stats.failed()), (1, 0, 1));
    assert!(consumer.shutdown(LONG).is_clean());
    assert_eq!(consumer.stats().cached_bytes, 0);
}

#[test]
fn an_event_of_the_stop_may_ask_for_the_stop() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..1);
    let folder = std::env::temp_dir().join(format!("rocketmq-sync-endings-{}", std::process::id()));
    let (listener, seen) = recording(accept);
    let consumer: Arc<OnceLock<PushConsumer>> = Arc::default();
    let inner = consumer.clone();
    let (sender, stops) = channel();
    let started = builder(&cluster, "g", "orders")
        .message_model(MessageModel::Broadcasting)
        .offset_store_dir(&folder)
        .persist_interval(Duration::from_secs(60))
        .event_listener(move |event| {
            if let ConsumerEvent::OffsetFileUnwritable { .. } = event {
                let _ = sender.send(inner.get().unwrap().shutdown(LONG).is_clean());
            }
        })
        .listener(listener)
        .start()
        .unwrap();
    assert!(consumer.set(started).is_ok());
    receive_until(&seen, "the message", |all| all.len() == 1);
    wait_until("it is finished", || consumer.get().unwrap().consumed() == 1);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    let (done, stopped) = channel();
    let stopping = consumer.clone();
    std::thread::spawn(move || done.send(stopping.get().unwrap().shutdown(LONG)));
    assert!(!stops.recv_timeout(LONG).unwrap(), "the stop itself was still running");
    let report = stopped.recv_timeout(LONG).unwrap();
    assert!(!report.is_clean() && !report.not_stored().is_empty(), "{report:?}");
    std::fs::remove_file(&folder).unwrap();
}

/// Sends so many messages with eight keys, their number as body.
fn send_keyed(cluster: &EmbeddedCluster, count: usize) {
    let producer = producer(cluster);
    for number in 0..count {
        let message =
            Message::new("orders", number.to_string()).with_property("__SHARDINGKEY", (number % 8).to_string());
        producer.send(&message).unwrap();
    }
}

/// What a listener did, and a user who changes everything from inside it.
#[derive(Default)]
struct Storm {
    consumer: OnceLock<PushConsumer>,
    /// The bodies handled, in order of their first delivery, by lane.
    first: Mutex<BTreeMap<String, Vec<usize>>>,
    inside: Mutex<BTreeSet<String>>,
    calls: Mutex<usize>,
    wrong: Mutex<Vec<String>>,
    revokes: bool,
}

impl Storm {
    /// One call; `lane` is what must not be entered twice at once.
    fn call(&self, message: &MessageExt, lane: Option<String>) {
        let number: usize = std::str::from_utf8(message.body()).unwrap().parse().unwrap();
        if let Some(lane) = &lane
            && !self.inside.lock().unwrap().insert(lane.clone())
        {
            self.wrong.lock().unwrap().push(format!("two listeners in {lane} at {number}"));
        }
        {
            let lane = lane.clone().unwrap_or_else(|| message.message_queue().to_string());
            let mut first = self.first.lock().unwrap();
            let known = first.entry(lane).or_default();
            if !known.contains(&number) {
                known.push(number);
            }
        }
        let calls = {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls
        };
        self.disturb(calls);
        if let Some(lane) = &lane {
            self.inside.lock().unwrap().remove(lane);
        }
    }

    fn disturb(&self, calls: usize) {
        let Some(consumer) = self.consumer.get() else { return };
        match calls % 23 {
            1 => consumer.suspend(),
            3 => consumer.resume(),
            5 => consumer.set_consume_threads(1 + calls % 5).unwrap(),
            7 => consumer.suspend_topic("orders"),
            9 => consumer.resume_topic("orders"),
            11 if self.revokes => assert!(consumer.unsubscribe("orders").is_ok()),
            13 if self.revokes => consumer.subscribe("orders", "*").unwrap(),
            15 => drop(consumer.stats()),
            17 => drop(consumer.assignment()),
            _ => {}
        }
    }

    fn handled(&self) -> usize {
        self.first.lock().unwrap().values().map(Vec::len).sum()
    }

    /// Runs until all came, undoing what no call is left to undo.
    fn run(self: &Arc<Self>, builder: PushConsumerBuilder, count: usize) {
        assert!(self.consumer.set(builder.start().unwrap()).is_ok());
        let consumer = self.consumer.get().unwrap();
        wait_until("all are handled", || {
            consumer.resume();
            consumer.resume_topic("orders");
            consumer.subscribe("orders", "*").unwrap();
            self.handled() == count
        });
        wait_until("all are finished", || {
            consumer.stats().cached_messages == 0 && !held(consumer, "orders").is_empty()
        });
        assert_eq!(self.wrong.lock().unwrap().as_slice(), [""; 0]);
        let report = consumer.shutdown(FOR_EVER);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(consumer.stats().cached_bytes, 0, "what is given up does not count");
        if !self.revokes {
            assert_eq!((committed(&report, "orders"), *self.calls.lock().unwrap()), (count as i64, count));
        }
    }

    fn assert_in_order(&self) {
        for (lane, numbers) in &*self.first.lock().unwrap() {
            assert!(numbers.is_sorted(), "{lane}: {numbers:?}");
        }
    }
}

fn lane_of(message: &MessageExt, by_key: bool) -> String {
    let key = message.property("__SHARDINGKEY").filter(|_| by_key).unwrap_or_default();
    format!("{} {key}", message.message_queue())
}

fn storm_concurrent(revokes: bool) {
    let cluster = cluster("orders", 2);
    send_keyed(&cluster, 300);
    let storm = Arc::new(Storm { revokes, ..Storm::default() });
    let inner = storm.clone();
    let builder = builder(&cluster, "g", "orders")
        .rebalance_min_interval(Duration::from_millis(10))
        .consume_threads(4)
        .pull_batch_size(8)
        .topic_concurrency("orders", 2)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            inner.call(&messages[0], None);
            ConsumeConcurrentlyStatus::ConsumeSuccess
        });
    storm.run(builder, 300);
}

fn storm_orderly(by_key: bool, revokes: bool) {
    let cluster = cluster("orders", 2);
    send_keyed(&cluster, 300);
    let storm = Arc::new(Storm { revokes, ..Storm::default() });
    let inner = storm.clone();
    let builder = builder(&cluster, "g", "orders")
        .rebalance_min_interval(Duration::from_millis(10))
        .consume_threads(4)
        .pull_batch_size(8)
        .order_by_key(by_key)
        .listener_orderly(move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| {
            inner.call(&messages[0], Some(lane_of(&messages[0], by_key)));
            ConsumeOrderlyStatus::Success
        });
    storm.run(builder, 300);
    storm.assert_in_order();
}

#[test]
fn a_listener_that_suspends_resizes_and_resumes_loses_nothing_and_repeats_nothing() {
    storm_concurrent(false);
    storm_orderly(false, false);
    storm_orderly(true, false);
}

#[test]
fn a_listener_that_unsubscribes_and_subscribes_loses_nothing() {
    storm_concurrent(true);
    storm_orderly(false, true);
    storm_orderly(true, true);
}
