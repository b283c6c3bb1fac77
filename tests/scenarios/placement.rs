use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::produce;
use crate::support::{Target, unique};
use std::collections::BTreeSet;

/// A member is killed, one after the other, while messages are in its listener or wait for it, while failed ones are sent
/// back, and when all is handled and nothing stored. Whatever was left, the next member handles.
pub fn kills(target: &dyn Target) {
    let (topic, group) = (unique("placement"), unique("placement_group"));
    target.create_topic(&topic, 4);
    let mut crew = Crew::new();
    let never = |consume: Consume| consume.with("--persist-ms", 3_600_000).with("--threads", 4);
    let consume = Consume::new(target, &group, &topic);
    let mut sent: BTreeSet<String> = BTreeSet::new();
    let victims = [
        ("in the listener", never(consume.clone()).with("--work-ms", 100), 20),
        ("at send-backs", never(consume.clone()).with("--fail-every", 2), 60),
        ("before it stores", never(consume.clone()), 100),
    ];
    for (name, options, enough) in victims {
        let place = crew.join(name, options.ours());
        sent.extend(produce(target, &topic, 100).into_iter().map(|one| one.unique_key));
        crew.wait_for("the victim to be at it", |crew| crew.members[place].seen.len() >= enough);
        crew.kill(place);
    }
    let survivor = crew.join("survivor", consume.ours());
    crew.wait_for("all to be handled by somebody", |crew| {
        let handled = crew.seen().filter(|seen| !seen.failed).map(|seen| &seen.unique_key);
        handled.collect::<BTreeSet<_>>().len() == sent.len()
    });
    crew.stop(survivor);
}
