//! Field reports about where a queue begins, what a pull asks for, and corrected offsets (18 to 33).

use crate::fake::*;
use bytes::Bytes;
use rocketmq_sync::message::sys_flag::pull as pull_flag;
use rocketmq_sync::protocol::{RequestCode, ResponseCode};
use rocketmq_sync::thread::Latch;
use rocketmq_sync::{ConsumeConcurrentlyStatus, ConsumeFromWhere, ConsumerEvent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_start_offset_that_cannot_be_read_three_times_is_waited_for_and_never_guessed() {
    let fake = Fake::start(1);
    fake.store(0, 900..1003);
    fake.state().offsets.insert((TOPIC.into(), 0), 1000);
    fake.script(|asked| {
        if asked.is(RequestCode::QUERY_CONSUMER_OFFSET) && asked.of_topic() && asked.before < 3 {
            return if asked.before == 1 { Reply::Give(refuse(ResponseCode::SYSTEM_ERROR)) } else { Reply::Nothing };
        }
        Reply::Usual
    });
    let (listener, seen) = collecting();
    let consumer = fake.consumer().request_timeout(Duration::from_millis(200)).listener(listener).start().unwrap();
    let mut bodies = take(&seen, 3);
    bodies.sort();
    assert_eq!(bodies, ["1000", "1001", "1002"]);
    wait_until("the offset", || fake.commit_of(0) == Some(1003));
    let pulls = fake.asked(Asked::is_pull);
    assert_eq!(pulls[0].number("queueOffset"), 1000);
    assert!(pulls.iter().all(|pull| pull.number("queueOffset") >= 1000));
    assert!(pulls.iter().all(|pull| pull.number("commitOffset") == 0 || pull.number("commitOffset") >= 1000));
    assert!(fake.asked(Asked::is_commit).iter().all(|commit| commit.number("commitOffset") >= 1000));
    consumer.shutdown(LONG);
}

#[test]
fn an_offset_above_the_end_goes_to_the_end_and_never_to_zero() {
    let fake = Fake::start(1);
    fake.store(0, 0..498);
    fake.state().offsets.insert((TOPIC.into(), 0), 500);
    fake.script(|asked| {
        if asked.is_pull() && asked.number("queueOffset") == 500 {
            return Reply::Give(pull_answer(ResponseCode::PULL_OFFSET_MOVED, 0, 0, 498, Bytes::new()));
        }
        Reply::Usual
    });
    let (tell, events) = channel();
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).event_listener(move |event| {
        let _ = tell.send(event.clone());
    });
    let consumer = consumer.start().unwrap();
    let event = events.recv_timeout(LONG).unwrap();
    assert!(matches!(event, ConsumerEvent::OffsetCorrected { asked: 500, corrected: 498, .. }), "{event}");
    fake.wait_for("a pull at the end", |asked| asked.is_pull() && asked.number("queueOffset") == 498);
    fake.store(0, 498..499);
    assert_eq!(take(&seen, 1), ["498"]);
    assert!(fake.asked(|asked| asked.is_pull() && asked.number("queueOffset") < 498).is_empty());
    consumer.shutdown(LONG);
}

/// Scripts the queue: the pull at `refused_at` is refused with these offsets, those at `then` and behind find messages
/// up to `then` + 2.
fn refuse_once(fake: &Fake, refused_at: i64, range: [i64; 3], then: i64) {
    refuse_once_when(fake, refused_at, range, then, || true);
}

/// The same, but that pulls at `refused_at` find nothing until it is time.
fn refuse_once_when(
    fake: &Fake,
    refused_at: i64,
    [next, min, max]: [i64; 3],
    then: i64,
    is_time: impl Fn() -> bool + Send + Sync + 'static,
) {
    fake.script(move |asked| {
        if !asked.is_pull() {
            return Reply::Usual;
        }
        match asked.number("queueOffset") {
            at if at == refused_at && !is_time() => {
                let nothing = pull_answer(ResponseCode::PULL_NOT_FOUND, at, 0, at, Bytes::new());
                Reply::GiveAfter(Duration::from_millis(20), nothing)
            }
            at if at == refused_at => {
                Reply::Give(pull_answer(ResponseCode::PULL_OFFSET_MOVED, next, min, max, Bytes::new()))
            }
            at if (then..then + 2).contains(&at) => {
                let body: Vec<_> = (at..then + 2).map(|at| record(0, at, at.to_string().as_bytes(), 0)).collect();
                Reply::Give(pull_answer(ResponseCode::SUCCESS, then + 2, min, max, body.concat().into()))
            }
            at if at == then + 2 => {
                let nothing = pull_answer(ResponseCode::PULL_NOT_FOUND, at, min, max, Bytes::new());
                Reply::GiveAfter(Duration::from_millis(100), nothing)
            }
            _ => Reply::Usual,
        }
    });
}

#[test]
fn a_reset_offset_is_pulled_while_a_listener_runs_whose_late_result_moves_nothing_back() {
    let fake = Fake::start(1);
    fake.store(0, 0..3);
    // Not before all three are at the listener: what no worker has begun ends with the ownership.
    let running = Arc::new(AtomicUsize::new(0));
    let begun = running.clone();
    refuse_once_when(&fake, 3, [42, 0, 100], 42, move || begun.load(Ordering::SeqCst) == 3);
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = deciding(move |message| {
        if message.queue_offset() >= 3 {
            return ConsumeConcurrentlyStatus::ConsumeSuccess;
        }
        running.fetch_add(1, Ordering::SeqCst);
        assert!(wait.wait_timeout(LONG));
        // They fail, too: nothing of them may be sent back under the new ownership.
        ConsumeConcurrentlyStatus::ReconsumeLater
    });
    let consumer = fake.consumer().listener(listener).start().unwrap();
    let mut bodies = take(&seen, 5);
    bodies.sort();
    assert_eq!(bodies, ["0", "1", "2", "42", "43"]);
    wait_until("the offset behind the reset", || fake.commit_of(0) == Some(44));
    let commits = fake.asked(Asked::is_commit).len();
    go.set();
    wait_until("the late ones are done", || consumer.failed() == 3);
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(fake.commit_of(0), Some(44));
    let later = fake.asked(Asked::is_commit).split_off(commits);
    assert!(later.iter().all(|commit| commit.number("commitOffset") >= 44));
    assert_eq!(fake.count(RequestCode::CONSUMER_SEND_MSG_BACK), 0);
}

#[test]
fn messages_pulled_before_the_broker_deleted_them_are_delivered_all_the_same() {
    let fake = Fake::start(1);
    fake.store(0, 0..10);
    refuse_once(&fake, 10, [42, 42, 100], 42);
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = deciding(move |_| {
        assert!(wait.wait_timeout(LONG));
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let consumer = fake.consumer().consume_threads(1).listener(listener).start().unwrap();
    fake.wait_for("a pull at the start", |asked| asked.is_pull() && asked.number("queueOffset") == 42);
    assert!(fake.commit_of(0).is_none_or(|offset| offset == 0), "nothing is finished");
    go.set();
    let expected: Vec<_> = (0..10).chain(42..44).map(|offset| offset.to_string()).collect();
    assert_eq!(take(&seen, 12), expected);
    wait_until("the offset", || fake.commit_of(0) == Some(44));
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn an_offset_above_the_end_loses_nothing_that_was_pulled_and_is_not_finished() {
    let fake = Fake::start(1);
    fake.store(0, 0..10);
    // A replica that lags behind by two.
    fake.script(|asked| {
        if asked.is_pull() && asked.number("queueOffset") == 10 && asked.before < 2 {
            return Reply::Give(pull_answer(ResponseCode::PULL_OFFSET_MOVED, 0, 0, 8, Bytes::new()));
        }
        Reply::Usual
    });
    let go = Latch::new();
    let wait = go.clone();
    let (listener, seen) = deciding(move |_| {
        assert!(wait.wait_timeout(LONG));
        ConsumeConcurrentlyStatus::ConsumeSuccess
    });
    let consumer = fake.consumer().consume_threads(1).listener(listener).start().unwrap();
    wait_until("pulls behind the correction", || fake.asked(Asked::is_pull).len() >= 4);
    go.set();
    wait_until("the offset", || fake.commit_of(0) == Some(10));
    assert!(consumer.shutdown(LONG).is_clean());
    let delivered: std::collections::BTreeSet<_> = seen.try_iter().collect();
    assert_eq!(delivered.len(), 10, "{delivered:?}");
}

#[test]
fn a_held_pull_is_no_failure_and_a_queue_has_one_pull_at_a_time() {
    let fake = Fake::start(3);
    fake.script(|asked| {
        if !asked.is_pull() {
            return Reply::Usual;
        }
        // A little longer than it was asked for, as brokers do.
        let nothing = pull_answer(ResponseCode::PULL_NOT_FOUND, 0, 0, 0, Bytes::new());
        Reply::GiveAfter(Duration::from_millis(1300), nothing)
    });
    let (listener, _seen) = collecting();
    let consumer = fake.consumer().pull_suspend(Duration::from_secs(1)).listener(listener).start().unwrap();
    wait_until("pulls", || fake.asked(Asked::is_pull).len() >= 9);
    // Each held pull follows the last one's answer: three queues, so many rounds.
    let by_queue = |queue| fake.asked(|asked| asked.is_pull() && asked.number("queueId") == queue).len();
    let counts: Vec<_> = (0..3).map(by_queue).collect();
    assert!(counts.iter().all(|count| (2..=5).contains(count)), "{counts:?}");
    assert!(consumer.health().standing_still().next().is_none());
    consumer.shutdown(LONG);
}

#[test]
fn one_message_a_pull_and_many_of_them_leave_the_stored_offset_at_the_end() {
    let fake = Fake::start(2);
    for queue in 0..2 {
        fake.store(queue, 0..1500);
    }
    let (listener, seen) = collecting();
    let consumer = fake.consumer().pull_batch_size(1).consume_threads(16).listener(listener).start().unwrap();
    let bodies = take(&seen, 3000);
    let distinct: std::collections::BTreeSet<_> = bodies.iter().collect();
    assert_eq!(distinct.len(), 1500);
    wait_until("both ends", || fake.commit_of(0) == Some(1500) && fake.commit_of(1) == Some(1500));
    assert!(consumer.assignment().iter().all(|state| state.cached_messages() == 0));
    let report = consumer.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert!(seen.try_recv().is_err(), "delivered twice");
}

#[test]
fn a_master_that_comes_back_with_old_offsets_hears_the_progress_again() {
    let fake = Fake::start(1);
    fake.store(0, 0..100);
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    take(&seen, 100);
    wait_until("the offset", || fake.commit_of(0) == Some(100));
    // It restarts and has forgotten; nothing new is consumed.
    {
        let mut state = fake.state();
        state.offsets.clear();
        state.members.clear();
    }
    fake.connections().iter().for_each(|connection| connection.close());
    wait_until("the offset once more", || fake.commit_of(0) == Some(100));
    consumer.shutdown(LONG);
}

#[test]
fn a_pull_from_a_replica_stores_no_offset_and_the_master_is_told_by_itself() {
    let (master, replica) = (Fake::bare("a", any()), Fake::bare("a", any()));
    let both = route(&[("a", 0, &master.address()), ("a", 1, &replica.address())], 1);
    master.state().routes.insert(TOPIC.into(), both);
    master.store(0, 0..10);
    replica.store(0, 0..10);
    master.script(|asked| {
        if asked.is_pull() {
            let mut answer = pull_answer(ResponseCode::PULL_RETRY_IMMEDIATELY, 0, 0, 10, Bytes::new());
            answer.ext_fields.put("suggestWhichBrokerId", "1");
            return Reply::Give(answer);
        }
        Reply::Usual
    });
    let suggest = |asked: &Asked| {
        // It goes on suggesting itself.
        if asked.is_pull() && asked.number("queueOffset") >= 10 {
            let mut answer = pull_answer(ResponseCode::PULL_NOT_FOUND, 10, 0, 10, Bytes::new());
            answer.ext_fields.put("suggestWhichBrokerId", "1");
            return Reply::GiveAfter(Duration::from_millis(50), answer);
        }
        if asked.is_pull() {
            let body: Vec<_> = (0..10).map(|offset| record(0, offset, b"x", 0)).collect();
            let mut answer = pull_answer(ResponseCode::SUCCESS, 10, 0, 10, body.concat().into());
            answer.ext_fields.put("suggestWhichBrokerId", "1");
            return Reply::Give(answer);
        }
        Reply::Usual
    };
    replica.script(suggest);
    let (listener, seen) = collecting();
    let consumer = master.consumer().listener(listener).start().unwrap();
    take(&seen, 10);
    wait_until("the master has the offset", || master.commit_of(0) == Some(10));
    wait_until("more pulls from the replica", || replica.asked(Asked::is_pull).len() >= 4);
    for pull in replica.asked(Asked::is_pull) {
        assert_eq!(pull.number("sysFlag") as i32 & pull_flag::COMMIT_OFFSET, 0);
    }
    assert!(replica.asked(Asked::is_commit).is_empty());
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn consumption_goes_on_at_the_replica_and_the_returned_master_gets_the_offset() {
    let (names, replica) = (Fake::bare("names", any()), Fake::bare("a", any()));
    let master = Fake::bare("a", any());
    let address = master.address();
    let both = route(&[("a", 0, &address), ("a", 1, &replica.address())], 1);
    names.state().routes.insert(TOPIC.into(), both.clone());
    for broker in [&master, &replica] {
        broker.store(0, 0..10);
    }
    let (listener, seen) = collecting();
    let builder = names.consumer().route_interval(Duration::from_millis(100)).request_timeout(Duration::from_secs(1));
    let consumer = builder.listener(listener).start().unwrap();
    take(&seen, 10);
    wait_until("the first offset", || master.commit_of(0) == Some(10));
    drop(master);
    names.state().routes.insert(TOPIC.into(), route(&[("a", 1, &replica.address())], 1));
    replica.store(0, 10..100);
    take(&seen, 90);
    let master = Fake::bare("a", address.parse().unwrap());
    master.store(0, 0..100);
    names.state().routes.insert(TOPIC.into(), both);
    wait_until("the master has the offset", || master.commit_of(0) == Some(100));
    assert!(master.asked(|asked| asked.is_pull() && asked.number("queueOffset") < 100).is_empty());
    consumer.shutdown(LONG);
}

fn any() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[test]
fn nothing_stored_asks_for_no_zero_and_then_follows_the_policy() {
    let fake = Fake::start(1);
    fake.store(0, 0..50);
    let (listener, seen) = collecting();
    let consumer = fake.consumer().consume_from(ConsumeFromWhere::LastOffset).listener(listener).start().unwrap();
    fake.wait_for("a pull at the end", |asked| asked.is_pull() && asked.number("queueOffset") == 50);
    fake.store(0, 50..51);
    assert_eq!(take(&seen, 1), ["50"]);
    for query in fake.asked(|asked| asked.is(RequestCode::QUERY_CONSUMER_OFFSET)) {
        assert_eq!(query.field("setZeroIfNotFound"), "false");
    }
    consumer.shutdown(LONG);
}
