//! The command line of `mqcat consume`.

use crate::failure::Failure;
use crate::moment;
use crate::options::{millis, name_servers, number, pair, required, seconds, text};
use crate::output::Output;
use crate::strategy::Settings;
use lexopt::prelude::*;
use rocketmq_sync::{ConsumeFromWhere, MessageSelector};
use std::time::Duration;

pub const HELP: &str = "\
Usage: mqcat consume --group NAME --topic NAME[=EXPR] [OPTIONS]

Joins a consumer group and prints each message; a message counts as consumed once its line is written.

  --namesrv ADDR[;ADDR...]    name servers (default: the environment variable NAMESRV_ADDR)
  --group NAME                consumer group; required
  --topic NAME[=EXPR]         subscription, repeatable; EXPR is a tag expression such as 'a || b' (default: *),
                              or sql: and an SQL92 condition over properties
  --from WHERE                where a group without a stored offset begins: first, last (default), or
                              timestamp:YYYYMMDDHHMMSS (UTC)
  --mode MODE                 concurrent (default); orderly: each queue in order; by-key: each sharding key in order. In
                              the latter two a failed message comes again before those behind it, and the
                              dead-letter topic is for --max-reconsume only
  --model MODEL               clustering (default) or broadcasting; the latter keeps offsets in files under
                              --set offset_store_dir=FOLDER (default: .rocketmq_offsets in the home directory)
  --strategy NAME             allocation strategy: AVG (default), AVG_BY_CIRCLE, CONSISTENT_HASH, BALANCED_STICKY;
                              MACHINE_ROOM with --set rooms=ROOM[;ROOM...]; CONFIG with
                              --set config_queues=TOPIC:BROKER:ID[,...]; MACHINE_ROOM_NEARBY-INNER, where the room of a
                              broker is its name up to the first dash, and that of a member its client id up to there,
                              which --set client_ip=ROOM-ADDRESS begins
  --threads N                 threads that run the listener
  --batch N                   messages a listener call gets at most
  --client-id-suffix TEXT     last part of the client id
  --instance NAME             instance name, the part of the client id behind the address
  --fail-every N              ask for a retry at the first delivery of every Nth message
  --always-fail               ask for a retry at every delivery
  --max-reconsume N           deliveries after the first before a message goes to the dead-letter topic
  --work-ms N                 time that each message takes (default: 0)
  --count N                   stop after N messages; those that other threads have by then are finished too
  --duration SECONDS          stop after so many seconds
  --rebalance-ms N, --heartbeat-ms N, --route-ms N, --persist-ms N
                              intervals
  --set KEY=VALUE             any other item of the consumer by its name, repeatable
  --json                      one JSON object a line instead of a line a person can read
";

/// Options that are items of the library's builder under another name. A number of milliseconds goes as it is: that is
/// how the library reads a duration without a unit.
const ITEMS: [(&str, &str); 10] = [
    ("threads", "consume_threads"),
    ("batch", "consume_batch_size"),
    ("client-id-suffix", "unit_name"),
    ("instance", "instance_name"),
    ("max-reconsume", "max_reconsume_times"),
    ("model", "message_model"),
    ("rebalance-ms", "rebalance_interval"),
    ("heartbeat-ms", "heartbeat_interval"),
    ("route-ms", "route_interval"),
    ("persist-ms", "persist_interval"),
];

/// As the library has it.
const DEFAULT_THREADS: u64 = 20;

/// What the command line asks for.
pub struct ConsumeOptions {
    pub name_servers: String,
    pub group: String,
    pub subscriptions: Vec<(String, MessageSelector)>,
    pub from: ConsumeFromWhere,
    pub mode: Mode,
    pub strategy: String,
    pub settings: Settings,
    /// Items of the builder: the option that asks for it, the item's name and value.
    pub items: Vec<(&'static str, String, String)>,
    pub failing: Failing,
    pub work: Duration,
    pub count: Option<u64>,
    pub duration: Option<Duration>,
    pub output: Output,
}

/// What must wait for what.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Concurrent,
    /// The messages of a queue.
    Orderly,
    /// Those with one sharding key.
    ByKey,
}

/// Which messages fail on purpose.
#[derive(Clone, Copy)]
pub enum Failing {
    Never,
    /// Every Nth message, at its first delivery.
    Every(u64),
    Always,
}

/// Reads the command line; `None` when it asked for help.
pub fn parse(parser: &mut lexopt::Parser) -> Result<Option<ConsumeOptions>, Failure> {
    let (mut namesrv, mut group, mut subscriptions) = (None, None, Vec::new());
    let (mut from, mut strategy, mut items) = (ConsumeFromWhere::LastOffset, "AVG".to_owned(), Vec::new());
    let (mut fail_every, mut always_fail, mut settings) = (None, false, Settings::default());
    let mut mode = Mode::Concurrent;
    let (mut count, mut duration, mut work, mut output) = (None, None, Duration::ZERO, Output::Text);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("namesrv") => namesrv = Some(text(parser, "namesrv")?),
            Long("group") => group = Some(text(parser, "group")?),
            Long("topic") => subscriptions.push(subscription(&text(parser, "topic")?)?),
            Long("from") => from = where_to_begin(&text(parser, "from")?)?,
            Long("mode") => mode = mode_named(&text(parser, "mode")?)?,
            Long("strategy") => strategy = text(parser, "strategy")?,
            Long("set") => {
                let (key, value) = pair(parser, "set")?;
                if !settings.take(&key, &value)? {
                    items.push(("set", key, value));
                }
            }
            Long("fail-every") => fail_every = Some(number(parser, "fail-every", 1)?),
            Long("always-fail") => always_fail = true,
            Long("work-ms") => work = millis(parser, "work-ms")?,
            Long("count") => count = Some(number(parser, "count", 1)?),
            Long("duration") => duration = Some(seconds(parser, "duration")?),
            Long("json") => output = Output::Json,
            Long(name) => match ITEMS.iter().find(|(option, _)| *option == name) {
                Some(&(option, item)) => items.push((option, item.to_owned(), text(parser, option)?)),
                None => return Err(arg.unexpected().into()),
            },
            other => return Err(other.unexpected().into()),
        }
    }
    let failing = match (always_fail, fail_every) {
        (true, None) => Failing::Always,
        (true, Some(_)) => return Err(Failure::option("always-fail", "does not go with --fail-every")),
        (false, Some(every)) => Failing::Every(every),
        (false, None) => Failing::Never,
    };
    if let Some(count) = count
        && !items.iter().any(|(option, ..)| *option == "threads")
    {
        // More threads would only take messages that nobody asked for.
        items.push(("count", "consume_threads".into(), count.min(DEFAULT_THREADS).to_string()));
    }
    let group = required(group, "group")?;
    if subscriptions.is_empty() {
        return Err(Failure::option("topic", "required, but missing"));
    }
    let name_servers = name_servers(namesrv)?;
    Ok(Some(ConsumeOptions {
        name_servers,
        group,
        subscriptions,
        from,
        mode,
        strategy,
        settings,
        items,
        failing,
        work,
        count,
        duration,
        output,
    }))
}

fn subscription(value: &str) -> Result<(String, MessageSelector), Failure> {
    let (topic, expression) = value.split_once('=').unwrap_or((value, "*"));
    if topic.is_empty() {
        return Err(Failure::option("topic", format!("{value:?} names no topic")));
    }
    let selector = expression.strip_prefix("sql:").map_or_else(|| expression.into(), MessageSelector::sql92);
    Ok((topic.to_owned(), selector))
}

fn where_to_begin(value: &str) -> Result<ConsumeFromWhere, Failure> {
    match value {
        "first" => Ok(ConsumeFromWhere::FirstOffset),
        "last" => Ok(ConsumeFromWhere::LastOffset),
        other => {
            other.strip_prefix("timestamp:").and_then(moment::parse).map(ConsumeFromWhere::Timestamp).ok_or_else(|| {
                Failure::option("from", format!("{value:?} is not first, last or timestamp:YYYYMMDDHHMMSS"))
            })
        }
    }
}

fn mode_named(value: &str) -> Result<Mode, Failure> {
    match value {
        "concurrent" => Ok(Mode::Concurrent),
        "orderly" => Ok(Mode::Orderly),
        "by-key" => Ok(Mode::ByKey),
        other => Err(Failure::option("mode", format!("{other:?} is not concurrent, orderly or by-key"))),
    }
}
