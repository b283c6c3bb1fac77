//! Answers of a broker that are well framed and hold something no broker should send.

use crate::fake::*;
use bytes::Bytes;
use rocketmq_sync::message::{compress, sys_flag};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::{ConsumeConcurrentlyStatus, ConsumerEvent, ErrorKind, Message};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_body_that_inflates_beyond_the_limit_becomes_a_dead_letter_and_is_told() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    let bomb = compress::deflate(&vec![0; 2 << 20], 5).unwrap();
    assert!(bomb.len() < 8 << 10);
    let flag = sys_flag::COMPRESSED | sys_flag::CompressionType::Zlib.bits();
    {
        let mut state = fake.state();
        let messages = state.messages.get_mut(&(TOPIC.to_owned(), 0)).unwrap();
        messages.push(record(0, 1, &bomb, flag));
        messages.push(record(0, 2, b"garbage that is no zlib", flag));
        messages.push(record(0, 3, b"behind", 0));
    }
    let (listener, seen) = collecting();
    let (tell, events) = channel();
    let consumer = fake.consumer().max_inflated_size(1 << 20).listener(listener).event_listener(move |event| {
        let _ = tell.send(event.clone());
    });
    let consumer = consumer.start().unwrap();
    let mut bodies = take(&seen, 2);
    bodies.sort();
    assert_eq!(bodies, ["0", "behind"]);
    let mut unreadable = Vec::new();
    while unreadable.len() < 2 {
        match events.recv_timeout(LONG).unwrap() {
            ConsumerEvent::BodyUnreadable { offset, .. } => unreadable.push(offset),
            other => panic!("{other}"),
        }
    }
    unreadable.sort_unstable();
    assert_eq!(unreadable, [1, 2]);
    wait_until("the offset passes them", || fake.commit_of(0) == Some(4));
    let back = fake.asked(|asked| asked.is(RequestCode::CONSUMER_SEND_MSG_BACK));
    assert_eq!(back.len(), 2);
    for asked in &back {
        assert_eq!(asked.number("delayLevel"), -1);
        assert_eq!(asked.field("bname"), "a");
    }
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_damaged_message_is_asked_for_three_times_passed_over_and_told_while_the_others_are_delivered() {
    let fake = Fake::start(1);
    fake.store(0, 0..5);
    {
        let mut state = fake.state();
        let messages = state.messages.get_mut(&(TOPIC.to_owned(), 0)).unwrap();
        let mut bad = messages[2].to_vec();
        bad[84..88].copy_from_slice(&i32::MAX.to_be_bytes()); // its body says it is longer than the record
        messages[2] = bad.into();
    }
    let (listener, seen) = collecting();
    let (tell, events) = channel();
    let consumer = fake.consumer().listener(listener).event_listener(move |event| {
        let _ = tell.send(event.clone());
    });
    let consumer = consumer.start().unwrap();
    assert_eq!(sorted(take(&seen, 4)), ["0", "1", "3", "4"]);
    let event = events.recv_timeout(LONG).unwrap();
    let ConsumerEvent::MessageUnreadable { offset, .. } = event else { panic!("{event}") };
    assert_eq!(offset, 2);
    let at_bad = fake.asked(|asked| asked.is_pull() && asked.number("queueOffset") == 2);
    assert_eq!(at_bad.len(), 2, "the first try came with those before it");
    wait_until("the offset passes it", || fake.commit_of(0) == Some(5));
    assert!(consumer.shutdown(LONG).is_clean());
    assert!(events.try_recv().is_err());
}

fn sorted(mut bodies: Vec<String>) -> Vec<String> {
    bodies.sort();
    bodies
}

#[test]
fn a_stream_that_breaks_in_every_answer_is_passed_over_at_its_first_message_only() {
    let fake = Fake::start(1);
    fake.store(0, 0..4);
    // Message 1 claims another size, so that what lies behind it in one answer cannot be found.
    {
        let mut state = fake.state();
        let messages = state.messages.get_mut(&(TOPIC.to_owned(), 0)).unwrap();
        let mut bad = messages[1].to_vec();
        bad[0..4].copy_from_slice(&(-5i32).to_be_bytes());
        messages[1] = bad.into();
    }
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    assert_eq!(sorted(take(&seen, 3)), ["0", "2", "3"]);
    wait_until("the offset passes it", || fake.commit_of(0) == Some(4));
    assert!(consumer.shutdown(LONG).is_clean());
}

/// Counts pulls of the topic while the broker hears ten heartbeats, which come by the clock.
fn pulls_in_ten_heartbeats(fake: &Fake) -> usize {
    let (beats, pulls) = (fake.count(RequestCode::HEART_BEAT), fake.asked(Asked::is_pull).len());
    wait_until("ten heartbeats", || fake.count(RequestCode::HEART_BEAT) >= beats + 10);
    fake.asked(Asked::is_pull).len() - pulls
}

#[test]
fn answers_that_lead_nowhere_are_not_asked_for_without_end() {
    let stale = record(0, 0, b"stale", 0);
    let answers: [(&str, RemotingCommand); 7] = [
        ("found and empty", pull_answer(ResponseCode::SUCCESS, 7, 0, 100, Bytes::new())),
        ("found and negative", pull_answer(ResponseCode::SUCCESS, -9, -9, -9, Bytes::new())),
        ("found what was asked for long ago", pull_answer(ResponseCode::SUCCESS, 7, 0, 100, stale)),
        ("nothing, at once", pull_answer(ResponseCode::PULL_NOT_FOUND, 7, 0, 100, Bytes::new())),
        ("retry at once", pull_answer(ResponseCode::PULL_RETRY_IMMEDIATELY, 7, 0, 100, Bytes::new())),
        ("moved to where it is", pull_answer(ResponseCode::PULL_OFFSET_MOVED, 7, 0, 100, Bytes::new())),
        ("an unknown code", refuse(ResponseCode(4711))),
    ];
    for (what, answer) in answers {
        let fake = Fake::start(1);
        fake.state().offsets.insert((TOPIC.into(), 0), 7);
        fake.script(move |asked| if asked.is_pull() { Reply::Give(answer.clone()) } else { Reply::Usual });
        let (listener, seen) = collecting();
        let builder = fake.consumer().heartbeat_interval(Duration::from_millis(50));
        let consumer = builder.listener(listener).start().unwrap();
        fake.wait_for("a first pull", Asked::is_pull);
        let pulls = pulls_in_ten_heartbeats(&fake);
        assert!(pulls < 100, "{what}: {pulls} pulls in half a second");
        assert!(seen.try_recv().is_err(), "{what}: a message came");
        let below = fake.asked(|asked| asked.is_pull() && asked.number("queueOffset") < 7);
        assert!(below.is_empty(), "{what}");
        // In good health again, it goes on.
        fake.store(0, 0..9);
        fake.script(|_| Reply::Usual);
        assert_eq!(sorted(take(&seen, 2)), ["7", "8"], "{what}");
        consumer.shutdown(LONG);
    }
}

#[test]
fn offsets_at_the_end_of_their_range_stop_nothing() {
    for at in [i64::MAX, i64::MAX - 1, i64::MIN, -1] {
        let fake = Fake::start(2);
        let odd = record(0, at, b"odd", 0);
        fake.store(1, 0..1);
        fake.script(move |asked| {
            if asked.is_pull() && asked.number("queueId") == 0 && asked.number("queueOffset") == 0 {
                return Reply::Give(pull_answer(ResponseCode::SUCCESS, 3, 0, 3, odd.clone()));
            }
            Reply::Usual
        });
        let (listener, seen) = collecting();
        let consumer = fake.consumer().listener(listener).start().unwrap();
        let pulls = |fake: &Fake| fake.asked(|asked| asked.is_pull() && asked.number("queueId") == 0).len();
        wait_until("the queue is pulled again and again", || pulls(&fake) >= 3);
        // The other queue never noticed.
        fake.store(1, 1..2);
        wait_until("both of the other queue", || {
            seen.try_recv().ok();
            fake.commit_of(1) == Some(2)
        });
        assert!(consumer.health().is_running());
        consumer.shutdown(LONG);
    }
}

#[test]
fn start_offsets_that_are_none_start_nothing_until_a_good_one_comes() {
    let fake = Fake::start(1);
    fake.store(0, 40..42);
    fake.script(|asked| {
        if !(asked.is(RequestCode::QUERY_CONSUMER_OFFSET) && asked.of_topic()) {
            return Reply::Usual;
        }
        let mut answer = RemotingCommand::response(ResponseCode::SUCCESS, None);
        // The retry topic has no route here, so that all of these are the topic's.
        match asked.before {
            0 => answer.ext_fields.put("offset", "-1"),
            1 => answer.ext_fields.put("offset", "9223372036854775808"),
            2 => answer.ext_fields.put("offset", "forty"),
            3 => {}
            _ => answer.ext_fields.put("offset", "40"),
        }
        Reply::Give(answer)
    });
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    assert_eq!(sorted(take(&seen, 2)), ["40", "41"]);
    assert!(fake.asked(|asked| asked.is_pull() && asked.number("queueOffset") < 40).is_empty());
    consumer.shutdown(LONG);
}

#[test]
fn routes_and_member_lists_that_are_garbage_are_waited_out() {
    let rubbish: [&[u8]; 8] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe\x00",
        b"{\"consumerIdList\":7,\"queueDatas\":\"x\"}",
        b"{\"consumerIdList\":[null],\"queueDatas\":[{\"readQueueNums\":1e99}],\"brokerDatas\":[{\"brokerAddrs\":{\"x\":1}}]}",
        b"{\"consumerIdList\":[{}],\"brokerDatas\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    ];
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    let nested = "[".repeat(200_000);
    fake.script(move |asked| {
        let is_list = asked.is(RequestCode::GET_CONSUMER_LIST_BY_GROUP);
        let is_route = asked.is(RequestCode::GET_ROUTEINFO_BY_TOPIC) && asked.of_topic();
        if !(is_list || is_route) {
            return Reply::Usual;
        }
        let body = match asked.before / 2 {
            at if at < rubbish.len() => Bytes::from_static(rubbish[at]),
            at if at == rubbish.len() => Bytes::from(nested.clone()),
            _ => return Reply::Usual,
        };
        Reply::Give(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body))
    });
    let (listener, seen) = collecting();
    let builder =
        fake.consumer().route_interval(Duration::from_millis(20)).rebalance_interval(Duration::from_millis(20));
    let builder = builder.rebalance_min_interval(Duration::from_millis(5));
    let consumer = builder.listener(listener).start().unwrap();
    assert_eq!(take(&seen, 1), ["0"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn a_route_with_absurd_numbers_costs_no_memory_and_is_replaced_by_the_next() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    let good = fake.state().routes[TOPIC].clone();
    let numbers = |read, write| {
        let mut bad = good.clone();
        bad.queue_datas[0].read_queue_nums = read;
        bad.queue_datas[0].write_queue_nums = write;
        bad
    };
    fake.state().routes.insert(TOPIC.into(), numbers(i32::MAX, i32::MAX));
    let before = resident_kib();
    let queues = fake.producer().publish_queues(TOPIC).map(|queues| queues.len()).unwrap_or(0);
    assert!(queues <= 1 << 16, "{queues} queues");
    assert!(resident_kib() < before + (200 << 10), "{} KiB before, {} after", before, resident_kib());
    fake.state().routes.insert(TOPIC.into(), numbers(-1, i32::MIN));
    let (listener, seen) = collecting();
    let consumer = fake.consumer().route_interval(Duration::from_millis(50)).listener(listener).start().unwrap();
    fake.state().routes.insert(TOPIC.into(), good);
    assert_eq!(take(&seen, 1), ["0"]);
    assert!(consumer.shutdown(LONG).is_clean());
}

/// What the process has in memory.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn requests_that_no_broker_sends_are_answered_and_change_nothing() {
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    let (listener, seen) = collecting();
    let consumer = fake.consumer().listener(listener).start().unwrap();
    assert_eq!(take(&seen, 1), ["0"]);
    let connection = fake.wait_for("a heartbeat", |asked| asked.is(RequestCode::HEART_BEAT)).connection;
    let garbage =
        [Bytes::new(), Bytes::from_static(b"{"), Bytes::from_static(b"\xff\x00"), Bytes::from("[".repeat(9999))];
    let codes = [-1, 0, 10, 34, 39, 40, 220, 221, 307, 309, 326, 99_999, i32::MAX, i32::MIN];
    let (done, answers) = channel();
    let mut sent = 0;
    for code in codes {
        for body in &garbage {
            for fields in [&[][..], &[("group", GROUP), ("topic", TOPIC), ("consumerGroup", GROUP), ("timestamp", "x")]]
            {
                let mut request = RemotingCommand::request_without_header(RequestCode(code)).with_body(body.clone());
                for (name, value) in fields {
                    request.ext_fields.put(name, value);
                }
                let done = done.clone();
                sent += 1;
                connection.invoke_async(request, Duration::from_secs(1), move |answer| {
                    let _ = done.send((code, answer.map(|answer| answer.code)));
                });
            }
        }
    }
    for _ in 0..sent {
        let (code, answer) = answers.recv_timeout(LONG).unwrap();
        if [-1, 10, 99_999, i32::MAX, i32::MIN].contains(&code) {
            assert_eq!(answer.unwrap(), ResponseCode::REQUEST_CODE_NOT_SUPPORTED.0, "{code}");
        }
    }
    fake.store(0, 1..2);
    assert_eq!(take(&seen, 1), ["1"]);
    assert_eq!(fake.state().accepted, 1, "the connection was kept");
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn answers_of_unknown_code_to_every_request_fail_a_send_with_code_and_address() {
    let fake = Fake::start(1);
    let producer = fake.producer();
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let tries = count.clone();
    fake.script(move |asked| {
        if asked.is(RequestCode::SEND_MESSAGE_V2) {
            tries.fetch_add(1, Ordering::SeqCst);
            return Reply::Give(refuse(ResponseCode(4711)));
        }
        Reply::Usual
    });
    let error = producer.send(&Message::new(TOPIC, "x")).unwrap_err();
    assert_eq!((error.kind(), error.response_code()), (ErrorKind::Broker, Some(4711)), "{error}");
    assert!(error.to_string().contains(&fake.address()), "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // An answer of success without the fields that it must have.
    fake.script(|asked| {
        if asked.is(RequestCode::SEND_MESSAGE_V2) {
            return Reply::Give(RemotingCommand::response(ResponseCode::SUCCESS, None));
        }
        Reply::Usual
    });
    let error = producer.send(&Message::new(TOPIC, "x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert!(error.to_string().contains(&fake.address()), "{error}");
}

#[test]
fn a_listener_that_fails_every_message_of_a_hostile_broker_loses_none() {
    // Sent back and refused, copied and refused: it stays and comes again by itself.
    let fake = Fake::start(1);
    fake.store(0, 0..1);
    fake.script(|asked| {
        if asked.is(RequestCode::CONSUMER_SEND_MSG_BACK) || asked.is(RequestCode::SEND_MESSAGE_V2) {
            return Reply::Give(refuse(ResponseCode::MESSAGE_ILLEGAL));
        }
        Reply::Usual
    });
    let tries = AtomicUsize::new(0);
    let (listener, seen) = deciding(move |_| {
        if tries.fetch_add(1, Ordering::SeqCst) == 0 {
            ConsumeConcurrentlyStatus::ReconsumeLater
        } else {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        }
    });
    let consumer = fake.consumer().listener(listener).start().unwrap();
    assert_eq!(take(&seen, 2), ["0", "0"]);
    wait_until("the offset follows", || fake.commit_of(0) == Some(1));
    assert!(consumer.shutdown(LONG).is_clean());
}
