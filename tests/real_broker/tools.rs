//! The official admin tools, run against a consumer of ours.

use crate::real_target::RealTarget;
use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::produce;
use crate::support::{Target, unique};
use std::time::{Duration, Instant};

/// Each tool asks brokers and, through them, the consumer; what they print must show what the consumer did.
pub fn look_at_a_consumer(target: &RealTarget) {
    let (topic, group) = (unique("tools"), unique("tools_group"));
    target.create_topic(&topic, 4);
    let mut crew = Crew::new();
    let place = crew.join("ours", Consume::new(target, &group, &topic).with("--persist-ms", 200).ours());
    crew.wait_for_shares(&[place], &topic, 4);
    let sent = produce(target, &topic, 40);
    crew.wait_for_messages(sent.len());
    // The broker's statistics name the group only when it has a queue with an offset.
    let queues = format!("{topic}/");
    crew.wait_for("the stored offsets", |_| {
        let stored = target.stored_offsets(&group, &topic).unwrap_or_default();
        stored.iter().filter(|(queue, _)| queue.starts_with(&queues)).map(|(_, (at, _))| at).sum::<i64>() == 40
    });

    let connection = admin_until(target, &["consumerConnection", "-g", &group], &["CONSUME_PASSIVELY", &topic]);
    let client_id = connection.lines().find_map(|line| line.split_whitespace().find(|word| word.contains('@')));
    let client_id = client_id.unwrap_or_else(|| panic!("no client id: {connection}")).to_owned();

    admin_until(target, &["consumerProgress", "-g", &group], &[&topic, "Diff Total: 0"]);
    let parts = [
        "#Consumer Properties#",
        "PROP_CONSUMER_START_TIMESTAMP",
        "allocateMessageQueueStrategy",
        "#Consumer Subscription#",
        "#Consumer Offset#",
        "#Consumer MQ Detail#",
        "#Consumer RT&TPS#",
        "#Consumer jstack#",
        "rmq-use-0",
        &topic,
    ];
    admin_until(target, &["consumerStatus", "-g", &group, "-i", &client_id, "-s"], &parts);
    admin_until(target, &["consumerStatus", "-g", &group], &[&client_id]);

    let first = crew.seen().next().expect("40 were seen").clone();
    let words = ["queryMsgByUniqueKey", "-t", &topic, "-i", &first.unique_key, "-g", &group, "-d", &client_id];
    admin_until(target, &words, &["CR_SUCCESS"]);
    crew.wait_for("the message that the tool had consumed", |crew| {
        crew.seen().filter(|seen| seen.unique_key == first.unique_key).count() >= 2
    });
    crew.stop(place);
}

/// Runs a tool until it prints all these parts: its time-outs are fixed and short for a JVM that starts on a
/// busy machine.
fn admin_until(target: &RealTarget, words: &[&str], parts: &[&str]) -> String {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let printed = target.admin(words);
        if parts.iter().all(|part| printed.contains(part)) {
            return printed;
        }
        assert!(Instant::now() < deadline, "{words:?} does not print all of {parts:?}: {printed}");
    }
}
