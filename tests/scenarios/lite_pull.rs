//! The consumer that is polled, in this process.

use crate::support::crew::PATIENCE;
use crate::support::produce::produce;
use crate::support::{Target, unique};
use rocketmq_sync::{ConsumeFromWhere, LitePullConsumer, LitePullConsumerBuilder, MessageExt, MessageQueue};
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

pub fn builder(target: &dyn Target, group: &str) -> LitePullConsumerBuilder {
    LitePullConsumer::builder(group).name_servers(target.name_servers()).consume_from(ConsumeFromWhere::FirstOffset)
}

/// Polls until so many messages came.
pub fn poll(consumer: &LitePullConsumer, count: usize) -> Vec<MessageExt> {
    let deadline = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    while all.len() < count {
        assert!(Instant::now() < deadline, "{} of {count} messages: {:?}", all.len(), consumer.assignment());
        all.extend(consumer.poll(Duration::from_secs(1)).unwrap());
    }
    all
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// One queue, read back and forth.
pub fn assigned(target: &dyn Target) {
    let (topic, group) = (unique("lite_assigned"), unique("lite_assigned_group"));
    target.create_topic(&topic, 1);
    let before = SystemTime::now() - Duration::from_secs(60);
    produce(target, &topic, 60);
    let consumer = builder(target, &group).start().unwrap();
    let queues = consumer.fetch_message_queues(&topic).unwrap();
    let queue = &queues[0];
    consumer.assign(queues.clone()).unwrap();
    let offsets = |messages: &[MessageExt]| messages.iter().map(MessageExt::queue_offset).collect::<Vec<_>>();
    assert_eq!(offsets(&poll(&consumer, 60)), (0..60).collect::<Vec<_>>());
    consumer.commit().unwrap();
    assert_eq!(consumer.committed(queue).unwrap(), Some(60));
    consumer.seek(queue, 25).unwrap();
    assert_eq!(offsets(&poll(&consumer, 35))[0], 25);
    assert!(consumer.seek(queue, 61).is_err());
    consumer.seek_to_end(queue).unwrap();
    assert_eq!(consumer.position(queue).unwrap(), Some(60));
    assert_eq!(consumer.offset_for_timestamp(queue, before).unwrap(), 0);
    consumer.seek_to_begin(queue).unwrap();
    consumer.pause(&queues);
    assert!(consumer.poll(Duration::from_millis(200)).unwrap().is_empty());
    consumer.resume(&queues);
    assert_eq!(offsets(&poll(&consumer, 10))[0], 0);
    assert_eq!(consumer.lag().unwrap().len(), 1);
    let report = consumer.shutdown(PATIENCE);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.committed()[queue], 10);
}

/// Two members share a topic; one leaves, and the other goes on where it ended.
pub fn shared(target: &dyn Target) {
    let (topic, group) = (unique("lite_shared"), unique("lite_shared_group"));
    target.create_topic(&topic, 4);
    let start = || builder(target, &group).subscribe(topic.as_str(), "*").start().unwrap();
    let held = |member: &LitePullConsumer| member.assignment().len();
    let first = start();
    wait_until("one member has all", || held(&first) == 4);
    let second = start();
    wait_until("two members share", || held(&first) == 2 && held(&second) == 2);
    produce(target, &topic, 200);
    let mut seen: Vec<(MessageQueue, i64)> = Vec::new();
    let name = |message: MessageExt| (message.message_queue().clone(), message.queue_offset());
    wait_until("half of the messages", || {
        for member in [&first, &second] {
            seen.extend(member.poll(Duration::from_millis(10)).unwrap().into_iter().map(name));
        }
        seen.len() >= 100
    });
    let report = second.shutdown(PATIENCE);
    assert!(report.is_clean(), "{report:?}");
    wait_until("all messages", || {
        seen.extend(first.poll(Duration::from_millis(10)).unwrap().into_iter().map(name));
        seen.iter().collect::<BTreeSet<_>>().len() == 200
    });
    assert_eq!(seen.len(), 200, "messages came twice although the stop was orderly");
    assert!(first.shutdown(PATIENCE).is_clean());
    if let Some(offsets) = target.stored_offsets(&group, &topic) {
        assert!(offsets.values().all(|(committed, end)| committed == end), "not everything is committed: {offsets:?}");
    }
}
