//! The allocation strategies against what the Java classes answer, call by call.
//!
//! `tests/vectors/allocation.jsonl` was made by running the classes of Apache RocketMQ at commit `8fc57f1468d1` (83
//! commits after 5.3.3, Java 17) over made-up inputs. With the environment variable `ALLOCATION_VECTORS` set, the file
//! of that name in the folder it names is read instead.
//!
//! Lines marked `upstream_quirk` are those whose shares, taken together, leave out or double a queue. What we do with
//! each cause is stated in [`decide`]: the same as Java for all of them, since members of one group must agree.

mod vectors;

use rocketmq_sync::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateByConfig, AllocateByMachineRoom, AllocateConsistentHash,
    AllocateInput, AllocateMachineRoomNearby, AllocateMessageQueueStrategy, ErrorKind, MachineRoomResolver, Members,
    MessageQueue, Result, Share,
};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vectors::Triple;

#[derive(Deserialize)]
struct Line {
    strategy: String,
    group: String,
    current: String,
    cids: Vec<Arc<str>>,
    mqs: Vec<Triple>,
    extra: Extra,
    sorted: bool,
    result: Option<Vec<usize>>,
    results: Option<Vec<Vec<usize>>>,
    result_mqs: Option<Vec<Triple>>,
    error: Option<String>,
    quirk: Option<Quirk>,
}

#[derive(Deserialize, Default)]
struct Extra {
    virtual_nodes: Option<i64>,
    consumer_idcs: Option<Vec<String>>,
    inner: Option<String>,
    resolver: Option<String>,
    config: Option<Vec<Triple>>,
}

#[derive(Deserialize)]
struct Quirk {
    dropped: usize,
    doubled: usize,
    why: BTreeSet<String>,
}

/// The resolver of the vectors.
struct BeforeFirstDash;

impl MachineRoomResolver for BeforeFirstDash {
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
        self.member_room(queue.broker_name())
    }

    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
        Some(client_id.split_once('-').map_or("", |(room, _)| room).into())
    }
}

type Strategy = Arc<dyn AllocateMessageQueueStrategy>;

/// The strategy of a line, or why it cannot be built.
fn strategy(name: &str, extra: &Extra) -> std::result::Result<Strategy, String> {
    Ok(match name {
        "AVG" => Arc::new(AllocateAveragely),
        "AVG_BY_CIRCLE" => Arc::new(AllocateAveragelyByCircle),
        "CONSISTENT_HASH" => {
            let nodes = extra.virtual_nodes.expect("virtual_nodes");
            let nodes = u32::try_from(nodes).map_err(|_| format!("{nodes} virtual nodes are not a number of nodes"))?;
            Arc::new(AllocateConsistentHash::with_virtual_nodes(nodes))
        }
        "MACHINE_ROOM" => Arc::new(AllocateByMachineRoom::new(extra.consumer_idcs.iter().flatten())),
        "CONFIG" => Arc::new(AllocateByConfig::new(extra.config.iter().flatten().map(vectors::queue))),
        nearby if nearby.starts_with("MACHINE_ROOM_NEARBY-") => {
            assert_eq!(extra.resolver.as_deref(), Some("before-first-dash"));
            let inner = strategy(extra.inner.as_deref().expect("inner"), extra)?;
            Arc::new(AllocateMachineRoomNearby::new(inner, BeforeFirstDash))
        }
        other => panic!("strategy {other:?} is not known here"),
    })
}

/// What our message must say where Java's says this.
fn gist(error: &str) -> String {
    match error {
        "currentCID is empty" => "the own client id is empty".into(),
        "mqAll is null or mqAll empty" => "the list of queues is empty".into(),
        "cidAll is null or cidAll empty" => "the list of members is empty".into(),
        _ => match (error.strip_prefix("Machine room is null for consumer id "), queue_in(error)) {
            (Some(id), _) => format!("no machine room is known for client id {id},"),
            (_, Some(queue)) => format!("no machine room is known for queue {queue},"),
            _ => panic!("error {error:?} is not known here"),
        },
    }
}

fn queue_in(error: &str) -> Option<MessageQueue> {
    let text = error.strip_prefix("Machine room is null for mq MessageQueue [topic=")?.strip_suffix(']')?;
    let (topic, rest) = text.split_once(", brokerName=")?;
    let (broker, id) = rest.split_once(", queueId=")?;
    Some(MessageQueue::new(topic, broker, id.parse().ok()?))
}

/// What is done about a cause for which Java's shares leave out or double queues. All are kept: a member that decided
/// otherwise than the Java members of its group would read what another one reads.
fn decide(why: &str) -> &'static str {
    match why {
        // The place of an id is its first one, so the share of the later place is nobody's. The consumer warns.
        "duplicate-client-ids" => "same as Java",
        // A route names no queue twice; entries are told apart by index.
        "duplicate-queues" => "same as Java",
        // What MACHINE_ROOM is for.
        "broker-name-not-eligible" => "same as Java",
        // Asked for with 0 virtual nodes.
        "empty-ring" => "same as Java",
        other => panic!("no decision was taken about {other:?}"),
    }
}

struct Case {
    number: usize,
    queues: Arc<[MessageQueue]>,
    members: Arc<Members>,
    strategy: Strategy,
}

impl Case {
    fn ask(&self, line: &Line, id: &str) -> Result<Share> {
        AllocateInput::new(&line.group, id, &self.queues, &self.members).ask(&*self.strategy)
    }

    #[track_caller]
    fn indexes(&self, line: &Line, id: &str) -> Vec<usize> {
        let share = self.ask(line, id).unwrap_or_else(|error| panic!("line {}, {id}: {error}", self.number));
        let indexes: Vec<usize> = (0..share.len()).map(|nth| share.index(nth).unwrap()).collect();
        let queues: Vec<&MessageQueue> = indexes.iter().map(|index| &self.queues[*index]).collect();
        assert!(share.iter(&self.queues).eq(queues.iter().copied()), "line {}", self.number);
        assert!(share.to_vec(&self.queues).iter().eq(queues), "line {}", self.number);
        indexes
    }
}

#[test]
fn every_call_returns_what_java_returns() {
    let mut calls = 0;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in vectors::read::<Line>("allocation.jsonl") {
        *counts.entry(line.strategy.clone()).or_default() += 1;
        let strategy = match (strategy(&line.strategy, &line.extra), &line.error) {
            (Ok(strategy), _) => strategy,
            (Err(ours), Some(theirs)) => {
                // Ours does not compile: the number of nodes is unsigned.
                assert!(theirs.contains("illegal virtualNodeCnt"), "line {number}: {ours}, {theirs}");
                calls += 1;
                continue;
            }
            (Err(ours), None) => panic!("line {number}: {ours}"),
        };
        assert_eq!(strategy.name(), line.strategy, "line {number}");
        let case = Case {
            number,
            queues: line.mqs.iter().map(vectors::queue).collect(),
            members: Arc::new(Members::in_order(line.cids.clone())),
            strategy,
        };
        if line.sorted {
            assert!(case.queues.is_sorted(), "line {number}: the order of queues is not Java's");
            assert_eq!(*case.members, Members::new(line.cids.clone()), "line {number}: the order of ids is not Java's");
        }
        if let Some(error) = &line.error {
            let ours = case.ask(&line, &line.current).expect_err(error);
            assert_eq!(ours.kind(), ErrorKind::Config, "line {number}");
            assert!(ours.to_string().contains(&gist(error)), "line {number}: {ours} does not say {error}");
        }
        if let Some(result) = &line.result {
            assert_eq!(case.indexes(&line, &line.current), *result, "line {number}, {}", line.current);
        }
        if let Some(result) = &line.result_mqs {
            let expected: Vec<MessageQueue> = result.iter().map(vectors::queue).collect();
            let ours = case.ask(&line, &line.current).unwrap();
            assert_eq!(ours.to_vec(&case.queues), expected, "line {number}");
            assert!(ours.iter(&case.queues).eq(&expected), "line {number}");
        }
        calls += 1;
        if let Some(results) = &line.results {
            assert_eq!(results.len(), line.cids.len());
            for (id, result) in line.cids.iter().zip(results) {
                assert_eq!(case.indexes(&line, id), *result, "line {number}, {id}");
            }
            calls += results.len();
            check_quirk(number, &line, results);
        }
    }
    // The repository's own copy must be whole; another folder may hold fewer or other lines.
    if !vectors::elsewhere() {
        let expected = [
            ("AVG", 239),
            ("AVG_BY_CIRCLE", 240),
            ("CONFIG", 9),
            ("CONSISTENT_HASH", 295),
            ("MACHINE_ROOM", 213),
            ("MACHINE_ROOM_NEARBY-AVG", 58),
            ("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", 57),
            ("MACHINE_ROOM_NEARBY-CONSISTENT_HASH", 47),
        ];
        assert!(counts.iter().map(|(name, count)| (name.as_str(), *count)).eq(expected), "{counts:?}");
    }
    println!("{} lines, {calls} calls", counts.values().sum::<usize>());
    assert!(calls > 0);
}

/// The shares of a line are a partition of the queues, unless the line says otherwise, and then for a reason that we
/// have decided about.
fn check_quirk(number: usize, line: &Line, results: &[Vec<usize>]) {
    let shares: BTreeMap<&Arc<str>, &Vec<usize>> = line.cids.iter().zip(results).collect();
    let mut owners = vec![0usize; line.mqs.len()];
    shares.values().for_each(|share| share.iter().for_each(|index| owners[*index] += 1));
    let dropped = owners.iter().filter(|owners| **owners == 0).count();
    let doubled = owners.iter().filter(|owners| **owners > 1).count();
    match &line.quirk {
        Some(quirk) => {
            assert!(!quirk.why.is_empty(), "line {number}: a quirk without a cause");
            assert!(quirk.why.iter().all(|why| decide(why) == "same as Java"), "line {number}");
            // Queues told apart only by index count as one in the file's figures.
            if !quirk.why.contains("duplicate-queues") {
                assert_eq!((dropped, doubled), (quirk.dropped, quirk.doubled), "line {number}");
            }
        }
        None => assert_eq!((dropped, doubled), (0, 0), "line {number}: a quirk that the file does not mark"),
    }
}
