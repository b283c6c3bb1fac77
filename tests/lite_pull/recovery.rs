//! Things that are away and come back.

use crate::support::*;
use rocketmq_sync::{EmbeddedCluster, ErrorKind};
use std::collections::BTreeSet;
use std::sync::mpsc::channel;

#[test]
fn a_broker_that_restarts_is_read_again_without_loss() {
    let cluster = cluster("orders", 4);
    let consumer = subscribed(&cluster, "g");
    send(&cluster, 0..50);
    let mut seen: BTreeSet<_> = poll_count(&consumer, 50).into_iter().collect();
    cluster.stop_broker("broker-a").unwrap();
    assert!(consumer.poll(SHORT).unwrap().is_empty());
    let error = consumer.seek_to_begin(&queue(0)).unwrap_err();
    assert_ne!(error.kind(), ErrorKind::State, "{error}");
    cluster.restart_broker("broker-a").unwrap();
    send(&cluster, 50..100);
    wait_until("the rest", || {
        seen.extend(consumer.poll(SHORT).unwrap().iter().map(number));
        seen.len() == 100
    });
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_name_server_that_is_away_is_waited_for_at_the_start_and_missed_by_nobody_later() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..10);
    cluster.stop_name_server();
    let subscribed = subscribed(&cluster, "a");
    let assigned = builder(&cluster, "b").assign([queue(0)]).start().unwrap();
    assert!(subscribed.poll(SHORT).unwrap().is_empty());
    assert!(subscribed.fetch_message_queues("orders").is_err());
    cluster.restart_name_server().unwrap();
    for consumer in [&subscribed, &assigned] {
        assert_eq!(poll_count(consumer, 10).len(), 10);
    }
    let producer = producer(&cluster);
    producer.send(&rocketmq_sync::Message::new("orders", "10")).unwrap();
    cluster.stop_name_server();
    producer.send(&rocketmq_sync::Message::new("orders", "11")).unwrap();
    for consumer in [&subscribed, &assigned] {
        assert_eq!(poll_count(consumer, 2), [10, 11]);
    }
}

#[test]
fn a_topic_that_appears_later_is_read() {
    let cluster = EmbeddedCluster::builder().start().unwrap();
    let consumer = subscribed(&cluster, "g");
    cluster.create_topic("orders", 2).unwrap();
    send(&cluster, 0..10);
    poll_count(&consumer, 10);
}

#[test]
fn an_offset_beyond_the_end_is_corrected_to_the_end_and_told() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..5);
    // A broker knows a group from its first heartbeat on.
    drop(assigned(&cluster, "g"));
    store_offset(&cluster, "g", 500);
    let (sender, events) = channel();
    let consumer = builder(&cluster, "g")
        .assign([queue(0)])
        .event_listener(move |event| {
            let _ = sender.send(event.kind());
        })
        .start()
        .unwrap();
    assert_eq!(events.recv_timeout(LONG).unwrap(), "offset_corrected");
    send(&cluster, 5..6);
    assert_eq!(poll_count(&consumer, 1), [5], "never back to the start");
}

/// Writes a group's offset of queue 0, as an operator's tool does.
fn store_offset(cluster: &EmbeddedCluster, group: &str, offset: i64) {
    use rocketmq_sync::protocol::header::UpdateConsumerOffsetRequestHeader;
    use rocketmq_sync::protocol::{RemotingCommand, RequestCode};
    let header = UpdateConsumerOffsetRequestHeader {
        consumer_group: group,
        topic: "orders",
        queue_id: 0,
        commit_offset: offset,
        bname: None,
    };
    ask_broker(cluster, RemotingCommand::request(RequestCode::UPDATE_CONSUMER_OFFSET, &header));
}
