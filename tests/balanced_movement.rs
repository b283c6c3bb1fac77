//! How many queues change hands under the balanced strategy, and that its shares stay what they are from release to
//! release.

use rocketmq_sync::{
    AllocateAveragely, AllocateBalanced, AllocateInput, AllocateMessageQueueStrategy, Members, MessageQueue,
};
use std::sync::Arc;

/// Numbers without pattern, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + (self.next() % (most - least + 1) as u64) as usize
    }

    /// A client id as clients make it: `address@process#nanoseconds`.
    fn client_id(&mut self) -> Arc<str> {
        let (net, host, pid) = (self.between(0, 3), self.between(1, 254), self.between(1, 65_535));
        format!("192.168.{net}.{host}@{pid}#{}", self.next() >> 14).into()
    }

    fn client_ids(&mut self, count: usize) -> Vec<Arc<str>> {
        (0..count).map(|_| self.client_id()).collect()
    }
}

fn queues(topic: &str, brokers: usize, count: usize) -> Arc<[MessageQueue]> {
    let queue = |n| MessageQueue::new(topic, format!("broker-{}", n % brokers), (n / brokers) as i32);
    let mut queues: Vec<MessageQueue> = (0..count).map(queue).collect();
    queues.sort();
    queues.into()
}

/// The id of each queue's owner.
fn owners(
    strategy: &dyn AllocateMessageQueueStrategy,
    queues: &Arc<[MessageQueue]>,
    members: &Arc<Members>,
) -> Vec<Arc<str>> {
    let mut owners: Vec<Option<Arc<str>>> = vec![None; queues.len()];
    for id in members.ids() {
        let share = AllocateInput::new("group", id, queues, members).ask(strategy).unwrap();
        (0..share.len()).for_each(|nth| owners[share.index(nth).unwrap()] = Some(id.clone()));
    }
    owners.into_iter().map(|owner| owner.expect("every queue has an owner")).collect()
}

#[derive(Default)]
struct Tally {
    moved: usize,
    least_join: usize,
    least_leave: usize,
    ratios: f64,
    changes: usize,
}

impl Tally {
    /// Counts a change between a group without and with one member, both as its joining and as its leaving.
    fn count(&mut self, without: &[Arc<str>], with: &[Arc<str>], members_with: usize, who: &str) {
        let moved = without.iter().zip(with).filter(|(a, b)| a != b).count();
        // The least a newcomer must be given is the average rounded down; the least that moves when it leaves is what
        // it held.
        let (join, leave) = (with.len() / members_with, with.iter().filter(|owner| ***owner == *who).count());
        self.moved += moved;
        self.least_join += join;
        self.least_leave += leave;
        for least in [join, leave].into_iter().filter(|least| *least > 0) {
            self.ratios += moved as f64 / least as f64;
            self.changes += 1;
        }
    }

    fn join(&self) -> f64 {
        self.moved as f64 / self.least_join as f64
    }

    fn leave(&self) -> f64 {
        self.moved as f64 / self.least_leave as f64
    }

    fn mean_of_ratios(&self) -> f64 {
        self.ratios / self.changes as f64
    }
}

/// Random groups with one member more and less.
fn changes(
    strategy: &dyn AllocateMessageQueueStrategy,
    trials: usize,
    queue_counts: (usize, usize),
    member_counts: (usize, usize),
) -> Tally {
    let mut random = Random(7);
    let mut tally = Tally::default();
    for trial in 0..trials {
        let count = random.between(queue_counts.0, queue_counts.1);
        let queues = queues(&format!("topic-{trial}"), random.between(1, 8), count);
        let many = random.between(member_counts.0, member_counts.1) + 1;
        let mut ids = random.client_ids(many);
        let with = Arc::new(Members::new(ids.clone()));
        let who = ids.swap_remove(random.between(0, ids.len() - 1));
        let without = Arc::new(Members::new(ids));
        tally.count(&owners(strategy, &queues, &without), &owners(strategy, &queues, &with), many, &who);
    }
    tally
}

#[test]
fn when_one_joins_or_leaves_at_most_twice_the_least_moves_on_average() {
    let balanced = changes(&AllocateBalanced::new(), 1_000, (8, 200), (2, 50));
    let averaging = changes(&AllocateAveragely, 1_000, (8, 200), (2, 50));
    println!(
        "queues moved over the least possible: join {:.2}, leave {:.2} (averaging: {:.2}, {:.2}); mean of single \
         changes {:.2} (averaging: {:.2})",
        balanced.join(),
        balanced.leave(),
        averaging.join(),
        averaging.leave(),
        balanced.mean_of_ratios(),
        averaging.mean_of_ratios(),
    );
    // Measured 1.70, 1.58 and 1.96; the input is fixed, so these bounds only move when the strategy does.
    assert!(balanced.join() < 1.75 && balanced.leave() < 1.65, "{} {}", balanced.join(), balanced.leave());
    assert!(balanced.mean_of_ratios() < 2.0, "{}", balanced.mean_of_ratios());
}

#[test]
fn movement_is_what_the_documentation_says_at_the_sizes_it_names() {
    for (queues, members, most) in [(180, 3, 1.15), (160, 10, 1.55), (184, 40, 2.35)] {
        let tally = changes(&AllocateBalanced::new(), 300, (queues, queues), (members, members));
        let both = 2.0 * tally.moved as f64 / (tally.least_join + tally.least_leave) as f64;
        println!("{queues} queues, {members} members: {both:.2}");
        assert!(both < most, "{queues} queues, {members} members: {both}");
    }
}

#[test]
fn with_more_members_than_queues_nobody_has_two_and_a_newcomer_moves_few() {
    let queues = queues("orders", 3, 30);
    let mut random = Random(11);
    let balanced = AllocateBalanced::new();
    let mut ids = random.client_ids(32);
    let mut before = owners(&balanced, &queues, &Arc::new(Members::new(ids.clone())));
    let mut moved = 0;
    for _ in 0..50 {
        ids.push(random.client_id());
        let members = Arc::new(Members::new(ids.clone()));
        let now = owners(&balanced, &queues, &members);
        let most = members.ids().iter().map(|id| now.iter().filter(|owner| *owner == id).count()).max();
        assert_eq!(most, Some(1));
        let changed = before.iter().zip(&now).filter(|(a, b)| a != b).count();
        assert!(changed <= 8, "{changed} of 30 queues moved");
        moved += changed;
        before = now;
    }
    println!("{:.2} queues moved for each newcomer", f64::from(moved as u32) / 50.0);
    assert!(moved <= 100, "{moved} moves in 50 changes");
}

#[test]
fn the_loss_of_a_broker_moves_few_of_the_queues_that_stay() {
    let mut random = Random(13);
    let balanced = AllocateBalanced::new();
    let (mut moved, mut stayed) = (0, 0);
    for trial in 0..100 {
        let all = queues(&format!("topic-{trial}"), 6, 96);
        let left: Arc<[MessageQueue]> = all.iter().filter(|queue| queue.broker_name() != "broker-2").cloned().collect();
        let count = random.between(4, 24);
        let members = Arc::new(Members::new(random.client_ids(count)));
        let (before, after) = (owners(&balanced, &all, &members), owners(&balanced, &left, &members));
        let kept = all.iter().zip(&before).filter(|(queue, _)| queue.broker_name() != "broker-2");
        moved += kept.zip(&after).filter(|((_, a), b)| a != b).count();
        stayed += left.len();
    }
    println!("{moved} of {stayed} queues moved when 1 of 6 brokers was lost");
    assert!(moved * 4 < stayed, "{moved} of {stayed}");
}

#[test]
fn members_that_hold_one_more_differ_from_topic_to_topic() {
    let members = Arc::new(Members::new(Random(17).client_ids(5)));
    let balanced = AllocateBalanced::new();
    let mut load = vec![0; 5];
    for topic in 0..200 {
        for owner in owners(&balanced, &queues(&format!("topic-{topic}"), 1, 6), &members) {
            load[members.index_of(&owner).unwrap()] += 1;
        }
    }
    // 1,200 queues; averaging gives the first member 400 and the others 200.
    assert!(load.iter().all(|load| (210..=270).contains(load)), "{load:?}");
}

/// Members of different releases must agree. The shares here were also worked out by a second implementation, written in
/// another language from the description in the module. A change of these shares is a change of the protocol: it needs another
/// name for the strategy.
#[test]
fn shares_are_the_same_in_every_release() {
    let queues = queues("TopicTest", 2, 10);
    let ids = ["192.168.0.1@1001#1", "192.168.0.2@1002#2", "192.168.0.3@1003#3"].map(Arc::from);
    let members = Arc::new(Members::new(ids.to_vec()));
    let places = |queues: &Arc<[MessageQueue]>, members: &Arc<Members>| -> Vec<usize> {
        let owners = owners(&AllocateBalanced::new(), queues, members);
        owners.iter().map(|owner| members.index_of(owner).unwrap()).collect()
    };
    assert_eq!(places(&queues, &members), [0, 2, 2, 0, 2, 2, 1, 1, 0, 1]);

    let queues = self::queues("订单", 7, 500);
    let members = Arc::new(Members::new(Random(23).client_ids(60)));
    let digest = places(&queues, &members)
        .iter()
        .fold(0u64, |sum, place| sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(*place as u64 + 1));
    assert_eq!(digest, 18_283_954_085_194_710_364);
}
