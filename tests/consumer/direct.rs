//! What an administrator asks of a consumer: a message handled now, and what it is doing.

use crate::support::*;
use crate::tool::Tool;
use rocketmq_sync::protocol::ResponseCode;
use rocketmq_sync::protocol::body::{ConsumeResult, ConsumerRunningInfo};
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, EmbeddedCluster, Message, MessageExt,
    MessageListenerConcurrently, MessageQueue, PushConsumer,
};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Sends one message and returns its offset id.
fn send_one(cluster: &EmbeddedCluster, body: &str) -> String {
    producer(cluster).send(&Message::new("orders", body.to_owned())).unwrap().offset_msg_id().to_owned()
}

/// A consumer that subscribes to nothing that is sent, so that only the tool brings messages.
fn idle(cluster: &EmbeddedCluster, listener: impl MessageListenerConcurrently) -> PushConsumer {
    cluster.create_topic("others", 1).unwrap();
    let consumer = builder(cluster, "g", "others").listener(listener).start().unwrap();
    wait_until("it is registered", || !held(&consumer, "others").is_empty());
    consumer
}

#[test]
fn a_message_is_handled_on_demand_and_each_outcome_is_told() {
    let cluster = cluster("orders", 1);
    let (sender, seen) = channel();
    let listener = move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
        let _ = sender.send((Seen::of(&messages[0]), context.message_queue().clone()));
        match messages[0].body() {
            b"later" => return ConsumeConcurrentlyStatus::ReconsumeLater,
            b"retry" => context.retry(0),
            b"panic" => panic!("no such order"),
            _ => {}
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let consumer = idle(&cluster, listener);
    let tool = Tool::new(&cluster);
    for (body, outcome) in [
        ("fine", ConsumeResult::Success),
        ("later", ConsumeResult::Later),
        ("retry", ConsumeResult::Later),
        ("panic", ConsumeResult::ThrowException),
    ] {
        let result = tool.directly("g", consumer.client_id(), &send_one(&cluster, body));
        assert_eq!(result.consume_result, outcome, "{result:?}");
        assert!(!result.order && result.auto_commit && result.spent_time_mills >= 0, "{result:?}");
        let remark = result.remark.unwrap_or_default();
        assert_eq!(remark.contains("no such order"), body == "panic", "{remark}");
        let (one, queue) = seen.recv_timeout(LONG).unwrap();
        assert_eq!((&*one.body, &*one.topic), (body, "orders"));
        assert_eq!(queue, MessageQueue::new("orders", "broker-a", 0));
    }
    // Nothing of it counts as consumption.
    let stats = consumer.stats();
    assert_eq!((stats.consumed(), stats.failed()), (0, 0));
    let answer = tool.start_directly("nobody", consumer.client_id(), &send_one(&cluster, "x"));
    assert_eq!(answer.recv_timeout(LONG).unwrap().response_code(), ResponseCode::SYSTEM_ERROR);
    assert!(consumer.shutdown(LONG).is_clean());
}

type Listener = Box<dyn Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus + Send + Sync>;

/// A listener that tells each begin and waits for a word to go on.
fn held_up() -> (Listener, Receiver<String>, std::sync::mpsc::Sender<()>) {
    let (begun, begins) = channel();
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        let _ = begun.send(String::from_utf8_lossy(messages[0].body()).into_owned());
        let _ = gate.lock().unwrap().recv();
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    (Box::new(listener), begins, go)
}

#[test]
fn a_listener_that_is_stuck_neither_stops_a_direct_message_nor_the_answers_to_others() {
    let cluster = cluster("orders", 1);
    let (listener, begins, go) = held_up();
    let consumer = builder(&cluster, "g", "orders").consume_threads(1).listener(listener).start().unwrap();
    let msg_id = send_one(&cluster, "stuck");
    assert_eq!(begins.recv_timeout(LONG).unwrap(), "stuck");
    let tool = Tool::new(&cluster);
    // The only worker hangs; four direct messages hang as well, two of them at a time.
    let answers: Vec<_> = (0..4).map(|_| tool.start_directly("g", consumer.client_id(), &msg_id)).collect();
    assert_eq!(begins.recv_timeout(LONG).unwrap(), "stuck");
    let info = tool.running_info("g", consumer.client_id(), true);
    assert!(info.jstack.unwrap().contains("rmq-use-0"));
    drop(go);
    for answer in answers {
        assert_eq!(answer.recv_timeout(LONG).unwrap().response_code(), ResponseCode::SUCCESS);
    }
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_stop_waits_for_a_direct_message_and_says_when_it_hangs() {
    let cluster = cluster("orders", 1);
    let (listener, begins, go) = held_up();
    let consumer = idle(&cluster, listener);
    let tool = Tool::new(&cluster);
    let answer = tool.start_directly("g", consumer.client_id(), &send_one(&cluster, "x"));
    begins.recv_timeout(LONG).unwrap();
    let report = consumer.shutdown(Duration::from_millis(50));
    assert!(!report.is_clean() && report.unfinished() == 0, "{report:?}");
    drop((go, answer));
}

#[test]
fn running_info_has_what_the_tools_print() {
    let cluster = cluster("orders", 2);
    send(&cluster, "orders", 0..20);
    let (listener, seen) = recording(|message| match message.body() {
        b"3" if message.reconsume_times() == 0 => ConsumeConcurrentlyStatus::ReconsumeLater,
        _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
    });
    let consumer = builder(&cluster, "g", "orders")
        .consume_threads(3)
        .user_info(|| BTreeMap::from([("build".to_owned(), "17".to_owned())]))
        .listener(listener)
        .start()
        .unwrap();
    receive_until(&seen, "20 messages and one again", |all| all.len() == 21);
    wait_until("all are counted", || consumer.consumed() == 20);
    let info = Tool::new(&cluster).running_info("g", consumer.client_id(), false);
    let property = |name: &str| info.properties.get(name).map(String::as_str);
    assert_eq!(property(ConsumerRunningInfo::CONSUME_TYPE), Some("CONSUME_PASSIVELY"));
    assert_eq!(property(ConsumerRunningInfo::CONSUMEORDERLY), Some("false"));
    assert_eq!(property(ConsumerRunningInfo::THREADPOOL_CORE_SIZE), Some("3"));
    assert_eq!(property("allocateMessageQueueStrategy"), Some("AVG"));
    assert_eq!(property("consumeMessageBatchMaxSize"), Some("1"));
    assert!(property(ConsumerRunningInfo::NAMESERVER_ADDR).unwrap().ends_with(';'));
    let topics: Vec<_> = info.subscription_set.iter().map(|data| &*data.topic).collect();
    assert_eq!(topics, ["%RETRY%g", "orders"]);
    let queue = &info.mq_table[&MessageQueue::new("orders", "broker-a", 0)];
    assert_eq!((queue.commit_offset, queue.cached_msg_count, queue.dropped), (10, 0, false));
    assert!(queue.last_pull_timestamp > 0 && queue.last_consume_timestamp > 0);
    let status = &info.status_table["orders"];
    assert!(status.consume_ok_tps > 0.0 && status.pull_tps > 0.0 && status.consume_failed_tps > 0.0, "{status:?}");
    assert_eq!(status.consume_failed_msgs, 1);
    assert!(info.status_table.contains_key("%RETRY%g"));
    assert_eq!(info.user_consumer_info["build"], "17");
    assert_eq!(info.jstack, None);
}

#[test]
fn a_panic_of_user_info_spoils_nothing() {
    let cluster = cluster("orders", 1);
    let (listener, _seen) = recording(accept);
    let broken: Arc<dyn Fn() -> BTreeMap<String, String> + Send + Sync> = Arc::new(|| panic!("broken"));
    let consumer = builder(&cluster, "g", "orders").user_info(move || broken()).listener(listener).start().unwrap();
    let tool = Tool::new(&cluster);
    wait_until("it is registered", || !consumer.assignment().is_empty());
    assert!(tool.running_info("g", consumer.client_id(), false).user_consumer_info.is_empty());
}
