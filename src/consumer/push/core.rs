//! The running push consumer, as its instance and its service threads see it.

use super::config::PushConsumerConfig;
use super::direct::DirectThreads;
use super::hooks::Observer;
use super::orderly::keeper::{LockKeeper, LockReturns};
use super::service::ConsumeService;
use super::subscriptions::Subscriptions;
use super::watch::GroupWatch;
use crate::consumer::event::ConsumerEvent;
use crate::consumer::health::Problems;
use crate::consumer::held::{HeldQueue, HeldTable};
use crate::consumer::message_model::MessageModel;
use crate::consumer::offset::{self, OffsetStore, Stored};
use crate::consumer::rebalance::Rebalancer;
use crate::consumer::rebalance::start_offset::ConsumeFromWhere as StartAt;
use crate::instance::ClientInstance;
use crate::instance::role::{ConsumerRole, DirectAnswer, PullTicket, Round};
use crate::message::MessageQueue;
use crate::protocol::SubscriptionData;
use crate::protocol::body::ConsumerRunningInfo;
use crate::protocol::body::{ConsumeFromWhere, ConsumeType, ConsumerData};
use crate::sync::Mutex;
use crate::thread::contain;
use crate::time::Deadline;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

/// A reset to the same offset within this time is a repetition.
const SAME_RESET: Duration = Duration::from_secs(1);

pub(super) struct Core {
    pub(super) me: Weak<Core>,
    pub(super) config: PushConsumerConfig,
    pub(super) group: Arc<str>,
    pub(super) retry_topic: Arc<str>,
    pub(super) instance: Arc<ClientInstance>,
    pub(super) subscriptions: Subscriptions,
    pub(super) held: HeldTable,
    pub(super) store: OffsetStore,
    pub(super) service: Box<dyn ConsumeService>,
    pub(super) observer: Arc<Observer>,
    pub(super) direct: DirectThreads,
    /// Present when queues are consumed only with their broker's lock.
    pub(super) locks: Option<LockKeeper>,
    pub(super) lock_returns: LockReturns,
    pub(super) started: SystemTime,
    /// Set by the stop: no pull, round or new ownership begins any more.
    pub(super) stopping: AtomicBool,
    /// Only the rebalance thread takes it for long; the lock makes a round and a stop exclude each other.
    pub(super) rebalancer: Mutex<Rebalancer>,
    /// Serialises rounds of storing, so that an older offset cannot arrive behind a newer one.
    pub(super) storing: Mutex<()>,
    /// Offsets that operators set, and when.
    pub(super) resets: Mutex<BTreeMap<MessageQueue, (i64, Instant)>>,
    pub(super) problems: Problems,
    pub(super) watch: GroupWatch,
    /// Client ids that had more than one connection when the group was last looked at.
    pub(super) twins: Mutex<BTreeMap<String, Vec<String>>>,
}

impl Core {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Tells a problem to the user and the log.
    pub(super) fn tell(&self, event: &ConsumerEvent) {
        log::warn!("group '{}': {event}", self.group);
        if let Some(listener) = &self.config.events
            && contain(|| listener(event)).is_err()
        {
            log::error!("the event listener of group '{}' panicked", self.group);
        }
    }

    pub(super) fn is_broadcasting(&self) -> bool {
        self.config.message_model == MessageModel::Broadcasting
    }

    /// Stores offsets; the caller holds `storing`. A file that cannot be written is a problem of the consumer.
    pub(super) fn store_offsets(&self, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        let stored = self.store.store(queues, deadline);
        self.check_file();
        stored
    }

    /// What opening the offset file showed.
    pub(super) fn tell_of_file(&self) {
        let Some(file) = self.store.file() else { return };
        if let Some(reason) = file.damage() {
            let path = file.path().display().to_string();
            self.tell(&ConsumerEvent::OffsetFileDamaged { path, reason: reason.to_owned() });
        }
        self.check_file();
    }

    fn check_file(&self) {
        let Some(file) = self.store.file() else { return };
        let failure = file
            .failure()
            .map(|reason| ConsumerEvent::OffsetFileUnwritable { path: file.path().display().to_string(), reason });
        self.problems_of("offset_file_unwritable", failure.into_iter().collect());
    }

    pub(super) fn subscription(&self, topic: &str) -> Option<Arc<SubscriptionData>> {
        self.subscriptions.get(topic)
    }
}

impl ConsumerRole for Core {
    fn group(&self) -> &Arc<str> {
        &self.group
    }

    fn heartbeat_data(&self) -> ConsumerData {
        ConsumerData {
            group_name: self.group.clone(),
            consume_type: ConsumeType::Passively,
            message_model: self.config.message_model.on_the_wire(),
            consume_from_where: match self.config.consume_from {
                StartAt::LastOffset => ConsumeFromWhere::LastOffset,
                StartAt::FirstOffset => ConsumeFromWhere::FirstOffset,
                StartAt::Timestamp(_) => ConsumeFromWhere::Timestamp,
            },
            subscription_data_set: self.subscriptions.on_the_wire(),
            unit_mode: false,
        }
    }

    fn topics(&self) -> Vec<Arc<str>> {
        self.held.with_topics_of(self.subscriptions.topics())
    }

    fn rebalance(&self) -> Round {
        if self.is_stopping() {
            return Round::Settled;
        }
        let topics = self.subscriptions.topics();
        let round = {
            let mut rebalancer = self.rebalancer.lock();
            let round = rebalancer.round(self, &topics, self);
            self.check_shapes(&rebalancer);
            round
        };
        self.check_queues();
        self.check_group_soon();
        round
    }

    fn pull(&self, ticket: PullTicket) {
        // A ticket of an ownership that is over finds nothing and ends here.
        if let Some(held) = self.held.get(&ticket.queue, ticket.epoch)
            && held.is_pulling()
            && !self.is_stopping()
        {
            self.pull_queue(&held);
        }
    }

    fn persist_offsets(&self, deadline: Deadline) {
        self.observer.stats.sample();
        self.service.settle_finished();
        let _one_at_a_time = self.storing.lock();
        self.store_offsets(&self.held.all(), deadline);
    }

    fn registered(&self) {
        // Queues that wait for a broker to know us need not wait out their pause; the round finds them.
        if self.held.all().is_empty() {
            self.instance.rebalance_soon();
        }
    }

    fn disconnected(&self, address: &str) {
        let brokers = self.instance.brokers();
        let is_there = |held: &&Arc<HeldQueue>| {
            brokers.master(held.queue.broker_name()).is_some_and(|master| **master == *address)
        };
        for held in self.held.all().iter().filter(is_there) {
            self.doubt_lock(held);
        }
    }

    fn connected(&self, address: &str) {
        let brokers = self.instance.brokers();
        for held in self.held.all() {
            if brokers.master(held.queue.broker_name()).is_some_and(|master| **master == *address) {
                offset::doubt(&held);
                self.doubt_lock(&held);
            }
        }
    }

    fn running_info(&self, with_threads: bool) -> Option<ConsumerRunningInfo> {
        Some(self.describe(with_threads))
    }

    fn consume_directly(&self, record: Bytes, broker_name: Option<&str>, answer: DirectAnswer) {
        self.direct(record, broker_name, answer);
    }

    fn consume_offsets(&self, topic: &str) -> Vec<(MessageQueue, i64)> {
        let held = self.held.of_topic(topic);
        held.iter().filter_map(|held| Some((held.queue.clone(), held.commit_offset()?))).collect()
    }

    fn reset_offsets(&self, topic: &str, offsets: Vec<(MessageQueue, i64)>) {
        let held = self.held.of_topic(topic);
        // One at a time, and a repetition that tools and brokers make is the same reset (field report 30).
        let mut recent = self.resets.lock();
        recent.retain(|_, (_, at)| at.elapsed() < SAME_RESET);
        for (queue, offset) in offsets.into_iter().filter(|(_, offset)| *offset >= 0) {
            let is_same = recent.get(&queue).is_some_and(|(before, _)| *before == offset);
            if let Some(held) = held.iter().find(|held| held.queue == queue && !is_same) {
                recent.insert(queue, (offset, Instant::now()));
                self.restart_at(held, offset);
            }
        }
    }
}
