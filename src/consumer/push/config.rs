//! Settings of a push consumer. Source of names, defaults and bounds: `DefaultMQPushConsumer` (02-consumer 1.5).

use super::PushConsumer;
use super::hooks::{ConsumeHook, Hooks};
use crate::config::{builder_items, check_range, client_items};
use crate::consumer::listener::MessageListenerConcurrently;
use crate::consumer::listener_orderly::{MessageListenerOrderly, SUSPEND};
use crate::consumer::member::MemberConfig;
use crate::consumer::member::config::{MIB, member_items};
use crate::consumer::message_model::MessageModel;
use crate::consumer::process_queue::LimitPlan;
use crate::consumer::selector::MessageSelector;
use crate::error::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type UserInfo = Arc<dyn Fn() -> BTreeMap<String, String> + Send + Sync>;

pub(crate) struct PushConsumerConfig {
    pub(crate) listener: Option<Arc<dyn MessageListenerConcurrently>>,
    pub(crate) listener_orderly: Option<Arc<dyn MessageListenerOrderly>>,
    pub(crate) order_by_key: bool,
    pub(crate) suspend_current_queue_time: Duration,
    pub(crate) lock_interval: Duration,
    pub(crate) lock_validity: Duration,
    pub(crate) hooks: Hooks,
    pub(crate) user_info: Option<UserInfo>,
    pub(crate) consume_threads: usize,
    pub(crate) topic_concurrency: BTreeMap<String, usize>,
    pub(crate) consume_timeout: Duration,
    pub(crate) consume_batch_size: usize,
    pub(crate) pull_interval: Duration,
    pub(crate) pull_threshold_for_topic: Option<u32>,
    pub(crate) pull_threshold_size_for_topic: Option<u64>,
    pub(crate) pull_threshold_size_total: u64,
    pub(crate) max_reconsume_times: Option<u32>,
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
    member: MemberConfig,
    config: PushConsumerConfig,
}

client_items!(PushConsumerBuilder, set_client, member.client);
member_items!(PushConsumerBuilder, set_member, member);

builder_items!(PushConsumerBuilder, set_own {
    text {}
    values {
        /// Whether the members of the group share the messages or each gets all of them. Default clustering.
        ///
        /// In broadcasting each member has all queues and keeps its offsets in a file (see `offset_store_dir`), which it
        /// finds again by its client id; so without an `instance_name` that is `DEFAULT`, as in Java, and the members on
        /// one machine need names of their own. There is no retry topic: a failed message comes to this listener again
        /// after 5 s, and the offset waits for it; past `max_reconsume_times` it is passed over, with the event
        /// `message_dropped`.
        message_model: MessageModel => member.message_model;
        /// Worker threads for the listener. Default 20, from 1 to 1000.
        consume_threads: usize => config.consume_threads;
        /// Messages in one call of the listener, at the most. Default 1, from 1 to 1024.
        consume_batch_size: usize => config.consume_batch_size;
        /// How long a call of a concurrent listener may take. Then its messages are sent back, so that the offset can pass
        /// them; the call itself goes on, and its answer changes nothing. Counts from the call, not from the pull. Default
        /// 15 min, from 10 ms to 24 h. Looked at eight times within it, at least every 30 s.
        consume_timeout: Duration => config.consume_timeout;
        /// Messages asked for in one pull. Default 32, from 1 to 1024; brokers give 32 at the most by default.
        pull_batch_size: i32 => member.pull_batch_size;
        /// Pause between two pulls of a queue. Default 0, up to 65.535 s.
        pull_interval: Duration => config.pull_interval;
        /// How long a broker may hold a pull that finds nothing. Default 15 s, from 1 s to 60 s. The request's own
        /// time-out is derived from it.
        pull_suspend: Duration => member.pull_suspend;
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
        revoke_grace: Duration => member.revoke_grace;
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
        /// Sends the subscription with each pull instead of relying on heartbeats alone. Default false.
        post_subscription_when_pull: bool => config.post_subscription_when_pull;
    }
});

impl PushConsumerBuilder {
    pub(super) fn new(group: impl Into<String>) -> Self {
        let config = PushConsumerConfig {
            listener: None,
            listener_orderly: None,
            order_by_key: false,
            suspend_current_queue_time: Duration::from_secs(1),
            lock_interval: Duration::from_secs(20),
            lock_validity: Duration::from_secs(30),
            hooks: Hooks::default(),
            user_info: None,
            consume_threads: 20,
            topic_concurrency: BTreeMap::new(),
            consume_timeout: Duration::from_secs(15 * 60),
            consume_batch_size: 1,
            pull_interval: Duration::ZERO,
            pull_threshold_for_topic: None,
            pull_threshold_size_for_topic: None,
            pull_threshold_size_total: 512,
            max_reconsume_times: None,
            post_subscription_when_pull: false,
        };
        Self { member: MemberConfig::new(group, 32, Duration::from_secs(15)), config }
    }

    /// Subscribes to a topic. Text is `*` for all messages, or tags joined with `||`;
    /// [`MessageSelector::sql92`] filters by properties. A second call for a topic replaces the first. All members of a
    /// group must subscribe to the same topics with the same expressions.
    pub fn subscribe(mut self, topic: impl Into<String>, selector: impl Into<MessageSelector>) -> Self {
        self.member.subscribe(topic.into(), selector.into());
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
        if self.set_client(name, value)? || self.set_member(name, value)? || self.set_own(name, value)? {
            return Ok(self);
        }
        Err(Error::new(ErrorKind::Config, format!("a push consumer has no item '{name}'")))
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
        self.member.check()?;
        self.config.check()?;
        PushConsumer::start(self.member, self.config)
    }
}

impl PushConsumerConfig {
    fn check(&self) -> Result<()> {
        self.listener()?;
        let millis = |duration: Duration| duration.as_millis();
        check_range("consume_threads", self.consume_threads, 1..=1000)?;
        for (topic, threads) in &self.topic_concurrency {
            check_range(&format!("topic_concurrency of '{topic}'"), *threads, 1..=1000)?;
        }
        check_range("consume_timeout (ms)", millis(self.consume_timeout), 10..=86_400_000)?;
        check_range("consume_batch_size", self.consume_batch_size, 1..=1024)?;
        check_range("pull_interval (ms)", millis(self.pull_interval), 0..=65_535)?;
        check_range("pull_threshold_for_topic", self.pull_threshold_for_topic.unwrap_or(1), 1..=6_553_500)?;
        let of_topic = self.pull_threshold_size_for_topic.unwrap_or(1);
        check_range("pull_threshold_size_for_topic (MiB)", of_topic, 1..=102_400)?;
        check_range("pull_threshold_size_total (MiB)", self.pull_threshold_size_total, 1..=1 << 20)?;
        check_range("max_reconsume_times", self.max_reconsume_times.unwrap_or(16), 0..=1_000_000)?;
        check_range("suspend_current_queue_time (ms)", millis(self.suspend_current_queue_time), {
            millis(*SUSPEND.start())..=millis(*SUSPEND.end())
        })?;
        check_range("lock_validity (ms)", millis(self.lock_validity), 100..=50_000)?;
        check_range("lock_interval (ms)", millis(self.lock_interval), {
            10..=millis(self.lock_validity).saturating_sub(1).min(25_000)
        })
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

    pub(crate) fn limit_plan(&self, member: &MemberConfig) -> LimitPlan {
        LimitPlan {
            queue: member.queue_limits(),
            topic_messages: self.pull_threshold_for_topic.map(|messages| messages as usize),
            topic_bytes: self.pull_threshold_size_for_topic.map(|size| size * MIB),
        }
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.pull_threshold_size_total * MIB
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
            .field("group", &self.member.group)
            .field("subscriptions", &self.member.subscriptions)
            .field("client", &self.member.client)
            .finish_non_exhaustive()
    }
}
