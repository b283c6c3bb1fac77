//! Settings of a lite pull consumer. Source of names, defaults and bounds: `DefaultLitePullConsumer` (02-consumer 14.2).

use super::LitePullConsumer;
use crate::config::{ClientConfig, Item, builder_items, check_range};
use crate::consumer::allocate::{AllocateAveragely, AllocateMessageQueueStrategy};
use crate::consumer::event::{ConsumerEvent, EventListener, RebalanceListener};
use crate::consumer::message_model::MessageModel;
use crate::consumer::rebalance::start_offset::ConsumeFromWhere;
use crate::consumer::selector::MessageSelector;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{MessageQueue, topic};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

pub(crate) struct LitePullConsumerConfig {
    pub(crate) client: ClientConfig,
    pub(crate) group: String,
    pub(crate) subscriptions: Vec<(String, MessageSelector)>,
    pub(crate) assigned: Option<Vec<MessageQueue>>,
    /// What is wanted of the topics of assigned queues.
    pub(crate) assigned_selectors: Vec<(String, MessageSelector)>,
    pub(crate) message_model: MessageModel,
    pub(crate) offset_store_dir: Option<PathBuf>,
    pub(crate) consume_from: ConsumeFromWhere,
    pub(crate) strategy: Arc<dyn AllocateMessageQueueStrategy>,
    pub(crate) rebalance_listener: Option<Arc<dyn RebalanceListener>>,
    pub(crate) events: Option<EventListener>,
    pub(crate) auto_commit: bool,
    pub(crate) auto_commit_interval: Duration,
    pub(crate) pull_batch_size: i32,
    pub(crate) pull_batch_bytes: i32,
    pub(crate) pull_suspend: Duration,
    pub(crate) pull_error_delay: Duration,
    pub(crate) pull_threshold_for_all: usize,
    pub(crate) pull_threshold_for_queue: u32,
    pub(crate) pull_threshold_size_for_queue: u64,
    pub(crate) consume_max_span: u32,
    pub(crate) topic_check_interval: Duration,
    pub(crate) revoke_grace: Duration,
    pub(crate) takeover_delay: Duration,
    pub(crate) max_inflated_size: usize,
}

/// Settings of a [`LitePullConsumer`], until [`start`](Self::start).
///
/// Nothing is checked before `start`, which names the first item that is wrong, its value and its bounds.
#[must_use = "a consumer runs from `start` on"]
pub struct LitePullConsumerBuilder {
    config: LitePullConsumerConfig,
}

builder_items!(LitePullConsumerBuilder, set_own {
    text {
        /// Name servers as `host:port`, several joined with `;`. Default: the environment variable `NAMESRV_ADDR`.
        name_servers => config.client.name_servers;
        /// The address in the client id. Default: the first suitable one of an interface that is up.
        client_ip => config.client.client_ip;
        /// The name in the client id; clients of one process with equal ids share connections and threads. Default: one
        /// of its own for each client, with randomness in it.
        instance_name => config.client.instance_name;
        /// Appended to the client id. Default: none.
        unit_name => config.client.unit_name;
    }
    values {
        /// How often routes are refreshed. Default 30 s, from 10 ms to 1 h.
        route_interval: Duration => config.client.route_interval;
        /// How often brokers hear a heartbeat. Default 30 s, from 10 ms to 100 s (brokers forget a client after 120 s).
        heartbeat_interval: Duration => config.client.heartbeat_interval;
        /// How often committed offsets that a broker did not take are stored again. Default 5 s, from 10 ms to 1 h.
        persist_interval: Duration => config.client.persist_interval;
        /// The period of rebalance rounds; changes wake one at once. Default 20 s, from 10 ms to 1 h.
        rebalance_interval: Duration => config.client.rebalance_interval;
        /// The shortest time between two rounds, so that a storm of notices costs few. Default 250 ms, up to 60 s.
        rebalance_min_interval: Duration => config.client.rebalance_min_interval;
        /// Time for one small request: routes, heartbeats, members, offsets. Default 3 s, from 10 ms to 10 min.
        request_timeout: Duration => config.client.request_timeout;
        /// Time to open a connection. Default 3 s, from 10 ms to 10 min.
        connect_timeout: Duration => config.client.connect_timeout;
        /// Sends headers in the compact ROCKETMQ form instead of JSON. Default false.
        binary_headers: bool => config.client.binary_headers;
        /// The language code in requests (`LanguageCode`). Default 12, RUST; 7, OTHER, for servers that refuse it.
        language: i32 => config.client.language;
        /// Whether the members of the group share the messages. Default clustering. In broadcasting each member has all
        /// queues and keeps its offsets in a file (see `offset_store_dir`); `instance_name` then is `DEFAULT` by default,
        /// as in the Java client, so that the next run finds it. All members must use the same model.
        message_model: MessageModel => config.message_model;
        /// Whether what was handled is committed by itself; see [`poll`](LitePullConsumer::poll) for what counts as
        /// handled. Default true. With false nothing is stored but by the commits of the caller.
        auto_commit: bool => config.auto_commit;
        /// How often it is committed by itself. Default 5 s, from 1 s to 1 h.
        auto_commit_interval: Duration => config.auto_commit_interval;
        /// Messages asked for in one pull, and so the most that one poll returns. Default 10, from 1 to 1024; brokers give
        /// 32 at the most by default.
        pull_batch_size: i32 => config.pull_batch_size;
        /// Bytes asked for in one pull; brokers before 5 ignore it. Default 256 KiB, from 1 KiB to 16 MiB.
        pull_batch_bytes: i32 => config.pull_batch_bytes;
        /// How long a broker may hold a pull that finds nothing. Default 20 s, from 1 s to 60 s. The request's own
        /// time-out is derived from it.
        pull_suspend: Duration => config.pull_suspend;
        /// Pause after a failed pull. Default 1 s, from 10 ms to 60 s.
        pull_error_delay: Duration => config.pull_error_delay;
        /// Messages of all queues together that may be cached before pulls of queues with cached messages wait. Default
        /// 10000, from 1 to 100000000.
        pull_threshold_for_all: usize => config.pull_threshold_for_all;
        /// Messages of a queue that may be cached before its pulls wait. Default 1000, from 1 to 65535.
        pull_threshold_for_queue: u32 => config.pull_threshold_for_queue;
        /// MiB of bodies of a queue that may be cached before its pulls wait. Default 100, from 1 to 1024.
        pull_threshold_size_for_queue: u64 => config.pull_threshold_size_for_queue;
        /// How far the first and the last cached offset of a queue may be apart before its pulls wait. Default 2000, from
        /// 1 to 65535.
        consume_max_span: u32 => config.consume_max_span;
        /// How often the queues of watched topics are compared with those of the last time. Default 30 s, from 10 ms to
        /// 1 h.
        topic_check_interval: Duration => config.topic_check_interval;
        /// How long a queue that goes to another member waits for messages that were polled and are not handled yet, so
        /// that the next owner starts behind them. Default 2 s, up to 10 min.
        revoke_grace: Duration => config.revoke_grace;
        /// How long a queue that may still have an owner is left alone before its stored offset is read, so that the
        /// owner can store it. Default 500 ms, up to 60 s.
        takeover_delay: Duration => config.takeover_delay;
        /// The largest body, in bytes, that is inflated. Default 16 MiB, from 1 KiB to 1 GiB.
        max_inflated_size: usize => config.max_inflated_size;
    }
});

impl LitePullConsumerBuilder {
    pub(super) fn new(group: impl Into<String>) -> Self {
        let config = LitePullConsumerConfig {
            client: ClientConfig::default(),
            group: group.into(),
            subscriptions: Vec::new(),
            assigned: None,
            assigned_selectors: Vec::new(),
            message_model: MessageModel::default(),
            offset_store_dir: None,
            consume_from: ConsumeFromWhere::default(),
            strategy: Arc::new(AllocateAveragely),
            rebalance_listener: None,
            events: None,
            auto_commit: true,
            auto_commit_interval: Duration::from_secs(5),
            pull_batch_size: 10,
            pull_batch_bytes: 256 * 1024,
            pull_suspend: Duration::from_secs(20),
            pull_error_delay: Duration::from_secs(1),
            pull_threshold_for_all: 10_000,
            pull_threshold_for_queue: 1000,
            pull_threshold_size_for_queue: 100,
            consume_max_span: 2000,
            topic_check_interval: Duration::from_secs(30),
            revoke_grace: Duration::from_secs(2),
            takeover_delay: Duration::from_millis(500),
            max_inflated_size: 16 << 20,
        };
        Self { config }
    }

    /// Subscribes to a topic: its queues are shared among the members of the group. Text is a tag expression: `*` for all
    /// messages, or tags joined with `||`. A second call for a topic replaces the first. Excludes [`assign`](Self::assign).
    pub fn subscribe(mut self, topic: impl Into<String>, selector: impl Into<MessageSelector>) -> Self {
        let topic = topic.into();
        self.config.subscriptions.retain(|(known, _)| *known != topic);
        self.config.subscriptions.push((topic, selector.into()));
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

    /// Where members of a broadcasting group keep their offsets, in Java's layout: `DIR/CLIENT_ID/GROUP/offsets.json`.
    /// Default: `.rocketmq_offsets` in the home directory.
    pub fn offset_store_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.config.offset_store_dir = Some(dir.into());
        self
    }

    /// Where a group without stored offsets begins. Default: behind the newest message.
    pub fn consume_from(mut self, consume_from: ConsumeFromWhere) -> Self {
        self.config.consume_from = consume_from;
        self
    }

    /// How queues are shared out. Default: averaging. All members of a group must use the same strategy.
    pub fn allocate_strategy(mut self, strategy: impl AllocateMessageQueueStrategy + 'static) -> Self {
        self.config.strategy = Arc::new(strategy);
        self
    }

    /// Hears of queues that come and go, by rebalance and by [`assign`](LitePullConsumer::assign).
    #[doc(alias = "MessageQueueListener")]
    pub fn rebalance_listener(mut self, listener: impl RebalanceListener) -> Self {
        self.config.rebalance_listener = Some(Arc::new(listener));
        self
    }

    /// Hears of problems; see [`ConsumerEvent`]. Called on service threads: return soon.
    pub fn event_listener(mut self, listener: impl Fn(&ConsumerEvent) + Send + Sync + 'static) -> Self {
        self.config.events = Some(Arc::new(listener));
        self
    }

    /// Sets an item by its name, from text, as a command line or a properties file has it. Durations are milliseconds
    /// or carry `ms`, `s`, `m` or `h`; `consume_from` is `first`, `last` or milliseconds since 1970.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when there is no such item, or the text is not a value of it.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        if name == "offset_store_dir" {
            self.config.offset_store_dir = Some(value.into());
        } else if name == "consume_from" {
            self.config.consume_from = ConsumeFromWhere::from_text(value)
                .map_err(|why| Error::new(ErrorKind::Config, format!("consume_from: '{value}' {why}")))?;
        } else if !self.set_own(name, value)? {
            return Err(Error::new(ErrorKind::Config, format!("a lite pull consumer has no item '{name}'")));
        }
        Ok(self)
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
        self.config.check()?;
        if self.config.message_model == MessageModel::Broadcasting {
            // A name that the next run has again: it leads to the file with the offsets.
            self.config.client.instance_name.get_or_insert_with(|| "DEFAULT".to_owned());
        }
        LitePullConsumer::start(self.config)
    }
}

impl LitePullConsumerConfig {
    fn check(&self) -> Result<()> {
        topic::check_group(&self.group)?;
        self.client.check()?;
        for (name, _) in self.subscriptions.iter().chain(&self.assigned_selectors) {
            topic::check_topic(name)?;
        }
        if self.assigned.is_some() && !self.subscriptions.is_empty() {
            return Err(super::modes_exclude_each_other());
        }
        let millis = |duration: Duration| duration.as_millis();
        check_range("auto_commit_interval (ms)", millis(self.auto_commit_interval), 1000..=3_600_000)?;
        check_range("pull_batch_size", self.pull_batch_size, 1..=1024)?;
        check_range("pull_batch_bytes", self.pull_batch_bytes, 1024..=16 << 20)?;
        check_range("pull_suspend (ms)", millis(self.pull_suspend), 1000..=60_000)?;
        check_range("pull_error_delay (ms)", millis(self.pull_error_delay), 10..=60_000)?;
        check_range("pull_threshold_for_all", self.pull_threshold_for_all, 1..=100_000_000)?;
        check_range("pull_threshold_for_queue", self.pull_threshold_for_queue, 1..=65_535)?;
        check_range("pull_threshold_size_for_queue (MiB)", self.pull_threshold_size_for_queue, 1..=1024)?;
        check_range("consume_max_span", self.consume_max_span, 1..=65_535)?;
        check_range("topic_check_interval (ms)", millis(self.topic_check_interval), 10..=3_600_000)?;
        check_range("revoke_grace (ms)", millis(self.revoke_grace), 0..=600_000)?;
        check_range("takeover_delay (ms)", millis(self.takeover_delay), 0..=60_000)?;
        check_range("max_inflated_size", self.max_inflated_size, 1024..=1 << 30)
    }

    pub(crate) fn queue_bytes(&self) -> u64 {
        self.pull_threshold_size_for_queue * MIB
    }
}

impl fmt::Debug for LitePullConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LitePullConsumerBuilder")
            .field("group", &self.config.group)
            .field("subscriptions", &self.config.subscriptions)
            .field("assigned", &self.config.assigned)
            .field("client", &self.config.client)
            .finish_non_exhaustive()
    }
}
