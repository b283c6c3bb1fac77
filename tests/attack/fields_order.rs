//! Field reports about consumption in order (19, 44 to 50), and brokers that answer strangely about locks.

use crate::fake::*;
use rocketmq_sync::message::sys_flag;
use rocketmq_sync::protocol::body::{LockBatchRequestBody, LockBatchResponseBody};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::{
    ConsumeFromWhere, ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageExt, MessageQueue, PushConsumer, QueueLock,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn orderly() -> (
    impl Fn(&[MessageExt], &mut ConsumeOrderlyContext) -> ConsumeOrderlyStatus + Send + Sync + 'static,
    Receiver<String>,
) {
    let (sender, seen) = channel();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| {
        for message in messages {
            let _ = sender.send(String::from_utf8_lossy(message.body()).into_owned());
        }
        ConsumeOrderlyStatus::Success
    };
    (listener, seen)
}

/// The queues of the tests' topic in a request for locks.
fn queues_in(asked: &Asked) -> Vec<MessageQueue> {
    let body = LockBatchRequestBody::decode(&asked.command.body).unwrap();
    body.mq_set.into_iter().filter(|queue| queue.topic() == TOPIC).collect()
}

fn is_lock(asked: &Asked) -> bool {
    asked.is(RequestCode::LOCK_BATCH_MQ) && !queues_in(asked).is_empty()
}

fn locked(queues: Vec<MessageQueue>) -> Reply {
    let answer = LockBatchResponseBody { lock_ok_mq_set: queues };
    Reply::Give(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(answer.encode()))
}

fn stands_still(consumer: &PushConsumer, reason: &str) -> bool {
    consumer.health().standing_still().any(|queue| queue.standing_still().unwrap().contains(reason))
}

#[test]
fn a_start_by_policy_is_decided_once_also_when_the_lock_comes_late() {
    let fake = Fake::start(1);
    fake.store(0, 0..10);
    let is_free = Arc::new(AtomicBool::new(false));
    fake.script({
        let is_free = is_free.clone();
        move |asked| match is_lock(asked) && !is_free.load(Ordering::SeqCst) {
            true => locked(Vec::new()),
            false => Reply::Usual,
        }
    });
    let (listener, seen) = orderly();
    let consumer =
        fake.consumer().consume_from(ConsumeFromWhere::LastOffset).listener_orderly(listener).start().unwrap();
    fake.wait_for("the end of the queue is asked for", |asked| {
        asked.is(RequestCode::GET_MAX_OFFSET) && asked.of_topic()
    });
    fake.store(0, 10..13);
    is_free.store(true, Ordering::SeqCst);
    assert_eq!(take(&seen, 3), ["10", "11", "12"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn an_offset_that_the_other_member_stored_meanwhile_counts_more() {
    let fake = Fake::start(1);
    fake.store(0, 0..10);
    let is_free = Arc::new(AtomicBool::new(false));
    fake.script({
        let is_free = is_free.clone();
        move |asked| match is_lock(asked) && !is_free.load(Ordering::SeqCst) {
            true => locked(Vec::new()),
            false => Reply::Usual,
        }
    });
    let (listener, seen) = orderly();
    let consumer = fake.consumer().listener_orderly(listener).start().unwrap();
    fake.wait_for("the lock is asked for again", |asked| is_lock(asked) && asked.before > 1);
    fake.state().offsets.insert((TOPIC.to_owned(), 0), 7);
    is_free.store(true, Ordering::SeqCst);
    assert_eq!(take(&seen, 3), ["7", "8", "9"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_thousand_queues_are_locked_by_few_requests_and_begin_at_once() {
    let fake = Fake::start(1000);
    for queue in 0..1000 {
        fake.store(queue, 0..1);
    }
    let (listener, seen) = orderly();
    let consumer = fake.consumer().listener_orderly(listener).start().unwrap();
    take(&seen, 1000);
    assert!(fake.count(RequestCode::LOCK_BATCH_MQ) < 10, "{} requests", fake.count(RequestCode::LOCK_BATCH_MQ));
    assert!(consumer.shutdown(LONG).is_clean());
    assert!(fake.count(RequestCode::UNLOCK_BATCH_MQ) < 10);
}

#[test]
fn locks_are_given_back_after_the_offset_is_stored_and_before_the_member_leaves() {
    let fake = Fake::start(1);
    fake.store(0, 0..3);
    let (listener, seen) = orderly();
    let consumer = fake.consumer().persist_interval(LONG).listener_orderly(listener).start().unwrap();
    take(&seen, 3);
    assert!(consumer.shutdown(LONG).is_clean());
    let order: Vec<_> = fake
        .asked(|asked| {
            asked.is_commit() || asked.is(RequestCode::UNLOCK_BATCH_MQ) || asked.is(RequestCode::UNREGISTER_CLIENT)
        })
        .iter()
        .map(|asked| asked.command.request_code())
        .collect();
    let [.., RequestCode::UPDATE_CONSUMER_OFFSET, RequestCode::UNLOCK_BATCH_MQ, RequestCode::UNREGISTER_CLIENT] =
        order[..]
    else {
        panic!("{order:?}");
    };
}

#[test]
fn a_queue_whose_renewal_is_refused_stops_at_once_and_the_others_go_on() {
    let fake = Fake::start(2);
    let refuses = Arc::new(AtomicBool::new(false));
    fake.script({
        let refuses = refuses.clone();
        move |asked| match is_lock(asked) && refuses.load(Ordering::SeqCst) {
            true => locked(queues_in(asked).into_iter().filter(|queue| queue.queue_id() == 1).collect()),
            false => Reply::Usual,
        }
    });
    let (listener, seen) = orderly();
    let consumer = fake.consumer().lock_interval(Duration::from_millis(20)).listener_orderly(listener).start().unwrap();
    fake.wait_for("a renewal", |asked| is_lock(asked) && asked.before > 3);
    refuses.store(true, Ordering::SeqCst);
    wait_until("queue 0 is lost", || stands_still(&consumer, "which another member has"));
    fake.store(0, 0..1);
    fake.store(1, 100..103);
    fake.state().offsets.insert((TOPIC.to_owned(), 1), 0);
    assert_eq!(take(&seen, 3), ["100", "101", "102"]);
    refuses.store(false, Ordering::SeqCst);
    assert_eq!(take(&seen, 1), ["0"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_broker_that_locks_other_queues_than_asked_for_starts_nothing() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    fake.script(|asked| match is_lock(asked) {
        true => locked(vec![MessageQueue::new("other", "a", 0), MessageQueue::new(TOPIC, "b", 0)]),
        false => Reply::Usual,
    });
    let (listener, seen) = orderly();
    let consumer = fake.consumer().listener_orderly(listener).start().unwrap();
    fake.wait_for("it asks again", |asked| is_lock(asked) && asked.before > 2);
    assert!(seen.try_recv().is_err());
    assert!(fake.asked(Asked::is_pull).is_empty());
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_broker_that_fails_or_never_answers_about_locks_stops_nothing_but_its_queues() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    let is_well = Arc::new(AtomicBool::new(false));
    fake.script({
        let is_well = is_well.clone();
        move |asked| match asked.is(RequestCode::LOCK_BATCH_MQ) && !is_well.load(Ordering::SeqCst) {
            true if asked.before % 2 == 0 => Reply::Give(refuse(ResponseCode::SYSTEM_ERROR)),
            true => Reply::Nothing,
            false => Reply::Usual,
        }
    });
    let (listener, seen) = orderly();
    let consumer = fake
        .consumer()
        .request_timeout(Duration::from_millis(50))
        .lock_validity(Duration::from_millis(400))
        .lock_interval(Duration::from_millis(100))
        .listener_orderly(listener)
        .start()
        .unwrap();
    fake.wait_for("it asks again", |asked| asked.is(RequestCode::LOCK_BATCH_MQ) && asked.before > 2);
    wait_until("it says so", || stands_still(&consumer, "cannot be asked"));
    is_well.store(true, Ordering::SeqCst);
    assert_eq!(take(&seen, 1), ["0"]);
    // Silence later: what was pulled since is not handed out until the broker confirms.
    is_well.store(false, Ordering::SeqCst);
    wait_until("the lock lapses", || {
        consumer
            .assignment()
            .iter()
            .any(|queue| queue.queue().topic() == TOPIC && queue.lock() == Some(QueueLock::Lapsed))
    });
    fake.store(0, 1..3);
    fake.wait_for("it is pulled", |asked| asked.is_pull() && asked.number("queueOffset") == 3);
    assert!(seen.try_recv().is_err());
    is_well.store(true, Ordering::SeqCst);
    assert_eq!(take(&seen, 2), ["1", "2"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_message_that_cannot_be_stored_elsewhere_at_its_limit_stays_and_is_never_skipped() {
    let fake = Fake::start(1);
    fake.store(0, 0..2);
    let works = Arc::new(AtomicBool::new(false));
    fake.script({
        let works = works.clone();
        move |asked| match asked.command.request_code() {
            RequestCode::CONSUMER_SEND_MSG_BACK | RequestCode::SEND_MESSAGE | RequestCode::SEND_MESSAGE_V2
                if !works.load(Ordering::SeqCst) =>
            {
                Reply::Give(refuse(ResponseCode::SYSTEM_ERROR))
            }
            _ => Reply::Usual,
        }
    });
    let (sender, seen) = channel();
    let consumer = fake
        .consumer()
        .max_reconsume_times(Some(1))
        .suspend_current_queue_time(Duration::from_millis(10))
        .listener_orderly(move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| {
            let body = String::from_utf8_lossy(messages[0].body()).into_owned();
            let is_bad = body == "0";
            let _ = sender.send(body);
            if is_bad { ConsumeOrderlyStatus::SuspendCurrentQueueAMoment } else { ConsumeOrderlyStatus::Success }
        })
        .start()
        .unwrap();
    assert_eq!(take(&seen, 5), ["0"; 5]);
    works.store(true, Ordering::SeqCst);
    let rest = std::iter::from_fn(|| seen.recv_timeout(LONG).ok()).find(|body| body == "1");
    assert!(rest.is_some());
    wait_until("the offset passes it only now", || fake.commit_of(0) == Some(2));
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn an_unreadable_body_is_a_dead_letter_and_the_order_goes_on_around_it() {
    let fake = Fake::start(1);
    fake.store(0, 0..2);
    let flag = sys_flag::COMPRESSED | sys_flag::CompressionType::Zlib.bits();
    {
        let mut state = fake.state();
        let messages = state.messages.get_mut(&(TOPIC.to_owned(), 0)).unwrap();
        messages.push(record(0, 2, b"garbage that is no zlib", flag));
        messages.push(record(0, 3, b"3", 0));
    }
    let works = Arc::new(AtomicBool::new(false));
    fake.script({
        let works = works.clone();
        move |asked| match asked.is(RequestCode::CONSUMER_SEND_MSG_BACK) && !works.swap(true, Ordering::SeqCst) {
            true => Reply::Give(refuse(ResponseCode::SYSTEM_ERROR)),
            false => Reply::Usual,
        }
    });
    let (listener, seen) = orderly();
    let consumer = fake.consumer().consume_batch_size(8).listener_orderly(listener).start().unwrap();
    assert_eq!(take(&seen, 3), ["0", "1", "3"]);
    let back = fake.asked(|asked| asked.is(RequestCode::CONSUMER_SEND_MSG_BACK));
    assert_eq!(back.len(), 2, "refused once, it was tried again before anything behind it");
    wait_until("the offset passes it", || fake.commit_of(0) == Some(4));
    assert!(consumer.shutdown(LONG).is_clean());
}
