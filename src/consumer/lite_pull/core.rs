//! The running lite pull consumer, as its instance sees it.

use super::buffer::Buffer;
use super::config::LitePullConsumerConfig;
use super::topic_watch::TopicWatch;
use crate::consumer::member::Member;
use crate::instance::role::{ConsumerRole, PullTicket, Round};
use crate::instance::scheduled::Job;
use crate::message::MessageQueue;
use crate::protocol::body::{ConsumeFromWhere, ConsumeType, ConsumerData, ConsumerRunningInfo};
use crate::time::Deadline;
use std::sync::{Arc, OnceLock};

/// How a consumer comes to its queues; decided once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The members of the group share them.
    Subscribe,
    /// The user names them.
    Assign,
}

pub(super) struct Core {
    /// Its subscriptions are those of the queues assigned in [`Mode::Assign`].
    pub(super) member: Member,
    pub(super) config: LitePullConsumerConfig,
    pub(super) mode: OnceLock<Mode>,
    pub(super) buffer: Buffer,
    pub(super) commit_job: Arc<Job>,
    pub(super) topics: TopicWatch,
}

impl Core {
    pub(super) fn mode(&self) -> Option<Mode> {
        self.mode.get().copied()
    }

    pub(super) fn submit(&self, tickets: Vec<PullTicket>) {
        for ticket in tickets {
            self.member.instance.submit_pull(ticket);
        }
    }
}

impl ConsumerRole for Core {
    fn group(&self) -> &Arc<str> {
        &self.member.group
    }

    fn heartbeat_data(&self) -> ConsumerData {
        // The Java client of this kind says so whatever it was told.
        let consume_from_where = ConsumeFromWhere::LastOffset;
        ConsumerData { consume_from_where, ..self.member.heartbeat_data(ConsumeType::Actively) }
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
        // With auto commit its own job does it.
        if !self.config.auto_commit {
            self.buffer.find_ended();
            self.member.store(&self.member.held.all(), deadline);
        }
    }

    fn registered(&self) {
        self.member.registered();
    }

    fn connected(&self, address: &str) {
        self.member.connected(address);
    }

    fn running_info(&self, _: bool) -> Option<ConsumerRunningInfo> {
        Some(self.describe())
    }

    fn consume_offsets(&self, topic: &str) -> Vec<(MessageQueue, i64)> {
        self.member.consume_offsets(topic)
    }

    fn reset_offsets(&self, topic: &str, offsets: Vec<(MessageQueue, i64)>) {
        self.member.reset_offsets(topic, offsets);
    }
}
