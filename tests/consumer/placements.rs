//! Where a member can be when its process is killed, from the pull to the stored offset. Whatever was not stored comes to
//! the next member, and nothing else does.

use crate::support::*;
use crate::tool::Tool;
use rocketmq_sync::protocol::header::{GetConsumerListByGroupRequestHeader, QueryConsumerOffsetRequestHeader};
use rocketmq_sync::{
    Clock, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, ConsumeOrderlyContext,
    ConsumeOrderlyStatus, EmbeddedCluster, Fault, InjectedFault, MessageExt, PushConsumer, RequestCode, ResponseCode,
};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const MESSAGES: i64 = 10;
const PULLS: [RequestCode; 2] = [RequestCode::PULL_MESSAGE, RequestCode::LITE_PULL_MESSAGE];
/// How a failed message gets to the retry topic: by its offset, then as a copy.
const ELSEWHERE: [RequestCode; 2] = [RequestCode::CONSUMER_SEND_MSG_BACK, RequestCode::SEND_MESSAGE_V2];
/// The periodic store comes so late that it does not come.
const NEVER: &str = "3600000";
const SOON: &str = "20";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Concurrent,
    Ordered,
}

const BOTH: [Kind; 2] = [Kind::Concurrent, Kind::Ordered];

/// What a victim does: bodies at which its listener stays, and those that it fails; the store's period in milliseconds.
struct Plan {
    kind: Kind,
    holds: &'static str,
    fails: &'static str,
    persist: &'static str,
    threads: &'static str,
}

impl Plan {
    fn of(kind: Kind) -> Self {
        Self { kind, holds: "", fails: "", persist: SOON, threads: "4" }
    }
}

/// A victim as it last told about itself.
#[derive(Debug, Default, Clone, Copy)]
struct State {
    cached: usize,
    inside: usize,
    consumed: u64,
    failed: u64,
}

struct Stage {
    cluster: EmbeddedCluster,
    tool: Tool,
    kind: Kind,
}

impl Stage {
    fn new(kind: Kind) -> Self {
        let levels = vec!["100ms"; 18].join(" ");
        let builder = EmbeddedCluster::builder().topic("orders", 1).delay_levels(levels);
        // A killed member's locks last for a minute, which a clock of ours shortens.
        let builder = if kind == Kind::Ordered { builder.clock(Clock::manual()) } else { builder };
        let cluster = builder.start().unwrap();
        send(&cluster, "orders", 0..MESSAGES as usize);
        Self { tool: Tool::new(&cluster), cluster, kind }
    }

    /// Nothing but the periodic store tells the broker an offset: the pull behind the first one gets lost.
    fn without_offsets_in_pulls(&self) -> InjectedFault {
        let of_topic = |request: &rocketmq_sync::protocol::RemotingCommand| {
            request.ext_fields.get("topic").is_some_and(|topic| topic == "orders")
        };
        self.cluster.inject(Fault::lose().on(PULLS).when(of_topic).skip(1))
    }

    fn stored(&self) -> Option<i64> {
        let header = QueryConsumerOffsetRequestHeader {
            consumer_group: "g",
            topic: "orders",
            queue_id: 0,
            set_zero_if_not_found: Some(false),
            bname: None,
        };
        let answer = self.tool.call(RequestCode::QUERY_CONSUMER_OFFSET, &header);
        match answer.response_code() {
            ResponseCode::SUCCESS => Some(answer.ext_fields.get("offset").unwrap().parse().unwrap()),
            ResponseCode::QUERY_NOT_FOUND => None,
            other => panic!("{other:?}: {answer:?}"),
        }
    }

    fn has_members(&self) -> bool {
        let header = GetConsumerListByGroupRequestHeader { consumer_group: "g" };
        self.tool.call(RequestCode::GET_CONSUMER_LIST_BY_GROUP, &header).response_code() == ResponseCode::SUCCESS
    }

    fn victim(&self, plan: &Plan) -> Victim {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "placements::helper_process_that_is_killed", "--nocapture"])
            .env("PLACEMENT_NAME_SERVERS", self.cluster.name_servers())
            .env("PLACEMENT_ORDERED", if plan.kind == Kind::Ordered { "yes" } else { "" })
            .env("PLACEMENT_HOLDS", plan.holds)
            .env("PLACEMENT_FAILS", plan.fails)
            .env("PLACEMENT_PERSIST", plan.persist)
            .env("PLACEMENT_THREADS", plan.threads)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, told) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let Some((_, numbers)) = line.split_once("PLACEMENT ") else { continue };
                let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
                let state = State {
                    cached: numbers[0] as usize,
                    inside: numbers[1] as usize,
                    consumed: numbers[2],
                    failed: numbers[3],
                };
                if tell.send(state).is_err() {
                    return;
                }
            }
        });
        Victim { child, told, state: State::default() }
    }

    /// Kills the victim, and returns what is stored once the broker has noticed and so has handled all that it sent.
    fn kill(&self, mut victim: Victim) -> Option<i64> {
        victim.child.kill().unwrap();
        victim.child.wait().unwrap();
        wait_until("the broker to notice", || !self.has_members());
        self.cluster.clear_faults();
        if self.kind == Kind::Ordered {
            self.cluster.advance_clock(Duration::from_secs(61));
        }
        self.stored()
    }

    /// What the next member gets until the offset is at `end` and `done` holds.
    fn follow(&self, end: i64, done: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let builder = builder(&self.cluster, "g", "orders").persist_interval(Duration::from_millis(20));
        let (consumer, seen) = match self.kind {
            Kind::Concurrent => {
                let (listener, seen) = recording(accept);
                (builder.listener(listener).start().unwrap(), seen)
            }
            Kind::Ordered => {
                let (listener, seen) = crate::ordered::recording_orderly(|_, _| ConsumeOrderlyStatus::Success);
                (builder.listener_orderly(listener).start().unwrap(), seen)
            }
        };
        let mut all = Vec::new();
        wait_until("the next member to be through", || {
            all.extend(seen.try_iter());
            self.stored() == Some(end) && done(&all)
        });
        assert!(consumer.shutdown(LONG).is_clean());
        all.extend(seen.try_iter());
        if self.kind == Kind::Concurrent {
            all.sort_by_key(|one| (one.body.parse::<i64>().unwrap(), one.reconsume_times));
        }
        all
    }

    /// The next member gets just what is behind the stored offset, each message once.
    fn follow_exactly(&self, from: i64) {
        let seen = self.follow(MESSAGES, |_| true);
        let expected: Vec<_> = (from..MESSAGES).map(|number| number.to_string()).collect();
        assert_eq!(crate::ordered::bodies(&seen), expected, "{:?}", self.kind);
        assert!(seen.iter().all(|one| one.reconsume_times == 0), "{seen:?}");
    }
}

struct Victim {
    child: Child,
    told: Receiver<State>,
    state: State,
}

impl Victim {
    #[track_caller]
    fn wait_until(&mut self, what: &str, condition: impl Fn(State) -> bool) {
        wait_until(what, || {
            self.state = self.told.try_iter().last().unwrap_or(self.state);
            condition(self.state)
        });
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Fails only for a process that is gone already.
        if self.child.kill().is_ok() {
            let _reaped = self.child.wait();
        }
    }
}

/// Does nothing unless a test here starts it as a process of its own.
#[test]
fn helper_process_that_is_killed() {
    let Ok(name_servers) = std::env::var("PLACEMENT_NAME_SERVERS") else { return };
    let option = |name: &str| std::env::var(format!("PLACEMENT_{name}")).unwrap();
    let list = |name: &str| option(name).split(',').map(str::to_owned).collect::<Vec<_>>();
    let (holds, fails) = (list("HOLDS"), list("FAILS"));
    let inside = Arc::new(AtomicUsize::new(0));
    let handle = {
        let inside = inside.clone();
        move |messages: &[MessageExt]| {
            let body = String::from_utf8_lossy(messages[0].body()).into_owned();
            if holds.contains(&body) {
                inside.fetch_add(1, Ordering::SeqCst);
                wait_until("the end of the process", || false);
            }
            !fails.contains(&body)
        }
    };
    let builder = PushConsumer::builder("g")
        .name_servers(name_servers)
        .subscribe("orders", "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .persist_interval(Duration::from_millis(option("PERSIST").parse().unwrap()))
        .consume_threads(option("THREADS").parse().unwrap());
    let consumer = if option("ORDERED").is_empty() {
        let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| match handle(messages) {
            true => ConsumeConcurrentlyStatus::ConsumeSuccess,
            false => ConsumeConcurrentlyStatus::ReconsumeLater,
        };
        builder.listener(listener).start().unwrap()
    } else {
        let listener = move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| match handle(messages) {
            true => ConsumeOrderlyStatus::Success,
            false => ConsumeOrderlyStatus::SuspendCurrentQueueAMoment,
        };
        builder.listener_orderly(listener).start().unwrap()
    };
    let mut last = String::new();
    wait_until("the end of the process", || {
        let of_topic = consumer.assignment().into_iter().filter(|state| state.queue().topic() == "orders");
        let cached: usize = of_topic.map(|state| state.cached_messages()).sum();
        let (inside, consumed, failed) = (inside.load(Ordering::SeqCst), consumer.consumed(), consumer.failed());
        let now = format!("PLACEMENT {cached} {inside} {consumed} {failed}");
        if now != last {
            // Begins a line of its own, whatever the harness has written before.
            println!("\n{now}");
            last = now;
        }
        false
    });
}

#[test]
fn killed_with_messages_that_no_listener_has_seen() {
    for kind in BOTH {
        let stage = Stage::new(kind);
        let mut victim = stage.victim(&Plan { holds: "0", threads: "1", ..Plan::of(kind) });
        victim.wait_until("all to be pulled", |state| state.cached == 10 && state.inside == 1);
        assert_eq!(victim.state.consumed, 0);
        // The offset at which the queue began may be stored.
        assert_eq!(stage.kill(victim).unwrap_or(0), 0);
        stage.follow_exactly(0);
    }
}

#[test]
fn killed_in_the_listener() {
    for kind in BOTH {
        let stage = Stage::new(kind);
        let (holds, inside) = if kind == Kind::Concurrent { ("4,5,6,7", 4) } else { ("4", 1) };
        let mut victim = stage.victim(&Plan { holds, ..Plan::of(kind) });
        victim.wait_until("its listeners to be at it", |state| state.inside == inside);
        wait_until("what came before to be stored", || stage.stored() == Some(4));
        assert_eq!(stage.kill(victim), Some(4));
        stage.follow_exactly(4);
    }
}

#[test]
fn killed_after_the_listener_and_before_the_offset_is_stored() {
    for kind in BOTH {
        let stage = Stage::new(kind);
        let _lost = stage.without_offsets_in_pulls();
        let mut victim = stage.victim(&Plan { persist: NEVER, ..Plan::of(kind) });
        victim.wait_until("all to be handled", |state| state.consumed == 10);
        assert_eq!(stage.kill(victim).unwrap_or(0), 0);
        stage.follow_exactly(0);
    }
}

#[test]
fn killed_before_the_send_back_arrives() {
    let stage = Stage::new(Kind::Concurrent);
    let lost = stage.cluster.inject(Fault::lose().on(ELSEWHERE));
    let victim = stage.victim(&Plan { fails: "3", ..Plan::of(Kind::Concurrent) });
    wait_until("the send-back", || lost.hits() > 0 && stage.stored() == Some(3));
    assert_eq!(stage.kill(victim), Some(3));
    stage.follow_exactly(3);
}

#[test]
fn killed_after_the_send_back_is_stored_and_before_its_answer() {
    let stage = Stage::new(Kind::Concurrent);
    let lost = stage.cluster.inject(Fault::lose_answer().on([RequestCode::CONSUMER_SEND_MSG_BACK]).times(1));
    stage.cluster.inject(Fault::lose().on(ELSEWHERE));
    let victim = stage.victim(&Plan { fails: "3", ..Plan::of(Kind::Concurrent) });
    wait_until("the send-back", || lost.hits() == 1 && stage.stored() == Some(3));
    assert_eq!(stage.kill(victim), Some(3));
    // It is in the retry topic and, as far as the offset tells, not handled: it comes twice rather than never.
    let seen = stage.follow(MESSAGES, |all| all.iter().any(|one| one.reconsume_times == 1));
    assert_eq!(crate::ordered::bodies(&seen), ["3", "3", "4", "5", "6", "7", "8", "9"]);
    assert_eq!(seen.iter().map(|one| one.reconsume_times).collect::<Vec<_>>(), [0, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_send_back_whose_connection_breaks_after_it_was_stored_is_repeated_and_not_lost() {
    let stage = Stage::new(Kind::Concurrent);
    stage.cluster.inject(Fault::half_answer().on([RequestCode::CONSUMER_SEND_MSG_BACK]).times(1));
    let (listener, seen) = recording(|message| {
        let is_first = message.body() == b"3" && message.reconsume_times() == 0;
        if is_first { ConsumeConcurrentlyStatus::ReconsumeLater } else { ConsumeConcurrentlyStatus::ConsumeSuccess }
    });
    let builder = builder(&stage.cluster, "g", "orders").persist_interval(Duration::from_millis(20));
    let consumer = builder.listener(listener).start().unwrap();
    receive_until(&seen, "it to come again", |all| {
        let again = all.iter().any(|one| one.body == "3" && one.reconsume_times == 1);
        again && counts(all).len() == 10
    });
    wait_until("the offset", || stage.stored() == Some(MESSAGES));
    assert!(consumer.shutdown(LONG).is_clean());
}

#[test]
fn killed_while_neither_send_back_nor_copy_is_taken() {
    let stage = Stage::new(Kind::Concurrent);
    let refusal = || Fault::refuse(ResponseCode::SYSTEM_ERROR, "no");
    let back = stage.cluster.inject(refusal().on([RequestCode::CONSUMER_SEND_MSG_BACK]));
    let copy = stage.cluster.inject(refusal().on([RequestCode::SEND_MESSAGE_V2]));
    let mut victim = stage.victim(&Plan { fails: "3", ..Plan::of(Kind::Concurrent) });
    wait_until("it to be refused again", || back.hits() >= 2 && copy.hits() >= 2);
    victim.wait_until("it to have been offered again", |state| state.failed >= 2 && state.consumed == 9);
    assert_eq!(stage.kill(victim), Some(3));
    stage.follow_exactly(3);
}

#[test]
fn killed_while_the_answer_to_the_periodic_store_is_lost() {
    for kind in BOTH {
        let stage = Stage::new(kind);
        let lost = stage.cluster.inject(Fault::lose_answer().on([RequestCode::UPDATE_CONSUMER_OFFSET]));
        let mut victim = stage.victim(&Plan { holds: "5", ..Plan::of(kind) });
        victim.wait_until("its listener to be at it", |state| state.inside == 1);
        wait_until("the store", || lost.hits() > 0);
        let stored = stage.kill(victim).unwrap_or(0);
        assert!(stored <= 5, "{kind:?}: {stored}");
        stage.follow_exactly(stored);
    }
}

#[test]
fn killed_while_the_periodic_store_does_not_arrive() {
    for kind in BOTH {
        let stage = Stage::new(kind);
        let _lost = stage.without_offsets_in_pulls();
        let lost = stage.cluster.inject(Fault::lose().on([RequestCode::UPDATE_CONSUMER_OFFSET]));
        let mut victim = stage.victim(&Plan::of(kind));
        victim.wait_until("all to be handled", |state| state.consumed == 10);
        wait_until("the store", || lost.hits() > 0);
        assert_eq!(stage.kill(victim).unwrap_or(0), 0);
        stage.follow_exactly(0);
    }
}

#[test]
fn killed_right_after_the_offset_is_stored() {
    for kind in BOTH {
        let stage = Stage::new(kind);
        let victim = stage.victim(&Plan::of(kind));
        wait_until("all to be stored", || stage.stored() == Some(MESSAGES));
        assert_eq!(stage.kill(victim), Some(MESSAGES));
        send(&stage.cluster, "orders", 10..13);
        let seen = stage.follow(MESSAGES + 3, |_| true);
        assert_eq!(crate::ordered::bodies(&seen), ["10", "11", "12"], "{kind:?}");
    }
}
