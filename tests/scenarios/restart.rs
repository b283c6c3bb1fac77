use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};

/// A process stops in the middle of its work, another starts in its place: it begins at the committed offsets.
pub fn alone(target: &dyn Target) {
    let (topic, group) = (unique("restart"), unique("restart_group"));
    target.create_topic(&topic, 8);
    let sent = produce(target, &topic, 1_000);
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--threads", 4).with("--work-ms", 4);
    let before = crew.join("before", consume.ours());
    crew.wait_for_messages(200);
    let stopped = crew.stop(before);
    assert_eq!(stopped.uncommitted, Some(0), "{stopped:?}");
    let committed: i64 =
        stopped.committed.iter().filter(|(queue, _)| queue.starts_with(&topic)).map(|(_, at)| at).sum();
    assert_eq!(committed as usize, crew.deliveries(), "committed is not what was delivered: {stopped:?}");
    assert!(crew.distinct() < sent.len(), "everything was done before the stop, so the restart proves nothing");

    let after = crew.join("after", consume.ours());
    crew.wait_for_messages(sent.len());
    crew.stop(after);
    assert_eq!(compare(&sent, crew.seen()), 0, "messages came twice although the stop was orderly");
    if let Some(offsets) = target.stored_offsets(&group, &topic) {
        assert!(offsets.values().all(|(committed, end)| committed == end), "not everything is committed: {offsets:?}");
    }
}

/// One of two processes stops in the middle of its work: the other goes on from the offsets that it committed.
pub fn hand_over(target: &dyn Target) {
    let (topic, group) = (unique("handover"), unique("handover_group"));
    target.create_topic(&topic, 8);
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--threads", 4).with("--work-ms", 4);
    let places = [crew.join("leaving", consume.ours()), crew.join("staying", consume.ours())];
    crew.wait_for_shares(&places, &topic, 8);

    let sent = produce(target, &topic, 1_500);
    crew.wait_for("the leaving process to be at work", |crew| crew.members[places[0]].seen.len() > 50);
    let stopped = crew.stop(places[0]);
    assert_eq!(stopped.uncommitted, Some(0), "{stopped:?}");
    crew.wait_for_shares(&places[1..], &topic, 8);
    crew.wait_for_messages(sent.len());
    crew.stop(places[1]);
    assert_eq!(compare(&sent, crew.seen()), 0, "messages came twice although the stop was orderly");
}
