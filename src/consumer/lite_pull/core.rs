//! The running lite pull consumer, as its instance and its service threads see it.

use super::buffer::Buffer;
use super::config::LitePullConsumerConfig;
use super::topic_watch::TopicWatch;
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldTable;
use crate::consumer::message_model::MessageModel;
use crate::consumer::offset::{self, OffsetStore};
use crate::consumer::rebalance::Rebalancer;
use crate::instance::ClientInstance;
use crate::instance::role::{ConsumerRole, PullTicket, Round};
use crate::instance::scheduled::Job;
use crate::message::MessageQueue;
use crate::protocol::SubscriptionData;
use crate::protocol::body::{ConsumeFromWhere, ConsumeType, ConsumerData, ConsumerRunningInfo};
use crate::sync::{Mutex, RwLock};
use crate::thread::contain;
use crate::time::Deadline;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::SystemTime;

/// How a consumer comes to its queues; decided once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The members of the group share them.
    Subscribe,
    /// The user names them.
    Assign,
}

pub(super) struct Core {
    pub(super) me: Weak<Core>,
    pub(super) config: LitePullConsumerConfig,
    pub(super) group: Arc<str>,
    pub(super) instance: Arc<ClientInstance>,
    pub(super) mode: OnceLock<Mode>,
    /// What is wanted of each topic; in [`Mode::Assign`] those of the queues assigned.
    pub(super) subscriptions: RwLock<BTreeMap<Arc<str>, Arc<SubscriptionData>>>,
    pub(super) store: OffsetStore,
    pub(super) held: HeldTable,
    pub(super) buffer: Buffer,
    pub(super) started: SystemTime,
    /// Set by the stop: no pull, round or new ownership begins any more.
    pub(super) stopping: AtomicBool,
    /// Makes rounds, assignments and the stop exclude each other.
    pub(super) rebalancer: Mutex<Rebalancer>,
    /// Serialises rounds of storing, so that an older offset cannot arrive behind a newer one.
    pub(super) storing: Mutex<()>,
    pub(super) commit_job: Arc<Job>,
    pub(super) topics: TopicWatch,
}

impl Core {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(super) fn is_broadcasting(&self) -> bool {
        self.config.message_model == MessageModel::Broadcasting
    }

    pub(super) fn mode(&self) -> Option<Mode> {
        self.mode.get().copied()
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

    pub(super) fn subscription(&self, topic: &str) -> Option<Arc<SubscriptionData>> {
        self.subscriptions.read().get(topic).cloned()
    }

    fn subscribed(&self) -> Vec<Arc<str>> {
        self.subscriptions.read().keys().cloned().collect()
    }

    pub(super) fn submit(&self, tickets: Vec<PullTicket>) {
        for ticket in tickets {
            self.instance.submit_pull(ticket);
        }
    }
}

impl ConsumerRole for Core {
    fn group(&self) -> &Arc<str> {
        &self.group
    }

    fn heartbeat_data(&self) -> ConsumerData {
        // Assigned queues are nobody's business, as in the Java client; pulls carry their expression themselves.
        let shared = self.mode() == Some(Mode::Subscribe);
        let subscriptions = self.subscriptions.read();
        ConsumerData {
            group_name: self.group.clone(),
            consume_type: ConsumeType::Actively,
            message_model: self.config.message_model.on_the_wire(),
            consume_from_where: ConsumeFromWhere::LastOffset,
            subscription_data_set: subscriptions.values().filter(|_| shared).map(|data| (**data).clone()).collect(),
            unit_mode: false,
        }
    }

    fn topics(&self) -> Vec<Arc<str>> {
        self.held.with_topics_of(self.subscribed())
    }

    fn rebalance(&self) -> Round {
        if self.is_stopping() {
            return Round::Settled;
        }
        let round = match self.mode() {
            Some(Mode::Subscribe) => {
                let mut rebalancer = self.rebalancer.lock();
                let topics = self.subscribed();
                rebalancer.round(self, &topics, self)
            }
            _ => Round::Settled,
        };
        self.check_queues();
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
        // With auto commit its own job does it.
        if !self.config.auto_commit {
            self.buffer.find_ended();
            self.store_committed(&self.held.all(), deadline);
        }
    }

    fn registered(&self) {
        // Queues that wait for a broker to know us need not wait out their pause; the round finds them.
        if self.mode() == Some(Mode::Subscribe) && self.held.all().is_empty() {
            self.instance.rebalance_soon();
        }
    }

    fn connected(&self, address: &str) {
        let brokers = self.instance.brokers();
        for held in self.held.all() {
            if brokers.master(held.queue.broker_name()).is_some_and(|master| **master == *address) {
                offset::doubt(&held);
            }
        }
    }

    fn running_info(&self, _: bool) -> Option<ConsumerRunningInfo> {
        Some(self.describe())
    }

    fn consume_offsets(&self, topic: &str) -> Vec<(MessageQueue, i64)> {
        let held = self.held.of_topic(topic);
        held.iter().filter_map(|held| Some((held.queue.clone(), self.buffer.handled(held)?))).collect()
    }

    fn reset_offsets(&self, topic: &str, offsets: Vec<(MessageQueue, i64)>) {
        let held = self.held.of_topic(topic);
        let mut reset = Vec::new();
        for (queue, offset) in offsets.into_iter().filter(|(_, offset)| *offset >= 0) {
            let old = held.iter().find(|held| held.queue == queue);
            reset.extend(old.and_then(|old| self.restart_at(old, offset)));
        }
        // Stored at once, also without auto commit: the operator meant the group, and an older commit may be under way.
        self.buffer.commit(&reset);
        self.store_committed(&reset, Deadline::after(super::STORE_TIME));
    }
}
