use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};
use std::collections::HashSet;

/// Two producers of different origin, eight queues, two consumer processes: bodies, keys, tags and properties arrive as sent.
pub fn two_processes_share_what_all_producers_send(target: &dyn Target) {
    let (topic, group) = (unique("volume"), unique("volume_group"));
    target.create_topic(&topic, 8);
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic);
    let places = [crew.join("first", consume.ours()), crew.join("second", consume.ours())];
    crew.wait_for_shares(&places, &topic, 8);

    let mut sent = produce(target, &topic, target.volume());
    sent.extend(target.produce_elsewhere(&topic, target.volume()));
    crew.wait_for_messages(sent.len());

    let consumed: u64 = places.iter().map(|&place| crew.stop(place).consumed).sum();
    assert_eq!(consumed as usize, crew.deliveries(), "what the processes count and what they delivered differ");
    assert!(places.iter().all(|&place| !crew.members[place].seen.is_empty()), "one process did all the work");
    // Membership did not change while messages flowed, so there is no reason to deliver any twice.
    assert_eq!(compare(&sent, crew.seen()), 0, "messages came twice");
    let places: HashSet<_> = crew.seen().map(|one| (&one.queue, one.offset)).collect();
    assert_eq!(places.len(), sent.len(), "two messages were shown at one place of a queue");
    if let Some(offsets) = target.stored_offsets(&group, &topic) {
        assert_eq!(offsets.len(), 8, "{offsets:?}");
        assert!(offsets.values().all(|(committed, end)| committed == end), "not everything is committed: {offsets:?}");
    }
}
