//! What reaches the listener, how often, and what moves the offset.

use crate::support::*;
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, Message, MessageExt, PushConsumer,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn every_message_arrives_once_and_the_offset_follows() {
    let cluster = cluster("orders", 4);
    send(&cluster, "orders", 0..200);
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    let all = receive_until(&seen, "200 messages", |all| all.len() == 200);
    assert!(counts(&all).values().all(|count| *count == 1));
    wait_until("no lag", || consumer.lag().unwrap().iter().all(|(_, lag)| *lag == 0));
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.consumed(), 200);
    let stored: i64 =
        report.committed().iter().filter(|(queue, _)| queue.topic() == "orders").map(|(_, offset)| offset).sum();
    assert_eq!(stored, 200);
}

#[test]
fn a_restart_goes_on_where_the_group_stopped() {
    let cluster = cluster("orders", 4);
    send(&cluster, "orders", 0..100);
    let (listener, seen) = recording(accept);
    let first = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    receive_until(&seen, "the first 100", |all| all.len() == 100);
    assert!(first.shutdown(LONG).is_clean());
    send(&cluster, "orders", 100..150);
    let (listener, seen) = recording(accept);
    let _second = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    let all = receive_until(&seen, "the next 50", |all| all.len() >= 50);
    assert!(all.iter().all(|one| one.body.parse::<usize>().unwrap() >= 100), "{:?}", counts(&all));
}

#[test]
fn a_failed_message_comes_again_under_its_own_topic_and_ends_as_a_dead_letter() {
    let cluster = cluster("orders", 2);
    send(&cluster, "orders", 0..3);
    let (listener, seen) = recording(|message| match message.body() {
        b"1" => ConsumeConcurrentlyStatus::ReconsumeLater,
        _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
    });
    let _consumer = builder(&cluster, "g", "orders").max_reconsume_times(Some(2)).listener(listener).start().unwrap();
    let all = receive_until(&seen, "3 tries of message 1", |all| counts(all).get("1") == Some(&3));
    let tries: Vec<_> = all.iter().filter(|one| one.body == "1").collect();
    assert_eq!(tries.iter().map(|one| one.reconsume_times).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(tries.iter().all(|one| one.topic == "orders"));
    assert!(tries[1..].iter().all(|one| one.queue.topic() == "%RETRY%g"));

    let (listener, dead) = recording(accept);
    let _reader = builder(&cluster, "reader", "%DLQ%g").listener(listener).start().unwrap();
    let dead = receive_until(&dead, "the dead letter", |all| !all.is_empty());
    assert_eq!(dead[0].body, "1");
    assert_eq!(dead[0].reconsume_times, 3);
}

#[test]
fn only_the_named_messages_of_a_batch_come_again() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..20);
    let (sender, seen) = channel();
    let listener = move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
        for (index, message) in messages.iter().enumerate() {
            let one = Seen::of(message);
            if one.reconsume_times == 0 && ["5", "13"].contains(&&*one.body) {
                context.retry(index);
            }
            sender.send(one).unwrap();
        }
        ConsumeConcurrentlyStatus::ReconsumeLater
    };
    // Without a named index the answer would be for all, so the second delivery needs another one.
    let second = Mutex::new(());
    let listener = move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
        let _one_at_a_time = second.lock().unwrap();
        let status = listener(messages, context);
        let named = messages
            .iter()
            .any(|message| message.reconsume_times() == 0 && [&b"5"[..], b"13"].contains(&message.body()));
        if named { status } else { ConsumeConcurrentlyStatus::ConsumeSuccess }
    };
    let consumer = builder(&cluster, "g", "orders").consume_batch_size(20).listener(listener).start().unwrap();
    let all = receive_until(&seen, "20 messages and 2 again", |all| all.len() == 22);
    let again: Vec<_> = all.iter().filter(|one| one.reconsume_times == 1).map(|one| &*one.body).collect();
    assert_eq!(again.len(), 2, "{again:?}");
    assert!(again.contains(&"5") && again.contains(&"13"));
    wait_until("the offset is past all 20", || {
        consumer.assignment().iter().any(|state| state.queue().topic() == "orders" && state.commit_offset() == Some(20))
    });
}

#[test]
fn a_panic_is_a_failed_message_and_costs_no_worker() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..100);
    let (listener, seen) = recording(|message| {
        assert!(message.reconsume_times() > 0, "a panic on purpose");
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let _consumer = builder(&cluster, "g", "orders").consume_threads(4).listener(listener).start().unwrap();
    let all = receive_until(&seen, "all 100 on their second try", |all| all.len() == 100);
    assert!(counts(&all).values().all(|count| *count == 1));
}

#[test]
fn tags_are_compared_as_text_also_when_their_hashes_collide() {
    let cluster = cluster("orders", 2);
    let producer = producer(&cluster);
    for (body, tag) in [("1", Some("Aa")), ("2", Some("BB")), ("3", None), ("4", Some("C")), ("5", Some("c"))] {
        let message = Message::new("orders", body);
        producer.send(&tag.map_or(message.clone(), |tag| message.with_tags(tag))).unwrap();
    }
    producer.send(&Message::new("orders", "6").with_tags("Aa")).unwrap();
    let (listener, seen) = recording(accept);
    let consumer = PushConsumer::builder("g")
        .name_servers(cluster.name_servers())
        .subscribe("orders", "Aa || C")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .listener(listener)
        .start()
        .unwrap();
    let all = receive_until(&seen, "three messages", |all| all.len() == 3);
    let mut bodies: Vec<_> = all.iter().map(|one| &*one.body).collect();
    bodies.sort();
    assert_eq!(bodies, ["1", "4", "6"]);
    // What was filtered away is passed by the offset too.
    wait_until("no lag", || consumer.lag().unwrap().iter().all(|(_, lag)| *lag == 0));
    assert!(seen.try_recv().is_err());
}

#[test]
fn large_bodies_properties_and_keys_arrive_as_they_were_sent() {
    let cluster = cluster("orders", 1);
    let body = "ünïcödé 标签 ".repeat(2000);
    let message = Message::new("orders", body.clone())
        .with_tags("标签")
        .with_keys(["k1", "k2"])
        .with_property("colour", "grün")
        .with_flag(7);
    producer(&cluster).send(&message).unwrap();
    let (sender, seen) = channel();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        sender.send(messages[0].clone()).unwrap();
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let _consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    let got = seen.recv_timeout(LONG).unwrap();
    assert_eq!(got.body(), body.as_bytes());
    assert!(got.store_size() < body.len(), "it travelled compressed");
    assert_eq!((got.tags(), got.keys(), got.property("colour")), (Some("标签"), Some("k1 k2"), Some("grün")));
    assert_eq!(got.flag(), 7);
}

#[test]
fn small_limits_slow_a_consumer_down_and_never_stop_it() {
    let cluster = cluster("orders", 3);
    send(&cluster, "orders", 0..600);
    let done = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = done.clone();
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(3)
        .pull_batch_size(8)
        .pull_threshold_for_queue(5)
        .consume_max_span(6)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            counter.fetch_add(messages.len(), Ordering::SeqCst);
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    wait_until("all 600", || done.load(Ordering::SeqCst) == 600);
    wait_until("nothing is cached", || consumer.assignment().iter().all(|state| state.cached_messages() == 0));
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_group_that_starts_at_a_time_or_at_the_end_skips_what_was_before() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..10);
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "late", "orders")
        .consume_from(ConsumeFromWhere::Timestamp(std::time::SystemTime::now() + Duration::from_secs(3600)))
        .listener(listener)
        .start()
        .unwrap();
    wait_until("the queue is pulled from its end", || {
        consumer.assignment().iter().any(|state| state.queue().topic() == "orders" && state.next_offset() == 10)
    });
    send(&cluster, "orders", 10..11);
    let all = receive_until(&seen, "the new message", |all| !all.is_empty());
    assert_eq!(all[0].body, "10");
}
