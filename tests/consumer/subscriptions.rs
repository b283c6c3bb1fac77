//! Subscriptions that change while the consumer runs.

use crate::support::*;
use rocketmq_sync::{ConsumeConcurrentlyStatus, EmbeddedCluster, ErrorKind, Message, QueuePhase};
use std::time::{Duration, Instant};

fn two_topics() -> EmbeddedCluster {
    let levels = vec!["100ms"; 18].join(" ");
    EmbeddedCluster::builder().topic("a", 2).topic("b", 2).delay_levels(levels).start().unwrap()
}

/// Far longer than a test: what happens soon happens without the periodic rounds.
const RARE: Duration = Duration::from_secs(100);

#[test]
fn a_topic_subscribed_later_is_consumed_without_waiting_for_a_periodic_round() {
    let cluster = two_topics();
    send(&cluster, "b", 0..10);
    let (listener, seen) = recording(accept);
    let builder = builder(&cluster, "g", "a").rebalance_interval(RARE).heartbeat_interval(RARE).route_interval(RARE);
    let consumer = builder.listener(listener).start().unwrap();
    wait_until("the first topic is held", || held(&consumer, "a").len() == 2);
    let before = Instant::now();
    consumer.subscribe("b", "*").unwrap();
    let all = receive_until(&seen, "the other topic's messages", |all| all.len() == 10);
    assert!(all.iter().all(|one| one.topic == "b"));
    assert!(before.elapsed() < RARE);
    assert_eq!(held(&consumer, "a").len(), 2, "the first topic is kept");
}

#[test]
fn an_unsubscribed_topic_is_given_up_politely_and_taken_up_where_it_ended() {
    let cluster = two_topics();
    let (listener, seen) = recording(accept);
    let builder = builder(&cluster, "g", "a").subscribe("b", "*").rebalance_interval(RARE).heartbeat_interval(RARE);
    let consumer = builder.listener(listener).start().unwrap();
    send(&cluster, "b", 0..20);
    receive_until(&seen, "the first 20", |all| all.len() == 20);
    assert!(consumer.unsubscribe("b").unwrap());
    wait_until("its queues are given up", || held(&consumer, "b").is_empty());
    assert!(!consumer.unsubscribe("b").unwrap(), "it is not subscribed any more");
    send(&cluster, "b", 20..30);
    send(&cluster, "a", 100..110);
    let all = receive_until(&seen, "the other topic goes on", |all| all.len() == 10);
    assert!(all.iter().all(|one| one.topic == "a"), "{all:?}");
    consumer.subscribe("b", "*").unwrap();
    let all = receive_until(&seen, "what came meanwhile", |all| all.len() >= 10);
    let mut bodies: Vec<_> = all.iter().map(|one| one.body.parse::<usize>().unwrap()).collect();
    bodies.sort();
    assert_eq!(bodies, (20..30).collect::<Vec<_>>(), "nothing twice and nothing lost");
}

#[test]
fn the_retry_topic_stays_whatever_is_unsubscribed() {
    let cluster = two_topics();
    let (listener, seen) = recording(|message| match message.reconsume_times() {
        0 => ConsumeConcurrentlyStatus::ReconsumeLater,
        _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
    });
    let consumer = builder(&cluster, "g", "a").subscribe("b", "*").listener(listener).start().unwrap();
    assert_eq!(consumer.unsubscribe("%RETRY%g").unwrap_err().kind(), ErrorKind::Config);
    wait_until("all is held", || consumer.assignment().iter().all(|queue| queue.phase() == QueuePhase::Pulling));
    consumer.unsubscribe("b").unwrap();
    send(&cluster, "a", 0..1);
    let all = receive_until(&seen, "it comes again", |all| all.len() == 2);
    assert_eq!(all[1].reconsume_times, 1);
}

#[test]
fn another_selector_takes_effect_and_the_same_one_changes_nothing() {
    let cluster = cluster("orders", 1);
    let (listener, seen) = recording(accept);
    let builder = builder(&cluster, "g", "orders").subscribe("orders", "x").pull_suspend(Duration::from_secs(1));
    let consumer = builder.heartbeat_interval(RARE).listener(listener).start().unwrap();
    wait_until("the queue is held", || !held(&consumer, "orders").is_empty());
    let epoch = consumer.assignment()[0].epoch();
    consumer.subscribe("orders", "x").unwrap();
    consumer.subscribe("orders", "x || y").unwrap();
    let producer = producer(&cluster);
    for tag in ["z", "y", "x"] {
        producer.send(&Message::new("orders", tag).with_tags(tag)).unwrap();
    }
    let all = receive_until(&seen, "both tags", |all| all.len() == 2);
    assert_eq!(counts(&all).keys().copied().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(consumer.assignment()[0].epoch(), epoch, "the queue was kept");
}

#[test]
fn after_the_stop_nothing_can_be_subscribed() {
    let cluster = two_topics();
    let (listener, _) = recording(accept);
    let consumer = builder(&cluster, "g", "a").listener(listener).start().unwrap();
    for illegal in ["", "a b"] {
        assert_eq!(consumer.subscribe(illegal, "*").unwrap_err().kind(), ErrorKind::Config);
    }
    assert_eq!(consumer.subscribe("b", "||").unwrap_err().kind(), ErrorKind::Config);
    consumer.shutdown(LONG);
    assert_eq!(consumer.subscribe("b", "*").unwrap_err().kind(), ErrorKind::State);
    assert_eq!(consumer.unsubscribe("a").unwrap_err().kind(), ErrorKind::State);
}
