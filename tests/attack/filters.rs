//! What a filter puts on the wire.

use crate::fake::*;
use rocketmq_sync::MessageSelector;
use rocketmq_sync::protocol::body::{CheckClientRequestBody, HeartbeatData};
use rocketmq_sync::protocol::{RequestCode, ResponseCode};
use std::time::Duration;

const CONDITION: &str = "a > 1 AND b = '||'";

#[test]
fn a_condition_is_checked_before_brokers_hear_of_the_group_and_named_in_heartbeats_and_pulls() {
    let fake = Fake::start(1);
    fake.store(0, 0..3);
    let (listener, seen) = collecting();
    let builder = fake.consumer().subscribe(TOPIC, MessageSelector::sql92(CONDITION));
    let _consumer = builder.post_subscription_when_pull(true).listener(listener).start().unwrap();
    // The fake broker filters nothing, and neither may the client.
    let mut bodies = take(&seen, 3);
    bodies.sort();
    assert_eq!(bodies, ["0", "1", "2"]);

    let check = fake.wait_for("the question", |asked| asked.is(RequestCode::CHECK_CLIENT_CONFIG));
    let asked = CheckClientRequestBody::decode(&check.command.body).unwrap();
    assert_eq!((&*asked.group, &*asked.subscription_data.sub_string), (GROUP, CONDITION));
    assert_eq!(asked.subscription_data.expression_type, "SQL92");
    assert!(asked.client_id.contains('@'));

    let order = fake.asked(|asked| asked.is(RequestCode::CHECK_CLIENT_CONFIG) || asked.is(RequestCode::HEART_BEAT));
    assert!(order[0].is(RequestCode::CHECK_CLIENT_CONFIG), "the question comes first");
    let beat = HeartbeatData::decode(&order[1].command.body).unwrap();
    let told = &beat.consumer_data_set[0].subscription_data_set;
    let told = told.iter().find(|data| data.topic == TOPIC).unwrap();
    assert_eq!(*told, asked.subscription_data);
    assert!(told.tags_set.is_empty() && told.code_set.is_empty() && !told.class_filter_mode);

    let pull = fake.wait_for("a pull", Asked::is_pull);
    assert_eq!(pull.field("expressionType"), "SQL92");
    assert_eq!(pull.field("subscription"), CONDITION);
    assert_eq!(pull.number("subVersion"), told.sub_version);
    assert_eq!(pull.number("sysFlag") & 0x4, 0x4, "the subscription is in it");
}

#[test]
fn a_broker_that_has_lost_the_filter_hears_a_heartbeat_at_once() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    fake.script(|asked| match asked.is_pull() && asked.before < 2 {
        true => Reply::Give(refuse(ResponseCode::FILTER_DATA_NOT_EXIST)),
        false => Reply::Usual,
    });
    let (listener, seen) = collecting();
    let builder = fake.consumer().subscribe(TOPIC, MessageSelector::sql92(CONDITION));
    let builder = builder.heartbeat_interval(Duration::from_secs(100)).pull_error_delay(Duration::from_secs(50));
    let _consumer = builder.listener(listener).start().unwrap();
    assert_eq!(take(&seen, 1), ["0"]);
    assert!(fake.count(RequestCode::HEART_BEAT) >= 2);
}
