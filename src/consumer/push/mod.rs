//! The push consumer: messages come to a listener, on worker threads.
//!
//! `config` builds it, `core` is what the service threads see of it, `membership` takes and gives up queues, `puller`
//! keeps one pull a queue going, `concurrent` runs the listener behind the seam `service`, `send_back` stores failed messages elsewhere,
//! `describe` shows it.

mod concurrent;
mod config;
mod core;
mod describe;
mod direct;
mod hooks;
mod membership;
mod puller;
mod send_back;
mod service;
mod stats;
mod stop;
mod watch;

pub use config::PushConsumerBuilder;
pub use hooks::{ConsumeCall, ConsumeHook, ConsumeOutcome, ConsumeReturn};
pub use stats::{ConsumerStats, Rates, TopicStats};
pub use stop::ShutdownReport;

use crate::consumer::health::{Health, Problems};
use crate::consumer::held::HeldTable;
use crate::consumer::process_queue::Limits;
use crate::consumer::queue_state::QueueState;
use crate::consumer::rebalance::Rebalancer;
use crate::error::Result;
use crate::instance::role::ConsumerRole;
use crate::instance::{self, ClientInstance};
use crate::message::{MessageQueue, topic};
use crate::protocol::SubscriptionData;
use crate::sync::{Mutex, Rank, RwLock};
use crate::time::Clock;
use concurrent::{ConcurrentConsumeService, Parts};
use config::PushConsumerConfig;
use core::Core;
use crossbeam::channel::unbounded;
use direct::DirectThreads;
use hooks::Observer;
use send_back::SendBack;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use stop::Stop;
use watch::GroupWatch;

/// Time that a consumer takes to stop when its handle is dropped.
const STOP_ON_DROP: Duration = Duration::from_secs(5);

/// A member of a consumer group, from [`start`](PushConsumerBuilder::start) to [`shutdown`](Self::shutdown).
///
/// It joins its group, gets its share of the queues, hands each message to the listener at least once, and shares the
/// queues anew when members come or go. Dropping it stops it, with 5 s for running listeners.
///
/// ```
/// use rocketmq_sync::{ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, EmbeddedCluster, MessageExt, PushConsumer};
/// use std::time::Duration;
/// # fn main() -> rocketmq_sync::Result<()> {
/// let cluster = EmbeddedCluster::builder().topic("orders", 4).start()?;
/// let consumer = PushConsumer::builder("billing")
///     .name_servers(cluster.name_servers())
///     .subscribe("orders", "paid || refunded")
///     .listener(|messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
///         println!("{} of {}", messages.len(), messages[0].topic());
///         ConsumeConcurrentlyStatus::ConsumeSuccess
///     })
///     .start()?;
/// let report = consumer.shutdown(Duration::from_secs(10));
/// assert!(report.is_clean());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DefaultMQPushConsumer")]
pub struct PushConsumer {
    core: Arc<Core>,
    stop: Arc<Stop>,
}

impl PushConsumer {
    /// Settings for a consumer of this group.
    pub fn builder(group: impl Into<String>) -> PushConsumerBuilder {
        PushConsumerBuilder::new(group)
    }

    fn start(config: PushConsumerConfig) -> Result<Self> {
        let instance = instance::acquire(&config.client)?;
        let core = Self::wire(config, &instance).inspect_err(|_| instance::release(&instance))?;
        let role: Arc<dyn ConsumerRole> = core.clone();
        if let Err(error) = instance.add_consumer(&role) {
            core.service.join(crate::time::Deadline::after(STOP_ON_DROP));
            instance::release(&instance);
            return Err(error);
        }
        let topics = core.topics();
        if let Err(error) = instance.introduce(&topics) {
            log::warn!("group '{}' waits for its name servers {:?}: {error}", core.group, instance.name_servers());
        }
        instance.rebalance_soon();
        let stop = Arc::new(Stop::new(core.clone()));
        Ok(Self { core, stop })
    }

    /// Builds the parts, lowest first.
    fn wire(config: PushConsumerConfig, instance: &Arc<ClientInstance>) -> Result<Arc<Core>> {
        let group: Arc<str> = Arc::from(config.group.as_str());
        let retry_topic: Arc<str> = Arc::from(topic::retry_topic(&group));
        let version = Clock::system().wall_millis();
        let mut subscriptions = BTreeMap::new();
        let own = (retry_topic.to_string(), "*".to_owned());
        for (topic, expression) in config.subscriptions.iter().chain([&own]) {
            let data = SubscriptionData::tag_expression(topic, expression, version)?;
            subscriptions.insert(Arc::from(topic.as_str()), Arc::new(data));
        }
        let limits = Limits {
            messages: config.pull_threshold_for_queue as usize,
            bytes: config.queue_bytes(),
            span: i64::from(config.consume_max_span),
        };
        let observer = Arc::new(Observer::new(group.clone(), config.hooks.clone()));
        let Some(listener) = config.listener.clone() else { unreachable!("checked before the start") };
        let service = Box::new(ConcurrentConsumeService::start(Parts {
            instance: instance.clone(),
            listener,
            send_back: SendBack::new(instance.clone(), group.clone(), config.reconsume_limit()),
            observer: observer.clone(),
            events: config.events.clone(),
            threads: config.consume_threads,
            batch_size: config.consume_batch_size,
            limits,
            total_bytes: config.total_bytes(),
        })?);
        let direct = DirectThreads::new()?;
        let rebalancer = Rebalancer::new(group.clone(), instance.client_id().clone(), config.strategy.clone());
        Ok(Arc::new_cyclic(|me| Core {
            me: me.clone(),
            held: HeldTable::new(group.clone()),
            group,
            retry_topic,
            instance: instance.clone(),
            subscriptions: RwLock::new(Rank::Leaf, subscriptions),
            limits,
            service,
            observer,
            direct,
            started: SystemTime::now(),
            stopping: AtomicBool::new(false),
            rebalancer: Mutex::new(Rank::Round, rebalancer),
            storing: Mutex::new(Rank::Storing, ()),
            problems: Problems::new(),
            watch: GroupWatch::new(instance.executor(), me.clone()),
            twins: Mutex::new(Rank::Leaf, BTreeMap::new()),
            config,
        }))
    }

    /// The consumer group.
    pub fn group(&self) -> &str {
        &self.core.group
    }

    /// The id under which brokers list this member.
    pub fn client_id(&self) -> &str {
        self.core.instance.client_id()
    }

    /// The queues held now, with where each stands; in order.
    pub fn assignment(&self) -> Vec<QueueState> {
        self.core.held.all().iter().map(|held| held.state()).collect()
    }

    /// How the consumer is: the problems known, and the queues that stand still. Makes no request.
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// Messages handled successfully since the start.
    pub fn consumed(&self) -> u64 {
        self.core.observer.stats.counts().0
    }

    /// Messages that the listener failed since the start, each time counted.
    pub fn failed(&self) -> u64 {
        self.core.observer.stats.counts().1
    }

    /// What was pulled and consumed since the start, by topic, with the rates of the last minute. Makes no request.
    pub fn stats(&self) -> ConsumerStats {
        self.core.stats()
    }

    /// Asks the brokers how many messages of each queue held are not consumed yet; in order.
    ///
    /// # Errors
    /// When a broker cannot be asked; the error names the queue.
    pub fn lag(&self) -> Result<Vec<(MessageQueue, i64)>> {
        let (done, answers) = unbounded();
        for held in self.core.held.all() {
            let master = self.core.instance.master(held.queue.broker_name())?;
            let (done, asked) = (done.clone(), held.clone());
            let timeout = self.core.config.client.request_timeout;
            self.core.instance.api().max_offset(&master, &held.queue, timeout, move |answer| {
                let _ = done.send((asked, answer));
            });
        }
        drop(done);
        let mut lags = Vec::new();
        for (held, answer) in answers {
            let end = answer.map_err(|error| error.context(format!("asking for the end of {}", held.queue)))?;
            // A queue whose start is not known yet has all of it ahead, which only its start offset can tell.
            let at = held.commit_offset().unwrap_or(end);
            lags.push((held.queue.clone(), (end - at).max(0)));
        }
        lags.sort();
        Ok(lags)
    }

    /// Stops: takes no new messages, gives running listeners until `timeout`, stores the offsets, leaves the group,
    /// ends the threads. A second call returns the report of the first. On a thread of this crate, that is inside a
    /// listener, it starts the stop, which then waits for that listener too, and returns at once with a report that is
    /// not clean.
    pub fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        if crate::thread::is_service_thread() {
            let stop = self.stop.clone();
            let begun = crate::thread::spawn_named("rmq-stop", move || {
                stop.run(timeout);
            });
            if let Err(error) = begun {
                log::error!("the stop of group '{}' could not begin: {error}", self.core.group);
            }
            return self.stop.under_way();
        }
        self.stop.run(timeout)
    }
}

impl Drop for PushConsumer {
    fn drop(&mut self) {
        self.shutdown(STOP_ON_DROP);
    }
}

impl fmt::Debug for PushConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConsumer").field("group", &self.core.group).field("client_id", &self.client_id()).finish()
    }
}
