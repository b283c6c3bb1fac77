//! Settings of a push consumer. Source of names, defaults and bounds: `DefaultMQPushConsumer` (02-consumer 1.5).

use super::PushConsumer;
use super::hooks::{ConsumeHook, Hooks};
use crate::config::{ClientConfig, Item, builder_items, check_range};
use crate::consumer::allocate::{AllocateAveragely, AllocateMessageQueueStrategy};
use crate::consumer::event::{ConsumerEvent, EventListener, RebalanceListener};
use crate::consumer::listener::MessageListenerConcurrently;
use crate::consumer::listener_orderly::{MessageListenerOrderly, SUSPEND};
use crate::consumer::message_model::MessageModel;
use crate::consumer::offset::LocalFile;
use crate::consumer::process_queue::{LimitPlan, Limits};
use crate::consumer::rebalance::start_offset::ConsumeFromWhere;
use crate::consumer::selector::MessageSelector;
use crate::error::{Error, ErrorKind, Result};
use crate::message::topic;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

pub(crate) type UserInfo = Arc<dyn Fn() -> BTreeMap<String, String> + Send + Sync>;

pub(crate) struct PushConsumerConfig {
    pub(crate) client: ClientConfig,
    pub(crate) group: String,
    pub(crate) subscriptions: Vec<(String, MessageSelector)>,
    pub(crate) message_model: MessageModel,
    pub(crate) offset_store_dir: Option<PathBuf>,
    pub(crate) consume_from: ConsumeFromWhere,
    pub(crate) strategy: Arc<dyn AllocateMessageQueueStrategy>,
    pub(crate) listener: Option<Arc<dyn MessageListenerConcurrently>>,
    pub(crate) listener_orderly: Option<Arc<dyn MessageListenerOrderly>>,
    pub(crate) order_by_key: bool,
    pub(crate) suspend_current_queue_time: Duration,
    pub(crate) lock_interval: Duration,
    pub(crate) lock_validity: Duration,
    pub(crate) rebalance_listener: Option<Arc<dyn RebalanceListener>>,
    pub(crate) events: Option<EventListener>,
    pub(crate) hooks: Hooks,
    pub(crate) user_info: Option<UserInfo>,
    pub(crate) consume_threads: usize,
    pub(crate) topic_concurrency: BTreeMap<String, usize>,
    pub(crate) consume_timeout: Duration,
    pub(crate) consume_batch_size: usize,
    pub(crate) consume_max_span: u32,
    pub(crate) pull_batch_size: i32,
    pub(crate) pull_batch_bytes: i32,
    pub(crate) pull_interval: Duration,
    pub(crate) pull_suspend: Duration,
    pub(crate) pull_error_delay: Duration,
    pub(crate) pull_threshold_for_queue: u32,
    pub(crate) pull_threshold_size_for_queue: u64,
    pub(crate) pull_threshold_for_topic: Option<u32>,
    pub(crate) pull_threshold_size_for_topic: Option<u64>,
    pub(crate) pull_threshold_size_total: u64,
    pub(crate) max_reconsume_times: Option<u32>,
    pub(crate) revoke_grace: Duration,
    pub(crate) takeover_delay: Duration,
    pub(crate) max_inflated_size: usize,
    pub(crate) post_subscription_when_pull: bool,
}

/// What runs the messages: exactly one of the two.
pub(crate) enum Listener {
    Concurrent(Arc<dyn MessageListenerConcurrently>),
    Orderly(Arc<dyn MessageListenerOrderly>),
}

/// Settings of a [`PushConsumer`], until [`start`](Self::start).
///
/// Nothing is checked before `start`, which names the first item that is wrong, its value and its bounds.
#[must_use = "a consumer runs from `start` on"]
pub struct PushConsumerBuilder {
    config: PushConsumerConfig,
}

builder_items!(PushConsumerBuilder, set_own {
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
        /// How often offsets are stored. Default 5 s, from 10 ms to 1 h.
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
        /// Whether the members of the group share the messages or each gets all of them. Default clustering.
        ///
        /// In broadcasting each member has all queues and keeps its offsets in a file (see `offset_store_dir`), which it
        /// finds again by its client id; so without an `instance_name` that is `DEFAULT`, as in Java, and the members on
        /// one machine need names of their own. There is no retry topic: a failed message comes to this listener again
        /// after 5 s, and the offset waits for it; past `max_reconsume_times` it is passed over, with the event
        /// `message_dropped`.
        message_model: MessageModel => config.message_model;
        /// Worker threads for the listener. Default 20, from 1 to 1000.
        consume_threads: usize => config.consume_threads;
        /// Messages in one call of the listener, at the most. Default 1, from 1 to 1024.
        consume_batch_size: usize => config.consume_batch_size;
        /// How long a call of a concurrent listener may take. Then its messages are sent back, so that the offset can pass
        /// them; the call itself goes on, and its answer changes nothing. Counts from the call, not from the pull. Default
        /// 15 min, from 10 ms to 24 h. Looked at eight times within it, at least every 30 s.
        consume_timeout: Duration => config.consume_timeout;
        /// How far the first unfinished and the last cached offset of a queue may be apart before pulls wait. Default
        /// 2000, from 1 to 65535.
        consume_max_span: u32 => config.consume_max_span;
        /// Messages asked for in one pull. Default 32, from 1 to 1024; brokers give 32 at the most by default.
        pull_batch_size: i32 => config.pull_batch_size;
        /// Bytes asked for in one pull; brokers before 5 ignore it. Default 256 KiB, from 1 KiB to 16 MiB.
        pull_batch_bytes: i32 => config.pull_batch_bytes;
        /// Pause between two pulls of a queue. Default 0, up to 65.535 s.
        pull_interval: Duration => config.pull_interval;
        /// How long a broker may hold a pull that finds nothing. Default 15 s, from 1 s to 60 s. The request's own
        /// time-out is derived from it.
        pull_suspend: Duration => config.pull_suspend;
        /// Pause after a failed pull. Default 1 s, from 10 ms to 60 s.
        pull_error_delay: Duration => config.pull_error_delay;
        /// Messages of a queue that may be cached before pulls wait. Default 1000, from 1 to 65535.
        pull_threshold_for_queue: u32 => config.pull_threshold_for_queue;
        /// MiB of bodies of a queue that may be cached before pulls wait. Default 100, from 1 to 1024.
        pull_threshold_size_for_queue: u64 => config.pull_threshold_size_for_queue;
        /// Messages of a topic that may be cached, shared evenly by the queues held of it: each one's share takes the place
        /// of `pull_threshold_for_queue`. `None` (default) sets no such limit. From 1 to 6553500. (Java shares it among the
        /// queues of all topics.)
        pull_threshold_for_topic: Option<u32> => config.pull_threshold_for_topic;
        /// The same in MiB of bodies, in place of `pull_threshold_size_for_queue`. Default `None`, from 1 to 102400.
        pull_threshold_size_for_topic: Option<u64> => config.pull_threshold_size_for_topic;
        /// MiB of bodies that the whole consumer may cache before pulls of queues with cached messages wait. Default 512,
        /// from 1 to 1048576.
        pull_threshold_size_total: u64 => config.pull_threshold_size_total;
        /// How often a failed message is delivered again before it becomes a dead letter; `None` (default) is 16, and
        /// without limit when messages come in order. From 0 to 1000000.
        max_reconsume_times: Option<u32> => config.max_reconsume_times;
        /// How long running listeners of a queue that goes to another member may take to finish, so that the next owner
        /// starts behind them. Default 2 s, up to 10 min.
        revoke_grace: Duration => config.revoke_grace;
        /// How long a queue that may still have an owner is left alone before its stored offset is read, so that the
        /// owner can store it. Default 500 ms, up to 60 s. Not used when messages come in order: there the broker's lock
        /// tells when the owner is done.
        takeover_delay: Duration => config.takeover_delay;
        /// With [`listener_orderly`](Self::listener_orderly): messages with equal sharding keys (the property
        /// `__SHARDINGKEY`) come in order and different keys at once, instead of each queue in order. Messages without
        /// a key are in order among themselves. Default false.
        order_by_key: bool => config.order_by_key;
        /// How long an ordered queue, or key, waits after a suspension for which the listener set no time. Default 1 s,
        /// from 10 ms to 30 s. Source: `suspendCurrentQueueTimeMillis`.
        suspend_current_queue_time: Duration => config.suspend_current_queue_time;
        /// How often the brokers' locks of ordered queues are renewed. Default 20 s, from 10 ms to 25 s, and less than
        /// `lock_validity`. Source: `rocketmq.client.rebalance.lockInterval`.
        lock_interval: Duration => config.lock_interval;
        /// How long after the broker last confirmed its lock the messages of an ordered queue are handed out. Default 30
        /// s, from 100 ms to 50 s; brokers keep a lock for 60 s. Source: `rocketmq.client.rebalance.lockMaxLiveTime`.
        lock_validity: Duration => config.lock_validity;
        /// The largest body, in bytes, that is inflated; a message above it becomes a dead letter. Default 16 MiB, from 1
        /// KiB to 1 GiB.
        max_inflated_size: usize => config.max_inflated_size;
        /// Sends the subscription with each pull instead of relying on heartbeats alone. Default false.
        post_subscription_when_pull: bool => config.post_subscription_when_pull;
    }
});

impl PushConsumerBuilder {
    pub(super) fn new(group: impl Into<String>) -> Self {
        let config = PushConsumerConfig {
            client: ClientConfig::default(),
            group: group.into(),
            subscriptions: Vec::new(),
            message_model: MessageModel::default(),
            offset_store_dir: None,
            consume_from: ConsumeFromWhere::default(),
            strategy: Arc::new(AllocateAveragely),
            listener: None,
            listener_orderly: None,
            order_by_key: false,
            suspend_current_queue_time: Duration::from_secs(1),
            lock_interval: Duration::from_secs(20),
            lock_validity: Duration::from_secs(30),
            rebalance_listener: None,
            events: None,
            hooks: Hooks::default(),
            user_info: None,
            consume_threads: 20,
            topic_concurrency: BTreeMap::new(),
            consume_timeout: Duration::from_secs(15 * 60),
            consume_batch_size: 1,
            consume_max_span: 2000,
            pull_batch_size: 32,
            pull_batch_bytes: 256 * 1024,
            pull_interval: Duration::ZERO,
            pull_suspend: Duration::from_secs(15),
            pull_error_delay: Duration::from_secs(1),
            pull_threshold_for_queue: 1000,
            pull_threshold_size_for_queue: 100,
            pull_threshold_for_topic: None,
            pull_threshold_size_for_topic: None,
            pull_threshold_size_total: 512,
            max_reconsume_times: None,
            revoke_grace: Duration::from_secs(2),
            takeover_delay: Duration::from_millis(500),
            max_inflated_size: 16 << 20,
            post_subscription_when_pull: false,
        };
        Self { config }
    }

    /// Subscribes to a topic. Text is `*` for all messages, or tags joined with `||`;
    /// [`MessageSelector::sql92`] filters by properties. A second call for a topic replaces the first. All members of a
    /// group must subscribe to the same topics with the same expressions.
    pub fn subscribe(mut self, topic: impl Into<String>, selector: impl Into<MessageSelector>) -> Self {
        let topic = topic.into();
        self.config.subscriptions.retain(|(known, _)| *known != topic);
        self.config.subscriptions.push((topic, selector.into()));
        self
    }

    /// The folder for the offset files of broadcasting consumers; the file is `CLIENT_ID/GROUP/offsets.json` in it, in
    /// Java's format. Default `.rocketmq_offsets` in the home directory, as in Java.
    ///
    /// The file is replaced as a whole, never rewritten in place. One that is damaged does not stop a start: its
    /// predecessor counts, else `consume_from`; `offset_file_damaged` tells of it, and `offset_file_unwritable` of one that
    /// cannot be written. One that another process uses ends the start with an error.
    pub fn offset_store_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.config.offset_store_dir = Some(dir.into());
        self
    }

    /// What handles the messages, in parallel and in no order. Either this or
    /// [`listener_orderly`](Self::listener_orderly) is required.
    pub fn listener(mut self, listener: impl MessageListenerConcurrently) -> Self {
        self.config.listener = Some(Arc::new(listener));
        self
    }

    /// What handles the messages, those of a queue in order. All members of a group must do so: a queue is consumed by
    /// one member at a time, with the lock of its broker.
    pub fn listener_orderly(mut self, listener: impl MessageListenerOrderly) -> Self {
        self.config.listener_orderly = Some(Arc::new(listener));
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

    /// Hears of queues that come and go.
    pub fn rebalance_listener(mut self, listener: impl RebalanceListener) -> Self {
        self.config.rebalance_listener = Some(Arc::new(listener));
        self
    }

    /// Hears of problems; see [`ConsumerEvent`]. Called on service threads: return soon.
    pub fn event_listener(mut self, listener: impl Fn(&ConsumerEvent) + Send + Sync + 'static) -> Self {
        self.config.events = Some(Arc::new(listener));
        self
    }

    /// At most so many worker threads are in messages of this topic at a time, and the others go on with other topics.
    /// Messages of it that come again count too. Default: all threads. Concurrent listeners only. From 1 to 1000.
    pub fn topic_concurrency(mut self, topic: impl Into<String>, threads: usize) -> Self {
        self.config.topic_concurrency.insert(topic.into(), threads);
        self
    }

    /// Hears of each call of the listener; may be given more than once.
    pub fn consume_hook(mut self, hook: impl ConsumeHook) -> Self {
        self.config.hooks.add(hook);
        self
    }

    /// What the consumer tells about itself, beside its own figures, when an administrator asks for its running info
    /// (`mqadmin consumerStatus`). Called on a thread of the crate at each question: return soon.
    pub fn user_info(mut self, info: impl Fn() -> BTreeMap<String, String> + Send + Sync + 'static) -> Self {
        self.config.user_info = Some(Arc::new(info));
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
            return Err(Error::new(ErrorKind::Config, format!("a push consumer has no item '{name}'")));
        }
        Ok(self)
    }

    /// Checks the settings and starts the consumer. A cluster that is away is no error: the consumer waits for it, and
    /// the log says so.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a wrong item, [`ErrorKind::Broker`] when a broker refuses an SQL92 filter (the error
    /// names topic, expression and the broker's words; brokers that cannot be reached refuse nothing),
    /// [`ErrorKind::State`] when a consumer of the group runs under the same
    /// client id in this process, [`ErrorKind::Io`] when threads or sockets cannot be had.
    pub fn start(mut self) -> Result<PushConsumer> {
        self.config.check()?;
        if self.config.message_model == MessageModel::Broadcasting {
            // A name that the next run has again: it leads to the file with the offsets.
            self.config.client.instance_name.get_or_insert_with(|| "DEFAULT".to_owned());
        }
        PushConsumer::start(self.config)
    }
}

impl PushConsumerConfig {
    fn check(&self) -> Result<()> {
        topic::check_group(&self.group)?;
        self.client.check()?;
        for (name, _) in &self.subscriptions {
            topic::check_topic(name)?;
        }
        self.listener()?;
        let millis = |duration: Duration| duration.as_millis();
        check_range("consume_threads", self.consume_threads, 1..=1000)?;
        for (topic, threads) in &self.topic_concurrency {
            check_range(&format!("topic_concurrency of '{topic}'"), *threads, 1..=1000)?;
        }
        check_range("consume_timeout (ms)", millis(self.consume_timeout), 10..=86_400_000)?;
        check_range("consume_batch_size", self.consume_batch_size, 1..=1024)?;
        check_range("consume_max_span", self.consume_max_span, 1..=65_535)?;
        check_range("pull_batch_size", self.pull_batch_size, 1..=1024)?;
        check_range("pull_batch_bytes", self.pull_batch_bytes, 1024..=16 << 20)?;
        check_range("pull_interval (ms)", millis(self.pull_interval), 0..=65_535)?;
        check_range("pull_suspend (ms)", millis(self.pull_suspend), 1000..=60_000)?;
        check_range("pull_error_delay (ms)", millis(self.pull_error_delay), 10..=60_000)?;
        check_range("pull_threshold_for_queue", self.pull_threshold_for_queue, 1..=65_535)?;
        check_range("pull_threshold_size_for_queue (MiB)", self.pull_threshold_size_for_queue, 1..=1024)?;
        check_range("pull_threshold_for_topic", self.pull_threshold_for_topic.unwrap_or(1), 1..=6_553_500)?;
        let of_topic = self.pull_threshold_size_for_topic.unwrap_or(1);
        check_range("pull_threshold_size_for_topic (MiB)", of_topic, 1..=102_400)?;
        check_range("pull_threshold_size_total (MiB)", self.pull_threshold_size_total, 1..=1 << 20)?;
        check_range("max_reconsume_times", self.max_reconsume_times.unwrap_or(16), 0..=1_000_000)?;
        check_range("revoke_grace (ms)", millis(self.revoke_grace), 0..=600_000)?;
        check_range("takeover_delay (ms)", millis(self.takeover_delay), 0..=60_000)?;
        check_range("suspend_current_queue_time (ms)", millis(self.suspend_current_queue_time), {
            millis(*SUSPEND.start())..=millis(*SUSPEND.end())
        })?;
        check_range("lock_validity (ms)", millis(self.lock_validity), 100..=50_000)?;
        check_range("lock_interval (ms)", millis(self.lock_interval), {
            10..=millis(self.lock_validity).saturating_sub(1).min(25_000)
        })?;
        check_range("max_inflated_size", self.max_inflated_size, 1024..=1 << 30)
    }

    /// The one listener.
    pub(crate) fn listener(&self) -> Result<Listener> {
        match (&self.listener, &self.listener_orderly) {
            (Some(listener), None) if !self.order_by_key => Ok(Listener::Concurrent(listener.clone())),
            (None, Some(listener)) => Ok(Listener::Orderly(listener.clone())),
            (Some(_), None) => Err(Error::new(ErrorKind::Config, "order_by_key needs listener_orderly, not listener")),
            (Some(_), Some(_)) => {
                Err(Error::new(ErrorKind::Config, "listener and listener_orderly are both set; give one of them"))
            }
            (None, None) => Err(Error::new(
                ErrorKind::Config,
                "listener is not set; give one that handles the messages, or a listener_orderly",
            )),
        }
    }

    pub(crate) fn is_orderly(&self) -> bool {
        self.listener_orderly.is_some()
    }

    pub(crate) fn limit_plan(&self) -> LimitPlan {
        LimitPlan {
            queue: Limits {
                messages: self.pull_threshold_for_queue as usize,
                bytes: self.pull_threshold_size_for_queue * MIB,
                span: i64::from(self.consume_max_span),
            },
            topic_messages: self.pull_threshold_for_topic.map(|messages| messages as usize),
            topic_bytes: self.pull_threshold_size_for_topic.map(|size| size * MIB),
        }
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.pull_threshold_size_total * MIB
    }

    /// Where the files with offsets are.
    pub(crate) fn offset_dir(&self) -> PathBuf {
        self.offset_store_dir.clone().unwrap_or_else(LocalFile::default_dir)
    }

    /// The limit as a number; the default is 16, and none when messages come in order (field report 43).
    pub(crate) fn reconsume_limit(&self) -> i32 {
        let default = if self.is_orderly() { i32::MAX } else { 16 };
        self.max_reconsume_times.map_or(default, |times| i32::try_from(times).unwrap_or(i32::MAX))
    }
}

impl fmt::Debug for PushConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConsumerBuilder")
            .field("group", &self.config.group)
            .field("subscriptions", &self.config.subscriptions)
            .field("client", &self.config.client)
            .finish_non_exhaustive()
    }
}
