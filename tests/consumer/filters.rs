//! Which messages of a topic reach the listener.

use crate::support::*;
use rocketmq_sync::{ErrorKind, Message, MessageSelector};

#[test]
fn all_spellings_of_a_tag_expression_select_the_same() {
    let cluster = cluster("orders", 1);
    let producer = producer(&cluster);
    for tag in ["a", "b", "c", "A"] {
        producer.send(&Message::new("orders", tag).with_tags(tag)).unwrap();
    }
    producer.send(&Message::new("orders", "untagged")).unwrap();
    producer.send(&Message::new("orders", "last").with_tags("a")).unwrap();
    for (number, expression) in ["a||b", "a || b", " a||  b ", "||a||||b||", "b || a || b"].iter().enumerate() {
        let (listener, seen) = recording(accept);
        let group = format!("g{number}");
        let _consumer = builder(&cluster, &group, "orders")
            .subscribe("orders", *expression)
            .consume_threads(1)
            .listener(listener)
            .start()
            .unwrap();
        // One queue and one thread, so what comes before the last one has come.
        let all = receive_until(&seen, expression, |all| counts(all).contains_key("last"));
        assert_eq!(counts(&all).keys().copied().collect::<Vec<_>>(), ["a", "b", "last"], "{expression}");
    }
}

#[test]
fn a_filter_that_the_broker_refuses_stops_the_start_and_leaves_nothing_behind() {
    let cluster = cluster("orders", 1);
    let (listener, _) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener);
    let error = consumer.subscribe("orders", MessageSelector::sql92("amount >")).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker);
    assert!(error.response_code().is_some() && !error.remark().unwrap().is_empty());
    let text = error.to_string();
    assert!(text.contains("'amount >'") && text.contains("'orders'"), "{text}");

    // The group is as it was: a start with another filter is alone in it.
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    send(&cluster, "orders", 0..1);
    receive_until(&seen, "the message", |all| all.len() == 1);
    assert!(consumer.health().is_good());
    let refused = consumer.subscribe("orders", MessageSelector::sql92("amount >")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Broker);
    send(&cluster, "orders", 1..2);
    receive_until(&seen, "the subscription is as it was", |all| all.len() == 1);
}

#[test]
fn a_filter_that_nobody_can_check_does_not_stop_the_start() {
    let cluster = cluster("orders", 1);
    cluster.stop_broker(cluster.broker_names()[0]).unwrap();
    let (listener, _) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener);
    let consumer = consumer.subscribe("orders", MessageSelector::sql92("amount > 1")).start().unwrap();
    assert!(consumer.health().is_running());
}
