//! Helpers of the lite pull tests: polls and waits with a deadline.

use rocketmq_sync::{
    ConsumeFromWhere, EmbeddedCluster, LitePullConsumer, LitePullConsumerBuilder, Message, MessageExt, MessageQueue,
    Producer,
};
use std::time::{Duration, Instant};

/// Far beyond what anything here takes; a test that needs it has failed.
pub const LONG: Duration = Duration::from_secs(60);
/// For a poll that is expected to find nothing.
pub const SHORT: Duration = Duration::from_millis(100);

/// Waits for a condition.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {LONG:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub fn cluster(topic: &str, queues: u32) -> EmbeddedCluster {
    EmbeddedCluster::builder().topic(topic, queues).start().unwrap()
}

pub fn builder(cluster: &EmbeddedCluster, group: &str) -> LitePullConsumerBuilder {
    LitePullConsumer::builder(group)
        .name_servers(cluster.name_servers())
        .consume_from(ConsumeFromWhere::FirstOffset)
        .takeover_delay(Duration::from_millis(100))
}

pub fn subscribed(cluster: &EmbeddedCluster, group: &str) -> LitePullConsumer {
    builder(cluster, group).subscribe("orders", "*").start().unwrap()
}

pub fn queue(id: i32) -> MessageQueue {
    MessageQueue::new("orders", "broker-a", id)
}

/// One that reads queue 0 of "orders" alone.
pub fn assigned(cluster: &EmbeddedCluster, group: &str) -> LitePullConsumer {
    let consumer = builder(cluster, group).assign([queue(0)]).start().unwrap();
    wait_until("the start offset is known", || consumer.position(&queue(0)).unwrap().is_some());
    consumer
}

pub fn producer(cluster: &EmbeddedCluster) -> Producer {
    Producer::builder("producers").name_servers(cluster.name_servers()).start().unwrap()
}

/// Sends messages with their number as body, to the queues in turn.
pub fn send(cluster: &EmbeddedCluster, range: std::ops::Range<usize>) {
    let producer = producer(cluster);
    for number in range {
        producer.send(&Message::new("orders", number.to_string())).unwrap();
    }
}

pub fn number(message: &MessageExt) -> usize {
    std::str::from_utf8(message.body()).unwrap().parse().unwrap()
}

/// Polls until so many messages came.
#[track_caller]
pub fn poll_count(consumer: &LitePullConsumer, count: usize) -> Vec<usize> {
    let deadline = Instant::now() + LONG;
    let mut all = Vec::new();
    while all.len() < count {
        assert!(Instant::now() < deadline, "{} of {count} messages: {all:?}", all.len());
        all.extend(consumer.poll(LONG).unwrap().iter().map(number));
    }
    all
}

/// The queues of the topic that the consumer holds.
pub fn held(consumer: &LitePullConsumer) -> Vec<MessageQueue> {
    consumer.assignment().iter().map(|state| state.queue().clone()).collect()
}

pub fn stored(consumer: &LitePullConsumer) -> Option<i64> {
    consumer.committed(&queue(0)).unwrap()
}

/// A request of an operator's tool.
pub fn ask_broker(cluster: &EmbeddedCluster, request: rocketmq_sync::protocol::RemotingCommand) {
    use rocketmq_sync::protocol::ResponseCode;
    use rocketmq_sync::remoting::{NoRequests, RemotingClient, RemotingConfig};
    let client = RemotingClient::start("tool", RemotingConfig::default(), std::sync::Arc::new(NoRequests)).unwrap();
    let broker = std::sync::Arc::from(cluster.broker_address("broker-a").unwrap().to_string());
    let answer = client.invoke(&broker, request, LONG).unwrap();
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{answer:?}");
    client.shutdown(rocketmq_sync::time::Deadline::after(LONG));
}
