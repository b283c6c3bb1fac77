//! The API used in ways nobody should, and the settings at their ends.

use crate::fake::*;
use rocketmq_sync::protocol::RequestCode;
use rocketmq_sync::thread::Latch;
use rocketmq_sync::{
    ConsumeConcurrentlyStatus, EmbeddedCluster, ErrorKind, Message, Producer, PushConsumer, RebalanceEvent,
    RebalanceListener,
};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where a callback finds the consumer that calls it.
type Slot = Arc<Mutex<Option<Arc<PushConsumer>>>>;

/// Waits until the test has put the consumer there, and stops it.
fn stop_from_inside(slot: &Slot, returned: &Sender<bool>) {
    let mut consumer = None;
    wait_until("the handle", || {
        consumer = lock(slot).clone();
        consumer.is_some()
    });
    let report = consumer.unwrap().shutdown(Duration::from_secs(2));
    let _ = returned.send(report.is_clean());
}

struct StopsWhenAssigned(Slot, Mutex<Sender<bool>>);

impl RebalanceListener for StopsWhenAssigned {
    fn assigned(&self, _: &RebalanceEvent) {
        stop_from_inside(&self.0, &lock(&self.1));
    }
}

/// The consumer has left its group and its threads are over.
fn must_be_gone(fake: &Fake, slot: &Slot) {
    wait_until("it leaves the group", || fake.count(RequestCode::UNREGISTER_CLIENT) > 0);
    wait_until("its connections are closed", || fake.connections().is_empty());
    let consumer = lock(slot).take().unwrap();
    assert!(!consumer.health().is_running());
    consumer.shutdown(LONG);
}

#[test]
fn a_stop_inside_the_rebalance_listener_returns_and_stops() {
    let fake = Fake::start(2);
    let slot = Slot::default();
    let (returned, back) = channel();
    let (listener, _seen) = collecting();
    let stopper = StopsWhenAssigned(slot.clone(), Mutex::new(returned));
    let consumer = fake.consumer().rebalance_listener(stopper).listener(listener).start().unwrap();
    *lock(&slot) = Some(Arc::new(consumer));
    back.recv_timeout(LONG).expect("the call returns");
    must_be_gone(&fake, &slot);
}

#[test]
fn a_stop_inside_the_event_listener_returns_and_stops() {
    let fake = Fake::start(1);
    fake.store(0, 42..43); // the correction from 0 is an event
    let slot = Slot::default();
    let (returned, back) = channel();
    let returned = Mutex::new(returned);
    let (listener, _seen) = collecting();
    let inside = slot.clone();
    let builder = fake.consumer().event_listener(move |_| stop_from_inside(&inside, &lock(&returned)));
    let consumer = builder.listener(listener).start().unwrap();
    *lock(&slot) = Some(Arc::new(consumer));
    back.recv_timeout(LONG).expect("the call returns");
    must_be_gone(&fake, &slot);
}

#[test]
fn a_stop_inside_an_event_of_a_round_returns_and_stops() {
    // No route for the topic: the event is told by the rebalance thread, inside a round.
    let fake = Fake::bare("a", "127.0.0.1:0".parse().unwrap());
    fake.state().routes.insert("other".into(), route(&[("a", 0, &fake.address())], 1));
    let slot = Slot::default();
    let (returned, back) = channel();
    let returned = Mutex::new(returned);
    let (listener, _seen) = collecting();
    let inside = slot.clone();
    let builder = fake.consumer().subscribe("other", "*").rebalance_interval(Duration::from_millis(50));
    let builder = builder.event_listener(move |_| stop_from_inside(&inside, &lock(&returned)));
    let consumer = builder.listener(listener).start().unwrap();
    *lock(&slot) = Some(Arc::new(consumer));
    back.recv_timeout(LONG).expect("the call returns");
    must_be_gone(&fake, &slot);
}

#[test]
fn a_stop_inside_the_message_listener_returns_and_stops() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    let slot = Slot::default();
    let (returned, back) = channel();
    let returned = Mutex::new(returned);
    let inside = slot.clone();
    let (listener, _seen) = deciding(move |_| {
        stop_from_inside(&inside, &lock(&returned));
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    *lock(&slot) = Some(Arc::new(fake.consumer().listener(listener).start().unwrap()));
    assert!(!back.recv_timeout(LONG).expect("the call returns"), "it cannot be clean, the listener runs");
    wait_until("the message is stored", || fake.commit_of(0) == Some(1));
    must_be_gone(&fake, &slot);
}

#[test]
fn two_threads_that_stop_one_consumer_get_one_report() {
    let fake = Fake::start(2);
    fake.store(0, 0..10);
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    take(&seen, 10);
    let reports = std::thread::scope(|scope| {
        let stops: Vec<_> = (0..4).map(|_| scope.spawn(|| consumer.shutdown(LONG))).collect();
        stops.into_iter().map(|stop| stop.join().unwrap()).collect::<Vec<_>>()
    });
    for report in &reports {
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.consumed(), 10);
        assert_eq!(report.committed(), reports[0].committed());
    }
    assert_eq!(fake.count(RequestCode::UNREGISTER_CLIENT), 1);
    // What is asked of it afterwards is answered, not hung up on.
    assert!(consumer.assignment().is_empty());
    assert_eq!(consumer.lag().map(|lag| lag.len()).unwrap_or(0), 0);
}

#[test]
fn a_consumer_without_subscriptions_starts_and_stops() {
    let fake = Fake::start(1);
    let (listener, _seen) = collecting();
    let started = PushConsumer::builder(GROUP).name_servers(fake.address()).listener(listener).start();
    match started {
        Ok(consumer) => {
            assert!(consumer.assignment().is_empty());
            assert!(consumer.shutdown(LONG).is_clean());
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Config, "{error}"),
    }
}

/// Threads of this process with such a name.
fn threads(name: &str) -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|task| task.trim_end().starts_with(name)).count()
}

#[test]
fn two_hundred_consumers_on_one_instance_add_only_their_workers() {
    let fake = Fake::start(1);
    let start = |number: usize| {
        let (listener, _seen) = collecting();
        let builder = PushConsumer::builder(format!("group-{number}")).name_servers(fake.address());
        let builder = builder.subscribe(TOPIC, "*").consume_threads(1).instance_name("two-hundred");
        builder.persist_interval(Duration::from_secs(60)).listener(listener).start().unwrap()
    };
    let consumers: Vec<_> = (0..200).map(start).collect();
    let id = consumers[0].client_id().to_owned();
    assert!(consumers.iter().all(|consumer| consumer.client_id() == id));
    assert_eq!(fake.state().accepted, 1, "one connection for all");
    wait_until("each has its queue", || consumers.iter().all(|consumer| consumer.assignment().len() == 1));
    // The names of other tests' threads are counted as well, so this bound is for what grows with the consumers.
    for service in ["rmq-io", "rmq-pull", "rmq-rebal", "rmq-timer"] {
        assert!(threads(service) < 100, "{} threads {service}", threads(service));
    }
    // The same group once more under the same id is refused.
    let (listener, _seen) = collecting();
    let twin = PushConsumer::builder("group-7").name_servers(fake.address()).instance_name("two-hundred");
    let error = twin.subscribe(TOPIC, "*").listener(listener).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State, "{error}");
    for consumer in &consumers {
        assert!(consumer.shutdown(LONG).is_clean());
    }
    wait_until("the connection is closed", || fake.connections().is_empty());
}

#[test]
fn the_largest_batch_sizes_deliver_everything_once() {
    let fake = Fake::start(1);
    fake.store(0, 0..3000);
    let (listener, seen) = collecting();
    let builder = fake.consumer().pull_batch_size(1024).pull_batch_bytes(16 << 20).consume_batch_size(1024);
    let consumer =
        builder.consume_max_span(65_535).pull_threshold_for_queue(65_535).listener(listener).start().unwrap();
    let bodies: std::collections::BTreeSet<_> = take(&seen, 3000).into_iter().collect();
    assert_eq!(bodies.len(), 3000);
    wait_until("the offset", || fake.commit_of(0) == Some(3000));
    assert!(consumer.shutdown(LONG).is_clean());
    assert!(seen.try_recv().is_err());
}

#[test]
fn the_smallest_limits_deliver_everything_once() {
    let fake = Fake::start(2);
    fake.store(0, 0..100);
    fake.store(1, 0..100);
    let (listener, seen) = collecting();
    let builder = fake.consumer().consume_max_span(1).pull_threshold_for_queue(1).pull_batch_size(32);
    let consumer = builder.consume_threads(1).listener(listener).start().unwrap();
    take(&seen, 200);
    wait_until("the offsets", || fake.commit_of(0) == Some(100) && fake.commit_of(1) == Some(100));
    assert!(consumer.shutdown(LONG).is_clean());
    assert!(seen.try_recv().is_err());
}

#[test]
fn settings_out_of_bounds_and_names_that_are_none_are_refused_before_anything_starts() {
    let good = || PushConsumer::builder("g").name_servers("127.0.0.1:1").subscribe("t", "*").listener(collecting().0);
    let bad = [
        good().consume_threads(0),
        good().consume_threads(usize::MAX),
        good().consume_batch_size(0),
        good().consume_batch_size(usize::MAX),
        good().pull_batch_size(-1),
        good().pull_batch_size(i32::MAX),
        good().pull_suspend(Duration::MAX),
        good().revoke_grace(Duration::MAX),
        good().persist_interval(Duration::ZERO),
        good().rebalance_interval(Duration::MAX),
        good().request_timeout(Duration::MAX),
        good().max_inflated_size(0),
        good().subscribe("", "*"),
        good().subscribe("white space", "*"),
        good().subscribe("t".repeat(1000), "*"),
        good().instance_name("a\u{1}b"),
        good().name_servers("nonsense"),
        PushConsumer::builder("").name_servers("127.0.0.1:1").listener(collecting().0),
        PushConsumer::builder("g\nh").name_servers("127.0.0.1:1").listener(collecting().0),
        PushConsumer::builder("g").name_servers("127.0.0.1:1"),
    ];
    for (number, builder) in bad.into_iter().enumerate() {
        let error = builder.start().err().unwrap_or_else(|| panic!("number {number} started"));
        assert_eq!(error.kind(), ErrorKind::Config, "number {number}: {error}");
    }
    let producer = Producer::builder("p").name_servers("127.0.0.1:1").start().unwrap();
    for message in [Message::new("", "x"), Message::new("t", ""), Message::new("t", vec![0u8; 5 << 20])] {
        let error = producer.send(&message).unwrap_err();
        assert!([ErrorKind::Config, ErrorKind::MessageIllegal].contains(&error.kind()), "{error}");
    }
    assert!(producer.send_batch(&[]).is_err());
}

#[test]
fn a_listener_longer_than_the_grace_of_a_revoked_queue_loses_it_and_moves_nothing_back() {
    let cluster = EmbeddedCluster::builder().topic(TOPIC, 2).start().unwrap();
    let producer = Producer::builder("p").name_servers(cluster.name_servers()).start().unwrap();
    let queues = producer.publish_queues(TOPIC).unwrap();
    for queue in &queues {
        producer.send_to_queue(&Message::new(TOPIC, format!("{}", queue.queue_id())), queue).unwrap();
    }
    let (lost, losses) = channel();
    struct Loses(Mutex<Sender<usize>>);
    impl RebalanceListener for Loses {
        fn lost(&self, event: &RebalanceEvent) {
            let _ = lock(&self.0).send(event.queues().len());
        }
    }
    let builder = || {
        PushConsumer::builder(GROUP)
            .name_servers(cluster.name_servers())
            .subscribe(TOPIC, "*")
            .consume_from(rocketmq_sync::ConsumeFromWhere::FirstOffset)
            .revoke_grace(Duration::from_millis(100))
            .takeover_delay(Duration::from_millis(100))
            .persist_interval(Duration::from_millis(50))
    };
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = deciding(move |_| {
        assert!(wait.wait_timeout(LONG));
        ConsumeConcurrentlyStatus::ReconsumeLater
    });
    let first = builder().rebalance_listener(Loses(Mutex::new(lost))).listener(listener).start().unwrap();
    take(&seen, 2);
    let (listener, taken) = collecting();
    let second = builder().listener(listener).start().unwrap();
    assert_eq!(losses.recv_timeout(LONG).unwrap(), 1);
    let body = take(&taken, 1).remove(0);
    wait_until("the new owner stored it", || {
        second
            .assignment()
            .iter()
            .any(|state| state.queue().queue_id().to_string() == body && state.committed_offset() == Some(1))
    });
    go.set();
    wait_until("the late ones are done", || first.failed() == 2);
    // Only the message of the queue that was kept is sent back: the other one was delivered by its new owner.
    wait_until("the kept queue is stored", || {
        first.assignment().iter().any(|state| state.queue().topic() == TOPIC && state.committed_offset() == Some(1))
    });
    let report = first.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    second.shutdown(LONG);
}
