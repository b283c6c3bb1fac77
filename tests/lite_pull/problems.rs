//! Problems of a group are told, once, and listed while they last.

use crate::support::*;
use rocketmq_sync::{ConsumerEvent, EmbeddedCluster};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn members_with_other_topics_are_told_and_health_is_good_again_without_them() {
    let cluster = EmbeddedCluster::builder().topic("orders", 2).topic("others", 2).start().unwrap();
    let (sender, events) = channel();
    let quick = |topic| builder(&cluster, "g").heartbeat_interval(Duration::from_millis(300)).subscribe(topic, "*");
    let first = quick("orders")
        .event_listener(move |event| {
            let _ = sender.send(event.clone());
        })
        .start()
        .unwrap();
    let second = quick("others").start().unwrap();
    let event = loop {
        let event = events.recv_timeout(LONG).unwrap();
        if event.kind() == "subscription_conflict" {
            break event;
        }
    };
    let ConsumerEvent::SubscriptionConflict { topic, members, .. } = &event else { panic!("{event:?}") };
    assert!(["orders", "others"].contains(&&**topic), "{event}");
    assert!(members.is_empty() || members.contains(&second.client_id().to_owned()), "{event}");
    assert!(first.health().is_running() && !first.health().is_good());
    second.shutdown(LONG);
    wait_until("the problem is over", || first.health().is_good());
    first.shutdown(LONG);
    assert!(!first.health().is_running());
}

#[test]
fn a_paused_queue_stands_still_until_it_is_resumed() {
    let cluster = cluster("orders", 1);
    let consumer = assigned(&cluster, "g");
    consumer.pause(&[queue(0)]);
    send(&cluster, 0..1);
    wait_until("the pull rests", || {
        consumer.health().standing_still().any(|queue| queue.standing_still() == Some("paused"))
    });
    consumer.resume(&[queue(0)]);
    wait_until("it is pulled again", || consumer.health().is_good());
}
