//! A deterministic simulation of a group: an injected clock, scripted faults, seeded schedules.
//!
//! What decides is the crate's own: `Rebalancer`, the strategies, `HeldTable`, `HeldQueue`, `ProcessQueue`, what to
//! store, what a pull carries, where to go on after a correction, when a round is due. What is simulated is whatever
//! would wait or be far away: threads, the network, brokers (members by connection, stored offsets, logs that are only
//! counters), notices, listeners.
//!
//! | File | What is in it |
//! |---|---|
//! | `plan.rs` | a seed: sizes, timings, the script |
//! | `world.rs` | the clock, and what is due when |
//! | `script.rs` | the script as it happens |
//! | `network.rs` | connections, requests and answers |
//! | `broker.rs` | brokers and queues |
//! | `member.rs` | membership: joining, heartbeats, leaving |
//! | `rounds.rs` | rounds, taking over and giving up |
//! | `work.rs` | locating, pulling, listening, storing |
//! | `check.rs` | what must hold, always and at rest |
//!
//! A seed that fails prints one line that replays it; a replay tells what happens, step by step.

mod broker;
mod check;
mod member;
mod network;
mod plan;
mod rounds;
mod script;
mod work;
mod world;

use crate::consumer::allocate::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateBalanced, AllocateConsistentHash, AllocateMachineRoomNearby,
    AllocateMessageQueueStrategy, MachineRoomResolver,
};
use crate::message::MessageQueue;
use check::Counts;
use plan::{Class, Plan};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

type Millis = u64;

const SCHEDULES: u64 = 10_000;
/// Runs only this seed, and tells what happens.
const SEED: &str = "SIMULATION_SEED";
/// Runs so many schedules instead of [`SCHEDULES`].
const HOW_MANY: &str = "SIMULATION_SCHEDULES";

/// A strategy that shares out all queues among any members; `number` picks one.
fn strategy(number: usize) -> Arc<dyn AllocateMessageQueueStrategy> {
    match number % 6 {
        0 | 1 => Arc::new(AllocateAveragely),
        2 => Arc::new(AllocateAveragelyByCircle),
        3 => Arc::new(AllocateConsistentHash::new()),
        4 => Arc::new(AllocateBalanced::new()),
        _ => Arc::new(AllocateMachineRoomNearby::new(AllocateAveragely, TwoRooms)),
    }
}

/// Brokers and members with odd numbers are in one room, the others in another.
struct TwoRooms;

impl MachineRoomResolver for TwoRooms {
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
        room(queue.broker_name())
    }

    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
        room(client_id)
    }
}

fn room(name: &str) -> Option<Cow<'static, str>> {
    let last = name.bytes().next_back()?;
    Some(Cow::Borrowed(if last % 2 == 1 { "odd" } else { "even" }))
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => panic!("{name} must be a number, not '{text}'"),
    }
}

/// Runs one schedule; the error is one line, and says how to run it again.
fn run(seed: u64, traced: bool) -> Result<Counts, String> {
    let result = catch_unwind(AssertUnwindSafe(|| World::new(seed, traced).run())).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panicked: {}", text.or(panic.downcast_ref().copied()).unwrap_or("?")))
    });
    result.map_err(|what| format!("{SEED}={seed} cargo test --lib simulation # {}", what.replace('\n', " ")))
}

#[test]
fn a_group_comes_to_rest_and_skips_nothing_whatever_happens() {
    if let Some(seed) = variable(SEED) {
        let counts = run(seed, true).unwrap_or_else(|failure| panic!("{failure}"));
        eprintln!("seed {seed}: {counts:?}");
        return;
    }
    let schedules = variable(HOW_MANY).unwrap_or(SCHEDULES);
    let next = AtomicU64::new(0);
    let worker = || {
        let mut counts = BTreeMap::<Class, Counts>::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= schedules {
                return Ok(counts);
            }
            match run(seed, false) {
                Ok(more) => counts.entry(Plan::of(seed).class).or_default().add(&more),
                Err(failure) => {
                    next.store(schedules, Ordering::Relaxed);
                    return Err(failure);
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut classes = BTreeMap::<Class, Counts>::new();
    for result in results {
        for (class, counts) in result.unwrap_or_else(|failure| panic!("{failure}")) {
            classes.entry(class).or_default().add(&counts);
        }
    }
    let mut total = Counts::default();
    for (class, counts) in &classes {
        println!("{}", summary(&format!("{class:?}"), counts));
        total.add(counts);
    }
    println!("{}", summary("all", &total));
}

fn summary(name: &str, counts: &Counts) -> String {
    let Counts { schedules, changes, moves, messages, duplicates } = *counts;
    let each = duplicates as f64 / changes.max(1) as f64;
    format!(
        "simulation, {name}: {schedules} schedules, {changes} changes, {moves} ownerships, {messages} messages, \
         {duplicates} duplicates, {each:.2} per change"
    )
}

#[test]
fn a_seed_is_the_same_schedule_each_time() {
    for seed in 0..20 {
        assert_eq!(run(seed, false), run(seed, false));
    }
}
