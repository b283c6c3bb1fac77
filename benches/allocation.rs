//! What queue allocation costs: time, queues per second and allocations.
//!
//! `one_call` is what a client does for one topic, and compares with one `allocate` call of other clients: the member's
//! place is looked up, and its share described. `as_vec` also turns the share into a vector of queues, which other
//! clients return. As with them the lists are ready and in order beforehand, and another member asks each time. Lists
//! are the same at each call, so what a strategy keeps for them is there: a consumer that rebalances without a change.
//!
//! `changed` is the first call after one member has joined, `first` the first call of all (nothing kept; consistent
//! hashing then hashes every member and queue). `whole_group` is one call for each member.
//!
//! `round` is the allocation of one member for 200 topics of 64 queues with 50 members; the round around it (asking for
//! routes and members, comparing with what is held) is not in it.

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};
use rocketmq_sync::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateBalanced, AllocateByConfig, AllocateByMachineRoom,
    AllocateConsistentHash, AllocateInput, AllocateMachineRoomNearby, AllocateMessageQueueStrategy,
    MachineRoomResolver, Members, MessageQueue, Share,
};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const STRATEGIES: [&str; 7] = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "BALANCED", "ROOM", "NEARBY_AVG", "CONFIG"];
const SIZES: [(usize, usize); 3] = [(16, 4), (1_000, 100), (10_000, 1_000)];

/// A strategy at a size.
struct Case {
    strategy: &'static str,
    queues: usize,
    members: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<15} {:>6} x {:<5}", self.strategy, self.queues, self.members)
    }
}

fn cases_of(strategies: &[&'static str]) -> Vec<Case> {
    let sizes = |strategy: &&'static str| SIZES.map(|(queues, members)| Case { strategy, queues, members });
    strategies.iter().flat_map(sizes).collect()
}

fn cases() -> Vec<Case> {
    cases_of(&STRATEGIES)
}

/// The strategies that keep what they work out for a membership.
fn keeping_cases() -> Vec<Case> {
    cases_of(&["CONSISTENT_HASH", "BALANCED"])
}

/// Rooms as the names here have them: `room@broker`, and by the last digit of an id.
struct Rooms;

impl MachineRoomResolver for Rooms {
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
        queue.broker_name().split_once('@').map(|(room, _)| room.into())
    }

    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
        let digit = client_id.bytes().last()? - b'0';
        Some(["r0", "r1"][usize::from(digit % 2)].into())
    }
}

/// Queues and members as a cluster of eight brokers in two rooms would have them.
struct Group {
    queues: Arc<[MessageQueue]>,
    members: Arc<Members>,
    /// The same with one more.
    one_joined: Arc<Members>,
}

fn queues(topic: &str, count: usize) -> Arc<[MessageQueue]> {
    let topic: Arc<str> = topic.into();
    let brokers: Vec<Arc<str>> = (0..8).map(|broker| format!("r{}@broker-{broker}", broker % 2).into()).collect();
    let mut queues: Vec<MessageQueue> =
        (0..count).map(|n| MessageQueue::new(topic.clone(), brokers[n % 8].clone(), (n / 8) as i32)).collect();
    queues.sort();
    queues.into()
}

fn client_id(n: usize) -> Arc<str> {
    let spread = (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("10.{}.{}.{}@{}#{}", n / 256 % 4, n % 256, spread % 251, spread >> 49, spread % 900_000_000_000_000).into()
}

impl Group {
    fn new(queue_count: usize, member_count: usize) -> Self {
        Self {
            queues: queues("TopicTest", queue_count),
            members: Arc::new(Members::new((0..member_count).map(client_id).collect())),
            one_joined: Arc::new(Members::new((0..=member_count).map(client_id).collect())),
        }
    }

    fn strategy(&self, name: &str) -> Box<dyn AllocateMessageQueueStrategy> {
        match name {
            "AVG" => Box::new(AllocateAveragely),
            "AVG_BY_CIRCLE" => Box::new(AllocateAveragelyByCircle),
            "CONSISTENT_HASH" => Box::new(AllocateConsistentHash::new()),
            "BALANCED" => Box::new(AllocateBalanced::new()),
            "ROOM" => Box::new(AllocateByMachineRoom::new(["r0"])),
            "NEARBY_AVG" => Box::new(AllocateMachineRoomNearby::new(AllocateAveragely, Rooms)),
            _ => Box::new(AllocateByConfig::new(self.queues[..self.queues.len() / 4].iter().cloned())),
        }
    }
}

fn call(
    strategy: &dyn AllocateMessageQueueStrategy,
    queues: &Arc<[MessageQueue]>,
    members: &Arc<Members>,
    id: &str,
) -> Share {
    strategy.allocate(&AllocateInput::new("group", id, queues, members)).unwrap()
}

/// Measures calls, each for the next member.
fn each_in_turn<T>(bencher: Bencher<'_, '_>, case: &Case, then: impl Fn(Share, &[MessageQueue]) -> T) {
    let group = Group::new(case.queues, case.members);
    let strategy = group.strategy(case.strategy);
    let ids = group.members.ids();
    // What is kept for these lists is worked out before the clock starts.
    call(&*strategy, &group.queues, &group.members, &ids[0]);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(case.queues)).bench_local(|| {
        turn = if turn + 1 == ids.len() { 0 } else { turn + 1 };
        then(call(&*strategy, black_box(&group.queues), black_box(&group.members), &ids[turn]), &group.queues)
    });
}

#[divan::bench(args = cases(), sample_size = 1_000, sample_count = 1_000)]
fn one_call(bencher: Bencher<'_, '_>, case: &Case) {
    each_in_turn(bencher, case, |share, _| share);
}

#[divan::bench(args = cases_of(&["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "BALANCED"]), sample_size = 1_000, sample_count = 1_000)]
fn as_vec(bencher: Bencher<'_, '_>, case: &Case) {
    each_in_turn(bencher, case, |share, queues| share.to_vec(queues));
}

#[divan::bench(args = cases(), sample_count = 500)]
fn whole_group(bencher: Bencher<'_, '_>, case: &Case) {
    let group = Group::new(case.queues, case.members);
    let strategy = group.strategy(case.strategy);
    call(&*strategy, &group.queues, &group.members, &group.members.ids()[0]);
    bencher.counter(ItemsCount::new(case.queues * case.members)).bench_local(|| {
        for id in group.members.ids() {
            black_box(call(&*strategy, &group.queues, &group.members, id));
        }
    });
}

#[divan::bench(args = keeping_cases(), sample_count = 200, sample_size = 1)]
fn changed(bencher: Bencher<'_, '_>, case: &Case) {
    let group = Group::new(case.queues, case.members);
    let id = &group.members.ids()[0];
    bencher
        .counter(ItemsCount::new(case.queues))
        .with_inputs(|| {
            let strategy = group.strategy(case.strategy);
            call(&*strategy, &group.queues, &group.members, id);
            strategy
        })
        .bench_local_refs(|strategy| call(&**strategy, &group.queues, &group.one_joined, id));
}

#[divan::bench(args = keeping_cases(), sample_count = 200, sample_size = 1)]
fn first(bencher: Bencher<'_, '_>, case: &Case) {
    let group = Group::new(case.queues, case.members);
    let id = &group.members.ids()[0];
    bencher
        .counter(ItemsCount::new(case.queues))
        .with_inputs(|| group.strategy(case.strategy))
        .bench_local_refs(|strategy| call(&**strategy, &group.queues, &group.members, id));
}

/// Making the list of members from the ids as a broker sends them: once for each change, in no figure above.
#[divan::bench(args = [4, 100, 1_000])]
fn members(bencher: Bencher<'_, '_>, count: usize) {
    let ids: Vec<Arc<str>> = (0..count).map(client_id).collect();
    bencher.with_inputs(|| ids.clone()).bench_local_values(Members::new);
}

mod round {
    use super::{Bencher, Group, ItemsCount, STRATEGIES, call, queues};
    use rocketmq_sync::{Members, MessageQueue, Share};
    use std::sync::Arc;

    const TOPICS: usize = 200;

    fn topics() -> Vec<Arc<[MessageQueue]>> {
        (0..TOPICS).map(|topic| queues(&format!("topic-{topic}"), 64)).collect()
    }

    fn all(
        strategy: &dyn rocketmq_sync::AllocateMessageQueueStrategy,
        topics: &[Arc<[MessageQueue]>],
        members: &Arc<Members>,
    ) -> usize {
        topics
            .iter()
            .map(|queues| call(strategy, queues, members, &members.ids()[0]))
            .map(|share: Share| share.len())
            .sum()
    }

    #[divan::bench(args = STRATEGIES, sample_count = 60)]
    fn unchanged(bencher: Bencher<'_, '_>, name: &str) {
        let (group, topics) = (Group::new(64, 50), topics());
        let strategy = group.strategy(name);
        bencher.counter(ItemsCount::new(TOPICS * 64)).bench_local(|| all(&*strategy, &topics, &group.members));
    }

    #[divan::bench(args = STRATEGIES, sample_count = 200, sample_size = 1)]
    fn one_joined(bencher: Bencher<'_, '_>, name: &str) {
        let (group, topics) = (Group::new(64, 50), topics());
        bencher
            .counter(ItemsCount::new(TOPICS * 64))
            .with_inputs(|| {
                let strategy = group.strategy(name);
                all(&*strategy, &topics, &group.members);
                strategy
            })
            .bench_local_refs(|strategy| all(&**strategy, &topics, &group.one_joined));
    }
}
