//! Problems of a group are told, once, and listed while they last.

use crate::support::*;
use rocketmq_sync::{ConsumerEvent, EmbeddedCluster, PushConsumer, PushConsumerBuilder};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn watched(builder: PushConsumerBuilder) -> (PushConsumer, Receiver<ConsumerEvent>) {
    let (sender, events) = channel();
    let (listener, _) = recording(accept);
    let builder = builder.heartbeat_interval(Duration::from_millis(300)).listener(listener);
    let builder = builder.event_listener(move |event| {
        let _ = sender.send(event.clone());
    });
    (builder.start().unwrap(), events)
}

fn wait_for(events: &Receiver<ConsumerEvent>, kind: &str) -> ConsumerEvent {
    loop {
        let event = events.recv_timeout(LONG).unwrap_or_else(|_| panic!("no event {kind}"));
        if event.kind() == kind {
            return event;
        }
    }
}

#[test]
fn members_with_other_topics_or_tags_are_named_to_both_sides() {
    let cluster = EmbeddedCluster::builder().topic("x", 2).topic("y", 2).start().unwrap();
    let (first, told_first) = watched(builder(&cluster, "g", "x"));
    let (second, told_second) = watched(builder(&cluster, "g", "y"));
    for (events, other) in [(&told_first, second.client_id()), (&told_second, first.client_id())] {
        let event = wait_for(events, "subscription_conflict");
        let ConsumerEvent::SubscriptionConflict { topic, members, .. } = &event else { panic!("{event:?}") };
        assert!(["x", "y"].contains(&&**topic), "{event}");
        assert!(members.is_empty() || members.contains(&other.to_owned()), "{event}");
    }
    assert!(!first.health().is_good());
    second.shutdown(LONG);
    wait_until("the problem is over", || first.health().problems().is_empty());
}

#[test]
fn twins_with_one_client_id_are_told() {
    let cluster = cluster("orders", 2);
    // One process refuses a twin, so each gets a unit of its own that makes no part of what the other one is told.
    let twin = || builder(&cluster, "g", "orders").client_ip("10.1.1.1").instance_name("same");
    let (first, told) = watched(twin());
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "problems::helper_process_of_the_twin_test", "--nocapture"])
        .env("TWIN_NAME_SERVERS", cluster.name_servers())
        .spawn();
    let mut helper = output.unwrap();
    let event = wait_for(&told, "duplicate_client_id");
    let ConsumerEvent::DuplicateClientId { client_id, addresses } = &event else { panic!("{event:?}") };
    assert_eq!(client_id, first.client_id());
    assert_eq!(addresses.len(), 2, "{event}");
    helper.kill().unwrap();
    helper.wait().unwrap();
}

/// Does nothing unless the test above starts it as a process of its own.
#[test]
fn helper_process_of_the_twin_test() {
    let Ok(name_servers) = std::env::var("TWIN_NAME_SERVERS") else { return };
    let (listener, _) = recording(accept);
    let _consumer = PushConsumer::builder("g")
        .name_servers(name_servers)
        .client_ip("10.1.1.1")
        .instance_name("same")
        .subscribe("orders", "*")
        .listener(listener)
        .start()
        .unwrap();
    // Until it is killed.
    wait_until("the end of the test", || false);
}

#[test]
fn more_members_than_queues_and_a_topic_without_route_are_told_and_listed() {
    let cluster = EmbeddedCluster::builder().topic("narrow", 1).start().unwrap();
    let (first, told) = watched(builder(&cluster, "g", "narrow").subscribe("missing", "*"));
    let event = wait_for(&told, "topic_without_route");
    assert!(event.to_string().contains("'missing'"), "{event}");
    let (second, _told) = watched(builder(&cluster, "g", "narrow").subscribe("missing", "*"));
    wait_for(&told, "more_members_than_queues");
    assert_eq!(first.health().problems().len(), 2);
    cluster.create_topic("missing", 4).unwrap();
    second.shutdown(LONG);
    wait_until("both are over", || first.health().problems().is_empty());
    assert!(first.health().is_running());
    first.shutdown(LONG);
    assert!(!first.health().is_running());
}
