//! An operator's reset that brokers push to members (request 220), in both forms, against all that may be under way.

use crate::fake::*;
use rocketmq_sync::protocol::body::ResetOffsetBody;
use rocketmq_sync::protocol::header::ResetOffsetRequestHeader;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode};
use rocketmq_sync::thread::Latch;
use rocketmq_sync::{ConsumeConcurrentlyStatus, MessageQueue};

fn push(fake: &Fake, offset: i64, as_list: bool) {
    let header = ResetOffsetRequestHeader {
        topic: TOPIC,
        group: GROUP,
        timestamp: 1_700_000_000_000,
        is_force: true,
        queue_id: None,
        offset: None,
        bname: None,
    };
    let table = [(MessageQueue::new(TOPIC, fake.name, 0), offset), (MessageQueue::new(TOPIC, fake.name, 99), 3)];
    let body = ResetOffsetBody { offset_table: table.into() };
    let body = if as_list { body.encode_list() } else { body.encode() };
    for connection in fake.connections() {
        let request = RemotingCommand::request(RequestCode::RESET_CONSUMER_CLIENT_OFFSET, &header).oneway();
        let _ = connection.send(request.with_body(body.clone()));
    }
}

#[test]
fn both_forms_take_effect_at_once_and_a_repetition_changes_nothing() {
    let fake = Fake::start(1);
    fake.store(0, 0..10);
    let (listener, seen) = collecting();
    let consumer = fake.consumer().consume_threads(1).listener(listener).start().unwrap();
    take(&seen, 10);
    for (as_list, at) in [(false, 6), (true, 4)] {
        wait_until("it is stored", || fake.commit_of(0) == Some(10));
        push(&fake, at, as_list);
        push(&fake, at, as_list);
        let again: Vec<_> = (at..10).map(|offset| offset.to_string()).collect();
        assert_eq!(take(&seen, again.len()), again);
        wait_until("it is stored", || fake.commit_of(0) == Some(10));
    }
    fake.store(0, 10..11);
    assert_eq!(take(&seen, 1), ["10"], "nothing came a second time");
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn what_was_under_way_moves_nothing_back_and_a_suspended_queue_begins_there_when_it_is_resumed() {
    let fake = Fake::start(1);
    fake.store(0, 0..10);
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = deciding(move |message| {
        if message.queue_offset() == 9 && message.body() == b"9" && !wait.is_set() {
            assert!(wait.wait_timeout(LONG));
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let consumer = fake.consumer().consume_threads(2).listener(listener).start().unwrap();
    take(&seen, 10);
    consumer.suspend();
    push(&fake, 2, false);
    wait_until("the new offset is stored", || fake.commit_of(0) == Some(2));
    go.set();
    wait_until("the late one is done", || consumer.consumed() == 10);
    assert!(seen.try_recv().is_err(), "nothing while it is suspended");
    assert_eq!(fake.commit_of(0), Some(2));
    consumer.resume();
    let mut again = take(&seen, 8);
    again.sort();
    assert_eq!(again, (2..10).map(|offset| offset.to_string()).collect::<Vec<_>>());
    wait_until("it is stored", || fake.commit_of(0) == Some(10));
}
