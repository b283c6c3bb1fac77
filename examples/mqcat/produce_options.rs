//! The command line of `mqcat produce`.

use crate::failure::Failure;
use crate::options::{name_servers, number, pair, parsed, required, text};
use crate::output::Output;
use lexopt::prelude::*;

pub const HELP: &str = "\
Usage: mqcat produce --topic NAME [OPTIONS]

Sends messages and prints where each one went.

  --namesrv ADDR[;ADDR...]    name servers (default: the environment variable NAMESRV_ADDR)
  --topic NAME                topic; required
  --count N                   how many (default: 1; with --stdin: no limit)
  --size BYTES                size of a body: its sequence number (from 0), a space, then filler (default: 100)
  --body TEXT                 this body for each message
  --stdin                     a line of standard input a message
  --tags TEXT                 tag
  --keys PATTERN              key; {} stands for the sequence number
  --property K=V              property, repeatable
  --delay-level N             deliver after the broker's delay level N
  --queue ID                  send to the queues with this number only
  --sharding-key PATTERN      messages with the same key go to the same queue; {} stands for the sequence number
  --oneway                    do not wait for the broker's answer
  --batch N                   send N messages in one request
  --rate N                    messages a second at most
  --json                      one JSON object a line instead of a line a person can read
";

/// What the command line asks for.
pub struct ProduceOptions {
    pub name_servers: String,
    pub topic: String,
    /// How many messages at most.
    pub count: u64,
    pub body: Body,
    pub tags: Option<String>,
    pub keys: Option<String>,
    pub properties: Vec<(String, String)>,
    pub delay_level: Option<u32>,
    pub target: Target,
    pub oneway: bool,
    pub batch: usize,
    pub rate: Option<f64>,
    pub output: Output,
}

/// Where bodies come from.
pub enum Body {
    /// The sequence number, filled up to so many bytes.
    Numbered(usize),
    Text(String),
    Stdin,
}

/// Which queue a message goes to.
pub enum Target {
    Any,
    Queue(i32),
    /// The queue that the hash of this pattern picks.
    ShardingKey(String),
}

/// Reads the command line; `None` when it asked for help.
pub fn parse(parser: &mut lexopt::Parser) -> Result<Option<ProduceOptions>, Failure> {
    let (mut namesrv, mut topic, mut count) = (None, None, None);
    let (mut size, mut body, mut stdin) = (None, None, false);
    let (mut tags, mut keys, mut properties, mut delay_level) = (None, None, Vec::new(), None);
    let (mut queue, mut sharding_key) = (None, None);
    let (mut oneway, mut batch, mut rate, mut output) = (false, 1, None, Output::Text);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("namesrv") => namesrv = Some(text(parser, "namesrv")?),
            Long("topic") => topic = Some(text(parser, "topic")?),
            Long("count") => count = Some(number(parser, "count", 1)?),
            Long("size") => size = Some(parsed(parser, "size")?),
            Long("body") => body = Some(text(parser, "body")?),
            Long("stdin") => stdin = true,
            Long("tags") => tags = Some(text(parser, "tags")?),
            Long("keys") => keys = Some(text(parser, "keys")?),
            Long("property") => properties.push(pair(parser, "property")?),
            Long("delay-level") => delay_level = Some(parsed(parser, "delay-level")?),
            Long("queue") => queue = Some(queue_id(parser)?),
            Long("sharding-key") => sharding_key = Some(text(parser, "sharding-key")?),
            Long("oneway") => oneway = true,
            Long("batch") => batch = parsed(parser, "batch")?,
            Long("rate") => rate = Some(per_second(parser)?),
            Long("json") => output = Output::Json,
            other => return Err(other.unexpected().into()),
        }
    }
    if batch == 0 {
        return Err(Failure::option("batch", "0 is less than 1"));
    }
    let target = match (queue, sharding_key) {
        (None, None) => Target::Any,
        (Some(queue), None) => Target::Queue(queue),
        (None, Some(key)) => Target::ShardingKey(key),
        (Some(_), Some(_)) => return Err(Failure::option("sharding-key", "does not go with --queue")),
    };
    if oneway && (batch > 1 || !matches!(target, Target::Any)) {
        return Err(Failure::option("oneway", "does not go with --batch, --queue or --sharding-key"));
    }
    if batch > 1 && !matches!(target, Target::Any) {
        return Err(Failure::option("batch", "does not go with --queue or --sharding-key"));
    }
    let body = match (size, body, stdin) {
        (None, None, true) => Body::Stdin,
        (None, Some(text), false) => Body::Text(text),
        (size, None, false) => Body::Numbered(size.unwrap_or(100)),
        (Some(_), Some(_), _) => return Err(Failure::option("size", "does not go with --body")),
        (_, _, true) => return Err(Failure::option("stdin", "does not go with --size or --body")),
    };
    let topic = required(topic, "topic")?;
    let name_servers = name_servers(namesrv)?;
    let count = count.unwrap_or(if matches!(body, Body::Stdin) { u64::MAX } else { 1 });
    Ok(Some(ProduceOptions {
        name_servers,
        topic,
        count,
        body,
        tags,
        keys,
        properties,
        delay_level,
        target,
        oneway,
        batch,
        rate,
        output,
    }))
}

fn queue_id(parser: &mut lexopt::Parser) -> Result<i32, Failure> {
    let id = parsed(parser, "queue")?;
    if id < 0 {
        return Err(Failure::option("queue", format!("{id} is less than 0")));
    }
    Ok(id)
}

fn per_second(parser: &mut lexopt::Parser) -> Result<f64, Failure> {
    let rate: f64 = parsed(parser, "rate")?;
    if !rate.is_finite() || rate <= 0.0 {
        return Err(Failure::option("rate", format!("{rate} is not a positive number")));
    }
    Ok(rate)
}
