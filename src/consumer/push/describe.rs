//! What a push consumer shows of itself: to its user as statistics, to the broker's tools as running info.

use super::core::Core;
use super::stats::ConsumerStats;
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::rebalance::start_offset::ConsumeFromWhere;
use crate::protocol::body::{ConsumerRunningInfo, ProcessQueueInfo};
use crate::thread::contain;
use crate::time::to_millis;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant, SystemTime};

impl Core {
    pub(super) fn stats(&self) -> ConsumerStats {
        let mut stats = self.observer.stats.snapshot();
        stats.consume_threads = self.service.threads();
        stats.cached_bytes = self.service.cached_bytes();
        for held in self.member.held.all() {
            let cached = held.process().map(|process| process.cached()).unwrap_or_default();
            stats.cached_messages += cached.messages;
        }
        stats
    }

    /// `ConsumerRunningInfo`, as the admin tools print it (02-consumer 13.3).
    pub(super) fn running_info(&self, with_threads: bool) -> ConsumerRunningInfo {
        let queues = self.member.held.all().into_iter().map(|held| (held.queue.clone(), queue_info(&held)));
        let user_info = self.config.user_info.as_ref().map(|info| contain(|| info()));
        let user_consumer_info = user_info.transpose().unwrap_or_else(|panic| {
            log::error!("the user info of group '{}' panicked: {panic}", self.member.group);
            None
        });
        ConsumerRunningInfo {
            jstack: with_threads.then(|| self.describe_threads()),
            properties: self.describe_properties(),
            status_table: self.observer.stats.statuses(),
            subscription_set: self.member.subscriptions.on_the_wire(),
            mq_table: queues.collect(),
            user_consumer_info: user_consumer_info.unwrap_or_default(),
            ..Default::default()
        }
    }

    /// Under the names that the Java client uses, so that one tool reads both.
    fn describe_properties(&self) -> BTreeMap<String, String> {
        let (config, member) = (&self.config, &self.member.config);
        let threads = self.service.threads();
        let mut names = String::new();
        for address in self.member.instance.name_servers() {
            names.push_str(address);
            names.push(';');
        }
        let millis = |duration: Duration| duration.as_millis().to_string();
        let consume_from = match member.consume_from {
            ConsumeFromWhere::LastOffset => "CONSUME_FROM_LAST_OFFSET",
            ConsumeFromWhere::FirstOffset => "CONSUME_FROM_FIRST_OFFSET",
            ConsumeFromWhere::Timestamp(_) => "CONSUME_FROM_TIMESTAMP",
        };
        let properties = [
            (ConsumerRunningInfo::CONSUME_TYPE, "CONSUME_PASSIVELY".to_owned()),
            (ConsumerRunningInfo::CONSUMEORDERLY, self.service.is_orderly().to_string()),
            (ConsumerRunningInfo::CONSUMER_START_TIMESTAMP, to_millis(self.member.started).to_string()),
            (ConsumerRunningInfo::THREADPOOL_CORE_SIZE, threads.to_string()),
            (ConsumerRunningInfo::NAMESERVER_ADDR, names.clone()),
            // Tools compare it with the versions they know; the client's own is beside it.
            (ConsumerRunningInfo::CLIENT_VERSION, "V5_3_3".to_owned()),
            ("clientLibrary", concat!("rocketmq-sync ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("language", "RUST".to_owned()),
            ("namesrvAddr", names.trim_end_matches(';').to_owned()),
            ("clientIP", self.member.instance.client_id().split('@').next().unwrap_or_default().to_owned()),
            ("instanceName", self.member.instance.client_id().split('@').nth(1).unwrap_or_default().to_owned()),
            ("heartbeatBrokerInterval", millis(member.client.heartbeat_interval)),
            ("pollNameServerInterval", millis(member.client.route_interval)),
            ("persistConsumerOffsetInterval", millis(member.client.persist_interval)),
            ("pullTimeDelayMillsWhenException", millis(member.pull_error_delay)),
            ("mqClientApiTimeout", millis(member.client.request_timeout)),
            ("consumerGroup", self.member.group.to_string()),
            ("consumeFromWhere", consume_from.to_owned()),
            ("messageModel", member.message_model.on_the_wire().wire_name().unwrap_or_default().to_owned()),
            ("allocateMessageQueueStrategy", member.strategy.name().to_owned()),
            ("consumeThreadMin", threads.to_string()),
            ("consumeThreadMax", threads.to_string()),
            ("consumeConcurrentlyMaxSpan", member.consume_max_span.to_string()),
            ("consumeMessageBatchMaxSize", config.consume_batch_size.to_string()),
            // Whole minutes there.
            ("consumeTimeout", (config.consume_timeout.as_secs() / 60).to_string()),
            ("maxReconsumeTimes", config.reconsume_limit().to_string()),
            ("pullBatchSize", member.pull_batch_size.to_string()),
            ("pullBatchSizeInBytes", member.pull_batch_bytes.to_string()),
            ("pullInterval", millis(config.pull_interval)),
            ("pullThresholdForQueue", member.pull_threshold_for_queue.to_string()),
            ("pullThresholdSizeForQueue", member.pull_threshold_size_for_queue.to_string()),
            ("postSubscriptionWhenPull", config.post_subscription_when_pull.to_string()),
            ("unitMode", "false".to_owned()),
        ];
        properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What stands in for a dump of stacks, which Rust cannot take of other threads: what the listener is at, and the
    /// threads of this crate in the form "name TID STATE".
    fn describe_threads(&self) -> String {
        let mut text = String::new();
        for line in self.service.activities() {
            let _ = writeln!(text, "{line}");
        }
        for (name, id, state) in own_threads() {
            let _ = writeln!(text, "{name} TID: {id} STATE: {state}");
        }
        text
    }
}

fn queue_info(held: &HeldQueue) -> ProcessQueueInfo {
    let wall = |at: Option<Instant>| at.map_or(0, |at| to_millis(SystemTime::now() - at.elapsed()));
    let cached = held.process().map(|process| process.cached()).unwrap_or_default();
    let progress = held.with_progress(|progress| progress.clone());
    let now = Instant::now();
    let lock = held.order().and_then(|order| order.seat.view(now));
    ProcessQueueInfo {
        commit_offset: held.commit_offset().unwrap_or(-1),
        cached_msg_count: i32::try_from(cached.messages).unwrap_or(i32::MAX),
        cached_msg_min_offset: cached.min_offset.unwrap_or(0),
        cached_msg_max_offset: cached.max_offset.unwrap_or(0),
        cached_msg_size_in_mib: i32::try_from(cached.bytes >> 20).unwrap_or(i32::MAX),
        dropped: held.phase() >= QueuePhase::Draining,
        locked: lock.is_some() && held.order().is_some_and(|order| order.seat.is_valid(now)),
        try_unlock_times: lock.as_ref().map_or(0, |lock| lock.put_off),
        last_lock_timestamp: wall(lock.and_then(|lock| lock.granted)),
        last_pull_timestamp: wall(progress.last_pull),
        last_consume_timestamp: wall(progress.last_progress),
        ..Default::default()
    }
}

/// The threads of this crate in this process, where the system shows them (Linux).
fn own_threads() -> Vec<(String, String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut threads: Vec<_> = tasks
        .filter_map(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?.trim().to_owned();
            let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
            let state = match stat.rsplit_once(") ")?.1.chars().next()? {
                'R' => "RUNNABLE",
                'S' => "WAITING",
                'D' => "BLOCKED",
                _ => "UNKNOWN",
            };
            let id = task.file_name().to_string_lossy().into_owned();
            name.starts_with("rmq-").then(|| (name, id, state.to_owned()))
        })
        .collect();
    threads.sort();
    threads
}
