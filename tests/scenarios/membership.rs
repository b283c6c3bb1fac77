use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};

/// Longer than a scenario may wait: whatever happens happens by the broker's notice.
const NEVER: u64 = 600_000;

/// A third process joins two: the queues are split anew at once, then again when one leaves in an orderly way.
pub fn join(target: &dyn Target) {
    let (topic, group) = (unique("join"), unique("join_group"));
    target.create_topic(&topic, 8);
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--rebalance-ms", NEVER);
    let first = crew.join("first", consume.ours());
    crew.wait_for_shares(&[first], &topic, 8);
    let second = crew.join("second", consume.ours());
    crew.wait_for_shares(&[first, second], &topic, 8);
    let third = crew.join("third", consume.ours());
    crew.wait_for_shares(&[first, second, third], &topic, 8);

    let sent = produce(target, &topic, 300);
    crew.wait_for_messages(sent.len());
    crew.stop(second);
    crew.wait_for_shares(&[first, third], &topic, 8);
    compare(&sent, crew.seen());
}

/// One of three processes is killed while it works: the others take its queues when the broker notices, and what it had not
/// committed is delivered again.
pub fn kill(target: &dyn Target) {
    let (topic, group) = (unique("kill"), unique("kill_group"));
    target.create_topic(&topic, 8);
    let mut crew = Crew::new();
    let consume =
        Consume::new(target, &group, &topic).with("--rebalance-ms", NEVER).with("--threads", 2).with("--work-ms", 5);
    let places = ["first", "second", "third"].map(|name| crew.join(name, consume.ours()));
    crew.wait_for_shares(&places, &topic, 8);

    let mut sent = produce(target, &topic, 1_500);
    crew.wait_for("the victim to be at work", |crew| crew.members[places[1]].seen.len() > 20);
    crew.kill(places[1]);
    sent.extend(produce(target, &topic, 500));
    crew.wait_for_shares(&[places[0], places[2]], &topic, 8);
    crew.wait_for_messages(sent.len());
    compare(&sent, crew.seen());
}
