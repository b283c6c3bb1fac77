//! The push consumer: messages come to a listener, on worker threads.
//!
//! `config` builds it, `core` is what it is made of, `kind` what it does in its own way as a member of its group.
//! `concurrent` and `orderly` run the listener behind the seam `service`, `send_back` stores failed messages elsewhere,
//! `describe` shows it.

mod concurrent;
mod config;
mod control;
mod core;
mod crew;
mod describe;
mod direct;
mod hooks;
mod kind;
mod orderly;
mod send_back;
mod service;
mod stats;

pub use config::PushConsumerBuilder;
pub use hooks::{ConsumeCall, ConsumeHook, ConsumeOutcome, ConsumeReturn};
pub use stats::{ConsumerStats, Rates, TopicStats};

use crate::config::check_range;
use crate::consumer::health::Health;
use crate::consumer::held::{HeldQueue, HeldTable};
use crate::consumer::member::{Member, MemberConfig, Stop, Subscriptions};
use crate::consumer::order::OrderMode;
use crate::consumer::order::seat::LockTimes;
use crate::consumer::queue_state::QueueState;
use crate::consumer::report::ShutdownReport;
use crate::consumer::selector::MessageSelector;
use crate::consumer::suspension::Scope;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::role::ConsumerRole;
use crate::instance::{self, ClientInstance};
use crate::message::{MessageQueue, topic};
use concurrent::{ConcurrentConsumeService, Parts};
use config::{Listener, PushConsumerConfig};
use core::Core;
use direct::DirectThreads;
use hooks::Observer;
use orderly::OrderlyConsumeService;
use orderly::keeper::{LockKeeper, LockReturns};
use send_back::SendBack;
use service::{Budget, ConsumeService, Ledger};
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

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

    fn start(member: MemberConfig, config: PushConsumerConfig) -> Result<Self> {
        let instance = instance::acquire(&member.client)?;
        let core = Self::wire(member, config, &instance).inspect_err(|_| instance::release(&instance))?;
        let role: Arc<dyn ConsumerRole> = core.clone();
        // Brokers are asked before they hear of us: a filter that they refuse must not reach the group.
        let accepted = core.member.check_filters(core.member.subscriptions.all().values().map(|data| &**data));
        if let Err(error) = accepted.and_then(|()| instance.add_consumer(&role)) {
            core.service.join(crate::time::Deadline::after(STOP_ON_DROP));
            instance::release(&instance);
            return Err(error);
        }
        core.member.tell_of_file();
        core.member.introduce(&core.member.topics());
        let stop = Arc::new(Stop::new(core.clone()));
        Ok(Self { core, stop })
    }

    /// Builds the parts, lowest first.
    fn wire(member: MemberConfig, config: PushConsumerConfig, instance: &Arc<ClientInstance>) -> Result<Arc<Core>> {
        let group: Arc<str> = Arc::from(member.group.as_str());
        let retry_topic: Arc<str> = Arc::from(topic::retry_topic(&group));
        let is_broadcasting = member.is_broadcasting();
        let own = (!is_broadcasting).then(|| (retry_topic.to_string(), MessageSelector::all()));
        let subscriptions = Subscriptions::new(member.subscriptions.iter().chain(&own))?;
        let store = Member::open_store(&member, instance)?;
        let observer = Arc::new(Observer::new(group.clone(), config.hooks.clone()));
        let mut send_back = SendBack::new(instance.clone(), group.clone(), config.reconsume_limit());
        if is_broadcasting {
            send_back = send_back.that_stays_here(member.events.clone());
        }
        // The core does not exist yet when its parts are built.
        let core: Arc<OnceLock<Weak<Core>>> = Arc::default();
        let lock_returns = LockReturns::new(instance.clone(), group.clone(), member.client.request_timeout, {
            let core = core.clone();
            move || {
                if let Some(core) = core.get().and_then(Weak::upgrade) {
                    core.look_for_locks();
                }
            }
        });
        let (service, held): (Box<dyn ConsumeService>, _) = match config.listener()? {
            Listener::Concurrent(listener) => {
                let service = ConcurrentConsumeService::start(Parts {
                    instance: instance.clone(),
                    listener,
                    send_back,
                    observer: observer.clone(),
                    events: member.events.clone(),
                    threads: config.consume_threads,
                    topic_concurrency: config.topic_concurrency.clone(),
                    consume_timeout: config.consume_timeout,
                    batch_size: config.consume_batch_size,
                    total_bytes: config.total_bytes(),
                })?;
                (Box::new(service), HeldTable::new(group.clone()))
            }
            Listener::Orderly(listener) => {
                let ledger = Ledger {
                    instance: instance.clone(),
                    budget: Budget::new(config.total_bytes()),
                    observer: observer.clone(),
                };
                let service = OrderlyConsumeService::start(orderly::Parts {
                    listener,
                    ledger,
                    send_back,
                    events: member.events.clone(),
                    returns: lock_returns.clone(),
                    threads: config.consume_threads,
                    batch_size: config.consume_batch_size,
                    suspend: config.suspend_current_queue_time,
                    reconsume_limit: config.reconsume_limit(),
                })?;
                let times = LockTimes { interval: config.lock_interval, validity: config.lock_validity };
                let mode = OrderMode { by_key: config.order_by_key };
                // Each member of a broadcasting group has all queues, so nobody is to be kept out.
                (Box::new(service), HeldTable::in_order(group.clone(), mode, (!is_broadcasting).then_some(times)))
            }
        };
        let direct = DirectThreads::new()?;
        let held = held.with_limits(config.limit_plan(&member));
        let wired = Arc::new_cyclic(|me: &Weak<Core>| Core {
            me: me.clone(),
            locks: held.needs_locks().then(|| LockKeeper::new(instance.executor(), me.clone())),
            lock_returns,
            member: Member::new(member, instance, store, subscriptions, held, me.clone()),
            retry_topic,
            service,
            observer,
            direct,
            config,
        });
        let _ = core.set(Arc::downgrade(&wired));
        Ok(wired)
    }

    /// The consumer group.
    pub fn group(&self) -> &str {
        &self.core.member.group
    }

    /// The id under which brokers list this member.
    pub fn client_id(&self) -> &str {
        self.core.member.instance.client_id()
    }

    /// The queues held now, with where each stands; in order.
    pub fn assignment(&self) -> Vec<QueueState> {
        self.core.member.held.all().iter().map(|held| held.state()).collect()
    }

    /// How the consumer is: the problems known, and the queues that stand still. Makes no request.
    pub fn health(&self) -> Health {
        self.core.member.health(HeldQueue::state)
    }

    /// Messages handled successfully since the start.
    pub fn consumed(&self) -> u64 {
        self.core.observer.stats.counts().0
    }

    /// Messages that the listener failed since the start, each time counted.
    pub fn failed(&self) -> u64 {
        self.core.observer.stats.counts().1
    }

    /// Changes the number of worker threads. New ones begin at once; those in excess end when their listener has returned.
    /// Nothing that is pulled is lost by it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) outside 1 to 1000, [`ErrorKind::State`](crate::ErrorKind::State) once
    /// the consumer stops, [`ErrorKind::Io`](crate::ErrorKind::Io) when threads cannot be had.
    pub fn set_consume_threads(&self, threads: usize) -> Result<()> {
        check_range("consume_threads", threads, 1..=1000)?;
        self.core.member.check_running()?;
        self.core.service.set_threads(threads)
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
        self.core.member.lag()
    }

    /// Subscribes to one more topic, or to a topic with another selector, at once: the route is fetched, brokers hear of
    /// it, and the queues are shared out. The same selector again changes nothing.
    ///
    /// A pull that a broker holds keeps its old filter until it is answered, after `pull_suspend` at the latest. All
    /// members of a group must change alike: until they have, each heartbeat replaces the others' set, and
    /// `subscription_conflict` says so. Not to be called by an event listener, whose thread the answers need.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an illegal topic or expression,
    /// [`ErrorKind::Broker`](crate::ErrorKind::Broker) when a broker refuses an SQL92 filter,
    /// [`ErrorKind::State`](crate::ErrorKind::State) after the stop. Name servers or brokers that are away are no error.
    pub fn subscribe(&self, topic: impl AsRef<str>, selector: impl Into<MessageSelector>) -> Result<()> {
        self.core.member.subscribe(topic.as_ref(), &selector.into())
    }

    /// Ends the subscription of a topic: brokers hear of it at once, running listeners get `revoke_grace` to end, the
    /// offsets are stored, and its queues are given up. What the group failed of it before still comes from the retry
    /// topic, which stays. `false` when the topic was not subscribed.
    ///
    /// Queues are shared among all members, also those that do not subscribe: while others read the topic, the share of
    /// this member has no reader. Stop the consumer to leave its queues to the others.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for the group's retry topic,
    /// [`ErrorKind::State`](crate::ErrorKind::State) after the stop.
    pub fn unsubscribe(&self, topic: impl AsRef<str>) -> Result<bool> {
        let (topic, member) = (topic.as_ref(), &self.core.member);
        member.check_running()?;
        if *topic == *self.core.retry_topic {
            let text = format!("'{topic}' is the group's own retry topic, which stays subscribed");
            return Err(Error::new(ErrorKind::Config, text));
        }
        Ok(member.unsubscribe(topic))
    }

    /// Suspends the consumer: pulls stop, and messages that are cached already are not handed out either. Those that a
    /// worker has taken, which may be at this moment, are still handled. The consumer stays a member of its group,
    /// keeps its queues, sends its heartbeats, and goes on storing offsets.
    ///
    /// The consumer, each topic and each queue are suspended and resumed on their own; a queue runs while none of the
    /// three is suspended. All of it is kept when a queue goes and comes back, and when its offset is reset. A queue that
    /// is given up while it is suspended may repeat messages that were handled ahead of others. Java's `suspend` only
    /// stops pulls.
    pub fn suspend(&self) {
        self.core.set_suspended(Scope::Consumer, true);
    }

    /// Ends [`suspend`](Self::suspend). Topics and queues suspended by themselves stay so.
    pub fn resume(&self) {
        self.core.set_suspended(Scope::Consumer, false);
    }

    /// Whether the consumer as a whole is suspended. [`QueueState::is_suspended`] tells it of a queue.
    pub fn is_suspended(&self) -> bool {
        self.core.member.held.is_suspended()
    }

    /// As [`suspend`](Self::suspend), for the queues of one topic, held now or later. What the group failed before comes
    /// from the retry topic, `%RETRY%` and the group, which is a topic of its own here.
    pub fn suspend_topic(&self, topic: &str) {
        self.core.set_suspended(Scope::Topic(topic), true);
    }

    /// Ends [`suspend_topic`](Self::suspend_topic).
    pub fn resume_topic(&self, topic: &str) {
        self.core.set_suspended(Scope::Topic(topic), false);
    }

    /// As [`suspend`](Self::suspend), for one queue, held now or later.
    pub fn suspend_queue(&self, queue: &MessageQueue) {
        self.core.set_suspended(Scope::Queue(queue), true);
    }

    /// Ends [`suspend_queue`](Self::suspend_queue).
    pub fn resume_queue(&self, queue: &MessageQueue) {
        self.core.set_suspended(Scope::Queue(queue), false);
    }

    /// Stops: takes no new messages, gives running listeners until `timeout`, stores the offsets, leaves the group,
    /// ends the threads. A second call returns the report of the first. On a thread of this crate, that is inside a
    /// listener, it starts the stop, which then waits for that listener too, and returns at once with a report that is
    /// not clean.
    pub fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        self.stop.shutdown(timeout)
    }
}

impl Drop for PushConsumer {
    fn drop(&mut self) {
        self.shutdown(STOP_ON_DROP);
    }
}

impl fmt::Debug for PushConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConsumer")
            .field("group", &self.core.member.group)
            .field("client_id", &self.client_id())
            .finish()
    }
}
