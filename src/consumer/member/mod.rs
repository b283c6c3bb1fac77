//! A member of a consumer group: what every kind of consumer has and does, however its messages reach the user.
//!
//! It owns the queues held, the rebalancer, the subscriptions, the store of offsets and the watch over the group.
//! `role` is how its instance sees it, `ownership` takes and gives up queues, `pulls` keeps one pull a queue going, `offsets` stores, resets and asks,
//! `watch` looks for problems of the group, `stop` ends it all. A kind of consumer adds what it does in its own way: [`Kind`].

pub(crate) mod config;
mod offsets;
mod ownership;
mod pulls;
mod role;
mod stop;
mod subscriptions;
mod watch;

pub(crate) use config::MemberConfig;
pub(crate) use offsets::STORE_TIME;
pub(crate) use stop::Stop;
pub(crate) use subscriptions::Subscriptions;

use crate::consumer::allocate::AllocateAveragely;
use crate::consumer::event::ConsumerEvent;
use crate::consumer::health::Problems;
use crate::consumer::held::{HeldQueue, HeldTable};
use crate::consumer::message_model::MessageModel;
use crate::consumer::offset::OffsetStore;
use crate::consumer::rebalance::Rebalancer;
use crate::consumer::rebalance::start_offset::ConsumeFromWhere as StartAt;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::ClientInstance;
use crate::instance::role::{DirectAnswer, Round};
use crate::message::{MessageExt, MessageQueue};
use crate::protocol::SubscriptionData;
use crate::protocol::body::{ConsumeFromWhere, ConsumeType, ConsumerData, ConsumerRunningInfo};
use crate::sync::{Mutex, Rank};
use crate::thread::contain;
use crate::time::Deadline;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};
use watch::GroupWatch;

/// What a kind of consumer does in its own way. The member calls it; it runs what is the same for all kinds by its
/// [`Member`].
pub(crate) trait Kind: Send + Sync + 'static {
    fn member(&self) -> &Member;
    /// As heartbeats have it.
    fn consume_type(&self) -> ConsumeType;
    /// Whether the queues are shared out by rounds. Else the user names them, and no other member matters.
    fn shares_queues(&self) -> bool {
        true
    }
    /// Ownerships begin: what each needs is made ready, and its start offset asked for ([`Member::locate_after`]) after
    /// `delay` or when whatever else it waits for is there.
    fn take_over(&self, coming: Vec<Arc<HeldQueue>>, delay: Duration);
    /// A pull is about to be sent. `false`: the ticket waits, and whoever makes room submits it.
    fn admit(&self, held: &Arc<HeldQueue>) -> bool;
    /// Whether the ticket waits for room.
    fn is_resting(&self, held: &HeldQueue) -> bool;
    /// Whether pulls carry the subscription, and the offset to store.
    fn carries(&self) -> (bool, bool);
    /// A pull brought these messages, already filtered; the next one begins at `next`. Whether any of them is new.
    fn take_in(&self, held: &Arc<HeldQueue>, messages: Vec<MessageExt>, next: i64, took: Duration) -> bool;
    /// A pull brought nothing up to `next`.
    fn pass_over(&self, held: &HeldQueue, next: i64);
    /// Pause between a pull that brought messages and the next one.
    fn pull_interval(&self) -> Option<Duration> {
        None
    }
    /// The broker of the queue is or was out of reach.
    fn doubt(&self, held: &HeldQueue) {
        let _ = held;
    }
    /// Ends an ownership and begins the next one of the same queue at `offset`, in one step ([`Member::renew_at`]).
    /// `None`: it is over already, or is being given up.
    fn restart_at(&self, held: &Arc<HeldQueue>, offset: i64) -> Option<Arc<HeldQueue>>;
    /// An operator has moved these queues.
    fn were_reset(&self, queues: &[Arc<HeldQueue>]) {
        let _ = queues;
    }
    /// The lowest offset that is not finished; `None` while the start is not known.
    fn unfinished_from(&self, held: &HeldQueue) -> Option<i64> {
        held.commit_offset()
    }
    /// What is finished and not told to the ownerships yet is told now: their offsets are about to be stored.
    fn settle(&self, queues: &[Arc<HeldQueue>]);
    /// Whether the offset of the ownership may be stored.
    fn may_store(&self, held: &HeldQueue) -> bool {
        let _ = held;
        true
    }
    /// The ownership is over: what is counted or cached of it goes.
    fn forget(&self, held: &HeldQueue);
    /// These queues are given up and stored. `wait`: the consumer stops, and waits so long for what has to be told.
    fn gave_up(&self, gone: &[Arc<HeldQueue>], wait: Option<Deadline>) {
        let _ = (gone, wait);
    }
    /// The consumer stops: no job of this kind begins any more.
    fn end_jobs(&self);
    /// Waits until what is handed out of the queues is finished, and settles it; how many messages are not.
    fn finish(&self, held: &[Arc<HeldQueue>], deadline: Deadline) -> usize;
    /// Ends the threads; `false` when one had not ended by the deadline.
    fn join(&self, deadline: Deadline) -> bool {
        let _ = deadline;
        true
    }
    /// What the periodic job stores.
    fn persist(&self, deadline: Deadline);
    /// What the broker's tools ask a consumer. `with_threads`: also what its threads are doing.
    fn describe(&self, with_threads: bool) -> ConsumerRunningInfo;
    /// As [`ConsumerRole::consume_directly`](crate::instance::role::ConsumerRole::consume_directly).
    fn direct(&self, record: Bytes, broker_name: Option<&str>, answer: DirectAnswer) {
        let _ = (record, broker_name);
        let text = format!("the consumer of group '{}' has no listener", self.member().group);
        answer(Err(Error::new(ErrorKind::State, text)));
    }
    /// Messages handled since the start.
    fn consumed(&self) -> u64;
}

/// See the head of this file.
pub(crate) struct Member {
    pub(crate) config: MemberConfig,
    pub(crate) group: Arc<str>,
    pub(crate) instance: Arc<ClientInstance>,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) held: HeldTable,
    pub(crate) started: SystemTime,
    /// Makes rounds, assignments by hand and a stop exclude each other. Only the rebalance thread takes it for long.
    pub(crate) rebalancer: Mutex<Rebalancer>,
    /// The consumer that this is the member part of.
    kind: Weak<dyn Kind>,
    /// Set by the stop: no pull, round or new ownership begins any more.
    stopping: AtomicBool,
    pub(crate) store: OffsetStore,
    /// Serialises rounds of storing, so that an older offset cannot arrive behind a newer one.
    storing: Mutex<()>,
    /// Offsets that operators set, and when.
    resets: Mutex<BTreeMap<MessageQueue, (i64, Instant)>>,
    problems: Problems,
    watch: GroupWatch,
}

impl Member {
    pub(crate) fn new(
        config: MemberConfig,
        instance: &Arc<ClientInstance>,
        store: OffsetStore,
        subscriptions: Subscriptions,
        held: HeldTable,
        kind: Weak<dyn Kind>,
    ) -> Self {
        let group: Arc<str> = Arc::from(config.group.as_str());
        let is_broadcasting = config.message_model == MessageModel::Broadcasting;
        // The only member that it is told of takes all.
        let strategy = if is_broadcasting { Arc::new(AllocateAveragely) } else { config.strategy.clone() };
        let rebalancer = Rebalancer::new(group.clone(), instance.client_id().clone(), strategy);
        Self {
            config,
            group,
            instance: instance.clone(),
            subscriptions,
            held,
            started: SystemTime::now(),
            rebalancer: Mutex::new(Rank::Round, rebalancer),
            watch: GroupWatch::new(instance.executor(), kind.clone()),
            kind,
            stopping: AtomicBool::new(false),
            store,
            storing: Mutex::new(Rank::Storing, ()),
            resets: Mutex::new(Rank::Round, BTreeMap::new()),
            problems: Problems::new(),
        }
    }

    /// The consumer; `None` while it is being dropped, when nothing is to be done any more.
    fn kind(&self) -> Option<Arc<dyn Kind>> {
        self.kind.upgrade()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// # Errors
    /// [`ErrorKind::State`] once the consumer stops.
    pub(crate) fn check_running(&self) -> Result<()> {
        if self.is_stopping() { Err(self.is_stopped()) } else { Ok(()) }
    }

    pub(crate) fn is_stopped(&self) -> Error {
        Error::new(ErrorKind::State, format!("the consumer of group '{}' is stopped", self.group))
    }

    pub(crate) fn is_broadcasting(&self) -> bool {
        self.config.message_model == MessageModel::Broadcasting
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.config.client.request_timeout
    }

    pub(crate) fn subscription(&self, topic: &str) -> Option<Arc<SubscriptionData>> {
        self.subscriptions.get(topic)
    }

    /// Tells a problem to the user and the log.
    pub(crate) fn tell(&self, event: &ConsumerEvent) {
        log::warn!("group '{}': {event}", self.group);
        if let Some(listener) = &self.config.events
            && contain(|| listener(event)).is_err()
        {
            log::error!("the event listener of group '{}' panicked", self.group);
        }
    }

    /// Fetches routes and tells brokers of us; what fails is tried again by the jobs. A round follows.
    pub(crate) fn introduce(&self, topics: &[Arc<str>]) {
        if let Err(error) = self.instance.introduce(topics) {
            let names = self.instance.name_servers();
            log::warn!("group '{}' waits for its name servers {names:?}: {error}", self.group);
        }
        self.instance.rebalance_soon();
    }

    /// What each heartbeat tells.
    pub(crate) fn heartbeat_data(&self, consume_type: ConsumeType) -> ConsumerData {
        // Queues that the user names are nobody's business, as in the Java client; pulls carry their filter themselves.
        let is_shared = self.kind().is_some_and(|kind| kind.shares_queues());
        ConsumerData {
            group_name: self.group.clone(),
            consume_type,
            message_model: self.config.message_model.on_the_wire(),
            consume_from_where: match self.config.consume_from {
                // The Java client that is polled says so whatever it was told.
                _ if consume_type == ConsumeType::Actively => ConsumeFromWhere::LastOffset,
                StartAt::LastOffset => ConsumeFromWhere::LastOffset,
                StartAt::FirstOffset => ConsumeFromWhere::FirstOffset,
                StartAt::Timestamp(_) => ConsumeFromWhere::Timestamp,
            },
            subscription_data_set: if is_shared { self.subscriptions.on_the_wire() } else { Vec::new() },
            unit_mode: false,
        }
    }

    /// Topics whose routes must be kept fresh.
    pub(crate) fn topics(&self) -> Vec<Arc<str>> {
        self.held.with_topics_of(self.subscriptions.topics())
    }

    /// One rebalance round, and the looks that go with it.
    pub(crate) fn rebalance(&self) -> Round {
        if self.is_stopping() {
            return Round::Settled;
        }
        let mut round = Round::Settled;
        if self.kind().is_some_and(|kind| kind.shares_queues()) {
            let topics = self.subscriptions.topics();
            let mut rebalancer = self.rebalancer.lock();
            round = rebalancer.round(self, &topics, self);
            self.check_shapes(&rebalancer);
            drop(rebalancer);
            self.check_group_soon();
        }
        self.check_queues();
        round
    }

    /// A heartbeat was accepted.
    pub(crate) fn registered(&self) {
        // Queues that wait for a broker to know us need not wait out their pause; the round finds them.
        if self.held.all().is_empty() && self.kind().is_some_and(|kind| kind.shares_queues()) {
            self.instance.rebalance_soon();
        }
    }
}
