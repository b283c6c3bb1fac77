//! Order while queues move: the brokers' locks.

use crate::ordered::{bodies, recording_orderly};
use crate::support::*;
use rocketmq_sync::protocol::body::{LockBatchRequestBody, LockBatchResponseBody};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode};
use rocketmq_sync::remoting::{NoRequests, RemotingClient, RemotingConfig};
use rocketmq_sync::time::{Clock, Deadline};
use rocketmq_sync::{
    ConsumeOrderlyContext, ConsumeOrderlyStatus, EmbeddedCluster, Message, MessageExt, MessageQueue, PushConsumer,
    PushConsumerBuilder, QueueLock,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ConsumeOrderlyStatus::Success;

/// Takes the lock of a queue for a client of another name, as a member that dies then would; whether it got it.
fn lock_for(cluster: &EmbeddedCluster, client_id: &str, group: &str, topic: &str, queue: i32) -> bool {
    let client = RemotingClient::start("tool", RemotingConfig::default(), Arc::new(NoRequests)).unwrap();
    let body = LockBatchRequestBody {
        client_id: client_id.into(),
        consumer_group: group.into(),
        mq_set: vec![MessageQueue::new(topic, "broker-a", queue)],
        only_this_broker: false,
    };
    let request = RemotingCommand::request_without_header(RequestCode::LOCK_BATCH_MQ).with_body(body.encode());
    let broker = Arc::from(cluster.broker_address("broker-a").unwrap().to_string());
    let answer = client.invoke(&broker, request, LONG).unwrap();
    client.shutdown(Deadline::after(LONG));
    !LockBatchResponseBody::decode(&answer.body).unwrap().lock_ok_mq_set.is_empty()
}

fn lock_of(consumer: &PushConsumer, topic: &str) -> Option<QueueLock> {
    consumer.assignment().iter().find(|state| state.queue().topic() == topic).and_then(|state| state.lock())
}

fn stands_still(consumer: &PushConsumer, reason: &str) -> bool {
    consumer.health().standing_still().any(|queue| queue.standing_still().unwrap().contains(reason))
}

/// Sees all members of a group: who is in which queue, and which offset was finished first in which order.
#[derive(Default)]
struct Witness {
    inside: BTreeMap<MessageQueue, usize>,
    finished: BTreeMap<MessageQueue, i64>,
    wrong: Vec<String>,
    done: usize,
}

impl Witness {
    fn listener(
        witness: &Arc<Mutex<Self>>,
        work: Duration,
    ) -> impl Fn(&[MessageExt], &mut ConsumeOrderlyContext) -> ConsumeOrderlyStatus + Send + Sync + 'static {
        let witness = witness.clone();
        move |messages: &[MessageExt], context: &mut ConsumeOrderlyContext| {
            let queue = context.message_queue().clone();
            {
                let mut witness = witness.lock().unwrap();
                let inside = witness.inside.entry(queue.clone()).or_default();
                *inside += 1;
                if *inside > 1 {
                    witness.wrong.push(format!("two listeners in {queue}"));
                }
            }
            std::thread::park_timeout(work);
            let mut witness = witness.lock().unwrap();
            for message in messages {
                let next = witness.finished.entry(queue.clone()).or_default();
                let (offset, expected) = (message.queue_offset(), *next);
                // Going back is a repetition; going ahead of what nobody finished breaks the order.
                if offset == expected {
                    *next += 1;
                    witness.done += 1;
                } else if offset > expected {
                    witness.wrong.push(format!("{offset} of {queue} before {expected}"));
                }
            }
            *witness.inside.get_mut(&queue).unwrap() -= 1;
            Success
        }
    }
}

/// Keeps sending until it is told to stop; returns how many.
fn keep_sending(cluster: &EmbeddedCluster, stop: &AtomicBool) -> usize {
    let producer = producer(cluster);
    let mut sent = 0;
    while !stop.load(Ordering::SeqCst) {
        // A broker that restarts refuses for a moment.
        match producer.send(&Message::new("orders", sent.to_string())) {
            Ok(_) => sent += 1,
            Err(error) => println!("not sent: {error}"),
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    sent
}

fn member(cluster: &EmbeddedCluster, witness: &Arc<Mutex<Witness>>) -> PushConsumer {
    builder(cluster, "g", "orders")
        .consume_threads(4)
        .persist_interval(Duration::from_millis(100))
        .listener_orderly(Witness::listener(witness, Duration::from_millis(1)))
        .start()
        .unwrap()
}

#[test]
fn order_is_held_while_members_join_and_leave() {
    let cluster = cluster("orders", 4);
    let witness: Arc<Mutex<Witness>> = Arc::default();
    let stop = AtomicBool::new(false);
    let (sent, _last) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| keep_sending(&cluster, &stop));
        let mut members = Vec::new();
        for _ in 0..3 {
            members.push(member(&cluster, &witness));
            let at = witness.lock().unwrap().done;
            wait_until("the group works in its new shape", || {
                members.iter().all(|member| !held(member, "orders").is_empty())
                    && witness.lock().unwrap().done > at + 100
            });
        }
        for _ in 0..2 {
            assert!(members.remove(0).shutdown(LONG).is_clean());
            let at = witness.lock().unwrap().done;
            wait_until("the rest works", || witness.lock().unwrap().done > at + 100);
        }
        stop.store(true, Ordering::SeqCst);
        (sending.join().unwrap(), members)
    });
    wait_until("all is consumed", || witness.lock().unwrap().done == sent);
    assert_eq!(witness.lock().unwrap().wrong, Vec::<String>::new());
}

#[test]
fn order_is_held_and_consumption_goes_on_when_a_broker_restarts_and_forgets_its_locks() {
    let cluster = cluster("orders", 4);
    let witness: Arc<Mutex<Witness>> = Arc::default();
    let stop = AtomicBool::new(false);
    let members = [member(&cluster, &witness), member(&cluster, &witness)];
    let sent = std::thread::scope(|scope| {
        let sending = scope.spawn(|| keep_sending(&cluster, &stop));
        wait_until("both have their share", || members.iter().all(|member| held(member, "orders").len() == 2));
        for _ in 0..2 {
            cluster.stop_broker("broker-a").unwrap();
            cluster.restart_broker("broker-a").unwrap();
            let at = witness.lock().unwrap().done;
            wait_until("it goes on", || witness.lock().unwrap().done > at + 100);
        }
        stop.store(true, Ordering::SeqCst);
        sending.join().unwrap()
    });
    wait_until("all is consumed", || witness.lock().unwrap().done == sent);
    assert_eq!(witness.lock().unwrap().wrong, Vec::<String>::new());
    wait_until("the shares are as before, and locked", || {
        members.iter().all(|member| {
            let states = member.assignment();
            let own = states.iter().filter(|state| state.queue().topic() == "orders");
            own.filter(|state| state.lock() == Some(QueueLock::Held)).count() == 2
        })
    });
    for queue in 0..4 {
        assert!(!lock_for(&cluster, "stranger", "g", "orders", queue), "the locks were asked for again");
    }
}

#[test]
fn a_listener_that_outlasts_the_grace_keeps_the_next_member_out() {
    let cluster = cluster("orders", 2);
    send(&cluster, "orders", 0..2);
    let (release, hang) = channel::<()>();
    let hang = Mutex::new(hang);
    let (slow, seen_first) = recording_orderly(move |_, _| {
        let _ = hang.lock().unwrap().recv();
        Success
    });
    let first = builder(&cluster, "g", "orders")
        .revoke_grace(Duration::from_millis(20))
        .listener_orderly(slow)
        .start()
        .unwrap();
    receive_until(&seen_first, "a listener at work", |all| !all.is_empty());
    // Each of the two queues has a message, and the listener's own lock lets one in at a time: both are with a worker.
    receive_until(&seen_first, "the other one too", |all| !all.is_empty());
    let (listener, seen) = recording_orderly(|_, _| Success);
    let second = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    wait_until("the first has given one up", || held(&first, "orders").len() == 1);
    wait_until("the second waits for it", || stands_still(&second, "which another member has"));
    assert!(seen.try_recv().is_err(), "it has nothing while the listener runs");
    release.send(()).unwrap();
    release.send(()).unwrap();
    let all = receive_until(&seen, "its message", |all| all.len() == 1);
    assert_eq!(held(&second, "orders"), [all[0].queue.clone()]);
}

#[test]
fn the_lock_of_a_member_that_died_is_waited_for_and_then_taken() {
    let cluster = EmbeddedCluster::builder().topic("orders", 1).clock(Clock::manual()).start().unwrap();
    assert!(lock_for(&cluster, "the dead", "g", "orders", 0));
    send(&cluster, "orders", 0..3);
    let (listener, seen) = recording_orderly(|_, _| Success);
    let consumer = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    wait_until("it says what it waits for", || stands_still(&consumer, "which another member has"));
    assert_ne!(lock_of(&consumer, "orders"), Some(QueueLock::Held));
    cluster.advance_clock(Duration::from_secs(61));
    let all = receive_until(&seen, "the messages", |all| all.len() == 3);
    assert_eq!(bodies(&all), ["0", "1", "2"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_lock_is_renewed_for_as_long_as_a_listener_runs_and_given_back_at_the_stop() {
    let cluster = EmbeddedCluster::builder().topic("orders", 1).clock(Clock::manual()).start().unwrap();
    send(&cluster, "orders", 0..2);
    let (release, hang) = channel::<()>();
    let hang = Mutex::new(hang);
    let (listener, seen) = recording_orderly(move |_, _| {
        let _ = hang.lock().unwrap().recv();
        Success
    });
    let consumer = builder(&cluster, "g", "orders")
        .lock_interval(Duration::from_millis(20))
        .heartbeat_interval(Duration::from_millis(50))
        .listener_orderly(listener)
        .start()
        .unwrap();
    receive_until(&seen, "a listener at work", |all| all.len() == 1);
    for _ in 0..5 {
        let at = Instant::now();
        cluster.advance_clock(Duration::from_secs(40));
        wait_until("the lock is confirmed", || {
            let states = consumer.assignment();
            let state = states.iter().find(|state| state.queue().topic() == "orders").unwrap();
            state.since_lock().is_some_and(|since| since < at.elapsed())
        });
        assert!(!lock_for(&cluster, "stranger", "g", "orders", 0), "another could take the queue");
    }
    drop(release);
    receive_until(&seen, "the next message", |all| all.len() == 1);
    assert!(consumer.shutdown(LONG).is_clean());
    assert!(lock_for(&cluster, "stranger", "g", "orders", 0), "the lock was given back");
}

#[test]
fn a_member_that_lost_its_lock_goes_on_from_the_stored_offset_when_it_has_it_again() {
    let cluster = EmbeddedCluster::builder().topic("orders", 1).clock(Clock::manual()).start().unwrap();
    send(&cluster, "orders", 0..2);
    let (listener, seen) = recording_orderly(|_, _| Success);
    let (sender, events) = channel();
    let start = |builder: PushConsumerBuilder| builder.lock_interval(Duration::from_millis(500)).start().unwrap();
    let consumer = start(
        builder(&cluster, "g", "orders")
            .persist_interval(Duration::from_millis(20))
            .heartbeat_interval(Duration::from_millis(50))
            .event_listener(move |event| {
                let _ = sender.send(event.kind());
            })
            .listener_orderly(listener),
    );
    receive_until(&seen, "both", |all| all.len() == 2);
    wait_until("the offset is stored", || {
        let states = consumer.assignment();
        states.iter().any(|state| state.queue().topic() == "orders" && state.committed_offset() == Some(2))
    });
    // Over the broker's minute between two renewals, another takes the lock: one of many tries falls between.
    wait_until("another has the lock", || {
        cluster.advance_clock(Duration::from_secs(61));
        lock_for(&cluster, "stranger", "g", "orders", 0)
    });
    assert_eq!(events.recv_timeout(LONG).unwrap(), "lock_lost");
    send(&cluster, "orders", 2..4);
    wait_until("it waits", || stands_still(&consumer, "which another member has"));
    assert!(seen.try_recv().is_err());
    cluster.advance_clock(Duration::from_secs(61));
    let all = receive_until(&seen, "what came since", |all| all.len() == 2);
    assert_eq!(bodies(&all), ["2", "3"]);
}

#[test]
fn a_queue_whose_offset_is_reset_waits_for_the_listener_that_is_inside() {
    let cluster = cluster("orders", 1);
    send(&cluster, "orders", 0..3);
    let (release, hang) = channel::<()>();
    let hang = Mutex::new(hang);
    let inside = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (listener, seen) = recording_orderly({
        let (inside, most) = (inside.clone(), most.clone());
        move |_, _| {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _ = hang.lock().unwrap().recv();
            inside.fetch_sub(1, Ordering::SeqCst);
            Success
        }
    });
    let consumer = builder(&cluster, "g", "orders").listener_orderly(listener).start().unwrap();
    receive_until(&seen, "a listener at work", |all| all.len() == 1);
    reset(&cluster, "g", "orders");
    wait_until("the new ownership waits", || stands_still(&consumer, "a listener that began before"));
    assert!(seen.try_recv().is_err());
    drop(release);
    let all = receive_until(&seen, "all again", |all| all.len() == 3);
    assert_eq!(bodies(&all), ["0", "1", "2"]);
    assert_eq!(most.load(Ordering::SeqCst), 1, "two listeners were in one queue");
}

/// An operator's reset to the start.
fn reset(cluster: &EmbeddedCluster, group: &str, topic: &str) {
    use rocketmq_sync::protocol::ResponseCode;
    use rocketmq_sync::protocol::header::ResetOffsetRequestHeader;
    let client = RemotingClient::start("tool", RemotingConfig::default(), Arc::new(NoRequests)).unwrap();
    let header = ResetOffsetRequestHeader {
        topic,
        group,
        timestamp: 0,
        is_force: true,
        queue_id: None,
        offset: None,
        bname: None,
    };
    let request = RemotingCommand::request(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, &header);
    let broker = Arc::from(cluster.broker_address("broker-a").unwrap().to_string());
    let answer = client.invoke(&broker, request, LONG).unwrap();
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{answer:?}");
    client.shutdown(Deadline::after(LONG));
}
