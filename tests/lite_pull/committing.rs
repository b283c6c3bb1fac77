//! What is stored, and that it never passes what nobody handled.

use crate::support::*;
use rocketmq_sync::ErrorKind;
use std::time::Duration;

#[test]
fn a_batch_counts_as_handled_when_its_thread_comes_back() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..20);
    let consumer =
        builder(&cluster, "g").assign([queue(0)]).auto_commit_interval(Duration::from_secs(1)).start().unwrap();
    assert_eq!(consumer.poll(LONG).unwrap().len(), 10);
    // The job runs while the first batch is in hand: it may store the start and nothing beyond it.
    wait_until("the job has run", || stored(&consumer).is_some());
    assert_eq!(stored(&consumer), Some(0));
    assert_eq!(consumer.poll(LONG).unwrap().len(), 10);
    wait_until("the first batch is stored", || stored(&consumer) == Some(10));
    assert_eq!(consumer.consumed(), 10);
    assert!(consumer.poll(SHORT).unwrap().is_empty());
    wait_until("the second one too", || stored(&consumer) == Some(20));
}

#[test]
fn a_commit_waits_for_what_other_threads_have_in_hand() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..30);
    let consumer = assigned(&cluster, "g");
    let batch = consumer.poll(LONG).unwrap();
    assert_eq!(number(&batch[0]), 0);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let batch = consumer.poll(LONG).unwrap();
            assert_eq!(number(&batch[0]), 10);
            consumer.commit().unwrap();
            stored(&consumer)
        });
        assert_eq!(other.join().unwrap(), Some(0), "messages 0 to 9 are still with this thread");
    });
    consumer.commit().unwrap();
    assert_eq!(stored(&consumer), Some(20));
}

#[test]
fn a_thread_that_ends_with_messages_in_hand_holds_the_offset_until_all_is_committed() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..10);
    let consumer = assigned(&cluster, "g");
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| {
            consumer.poll(LONG).unwrap();
            panic!("while at work, on purpose");
        });
        assert!(ended.join().is_err());
    });
    consumer.commit().unwrap();
    assert_eq!(stored(&consumer), Some(0));
    consumer.commit_all().unwrap();
    assert_eq!(stored(&consumer), Some(10));
}

#[test]
fn without_auto_commit_nothing_is_stored_but_what_was_committed() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..30);
    let build = || builder(&cluster, "g").assign([queue(0)]).auto_commit(false).start().unwrap();
    let consumer = build();
    poll_count(&consumer, 30);
    let report = consumer.shutdown(LONG);
    assert_eq!((report.unfinished(), report.consumed()), (30, 0));
    let consumer = build();
    assert_eq!(stored(&consumer), None);
    poll_count(&consumer, 10);
    consumer.commit().unwrap();
    poll_count(&consumer, 20);
    assert_eq!(stored(&consumer), Some(10));
    drop(consumer);
    let consumer = build();
    assert_eq!(poll_count(&consumer, 20), (10..30).collect::<Vec<_>>());
}

#[test]
fn offsets_can_be_committed_one_by_one_and_only_up_to_the_position() {
    let cluster = cluster("orders", 2);
    send(&cluster, 0..40);
    let consumer = builder(&cluster, "g").assign([queue(0), queue(1)]).auto_commit(false).start().unwrap();
    poll_count(&consumer, 40);
    consumer.commit_offsets(&[(queue(0), 7)]).unwrap();
    assert_eq!(stored(&consumer), Some(7));
    assert_eq!(consumer.committed(&queue(1)).unwrap(), None, "the other queue's progress is its own");
    consumer.commit_offsets(&[(queue(0), 3)]).unwrap();
    assert_eq!(stored(&consumer), Some(7), "never back");
    assert_eq!(consumer.commit_offsets(&[(queue(0), 21)]).unwrap_err().kind(), ErrorKind::Config);
    consumer.commit_offsets(&[(queue(0), 20), (queue(1), 20)]).unwrap();
    assert_eq!(consumer.committed(&queue(1)).unwrap(), Some(20));
    assert_eq!(consumer.lag().unwrap(), [(queue(0), 0), (queue(1), 0)]);
    assert_eq!(consumer.consumed(), 40);
    let error = consumer.commit_offsets(&[(queue(2), 0)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State, "{error}");
}

#[test]
fn a_commit_that_no_broker_takes_fails_and_is_made_up_for() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..10);
    let consumer = builder(&cluster, "g")
        .assign([queue(0)])
        .auto_commit(false)
        .persist_interval(Duration::from_millis(100))
        .start()
        .unwrap();
    poll_count(&consumer, 10);
    cluster.stop_broker("broker-a").unwrap();
    let error = consumer.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    cluster.restart_broker("broker-a").unwrap();
    wait_until("it is stored without another commit", || consumer.committed(&queue(0)).ok().flatten() == Some(10));
}
