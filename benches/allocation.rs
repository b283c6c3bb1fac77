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
//! `round` is a whole round of one member of 50, for 200 topics of 64 queues.

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

/// A whole round of the consumer's own rebalancer: routes and member lists are looked up (the answers of the brokers are
/// there already), shares compared with what is held, and what changes is applied to the table of held queues.
mod round {
    use super::{Bencher, Group, ItemsCount, STRATEGIES, queues};
    use bytes::Bytes;
    use divan::black_box;
    use rocketmq_sync::rebalance_round::{Diff, GroupView, HeldTable, QueueOwner, Rebalancer, Round};
    use rocketmq_sync::{Members, MessageQueue, Result};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    const TOPICS: usize = 200;
    const QUEUES: usize = 64;

    struct Cluster {
        topics: Vec<Arc<str>>,
        routes: BTreeMap<Arc<str>, Arc<[MessageQueue]>>,
        brokers: Vec<Arc<str>>,
        members: Bytes,
    }

    fn list(members: &Members) -> Bytes {
        let ids: Vec<String> = members.ids().iter().map(|id| format!("\"{id}\"")).collect();
        format!("{{\"consumerIdList\":[{}]}}", ids.join(",")).into()
    }

    impl Cluster {
        fn new(members: &Members) -> Self {
            let topics: Vec<Arc<str>> = (0..TOPICS).map(|topic| format!("topic-{topic}").into()).collect();
            let routes = topics.iter().map(|topic| (topic.clone(), queues(topic, QUEUES))).collect();
            let brokers = (0..8).map(|broker| format!("10.0.0.{broker}:10911").into()).collect();
            Self { topics, routes, brokers, members: list(members) }
        }
    }

    impl GroupView for Cluster {
        fn readable(&self, topic: &str) -> Option<Arc<[MessageQueue]>> {
            self.routes.get(topic).cloned()
        }
        fn brokers_of(&self, _: &str) -> Vec<Arc<str>> {
            self.brokers.clone()
        }
        fn member_list(&self, _: &Arc<str>) -> Result<Bytes> {
            Ok(self.members.clone())
        }
        fn not_listed(&self) {
            unreachable!("every list names us");
        }
    }

    struct Holder(HeldTable);

    impl QueueOwner for Holder {
        fn held(&self, topic: &str) -> Vec<MessageQueue> {
            self.0.owned_of(topic)
        }
        fn held_topics(&self) -> Vec<Arc<str>> {
            self.0.topics()
        }
        fn apply(&self, changes: Diff, _: bool) {
            for held in &self.0.exchange(&changes.drop, &changes.add).going {
                self.0.remove(held);
            }
        }
    }

    /// A member that has done its first round.
    struct Member {
        rebalancer: Rebalancer,
        holder: Holder,
    }

    impl Member {
        fn settled(name: &str, group: &Group, cluster: &Cluster) -> Self {
            let id = group.members.ids()[0].clone();
            let rebalancer = Rebalancer::new("group".into(), id, group.strategy(name).into());
            let mut member = Self { rebalancer, holder: Holder(HeldTable::new("group".into())) };
            assert_eq!(member.round(cluster), Round::Settled);
            member
        }

        fn round(&mut self, cluster: &Cluster) -> Round {
            self.rebalancer.round(black_box(cluster), &cluster.topics, &self.holder)
        }
    }

    #[divan::bench(args = STRATEGIES, sample_count = 200)]
    fn unchanged(bencher: Bencher<'_, '_>, name: &str) {
        let group = Group::new(QUEUES, 50);
        let cluster = Cluster::new(&group.members);
        let mut member = Member::settled(name, &group, &cluster);
        bencher.counter(ItemsCount::new(TOPICS * QUEUES)).bench_local(|| member.round(&cluster));
    }

    #[divan::bench(args = STRATEGIES, sample_count = 200, sample_size = 1)]
    fn one_joined(bencher: Bencher<'_, '_>, name: &str) {
        let group = Group::new(QUEUES, 50);
        let cluster = Cluster::new(&group.members);
        let joined = Cluster { members: list(&group.one_joined), ..Cluster::new(&group.members) };
        bencher
            .counter(ItemsCount::new(TOPICS * QUEUES))
            .with_inputs(|| Member::settled(name, &group, &cluster))
            .bench_local_refs(|member| member.round(&joined));
    }
}
