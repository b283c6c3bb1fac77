//! The running push consumer, as its instance sees it.

use super::config::PushConsumerConfig;
use super::direct::DirectThreads;
use super::hooks::Observer;
use super::orderly::keeper::{LockKeeper, LockReturns};
use super::service::ConsumeService;
use crate::consumer::member::Member;
use crate::instance::role::{ConsumerRole, DirectAnswer, PullTicket, Round};
use crate::message::MessageQueue;
use crate::protocol::body::{ConsumeType, ConsumerData, ConsumerRunningInfo};
use crate::time::Deadline;
use bytes::Bytes;
use std::sync::{Arc, Weak};

pub(super) struct Core {
    pub(super) me: Weak<Core>,
    pub(super) member: Member,
    pub(super) config: PushConsumerConfig,
    pub(super) retry_topic: Arc<str>,
    pub(super) service: Box<dyn ConsumeService>,
    pub(super) observer: Arc<Observer>,
    pub(super) direct: DirectThreads,
    /// Present when queues are consumed only with their broker's lock.
    pub(super) locks: Option<LockKeeper>,
    pub(super) lock_returns: LockReturns,
}

impl ConsumerRole for Core {
    fn group(&self) -> &Arc<str> {
        &self.member.group
    }

    fn heartbeat_data(&self) -> ConsumerData {
        self.member.heartbeat_data(ConsumeType::Passively)
    }

    fn topics(&self) -> Vec<Arc<str>> {
        self.member.topics()
    }

    fn rebalance(&self) -> Round {
        self.member.rebalance()
    }

    fn pull(&self, ticket: PullTicket) {
        self.member.pull(&ticket);
    }

    fn persist_offsets(&self, deadline: Deadline) {
        self.observer.stats.sample();
        self.service.settle_finished();
        self.member.store(&self.member.held.all(), deadline);
    }

    fn registered(&self) {
        self.member.registered();
    }

    fn connected(&self, address: &str) {
        self.member.connected(address);
    }

    fn disconnected(&self, address: &str) {
        self.member.disconnected(address);
    }

    fn running_info(&self, with_threads: bool) -> Option<ConsumerRunningInfo> {
        Some(self.describe(with_threads))
    }

    fn consume_directly(&self, record: Bytes, broker_name: Option<&str>, answer: DirectAnswer) {
        self.direct(record, broker_name, answer);
    }

    fn consume_offsets(&self, topic: &str) -> Vec<(MessageQueue, i64)> {
        self.member.consume_offsets(topic)
    }

    fn reset_offsets(&self, topic: &str, offsets: Vec<(MessageQueue, i64)>) {
        self.member.reset_offsets(topic, offsets);
    }
}
