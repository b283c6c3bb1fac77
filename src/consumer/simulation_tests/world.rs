//! The clock, and what is due when.

use super::Millis;
use super::broker::{Broker, Log};
use super::check::Counts;
use super::member::{Batch, Life, Member};
use super::plan::{Act, Class, Odds, Plan, Rng};
use crate::consumer::held::HeldQueue;
use crate::message::MessageQueue;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All must be at rest this long after the faults have stopped.
const REST_LIMIT: Millis = 300_000;
const REST_STEP: Millis = 5000;
const LINGER: Millis = 45_000;

/// What a member asks of a broker.
#[derive(Clone)]
pub(super) enum Kind {
    Beat,
    Leave,
    Store { held: Arc<HeldQueue>, offset: i64 },
    Find { held: Arc<HeldQueue>, failures: u32 },
    FindEnd { held: Arc<HeldQueue>, failures: u32 },
    Pull { held: Arc<HeldQueue>, asked: i64, commit: Option<i64> },
}

pub(super) struct Call {
    pub(super) member: usize,
    pub(super) broker: usize,
    pub(super) connection: u64,
    pub(super) log: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Done,
    Offset(i64),
    Absent,
    Found {
        messages: Vec<i64>,
        next: i64,
    },
    Nothing {
        next: i64,
    },
    Moved {
        min: i64,
        max: i64,
        next: i64,
    },
    /// The broker does not know the group.
    Refused,
    /// Closed, refused or timed out.
    Failed,
}

pub(super) enum Event {
    Act(Act),
    Calm,
    Arrive(u64),
    Answered(u64, Answer),
    Lost { broker: usize, connection: u64 },
    Expire { log: usize, call: u64 },
    BrokerUp(usize),
    Unlist(usize),
    Notice { member: usize, broker: usize, connection: u64 },
    Reset { member: usize, log: usize, offset: i64 },
    Round { member: usize, mark: u64 },
    Beat { member: usize, mark: u64 },
    BeatNow(usize),
    Route { member: usize, mark: u64 },
    Persist(usize),
    Send { member: usize },
    Locate { member: usize, held: Arc<HeldQueue>, failures: u32 },
    Pull { member: usize, held: Arc<HeldQueue> },
    Chunk { member: usize, batch: Rc<Batch>, range: Range<usize>, passed_on: bool },
    Offer { member: usize, batch: Rc<Batch> },
    GraceOver { member: usize },
}

/// What a topic's route names, to all members that have asked for it since it changed.
pub(super) struct Route {
    pub(super) queues: Arc<[MessageQueue]>,
    pub(super) brokers: Vec<usize>,
}

struct Due {
    at: Millis,
    order: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) now: Millis,
    due: BinaryHeap<Reverse<Due>>,
    numbers: u64,
    pub(super) brokers: Vec<Broker>,
    pub(super) logs: Vec<Log>,
    pub(super) index: BTreeMap<MessageQueue, usize>,
    pub(super) topics: Vec<Arc<str>>,
    pub(super) routes: Vec<Arc<Route>>,
    pub(super) members: Vec<Member>,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) cuts: BTreeMap<(usize, usize), Millis>,
    /// No faults, and nothing new from the script.
    pub(super) is_calm: bool,
    pub(super) notices_under_way: usize,
    pub(super) counts: Counts,
    pub(super) violation: Option<String>,
    traced: bool,
    epoch: Instant,
}

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> Self {
        let plan = Plan::of(seed);
        let mut world = Self {
            rng: Rng::new(!seed),
            now: 0,
            due: BinaryHeap::new(),
            numbers: 0,
            brokers: (0..plan.brokers).map(Broker::new).collect(),
            logs: Vec::new(),
            index: BTreeMap::new(),
            topics: Vec::new(),
            routes: Vec::new(),
            members: Vec::new(),
            calls: BTreeMap::new(),
            cuts: BTreeMap::new(),
            is_calm: false,
            notices_under_way: 0,
            counts: Counts::default(),
            violation: None,
            traced,
            epoch: Instant::now(),
            plan,
        };
        for topic in 0..world.plan.topics.len() {
            world.topics.push(Arc::from(format!("topic-{topic}")));
            world.routes.push(Arc::new(Route { queues: Arc::new([]), brokers: Vec::new() }));
            for broker in 0..world.plan.brokers {
                for _ in 0..world.plan.topics[topic] {
                    world.add_queue(topic, broker);
                }
            }
            world.change_route(topic);
        }
        world
    }

    /// Runs the whole schedule.
    pub(super) fn run(mut self) -> Result<Counts, String> {
        self.say(|| format!("the plan: {:?}", self.plan));
        for _ in 0..self.plan.members {
            let at = self.rng.below(1000);
            self.after(at, Event::Act(Act::Join));
        }
        for phase in self.plan.phases.clone() {
            self.is_calm = false;
            for (at, act) in phase {
                self.after(at, Event::Act(act));
            }
            self.after(self.plan.phase, Event::Calm);
            self.until(self.now + self.plan.phase)?;
            self.rest()?;
        }
        self.counts.schedules = 1;
        Ok(self.counts)
    }

    fn rest(&mut self) -> Result<(), String> {
        let limit = self.now + REST_LIMIT;
        loop {
            self.until(self.now + REST_STEP)?;
            let is_over = self.now >= limit;
            match self.at_rest(self.traced || is_over) {
                Ok(()) => break,
                Err(why) if is_over => {
                    return Err(format!("not at rest {} s after the faults stopped: {why}", REST_LIMIT / 1000));
                }
                Err(why) => self.say(|| format!("not at rest: {why}")),
            }
        }
        if self.plan.lingers {
            self.until(self.now + LINGER)?;
            self.at_rest(true).map_err(|why| format!("no longer at rest: {why}"))?;
        }
        self.say(|| "at rest".to_owned());
        self.note_rest()
    }

    fn until(&mut self, end: Millis) -> Result<(), String> {
        while self.due.peek().is_some_and(|Reverse(due)| due.at <= end) {
            let Some(Reverse(due)) = self.due.pop() else { break };
            self.now = due.at;
            self.handle(due.event);
            if let Some(violation) = self.violation.take() {
                return Err(violation);
            }
        }
        self.now = end;
        Ok(())
    }

    pub(super) fn say(&self, text: impl FnOnce() -> String) {
        if self.traced {
            eprintln!("{:>10.3} s  {}", self.now as f64 / 1000.0, text());
        }
    }

    /// An invariant does not hold.
    pub(super) fn fail(&mut self, what: String) {
        if self.violation.is_none() {
            self.violation = Some(format!("at {:.3} s: {what}", self.now as f64 / 1000.0));
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn after(&mut self, delay: Millis, event: Event) {
        let order = self.number();
        self.due.push(Reverse(Due { at: self.now + delay, order, event }));
    }

    pub(super) fn latency(&mut self) -> Millis {
        self.rng.between(self.plan.latency)
    }

    pub(super) fn odds(&self) -> Odds {
        if self.is_calm { Odds::default() } else { self.plan.odds }
    }

    pub(super) fn instant(&self, at: Millis) -> Instant {
        self.epoch + Duration::from_millis(at)
    }

    pub(super) fn millis(&self, at: Instant) -> Millis {
        u64::try_from(at.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Act(act) => self.act(act),
            Event::Calm => self.calm(),
            Event::Arrive(call) => self.serve(call),
            Event::Answered(call, answer) => {
                if let Some(call) = self.calls.remove(&call)
                    && self.members[call.member].life != Life::Gone
                {
                    self.answered(call, answer);
                }
            }
            Event::Lost { broker, connection } => self.lose(broker, connection),
            Event::Expire { log, call } => {
                if let Some(at) = self.logs[log].waiting.iter().position(|waiting| *waiting == call) {
                    self.logs[log].waiting.remove(at);
                    self.answer_pull(call, true);
                }
            }
            Event::BrokerUp(broker) => self.broker_up(broker),
            Event::Unlist(broker) => {
                if !self.brokers[broker].is_up {
                    self.brokers[broker].is_unlisted = true;
                    self.change_routes();
                }
            }
            Event::Notice { member, broker, connection } => {
                self.notices_under_way -= 1;
                if self.brokers[broker].connections.contains_key(&connection) {
                    self.wake(member);
                }
            }
            Event::Reset { member, log, offset } => self.reset(member, log, offset),
            Event::Round { member, mark } => {
                if self.members[member].life != Life::Gone && self.members[member].round_mark == mark {
                    self.round(member);
                }
            }
            Event::Beat { member, mark } => {
                if self.members[member].beat_mark == mark {
                    self.beat(member);
                }
            }
            Event::BeatNow(member) => self.beat(member),
            Event::Route { member, mark } => {
                if self.members[member].route_mark == mark {
                    self.poll_route(member);
                }
            }
            Event::Persist(member) => self.persist(member),
            Event::Send { member } => self.send_stores(member),
            Event::Locate { member, held, failures } => self.locate(member, &held, failures),
            Event::Pull { member, held } => self.pull(member, &held),
            Event::Chunk { member, batch, range, passed_on } => self.chunk_done(member, batch, range, passed_on),
            Event::Offer { member, batch } => self.offer(member, batch),
            Event::GraceOver { member } => self.check_drained(member),
        }
    }

    pub(super) fn name(&self, member: usize) -> String {
        format!("member {member} ({})", self.members[member].id)
    }

    pub(super) fn is_polite(&self) -> bool {
        self.plan.class == Class::Polite
    }
}
