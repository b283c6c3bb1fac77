//! Settings of a lite pull consumer. Source of names, defaults and bounds: `DefaultLitePullConsumer` (02-consumer 14.2).

use super::LitePullConsumer;
use crate::config::{builder_items, check_range, client_items};
use crate::consumer::member::MemberConfig;
use crate::consumer::member::config::member_items;
use crate::consumer::message_model::MessageModel;
use crate::consumer::selector::MessageSelector;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{MessageQueue, topic};
use std::fmt;
use std::time::Duration;

pub(crate) struct LitePullConsumerConfig {
    pub(crate) assigned: Option<Vec<MessageQueue>>,
    /// What is wanted of the topics of assigned queues.
    pub(crate) assigned_selectors: Vec<(String, MessageSelector)>,
    pub(crate) auto_commit: bool,
    pub(crate) auto_commit_interval: Duration,
    pub(crate) pull_threshold_for_all: usize,
    pub(crate) topic_check_interval: Duration,
}

/// Settings of a [`LitePullConsumer`], until [`start`](Self::start).
///
/// Nothing is checked before `start`, which names the first item that is wrong, its value and its bounds.
#[must_use = "a consumer runs from `start` on"]
pub struct LitePullConsumerBuilder {
    member: MemberConfig,
    config: LitePullConsumerConfig,
}

client_items!(LitePullConsumerBuilder, set_client, member.client);
member_items!(LitePullConsumerBuilder, set_member, member);

builder_items!(LitePullConsumerBuilder, set_own {
    text {}
    values {
        /// Whether the members of the group share the messages. Default clustering. In broadcasting each member has all
        /// queues and keeps its offsets in a file (see `offset_store_dir`); `instance_name` then is `DEFAULT` by default,
        /// as in the Java client, so that the next run finds it. All members must use the same model.
        message_model: MessageModel => member.message_model;
        /// Whether what was handled is committed by itself; see [`poll`](LitePullConsumer::poll) for what counts as
        /// handled. Default true. With false nothing is stored but by the commits of the caller.
        auto_commit: bool => config.auto_commit;
        /// How often it is committed by itself. Default 5 s, from 1 s to 1 h.
        auto_commit_interval: Duration => config.auto_commit_interval;
        /// Messages asked for in one pull, and so the most that one poll returns. Default 10, from 1 to 1024; brokers give
        /// 32 at the most by default.
        pull_batch_size: i32 => member.pull_batch_size;
        /// How long a broker may hold a pull that finds nothing. Default 20 s, from 1 s to 60 s. The request's own
        /// time-out is derived from it.
        pull_suspend: Duration => member.pull_suspend;
        /// Messages of all queues together that may be cached before pulls of queues with cached messages wait. Default
        /// 10000, from 1 to 100000000.
        pull_threshold_for_all: usize => config.pull_threshold_for_all;
        /// How often the queues of watched topics are compared with those of the last time. Default 30 s, from 10 ms to
        /// 1 h.
        topic_check_interval: Duration => config.topic_check_interval;
        /// How long a queue that goes to another member waits for messages that were polled and are not handled yet, so
        /// that the next owner starts behind them. Default 2 s, up to 10 min.
        revoke_grace: Duration => member.revoke_grace;
    }
});

impl LitePullConsumerBuilder {
    pub(super) fn new(group: impl Into<String>) -> Self {
        let config = LitePullConsumerConfig {
            assigned: None,
            assigned_selectors: Vec::new(),
            auto_commit: true,
            auto_commit_interval: Duration::from_secs(5),
            pull_threshold_for_all: 10_000,
            topic_check_interval: Duration::from_secs(30),
        };
        Self { member: MemberConfig::new(group, 10, Duration::from_secs(20)), config }
    }

    /// Subscribes to a topic: its queues are shared among the members of the group. Text is a tag expression: `*` for all
    /// messages, or tags joined with `||`. A second call for a topic replaces the first. Excludes [`assign`](Self::assign).
    pub fn subscribe(mut self, topic: impl Into<String>, selector: impl Into<MessageSelector>) -> Self {
        self.member.subscribe(topic.into(), selector.into());
        self
    }

    /// Reads just these queues, whatever other members of the group do. Excludes [`subscribe`](Self::subscribe).
    pub fn assign(mut self, queues: impl IntoIterator<Item = MessageQueue>) -> Self {
        self.config.assigned = Some(queues.into_iter().collect());
        self
    }

    /// What is wanted of assigned queues of a topic. Default: every message.
    #[doc(alias = "setSubExpressionForAssign")]
    pub fn selector_for_assigned(mut self, topic: impl Into<String>, selector: impl Into<MessageSelector>) -> Self {
        self.config.assigned_selectors.push((topic.into(), selector.into()));
        self
    }

    /// Sets an item by its name, from text, as a command line or a properties file has it. Durations are milliseconds
    /// or carry `ms`, `s`, `m` or `h`; `consume_from` is `first`, `last` or milliseconds since 1970.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when there is no such item, or the text is not a value of it.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        if self.set_client(name, value)? || self.set_member(name, value)? || self.set_own(name, value)? {
            return Ok(self);
        }
        Err(Error::new(ErrorKind::Config, format!("a lite pull consumer has no item '{name}'")))
    }

    /// Checks the settings and starts the consumer. A cluster that is away is no error: the consumer waits for it, and
    /// the log says so.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a wrong item, [`ErrorKind::Broker`] when a broker refuses an SQL92 filter,
    /// [`ErrorKind::State`] when another process uses the offset file, both `subscribe` and `assign` were called, or a
    /// consumer of the group runs under the same client id in this process, [`ErrorKind::Io`] when threads or sockets
    /// cannot be had.
    pub fn start(mut self) -> Result<LitePullConsumer> {
        self.member.check()?;
        self.config.check(&self.member)?;
        LitePullConsumer::start(self.member, self.config)
    }
}

impl LitePullConsumerConfig {
    fn check(&self, member: &MemberConfig) -> Result<()> {
        for (name, _) in &self.assigned_selectors {
            topic::check_topic(name)?;
        }
        if self.assigned.is_some() && !member.subscriptions.is_empty() {
            return Err(super::modes_exclude_each_other());
        }
        let millis = |duration: Duration| duration.as_millis();
        check_range("auto_commit_interval (ms)", millis(self.auto_commit_interval), 1000..=3_600_000)?;
        check_range("pull_threshold_for_all", self.pull_threshold_for_all, 1..=100_000_000)?;
        check_range("topic_check_interval (ms)", millis(self.topic_check_interval), 10..=3_600_000)
    }
}

impl fmt::Debug for LitePullConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LitePullConsumerBuilder")
            .field("group", &self.member.group)
            .field("subscriptions", &self.member.subscriptions)
            .field("assigned", &self.config.assigned)
            .field("client", &self.member.client)
            .finish_non_exhaustive()
    }
}
