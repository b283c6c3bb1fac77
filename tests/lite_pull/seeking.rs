//! Moves to another offset, and questions about offsets.

use crate::support::*;
use rocketmq_sync::{EmbeddedCluster, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

#[test]
fn a_seek_goes_to_any_offset_that_the_broker_has() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..50);
    let consumer = assigned(&cluster, "g");
    assert_eq!(poll_count(&consumer, 10), (0..10).collect::<Vec<_>>());
    consumer.seek(&queue(0), 45).unwrap();
    assert_eq!(consumer.position(&queue(0)).unwrap(), Some(45));
    assert_eq!(poll_count(&consumer, 5), (45..50).collect::<Vec<_>>());
    consumer.seek(&queue(0), 3).unwrap();
    assert_eq!(poll_count(&consumer, 47)[0], 3);
    consumer.seek_to_begin(&queue(0)).unwrap();
    assert_eq!(poll_count(&consumer, 50)[0], 0);
    consumer.seek_to_end(&queue(0)).unwrap();
    assert!(consumer.poll(SHORT).unwrap().is_empty());
    send(&cluster, 50..51);
    assert_eq!(poll_count(&consumer, 1), [50]);
    for wrong in [-1, 52] {
        assert_eq!(consumer.seek(&queue(0), wrong).unwrap_err().kind(), ErrorKind::Config);
    }
    assert_eq!(consumer.seek(&queue(1), 0).unwrap_err().kind(), ErrorKind::State);
}

#[test]
fn seeks_back_and_forth_while_others_poll_never_show_what_lies_before_them() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..500);
    let consumer = assigned(&cluster, "g");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let messages = consumer.poll(SHORT).unwrap();
                assert!(messages.windows(2).all(|two| number(&two[0]) + 1 == number(&two[1])));
            }
        });
        for round in 0..60 {
            consumer.seek(&queue(0), (round * 7) % 500).unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    // The first poll behind a seek begins exactly there, whatever was cached, in flight or handed out.
    for at in [400, 0, 499, 123] {
        consumer.seek(&queue(0), at).unwrap();
        assert_eq!(poll_count(&consumer, 1)[0] as i64, at);
    }
}

#[test]
fn the_stored_offset_follows_a_seek_and_not_what_was_polled_before_it() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..50);
    let consumer = assigned(&cluster, "g");
    poll_count(&consumer, 50);
    consumer.commit().unwrap();
    assert_eq!(stored(&consumer), Some(50));
    consumer.seek(&queue(0), 20).unwrap();
    consumer.commit().unwrap();
    assert_eq!(stored(&consumer), Some(20));
}

#[test]
fn offsets_are_found_by_time() {
    let clock = rocketmq_sync::time::Clock::manual();
    let cluster = EmbeddedCluster::builder().topic("orders", 1).clock(clock.clone()).start().unwrap();
    send(&cluster, 0..10);
    clock.advance(Duration::from_secs(60));
    let between = clock.wall() - Duration::from_secs(30);
    send(&cluster, 10..20);
    let consumer = builder(&cluster, "g").start().unwrap();
    assert_eq!(consumer.offset_for_timestamp(&queue(0), between).unwrap(), 10);
    assert_eq!(consumer.offset_for_timestamp(&queue(0), SystemTime::UNIX_EPOCH).unwrap(), 0);
    assert_eq!(consumer.committed(&queue(0)).unwrap(), None);
}

#[test]
fn an_operator_s_reset_moves_the_next_poll_and_is_stored() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..50);
    // A broker tells it with the answer to the next pull.
    let consumer = builder(&cluster, "g").assign([queue(0)]).pull_suspend(Duration::from_secs(1)).start().unwrap();
    poll_count(&consumer, 50);
    consumer.commit().unwrap();
    reset_to_begin(&cluster, "g");
    assert_eq!(poll_count(&consumer, 50)[0], 0);
    assert!(stored(&consumer).unwrap() < 50);
}

#[test]
fn queues_of_a_topic_are_listed_and_changes_are_told() {
    let cluster = cluster("orders", 2);
    let consumer = builder(&cluster, "g").topic_check_interval(Duration::from_millis(50)).start().unwrap();
    assert_eq!(consumer.fetch_message_queues("orders").unwrap(), [queue(0), queue(1)]);
    assert_eq!(consumer.fetch_message_queues("nothing").unwrap_err().kind(), ErrorKind::NoRoute);
    let (sender, told) = channel();
    consumer.watch_topic("orders", move |topic, queues| {
        let _ = sender.send((topic.to_owned(), queues.to_vec()));
        panic!("costs this call only");
    });
    cluster.create_topic("orders", 3).unwrap();
    assert_eq!(told.recv_timeout(LONG).unwrap(), ("orders".to_owned(), vec![queue(0), queue(1), queue(2)]));
    cluster.create_topic("orders", 4).unwrap();
    assert_eq!(told.recv_timeout(LONG).unwrap().1.len(), 4);
}

/// What `resetOffsetByTime` asks of a broker: all queues back to the oldest message.
fn reset_to_begin(cluster: &EmbeddedCluster, group: &str) {
    use rocketmq_sync::protocol::header::ResetOffsetRequestHeader;
    use rocketmq_sync::protocol::{RemotingCommand, RequestCode};
    let header = ResetOffsetRequestHeader { topic: "orders", group, timestamp: 0, ..Default::default() };
    ask_broker(cluster, RemotingCommand::request(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, &header));
}
