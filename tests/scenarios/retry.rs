use crate::support::crew::Crew;
use crate::support::event::Seen;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};
use std::collections::BTreeMap;

/// Milliseconds of the delay levels 3 and 4, which a first and a second retry use, as run.sh and `scenarios_embedded.rs` set them.
const FIRST_DELAY: i64 = 1_000;
const SECOND_DELAY: i64 = 2_000;

/// A listener that always asks for a retry sees a message three times with a maximum of two, then it is a dead letter.
pub fn until_dead(target: &dyn Target) {
    let (topic, group) = (unique("retry"), unique("retry_group"));
    target.create_topic(&topic, 4);
    let mut crew = Crew::new();
    let failing = Consume::new(target, &group, &topic).flag("--always-fail").with("--max-reconsume", 2);
    crew.join("failing", failing.ours());
    crew.wait_for_shares(&[0], &topic, 4);
    let sent = produce(target, &topic, 10);
    crew.wait_for("three deliveries of each", |crew| crew.deliveries() >= 3 * sent.len());

    let mut undertaker = Crew::new();
    let dead_letters = format!("%DLQ%{group}");
    let burying = Consume::new(target, &unique("undertaker"), &dead_letters).with("--route-ms", 500);
    undertaker.join("undertaker", burying.ours());
    undertaker.wait_for_messages(sent.len());

    assert_eq!(compare(&sent, crew.seen()), 2 * sent.len(), "deliveries beyond the maximum");
    assert_eq!(compare(&sent, undertaker.seen()), 0, "a dead letter came twice");
    assert!(undertaker.seen().all(|letter| letter.queue.topic == dead_letters));
    for (key, deliveries) in by_message(&crew) {
        let times: Vec<_> = deliveries.iter().map(|one| one.reconsume_times).collect();
        assert_eq!(times, [0, 1, 2], "{key}");
        assert!(deliveries.iter().all(|one| one.queue.topic == topic), "{key} under another topic: {deliveries:?}");
        let waits = [deliveries[1].stored - deliveries[0].stored, deliveries[2].stored - deliveries[1].stored];
        assert!(waits[0] >= FIRST_DELAY && waits[1] >= SECOND_DELAY, "{key} came back too early, after {waits:?} ms");
    }
}

/// Every third message fails at its first delivery and is accepted at its second.
pub fn once(target: &dyn Target) {
    let (topic, group) = (unique("once"), unique("once_group"));
    target.create_topic(&topic, 4);
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--fail-every", 3);
    let places = [crew.join("first", consume.ours()), crew.join("second", consume.ours())];
    crew.wait_for_shares(&places, &topic, 4);
    let sent = produce(target, &topic, 90);
    crew.wait_for_messages(sent.len());

    let failed = crew.seen().filter(|one| one.failed).count();
    assert!(failed >= 90 / 3 - places.len(), "only {failed} failed");
    crew.wait_for("each failed message to come back", |crew| crew.deliveries() >= sent.len() + failed);
    for place in places {
        let stopped = crew.stop(place);
        assert_eq!(stopped.uncommitted, Some(0), "{stopped:?}");
    }
    assert_eq!(compare(&sent, crew.seen()), failed, "a message came back that had not failed");
    for (key, deliveries) in by_message(&crew) {
        let expected: &[i64] = if deliveries[0].failed { &[0, 1] } else { &[0] };
        assert!(deliveries.iter().map(|one| &one.reconsume_times).eq(expected), "{key}: {deliveries:?}");
        assert!(deliveries.iter().all(|one| one.queue.topic == topic), "{key} under another topic: {deliveries:?}");
    }
}

/// The deliveries of each message by their count of retries; they may have come to different processes.
fn by_message(crew: &Crew) -> BTreeMap<&str, Vec<&Seen>> {
    let mut deliveries: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    for one in crew.seen() {
        deliveries.entry(&one.unique_key).or_default().push(one);
    }
    for of_one in deliveries.values_mut() {
        of_one.sort_by_key(|one| one.reconsume_times);
    }
    deliveries
}
