//! The concurrent service: the time-out of a listener, the number of workers, the limit of a topic, batches.

use crate::support::*;
use rocketmq_sync::{
    ConsumeCall, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeHook, ConsumeOutcome, ConsumeReturn,
    ConsumerEvent, ErrorKind, Message, MessageExt, MessageListenerConcurrently, PushConsumer,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Opens once and stays open.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(open, |open| !*open).unwrap());
    }
}

/// A listener that tells each begin, and hangs at the first delivery of those that `hangs` names.
fn hanging(
    hangs: impl Fn(&MessageExt) -> bool + Send + Sync + 'static,
) -> (impl MessageListenerConcurrently, Receiver<Seen>, Gate) {
    let (begun, begins) = channel();
    let gate = Gate::default();
    let inner = gate.clone();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        for message in messages {
            let _ = begun.send(Seen::of(message));
        }
        if messages.iter().any(|message| message.reconsume_times() == 0 && hangs(message)) {
            inner.pass();
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    (listener, begins, gate)
}

struct Returns(Mutex<Sender<ConsumeReturn>>);

impl ConsumeHook for Returns {
    fn after(&self, _: &ConsumeCall<'_>, outcome: &ConsumeOutcome) {
        let _ = self.0.lock().unwrap().send(outcome.returned());
    }
}

fn committed(consumer: &PushConsumer, topic: &str) -> i64 {
    let held = consumer.assignment();
    held.iter().filter(|state| state.queue().topic() == topic).filter_map(|state| state.commit_offset()).sum()
}

#[test]
fn a_message_that_hangs_is_sent_back_and_those_that_wait_never_time_out() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..100);
    let (listener, begins, gate) = hanging(|message| message.body() == b"0");
    let (tell, events) = channel();
    let (returned, returns) = channel();
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(1)
        .consume_timeout(Duration::from_millis(200))
        .consume_hook(Returns(Mutex::new(returned)))
        .event_listener(move |event| {
            let _ = tell.send(event.clone());
        })
        .listener(listener)
        .start()
        .unwrap();
    let event = events.recv_timeout(LONG).unwrap();
    let ConsumerEvent::ConsumeTimeout { queue, offset, messages, after } = &event else { panic!("{event:?}") };
    assert_eq!((queue.topic(), *offset, *messages), ("orders", 0, 1));
    assert!(*after >= Duration::from_millis(200), "{after:?}");
    assert!(event.to_string().contains("orders"), "{event}");
    wait_until("the offset has passed the message that hangs", || committed(&consumer, "orders") >= 1);
    // 99 others have been waiting for the only worker all the time.
    assert_eq!(begins.try_iter().count(), 1);
    gate.open();
    let all = receive_until(&begins, "the others, and the first once more", |all| all.len() == 100);
    assert!(counts(&all).values().all(|count| *count == 1), "{:?}", counts(&all));
    assert_eq!(all.iter().filter(|one| one.reconsume_times == 1).map(|one| &*one.body).collect::<Vec<_>>(), ["0"]);
    wait_until("all are finished", || consumer.consumed() == 100);
    let stats = consumer.stats();
    assert_eq!((stats.topics["orders"].timed_out, stats.failed()), (1, 1));
    assert!(events.try_recv().is_err(), "only one message has timed out");
    assert_eq!(returns.try_iter().filter(|one| *one == ConsumeReturn::TimedOut).count(), 1);
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean() && report.consumed() == 100, "{report:?}");
}

#[test]
fn a_batch_that_hangs_is_sent_back_whole_and_its_late_failure_changes_nothing() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..4);
    let (begun, begins) = channel();
    let gate = Gate::default();
    let inner = gate.clone();
    let consumer = builder(&cluster, "g", "orders")
        .consume_batch_size(4)
        .consume_threads(2)
        .consume_timeout(Duration::from_millis(100))
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            messages.iter().for_each(|message| begun.send(Seen::of(message)).unwrap());
            if messages[0].reconsume_times() > 0 {
                return ConsumeConcurrentlyStatus::ConsumeSuccess;
            }
            inner.pass();
            panic!("late and failed");
        })
        .start()
        .unwrap();
    let all = receive_until(&begins, "each twice", |all| all.len() == 8);
    assert!(counts(&all).values().all(|count| *count == 2));
    gate.open();
    // A late answer that counted would send all of them back a second time.
    send(&cluster, "orders", 4..5);
    assert!(consumer.shutdown(LONG).is_clean());
    drop(consumer);
    assert!(begins.try_iter().all(|one| one.body == "4" || one.reconsume_times <= 1));
}

#[test]
fn the_time_out_acts_again_when_the_broker_was_away() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..1);
    let (listener, begins, gate) = hanging(|_| true);
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(2)
        .consume_timeout(Duration::from_millis(300))
        .listener(listener)
        .start()
        .unwrap();
    begins.recv_timeout(LONG).unwrap();
    cluster.stop_broker("broker-a").unwrap();
    wait_until("its time was up", || consumer.failed() == 1);
    assert_eq!(committed(&consumer, "orders"), 0, "stored nowhere, so the offset stays");
    cluster.restart_broker("broker-a").unwrap();
    let again = receive_until(&begins, "it comes again", |all| !all.is_empty());
    assert_eq!(again[0].reconsume_times, 1);
    wait_until("the offset has passed it", || committed(&consumer, "orders") == 1);
    gate.open();
    assert!(consumer.shutdown(LONG).is_clean());
}

/// How many calls are in the listener now and were at the most.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }
}

#[test]
fn workers_come_and_go_while_messages_flow_and_none_is_lost() {
    let cluster = cluster("orders", 4);
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").consume_threads(2).listener(listener).start().unwrap();
    let mut all = Vec::new();
    for (round, threads) in [7, 1, 12, 3, 1, 5].into_iter().enumerate() {
        send(&cluster, "orders", round * 100..(round + 1) * 100);
        consumer.set_consume_threads(threads).unwrap();
        assert_eq!(consumer.stats().consume_threads, threads);
        all.extend(receive_until(&seen, "a round of messages", |more| all.len() + more.len() >= (round + 1) * 100));
    }
    assert_eq!(counts(&all).len(), 600);
    assert_eq!(all.len(), 600, "none twice");
    assert_eq!(consumer.set_consume_threads(0).unwrap_err().kind(), ErrorKind::Config);
    assert!(consumer.shutdown(LONG).is_clean());
    assert_eq!(consumer.set_consume_threads(4).unwrap_err().kind(), ErrorKind::State);
}

#[test]
fn a_worker_in_excess_finishes_its_call_and_leaves_its_list_to_others() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..30);
    let crowd = Arc::new(Crowd::default());
    let gate = Gate::default();
    let (seen, begins) = channel();
    let (inner, open) = (crowd.clone(), gate.clone());
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(6)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            inner.enter();
            seen.send(Seen::of(&messages[0])).unwrap();
            open.pass();
            inner.leave();
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    wait_until("six are in the listener", || crowd.now() == 6);
    consumer.set_consume_threads(1).unwrap();
    assert_eq!(crowd.now(), 6, "nobody was torn out");
    consumer.set_consume_threads(2).unwrap();
    gate.open();
    let all = receive_until(&begins, "all 30", |all| all.len() == 30);
    assert_eq!(counts(&all).len(), 30);
    assert!(consumer.shutdown(LONG).is_clean());
    assert_eq!(crowd.most.load(Ordering::SeqCst), 6);
}

#[test]
fn a_limited_topic_takes_its_share_of_workers_and_leaves_the_rest_to_others() {
    let cluster = cluster("slow", 4);
    cluster.create_topic("fast", 4).unwrap();
    send(&cluster, "slow", 0..40);
    let crowd = Arc::new(Crowd::default());
    let gate = Gate::default();
    let (sender, seen) = channel();
    let (inner, open) = (crowd.clone(), gate.clone());
    let consumer = builder(&cluster, "g", "slow")
        .subscribe("fast", "*")
        .topic_concurrency("slow", 2)
        .consume_threads(4)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            let message = &messages[0];
            let is_slow = message.topic() == "slow";
            if is_slow {
                inner.enter();
                open.pass();
                inner.leave();
            }
            sender.send(Seen::of(message)).unwrap();
            // Those that come again count for their topic too.
            let fails = is_slow && message.reconsume_times() == 0 && message.body().ends_with(b"5");
            match fails {
                true => ConsumeConcurrentlyStatus::ReconsumeLater,
                false => ConsumeConcurrentlyStatus::ConsumeSuccess,
            }
        })
        .start()
        .unwrap();
    wait_until("the slow topic has its two workers", || crowd.now() == 2);
    send(&cluster, "fast", 0..100);
    let fast = receive_until(&seen, "100 messages of the other topic", |all| all.len() == 100);
    assert!(fast.iter().all(|one| one.topic == "fast"));
    gate.open();
    let slow = receive_until(&seen, "all slow ones, four of them twice", |all| all.len() == 44);
    assert_eq!(counts(&slow).len(), 40);
    assert_eq!(crowd.most.load(Ordering::SeqCst), 2);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn each_message_of_a_batch_comes_again_after_its_own_delay_or_not_at_all() {
    // Level 5 is the only one that is over within the test.
    let mut levels = vec!["1h"; 18];
    levels[4] = "100ms";
    let cluster =
        rocketmq_sync::EmbeddedCluster::builder().topic("orders", 1).delay_levels(levels.join(" ")).start().unwrap();
    let sender = producer(&cluster);
    (0..8).for_each(|number| drop(sender.send(&Message::new("orders", number.to_string())).unwrap()));
    let (begun, begins) = channel();
    let consumer = builder(&cluster, "g", "orders")
        .consume_batch_size(8)
        .listener(move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
            for (index, message) in messages.iter().enumerate() {
                let one = Seen::of(message);
                match (&*one.body, one.reconsume_times) {
                    ("1" | "6", 0) => context.retry_with_delay(index, 5),
                    ("3", 0) => context.retry_with_delay(index, -1),
                    _ => {}
                }
                begun.send(one).unwrap();
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    let all = receive_until(&begins, "8 messages and 2 again", |all| all.len() == 10);
    let again: BTreeSet<_> = all.iter().filter(|one| one.reconsume_times == 1).map(|one| &*one.body).collect();
    assert_eq!(again, BTreeSet::from(["1", "6"]));
    let (listener, dead) = recording(accept);
    let _reader = builder(&cluster, "reader", "%DLQ%g").listener(listener).start().unwrap();
    assert_eq!(receive_until(&dead, "the dead letter", |all| !all.is_empty())[0].body, "3");
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn what_was_finished_before_a_call_that_hangs_is_not_held_up_by_it() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..9);
    let (listener, begins, gate) = hanging(|message| message.body() == b"7");
    let first = builder(&cluster, "g", "orders")
        .consume_threads(1)
        .persist_interval(Duration::from_millis(50))
        .listener(listener)
        .start()
        .unwrap();
    receive_until(&begins, "the eighth is at work", |all| all.len() == 8);
    wait_until("the offset stands before the one that hangs", || committed(&first, "orders") == 7);
    let report = first.shutdown(Duration::from_millis(50));
    assert_eq!((report.unfinished(), report.uncommitted()), (1, 0), "{report:?}");
    gate.open();
    let (listener, seen) = recording(accept);
    let _second = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    let rest = receive_until(&seen, "the unfinished one and the one behind it", |all| all.len() == 2);
    assert_eq!(counts(&rest).into_keys().collect::<Vec<_>>(), ["7", "8"]);
}

#[test]
fn a_time_out_passes_the_offset_over_what_the_same_worker_finished_before() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..9);
    let (listener, begins, gate) = hanging(|message| message.body() == b"7");
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(2)
        .consume_timeout(Duration::from_millis(200))
        .listener(listener)
        .start()
        .unwrap();
    receive_until(&begins, "all, and the one that hangs again", |all| all.len() == 10);
    wait_until("nothing holds the offset up", || committed(&consumer, "orders") == 9);
    gate.open();
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn an_orderly_consumer_is_resized_too_and_keeps_its_order() {
    use rocketmq_sync::{ConsumeOrderlyContext, ConsumeOrderlyStatus};
    let cluster = cluster("orders", 4);
    let (sender, seen) = channel();
    let consumer = PushConsumer::builder("g")
        .name_servers(cluster.name_servers())
        .subscribe("orders", "*")
        .consume_from(rocketmq_sync::ConsumeFromWhere::FirstOffset)
        .consume_threads(6)
        .listener_orderly(move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| {
            messages.iter().for_each(|message| sender.send(Seen::of(message)).unwrap());
            ConsumeOrderlyStatus::Success
        })
        .start()
        .unwrap();
    let mut all = Vec::new();
    for (round, threads) in [1, 5, 2].into_iter().enumerate() {
        send(&cluster, "orders", round * 100..(round + 1) * 100);
        consumer.set_consume_threads(threads).unwrap();
        all.extend(receive_until(&seen, "a round of messages", |more| all.len() + more.len() >= (round + 1) * 100));
    }
    for queue in 0..4 {
        let numbers: Vec<usize> = all
            .iter()
            .filter(|one: &&Seen| one.queue.queue_id() == queue)
            .map(|one| one.body.parse().unwrap())
            .collect();
        assert!(numbers.len() >= 50 && numbers.is_sorted(), "{numbers:?}");
    }
    assert!(consumer.shutdown(LONG).is_clean());
}
