use crate::support::{Peer, expect_code, peer, property_string, send_header};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::MessageQueue;
use rocketmq_sync::protocol::body::{LockBatchRequestBody, LockBatchResponseBody};
use rocketmq_sync::protocol::header::SendMessageRequestHeader;
use rocketmq_sync::protocol::{RequestCode, ResponseCode};
use rocketmq_sync::time::Clock;
use std::time::Duration;

const NONE: [i32; 0] = [];

fn request(client_id: &str, queues: &[i32]) -> LockBatchRequestBody {
    LockBatchRequestBody {
        client_id: client_id.into(),
        consumer_group: "G".into(),
        mq_set: queues.iter().map(|id| MessageQueue::new("T", "broker-a", *id)).collect(),
        only_this_broker: false,
    }
}

fn lock(broker: &Peer, client_id: &str, queues: &[i32]) -> Vec<i32> {
    let answer = broker.call_with_body(RequestCode::LOCK_BATCH_MQ, request(client_id, queues).encode());
    expect_code(&answer, ResponseCode::SUCCESS);
    let held = LockBatchResponseBody::decode(&answer.body).unwrap().lock_ok_mq_set;
    held.iter().map(MessageQueue::queue_id).collect()
}

fn unlock(broker: &Peer, client_id: &str, queues: &[i32]) {
    let answer = broker.call_with_body(RequestCode::UNLOCK_BATCH_MQ, request(client_id, queues).encode());
    expect_code(&answer, ResponseCode::SUCCESS);
}

#[test]
fn a_queue_belongs_to_one_client_until_it_unlocks_or_falls_silent() {
    let cluster = EmbeddedCluster::builder().clock(Clock::manual()).start().unwrap();
    let broker = peer(&cluster);
    assert_eq!(lock(&broker, "a", &[0, 1]), [0, 1]);
    assert_eq!(lock(&broker, "b", &[0, 1, 2]), [2]);
    unlock(&broker, "b", &[0]);
    assert_eq!(lock(&broker, "b", &[0]), NONE);
    unlock(&broker, "a", &[0]);
    assert_eq!(lock(&broker, "b", &[0, 1]), [0]);
    cluster.advance_clock(Duration::from_secs(59));
    assert_eq!(lock(&broker, "b", &[1]), NONE);
    cluster.advance_clock(Duration::from_secs(2));
    assert_eq!(lock(&broker, "b", &[1]), [1]);
}

#[test]
fn closing_the_connection_frees_nothing() {
    let cluster = EmbeddedCluster::start().unwrap();
    assert_eq!(lock(&peer(&cluster), "a", &[0]), [0]);
    assert_eq!(lock(&peer(&cluster), "b", &[0]), NONE);
}

#[test]
fn malformed_requests_are_refused_or_empty() {
    let cluster = EmbeddedCluster::start().unwrap();
    let broker = peer(&cluster);
    for code in [RequestCode::LOCK_BATCH_MQ, RequestCode::UNLOCK_BATCH_MQ] {
        for body in ["", "{}", r#"{"clientId":"c","mqSet":[]}"#] {
            expect_code(&broker.call_with_body(code, body), ResponseCode::SYSTEM_ERROR);
        }
    }
    let nothing = broker.call_with_body(RequestCode::LOCK_BATCH_MQ, r#"{"clientId":"c","consumerGroup":"G"}"#);
    assert_eq!(&nothing.body[..], br#"{"lockOKMQSet":[]}"#);
}

#[test]
fn retries_of_a_group_that_holds_a_lock_are_dead_letters() {
    let cluster = EmbeddedCluster::start().unwrap();
    let broker = peer(&cluster);
    lock(&broker, "a", &[0]);
    let text = property_string(&[("A", "b")]);
    let header =
        SendMessageRequestHeader { properties: Some(&text), reconsume_times: Some(1), ..send_header("%RETRY%G") };
    expect_code(&broker.send_as(header, "x"), ResponseCode::SUCCESS);
    let message = &broker.pull("%DLQ%G", 0, 0)[0];
    assert_eq!((message.reconsume_times(), message.property("DELAY")), (1, Some("-1")));
}
