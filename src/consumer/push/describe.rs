//! What a push consumer shows of itself to the broker's tools.

use super::core::Core;
use crate::consumer::held::QueuePhase;
use crate::protocol::body::{ConsumerRunningInfo, ProcessQueueInfo};
use crate::time::to_millis;
use std::time::{Instant, SystemTime};

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
        // Collected first: inside the literal the guard of the subscriptions would be held while queues are locked.
        let mq_table = queues.collect();
        ConsumerRunningInfo {
            properties: properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            subscription_set: self.subscriptions.read().values().map(|data| (**data).clone()).collect(),
            mq_table,
            ..Default::default()
        }
    }
}
