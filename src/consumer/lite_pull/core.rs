//! The running lite pull consumer: what it is made of.

use super::buffer::Buffer;
use super::config::LitePullConsumerConfig;
use super::topic_watch::TopicWatch;
use crate::consumer::member::Member;
use crate::instance::role::PullTicket;
use crate::instance::scheduled::Job;
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
