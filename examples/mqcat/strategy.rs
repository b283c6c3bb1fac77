//! Allocation strategies by their wire names.

use crate::failure::Failure;
use rocketmq_sync::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateBalanced, AllocateByConfig, AllocateByMachineRoom,
    AllocateConsistentHash, AllocateMachineRoomNearby, AllocateMessageQueueStrategy, MachineRoomResolver, MessageQueue,
};
use std::borrow::Cow;

/// The names of those that need no settings.
pub const NAMES: [&str; 4] = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "BALANCED_STICKY"];

const NEARBY: &str = "MACHINE_ROOM_NEARBY-";

/// The strategy that `--strategy` names, of those that need no settings.
pub fn named(name: &str) -> Result<Box<dyn AllocateMessageQueueStrategy>, Failure> {
    match name {
        "AVG" => Ok(Box::new(AllocateAveragely)),
        "AVG_BY_CIRCLE" => Ok(Box::new(AllocateAveragelyByCircle)),
        "CONSISTENT_HASH" => Ok(Box::new(AllocateConsistentHash::new())),
        "BALANCED_STICKY" => Ok(Box::new(AllocateBalanced::new())),
        other => Err(Failure::option(
            "strategy",
            format!("{other:?} is no allocation strategy here; use one of {}", NAMES.join(", ")),
        )),
    }
}

/// What some strategies have to be told.
#[derive(Default)]
pub struct Settings {
    rooms: Option<Vec<String>>,
    queues: Option<Vec<MessageQueue>>,
}

impl Settings {
    /// Takes the value of `--set KEY=VALUE` when the key is a strategy's; whether it is.
    pub fn take(&mut self, key: &str, value: &str) -> Result<bool, Failure> {
        match key {
            "rooms" => self.rooms = Some(value.split(';').map(str::to_owned).collect()),
            "config_queues" => self.queues = Some(value.split(',').map(queue).collect::<Result<_, _>>()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The strategy that `--strategy` names, with these settings.
    pub fn strategy(&self, name: &str) -> Result<Box<dyn AllocateMessageQueueStrategy>, Failure> {
        let needs = |setting: &str| Failure::option("strategy", format!("{name} needs --set {setting}"));
        match name {
            "MACHINE_ROOM" => {
                let rooms = self.rooms.clone().ok_or_else(|| needs("rooms=ROOM[;ROOM...]"))?;
                Ok(Box::new(AllocateByMachineRoom::new(rooms)))
            }
            "CONFIG" => {
                let queues = self.queues.clone().ok_or_else(|| needs("config_queues=TOPIC:BROKER:ID[,...]"))?;
                Ok(Box::new(AllocateByConfig::new(queues)))
            }
            _ => match name.strip_prefix(NEARBY) {
                Some(inner) => Ok(Box::new(AllocateMachineRoomNearby::new(named(inner)?, BeforeDash))),
                None => named(name),
            },
        }
    }
}

fn queue(text: &str) -> Result<MessageQueue, Failure> {
    // A topic has no colon, and an id has none.
    let parts = text.rsplit_once(':').and_then(|(front, id)| Some((front.split_once(':')?, id.parse().ok()?)));
    match parts {
        Some(((topic, broker), id)) => Ok(MessageQueue::new(topic, broker, id)),
        None => Err(Failure::option("set", format!("config_queues: {text:?} is not TOPIC:BROKER:ID"))),
    }
}

/// A broker's room is its name up to the first dash, a member's room its client id up to there, so that a member is put
/// into a room with `--set client_ip=ROOM-ADDRESS`.
struct BeforeDash;

impl MachineRoomResolver for BeforeDash {
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
        self.member_room(queue.broker_name())
    }

    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
        client_id.split_once('-').map(|(room, _)| room.into())
    }
}
