//! The brokers of the simulation: who is there by connection, stored offsets, logs that are only counters.

use super::Millis;
use super::plan::WrongList;
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use crate::protocol::body::GetConsumerListByGroupResponseBody;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A broker keeps its offsets on disk this often; one that forgets loses what came since.
const FLUSH: Millis = 5000;
const REMEMBERED_LISTS: usize = 4;

pub(super) struct Broker {
    pub(super) name: Arc<str>,
    pub(super) address: Arc<str>,
    pub(super) is_up: bool,
    /// The name servers have taken it out of the routes.
    pub(super) is_unlisted: bool,
    /// Open connections, and whose they are.
    pub(super) connections: BTreeMap<u64, usize>,
    /// Connections that sent a heartbeat.
    pub(super) table: BTreeMap<u64, Arc<str>>,
    pub(super) wrong: Option<(WrongList, Millis)>,
    body: Option<Bytes>,
    past: VecDeque<Bytes>,
}

impl Broker {
    pub(super) fn new(number: usize) -> Self {
        Self {
            name: Arc::from(format!("broker-{number}")),
            address: Arc::from(format!("10.1.0.{number}:10911")),
            is_up: true,
            is_unlisted: false,
            connections: BTreeMap::new(),
            table: BTreeMap::new(),
            wrong: None,
            body: None,
            past: VecDeque::new(),
        }
    }

    /// The table changed: the list is made anew when it is asked for.
    pub(super) fn changed(&mut self) {
        if let Some(body) = self.body.take() {
            self.past.push_back(body);
            if self.past.len() > REMEMBERED_LISTS {
                self.past.pop_front();
            }
        }
    }

    /// Makes the answer to a question for the members ready.
    pub(super) fn refresh(&mut self) {
        if self.body.is_none() {
            self.body = Some(encode(self.table.values().cloned().collect()));
        }
    }

    /// What `us` hears when it asks for the members. `dice` decides where something is to be decided.
    pub(super) fn list(&self, us: &str, now: Millis, dice: u64) -> Result<Bytes> {
        let ids = || self.table.values().cloned();
        let wrong = self.wrong.filter(|(_, until)| now < *until).map(|(how, _)| how);
        match wrong {
            Some(WrongList::Fails) => return Err(Error::new(ErrorKind::Timeout, "no answer to the question")),
            Some(WrongList::Empty) => return Ok(encode(Vec::new())),
            Some(WrongList::Garbage) => return Ok(Bytes::from_static(b"{\"consumerIdList\":[\"10.")),
            Some(WrongList::WithoutUs) => return Ok(encode(ids().filter(|id| **id != *us).collect())),
            Some(WrongList::Partial) => {
                let half = ids().enumerate().filter(|(at, id)| **id == *us || (dice >> (at % 64)) & 1 == 0);
                return Ok(encode(half.map(|(_, id)| id).collect()));
            }
            Some(WrongList::Ghost) => return Ok(encode(ids().chain([Arc::from("10.0.99.99@1")]).collect())),
            Some(WrongList::Doubled) => return Ok(encode(ids().chain(ids()).collect())),
            Some(WrongList::Stale) if !self.past.is_empty() => {
                return Ok(self.past[dice as usize % self.past.len()].clone());
            }
            Some(WrongList::Stale) | None => {}
        }
        match &self.body {
            Some(body) if !self.table.is_empty() => Ok(body.clone()),
            _ => Err(Error::broker(1, "no consumer for this group")),
        }
    }
}

fn encode(consumer_id_list: Vec<Arc<str>>) -> Bytes {
    GetConsumerListByGroupResponseBody { consumer_id_list }.encode()
}

/// One queue: its log, its stored offset, and what the checks know of its messages.
pub(super) struct Log {
    pub(super) queue: MessageQueue,
    pub(super) broker: usize,
    pub(super) min: i64,
    pub(super) end: i64,
    pub(super) stored: Option<i64>,
    flushed: Option<i64>,
    window: Millis,
    /// Pulls that wait for a message, as numbers of calls.
    pub(super) waiting: Vec<u64>,
    is_filtered: bool,
    finished: Vec<bool>,
    delivered: Vec<u8>,
    /// Below it, every message that was promised to the group is finished.
    finished_to: i64,
    /// What was stored when the group was last at rest.
    pub(super) at_rest: i64,
}

impl Log {
    pub(super) fn new(queue: MessageQueue, broker: usize, is_filtered: bool) -> Self {
        Self {
            queue,
            broker,
            min: 0,
            end: 0,
            stored: None,
            flushed: None,
            window: 0,
            waiting: Vec::new(),
            is_filtered,
            finished: Vec::new(),
            delivered: Vec::new(),
            finished_to: 0,
            at_rest: 0,
        }
    }

    pub(super) fn produce(&mut self, messages: u64) {
        for _ in 0..messages {
            self.finished.push(!self.matches(self.end));
            self.delivered.push(0);
            self.end += 1;
        }
        self.advance();
    }

    /// Whether the message is one that the group subscribes to.
    pub(super) fn matches(&self, offset: i64) -> bool {
        !self.is_filtered || !(offset as u64).wrapping_mul(0x9E37_79B9).wrapping_add(0x5bd1).is_multiple_of(5)
    }

    /// The message went to a listener; whether it did so before.
    pub(super) fn deliver(&mut self, offset: i64) -> bool {
        let times = &mut self.delivered[offset as usize];
        *times = times.saturating_add(1);
        *times > 1
    }

    /// An operator wants these again: seeing them then is no duplicate.
    pub(super) fn wanted_again_from(&mut self, offset: i64) {
        self.delivered.iter_mut().skip(offset as usize).for_each(|times| *times = 0);
    }

    pub(super) fn finish(&mut self, offset: i64) {
        self.finished[offset as usize] = true;
        self.advance();
    }

    /// A member began here because nothing was stored: what lies before is promised to nobody.
    pub(super) fn begins_at(&mut self, offset: i64) {
        self.finished_to = self.finished_to.max(offset);
        self.advance();
    }

    fn advance(&mut self) {
        while self.finished.get(self.finished_to as usize) == Some(&true) {
            self.finished_to += 1;
        }
    }

    pub(super) fn finished_to(&self) -> i64 {
        self.finished_to
    }

    pub(super) fn store(&mut self, offset: i64, now: Millis) {
        if now / FLUSH != self.window {
            self.window = now / FLUSH;
            self.flushed = self.stored;
        }
        self.stored = Some(offset);
    }

    /// The broker died before it wrote the latest offsets.
    pub(super) fn forget(&mut self, now: Millis) {
        if now / FLUSH == self.window {
            self.stored = self.flushed;
        }
    }
}
