//! The lite pull consumer: messages are fetched ahead, and the user's threads take them by `poll`.
//!
//! `config` builds it, `core` is what it is made of, `kind` what it does in its own way as a member of its group,
//! `assign` how it comes to its queues. Messages wait in the `buffer`, `commit` stores what is handled, `seek` asks for
//! offsets and moves.
//! It has no thread of its own: service threads fetch, the user's threads do the rest.

mod assign;
mod buffer;
mod commit;
mod config;
mod core;
mod describe;
mod kind;
mod seek;
mod shelf;
mod topic_watch;

pub use config::LitePullConsumerBuilder;

use crate::consumer::health::Health;
use crate::consumer::held::HeldTable;
use crate::consumer::member::{Member, MemberConfig, Stop, Subscriptions};
use crate::consumer::queue_state::QueueState;
use crate::consumer::report::ShutdownReport;
use crate::consumer::selector::MessageSelector;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::role::ConsumerRole;
use crate::instance::scheduled::Job;
use crate::instance::{self, ClientInstance};
use crate::message::{MessageExt, MessageQueue, topic};
use crate::time::{Deadline, to_millis};
use buffer::{Buffer, Polled};
use config::LitePullConsumerConfig;
use core::{Core, Mode};
use seek::End;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};
use topic_watch::TopicWatch;

/// A consumer whose user asks for messages, from [`start`](LitePullConsumerBuilder::start) to
/// [`shutdown`](Self::shutdown).
///
/// It reads either topics that it [subscribes](Self::subscribe) to, sharing their queues with the other members of its
/// group, or queues that are [assigned](Self::assign) to it by hand. Messages are fetched ahead within limits;
/// [`poll`](Self::poll) hands them out, to as many threads as call it.
///
/// # What counts as handled
///
/// At least once is the promise. With `auto_commit` (the default) the messages of a poll count as handled when **the same
/// thread** polls again (also when that poll ends at once because the consumer is stopped or woken), or calls
/// [`commit`](Self::commit) or [`shutdown`](Self::shutdown). So end a polling thread with one of these: a thread that
/// just ends may have panicked, and its last messages come again. Without `auto_commit` only commits count. What is
/// handled is stored by commits at once, else every `auto_commit_interval`, when a queue goes to another member, and by
/// the stop.
///
/// ```
/// use rocketmq_sync::{ConsumeFromWhere, EmbeddedCluster, LitePullConsumer, Message, Producer};
/// use std::time::Duration;
/// # fn main() -> rocketmq_sync::Result<()> {
/// let cluster = EmbeddedCluster::builder().topic("orders", 4).start()?;
/// let producer = Producer::builder("shop").name_servers(cluster.name_servers()).start()?;
/// producer.send(&Message::new("orders", "one order"))?;
/// let consumer = LitePullConsumer::builder("billing")
///     .name_servers(cluster.name_servers())
///     .subscribe("orders", "*")
///     .consume_from(ConsumeFromWhere::FirstOffset)
///     .start()?;
/// let messages = consumer.poll(Duration::from_secs(30))?;
/// assert_eq!(messages[0].body(), b"one order");
/// consumer.commit()?;
/// assert!(consumer.shutdown(Duration::from_secs(10)).is_clean());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DefaultLitePullConsumer")]
pub struct LitePullConsumer {
    core: Arc<Core>,
    stop: Arc<Stop>,
}

fn modes_exclude_each_other() -> Error {
    Error::new(ErrorKind::State, "a lite pull consumer either subscribes or is assigned queues, never both")
}

impl LitePullConsumer {
    /// Settings for a consumer of this group.
    pub fn builder(group: impl Into<String>) -> LitePullConsumerBuilder {
        LitePullConsumerBuilder::new(group)
    }

    fn start(mut member: MemberConfig, mut config: LitePullConsumerConfig) -> Result<Self> {
        let (subscriptions, assigned) = (std::mem::take(&mut member.subscriptions), config.assigned.take());
        let instance = instance::acquire(&member.client)?;
        let core = Self::wire(member, config, &instance).inspect_err(|_| instance::release(&instance))?;
        let begin = || -> Result<()> {
            for (topic, selector) in &subscriptions {
                core.enter_subscribe(topic, selector)?;
                core.member.add_subscription(topic, selector)?;
            }
            let role: Arc<dyn ConsumerRole> = core.clone();
            instance.add_consumer(&role)
        };
        if let Err(error) = begin() {
            instance::release(&instance);
            return Err(error);
        }
        core.member.tell_of_file();
        let consumer = Self { stop: Arc::new(Stop::new(core.clone())), core };
        if let Some(queues) = assigned {
            // On an error the consumer stops as it is dropped.
            consumer.assign(queues)?;
        } else {
            consumer.core.member.introduce(&consumer.core.member.topics());
        }
        if consumer.core.config.auto_commit {
            consumer.core.commit_job.run_after(consumer.core.config.auto_commit_interval);
        }
        Ok(consumer)
    }

    /// Builds the parts, lowest first.
    fn wire(member: MemberConfig, config: LitePullConsumerConfig, instance: &Arc<ClientInstance>) -> Result<Arc<Core>> {
        let store = Member::open_store(&member, instance)?;
        let subscriptions = Subscriptions::new([])?;
        let held = HeldTable::new(Arc::from(member.group.as_str()));
        Ok(Arc::new_cyclic(|me: &Weak<Core>| {
            let (committer, interval) = (me.clone(), config.auto_commit_interval);
            let commit_job = Job::new(instance.executor(), move || {
                if let Some(core) = committer.upgrade() {
                    core.commit_handled();
                }
                interval
            });
            Core {
                mode: OnceLock::new(),
                buffer: Buffer::new(member.queue_limits(), config.pull_threshold_for_all, config.auto_commit),
                member: Member::new(member, instance, store, subscriptions, held, me.clone()),
                commit_job,
                topics: TopicWatch::new(instance.executor(), me.clone(), config.topic_check_interval),
                config,
            }
        }))
    }

    /// The consumer group.
    pub fn group(&self) -> &str {
        &self.core.member.group
    }

    /// The id under which brokers list this member.
    pub fn client_id(&self) -> &str {
        self.core.member.instance.client_id()
    }

    /// Takes fetched messages of one queue, in the order of their offsets, at most `pull_batch_size`. Waits up to
    /// `timeout` for some; the list is empty when there were none. An arrival ends the wait at once.
    ///
    /// No message is returned of a queue that was given up, moved by [`seek`](Self::seek) or [paused](Self::pause)
    /// before it was taken. A body that cannot be inflated is returned too; [`MessageExt::body_error`] tells. Several
    /// threads may poll at the same time; messages of one queue then go to different threads. See
    /// [above](Self#what-counts-as-handled) for what the call says of the messages polled before.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] after a [`wakeup`](Self::wakeup), [`ErrorKind::State`] when the consumer is stopped,
    /// also while the call waits.
    pub fn poll(&self, timeout: Duration) -> Result<Vec<MessageExt>> {
        let (polled, tickets) = self.core.buffer.poll(Deadline::after(timeout));
        self.core.submit(tickets);
        match polled {
            Polled::Messages(messages) => Ok(messages),
            Polled::Nothing => Ok(Vec::new()),
            Polled::Woken => Err(Error::new(ErrorKind::Interrupted, "a wakeup ended the wait for messages")),
            Polled::Closed => Err(self.core.member.is_stopped()),
        }
    }

    /// Ends the polls that wait now, on all threads; when none waits, the next one.
    pub fn wakeup(&self) {
        self.core.buffer.wake();
    }

    /// Subscribes to one more topic, or to a known one by another selector. Messages fetched before may still be of the
    /// former one.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when queues are assigned, or the consumer is stopped; [`ErrorKind::Config`] for an illegal
    /// topic or expression; [`ErrorKind::Broker`] for an SQL92 filter that a broker refuses.
    pub fn subscribe(&self, topic: &str, selector: impl Into<MessageSelector>) -> Result<()> {
        self.core.member.check_running()?;
        topic::check_topic(topic)?;
        let selector = selector.into();
        self.core.enter_subscribe(topic, &selector)?;
        self.core.member.subscribe(topic, &selector)
    }

    /// Ends the subscription to a topic. Its queues are given up with the next round, which follows at once.
    pub fn unsubscribe(&self, topic: &str) {
        if self.core.mode() == Some(Mode::Subscribe) {
            self.core.member.unsubscribe(topic);
        }
    }

    /// Reads just these queues from now on; those held before and not among them are given up at once, and what was
    /// polled of them and is not committed comes again to whoever reads them next. Do not mix assigned and subscribing
    /// members in one group: brokers list both as members.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when topics are subscribed to, or the consumer is stopped.
    pub fn assign(&self, queues: impl IntoIterator<Item = MessageQueue>) -> Result<()> {
        let queues: Vec<MessageQueue> = queues.into_iter().collect();
        for queue in &queues {
            topic::check_topic(queue.topic())?;
        }
        self.core.member.check_running()?;
        self.core.assign(queues)?;
        self.core.member.introduce(&[]);
        Ok(())
    }

    /// The queues held now, with where each stands; in order.
    pub fn assignment(&self) -> Vec<QueueState> {
        self.core.member.held.all().iter().map(|held| self.core.queue_state(held)).collect()
    }

    /// How the consumer is: the problems known, and the queues that stand still. Makes no request. A queue that is
    /// paused, or full of messages that nobody polls, stands still too, for that reason.
    pub fn health(&self) -> Health {
        self.core.member.health(|held| self.core.queue_state(held))
    }

    /// The readable queues of a topic, as the name servers tell now; in order.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoute`] when they know no such topic, else that of the request.
    pub fn fetch_message_queues(&self, topic: &str) -> Result<Vec<MessageQueue>> {
        Ok(self.core.queues_of(topic)?.to_vec())
    }

    /// Goes on at another offset: what is cached of the queue is dropped, and the next messages polled begin there. With
    /// `auto_commit` the group's stored offset follows.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when the queue is not held, [`ErrorKind::Config`] when the broker has no such offset, else
    /// that of the requests.
    pub fn seek(&self, queue: &MessageQueue, offset: i64) -> Result<()> {
        self.core.seek(queue, offset)
    }

    /// Goes on at the oldest message stored.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn seek_to_begin(&self, queue: &MessageQueue) -> Result<()> {
        self.core.seek_to_end(queue, End::First)
    }

    /// Goes on behind the newest message.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn seek_to_end(&self, queue: &MessageQueue) -> Result<()> {
        self.core.seek_to_end(queue, End::Last)
    }

    /// The offset of the first message stored at or after a time; the end of the queue if none is. The queue need not be
    /// held.
    ///
    /// # Errors
    /// That of the request.
    pub fn offset_for_timestamp(&self, queue: &MessageQueue, time: SystemTime) -> Result<i64> {
        self.core.offset_for(queue, to_millis(time))
    }

    /// The offset that is stored for the group (in broadcasting: for this member); `None` when there is none. The queue need not be held.
    ///
    /// # Errors
    /// That of the request.
    pub fn committed(&self, queue: &MessageQueue) -> Result<Option<i64>> {
        self.core.committed(queue)
    }

    /// The first offset that was not polled yet; `None` while the start is not known.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when the queue is not held.
    pub fn position(&self, queue: &MessageQueue) -> Result<Option<i64>> {
        Ok(self.core.buffer.position(&*self.core.owned(queue)?))
    }

    /// Asks the brokers how many messages of each queue held are not handled yet; in order.
    ///
    /// # Errors
    /// When a broker cannot be asked; the error names the queue.
    pub fn lag(&self) -> Result<Vec<(MessageQueue, i64)>> {
        self.core.member.lag()
    }

    /// Polls return nothing of these queues, cached or not, until [`resume`](Self::resume). Kept through rebalances; the
    /// queues need not be held now.
    pub fn pause(&self, queues: &[MessageQueue]) {
        self.core.buffer.pause(queues);
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&self, queues: &[MessageQueue]) {
        let tickets = self.core.buffer.resume(queues);
        self.core.submit(tickets);
    }

    /// The queues that are paused, held or not; in order.
    pub fn paused(&self) -> Vec<MessageQueue> {
        self.core.buffer.paused()
    }

    /// What the calling thread has polled counts as handled; stores the offsets of all queues held and waits for it. An
    /// offset never passes what another thread has polled and not committed.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when a broker did not take an offset; it is tried again, so the next commit need not.
    pub fn commit(&self) -> Result<()> {
        self.core.buffer.settle_mine();
        self.core.commit(&self.core.member.held.all())
    }

    /// As [`commit`](Self::commit), for what all threads have polled: for threads that poll and hand on to others.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_all(&self) -> Result<()> {
        self.core.buffer.settle_all();
        self.core.commit(&self.core.member.held.all())
    }

    /// Everything below these offsets counts as handled, whoever polled it; stores them and waits for it. One below what
    /// is committed changes nothing: [`seek`](Self::seek) goes back.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when a queue is not held, [`ErrorKind::Config`] for an offset above the
    /// [position](Self::position); offsets named before it count. Else as [`commit`](Self::commit).
    pub fn commit_offsets(&self, offsets: &[(MessageQueue, i64)]) -> Result<()> {
        self.core.commit_offsets(offsets)
    }

    /// Hears, every `topic_check_interval`, of a changed set of readable queues of a topic, which need not be read here.
    /// Called on a service thread with the topic and all its queues; a panic is caught and logged. A second call for a
    /// topic replaces the first.
    #[doc(alias = "registerTopicMessageQueueChangeListener")]
    pub fn watch_topic(&self, topic: &str, listener: impl Fn(&str, &[MessageQueue]) + Send + Sync + 'static) {
        self.core.watch_topic(topic, Arc::new(listener));
    }

    /// Messages handled since the start.
    pub fn consumed(&self) -> u64 {
        self.core.buffer.counts().handled
    }

    /// Messages polled since the start.
    pub fn polled(&self) -> u64 {
        self.core.buffer.counts().polled
    }

    /// Stops: ends the polls of all threads, stores the offsets, leaves the group. With `auto_commit` what the calling
    /// thread polled counts as handled, and other threads have until `timeout` to come back for their next poll, which
    /// says that theirs is; what they have in hand then is reported as unfinished. A second call returns the report of
    /// the first. On a thread of this crate it starts the stop and returns at once with a report that is not clean.
    pub fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        self.stop.shutdown(timeout)
    }
}

impl Drop for LitePullConsumer {
    /// As a [`shutdown`](Self::shutdown) that waits for no other thread, since none can come back.
    fn drop(&mut self) {
        self.shutdown(Duration::ZERO);
    }
}

impl fmt::Debug for LitePullConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &mut f.debug_struct("LitePullConsumer");
        name.field("group", &self.core.member.group).field("client_id", &self.client_id()).finish()
    }
}
