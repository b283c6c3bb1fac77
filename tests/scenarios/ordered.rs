//! Order while members come and go. What is checked is exact: of each queue, or key, a message is first finished only after
//! the one before it was. Messages may come again, in order, but nothing is ever ahead.

use crate::support::crew::Crew;
use crate::support::event::Seen;
use crate::support::mqcat::Consume;
use crate::support::produce::producer;
use crate::support::{Target, unique};
use crossbeam::channel::{Sender, bounded};
use rocketmq_sync::{Message, SelectByHash};
use std::collections::BTreeMap;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const QUEUES: u32 = 4;
const KEYS: usize = 24;
/// So many messages more are seen in each shape of the group.
const STEP: usize = 300;

/// Two processes, a third joins, one after the other leaves.
pub fn by_queue(target: &dyn Target) {
    let stage = Stage::new(target, "ordered", "orderly");
    let consume = stage.consume.clone();
    stage.play(|stage| {
        let first = stage.join("first", consume.ours());
        let second = stage.join("second", consume.ours());
        let third = stage.join("third", consume.ours());
        stage.leave(first);
        stage.leave(third);
        stage.join("fourth", consume.ours());
        stage.leave(second);
    });
}

/// The same with order by key; messages of different keys share queues.
pub fn by_key(target: &dyn Target) {
    let stage = Stage::new(target, "by_key", "by-key");
    let consume = stage.consume.clone();
    stage.play(|stage| {
        let first = stage.join("first", consume.ours());
        stage.join("second", consume.ours());
        stage.leave(first);
        stage.join("third", consume.ours());
    });
}

/// A topic with steady messages, and the members of a group that consume it in order.
pub struct Stage {
    topic: String,
    pub consume: Consume,
    pub crew: Crew,
    is_by_key: bool,
    /// The places of those that are there.
    pub here: Vec<usize>,
    load: Sender<()>,
    sending: JoinHandle<usize>,
}

impl Stage {
    pub fn new(target: &dyn Target, name: &str, mode: &str) -> Self {
        let (topic, group) = (unique(name), unique(&format!("{name}_group")));
        target.create_topic(&topic, QUEUES);
        let consume =
            Consume::new(target, &group, &topic).with("--mode", mode).with("--threads", 8).with("--work-ms", 1);
        let (load, stop) = bounded(1);
        let producer = producer(target);
        let to = topic.clone();
        let sending = thread::spawn(move || {
            let mut sent = 0;
            while stop.recv_timeout(Duration::from_millis(2)) == Err(crossbeam::channel::RecvTimeoutError::Timeout) {
                let key = format!("key-{}", sent % KEYS);
                let message = Message::new(&*to, sent.to_string())
                    .with_property("__SHARDINGKEY", &*key)
                    .with_property("seq", (sent / KEYS).to_string());
                producer
                    .send_with_selector(&message, SelectByHash(&key))
                    .unwrap_or_else(|error| panic!("message {sent}: {error}"));
                sent += 1;
            }
            sent
        });
        Self { topic, consume, crew: Crew::new(), is_by_key: mode == "by-key", here: Vec::new(), load, sending }
    }

    pub fn join(&mut self, name: &str, command: Command) -> usize {
        let place = self.crew.join(name, command);
        self.here.push(place);
        self.settle();
        place
    }

    pub fn leave(&mut self, place: usize) {
        self.crew.stop(place);
        self.here.retain(|here| *here != place);
        self.settle();
    }

    /// Every queue has its owner and all are at work.
    pub fn settle(&mut self) {
        let here = self.here.clone();
        self.crew.wait_for_shares(&here, &self.topic, QUEUES as usize);
        let before = self.crew.distinct();
        self.crew.wait_for_messages(before + STEP);
        let counts: Vec<_> = here.iter().map(|place| self.crew.members[*place].seen.len()).collect();
        self.crew.wait_for("all members to be at work", |crew| {
            here.iter().zip(&counts).all(|(place, count)| crew.members[*place].seen.len() > *count)
        });
    }

    pub fn play(mut self, script: impl FnOnce(&mut Self)) {
        script(&mut self);
        drop(self.load);
        let sent = self.sending.join().unwrap_or_else(|_| panic!("the producer failed, see above"));
        self.crew.wait_for_messages(sent);
        for place in self.here {
            self.crew.stop(place);
        }
        let finished = self.crew.seen().filter(|one| !one.failed && one.queue.topic == self.topic);
        let lanes = match self.is_by_key {
            true => check(finished, |one| (one.properties["__SHARDINGKEY"].clone(), number(&one.properties["seq"]))),
            false => check(finished, |one| (one.queue.to_string(), one.offset)),
        };
        assert_eq!(lanes.values().sum::<i64>() as usize, sent);
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Goes through all deliveries in the order in which they were decided; gives how far each lane came.
fn check<'a>(seen: impl Iterator<Item = &'a Seen>, lane_of: impl Fn(&Seen) -> (String, i64)) -> BTreeMap<String, i64> {
    let mut all: Vec<_> = seen.collect();
    all.sort_by_key(|one| one.at);
    let mut lanes = BTreeMap::new();
    for one in all {
        let (lane, number) = lane_of(one);
        let next = lanes.entry(lane.clone()).or_insert(0);
        assert!(number <= *next, "{lane}: {number} was finished while {next} was not: {one:?}");
        if number == *next {
            *next += 1;
        }
    }
    lanes
}
