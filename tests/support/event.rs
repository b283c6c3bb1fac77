//! The JSON lines that mqcat and the Java peer write.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue {
    pub topic: String,
    pub broker: String,
    pub id: i64,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.topic, self.broker, self.id)
    }
}

/// A message as a consumer process reports it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub queue: Queue,
    pub offset: i64,
    pub unique_key: String,
    pub tags: Option<String>,
    pub keys: Option<String>,
    pub reconsume_times: i64,
    /// Milliseconds since the epoch on the broker's clock, which on this machine is everybody's.
    pub stored: i64,
    pub properties: BTreeMap<String, String>,
    pub body_len: u64,
    pub body_sha256: String,
    /// Whether the listener asked for a retry.
    pub failed: bool,
    /// When the listener decided, in microseconds on the clock of this machine.
    pub at: u64,
}

/// A message as its producer reports it: what every consumer of it has to find.
#[derive(Clone, Debug)]
pub struct Sent {
    pub unique_key: String,
    pub tags: Option<String>,
    pub keys: Option<String>,
    pub properties: BTreeMap<String, String>,
    pub body_len: u64,
    pub body_sha256: String,
}

#[derive(Clone, Debug)]
pub struct Stopped {
    pub consumed: u64,
    /// Only ours reports it.
    pub uncommitted: Option<u64>,
    pub committed: BTreeMap<String, i64>,
}

#[derive(Debug)]
pub enum Event {
    Started {
        client_id: String,
    },
    Message(Box<Seen>),
    Assigned(Vec<Queue>),
    /// Revoked or lost: no longer held.
    Released(Vec<Queue>),
    Problem(String),
    Stopped(Stopped),
    /// A line of standard output that is no event, and why.
    Unreadable(String),
    /// A line of standard error.
    Log(String),
    /// Standard output has ended.
    Ended,
}

impl Event {
    pub fn parse(line: &str) -> Result<Event, String> {
        Self::parse_with_member(line).map(|(_, event)| event)
    }

    /// With the name of the member, where the process has several.
    pub fn parse_with_member(line: &str) -> Result<(Option<String>, Event), String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("{error} in line: {line}"))?;
        let event = read(&value).ok_or_else(|| format!("a member is missing or has another type in line: {line}"))?;
        Ok((text(&value["member"]), event))
    }
}

fn read(value: &Value) -> Option<Event> {
    Some(match value["event"].as_str()? {
        "started" => Event::Started { client_id: text(&value["client_id"])? },
        "message" => Event::Message(Box::new(seen(value)?)),
        "assigned" => Event::Assigned(queues(value)?),
        "revoked" | "lost" => Event::Released(queues(value)?),
        "problem" => Event::Problem(format!("{}: {}", value["kind"].as_str()?, value["text"].as_str()?)),
        "stopped" => Event::Stopped(Stopped {
            consumed: value["consumed"].as_u64()?,
            uncommitted: value["uncommitted"].as_u64(),
            committed: match value["committed"].as_object() {
                Some(offsets) => {
                    offsets.iter().map(|(queue, at)| Some((queue.clone(), at.as_i64()?))).collect::<Option<_>>()?
                }
                None => BTreeMap::new(),
            },
        }),
        _ => return None,
    })
}

fn seen(value: &Value) -> Option<Seen> {
    Some(Seen {
        queue: Queue { topic: text(&value["topic"])?, broker: text(&value["broker"])?, id: value["queue"].as_i64()? },
        offset: value["offset"].as_i64()?,
        unique_key: text(&value["unique_key"])?,
        tags: text(&value["tags"]),
        keys: text(&value["keys"]),
        reconsume_times: value["reconsume_times"].as_i64()?,
        stored: value["stored"].as_i64()?,
        properties: properties(value)?,
        body_len: value["body_len"].as_u64()?,
        body_sha256: text(&value["body_sha256"])?,
        failed: value["result"].as_str()? == "retry",
        at: value["at"].as_u64()?,
    })
}

pub fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub fn properties(value: &Value) -> Option<BTreeMap<String, String>> {
    value["properties"].as_object()?.iter().map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

fn queues(value: &Value) -> Option<Vec<Queue>> {
    let one = |queue: &Value| Some(Queue { topic: text(&queue[0])?, broker: text(&queue[1])?, id: queue[2].as_i64()? });
    value["queues"].as_array()?.iter().map(one).collect()
}
