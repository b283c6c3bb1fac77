use crate::support::{expect_code, peer, property_map, property_string, send_header};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::protocol::ResponseCode;
use rocketmq_sync::protocol::header::{SendMessageRequestHeader, SendMessageResponseHeader};
use rocketmq_sync::time::Clock;
use std::time::Duration;

fn cluster() -> (EmbeddedCluster, Clock) {
    let clock = Clock::manual();
    (EmbeddedCluster::builder().topic("T", 2).clock(clock.clone()).start().unwrap(), clock)
}

#[test]
fn a_timer_message_is_delivered_at_its_moment() {
    let (cluster, clock) = cluster();
    let broker = peer(&cluster);
    let deliver = (clock.wall_millis() + 90_000).to_string();
    broker.send("T", 1, "by seconds", &[("TIMER_DELAY_SEC", "30"), ("TIMER_DELIVER_MS", &deliver)]);
    broker.send("T", 1, "by millis", &[("TIMER_DELAY_MS", "1500")]);
    broker.send("T", 1, "by moment", &[("TIMER_DELIVER_MS", &deliver), ("TAGS", "a")]);
    assert_eq!(broker.max_offset("rmq_sys_wheel_timer", 0), 3);
    cluster.advance_clock(Duration::from_millis(1499));
    assert!(broker.bodies("T", 1).is_empty());
    cluster.advance_clock(Duration::from_millis(1));
    assert_eq!(broker.bodies("T", 1), ["by millis"]);
    cluster.advance_clock(Duration::from_secs(89));
    assert_eq!(broker.bodies("T", 1), ["by millis", "by seconds", "by moment"]);
    let messages = broker.pull("T", 1, 2);
    let properties = property_map(&messages[0]);
    let out: i64 = properties["TIMER_OUT_MS"].parse().unwrap();
    assert!(out % 1000 == 0 && (deliver.parse::<i64>().unwrap() - out) <= 1000);
    assert_eq!((properties["REAL_TOPIC"], properties["REAL_QID"], properties["TAGS"]), ("T", "1", "a"));
    assert!(properties.contains_key("TIMER_ENQUEUE_MS") && properties.contains_key("TIMER_DEQUEUE_MS"));
}

#[test]
fn a_moment_in_the_past_delivers_at_once_and_one_too_far_ahead_is_refused() {
    let (cluster, clock) = cluster();
    let broker = peer(&cluster);
    broker.send("T", 0, "past", &[("TIMER_DELIVER_MS", "1000")]);
    broker.send("T", 0, "now", &[("TIMER_DELAY_MS", "0")]);
    // A level counts more than a timer.
    broker.send("T", 0, "level", &[("DELAY", "1"), ("TIMER_DELAY_SEC", "9")]);
    assert_eq!(broker.bodies("T", 0), ["past", "now"]);
    cluster.advance_clock(Duration::from_secs(1));
    assert_eq!(broker.bodies("T", 0), ["past", "now", "level"]);
    let late = (clock.wall_millis() + 3 * 86_400_000 + 1).to_string();
    for wrong in [("TIMER_DELAY_SEC", "259201"), ("TIMER_DELIVER_MS", &late), ("TIMER_DELAY_MS", "soon")] {
        let text = property_string(&[wrong]);
        let header = SendMessageRequestHeader { properties: Some(&text), ..send_header("T") };
        expect_code(&broker.send_as(header, "x"), ResponseCode::MESSAGE_ILLEGAL);
    }
    broker.send("T", 0, "at the limit", &[("TIMER_DELAY_SEC", "259200")]);
}

#[test]
fn the_longest_delay_is_a_setting() {
    let builder = EmbeddedCluster::builder().topic("T", 1).timer_max_delay(Duration::from_secs(10));
    let cluster = builder.start().unwrap();
    let text = property_string(&[("TIMER_DELAY_SEC", "11")]);
    let header = SendMessageRequestHeader { properties: Some(&text), ..send_header("T") };
    expect_code(&peer(&cluster).send_as(header, "x"), ResponseCode::MESSAGE_ILLEGAL);
}

#[test]
fn a_timer_message_takes_another_one_of_the_same_second_back() {
    let (cluster, clock) = cluster();
    let broker = peer(&cluster);
    let deliver = (clock.wall_millis() + 5000).to_string();
    let text = property_string(&[("TIMER_DELIVER_MS", &deliver), ("UNIQ_KEY", "k1")]);
    let header = SendMessageRequestHeader { properties: Some(&text), ..send_header("T") };
    let answer = broker.send_as(header, "unwanted");
    let header: SendMessageResponseHeader<'_> = answer.header().unwrap();
    assert!(header.recall_handle.is_some_and(|handle| !handle.is_empty()));
    broker.send("T", 0, "wanted", &[("TIMER_DELIVER_MS", &deliver), ("UNIQ_KEY", "k2")]);
    broker.send("T", 0, "back", &[("TIMER_DELIVER_MS", &deliver), ("TIMER_DEL_UNIQKEY", "T+k1")]);
    // One that comes too late is refused.
    let text = property_string(&[("TIMER_DELIVER_MS", "1000"), ("TIMER_DEL_UNIQKEY", "T+k1")]);
    let late = SendMessageRequestHeader { properties: Some(&text), ..send_header("T") };
    expect_code(&broker.send_as(late, "x"), ResponseCode::MESSAGE_ILLEGAL);
    cluster.advance_clock(Duration::from_secs(6));
    assert_eq!(broker.bodies("T", 0), ["wanted"]);
}

#[test]
fn a_timer_message_takes_back_one_that_is_due_later_in_the_same_second() {
    let (cluster, clock) = cluster();
    let broker = peer(&cluster);
    let second = (clock.wall_millis() / 1000 + 5) * 1000;
    let (early, late) = ((second + 100).to_string(), (second + 900).to_string());
    broker.send("T", 0, "unwanted", &[("TIMER_DELIVER_MS", &late), ("UNIQ_KEY", "k1")]);
    broker.send("T", 0, "wanted", &[("TIMER_DELIVER_MS", &late), ("UNIQ_KEY", "k2")]);
    broker.send("T", 0, "back", &[("TIMER_DELIVER_MS", &early), ("TIMER_DEL_UNIQKEY", "T+k1")]);
    cluster.advance_clock(Duration::from_secs(7));
    assert_eq!(broker.bodies("T", 0), ["wanted"]);
}

#[test]
fn a_timer_message_that_is_taken_has_room_for_what_its_delivery_adds() {
    let (cluster, _) = cluster();
    let broker = peer(&cluster);
    let mut taken = 0;
    for length in (32_000..32_767).step_by(10) {
        let long = "x".repeat(length);
        let text = property_string(&[("TIMER_DELAY_SEC", "1"), ("long", &long), ("UNIQ_KEY", "k")]);
        let header = SendMessageRequestHeader { properties: Some(&text), ..send_header("T") };
        taken += i64::from(broker.send_as(header, "x").response_code() == ResponseCode::SUCCESS);
    }
    cluster.advance_clock(Duration::from_secs(2));
    assert!(taken > 0);
    assert_eq!(broker.max_offset("T", 0), taken);
}
