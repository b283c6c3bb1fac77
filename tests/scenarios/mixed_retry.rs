//! Failed messages and dead letters that pass between this client and the official Java client.

use crate::real_target::RealTarget;
use crate::support::crew::Crew;
use crate::support::event::Seen;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};
use std::collections::BTreeMap;

/// Ours fails every message and leaves, a Java member fails what comes to it and leaves, ours accepts.
pub fn there_and_back(target: &RealTarget) {
    let (topic, group) = (unique("mixed_retry"), unique("mixed_retry_group"));
    target.create_topic(&topic, 2);
    let consume = Consume::new(target, &group, &topic).with("--persist-ms", 500);
    let failing = consume.clone().flag("--always-fail");
    let mut crew = Crew::new();
    let ours = crew.join("ours", failing.ours());
    crew.wait_for_shares(&[ours], &topic, 2);
    let sent = produce(target, &topic, 6);
    crew.wait_for_messages(sent.len());
    crew.stop(ours);
    let java = crew.join("java", failing.apply(target.java()));
    wait_for_all(&mut crew, java, sent.len());
    crew.stop(java);
    let last = crew.join("ours again", consume.ours());
    wait_for_all(&mut crew, last, sent.len());
    crew.stop(last);

    compare(&sent, crew.seen());
    assert!(crew.seen().all(|one| one.queue.topic == topic), "another topic than the user's");
    let by_member = crew.members.iter().map(|member| {
        let mut of_each: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
        member.seen.iter().for_each(|one| of_each.entry(&one.unique_key).or_default().push(one));
        of_each
    });
    let [by_ours, by_java, by_last] = by_member.collect::<Vec<_>>().try_into().expect("three members");
    for (key, first) in &by_ours {
        // A member that takes its time to leave may get it back itself, so the count goes on from its last delivery.
        let deliveries: Vec<_> = [first, &by_java[key], &by_last[key]].into_iter().flatten().collect();
        let times: Vec<_> = deliveries.iter().map(|one| one.reconsume_times).collect();
        assert_eq!(times, (0..deliveries.len() as i64).collect::<Vec<_>>(), "{key}: {deliveries:?}");
        // All copies name the message that was sent.
        let origins: Vec<_> = deliveries[1..].iter().map(|one| one.properties.get("ORIGIN_MESSAGE_ID")).collect();
        assert!(origins.iter().all(|origin| origin.is_some() && *origin == origins[0]), "{key}: {deliveries:?}");
    }
}

/// With no retries allowed each kind makes dead letters, and the other kind reads them.
pub fn dead_letters(target: &RealTarget) {
    let buried = |name: &str| (unique(&format!("{name}_dead")), unique(&format!("{name}_dead_group")));
    let ((topic, group), (java_topic, java_group)) = (buried("ours"), buried("java"));
    target.create_topic(&topic, 2);
    target.create_topic(&java_topic, 2);
    let failing = |group: &str, topic: &str| {
        Consume::new(target, group, topic).flag("--always-fail").with("--max-reconsume", 0).with("--persist-ms", 500)
    };
    let (mut ours, mut java) = (Crew::new(), Crew::new());
    java.launch("java", failing(&java_group, &java_topic).apply(target.java()));
    ours.join("ours", failing(&group, &topic).ours());
    let (sent, java_sent) = (produce(target, &topic, 4), produce(target, &java_topic, 4));
    ours.wait_for_messages(sent.len());
    java.wait_for_messages(java_sent.len());
    ours.stop(0);
    java.stop(0);
    // Neither came a second time.
    assert_eq!((compare(&sent, ours.seen()), compare(&java_sent, java.seen())), (0, 0));

    let (letters, java_letters) = (format!("%DLQ%{group}"), format!("%DLQ%{java_group}"));
    let mut undertakers = Crew::new();
    let reading = |topic: &str| Consume::new(target, &unique("undertaker"), topic).with("--route-ms", 500);
    let by_java = undertakers.launch("java", reading(&letters).apply(target.java()));
    let by_ours = undertakers.join("ours", reading(&java_letters).ours());
    undertakers.wait_for_messages(sent.len() + java_sent.len());
    for (place, sent, letters) in [(by_java, &sent, &letters), (by_ours, &java_sent, &java_letters)] {
        let seen = &undertakers.members[place].seen;
        assert_eq!(compare(sent, seen.iter()), 0, "a dead letter came twice");
        assert!(seen.iter().all(|one| one.queue.topic == *letters && one.reconsume_times == 1), "{seen:?}");
    }
    // The tool finds one by the id that its producer was told.
    let found = target.admin(&["queryMsgByUniqueKey", "-t", &letters, "-i", &sent[0].unique_key]);
    assert!(found.contains(&sent[0].unique_key) && found.contains(&letters), "{found}");
}

fn wait_for_all(crew: &mut Crew, place: usize, count: usize) {
    crew.wait_for("each message to come to the next member", |crew| {
        let seen = &crew.members[place].seen;
        seen.iter().map(|one| &one.unique_key).collect::<std::collections::BTreeSet<_>>().len() == count
    });
}
