//! Order within a queue: what comes when, what comes again, and what a commit is.

use crate::support::*;
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeOrderlyContext, ConsumeOrderlyStatus, EmbeddedCluster, Message, MessageExt,
    MessageModel, PushConsumer,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(20);
use ConsumeOrderlyStatus::{Commit, Rollback, Success, SuspendCurrentQueueAMoment};

/// A listener that records each delivery before it answers by `decide`.
pub fn recording_orderly(
    decide: impl Fn(&MessageExt, &mut ConsumeOrderlyContext) -> ConsumeOrderlyStatus + Send + Sync + 'static,
) -> (impl Fn(&[MessageExt], &mut ConsumeOrderlyContext) -> ConsumeOrderlyStatus + Send + Sync + 'static, Receiver<Seen>)
{
    let (sender, receiver) = channel();
    let listener = move |messages: &[MessageExt], context: &mut ConsumeOrderlyContext| {
        context.set_suspend(SOON);
        for message in messages {
            let _ = sender.send(Seen::of(message));
        }
        decide(&messages[0], context)
    };
    (listener, receiver)
}

pub fn bodies(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|one| &*one.body).collect()
}

/// Sends messages with a sharding key each, all to queue 0 of a topic that has only that one.
fn send_keyed(cluster: &EmbeddedCluster, topic: &str, messages: &[(&str, &str)]) {
    let producer = producer(cluster);
    for (key, body) in messages {
        let message = Message::new(topic, (*body).to_owned()).with_property("__SHARDINGKEY", *key);
        producer.send(&message).unwrap();
    }
}

#[test]
fn the_messages_of_each_queue_come_in_order() {
    let cluster = cluster("orders", 4);
    send(&cluster, "orders", 0..400);
    let (listener, seen) = recording_orderly(|_, _| Success);
    let consumer = builder(&cluster, "g", "orders").consume_threads(8).listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "400 messages", |all| all.len() == 400);
    let mut last = BTreeMap::new();
    for one in &all {
        let number: usize = one.body.parse().unwrap();
        let before = last.insert(one.queue.clone(), number);
        assert!(before.is_none_or(|before| before < number), "{before:?} before {number} in {}", one.queue);
    }
    assert_eq!(last.len(), 4);
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.consumed(), 400);
    assert_eq!(
        report.committed().iter().filter(|(queue, _)| queue.topic() == "orders").map(|(_, at)| at).sum::<i64>(),
        400
    );
}

#[test]
fn one_listener_at_a_time_is_in_a_queue_and_several_are_in_different_ones() {
    let cluster = cluster("orders", 2);
    send(&cluster, "orders", 0..40);
    let inside: Arc<Mutex<BTreeMap<i32, usize>>> = Arc::default();
    let meeting = Arc::new(Barrier::new(2));
    let (met, wrong) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (listener, seen) = recording_orderly({
        let (inside, wrong, met) = (inside.clone(), wrong.clone(), met.clone());
        move |message, _| {
            let queue = message.queue_id();
            let now_inside = {
                let mut inside = inside.lock().unwrap();
                let count = inside.entry(queue).or_default();
                *count += 1;
                *count
            };
            wrong.fetch_add(usize::from(now_inside > 1), Ordering::SeqCst);
            // The first of each queue wait for each other.
            if message.queue_offset() == 0 {
                meeting.wait();
                met.fetch_add(1, Ordering::SeqCst);
            }
            *inside.lock().unwrap().get_mut(&queue).unwrap() -= 1;
            Success
        }
    });
    let _consumer = builder(&cluster, "g", "orders").consume_threads(8).listener_orderly(listener).start().unwrap();
    receive_until(&seen, "40 messages", |all| all.len() == 40);
    assert_eq!((wrong.load(Ordering::SeqCst), met.load(Ordering::SeqCst)), (0, 2));
}

#[test]
fn a_suspended_message_comes_again_before_anything_behind_it() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..10);
    let (listener, seen) = recording_orderly(|message, _| {
        if message.body() == b"3" && message.reconsume_times() < 4 { SuspendCurrentQueueAMoment } else { Success }
    });
    let consumer = builder(&cluster, "g", "orders")
        .pull_batch_size(5)
        .pull_threshold_for_queue(5)
        .listener_orderly(listener)
        .start()
        .unwrap();
    let all = receive_until(&seen, "all with their repetitions", |all| all.len() == 14);
    assert_eq!(bodies(&all), ["0", "1", "2", "3", "3", "3", "3", "3", "4", "5", "6", "7", "8", "9"]);
    let tries: Vec<_> = all.iter().filter(|one| one.body == "3").map(|one| one.reconsume_times).collect();
    assert_eq!(tries, [0, 1, 2, 3, 4]);
    assert_eq!(consumer.failed(), 4);
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.consumed(), 10);
}

#[test]
fn a_panic_is_a_suspension() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..3);
    let (listener, seen) = recording_orderly(|message, _| {
        assert!(message.body() != b"1" || message.reconsume_times() > 0, "a defect of the listener");
        Success
    });
    let _consumer =
        builder(&cluster, "g", "orders").suspend_current_queue_time(SOON).listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "all", |all| all.len() == 4);
    assert_eq!(bodies(&all), ["0", "1", "1", "2"]);
}

#[test]
fn a_batch_fails_as_a_whole() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..4);
    let (listener, seen) =
        recording_orderly(
            |message, _| {
                if message.reconsume_times() == 0 { SuspendCurrentQueueAMoment } else { Success }
            },
        );
    let consumer = builder(&cluster, "g", "orders").consume_batch_size(2).listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "each twice", |all| all.len() >= 8);
    assert_eq!(bodies(&all), ["0", "1", "0", "1", "2", "3", "2", "3"]);
    assert_eq!(consumer.shutdown(LONG).consumed(), 4);
}

#[test]
fn without_automatic_commit_the_offset_waits_and_a_rollback_brings_all_back() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..6);
    let rolled_back = AtomicUsize::new(0);
    let (listener, seen) = recording_orderly(move |message, context| {
        context.set_auto_commit(false);
        match message.body() {
            b"1" => Commit,
            b"4" if rolled_back.fetch_add(1, Ordering::SeqCst) == 0 => Rollback,
            _ => Success,
        }
    });
    let first = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "all with those rolled back", |all| all.len() == 9);
    assert_eq!(bodies(&all), ["0", "1", "2", "3", "4", "2", "3", "4", "5"]);
    assert!(all.iter().all(|one| one.reconsume_times == 0), "a rollback is no failed try");
    wait_until("the last answer is settled", || first.consumed() == 8);
    let report = first.shutdown(LONG);
    assert_eq!(report.committed().iter().find(|(queue, _)| queue.topic() == "orders").map(|(_, at)| *at), Some(2));
    // The next owner begins at the commit.
    let (listener, seen) = recording_orderly(|_, _| Success);
    let _second = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "what was not committed", |all| all.len() == 4);
    assert_eq!(bodies(&all), ["2", "3", "4", "5"]);
}

#[test]
fn with_automatic_commit_a_rollback_loses_nothing() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..3);
    let calls = AtomicUsize::new(0);
    let (listener, seen) =
        recording_orderly(move |_, _| if calls.fetch_add(1, Ordering::SeqCst) == 1 { Rollback } else { Commit });
    let _consumer = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "all", |all| all.len() == 4);
    assert_eq!(bodies(&all), ["0", "1", "1", "2"]);
}

#[test]
fn past_the_limit_a_message_is_a_dead_letter_and_the_next_one_comes() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..3);
    let (listener, seen) =
        recording_orderly(|message, _| if message.body() == b"1" { SuspendCurrentQueueAMoment } else { Success });
    let consumer =
        builder(&cluster, "g", "orders").max_reconsume_times(Some(3)).listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "the message behind it", |all| all.iter().any(|one| one.body == "2"));
    assert_eq!(bodies(&all), ["0", "1", "1", "1", "1", "2"]);
    let (listener, dead) = recording(accept);
    let _undertaker = builder(&cluster, "undertaker", "%DLQ%g").listener(listener).start().unwrap();
    let dead = receive_until(&dead, "the dead letter", |all| all.len() == 1);
    assert_eq!(bodies(&dead), ["1"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_suspended_queue_neither_holds_up_a_stop_nor_loses_its_message() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..3);
    let (listener, seen) = recording_orderly(|message, context| {
        context.set_suspend(Duration::from_secs(30));
        if message.body() == b"1" { SuspendCurrentQueueAMoment } else { Success }
    });
    let first = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    receive_until(&seen, "the message that is suspended", |all| all.len() == 2);
    wait_until("it says why it stands still", || {
        first.health().standing_still().any(|queue| queue.standing_still().unwrap().contains("suspended"))
    });
    let report = first.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    let (listener, seen) = recording_orderly(|_, _| Success);
    let _second = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "the rest", |all| all.len() == 2);
    assert_eq!(bodies(&all), ["1", "2"]);
}

#[test]
fn different_keys_of_one_queue_run_at_once_and_equal_ones_never() {
    let cluster = cluster("orders", 1);
    let messages: Vec<_> = (0..30).map(|n| (["a", "b", "c"][n % 3], n.to_string())).collect();
    let messages: Vec<_> = messages.iter().map(|(key, body)| (*key, &**body)).collect();
    send_keyed(&cluster, "orders", &messages);
    let inside: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let wrong = Arc::new(AtomicUsize::new(0));
    // Each round of the three keys meets: without parallel keys the test would stand still.
    let meeting = Arc::new(Barrier::new(3));
    let (listener, seen) = recording_orderly({
        let wrong = wrong.clone();
        move |message, _| {
            let key = message.property("__SHARDINGKEY").unwrap().to_owned();
            let count = {
                let mut inside = inside.lock().unwrap();
                *inside.entry(key.clone()).and_modify(|count| *count += 1).or_insert(1)
            };
            wrong.fetch_add(usize::from(count > 1), Ordering::SeqCst);
            meeting.wait();
            *inside.lock().unwrap().get_mut(&key).unwrap() -= 1;
            Success
        }
    });
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(8)
        .order_by_key(true)
        .listener_orderly(listener)
        .start()
        .unwrap();
    let all = receive_until(&seen, "30 messages", |all| all.len() == 30);
    for key in 0..3 {
        let of_key: Vec<usize> =
            all.iter().map(|one| one.body.parse().unwrap()).filter(|number| number % 3 == key).collect();
        assert!(of_key.is_sorted(), "{of_key:?}");
    }
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_suspended_key_holds_up_itself_only_and_the_offset_waits_for_it() {
    let cluster = cluster("orders", 1);
    send_keyed(&cluster, "orders", &[("bad", "0"), ("good", "1"), ("bad", "2"), ("good", "3")]);
    send(&cluster, "orders", 4..6);
    let (listener, seen) = recording_orderly(|message, context| {
        context.set_suspend(Duration::from_secs(30));
        if message.body() == b"0" { SuspendCurrentQueueAMoment } else { Success }
    });
    let first = builder(&cluster, "g", "orders").order_by_key(true).listener_orderly(listener).start().unwrap();
    let all = receive_until(&seen, "all but what is behind the suspended one", |all| all.len() == 5);
    let keyed: Vec<_> = bodies(&all).into_iter().filter(|body| ["1", "3"].contains(body)).collect();
    let keyless: Vec<_> = bodies(&all).into_iter().filter(|body| ["4", "5"].contains(body)).collect();
    assert_eq!((keyed, keyless), (vec!["1", "3"], vec!["4", "5"]));
    wait_until("the others are finished", || first.consumed() == 4);
    let report = first.shutdown(LONG);
    assert_eq!(report.committed().iter().find(|(queue, _)| queue.topic() == "orders").map(|(_, at)| *at), Some(0));
    assert_eq!(report.uncommitted(), 4, "finished behind the suspended one, so they come again");
}

#[test]
fn what_was_finished_before_a_slow_call_is_stored_while_it_runs() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..3);
    let (release, hang) = channel::<()>();
    let hang = Mutex::new(hang);
    let (listener, seen) = recording_orderly(move |message, _| {
        if message.body() == b"2" {
            let _ = hang.lock().unwrap().recv();
        }
        Success
    });
    let consumer = builder(&cluster, "g", "orders")
        .persist_interval(Duration::from_millis(20))
        .listener_orderly(listener)
        .start()
        .unwrap();
    receive_until(&seen, "the slow one", |all| all.len() == 3);
    wait_until("the offset of the others is stored", || {
        let states = consumer.assignment();
        states.iter().any(|state| state.queue().topic() == "orders" && state.committed_offset() == Some(2))
    });
    drop(release);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn members_of_a_broadcasting_group_each_see_every_queue_in_order_without_locks() {
    let cluster = cluster("orders", 2);
    send(&cluster, "orders", 0..20);
    let folder = std::env::temp_dir().join(format!("rocketmq-sync-ordered-{}", std::process::id()));
    let members: Vec<_> = (0..2)
        .map(|number| {
            let (listener, seen) = recording_orderly(|_, _| Success);
            let consumer = builder(&cluster, "g", "orders")
                .message_model(MessageModel::Broadcasting)
                .offset_store_dir(&folder)
                .instance_name(format!("ordered-{number}-{}", std::process::id()))
                .listener_orderly(listener)
                .start()
                .unwrap();
            (consumer, seen)
        })
        .collect();
    for (consumer, seen) in &members {
        let all = receive_until(seen, "20 messages", |all| all.len() == 20);
        for queue in 0..2 {
            let of_queue = all.iter().filter(|one| one.queue.queue_id() == queue);
            assert!(of_queue.map(|one| one.body.parse::<usize>().unwrap()).is_sorted());
        }
        assert!(consumer.assignment().iter().all(|state| state.lock().is_none()));
    }
    drop(members);
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn exactly_one_kind_of_listener_is_given() {
    let start = |builder: rocketmq_sync::PushConsumerBuilder| builder.name_servers("127.0.0.1:1").start().unwrap_err();
    let both = PushConsumer::builder("g")
        .listener(|_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| unreachable!())
        .listener_orderly(|_: &[MessageExt], _: &mut ConsumeOrderlyContext| unreachable!());
    assert!(start(both).to_string().contains("both set"));
    let by_key = PushConsumer::builder("g")
        .listener(|_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| unreachable!())
        .order_by_key(true);
    assert!(start(by_key).to_string().contains("order_by_key needs listener_orderly"));
}
