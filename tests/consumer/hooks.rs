//! Hooks around listener calls, and the statistics.

use crate::support::*;
use rocketmq_sync::{
    ConsumeCall, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeHook, ConsumeOutcome, ConsumeReturn,
    MessageExt,
};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Notes what it hears, as text.
struct Notes(Arc<Mutex<Vec<String>>>);

impl ConsumeHook for Notes {
    fn before(&self, call: &ConsumeCall<'_>) {
        let body = String::from_utf8_lossy(call.messages()[0].body());
        self.0.lock().unwrap().push(format!("before {body} of {} in {}", call.message_queue().topic(), call.group()));
    }

    fn after(&self, call: &ConsumeCall<'_>, outcome: &ConsumeOutcome) {
        let body = String::from_utf8_lossy(call.messages()[0].body());
        self.0.lock().unwrap().push(format!("after {body}: {:?}, {} failed", outcome.returned(), outcome.failed()));
    }
}

struct Broken;

impl ConsumeHook for Broken {
    fn before(&self, _: &ConsumeCall<'_>) {
        panic!("a broken hook");
    }

    fn after(&self, _: &ConsumeCall<'_>, _: &ConsumeOutcome) {
        panic!("a broken hook");
    }
}

#[test]
fn hooks_hear_of_each_call_and_their_panics_change_nothing() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..3);
    let notes = Arc::new(Mutex::new(Vec::new()));
    let (sender, seen) = channel();
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(1)
        .max_reconsume_times(Some(0))
        .consume_hook(Broken)
        .consume_hook(Notes(notes.clone()))
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            sender.send(()).unwrap();
            match messages[0].body() {
                b"1" => ConsumeConcurrentlyStatus::ReconsumeLater,
                b"2" => panic!("on purpose"),
                _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
            }
        })
        .start()
        .unwrap();
    (0..3).for_each(|_| seen.recv_timeout(LONG).unwrap());
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean() && report.consumed() == 1, "{report:?}");
    let notes = notes.lock().unwrap().clone();
    let expected = [
        "before 0 of orders in g",
        "after 0: Success, 0 failed",
        "before 1 of orders in g",
        "after 1: Failed, 1 failed",
        "before 2 of orders in g",
        "after 2: Panicked, 1 failed",
    ];
    assert_eq!(notes, expected);
}

/// Sends each outcome on.
struct Outcomes(Mutex<Sender<ConsumeOutcome>>);

impl ConsumeHook for Outcomes {
    fn after(&self, _: &ConsumeCall<'_>, outcome: &ConsumeOutcome) {
        let _ = self.0.lock().unwrap().send(*outcome);
    }
}

#[test]
fn statistics_count_messages_calls_and_times_by_topic() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..40);
    let (sender, outcomes) = channel();
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(2)
        .consume_batch_size(4)
        .consume_hook(Outcomes(Mutex::new(sender)))
        .listener(|messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
            for (index, message) in messages.iter().enumerate() {
                if message.body() == b"7" && message.reconsume_times() == 0 {
                    context.retry_with_delay(index, 1);
                }
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    wait_until("all are handled", || consumer.consumed() == 40);
    let stats = consumer.stats();
    let orders = stats.topics["orders"];
    assert_eq!((orders.pulled, orders.consumed, orders.failed), (40, 39, 1));
    assert!(orders.pulls >= 2 && orders.pull_time > Duration::ZERO, "{orders:?}");
    assert!(orders.calls >= 10 && orders.consume_time > Duration::ZERO, "{orders:?}");
    assert!(orders.last_minute.consumed_per_second > 0.0 && orders.failed_last_hour == 1);
    assert_eq!(stats.topics["%RETRY%g"].consumed, 1);
    assert_eq!((stats.consumed(), stats.failed(), stats.consume_threads), (40, 1, 2));
    assert_eq!((stats.cached_messages, stats.cached_bytes), (0, 0));
    assert!(stats.uptime > Duration::ZERO);
    let outcomes: Vec<_> = outcomes.try_iter().collect();
    assert_eq!(outcomes.len() as u64, stats.topics.values().map(|topic| topic.calls).sum::<u64>());
    assert_eq!(outcomes.iter().filter(|one| one.returned() == ConsumeReturn::Failed && one.failed() == 1).count(), 1);
}
