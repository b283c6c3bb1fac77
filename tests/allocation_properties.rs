//! What the allocation strategies promise for any input: shares that are disjoint, complete and even, the same in
//! whatever order queues and members arrive, and, for the balanced one, how little moves.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use rocketmq_sync::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateBalanced, AllocateByMachineRoom, AllocateConsistentHash,
    AllocateInput, AllocateMachineRoomNearby, AllocateMessageQueueStrategy, MachineRoomResolver, Members, MessageQueue,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Allocation = Box<dyn AllocateMessageQueueStrategy>;
type Queues = Arc<[MessageQueue]>;

/// Brokers and ids name their room in front of the first `@`, or are in a room for all others.
struct BeforeAt;

impl MachineRoomResolver for BeforeAt {
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
        self.member_room(queue.broker_name())
    }

    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
        client_id.split_once('@').map(|(room, _)| room.into())
    }
}

fn nearby(inner: impl AllocateMessageQueueStrategy + 'static) -> Allocation {
    Box::new(AllocateMachineRoomNearby::new(inner, BeforeAt).with_fallback_room("elsewhere"))
}

/// Those that give every queue to somebody, and whether members hold the same number of queues, give or take one.
fn complete() -> Vec<(Allocation, bool)> {
    vec![
        (Box::new(AllocateAveragely), true),
        (Box::new(AllocateAveragelyByCircle), true),
        (Box::new(AllocateBalanced::new()), true),
        (Box::new(AllocateConsistentHash::new()), false),
        (Box::new(AllocateConsistentHash::with_virtual_nodes(1)), false),
        (Box::new(AllocateConsistentHash::new().hashed_by(|key| -(key.len() as i64 % 7))), false),
        (nearby(AllocateAveragely), false),
        (nearby(AllocateBalanced::new()), false),
        (nearby(AllocateConsistentHash::new()), false),
    ]
}

/// Those of Java and ours together, also the one that leaves queues out.
fn all() -> Vec<Allocation> {
    let mut all: Vec<Allocation> = complete().into_iter().map(|(strategy, _)| strategy).collect();
    all.push(Box::new(AllocateByMachineRoom::new(["r1", "r2"])));
    all
}

fn sorted(mut queues: Vec<MessageQueue>) -> Queues {
    queues.sort();
    queues.into()
}

fn members(ids: &[String]) -> Arc<Members> {
    Arc::new(Members::new(ids.iter().map(|id| Arc::from(id.as_str())).collect()))
}

fn share(
    strategy: &dyn AllocateMessageQueueStrategy,
    queues: &Queues,
    members: &Arc<Members>,
    id: &str,
) -> Vec<MessageQueue> {
    AllocateInput::new("group", id, queues, members).ask(strategy).unwrap().to_vec(queues)
}

/// Who reads which queue. Panics when two members read one; an id that is listed twice is one member.
fn owners(
    strategy: &dyn AllocateMessageQueueStrategy,
    queues: &Queues,
    members: &Arc<Members>,
) -> BTreeMap<MessageQueue, Arc<str>> {
    let mut owners = BTreeMap::new();
    for id in members.ids().iter().collect::<BTreeSet<_>>() {
        for queue in share(strategy, queues, members, id) {
            assert!(queues.contains(&queue), "{} made {queue} up", strategy.name());
            let earlier = owners.insert(queue, id.clone());
            assert!(earlier.is_none(), "{} gave a queue to {id} and to {earlier:?}", strategy.name());
        }
    }
    owners
}

fn loads(owners: &BTreeMap<MessageQueue, Arc<str>>, members: &Members) -> Vec<usize> {
    let mut loads: BTreeMap<&str, usize> = members.ids().iter().map(|id| (&**id, 0)).collect();
    owners.values().for_each(|id| *loads.get_mut(&**id).unwrap() += 1);
    loads.into_values().collect()
}

fn is_even(loads: &[usize]) -> bool {
    loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1
}

/// Ids as clients make them, with and without a room, and ids that nobody expects.
fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u8..4, 0u16..600, 1u32..70_000, 0u64..1 << 50).prop_map(|(net, host, pid, nanos)| format!(
            "10.{net}.{}.{}@{pid}#{nanos}",
            host / 256,
            host % 256
        )),
        (0u8..4, 0u32..400).prop_map(|(room, n)| format!("r{room}@{n}")),
        "[a-c]{1,3}",
        "\\PC{1,8}",
    ]
}

fn any_queues() -> impl Strategy<Value = Vec<MessageQueue>> {
    let broker = prop_oneof!["broker-[a-d]", "r[0-3]@b[0-2]", "\\PC{1,4}"];
    btree_set((broker, 0i32..24), 1..120)
        .prop_map(|set| set.into_iter().map(|(broker, id)| MessageQueue::new("TopicTest", broker, id)).collect())
}

fn any_ids(most: usize) -> impl Strategy<Value = Vec<String>> {
    btree_set(any_id(), 1..most).prop_map(|ids| ids.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_are_disjoint_complete_and_even(queues in any_queues(), ids in any_ids(40)) {
        let (queues, members) = (sorted(queues), members(&ids));
        for (strategy, even) in complete() {
            let owners = owners(&*strategy, &queues, &members);
            prop_assert_eq!(owners.len(), queues.len(), "{} left queues out", strategy.name());
            let loads = loads(&owners, &members);
            prop_assert!(!even || is_even(&loads), "{}: {:?}", strategy.name(), loads);
        }
    }

    #[test]
    fn the_order_of_arrival_does_not_matter(
        (queues, reordered) in any_queues().prop_flat_map(|queues| (Just(queues.clone()), Just(queues).prop_shuffle())),
        (ids, other_ids) in any_ids(30).prop_flat_map(|ids| (Just(ids.clone()), Just(ids).prop_shuffle())),
    ) {
        let (queues, reordered) = (sorted(queues), sorted(reordered));
        let (members, other_members) = (members(&ids), members(&other_ids));
        for strategy in all() {
            prop_assert_eq!(
                owners(&*strategy, &queues, &members),
                owners(&*strategy, &reordered, &other_members),
                "{}", strategy.name()
            );
        }
    }

    #[test]
    fn only_queues_of_the_chosen_rooms_are_shared_and_evenly(queues in any_queues(), ids in any_ids(20)) {
        let (queues, members) = (sorted(queues), members(&ids));
        let owners = owners(&AllocateByMachineRoom::new(["r1", "r2"]), &queues, &members);
        let chosen = queues.iter().filter(|queue| matches!(queue.broker_name().split_once('@'), Some(("r1" | "r2", _))));
        prop_assert!(owners.keys().eq(chosen));
        prop_assert!(is_even(&loads(&owners, &members)));
    }

    #[test]
    fn queues_stay_in_their_room_while_it_has_members(queues in any_queues(), ids in any_ids(20)) {
        let (queues, members) = (sorted(queues), members(&ids));
        let room = |text: &str| match BeforeAt.member_room(text) {
            Some(room) if !room.is_empty() => room.into_owned(),
            _ => "elsewhere".to_owned(),
        };
        for (queue, owner) in owners(&*nearby(AllocateAveragely), &queues, &members) {
            let home = room(queue.broker_name());
            prop_assert!(room(&owner) == home || ids.iter().all(|id| room(id) != home), "{} to {}", queue, owner);
        }
    }

    /// What a strategy keeps between calls changes no result.
    #[test]
    fn a_strategy_used_for_long_agrees_with_a_new_one(
        topics in vec(any_queues(), 1..3),
        ids in any_ids(30),
        changes in vec((any::<prop::sample::Index>(), any_id()), 1..6),
    ) {
        let topics: Vec<Queues> = topics.into_iter().map(sorted).collect();
        let old = all();
        let mut ids = ids;
        for (at, newcomer) in changes {
            let members = members(&ids);
            for queues in &topics {
                for (old, new) in old.iter().zip(all()) {
                    prop_assert_eq!(owners(old, queues, &members), owners(&*new, queues, &members), "{}", old.name());
                }
            }
            let at = at.index(ids.len());
            // One goes, another comes; or one is listed twice, if the newcomer is there already.
            if ids.contains(&newcomer) { ids.push(newcomer) } else { ids[at] = newcomer }
        }
    }

    #[test]
    fn an_id_listed_twice_is_one_member_to_the_balanced_strategy(queues in any_queues(), ids in any_ids(12)) {
        let (queues, once) = (sorted(queues), members(&ids));
        let twice = members(&[ids.clone(), ids[ids.len() / 2..].to_vec()].concat());
        let balanced = AllocateBalanced::new();
        for id in &ids {
            prop_assert_eq!(share(&balanced, &queues, &once, id), share(&balanced, &queues, &twice, id));
        }
    }
}

#[test]
fn who_is_not_listed_gets_nothing_and_no_error() {
    let (queues, members) =
        (sorted((0..8).map(|id| MessageQueue::new("T", "r1@b", id)).collect()), members(&["a".into()]));
    for strategy in all() {
        assert!(share(&*strategy, &queues, &members, "b").is_empty(), "{}", strategy.name());
    }
}
