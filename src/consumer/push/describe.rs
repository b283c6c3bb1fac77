//! What a push consumer shows of itself: to its user, and to the broker's tools.

use super::core::Core;
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::message::MessageQueue;
use crate::protocol::body::{ConsumerRunningInfo, ProcessQueueInfo};
use crate::time::to_millis;
use std::time::{Duration, Instant, SystemTime};

/// One queue that a consumer holds, as it stood when it was asked for.
#[derive(Debug, Clone)]
pub struct QueueState {
    queue: MessageQueue,
    epoch: u64,
    phase: QueuePhase,
    held_for: Duration,
    next_offset: i64,
    commit_offset: Option<i64>,
    stored_offset: Option<i64>,
    cached_messages: usize,
    cached_bytes: u64,
    since_pull: Option<Duration>,
    since_progress: Option<Duration>,
    standing_still: Option<String>,
}

impl QueueState {
    /// The queue.
    pub fn queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// The number of this ownership; each one of a consumer has another.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Where the ownership stands.
    pub fn phase(&self) -> QueuePhase {
        self.phase
    }

    /// How long the queue has been ours.
    pub fn held_for(&self) -> Duration {
        self.held_for
    }

    /// The offset that the next pull asks for.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The lowest offset that is not finished; `None` while the start is not known.
    pub fn commit_offset(&self) -> Option<i64> {
        self.commit_offset
    }

    /// The last offset that the broker confirmed to have stored for us.
    pub fn committed_offset(&self) -> Option<i64> {
        self.stored_offset
    }

    /// Messages pulled and not finished.
    pub fn cached_messages(&self) -> usize {
        self.cached_messages
    }

    /// Bytes of their bodies.
    pub fn cached_bytes(&self) -> u64 {
        self.cached_bytes
    }

    /// Time since the last pull was sent.
    pub fn since_pull(&self) -> Option<Duration> {
        self.since_pull
    }

    /// Time since messages were last finished.
    pub fn since_progress(&self) -> Option<Duration> {
        self.since_progress
    }

    /// Why the queue stands still, when it does.
    pub fn standing_still(&self) -> Option<&str> {
        self.standing_still.as_deref()
    }
}

impl HeldQueue {
    pub(super) fn state(&self) -> QueueState {
        let cached = self.process().map(|process| process.cached()).unwrap_or_default();
        let progress = self.with_progress(|progress| progress.clone());
        QueueState {
            queue: self.queue.clone(),
            epoch: self.epoch,
            phase: self.phase(),
            held_for: self.since().elapsed(),
            next_offset: progress.next_offset,
            commit_offset: self.commit_offset(),
            stored_offset: progress.stored,
            cached_messages: cached.messages,
            cached_bytes: cached.bytes,
            since_pull: progress.last_pull.map(|at| at.elapsed()),
            since_progress: progress.last_progress.map(|at| at.elapsed()),
            standing_still: progress.standing,
        }
    }
}

impl Core {
    /// `ConsumerRunningInfo`, as the admin tools print it (02-consumer 13.3).
    pub(super) fn describe(&self) -> ConsumerRunningInfo {
        let wall = |at: Option<Instant>| at.map_or(0, |at| to_millis(SystemTime::now() - at.elapsed()));
        let mut names = String::new();
        for address in self.instance.name_servers() {
            names.push_str(address);
            names.push(';');
        }
        let properties = [
            ("PROP_CONSUME_TYPE", "CONSUME_PASSIVELY".to_owned()),
            ("PROP_CONSUMEORDERLY", "false".to_owned()),
            ("PROP_CONSUMER_START_TIMESTAMP", to_millis(self.started).to_string()),
            ("PROP_THREADPOOL_CORE_SIZE", self.config.consume_threads.to_string()),
            ("PROP_NAMESERVER_ADDR", names),
            ("PROP_CLIENT_VERSION", "V5_3_3".to_owned()),
            ("consumerGroup", self.group.to_string()),
            ("consumeMessageBatchMaxSize", self.config.consume_batch_size.to_string()),
            ("maxReconsumeTimes", self.config.reconsume_limit().to_string()),
            ("pullBatchSize", self.config.pull_batch_size.to_string()),
        ];
        let queues = self.held.all().into_iter().map(|held| {
            let cached = held.process().map(|process| process.cached()).unwrap_or_default();
            let progress = held.with_progress(|progress| progress.clone());
            let info = ProcessQueueInfo {
                commit_offset: held.commit_offset().unwrap_or(-1),
                cached_msg_count: i32::try_from(cached.messages).unwrap_or(i32::MAX),
                cached_msg_min_offset: cached.min_offset.unwrap_or(0),
                cached_msg_max_offset: cached.max_offset.unwrap_or(0),
                cached_msg_size_in_mib: i32::try_from(cached.bytes >> 20).unwrap_or(i32::MAX),
                dropped: held.phase() >= QueuePhase::Draining,
                last_pull_timestamp: wall(progress.last_pull),
                last_consume_timestamp: wall(progress.last_progress),
                ..Default::default()
            };
            (held.queue.clone(), info)
        });
        ConsumerRunningInfo {
            properties: properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            subscription_set: self.subscriptions.read().values().map(|data| (**data).clone()).collect(),
            mq_table: queues.collect(),
            ..Default::default()
        }
    }
}
