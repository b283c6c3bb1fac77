//! Suspending and resuming, and the limits of what is cached.

use crate::support::*;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode};
use rocketmq_sync::thread::Latch;
use rocketmq_sync::{
    ConsumeConcurrentlyStatus, ConsumeOrderlyContext, ConsumeOrderlyStatus, EmbeddedCluster, ErrorKind, Fault, Message,
    MessageExt, MessageQueue, PushConsumer,
};
use std::time::Duration;

fn two_topics() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("a", 1).topic("b", 1).start().unwrap()
}

fn cached(consumer: &PushConsumer, topic: &str) -> Vec<usize> {
    let states = consumer.assignment();
    states.iter().filter(|state| state.queue().topic() == topic).map(|state| state.cached_messages()).collect()
}

#[test]
fn what_is_cached_waits_too_and_other_topics_go_on() {
    let cluster = two_topics();
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = recording(move |message| {
        if message.body() == b"0" {
            assert!(wait.wait_timeout(LONG));
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let builder = builder(&cluster, "g", "a").subscribe("b", "*").consume_threads(1);
    let consumer = builder.listener(listener).start().unwrap();
    wait_until("both are held", || held(&consumer, "a").len() + held(&consumer, "b").len() == 2);
    send(&cluster, "a", 0..10);
    wait_until("all is cached", || cached(&consumer, "a") == [10]);
    consumer.suspend_topic("a");
    assert!(!consumer.is_suspended(), "only a topic is");
    go.set();
    // The one worker takes what came in order: these come behind all that is cached of the other topic.
    send(&cluster, "b", 100..110);
    let all = receive_until(&seen, "the other topic", |all| all.iter().filter(|one| one.topic == "b").count() == 10);
    assert_eq!(all.iter().filter(|one| one.topic == "a").count(), 1, "what was with the listener: {all:?}");
    wait_until("its result counts", || cached(&consumer, "a") == [9]);
    let state = consumer.assignment().into_iter().find(|state| state.queue().topic() == "a").unwrap();
    assert!(state.is_suspended() && state.standing_still() == Some("suspended"));
    assert!(consumer.health().is_good(), "the user's own wish is no problem");
    send(&cluster, "a", 10..20);
    consumer.resume_topic("a");
    let all = receive_until(&seen, "the rest", |all| all.len() == 19);
    assert!(counts(&all).values().all(|count| *count == 1), "{:?}", counts(&all));
    wait_until("no lag", || consumer.lag().unwrap().iter().all(|(_, lag)| *lag == 0));
}

#[test]
fn a_consumer_started_or_storming_between_the_two_loses_nothing() {
    let cluster = cluster("orders", 4);
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").pull_threshold_for_queue(2).listener(listener).start().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    consumer.suspend();
                    consumer.suspend_queue(&MessageQueue::new("orders", "broker-a", 1));
                    consumer.resume();
                    consumer.resume_queue(&MessageQueue::new("orders", "broker-a", 1));
                }
            });
        }
        send(&cluster, "orders", 0..200);
    });
    let all = receive_until(&seen, "all", |all| all.len() >= 200);
    assert!(all.len() == 200 && counts(&all).len() == 200, "each once: {:?}", counts(&all));
    wait_until("no lag", || consumer.lag().unwrap().iter().all(|(_, lag)| *lag == 0));
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn it_is_kept_while_queues_go_and_come_back() {
    let cluster = cluster("orders", 4);
    let (listener, seen) = recording(accept);
    let first = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    wait_until("all are held", || held(&first, "orders").len() == 4);
    first.suspend();
    assert!(first.is_suspended());
    let (other_listener, other_seen) = recording(accept);
    let second = builder(&cluster, "g", "orders").listener(other_listener).start().unwrap();
    wait_until("they share", || held(&first, "orders").len() == 2 && held(&second, "orders").len() == 2);
    send(&cluster, "orders", 0..20);
    receive_until(&other_seen, "the other one's half", |all| all.len() == 10);
    second.shutdown(LONG);
    wait_until("all are back", || held(&first, "orders").len() == 4);
    assert!(first.assignment().iter().all(|state| state.is_suspended()));
    send(&cluster, "orders", 20..24);
    first.resume();
    let all = receive_until(&seen, "its half and the rest", |all| all.len() >= 14);
    assert!(all.len() == 14 && counts(&all).len() == 14, "each once: {:?}", counts(&all));
}

#[test]
fn a_suspended_consumer_stops_at_once_and_leaves_what_is_cached_to_the_next() {
    let cluster = cluster("orders", 1);
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    wait_until("it is held", || held(&consumer, "orders").len() == 1);
    let is_second = |request: &RemotingCommand| {
        let field = |name| request.ext_fields.get(name);
        (field("topic"), field("queueOffset")) == (Some("orders"), Some("1"))
    };
    let pull = Fault::delay(Duration::from_millis(1)).on([RequestCode::PULL_MESSAGE]).when(is_second);
    let pulls = cluster.inject(pull);
    send(&cluster, "orders", 0..1);
    receive_until(&seen, "the first", |all| all.len() == 1);
    wait_until("the next pull is with the broker", || pulls.hits() > 0);
    // What it brings is kept.
    consumer.suspend();
    send(&cluster, "orders", 1..6);
    wait_until("something is cached", || cached(&consumer, "orders")[0] > 0);
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert!(seen.try_recv().is_err(), "nothing was handed out");
    let (listener, seen) = recording(accept);
    let _next = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    let all = receive_until(&seen, "the others", |all| all.len() >= 5);
    assert!(!counts(&all).contains_key("0"), "{:?}", counts(&all));
}

#[test]
fn the_limit_of_a_topic_is_shared_by_its_queues_and_an_illegal_one_is_named() {
    let cluster = cluster("orders", 4);
    let producer = producer(&cluster);
    for number in 0..40 {
        producer.send(&Message::new("orders", number.to_string())).unwrap();
    }
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = recording(move |_| {
        assert!(wait.wait_timeout(LONG));
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let limited = || builder(&cluster, "g", "orders").pull_batch_size(1).pull_threshold_for_topic(Some(8));
    let consumer = limited().listener(listener).start().unwrap();
    // Above two a queue is full, and one pull brings one message.
    let is_full = || {
        let states = consumer.assignment();
        let full =
            |state: &&rocketmq_sync::QueueState| state.standing_still().is_some_and(|why| why.contains("Messages"));
        states.iter().filter(full).count() == 4
    };
    wait_until("all are full", is_full);
    assert_eq!(cached(&consumer, "orders"), [3; 4]);
    go.set();
    receive_until(&seen, "all", |all| all.len() == 40);

    let (listener, _) = recording(accept);
    let error = limited().pull_threshold_for_topic(Some(0)).listener(listener).start().unwrap_err();
    assert!(
        error.kind() == ErrorKind::Config && error.to_string().contains("pull_threshold_for_topic is 0"),
        "{error}"
    );
    let set = |value| builder(&cluster, "g", "orders").set("pull_threshold_size_for_topic", value);
    let (listener, _) = recording(accept);
    let error = set("102401").unwrap().listener(listener).start().unwrap_err();
    assert!(error.to_string().contains("pull_threshold_size_for_topic"), "{error}");
    assert!(set("none").is_ok() && set("-1").is_err());
}

#[test]
fn the_memory_of_the_whole_consumer_is_limited_by_default() {
    let cluster = EmbeddedCluster::builder().topic("orders", 4).start().unwrap();
    let producer = producer(&cluster);
    // Noise, so that nothing shrinks under way: 6 MiB in all.
    let mut state = 1u32;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    });
    let body: Vec<u8> = noise.take(512 * 1024).collect();
    for _ in 0..12 {
        producer.send(&Message::new("orders", body.clone())).unwrap();
    }
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = recording(move |_| {
        assert!(wait.wait_timeout(LONG));
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let builder = builder(&cluster, "g", "orders").pull_batch_size(1).pull_threshold_size_total(1);
    let consumer = builder.pull_interval(Duration::from_millis(1)).listener(listener).start().unwrap();
    let is_full = || {
        let states = consumer.assignment();
        states.iter().filter(|state| state.standing_still().is_some_and(|why| why.contains("total"))).count() == 4
    };
    wait_until("all wait for room", is_full);
    let bytes: u64 = consumer.assignment().iter().map(|state| state.cached_bytes()).sum();
    // Each queue may have one message whatever the total, and a pull that was under way when the room ran out.
    assert!(bytes <= 8 * 512 * 1024, "{bytes}");
    go.set();
    receive_until(&seen, "all", |all| all.len() == 12);
}

#[test]
fn an_ordered_queue_stands_still_between_two_messages_and_goes_on_in_order() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..20);
    let (sender, seen) = std::sync::mpsc::channel();
    let go = Latch::new();
    let wait = go.clone();
    let consumer = builder(&cluster, "g", "orders")
        .listener_orderly(move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| {
            sender.send(Seen::of(&messages[0])).unwrap();
            if messages[0].body() == b"5" {
                assert!(wait.wait_timeout(LONG));
            }
            ConsumeOrderlyStatus::Success
        })
        .start()
        .unwrap();
    receive_until(&seen, "the first six", |all| all.len() == 6);
    consumer.suspend();
    go.set();
    wait_until("the sixth is done", || cached(&consumer, "orders") == [14]);
    assert!(seen.try_recv().is_err(), "nothing while it is suspended");
    consumer.resume();
    let all = receive_until(&seen, "the others", |all| all.len() == 14);
    assert!(all.iter().map(|one| one.body.clone()).eq((6..20).map(|number: i32| number.to_string())), "{all:?}");
}
