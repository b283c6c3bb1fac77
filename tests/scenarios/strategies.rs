//! Two Java members and two of ours share queues by each of the six strategies, whoever comes first.

use crate::real_target::RealTarget;
use crate::support::event::Queue;
use crate::support::mqcat;
use crate::support::produce::producer;
use crate::support::troupe::Troupe;
use crate::support::{Target, unique};
use rocketmq_sync::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateByConfig, AllocateByMachineRoom, AllocateConsistentHash,
    AllocateMachineRoomNearby, AllocateMessageQueueStrategy, MachineRoomResolver, MessageQueue,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Queues on each of the two brokers; in all, four members cannot share them evenly.
const QUEUES: usize = 5;
/// Rooms by the brokers' names, as run.sh gives them.
const EAST: &str = "east-1";
const WEST: &str = "west-1";
/// The members: name, and room for the nearby strategy. The Java ones run in one process, ours in another.
const MEMBERS: [(&str, &str); 4] = [("java-1", "east"), ("java-2", "west"), ("ours-1", "west"), ("ours-2", "east")];

pub fn all(target: &RealTarget) {
    target.start_second_broker();
    let topic = unique("strategies");
    target.create_topic_on_both(&topic, QUEUES as u32);
    // The name server may hear of the second broker's share a moment later.
    let deadline = Instant::now() + Duration::from_secs(60);
    let queues: Arc<[_]> = loop {
        let mut queues = producer(target).publish_queues(&topic).unwrap_or_default();
        queues.sort();
        let brokers: BTreeSet<_> = queues.iter().map(MessageQueue::broker_name).collect();
        if (queues.len(), brokers.len()) == (2 * QUEUES, 2) {
            break queues.into();
        }
        assert!(Instant::now() < deadline, "both brokers have the topic: {queues:?}");
        std::thread::park_timeout(Duration::from_millis(100));
    };

    let mut troupe = Troupe::new();
    let java = troupe.open(target.java_members());
    let ours = troupe.open(mqcat::members());
    for case in cases() {
        for java_first in [true, false] {
            let mut order = MEMBERS;
            if !java_first {
                order.rotate_left(2);
            }
            play(target, &mut troupe, [java, ours], &case, &order, &queues);
        }
    }
    target.stop_second_broker();
}

struct Case {
    strategy: &'static str,
    /// The rooms of `MACHINE_ROOM`.
    rooms: &'static [&'static str],
    /// Whether queues of a broker are left to nobody, by the meaning of the strategy.
    partly: bool,
}

fn cases() -> Vec<Case> {
    let case = |strategy, rooms, partly| Case { strategy, rooms, partly };
    vec![
        case("AVG", &[], false),
        case("AVG_BY_CIRCLE", &[], false),
        case("CONSISTENT_HASH", &[], false),
        case("MACHINE_ROOM", &[EAST, WEST], false),
        case("MACHINE_ROOM", &[WEST], true),
        case("MACHINE_ROOM_NEARBY-AVG", &[], false),
        case("CONFIG", &[], false),
    ]
}

/// One group from its first member to its last: the shares are right with two members and with four.
fn play(
    target: &RealTarget,
    troupe: &mut Troupe,
    [java, ours]: [usize; 2],
    case: &Case,
    order: &[(&str, &str); 4],
    queues: &Arc<[MessageQueue]>,
) {
    let group = unique("strategies_group");
    for pair in order.chunks(2) {
        for (name, room) in pair {
            let mut options = format!(
                "--namesrv {} --group {group} --topic {} --from first --strategy {} --set client_ip={room}-10.0.0.1",
                target.name_servers(),
                queues[0].topic(),
                case.strategy
            );
            if !case.rooms.is_empty() {
                options += &format!(" --set rooms={}", case.rooms.join(";"));
            }
            if case.strategy == "CONFIG" {
                let list: Vec<_> = configured(name, queues)
                    .iter()
                    .map(|queue| format!("{}:{}:{}", queue.topic(), queue.broker_name(), queue.queue_id()))
                    .collect();
                options += &format!(" --set config_queues={}", list.join(","));
            }
            troupe.join(if name.starts_with("java") { java } else { ours }, name, &options);
        }
        let shares = troupe.wait_for_shares(&group, queues, |name| case.strategy_of(name, queues));
        // By configuration, two of four members hold their own part only.
        let partly = case.partly || case.strategy == "CONFIG" && shares.len() < order.len();
        let owned: Vec<_> = shares.values().flatten().collect();
        let different: BTreeSet<&Queue> = owned.iter().copied().collect();
        assert_eq!(owned.len(), different.len(), "{}: a queue has two owners: {shares:?}", case.strategy);
        assert_eq!(different.len() == queues.len(), !partly, "{}: {shares:?}", case.strategy);
    }
    for (name, _) in order {
        troupe.leave(name);
    }
}

/// Lists of different lengths that make up all queues: 4, 3, 2 and 1.
fn configured<'a>(name: &str, queues: &'a [MessageQueue]) -> &'a [MessageQueue] {
    match name {
        "java-1" => &queues[..4],
        "ours-1" => &queues[4..7],
        "java-2" => &queues[7..9],
        _ => &queues[9..],
    }
}

impl Case {
    fn strategy_of(&self, name: &str, queues: &[MessageQueue]) -> Box<dyn AllocateMessageQueueStrategy> {
        match self.strategy {
            "AVG" => Box::new(AllocateAveragely),
            "AVG_BY_CIRCLE" => Box::new(AllocateAveragelyByCircle),
            "CONSISTENT_HASH" => Box::new(AllocateConsistentHash::new()),
            "MACHINE_ROOM" => Box::new(AllocateByMachineRoom::new(self.rooms.iter().copied())),
            "CONFIG" => Box::new(AllocateByConfig::new(configured(name, queues).iter().cloned())),
            _ => Box::new(AllocateMachineRoomNearby::new(AllocateAveragely, BeforeDash)),
        }
    }
}

struct BeforeDash;

impl MachineRoomResolver for BeforeDash {
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
        self.member_room(queue.broker_name())
    }

    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
        client_id.split_once('-').map(|(room, _)| room.into())
    }
}
