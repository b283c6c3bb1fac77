//! What a seed stands for: the size of the group, its timings, and the script of what happens to it.

use super::Millis;

/// SplitMix64: small, and the same everywhere.
#[derive(Clone)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What may go wrong in a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Nothing: members join and leave in order, listeners are faster than the grace time.
    Polite,
    /// Members also die, seen at once or late.
    Crashes,
    /// Notices are also lost, late or doubled.
    Notices,
    /// Brokers also restart, connections break and look-ups fail.
    Brokers,
    /// All of it, and wrong lists, slow answers and listeners, failed send-backs, resets, trims and changing routes.
    Everything,
}

impl Class {
    pub(super) const ALL: [Self; 5] = [Self::Polite, Self::Crashes, Self::Notices, Self::Brokers, Self::Everything];
}

/// How a broker's answer about the members is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrongList {
    Fails,
    Empty,
    Garbage,
    /// The asking member is not in it.
    WithoutUs,
    /// Some of the others are not in it.
    Partial,
    /// A member that does not exist is in it.
    Ghost,
    /// Everybody is in it twice.
    Doubled,
    /// One from a while ago.
    Stale,
}

const WRONG_LISTS: [WrongList; 8] = [
    WrongList::Fails,
    WrongList::Empty,
    WrongList::Garbage,
    WrongList::WithoutUs,
    WrongList::Partial,
    WrongList::Ghost,
    WrongList::Doubled,
    WrongList::Stale,
];

/// One step of a script. `who`, `broker` and `queue` are taken modulo what is there when it happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    Join,
    Leave {
        who: u64,
        timeout: Millis,
    },
    /// The brokers notice after so long.
    Crash {
        who: u64,
        noticed: Millis,
    },
    Restart {
        broker: u64,
        down: Millis,
        forgets: bool,
    },
    Cut {
        who: u64,
        broker: u64,
        lasts: Millis,
    },
    WrongList {
        broker: u64,
        how: WrongList,
        lasts: Millis,
    },
    /// An operator resets all queues of a topic, each to this part of what is stored.
    Reset {
        topic: u64,
        part: u64,
    },
    Trim {
        queue: u64,
        part: u64,
    },
    Grow {
        topic: u64,
        broker: u64,
    },
    Produce {
        queue: u64,
        step: u64,
        queues: u64,
        messages: u64,
    },
}

/// Faults that are on for all of a schedule but its calm times, in percent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Odds {
    pub(super) notice_lost: u64,
    pub(super) notice_late: u64,
    pub(super) notice_doubled: u64,
    pub(super) answer_slow: u64,
    pub(super) send_back_fails: u64,
    pub(super) route_missing: u64,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) class: Class,
    pub(super) brokers: usize,
    /// Queues on each broker, for each topic.
    pub(super) topics: Vec<usize>,
    pub(super) members: u64,
    pub(super) most_members: usize,
    /// Which strategy; see `strategy`.
    pub(super) strategy: usize,
    pub(super) from_end: bool,
    /// Some messages do not match the subscription.
    pub(super) filtered: bool,
    pub(super) latency: (u64, u64),
    pub(super) listener: (u64, u64),
    pub(super) workers: usize,
    pub(super) batch: usize,
    pub(super) pull_batch: i64,
    pub(super) cached: usize,
    pub(super) grace: Millis,
    pub(super) takeover: Millis,
    pub(super) odds: Odds,
    /// Each is followed by calm, until the group is at rest.
    pub(super) phases: Vec<Vec<(Millis, Act)>>,
    pub(super) phase: Millis,
    /// Whether the group is watched for another while when it is at rest.
    pub(super) lingers: bool,
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let class = Class::ALL[rng.below(5) as usize];
        let brokers = rng.between((1, 4));
        // Most schedules are small: what goes wrong in a large group goes wrong in a small one, only sooner.
        let (most_members, queues, acts, produced) = match rng.below(1000) {
            0..3 => (50, rng.between((100, 200)), rng.between((6, 16)), rng.between((10, 20))),
            3..30 => (15, rng.between((8, 60)), rng.between((4, 10)), rng.between((6, 16))),
            _ => (5, rng.between((1, 12)), rng.between((2, 7)), rng.between((3, 8))),
        };
        let topics = rng.between((1, 2));
        let each = (queues / (brokers * topics)).max(1) as usize;
        let everything = class == Class::Everything;
        let slow = everything && rng.chance(40);
        let (listener, batch) = match class {
            Class::Polite => ((1, 5), 1),
            _ if slow => ((50, 4000), rng.between((1, 8)) as usize),
            _ => ((1, 200), rng.between((1, 4)) as usize),
        };
        let bad_notices = matches!(class, Class::Notices | Class::Everything);
        let percent = |is_on: bool, percent: u64| if is_on { percent } else { 0 };
        let odds = Odds {
            notice_lost: percent(bad_notices, rng.between((0, 60))),
            notice_late: percent(bad_notices, rng.between((0, 60))),
            notice_doubled: percent(bad_notices, rng.between((0, 30))),
            answer_slow: percent(everything, rng.between((0, 10))),
            send_back_fails: percent(everything && rng.chance(30), 10),
            route_missing: percent(everything, 15),
        };
        let phase = rng.between((10_000, 40_000));
        let phases = (0..if rng.chance(25) { 2 } else { 1 })
            .map(|_| script(&mut rng, class, acts, produced, phase, queues))
            .collect();
        Self {
            class,
            brokers: brokers as usize,
            topics: vec![each; topics as usize],
            members: rng.between((1, most_members)),
            most_members: most_members as usize,
            strategy: rng.below(1 << 20) as usize,
            from_end: rng.chance(25),
            filtered: rng.chance(25),
            latency: (1, rng.between((2, 20))),
            listener,
            workers: rng.between((1, 6)) as usize,
            batch,
            pull_batch: rng.between((1, 32)) as i64,
            cached: rng.between((4, 100)) as usize,
            grace: 2000,
            takeover: 500,
            odds,
            phases,
            phase,
            lingers: rng.chance(10),
        }
    }
}

fn script(rng: &mut Rng, class: Class, acts: u64, produced: u64, phase: Millis, queues: u64) -> Vec<(Millis, Act)> {
    let mut script = Vec::new();
    for _ in 0..acts {
        let at = rng.below(phase);
        script.push((at, act(rng, class)));
        // Resets, trims and restarts while queues move are where the races are.
        if class == Class::Everything && rng.chance(30) {
            script.push(((at + rng.below(3000)).min(phase - 1), act(rng, class)));
        }
    }
    for _ in 0..produced {
        let at = rng.below(phase);
        let (queue, step) = (rng.next(), rng.next());
        let act =
            Act::Produce { queue, step, queues: rng.between((1, 1 + queues / 4)), messages: rng.between((1, 12)) };
        script.push((at, act));
    }
    script
}

fn act(rng: &mut Rng, class: Class) -> Act {
    let dice = rng.below(100);
    let leave = Act::Leave { who: rng.next(), timeout: rng.between((1000, 8000)) };
    let noticed = if rng.chance(50) { 0 } else { rng.below(30_000) };
    let crash = Act::Crash { who: rng.next(), noticed };
    let restart = Act::Restart {
        broker: rng.next(),
        down: rng.between((100, 30_000)),
        forgets: class == Class::Everything && rng.chance(30),
    };
    let cut = Act::Cut { who: rng.next(), broker: rng.next(), lasts: rng.below(15_000) };
    let how = WRONG_LISTS[rng.below(WRONG_LISTS.len() as u64) as usize];
    let wrong = |how| Act::WrongList { broker: dice, how, lasts: 500 + dice * 200 };
    match (class, dice) {
        (Class::Polite, 0..50) | (Class::Crashes | Class::Notices, 0..40) => Act::Join,
        (Class::Polite, _) | (Class::Crashes, 40..60) | (Class::Notices, 40..75) => leave,
        (Class::Crashes | Class::Notices, _) => crash,
        (Class::Brokers, 0..20) => Act::Join,
        (Class::Brokers, 20..35) => leave,
        (Class::Brokers, 35..60) => restart,
        (Class::Brokers, 60..85) => cut,
        (Class::Brokers, _) => wrong(WrongList::Fails),
        (Class::Everything, 0..20) => Act::Join,
        (Class::Everything, 20..30) => leave,
        (Class::Everything, 30..40) => crash,
        (Class::Everything, 40..50) => restart,
        (Class::Everything, 50..60) => cut,
        (Class::Everything, 60..80) => wrong(how),
        (Class::Everything, 80..90) => Act::Reset { topic: rng.next(), part: rng.below(101) },
        (Class::Everything, 90..95) => Act::Trim { queue: rng.next(), part: rng.below(101) },
        (Class::Everything, _) => Act::Grow { topic: rng.next(), broker: rng.next() },
    }
}
