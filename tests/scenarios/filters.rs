//! SQL92 conditions, on brokers that have `enablePropertyFilter` set.

use crate::support::crew::Crew;
use crate::support::event::Sent;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};
use rocketmq_sync::{ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageExt, MessageSelector, PushConsumer};

/// Just the messages that fulfil the condition arrive, those with and those without tags, each once.
pub fn sql92(target: &dyn Target) {
    let (topic, group) = (unique("sql"), unique("sql_group"));
    target.create_topic(&topic, 4);
    let condition = "seq BETWEEN 10 AND 39 AND (TAGS IN ('TagA', '标签') OR TAGS IS NULL)";
    let is_wanted = |sent: &Sent| {
        let seq: usize = sent.properties["seq"].parse().expect("produce numbers its messages");
        (10..40).contains(&seq) && sent.tags.as_deref() != Some("TagB")
    };
    let mut wanted: Vec<_> = produce(target, &topic, 60).into_iter().filter(is_wanted).collect();
    let mut crew = Crew::new();
    let first = crew.join("first", Consume::new(target, &group, &format!("{topic}=sql:{condition}")).ours());
    crew.wait_for_messages(wanted.len());
    // While it runs; and once these are here, no earlier one is outstanding.
    wanted.extend(produce(target, &topic, 60).into_iter().filter(is_wanted));
    crew.wait_for_messages(wanted.len());
    crew.stop(first);
    assert_eq!(compare(&wanted, crew.seen()), 0, "messages came twice");
}

/// A condition that does not parse ends the start, with the broker's own words.
pub fn refused_condition(target: &dyn Target) {
    let (topic, group) = (unique("sql"), unique("sql_group"));
    target.create_topic(&topic, 1);
    let started = PushConsumer::builder(&group)
        .name_servers(target.name_servers())
        .subscribe(&topic, MessageSelector::sql92("seq BETWEEN AND"))
        .listener(|_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| ConsumeConcurrentlyStatus::ConsumeSuccess)
        .start();
    let error = started.expect_err("the broker refuses the condition");
    assert_eq!(error.response_code(), Some(23), "{error}");
    assert!(!error.remark().unwrap_or_default().is_empty(), "{error}");
    let text = error.to_string();
    assert!(text.contains(&topic) && text.contains("'seq BETWEEN AND'"), "{text}");
}
