//! An operator resets the offsets of a running consumer with the official tool.

use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};

/// Everything comes again, once, and then what is new. `admin` runs the tool.
pub fn by_time(target: &dyn Target, admin: impl Fn(&[&str]) -> String) {
    let (topic, group) = (unique("reset"), unique("reset_group"));
    target.create_topic(&topic, 4);
    let mut sent = produce(target, &topic, 60);
    let mut crew = Crew::new();
    let member = crew.join("only", Consume::new(target, &group, &topic).with("--persist-ms", 200).ours());
    crew.wait_for_messages(sent.len());
    // Commits on their way are the danger of a reset, so it is not waited for them.
    let told = admin(&["resetOffsetByTime", "-g", &group, "-t", &topic, "-s", "1000"]);
    let all = sent.len();
    crew.wait_for("everything again", |crew| crew.deliveries() >= 2 * all);
    sent.extend(produce(target, &topic, 20));
    crew.wait_for_messages(sent.len());
    let stopped = crew.stop(member);
    assert_eq!(compare(&sent, crew.seen()), all, "each of the first came again, once; the tool said: {told}");
    let committed: i64 =
        stopped.committed.iter().filter(|(queue, _)| queue.starts_with(&topic)).map(|(_, at)| at).sum();
    assert_eq!(committed as usize, sent.len(), "{stopped:?}");
}
