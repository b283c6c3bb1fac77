//! The command line of `mqcat assign`.

use crate::failure::Failure;
use crate::options::{number, required, text};
use crate::strategy;
use lexopt::prelude::*;
use rocketmq_sync::{
    AllocateByMachineRoom, AllocateConsistentHash, AllocateMachineRoomNearby, AllocateMessageQueueStrategy,
    MachineRoomResolver, MessageQueue,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub const HELP: &str = "\
Usage: mqcat assign --queues QUEUES --members MEMBERS [OPTIONS]

Shows which member of a group would read which queue, and how many queues would move when one more member joins and
when each one leaves. It asks no cluster.

  --queues N                  N queues of topic TopicTest on broker-a
  --queues TOPIC:BROKER:N,... so many queues of a topic on a broker; topics are shared out one by one
  --members N                 N members with made-up client ids
  --members ID,ID,...         these client ids
  --strategy NAME|all         AVG (default), AVG_BY_CIRCLE, CONSISTENT_HASH, BALANCED_STICKY, MACHINE_ROOM,
                              MACHINE_ROOM_NEARBY-AVG and so on; all: every one that fits the names
  --virtual-nodes N           nodes of each member on the ring of CONSISTENT_HASH (default: 10)
  --rooms ROOM,...            rooms of MACHINE_ROOM; a broker there is named room@broker
                              (in MACHINE_ROOM_NEARBY a room is what stands before the first dash of a name)
  --join ID                   client id of the member that joins (default: a made-up one)
  --svg FILE                  also draws a picture: a row for each situation, a colour for each member
";

/// What the command line asks for.
pub struct AssignOptions {
    pub queues: Vec<MessageQueue>,
    pub members: Vec<String>,
    pub strategies: Vec<Box<dyn AllocateMessageQueueStrategy>>,
    /// The member that joins.
    pub newcomer: String,
    pub svg: Option<PathBuf>,
}

/// More than anybody can look at.
const MOST_QUEUES: u64 = 20_000;
const MOST_MEMBERS: u64 = 2_000;

/// Reads the command line; `None` when it asked for help.
pub fn parse(parser: &mut lexopt::Parser) -> Result<Option<AssignOptions>, Failure> {
    let (mut queues, mut members, mut name, mut nodes) = (None, None, "AVG".to_owned(), None);
    let (mut rooms, mut join, mut svg) = (None, None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("queues") => queues = Some(read_queues(&text(parser, "queues")?)?),
            Long("members") => members = Some(read_members(&text(parser, "members")?)?),
            Long("strategy") => name = text(parser, "strategy")?,
            Long("virtual-nodes") => nodes = Some(number(parser, "virtual-nodes", 0)?),
            Long("rooms") => rooms = Some(text(parser, "rooms")?),
            Long("join") => join = Some(text(parser, "join")?),
            Long("svg") => svg = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    let (queues, members) = (required(queues, "queues")?, required(members, "members")?);
    let newcomer = match join {
        Some(id) if id.is_empty() => return Err(Failure::option("join", "a client id cannot be empty")),
        Some(id) if members.contains(&id) => {
            return Err(Failure::option("join", format!("{id} is a member already")));
        }
        Some(id) => id,
        None => (members.len()..).map(client_id).find(|id| !members.contains(id)).unwrap_or_default(),
    };
    let nodes = match nodes {
        None => 10,
        Some(nodes) => u32::try_from(nodes)
            .ok()
            .filter(|nodes| *nodes <= 10_000)
            .ok_or_else(|| Failure::option("virtual-nodes", format!("{nodes} is more than 10000")))?,
    };
    let settings = Settings { nodes, rooms };
    let strategies = match name.as_str() {
        "all" => settings.all(&queues, members.iter().chain([&newcomer])),
        name => vec![settings.strategy(name)?],
    };
    Ok(Some(AssignOptions { queues, members, strategies, newcomer, svg }))
}

fn read_queues(value: &str) -> Result<Vec<MessageQueue>, Failure> {
    let wrong = |why: String| Failure::option("queues", why);
    let count = |text: &str| match text.parse::<u64>() {
        Ok(count @ 1..=MOST_QUEUES) => Ok(count as i32),
        _ => Err(wrong(format!("{text:?} is not a number of queues from 1 to {MOST_QUEUES}"))),
    };
    let mut queues = BTreeSet::new();
    let parts = match value.contains(':') {
        true => value.split(',').collect(),
        false => vec![value],
    };
    for part in parts {
        let (topic, broker, number) = match part.split(':').collect::<Vec<_>>()[..] {
            [number] if !value.contains(':') => ("TopicTest", "broker-a", count(number)?),
            [topic, broker, number] if !topic.is_empty() && !broker.is_empty() => (topic, broker, count(number)?),
            _ => return Err(wrong(format!("{part:?} is neither N nor TOPIC:BROKER:N"))),
        };
        for id in 0..number {
            if !queues.insert(MessageQueue::new(topic, broker, id)) {
                return Err(wrong(format!("{topic}:{broker} is named twice")));
            }
        }
    }
    match queues.len() as u64 {
        0..=MOST_QUEUES => Ok(queues.into_iter().collect()),
        more => Err(wrong(format!("{more} queues are more than {MOST_QUEUES}"))),
    }
}

fn read_members(value: &str) -> Result<Vec<String>, Failure> {
    let wrong = |why: String| Failure::option("members", why);
    if let Ok(count) = value.parse::<u64>() {
        return match count {
            1..=MOST_MEMBERS => Ok((0..count as usize).map(client_id).collect()),
            _ => Err(wrong(format!("{count} is not a number of members from 1 to {MOST_MEMBERS}"))),
        };
    }
    let ids: Vec<String> = value.split(',').map(str::to_owned).collect();
    if ids.iter().any(String::is_empty) {
        return Err(wrong("a client id cannot be empty".to_owned()));
    }
    match ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)) {
        Some((_, twice)) => Err(wrong(format!("{twice} is named twice"))),
        None => Ok(ids),
    }
}

/// A client id as clients make them: address, process, nanoseconds.
fn client_id(n: usize) -> String {
    let nanos = (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    format!("192.168.{}.{}@{}#{nanos}", n / 250, n % 250 + 1, 1_000 + nanos % 60_000)
}

/// What strategies need besides their name.
struct Settings {
    nodes: u32,
    rooms: Option<String>,
}

impl Settings {
    fn strategy(&self, name: &str) -> Result<Box<dyn AllocateMessageQueueStrategy>, Failure> {
        if let Some(inner) = name.strip_prefix("MACHINE_ROOM_NEARBY-") {
            return Ok(Box::new(AllocateMachineRoomNearby::new(self.strategy(inner)?, BeforeDash)));
        }
        match (name, &self.rooms) {
            ("CONSISTENT_HASH", _) => Ok(Box::new(AllocateConsistentHash::with_virtual_nodes(self.nodes))),
            ("MACHINE_ROOM", Some(rooms)) => Ok(Box::new(AllocateByMachineRoom::new(rooms.split(',')))),
            ("MACHINE_ROOM", None) => Err(Failure::option("rooms", "required for MACHINE_ROOM, but missing")),
            ("CONFIG", _) => {
                Err(Failure::option("strategy", "CONFIG gives each member a list of its own: nothing to show"))
            }
            _ => strategy::named(name),
        }
    }

    /// Every strategy that can work with these names.
    fn all<'a>(
        &self,
        queues: &[MessageQueue],
        mut ids: impl Iterator<Item = &'a String>,
    ) -> Vec<Box<dyn AllocateMessageQueueStrategy>> {
        let in_rooms = ids.all(|id| BeforeDash.member_room(id).is_some())
            && queues.iter().all(|queue| BeforeDash.queue_room(queue).is_some());
        let nearby = in_rooms.then_some("MACHINE_ROOM_NEARBY-AVG");
        let by_room = self.rooms.is_some().then_some("MACHINE_ROOM");
        strategy::NAMES.into_iter().chain(by_room).chain(nearby).filter_map(|name| self.strategy(name).ok()).collect()
    }
}

/// The room of a broker or client is its name up to the first dash.
struct BeforeDash;

impl MachineRoomResolver for BeforeDash {
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
        self.member_room(queue.broker_name())
    }

    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
        client_id.split_once('-').map(|(room, _)| room.into()).filter(|room: &Cow<'_, str>| !room.is_empty())
    }
}
