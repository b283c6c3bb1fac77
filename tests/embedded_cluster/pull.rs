use crate::support::{PATIENCE, Peer, body, expect_code, heartbeat, peer, pull_header, pulled};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::Message;
use rocketmq_sync::message::batch::encode_batch;
use rocketmq_sync::protocol::header::{
    DeleteTopicRequestHeader, PullMessageRequestHeader, PullMessageResponseHeader, QueryConsumerOffsetRequestHeader,
    SendMessageRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode, SubscriptionData};
use rocketmq_sync::time::Clock;
use std::time::Duration;

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 4).start().unwrap()
}

fn at(queue_offset: i64) -> PullMessageRequestHeader<'static> {
    PullMessageRequestHeader { queue_offset, ..pull_header("G", "T") }
}

/// Code, remark, next, min and max offset.
fn outcome(answer: &RemotingCommand) -> (i32, &str, i64, i64, i64) {
    let header: PullMessageResponseHeader = answer.header().unwrap();
    assert_eq!((header.suggest_which_broker_id, header.topic_sys_flag, header.group_sys_flag), (0, Some(0), Some(0)));
    let remark = answer.remark.as_deref().unwrap_or_default();
    (answer.code, remark, header.next_begin_offset, header.min_offset, header.max_offset)
}

#[test]
fn every_status_has_its_code_and_next_offset() {
    let cluster = cluster();
    let broker = peer(&cluster);
    assert_eq!(outcome(&broker.pull_as(&at(0))), (19, "NO_MESSAGE_IN_QUEUE", 0, 0, 0));
    assert_eq!(outcome(&broker.pull_as(&at(5))), (21, "NO_MESSAGE_IN_QUEUE", 0, 0, 0));
    broker.send("T", 0, "a", &[]);
    broker.send("T", 0, "b", &[("TAGS", "B")]);
    assert_eq!(outcome(&broker.pull_as(&at(0))), (0, "FOUND", 2, 0, 2));
    assert_eq!(outcome(&broker.pull_as(&at(2))), (19, "OFFSET_OVERFLOW_ONE", 2, 0, 2));
    assert_eq!(outcome(&broker.pull_as(&at(99))), (21, "OFFSET_OVERFLOW_BADLY", 2, 0, 2));
    assert_eq!(outcome(&broker.pull_as(&at(-1))), (21, "OFFSET_TOO_SMALL", 0, 0, 2));
    let other_tag = PullMessageRequestHeader { subscription: Some("C"), ..at(0) };
    assert_eq!(outcome(&broker.pull_as(&other_tag)), (20, "NO_MATCHED_MESSAGE", 2, 0, 2));
    let one = PullMessageRequestHeader { max_msg_nums: 1, ..at(0) };
    assert_eq!(outcome(&broker.pull_as(&one)), (0, "FOUND", 1, 0, 2));
    let lite = broker.call(RequestCode::LITE_PULL_MESSAGE, &at(1));
    assert_eq!(outcome(&lite), (0, "FOUND", 2, 0, 2));
}

#[test]
fn refuses_what_a_broker_refuses() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let from_heartbeat = PullMessageRequestHeader { sys_flag: 0, sub_version: 1, ..at(0) };
    let cases = [
        (PullMessageRequestHeader { queue_id: 4, ..at(0) }, ResponseCode::INVALID_PARAMETER),
        (PullMessageRequestHeader { queue_id: -1, ..at(0) }, ResponseCode::INVALID_PARAMETER),
        (pull_header("G", "nowhere"), ResponseCode::TOPIC_NOT_EXIST),
        (pull_header("a b", "T"), ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST),
        (PullMessageRequestHeader { subscription: Some("||"), ..at(0) }, ResponseCode::SUBSCRIPTION_PARSE_FAILED),
        (
            PullMessageRequestHeader { expression_type: Some("SQL92"), subscription: None, ..at(0) },
            ResponseCode::SUBSCRIPTION_PARSE_FAILED,
        ),
        (from_heartbeat, ResponseCode::SUBSCRIPTION_NOT_EXIST),
    ];
    for (header, code) in cases {
        let answer = broker.pull_as(&header);
        assert_eq!(answer.response_code(), code, "{header:?}: {:?}", answer.remark);
    }
    expect_code(&broker.call_with_body(RequestCode::PULL_MESSAGE, ""), ResponseCode::SYSTEM_ERROR);

    broker.heartbeat("c1", "G", &["T"]);
    expect_code(&broker.pull_as(&from_heartbeat), ResponseCode::PULL_NOT_FOUND);
    let newer = PullMessageRequestHeader { sub_version: 2, ..from_heartbeat };
    expect_code(&broker.pull_as(&newer), ResponseCode::SUBSCRIPTION_NOT_LATEST);
    let other_topic = PullMessageRequestHeader { topic: "BenchmarkTest", ..from_heartbeat };
    expect_code(&broker.pull_as(&other_topic), ResponseCode::SUBSCRIPTION_NOT_EXIST);
}

#[test]
fn filters_by_the_hash_of_the_tag_so_that_collisions_get_through() {
    let cluster = cluster();
    let broker = peer(&cluster);
    for tag in ["Aa", "BB", "C", "f5a5a608"] {
        broker.send("T", 0, tag, &[("TAGS", tag)]);
    }
    broker.send("T", 0, "untagged", &[]);
    let wanted = |expression| {
        let header = PullMessageRequestHeader { subscription: Some(expression), ..at(0) };
        let answer = broker.pull_as(&header);
        let (header, messages) = pulled(&answer);
        (header.next_begin_offset, messages.iter().map(body).collect::<Vec<_>>())
    };
    assert_eq!(wanted("Aa"), (5, vec!["Aa".into(), "BB".into()]));
    assert_eq!(wanted("C || nothing"), (5, vec!["C".into()]));
    // The hash of this tag is 0, which is the code of messages without a tag.
    assert_eq!(wanted("f5a5a608"), (5, vec!["f5a5a608".into(), "untagged".into()]));
    assert_eq!(wanted("*").1.len(), 5);
}

#[test]
fn the_heartbeats_filter_counts_when_the_pull_brings_none() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let mut beat = heartbeat("c1", "G", &[]);
    beat.consumer_data_set[0].subscription_data_set = vec![SubscriptionData::tag_expression("T", "A", 7).unwrap()];
    broker.beat(&beat);
    broker.send("T", 0, "a", &[("TAGS", "A")]);
    broker.send("T", 0, "b", &[("TAGS", "B")]);
    let header = PullMessageRequestHeader { sys_flag: 0, subscription: None, sub_version: 7, ..at(0) };
    assert_eq!(pulled(&broker.pull_as(&header)).1.len(), 1);
}

#[test]
fn a_first_pull_commits_whatever_it_finds() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let header = PullMessageRequestHeader { sys_flag: 4 | 1, commit_offset: 12, ..at(99) };
    expect_code(&broker.pull_as(&header), ResponseCode::PULL_OFFSET_MOVED);
    let header = QueryConsumerOffsetRequestHeader {
        consumer_group: "G",
        topic: "T",
        queue_id: 0,
        set_zero_if_not_found: None,
        bname: None,
    };
    let answer = broker.call(RequestCode::QUERY_CONSUMER_OFFSET, &header);
    assert_eq!(answer.ext_fields.get("offset"), Some("12"));
}

/// A pull that waits: suspend, with its own subscription.
fn waiting(expression: &'static str) -> RemotingCommand {
    let header = PullMessageRequestHeader { sys_flag: 2 | 4, subscription: Some(expression), ..at(0) };
    RemotingCommand::request(RequestCode::PULL_MESSAGE, &header)
}

#[test]
fn an_arrival_wakes_the_pulls_that_want_it() {
    let cluster = cluster();
    let (waiter, sender) = (peer(&cluster), peer(&cluster));
    let (all, tagged, other) = (waiter.start(waiting("*")), waiter.start(waiting("A")), waiter.start(waiting("Z")));
    waiter.max_offset("T", 0); // the pulls were processed before this was answered
    assert!(all.is_empty() && tagged.is_empty() && other.is_empty());
    sender.send("T", 1, "other queue", &[]);
    sender.send("T", 0, "a", &[("TAGS", "A")]);
    for answered in [&all, &tagged] {
        let answer = answered.recv_timeout(PATIENCE).unwrap();
        assert_eq!(outcome(&answer), (0, "FOUND", 1, 0, 1));
        assert_eq!(pulled(&answer).1[0].body(), b"a");
    }
    waiter.max_offset("T", 0);
    assert!(other.is_empty());
}

#[test]
fn a_pull_that_waited_gets_a_batch_at_once() {
    let cluster = cluster();
    let (waiter, sender) = (peer(&cluster), peer(&cluster));
    let answer = waiter.start(waiting("B"));
    waiter.max_offset("T", 0);
    let messages = [
        Message::new("T", "1").with_tags("A"),
        Message::new("T", "2").with_tags("B"),
        Message::new("T", "3").with_tags("B"),
    ];
    let header = SendMessageRequestHeader { batch: Some(true), ..crate::support::send_header("T") };
    let request = RemotingCommand::request(RequestCode::SEND_BATCH_MESSAGE, &header);
    expect_code(&sender.invoke(request.with_body(encode_batch(&messages).unwrap())), ResponseCode::SUCCESS);
    let answer = answer.recv_timeout(PATIENCE).unwrap();
    assert_eq!(pulled(&answer).1.iter().map(body).collect::<Vec<_>>(), ["2", "3"]);
}

#[test]
fn a_pull_waits_as_long_as_it_asked_for_and_then_skips_what_it_did_not_want() {
    let clock = Clock::manual();
    let cluster = EmbeddedCluster::builder().topic("T", 4).clock(clock).start().unwrap();
    let broker = peer(&cluster);
    let (nothing, filtered) = (broker.start(waiting("*")), broker.start(waiting("Z")));
    broker.max_offset("T", 0);
    cluster.advance_clock(Duration::from_millis(14_999));
    broker.max_offset("T", 0);
    assert!(nothing.is_empty() && filtered.is_empty());
    let late = PullMessageRequestHeader { queue_id: 1, sys_flag: 6, ..at(0) };
    let late = broker.start(RemotingCommand::request(RequestCode::PULL_MESSAGE, &late));
    broker.send("T", 0, "a", &[("TAGS", "A")]);
    nothing.recv_timeout(PATIENCE).unwrap();
    cluster.advance_clock(Duration::from_millis(1));
    let answer = filtered.recv_timeout(PATIENCE).unwrap();
    assert_eq!(outcome(&answer), (20, "NO_MATCHED_MESSAGE", 1, 0, 1));
    broker.max_offset("T", 0);
    assert!(late.is_empty());
    cluster.advance_clock(Duration::from_secs(15));
    assert_eq!(outcome(&late.recv_timeout(PATIENCE).unwrap()), (19, "NO_MESSAGE_IN_QUEUE", 0, 0, 0));
}

#[test]
fn the_systems_clock_ends_a_wait_as_well() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let header = PullMessageRequestHeader { sys_flag: 6, suspend_timeout_millis: 50, ..at(0) };
    let answer = broker.pull_as(&header);
    assert_eq!(outcome(&answer), (19, "NO_MESSAGE_IN_QUEUE", 0, 0, 0));
}

#[test]
fn a_one_way_pull_is_neither_held_nor_answered() {
    let cluster = cluster();
    let broker = peer(&cluster);
    broker.client.invoke_oneway(&broker.address, waiting("*")).unwrap();
    broker.send("T", 0, "a", &[]);
    assert_eq!(broker.bodies("T", 0), ["a"]);
}

#[test]
fn deleting_the_topic_ends_a_wait() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let answer = broker.start(waiting("*"));
    broker.call(RequestCode::DELETE_TOPIC_IN_BROKER, &DeleteTopicRequestHeader { topic: "T" });
    expect_code(&answer.recv_timeout(PATIENCE).unwrap(), ResponseCode::TOPIC_NOT_EXIST);
}

#[test]
fn a_waiter_that_hangs_up_disturbs_nobody() {
    let cluster = cluster();
    let sender = peer(&cluster);
    {
        let gone = peer(&cluster);
        let _ = gone.start(waiting("*"));
        gone.max_offset("T", 0);
    }
    let stays = peer(&cluster);
    let answer = stays.start(waiting("*"));
    stays.max_offset("T", 0);
    sender.send("T", 0, "a", &[]);
    answer.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn no_message_is_missed_by_many_who_wait_while_many_send() {
    const MESSAGES: usize = 500;
    let cluster = cluster();
    let address = crate::support::address(&cluster);
    std::thread::scope(|scope| {
        for queue_id in 0..4 {
            let address = address.clone();
            scope.spawn(move || {
                let reader = Peer::new(address);
                let mut offset = 0;
                while offset < MESSAGES as i64 {
                    let header = PullMessageRequestHeader { sys_flag: 6, queue_id, ..at(offset) };
                    let answer = reader.pull_as(&header);
                    let (header, messages) = pulled(&answer);
                    for message in messages {
                        assert_eq!(message.queue_offset(), offset);
                        offset += 1;
                    }
                    assert_eq!(header.next_begin_offset, offset);
                }
            });
            scope.spawn({
                let address = crate::support::address(&cluster);
                move || {
                    let sender = Peer::new(address);
                    (0..MESSAGES).for_each(|number| {
                        sender.send("T", queue_id, &number.to_string(), &[]);
                    });
                }
            });
        }
    });
}

#[test]
fn a_large_message_comes_alone_and_in_one_piece() {
    let cluster = cluster();
    let broker = peer(&cluster);
    let large = "x".repeat(3 << 20);
    broker.send("T", 0, &large, &[]);
    broker.send("T", 0, "small", &[]);
    let request = PullMessageRequestHeader { max_msg_nums: 2, ..at(0) };
    let (header, messages) = pulled(&broker.pull_as(&request));
    assert_eq!((header.next_begin_offset, messages.len(), messages[0].body().len()), (1, 1, 3 << 20));
}
