//! Helpers of the consumer tests: a listener that records, and waits with a deadline.

use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, EmbeddedCluster, Message, MessageExt,
    MessageQueue, Producer, PushConsumer, PushConsumerBuilder,
};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Far beyond what anything here takes; a test that needs it has failed.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits for a condition.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {LONG:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// One delivery, as a listener saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub body: String,
    pub topic: String,
    pub reconsume_times: i32,
    pub queue: MessageQueue,
    pub tags: Option<String>,
}

impl Seen {
    pub fn of(message: &MessageExt) -> Self {
        Self {
            body: String::from_utf8_lossy(message.body()).into_owned(),
            topic: message.topic().to_owned(),
            reconsume_times: message.reconsume_times(),
            queue: message.message_queue().clone(),
            tags: message.tags().map(str::to_owned),
        }
    }
}

/// Receives deliveries until the condition holds for those so far.
#[track_caller]
pub fn receive_until(seen: &Receiver<Seen>, what: &str, mut done: impl FnMut(&[Seen]) -> bool) -> Vec<Seen> {
    let deadline = Instant::now() + LONG;
    let mut all = Vec::new();
    while !done(&all) {
        match seen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(one) => all.push(one),
            Err(_) => panic!("not within {LONG:?}: {what}; {} deliveries so far: {all:?}", all.len()),
        }
    }
    all
}

pub fn counts(seen: &[Seen]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for one in seen {
        *counts.entry(&*one.body).or_default() += 1;
    }
    counts
}

/// A cluster whose delays are short, so that retries come at once.
pub fn cluster(topic: &str, queues: u32) -> EmbeddedCluster {
    let levels = vec!["100ms"; 18].join(" ");
    EmbeddedCluster::builder().topic(topic, queues).delay_levels(levels).start().unwrap()
}

pub fn producer(cluster: &EmbeddedCluster) -> Producer {
    Producer::builder("producers").name_servers(cluster.name_servers()).start().unwrap()
}

/// Sends `count` messages with their number as body, to the queues in turn.
pub fn send(cluster: &EmbeddedCluster, topic: &str, range: std::ops::Range<usize>) {
    let producer = producer(cluster);
    for number in range {
        producer.send(&Message::new(topic, number.to_string())).unwrap();
    }
}

pub fn builder(cluster: &EmbeddedCluster, group: &str, topic: &str) -> PushConsumerBuilder {
    PushConsumer::builder(group)
        .name_servers(cluster.name_servers())
        .subscribe(topic, "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .takeover_delay(Duration::from_millis(100))
}

/// A listener that records each delivery and answers by `decide`.
pub fn recording(
    decide: impl Fn(&MessageExt) -> ConsumeConcurrentlyStatus + Send + Sync + 'static,
) -> (
    impl Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus + Send + Sync + 'static,
    Receiver<Seen>,
) {
    let (sender, receiver): (Sender<Seen>, _) = channel();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        let mut status = ConsumeConcurrentlyStatus::ConsumeSuccess;
        for message in messages {
            if decide(message) == ConsumeConcurrentlyStatus::ReconsumeLater {
                status = ConsumeConcurrentlyStatus::ReconsumeLater;
            }
            // A test that has seen enough is gone.
            let _ = sender.send(Seen::of(message));
        }
        status
    };
    (listener, receiver)
}

pub fn accept(_: &MessageExt) -> ConsumeConcurrentlyStatus {
    ConsumeConcurrentlyStatus::ConsumeSuccess
}

/// The queues of the topic that the consumer holds.
pub fn held(consumer: &PushConsumer, topic: &str) -> Vec<MessageQueue> {
    let states = consumer.assignment();
    states.iter().map(|state| state.queue().clone()).filter(|queue| queue.topic() == topic).collect()
}
