//! Groups in which this client and the official Java client are members side by side.

use crate::real_target::RealTarget;
use crate::scenarios::lite_pull;
use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};
use std::collections::BTreeSet;

/// Ours are there first, then a Java member comes, then it leaves.
pub fn java_joins(target: &RealTarget) {
    let (topic, group, mut crew, consume) = prepare(target, "ours_first");
    let ours = [crew.join("ours", consume.ours()), crew.join("ours too", consume.ours())];
    crew.wait_for_shares(&ours, &topic, 8);
    let java = crew.join("java", consume.apply(target.java()));
    crew.wait_for_shares(&[ours[0], ours[1], java], &topic, 8);
    let sent = exchange(target, &mut crew, &topic);
    crew.stop(java);
    crew.wait_for_shares(&ours, &topic, 8);
    finish(target, crew, sent, &topic, &group);
}

/// Java members are there first, then one of ours comes, then a Java member leaves.
pub fn ours_joins(target: &RealTarget) {
    let (topic, group, mut crew, consume) = prepare(target, "java_first");
    let java = [crew.join("java", consume.apply(target.java())), crew.join("java too", consume.apply(target.java()))];
    crew.wait_for_shares(&java, &topic, 8);
    let ours = crew.join("ours", consume.ours());
    crew.wait_for_shares(&[java[0], java[1], ours], &topic, 8);
    let sent = exchange(target, &mut crew, &topic);
    crew.stop(java[0]);
    crew.wait_for_shares(&[java[1], ours], &topic, 8);
    finish(target, crew, sent, &topic, &group);
}

/// A Java lite pull consumer and ours read one group in turn: each begins where the other committed.
pub fn lite_pull_takes_turns(target: &RealTarget) {
    let (topic, group) = (unique("lite_turns"), unique("lite_turns_group"));
    target.create_topic(&topic, 2);
    produce(target, &topic, 100);
    let mut seen = ours_takes(target, &group, &topic, 30);
    let java = target.java_lite_pull(&group, &topic, 40);
    assert!(java.iter().all(|one| !seen.contains(one)), "Java went back: {java:?}, ours had {seen:?}");
    seen.extend(java);
    let left = 100 - seen.len();
    let ours = ours_takes(target, &group, &topic, left);
    assert!(ours.iter().all(|one| !seen.contains(one)), "ours went back: {ours:?}, Java and ours had {seen:?}");
    seen.extend(ours);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), 100);
    let offsets = target.stored_offsets(&group, &topic).expect("the Java peer reads them");
    assert!(offsets.values().all(|(committed, end)| committed == end), "not everything is committed: {offsets:?}");
}

fn ours_takes(target: &RealTarget, group: &str, topic: &str, count: usize) -> Vec<(i32, i64)> {
    let consumer = lite_pull::builder(target, group).subscribe(topic, "*").auto_commit(false).start().unwrap();
    let polled = lite_pull::poll(&consumer, count);
    consumer.commit().unwrap();
    polled.iter().map(|message| (message.message_queue().queue_id(), message.queue_offset())).collect()
}

fn prepare(target: &RealTarget, name: &str) -> (String, String, Crew, Consume) {
    let (topic, group) = (unique(name), unique(&format!("{name}_group")));
    target.create_topic(&topic, 8);
    let consume = Consume::new(target, &group, &topic).with("--persist-ms", 1_000);
    (topic, group, Crew::new(), consume)
}

/// Messages of both producers reach members of both kinds.
fn exchange(target: &RealTarget, crew: &mut Crew, topic: &str) -> Vec<crate::support::event::Sent> {
    let mut sent = produce(target, topic, 400);
    sent.extend(target.produce_elsewhere(topic, 400));
    crew.wait_for_messages(sent.len());
    let idle: Vec<_> = crew.members.iter().filter(|member| member.seen.is_empty()).map(|member| &member.name).collect();
    assert!(idle.is_empty(), "got nothing: {idle:?}");
    sent
}

/// After a change of members everything sent so far is there unaltered, and the rest of the group goes on to the end.
fn finish(target: &RealTarget, mut crew: Crew, mut sent: Vec<crate::support::event::Sent>, topic: &str, group: &str) {
    sent.extend(produce(target, topic, 200));
    crew.wait_for_messages(sent.len());
    let left: Vec<_> = (0..crew.members.len()).filter(|&place| !crew.members[place].ended).collect();
    for place in left {
        crew.stop(place);
    }
    compare(&sent, crew.seen());
    let offsets = target.stored_offsets(group, topic).expect("the Java peer reads them");
    assert!(offsets.values().all(|(committed, end)| committed == end), "not everything is committed: {offsets:?}");
}
