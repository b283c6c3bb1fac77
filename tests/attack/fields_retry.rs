//! Field reports about failed messages (51 to 56).

use crate::fake::*;
use rocketmq_sync::message::properties;
use rocketmq_sync::protocol::{RequestCode, ResponseCode};
use rocketmq_sync::{ConsumeConcurrentlyStatus, MessageExt};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Fails the message of offset 1 the first so many times.
fn failing(times: usize) -> impl Fn(&MessageExt) -> ConsumeConcurrentlyStatus + Send + Sync + 'static {
    let failed = AtomicUsize::new(0);
    move |message| {
        if message.queue_offset() == 1 && failed.fetch_add(1, Ordering::SeqCst) < times {
            ConsumeConcurrentlyStatus::ReconsumeLater
        } else {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        }
    }
}

fn retry_route(fake: &Fake) {
    let retry = route(&[("a", 0, &fake.address())], 1);
    fake.state().routes.insert("%RETRY%g".into(), retry);
}

#[test]
fn no_commit_passes_a_message_whose_send_back_dies_with_its_connection_and_it_is_delivered_again() {
    let fake = Fake::start(1);
    retry_route(&fake);
    fake.store(0, 0..5);
    fake.script(|asked| {
        let elsewhere = asked.is(RequestCode::CONSUMER_SEND_MSG_BACK) || asked.is(RequestCode::SEND_MESSAGE_V2);
        if elsewhere { Reply::Close } else { Reply::Usual }
    });
    let (listener, seen) = deciding(failing(1));
    let consumer = fake.consumer().listener(listener).start().unwrap();
    let mut bodies = take(&seen, 6);
    // At this point it was delivered again and may be finished; before it no offset passed it.
    let before = fake.asked(Asked::is_commit);
    assert_eq!(bodies.pop().as_deref(), Some("1"));
    let passed: Vec<_> = before.iter().map(|commit| commit.number("commitOffset")).collect();
    assert!(passed.iter().rev().skip(1).all(|offset| *offset <= 1), "{passed:?}");
    wait_until("the offset passes it then", || fake.commit_of(0) == Some(5));
    let pulls = fake.asked(Asked::is_pull);
    let carried = pulls.iter().map(|pull| pull.number("commitOffset")).filter(|offset| (2..5).contains(offset));
    assert_eq!(carried.count(), 0);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_send_back_goes_to_the_address_of_the_route_and_not_to_the_host_in_the_message() {
    // The stored messages name 0.0.0.0:0 as their host.
    let fake = Fake::start(1);
    fake.store(0, 0..2);
    let (listener, seen) = deciding(failing(1));
    let consumer = fake.consumer().listener(listener).start().unwrap();
    take(&seen, 2);
    let back = fake.wait_for("the send-back", |asked| asked.is(RequestCode::CONSUMER_SEND_MSG_BACK));
    assert_eq!(back.number("offset"), 1_000_001);
    assert_eq!((back.field("bname"), back.field("group"), back.field("originTopic")), ("a", GROUP, TOPIC));
    assert!(consumer.shutdown(LONG).is_clean());
}

/// The properties of the one copy that was published.
fn copied(fake: &Fake) -> Vec<(String, String)> {
    let copy = fake.wait_for("a copy", |asked| asked.is(RequestCode::SEND_MESSAGE_V2));
    assert_eq!(copy.field("b"), "%RETRY%g");
    let text = copy.field("i").to_owned();
    properties::parse(&text).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn value<'a>(of: &'a [(String, String)], name: &str) -> Option<&'a str> {
    of.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
}

#[test]
fn a_copy_for_a_retry_carries_a_delay_and_the_last_one_none() {
    for (limit, delayed) in [(16, true), (0, false)] {
        let fake = Fake::start(1);
        retry_route(&fake);
        fake.store(0, 0..2);
        fake.script(|asked| {
            if asked.is(RequestCode::CONSUMER_SEND_MSG_BACK) {
                return Reply::Give(refuse(ResponseCode::SYSTEM_ERROR));
            }
            Reply::Usual
        });
        let (listener, seen) = deciding(failing(1));
        let consumer = fake.consumer().max_reconsume_times(Some(limit)).listener(listener).start().unwrap();
        take(&seen, 2);
        let copy = copied(&fake);
        assert_eq!(value(&copy, properties::DELAY_TIME_LEVEL).is_some(), delayed, "{copy:?}");
        assert_eq!(value(&copy, properties::RETRY_TOPIC), Some(TOPIC));
        assert_eq!(value(&copy, properties::RECONSUME_TIME), Some("1"));
        wait_until("the offset", || fake.commit_of(0) == Some(2));
        assert_eq!(fake.count(RequestCode::SEND_MESSAGE_V2), 1);
        assert!(consumer.shutdown(LONG).is_clean());
    }
}

#[test]
fn a_send_back_that_takes_two_seconds_is_none_that_failed() {
    let fake = Fake::start(1);
    retry_route(&fake);
    fake.store(0, 0..2);
    fake.script(|asked| {
        if asked.is(RequestCode::CONSUMER_SEND_MSG_BACK) {
            return Reply::UsualAfter(Duration::from_secs(2));
        }
        Reply::Usual
    });
    let (listener, seen) = deciding(failing(1));
    // The time-out of small requests is not that of send-backs.
    let consumer = fake.consumer().request_timeout(Duration::from_millis(500)).listener(listener).start().unwrap();
    take(&seen, 2);
    wait_until("the offset", || fake.commit_of(0) == Some(2));
    assert_eq!(fake.count(RequestCode::CONSUMER_SEND_MSG_BACK), 1);
    assert_eq!(fake.count(RequestCode::SEND_MESSAGE_V2), 0);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_message_of_the_retry_topic_shows_its_own_topic_and_counts() {
    let fake = Fake::start(1);
    retry_route(&fake);
    let text = format!("{}\u{1}{TOPIC}\u{2}{}\u{1}unique\u{2}", properties::RETRY_TOPIC, properties::UNIQ_KEY);
    let fields = rocketmq_sync::message::store_codec::StoredFields {
        reconsume_times: 2,
        ..rocketmq_sync::message::store_codec::StoredFields::new("%RETRY%g", b"again", &text)
    };
    let mut record = Vec::new();
    rocketmq_sync::message::store_codec::encode_stored(&fields, &mut record).unwrap();
    fake.state().messages.insert(("%RETRY%g".into(), 0), vec![record.into()]);
    let (tell, seen) = std::sync::mpsc::channel();
    let (listener, _seen) = deciding(move |message| {
        let _ = tell.send((message.topic().to_owned(), message.reconsume_times()));
        ConsumeConcurrentlyStatus::ReconsumeLater
    });
    let consumer = fake.consumer().listener(listener).start().unwrap();
    assert_eq!(seen.recv_timeout(LONG).unwrap(), (TOPIC.to_owned(), 2));
    let back = fake.wait_for("the send-back", |asked| asked.is(RequestCode::CONSUMER_SEND_MSG_BACK));
    assert_eq!((back.field("originTopic"), back.field("originMsgId")), (TOPIC, "unique"));
    consumer.shutdown(LONG);
}
