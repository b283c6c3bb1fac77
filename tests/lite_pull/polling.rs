//! What a poll returns, and what ends its wait.

use crate::support::*;
use rocketmq_sync::{EmbeddedCluster, ErrorKind, LitePullConsumer, Message, MessageQueue, MessageSelector};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn every_message_comes_once_and_in_order_within_its_queue() {
    let cluster = cluster("orders", 4);
    send(&cluster, 0..200);
    let consumer = subscribed(&cluster, "g");
    let mut by_queue: BTreeMap<MessageQueue, Vec<i64>> = BTreeMap::new();
    let mut count = 0;
    while count < 200 {
        let messages = consumer.poll(LONG).unwrap();
        assert!(messages.len() <= 10, "one pulled batch at a time");
        count += messages.len();
        for message in messages {
            by_queue.entry(message.message_queue().clone()).or_default().push(message.queue_offset());
        }
    }
    assert_eq!(by_queue.len(), 4);
    for (queue, offsets) in by_queue {
        assert_eq!(offsets, (0..50).collect::<Vec<_>>(), "{queue}");
    }
    assert!(consumer.poll(SHORT).unwrap().is_empty());
    assert_eq!((consumer.polled(), consumer.consumed()), (200, 200));
}

#[test]
fn a_waiting_poll_is_ended_by_an_arrival() {
    let cluster = cluster("orders", 1);
    let consumer = assigned(&cluster, "g");
    std::thread::scope(|scope| {
        let polled = scope.spawn(|| consumer.poll(LONG).unwrap());
        send(&cluster, 0..1);
        assert_eq!(polled.join().unwrap().len(), 1);
    });
}

#[test]
fn a_wakeup_ends_the_poll_that_waits_or_else_the_next_one() {
    let cluster = cluster("orders", 1);
    let consumer = assigned(&cluster, "g");
    consumer.wakeup();
    assert_eq!(consumer.poll(LONG).unwrap_err().kind(), ErrorKind::Interrupted);
    assert!(consumer.poll(Duration::ZERO).unwrap().is_empty(), "once");
    std::thread::scope(|scope| {
        let polls: Vec<_> = (0..3).map(|_| scope.spawn(|| consumer.poll(LONG).map(|list| list.len()))).collect();
        // Before they wait a wakeup ends one of them only, so it is repeated.
        wait_until("all polls are ended", || {
            consumer.wakeup();
            polls.iter().all(|poll| poll.is_finished())
        });
        for poll in polls {
            assert_eq!(poll.join().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
        }
    });
}

#[test]
fn threads_that_poll_together_share_the_messages() {
    let cluster = cluster("orders", 4);
    send(&cluster, 0..400);
    let consumer = Arc::new(subscribed(&cluster, "g"));
    let (sender, seen) = channel();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (consumer, sender) = (consumer.clone(), sender.clone());
            std::thread::spawn(move || {
                while let Ok(messages) = consumer.poll(LONG) {
                    messages.iter().for_each(|message| sender.send(number(message)).unwrap());
                }
            })
        })
        .collect();
    let mut all: Vec<_> = (0..400).map(|_| seen.recv_timeout(LONG).unwrap()).collect();
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(sender);
    all.extend(seen.try_iter());
    all.sort_unstable();
    assert_eq!(all, (0..400).collect::<Vec<_>>());
    assert_eq!(report.committed().values().sum::<i64>(), 400);
}

#[test]
fn a_paused_queue_gives_nothing_that_was_fetched_before_and_goes_on_where_it_was() {
    let cluster = cluster("orders", 2);
    send(&cluster, 0..100);
    let consumer = builder(&cluster, "g").assign([queue(0), queue(1)]).start().unwrap();
    wait_until("both are fetched", || {
        consumer.assignment().iter().filter(|state| state.cached_messages() == 50).count() == 2
    });
    consumer.pause(&[queue(0)]);
    assert_eq!(consumer.paused(), [queue(0)]);
    let mut count = 0;
    while count < 50 {
        let messages = consumer.poll(LONG).unwrap();
        assert!(messages.iter().all(|message| *message.message_queue() == queue(1)));
        count += messages.len();
    }
    assert!(consumer.poll(SHORT).unwrap().is_empty());
    std::thread::scope(|scope| {
        let polled = scope.spawn(|| consumer.poll(LONG).unwrap());
        consumer.resume(&[queue(0)]);
        assert_eq!(polled.join().unwrap()[0].queue_offset(), 0);
    });
    assert_eq!(poll_count(&consumer, 40).len(), 40);
    // The pull that rested goes on too.
    send(&cluster, 100..102);
    poll_count(&consumer, 2);
}

#[test]
fn what_is_fetched_ahead_is_bounded_and_polls_make_room() {
    let cluster = cluster("orders", 4);
    send(&cluster, 0..400);
    let consumer = builder(&cluster, "g")
        .subscribe("orders", "*")
        .pull_threshold_for_queue(20)
        .pull_threshold_for_all(50)
        .start()
        .unwrap();
    let cached = |consumer: &LitePullConsumer| -> usize {
        consumer.assignment().iter().map(|state| state.cached_messages()).sum()
    };
    wait_until("the limits hold pulls back", || {
        let states = consumer.assignment();
        states.len() == 4 && states.iter().all(|state| state.standing_still().is_some())
    });
    // Above a limit by one batch at the most, each.
    assert!(cached(&consumer) <= 4 * 30, "{}", cached(&consumer));
    let all = poll_count(&consumer, 400);
    assert_eq!(all.len(), 400);
}

#[test]
fn tags_filter_in_both_modes() {
    let cluster = cluster("orders", 1);
    let producer = producer(&cluster);
    // "Aa" and "BB" have one hash, so brokers give both.
    for (body, tag) in [("1", "Aa"), ("2", "BB"), ("3", "C"), ("4", "Aa")] {
        producer.send(&Message::new("orders", body).with_tags(tag)).unwrap();
    }
    let by_subscription = builder(&cluster, "a").subscribe("orders", "Aa || D").start().unwrap();
    let by_assignment =
        builder(&cluster, "b").assign([queue(0)]).selector_for_assigned("orders", "Aa").start().unwrap();
    for consumer in [by_subscription, by_assignment] {
        assert_eq!(poll_count(&consumer, 2), [1, 4]);
        assert!(consumer.poll(SHORT).unwrap().is_empty());
        wait_until("what was filtered away is passed", || consumer.position(&queue(0)).unwrap() == Some(4));
    }
}

#[test]
fn subscribing_and_assigning_exclude_each_other() {
    let cluster = cluster("orders", 1);
    let both = builder(&cluster, "g").subscribe("orders", "*").assign([queue(0)]).start().unwrap_err();
    assert_eq!(both.kind(), ErrorKind::State);
    let subscribed = subscribed(&cluster, "g");
    assert_eq!(subscribed.assign([queue(0)]).unwrap_err().kind(), ErrorKind::State);
    let assigned = builder(&cluster, "h").assign([queue(0)]).start().unwrap();
    assert_eq!(assigned.subscribe("orders", "*").unwrap_err().kind(), ErrorKind::State);
    let late = builder(&cluster, "i").start().unwrap();
    late.subscribe("orders", "*").unwrap();
    assert_eq!(late.assign([queue(0)]).unwrap_err().kind(), ErrorKind::State);
    wait_until("the queue is held", || held(&late) == [queue(0)]);
    late.unsubscribe("orders");
    wait_until("it is given up", || held(&late).is_empty());
}

#[test]
fn wrong_settings_are_named() {
    let error = LitePullConsumer::builder("g").name_servers("127.0.0.1:1").set("auto_commit_interval", "10ms").unwrap();
    let error = error.start().unwrap_err();
    assert!(error.to_string().contains("auto_commit_interval (ms) is 10"), "{error}");
    let error = LitePullConsumer::builder("g").set("no_such_item", "1").unwrap_err();
    assert!(error.to_string().contains("no_such_item"), "{error}");
    let error = LitePullConsumer::builder("g").set("consume_from", "middle").unwrap_err();
    assert!(error.to_string().contains("middle"), "{error}");
}

#[test]
fn an_sql92_condition_filters_and_one_that_the_broker_refuses_ends_the_start() {
    let cluster = EmbeddedCluster::builder().topic("orders", 1).property_filter(true).start().unwrap();
    let producer = producer(&cluster);
    for amount in ["5", "50", "500"] {
        producer.send(&Message::new("orders", amount).with_property("amount", amount)).unwrap();
    }
    let assign = |condition: &str| {
        let selector = MessageSelector::sql92(condition);
        builder(&cluster, "a").assign([queue(0)]).selector_for_assigned("orders", selector).start()
    };
    assert_eq!(poll_count(&assign("amount > 10").unwrap(), 2), [50, 500]);
    assert_eq!(assign("amount >").unwrap_err().kind(), ErrorKind::Broker);
    let subscribed = builder(&cluster, "b").subscribe("orders", MessageSelector::sql92("amount < 10")).start().unwrap();
    assert_eq!(poll_count(&subscribed, 1), [5]);
    assert_eq!(subscribed.subscribe("orders", MessageSelector::sql92("(")).unwrap_err().kind(), ErrorKind::Broker);
}
