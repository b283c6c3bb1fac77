//! Field reports about membership, notices and housekeeping (7 to 17), and who is subscribed to what.

use crate::fake::*;
use rocketmq_sync::protocol::body::{GetConsumerListByGroupResponseBody, HeartbeatData};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::{ConsumeConcurrentlyStatus, Message, Producer, RebalanceEvent, RebalanceListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Counts queues that go.
#[derive(Clone, Default)]
struct Gone(Arc<AtomicUsize>);

impl RebalanceListener for Gone {
    fn revoked(&self, event: &RebalanceEvent) {
        self.0.fetch_add(event.queues().len(), Ordering::SeqCst);
    }

    fn lost(&self, event: &RebalanceEvent) {
        self.0.fetch_add(event.queues().len(), Ordering::SeqCst);
    }
}

#[test]
fn ten_thousand_notices_neither_hold_up_a_send_nor_cost_a_round_each() {
    let fake = Fake::start(2);
    let (listener, _seen) = collecting();
    // Both on one connection, where the notices come in.
    let consumer = fake.consumer().instance_name("report-7").listener(listener).start().unwrap();
    let producer = Producer::builder("p").name_servers(fake.address()).instance_name("report-7").start().unwrap();
    producer.send(&Message::new(TOPIC, "before")).unwrap();
    fake.wait_for("a first pull", Asked::is_pull);
    let connections = fake.connections();
    assert_eq!(connections.len(), 1);
    let lists = fake.count(RequestCode::GET_CONSUMER_LIST_BY_GROUP);
    let sender = std::thread::spawn(move || {
        for _ in 0..10_000 {
            let mut notice = RemotingCommand::request_without_header(RequestCode::NOTIFY_CONSUMER_IDS_CHANGED).oneway();
            notice.ext_fields.put("consumerGroup", GROUP);
            connections[0].send(notice).unwrap();
        }
    });
    for _ in 0..20 {
        producer.send(&Message::new(TOPIC, "during")).unwrap();
    }
    sender.join().unwrap();
    producer.send(&Message::new(TOPIC, "after")).unwrap();
    let asked = fake.count(RequestCode::GET_CONSUMER_LIST_BY_GROUP) - lists;
    // A round asks once for the topic; 250 ms are the least between two rounds.
    assert!(asked < 200, "{asked} member lists for 10,000 notices");
    assert_eq!(consumer.assignment().len(), 2);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_heartbeat_that_is_answered_too_late_costs_no_connection() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    let late = Duration::from_millis(900);
    fake.script(move |asked| if asked.is(RequestCode::HEART_BEAT) { Reply::UsualAfter(late) } else { Reply::Usual });
    let (listener, seen) = collecting();
    let builder = fake.consumer().request_timeout(Duration::from_millis(300));
    let consumer = builder.heartbeat_interval(Duration::from_millis(100)).listener(listener).start().unwrap();
    take(&seen, 1);
    let beats = fake.count(RequestCode::HEART_BEAT);
    wait_until("heartbeats that time out", || fake.count(RequestCode::HEART_BEAT) >= beats + 6);
    assert_eq!(fake.state().accepted, 1);
    consumer.shutdown(LONG);
}

#[test]
fn a_broker_that_does_not_know_the_subscription_yet_gets_a_heartbeat_and_is_pulled_from_soon() {
    for code in [ResponseCode::SUBSCRIPTION_NOT_EXIST, ResponseCode::SUBSCRIPTION_NOT_LATEST] {
        let fake = Fake::start(1);
        fake.store(0, 0..1);
        // It has forgotten the first heartbeat; another one is due in 30 s only.
        let beats = AtomicUsize::new(0);
        fake.script(move |asked| {
            if asked.is(RequestCode::HEART_BEAT) {
                beats.fetch_add(1, Ordering::SeqCst);
            }
            if asked.is_pull() && beats.load(Ordering::SeqCst) < 3 {
                return Reply::Give(refuse(code));
            }
            Reply::Usual
        });
        let (listener, seen) = collecting();
        let consumer = fake.consumer().listener(listener).start().unwrap();
        let body = seen.recv_timeout(Duration::from_secs(20)).expect("sooner than the next periodic heartbeat");
        assert_eq!(body, "0");
        consumer.shutdown(LONG);
    }
}

#[test]
fn the_subscription_version_of_a_pull_is_never_ahead_of_the_heartbeats() {
    let fake = Fake::start(4);
    for queue in 0..4 {
        fake.store(queue, 0..3);
    }
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    take(&seen, 12);
    let beat = fake.wait_for("a heartbeat", |asked| asked.is(RequestCode::HEART_BEAT));
    let data = HeartbeatData::decode(&beat.command.body).unwrap();
    let group = &data.consumer_data_set[0];
    let version = group.subscription_data_set.iter().find(|data| &*data.topic == TOPIC).unwrap().sub_version;
    for pull in fake.asked(Asked::is_pull) {
        assert_eq!(pull.number("subVersion"), version);
    }
    consumer.shutdown(LONG);
}

#[test]
fn a_slow_broker_holds_up_neither_the_queues_of_another_nor_the_stop() {
    let (slow, quick) = (Fake::bare("a", any()), Fake::bare("b", any()));
    let both = route(&[("a", 0, &slow.address()), ("b", 0, &quick.address())], 2);
    quick.state().routes.insert(TOPIC.into(), both);
    quick.store(0, 0..2);
    quick.store(1, 0..2);
    let is_slow = |asked: &Asked| asked.is(RequestCode::QUERY_CONSUMER_OFFSET) || asked.is(RequestCode::PULL_MESSAGE);
    slow.script(move |asked| if is_slow(asked) { Reply::UsualAfter(Duration::from_secs(10)) } else { Reply::Usual });
    let (listener, seen) = collecting();
    let builder = quick.consumer().request_timeout(Duration::from_secs(20));
    let consumer = builder.listener(listener).start().unwrap();
    take(&seen, 4);
    assert!(slow.asked(Asked::is_pull).is_empty(), "the quick one's queues were first");
    wait_until("the quick one's offsets are stored", || quick.commit_of(0) == Some(2) && quick.commit_of(1) == Some(2));
    let report = consumer.shutdown(Duration::from_secs(5));
    assert_eq!(report.consumed(), 4);
    assert!(quick.count(RequestCode::UNREGISTER_CLIENT) > 0);
}

fn any() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[test]
fn an_empty_member_list_for_some_rounds_drops_no_queue_and_pulls_go_on() {
    let fake = Fake::start(3);
    let (gone, rounds) = (Gone::default(), Duration::from_millis(30));
    let (listener, seen) = collecting();
    let builder = fake.consumer().rebalance_interval(rounds).rebalance_min_interval(Duration::from_millis(10));
    let consumer = builder.rebalance_listener(gone.clone()).listener(listener).start().unwrap();
    wait_until("all queues", || fake.asked(Asked::is_pull).len() >= 3);
    for ids in [vec![], vec!["10.0.0.1@another".into()]] {
        let body = GetConsumerListByGroupResponseBody { consumer_id_list: ids }.encode();
        fake.script(move |asked| {
            if asked.is(RequestCode::GET_CONSUMER_LIST_BY_GROUP) {
                return Reply::Give(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body.clone()));
            }
            Reply::Usual
        });
        let lists = fake.count(RequestCode::GET_CONSUMER_LIST_BY_GROUP);
        wait_until("rounds", || fake.count(RequestCode::GET_CONSUMER_LIST_BY_GROUP) >= lists + 5);
        let next = fake.state().messages.get(&(TOPIC.to_owned(), 0)).map_or(0, |messages| messages.len() as i64);
        fake.store(0, next..next + 1);
        assert_eq!(take(&seen, 1), [next.to_string()]);
    }
    assert_eq!(gone.0.load(Ordering::SeqCst), 0);
    assert_eq!(consumer.assignment().len(), 3);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_member_list_that_fails_changes_nothing_and_a_round_comes_soon_after() {
    let fake = Fake::start(2);
    fake.script(|asked| {
        if asked.is(RequestCode::GET_CONSUMER_LIST_BY_GROUP) && asked.before < 2 {
            return Reply::Close;
        }
        Reply::Usual
    });
    fake.store(0, 0..1);
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    // The periodic round is 20 s away.
    assert_eq!(seen.recv_timeout(Duration::from_secs(18)).as_deref(), Ok("0"));
    consumer.shutdown(LONG);
}

#[test]
fn the_retry_topic_is_always_subscribed_and_every_request_with_a_queue_names_its_broker() {
    let fake = Fake::start(2);
    fake.state().routes.insert("%RETRY%g".into(), route(&[("a", 0, &fake.address())], 1));
    fake.store(0, 0..3);
    fake.store(1, 0..3);
    let (listener, seen) = deciding(|message| {
        if message.body() == b"1" {
            ConsumeConcurrentlyStatus::ReconsumeLater
        } else {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        }
    });
    // By its offset it is refused, so that the copy is seen, too.
    fake.script(|asked| {
        if asked.is(RequestCode::CONSUMER_SEND_MSG_BACK) && asked.before == 0 {
            return Reply::Give(refuse(ResponseCode::SYSTEM_ERROR));
        }
        Reply::Usual
    });
    let consumer = fake.consumer().listener(listener).start().unwrap();
    let producer = fake.producer();
    producer.send(&Message::new(TOPIC, "x")).unwrap();
    take(&seen, 6);
    consumer.lag().unwrap();
    wait_until("the offsets", || fake.commit_of(0) == Some(3) && fake.commit_of(1) == Some(3));
    assert!(consumer.shutdown(LONG).is_clean());
    for asked in fake.asked(|asked| asked.is(RequestCode::HEART_BEAT)) {
        let data = HeartbeatData::decode(&asked.command.body).unwrap();
        for group in data.consumer_data_set {
            let retry = group.subscription_data_set.iter().find(|data| &*data.topic == "%RETRY%g").unwrap();
            assert_eq!(&*retry.sub_string, "*");
        }
    }
    let named = [
        (RequestCode::PULL_MESSAGE, "bname"),
        (RequestCode::QUERY_CONSUMER_OFFSET, "bname"),
        (RequestCode::UPDATE_CONSUMER_OFFSET, "bname"),
        (RequestCode::GET_MAX_OFFSET, "bname"),
        (RequestCode::CONSUMER_SEND_MSG_BACK, "bname"),
        (RequestCode::SEND_MESSAGE_V2, "n"),
    ];
    for (code, field) in named {
        let all = fake.asked(|asked| asked.is(code));
        assert!(!all.is_empty(), "{code:?} was never sent");
        assert!(all.iter().all(|asked| asked.field(field) == "a"), "{code:?}");
    }
}
