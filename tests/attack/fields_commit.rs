//! Field reports about the stop, and about what is stored when (34, 23).

use crate::fake::*;
use rocketmq_sync::protocol::{RequestCode, ResponseCode};
use rocketmq_sync::thread::Latch;
use rocketmq_sync::{ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageExt};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_stop_stores_what_finished_and_sends_failures_back_before_it_leaves() {
    let fake = Fake::start(1);
    fake.store(0, 0..8);
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = deciding(move |message| {
        assert!(wait.wait_timeout(LONG));
        if message.queue_offset() == 1 {
            ConsumeConcurrentlyStatus::ReconsumeLater
        } else {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        }
    });
    let consumer = fake.consumer().consume_threads(3).listener(listener).start().unwrap();
    take(&seen, 3);
    let report = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| consumer.shutdown(LONG));
        wait_until("the stop has begun", || !consumer.health().is_running());
        go.set();
        stopping.join().unwrap()
    });
    assert!(report.is_clean(), "{report:?}");
    assert!(seen.try_recv().is_err(), "new work began during the stop");
    assert_eq!(fake.commit_of(0), Some(3));
    let order = fake.asked(|_| true);
    let last = |code| order.iter().rposition(|asked| asked.is(code) && !asked.field("topic").starts_with('%'));
    let left = order.iter().position(|asked| asked.is(RequestCode::UNREGISTER_CLIENT)).unwrap();
    assert!(last(RequestCode::UPDATE_CONSUMER_OFFSET).unwrap() < left);
    assert!(last(RequestCode::CONSUMER_SEND_MSG_BACK).unwrap() < left);
    assert!(last(RequestCode::HEART_BEAT).unwrap() < left);
    assert_eq!(fake.count(RequestCode::CONSUMER_SEND_MSG_BACK), 1);
    assert_eq!(report.committed().values().copied().collect::<Vec<_>>(), [3]);
}

#[test]
fn after_the_deadline_nothing_is_sent_back_and_the_report_names_what_is_left() {
    let fake = Fake::start(1);
    fake.store(0, 0..2);
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = deciding(move |message| {
        if message.queue_offset() == 0 {
            assert!(wait.wait_timeout(LONG));
        }
        ConsumeConcurrentlyStatus::ReconsumeLater
    });
    let consumer = fake.consumer().listener(listener).start().unwrap();
    take(&seen, 2);
    wait_until("the quick one is back", || fake.count(RequestCode::CONSUMER_SEND_MSG_BACK) == 1);
    let report = consumer.shutdown(Duration::from_millis(300));
    assert!(!report.is_clean());
    assert_eq!(report.unfinished(), 1, "{report:?}");
    assert_eq!(report.uncommitted(), 1, "{report:?}");
    go.set();
    wait_until("its listener is done", || consumer.failed() == 2);
    assert_eq!(fake.count(RequestCode::CONSUMER_SEND_MSG_BACK), 1);
    assert!(fake.asked(Asked::is_commit).iter().all(|commit| commit.number("commitOffset") == 0));
}

#[test]
fn a_listener_that_panics_on_every_message_keeps_its_workers_and_loses_nothing() {
    let fake = Fake::start(1);
    fake.store(0, 0..60);
    let calls = std::sync::Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        count.fetch_add(1, Ordering::SeqCst);
        if messages[0].queue_offset() < 50 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let consumer = fake.consumer().consume_threads(2).listener(listener).start().unwrap();
    wait_until("the offset", || fake.commit_of(0) == Some(60));
    assert_eq!(calls.load(Ordering::SeqCst), 60);
    assert_eq!(fake.count(RequestCode::CONSUMER_SEND_MSG_BACK), 50);
    let back = fake.asked(|asked| asked.is(RequestCode::CONSUMER_SEND_MSG_BACK));
    assert!(back.iter().all(|asked| asked.number("delayLevel") == 0));
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn an_event_listener_that_panics_stops_no_queue() {
    let fake = Fake::start(1);
    fake.store(0, 42..44);
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener);
    let consumer = consumer.event_listener(|_| std::panic::resume_unwind(Box::new("on purpose"))).start().unwrap();
    // It begins at 0 and is corrected, which is an event.
    assert_eq!(take(&seen, 2).len(), 2);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_commit_that_is_refused_is_tried_again_until_it_is_stored() {
    let fake = Fake::start(1);
    fake.store(0, 0..5);
    fake.script(|asked| {
        if asked.is_commit() && asked.before < 4 {
            return match asked.before % 2 {
                0 => Reply::Give(refuse(ResponseCode::SYSTEM_BUSY)),
                _ => Reply::Close,
            };
        }
        Reply::Usual
    });
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    take(&seen, 5);
    wait_until("the offset", || fake.commit_of(0) == Some(5));
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.consumed(), 5);
}
