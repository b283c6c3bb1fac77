//! The official admin tools, run against a consumer of ours.

use crate::real_target::RealTarget;
use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::produce;
use crate::support::{Target, unique};

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

    let connection = target.admin(&["consumerConnection", "-g", &group]);
    assert!(connection.contains("CONSUME_PASSIVELY") && connection.contains(&topic), "{connection}");
    let client_id = connection.lines().find_map(|line| line.split_whitespace().find(|word| word.contains('@')));
    let client_id = client_id.unwrap_or_else(|| panic!("no client id: {connection}")).to_owned();

    let progress = target.admin(&["consumerProgress", "-g", &group]);
    assert!(progress.contains(&topic), "{progress}");
    assert!(progress.contains("Diff Total: 0") || progress.contains("Consume Diff Total: 0"), "{progress}");

    let one = target.admin(&["consumerStatus", "-g", &group, "-i", &client_id, "-s"]);
    for word in [
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
    ] {
        assert!(one.contains(word), "'{word}' is missing in: {one}");
    }
    let all = target.admin(&["consumerStatus", "-g", &group]);
    assert!(all.contains(&client_id) && !all.contains("Exception"), "{all}");

    let first = crew.seen().next().expect("40 were seen").clone();
    let again =
        target.admin(&["queryMsgByUniqueKey", "-t", &topic, "-i", &first.unique_key, "-g", &group, "-d", &client_id]);
    assert!(again.contains("CR_SUCCESS"), "{again}");
    crew.wait_for("the message that the tool had consumed", |crew| {
        crew.seen().filter(|seen| seen.unique_key == first.unique_key).count() == 2
    });
    crew.stop(place);
}
