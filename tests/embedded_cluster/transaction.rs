use crate::support::{PATIENCE, Peer, body, expect_code, heartbeat, peer, property_map};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::id::parse_offset_message_id;
use rocketmq_sync::message::store_codec::{DecodeOptions, decode_one};
use rocketmq_sync::protocol::header::{CheckTransactionStateRequestHeader, EndTransactionRequestHeader};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::time::Clock;
use std::time::Duration;

const HALF: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
const COMMIT: i32 = 8;
const ROLLBACK: i32 = 12;

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 2).clock(Clock::manual()).start().unwrap()
}

/// Sends a half message; returns its place in the half queue and in the log.
fn half(broker: &Peer, text: &str, properties: &[(&str, &str)]) -> (i64, i64) {
    let mut all = vec![("TRAN_MSG", "true"), ("PGROUP", "PG"), ("UNIQ_KEY", text)];
    all.extend_from_slice(properties);
    let (msg_id, queue_offset) = broker.send("T", 1, text, &all);
    (queue_offset, parse_offset_message_id(&msg_id).unwrap().1)
}

fn end(broker: &Peer, (queue_offset, position): (i64, i64), word: i32, from_check: bool) -> RemotingCommand {
    let header = EndTransactionRequestHeader {
        producer_group: "PG",
        tran_state_table_offset: queue_offset,
        commit_log_offset: position,
        commit_or_rollback: word,
        from_transaction_check: from_check,
        msg_id: "any",
        transaction_id: None,
        topic: None,
        bname: None,
    };
    broker.call(RequestCode::END_TRANSACTION, &header)
}

/// Waits for a question; returns the body of its message and the place it speaks of.
fn question(producer: &Peer) -> (String, (i64, i64)) {
    let request = producer.pushed.recv_timeout(PATIENCE).expect("a question");
    assert_eq!(request.request_code(), RequestCode::CHECK_TRANSACTION_STATE);
    assert!(request.is_oneway());
    let header: CheckTransactionStateRequestHeader<'_> = request.header().unwrap();
    let message = decode_one(request.body.clone(), &DecodeOptions::default()).unwrap();
    assert_eq!((message.topic(), message.queue_id()), ("T", 1));
    assert_eq!(header.msg_id, Some(body(&message).as_str()));
    (body(&message), (header.tran_state_table_offset, header.commit_log_offset))
}

fn join(producer: &Peer, client_id: &str) {
    let mut beat = heartbeat(client_id, "G", &[]);
    beat.consumer_data_set.clear();
    producer.beat(&beat);
}

#[test]
fn a_half_message_is_seen_when_it_is_committed_and_never_when_it_is_rolled_back() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let (first, second) = (half(&broker, "first", &[("TAGS", "a")]), half(&broker, "second", &[]));
    assert_eq!((first.0, second.0, broker.max_offset(HALF, 0)), (0, 1, 2));
    assert!(broker.bodies("T", 1).is_empty());
    expect_code(&end(&broker, first, COMMIT, false), ResponseCode::SUCCESS);
    expect_code(&end(&broker, second, ROLLBACK, false), ResponseCode::SUCCESS);
    let messages = broker.pull("T", 1, 0);
    assert_eq!(messages.iter().map(body).collect::<Vec<_>>(), ["first"]);
    assert_eq!((messages[0].sys_flag(), messages[0].prepared_transaction_offset()), (COMMIT, first.1));
    let properties = property_map(&messages[0]);
    for (name, value) in [("REAL_TOPIC", "T"), ("REAL_QID", "1"), ("__transactionId__", "first"), ("TAGS", "a")] {
        assert_eq!(properties[name], value);
    }
    // Nothing is left to ask about, and a second word changes nothing.
    join(&broker, "p");
    expect_code(&end(&broker, first, COMMIT, false), ResponseCode::SUCCESS);
    cluster.advance_clock(Duration::from_secs(100));
    assert_eq!(broker.bodies("T", 1), ["first"]);
    broker.expect_silence();
}

#[test]
fn a_word_that_does_not_fit_is_refused_and_no_word_is_not_answered() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let place = half(&broker, "x", &[]);
    let header = |group: &'static str, (queue_offset, position)| EndTransactionRequestHeader {
        producer_group: group,
        tran_state_table_offset: queue_offset,
        commit_log_offset: position,
        commit_or_rollback: COMMIT,
        from_transaction_check: false,
        msg_id: "any",
        transaction_id: None,
        topic: None,
        bname: None,
    };
    for wrong in [
        header("other", place),
        header("PG", (place.0 + 1, place.1)),
        header("PG", (place.0, place.1 + 1)),
        header("PG", (place.0, i64::MAX)),
    ] {
        expect_code(&broker.call(RequestCode::END_TRANSACTION, &wrong), ResponseCode::SYSTEM_ERROR);
    }
    let (_, plain) = parse_offset_message_id(&broker.send("T", 0, "plain", &[]).0).unwrap();
    expect_code(&end(&broker, (0, plain), COMMIT, false), ResponseCode::SYSTEM_ERROR);
    for word in [0, 4, 99] {
        let open = EndTransactionRequestHeader { commit_or_rollback: word, ..header("PG", place) };
        let answer = broker.start(RemotingCommand::request(RequestCode::END_TRANSACTION, &open));
        broker.max_offset("T", 0);
        assert!(answer.is_empty());
    }
    assert!(broker.bodies("T", 1).is_empty());
}

#[test]
fn producers_of_the_group_are_asked_in_turn_until_one_decides() {
    let cluster = cluster();
    let (first, second) = (peer(&cluster), peer(&cluster));
    join(&first, "p1");
    join(&second, "p2");
    let place = half(&first, "x", &[]);
    cluster.advance_clock(Duration::from_millis(5999));
    first.expect_silence();
    cluster.advance_clock(Duration::from_millis(1));
    let (text, copy) = question(&first);
    assert_eq!((text.as_str(), copy.0), ("x", place.0 + 1));
    cluster.advance_clock(Duration::from_secs(30));
    let (_, newer) = question(&second);
    assert!(newer.1 > copy.1);
    // The producer may speak of any copy.
    expect_code(&end(&second, copy, COMMIT, true), ResponseCode::SUCCESS);
    assert_eq!(second.bodies("T", 1), ["x"]);
    let message = &second.pull("T", 1, 0)[0];
    assert_eq!(property_map(message)["TRANSACTION_CHECK_TIMES"], "1");
    cluster.advance_clock(Duration::from_secs(80));
    first.expect_silence();
    second.expect_silence();
    assert_eq!(second.bodies("T", 1), ["x"]);
}

#[test]
fn a_message_nobody_decides_about_is_given_up() {
    let builder = EmbeddedCluster::builder().topic("T", 2).clock(Clock::manual());
    let cluster = builder
        .transaction_timeout(Duration::from_secs(1))
        .transaction_check_interval(Duration::from_secs(2))
        .transaction_check_max(3)
        .start()
        .unwrap();
    let broker = peer(&cluster);
    // Nobody is there at first: that counts as a question.
    half(&broker, "x", &[]);
    cluster.advance_clock(Duration::from_secs(1));
    join(&broker, "p");
    for _ in 0..2 {
        cluster.advance_clock(Duration::from_secs(2));
        question(&broker);
    }
    assert!(broker.bodies("TRANS_CHECK_MAX_TIME_TOPIC", 0).is_empty());
    cluster.advance_clock(Duration::from_secs(60));
    broker.expect_silence();
    assert_eq!(broker.bodies("TRANS_CHECK_MAX_TIME_TOPIC", 0), ["x"]);
}

#[test]
fn a_message_may_bring_a_longer_time_of_its_own() {
    let cluster = cluster();
    let broker = peer(&cluster);
    join(&broker, "p");
    let place = half(&broker, "x", &[("CHECK_IMMUNITY_TIME_IN_SECONDS", "60")]);
    cluster.advance_clock(Duration::from_secs(59));
    broker.expect_silence();
    // The born time of the test is long ago, so its own time is over for an unasked word.
    expect_code(&end(&broker, place, COMMIT, false), ResponseCode::ILLEGAL_OPERATION);
    cluster.advance_clock(Duration::from_secs(1));
    let (_, copy) = question(&broker);
    expect_code(&end(&broker, copy, COMMIT, true), ResponseCode::SUCCESS);
    assert_eq!(broker.bodies("T", 1), ["x"]);
}

#[test]
fn a_committed_message_may_be_delayed() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let place = half(&broker, "x", &[("DELAY", "2")]);
    expect_code(&end(&broker, place, COMMIT, false), ResponseCode::SUCCESS);
    assert!(broker.bodies("T", 1).is_empty());
    cluster.advance_clock(Duration::from_secs(5));
    assert_eq!(broker.bodies("T", 1), ["x"]);
}

#[test]
fn transactions_survive_a_restart_of_the_broker() {
    let cluster = cluster();
    half(&peer(&cluster), "x", &[]);
    cluster.restart_broker("broker-a").unwrap();
    let broker = peer(&cluster);
    join(&broker, "p");
    cluster.advance_clock(Duration::from_secs(6));
    let (_, copy) = question(&broker);
    expect_code(&end(&broker, copy, ROLLBACK, true), ResponseCode::SUCCESS);
    assert!(broker.bodies("T", 1).is_empty());
}

#[test]
fn a_full_broker_takes_a_commit_since_the_half_message_makes_room() {
    let builder = EmbeddedCluster::builder().topic("T", 2).max_messages(2).clock(Clock::manual());
    let cluster = builder.start().unwrap();
    let broker = peer(&cluster);
    let place = half(&broker, "half", &[]);
    broker.send("T", 0, "other", &[]);
    expect_code(&end(&broker, place, COMMIT, false), ResponseCode::SUCCESS);
    assert_eq!((broker.bodies("T", 1), broker.bodies("T", 0)), (vec!["half".to_owned()], vec!["other".to_owned()]));
}
