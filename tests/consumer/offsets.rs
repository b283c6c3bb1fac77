//! Offsets that somebody else changes: an operator's reset, and what a broker corrects.

use crate::support::*;
use crate::tool::Tool;
use rocketmq_sync::protocol::header::ResetOffsetRequestHeader;
use rocketmq_sync::protocol::{RequestCode, ResponseCode};
use rocketmq_sync::{ConsumeConcurrentlyStatus, PushConsumer};
use std::time::Duration;

/// As `resetOffsetByTime` does it with brokers since 5.2: the broker keeps the new offset until the next pull.
fn reset_at_the_broker(tool: &Tool, offset: i64) {
    let header = ResetOffsetRequestHeader {
        topic: "orders",
        group: "g",
        timestamp: -1,
        is_force: true,
        queue_id: Some(0),
        offset: Some(offset),
        bname: None,
    };
    let answer = tool.call(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, &header);
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{answer:?}");
}

fn committed(consumer: &PushConsumer) -> Option<i64> {
    let states = consumer.assignment();
    states.iter().find(|state| state.queue().topic() == "orders").and_then(|state| state.committed_offset())
}

fn bodies(seen: &[Seen]) -> Vec<usize> {
    let mut bodies: Vec<_> = seen.iter().map(|one| one.body.parse().unwrap()).collect();
    bodies.sort();
    bodies
}

#[test]
fn a_reset_at_the_broker_takes_effect_at_the_next_pull_and_once() {
    let cluster = cluster("orders", 1);
    let tool = Tool::new(&cluster);
    send(&cluster, "orders", 0..10);
    let (listener, seen) = recording(accept);
    let builder = builder(&cluster, "g", "orders").pull_suspend(Duration::from_secs(1));
    let consumer = builder.persist_interval(Duration::from_millis(20)).listener(listener).start().unwrap();
    receive_until(&seen, "the first round", |all| all.len() == 10);
    wait_until("it is stored", || committed(&consumer) == Some(10));
    reset_at_the_broker(&tool, 4);
    let again = receive_until(&seen, "what comes again", |all| all.len() >= 6);
    assert_eq!(bodies(&again), (4..10).collect::<Vec<_>>());
    wait_until("it is stored", || committed(&consumer) == Some(10));
    // Nothing came a third time: the next one is the new one.
    send(&cluster, "orders", 10..11);
    assert_eq!(bodies(&receive_until(&seen, "the new one", |all| !all.is_empty())), [10]);
}

#[test]
fn a_reset_of_a_suspended_queue_waits_for_the_resume_and_of_a_full_one_for_room() {
    let cluster = cluster("orders", 1);
    let tool = Tool::new(&cluster);
    send(&cluster, "orders", 0..10);
    let go = rocketmq_sync::thread::Latch::new();
    let wait = go.clone();
    let (listener, seen) = recording(move |message| {
        if [&b"10"[..], b"11"].contains(&message.body()) {
            assert!(wait.wait_timeout(LONG));
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let builder = builder(&cluster, "g", "orders").pull_suspend(Duration::from_secs(1)).pull_batch_size(1);
    let builder = builder.pull_threshold_for_queue(1).persist_interval(Duration::from_millis(20));
    let consumer = builder.listener(listener).start().unwrap();
    receive_until(&seen, "the first round", |all| all.len() == 10);
    wait_until("it is stored", || committed(&consumer) == Some(10));
    consumer.suspend();
    wait_until("the pull ended", || {
        consumer
            .assignment()
            .iter()
            .all(|state| state.since_pull().is_some_and(|since| since > Duration::from_millis(1100)))
    });
    reset_at_the_broker(&tool, 7);
    assert!(seen.try_recv().is_err(), "nothing while it is suspended");
    consumer.resume();
    assert_eq!(bodies(&receive_until(&seen, "after the resume", |all| all.len() >= 3)), [7, 8, 9]);
    wait_until("it is stored", || committed(&consumer) == Some(10));

    // Two of them wait for the listener, so there is no room.
    send(&cluster, "orders", 10..13);
    wait_until("it is full", || {
        consumer.assignment().iter().any(|state| state.standing_still().is_some_and(|why| why.contains("Messages")))
    });
    reset_at_the_broker(&tool, 8);
    go.set();
    let again = receive_until(&seen, "after the reset", |all| bodies(all).contains(&12));
    assert_eq!(bodies(&again), [8, 9, 10, 10, 11, 11, 12]);
}
