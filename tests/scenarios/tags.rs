use crate::support::crew::{Crew, PATIENCE};
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, producer, send_until_taken};
use crate::support::{Target, unique};

/// Messages with other tags, and without any, are passed over.
pub fn expression(target: &dyn Target) {
    deliver(target, "tag1 || tag2", &["tag1", "tag2"], &["tag3", "tag12", "TAG1"]);
}

/// Broker and queue index know tags by their hash; these pairs have the same, so the broker hands out both.
pub fn collision(target: &dyn Target) {
    deliver(target, "Aa || CC", &["Aa", "CC"], &["BB", "Bb", "other"]);
    deliver(target, "BB", &["BB"], &["Aa"]);
}

fn deliver(target: &dyn Target, expression: &str, wanted: &[&str], unwanted: &[&str]) {
    let (topic, group) = (unique("tags"), unique("tags_group"));
    target.create_topic(&topic, 4);
    let producer = producer(target);
    let mut sent = Vec::new();
    for _ in 0..10 {
        sent.extend(wanted.iter().map(|tag| send_until_taken(&producer, &topic, tag, PATIENCE)));
        for tag in unwanted {
            send_until_taken(&producer, &topic, tag, PATIENCE);
        }
    }
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &format!("{topic}={expression}"));
    let first = crew.join("first", consume.ours());
    // Messages of a queue come in order, and these end each queue: once they are here, no earlier one is outstanding.
    sent.extend((0..8).map(|_| send_until_taken(&producer, &topic, wanted[0], PATIENCE)));
    crew.wait_for_messages(sent.len());
    crew.stop(first);
    assert_eq!(compare(&sent, crew.seen()), 0, "messages came twice");
}
