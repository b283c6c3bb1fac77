//! Things that are away and come back.

use crate::support::*;
use rocketmq_sync::EmbeddedCluster;
use std::sync::mpsc::channel;

#[test]
fn a_topic_that_appears_after_the_start_is_consumed() {
    let cluster = EmbeddedCluster::builder().start().unwrap();
    let (listener, seen) = recording(accept);
    let _consumer = builder(&cluster, "g", "later").listener(listener).start().unwrap();
    cluster.create_topic("later", 2).unwrap();
    send(&cluster, "later", 0..10);
    receive_until(&seen, "10 messages of the new topic", |all| counts(all).len() == 10);
}

#[test]
fn a_name_server_that_is_away_at_the_start_is_waited_for() {
    let cluster = cluster("orders", 2);
    send(&cluster, "orders", 0..10);
    cluster.stop_name_server();
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    assert!(consumer.assignment().is_empty());
    cluster.restart_name_server().unwrap();
    receive_until(&seen, "all messages", |all| counts(all).len() == 10);
}

#[test]
fn a_broker_that_restarts_is_read_again_without_loss() {
    let cluster = cluster("orders", 4);
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    send(&cluster, "orders", 0..50);
    let mut all = receive_until(&seen, "the first 50", |all| counts(all).len() == 50);
    cluster.stop_broker("broker-a").unwrap();
    cluster.restart_broker("broker-a").unwrap();
    send(&cluster, "orders", 50..100);
    all.extend(receive_until(&seen, "the next 50", |more| {
        more.iter().filter(|one| one.body.parse::<usize>().unwrap() >= 50).count() == 50
    }));
    assert_eq!(counts(&all).len(), 100);
    assert_eq!(held(&consumer, "orders").len(), 4);
}

#[test]
fn an_offset_beyond_the_end_is_corrected_to_the_end_and_told() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..5);
    let (listener, seen) = recording(accept);
    let first = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    receive_until(&seen, "5 messages", |all| all.len() == 5);
    assert!(first.shutdown(LONG).is_clean());
    store_offset(&cluster, "g", "orders", 500);
    let (sender, events) = channel();
    let (listener, seen) = recording(accept);
    let _second = builder(&cluster, "g", "orders")
        .event_listener(move |event| {
            let _ = sender.send((event.kind(), event.to_string()));
        })
        .listener(listener)
        .start()
        .unwrap();
    let (kind, text) = events.recv_timeout(LONG).unwrap();
    assert_eq!(kind, "offset_corrected", "{text}");
    send(&cluster, "orders", 5..6);
    let all = receive_until(&seen, "the message behind the correction", |all| all.iter().any(|one| one.body == "5"));
    assert_eq!(all.len(), 1, "never back to the start: {all:?}");
}

/// Writes a group's offset of queue 0, as an operator's tool does.
fn store_offset(cluster: &EmbeddedCluster, group: &str, topic: &str, offset: i64) {
    use rocketmq_sync::protocol::header::UpdateConsumerOffsetRequestHeader;
    use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
    use rocketmq_sync::remoting::{NoRequests, RemotingClient, RemotingConfig};
    use rocketmq_sync::time::Deadline;
    let client = RemotingClient::start("tool", RemotingConfig::default(), std::sync::Arc::new(NoRequests)).unwrap();
    let header = UpdateConsumerOffsetRequestHeader {
        consumer_group: group,
        topic,
        queue_id: 0,
        commit_offset: offset,
        bname: None,
    };
    let request = RemotingCommand::request(RequestCode::UPDATE_CONSUMER_OFFSET, &header);
    let broker = std::sync::Arc::from(cluster.broker_address("broker-a").unwrap().to_string());
    let answer = client.invoke(&broker, request, LONG).unwrap();
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{answer:?}");
    client.shutdown(Deadline::after(LONG));
}
