//! What a lite pull consumer shows of itself, to its user and to the broker's tools.

use super::core::Core;
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::queue_state::QueueState;
use crate::protocol::body::{ConsumerRunningInfo, ProcessQueueInfo};
use crate::time::to_millis;
use std::time::{Instant, SystemTime};

impl Core {
    /// `ConsumerRunningInfo`, as the admin tools print it (02-consumer 13.3).
    pub(super) fn running_info(&self) -> ConsumerRunningInfo {
        let names: String = self.member.instance.name_servers().iter().flat_map(|address| [address, ";"]).collect();
        let properties = [
            (ConsumerRunningInfo::CONSUME_TYPE, "CONSUME_ACTIVELY".to_owned()),
            (ConsumerRunningInfo::CONSUMEORDERLY, "false".to_owned()),
            (ConsumerRunningInfo::CONSUMER_START_TIMESTAMP, to_millis(self.member.started).to_string()),
            (ConsumerRunningInfo::THREADPOOL_CORE_SIZE, "0".to_owned()),
            (ConsumerRunningInfo::NAMESERVER_ADDR, names),
            (ConsumerRunningInfo::CLIENT_VERSION, "V5_3_3".to_owned()),
            ("consumerGroup", self.member.group.to_string()),
            ("autoCommit", self.config.auto_commit.to_string()),
            ("pullBatchSize", self.member.config.pull_batch_size.to_string()),
            ("pullThresholdForAll", self.config.pull_threshold_for_all.to_string()),
        ];
        let mq_table = self.member.held.all().iter().map(|held| (held.queue.clone(), self.queue_info(held))).collect();
        ConsumerRunningInfo {
            properties: properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            subscription_set: self.member.subscriptions.on_the_wire(),
            mq_table,
            ..Default::default()
        }
    }

    fn queue_info(&self, held: &HeldQueue) -> ProcessQueueInfo {
        let wall = |at: Option<Instant>| at.map_or(0, |at| to_millis(SystemTime::now() - at.elapsed()));
        let (messages, bytes, _) = self.buffer.cached(held);
        let (first, last) = self.buffer.cached_range(held).unwrap_or_default();
        let (last_pull, last_progress) = held.with_progress(|progress| (progress.last_pull, progress.last_progress));
        ProcessQueueInfo {
            commit_offset: self.buffer.handled(held).unwrap_or(-1),
            cached_msg_count: i32::try_from(messages).unwrap_or(i32::MAX),
            cached_msg_min_offset: first,
            cached_msg_max_offset: last,
            cached_msg_size_in_mib: i32::try_from(bytes >> 20).unwrap_or(i32::MAX),
            dropped: held.phase() >= QueuePhase::Draining,
            last_pull_timestamp: wall(last_pull),
            last_consume_timestamp: wall(last_progress),
            ..Default::default()
        }
    }

    pub(super) fn queue_state(&self, held: &HeldQueue) -> QueueState {
        let (messages, bytes, _) = self.buffer.cached(held);
        held.state().caching(messages, bytes, self.buffer.handled(held))
    }
}
