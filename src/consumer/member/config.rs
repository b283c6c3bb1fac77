//! Settings that consumers of every kind have, and their items. Source of names, defaults and bounds:
//! `DefaultMQPushConsumer` (02-consumer 1.5).

use crate::config::{ClientConfig, check_range};
use crate::consumer::allocate::{AllocateAveragely, AllocateMessageQueueStrategy};
use crate::consumer::event::{EventListener, RebalanceListener};
use crate::consumer::message_model::MessageModel;
use crate::consumer::process_queue::Limits;
use crate::consumer::rebalance::start_offset::ConsumeFromWhere;
use crate::consumer::selector::MessageSelector;
use crate::error::Result;
use crate::message::topic;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const MIB: u64 = 1 << 20;

/// See the head of this file.
pub(crate) struct MemberConfig {
    pub(crate) client: ClientConfig,
    pub(crate) group: String,
    pub(crate) subscriptions: Vec<(String, MessageSelector)>,
    pub(crate) message_model: MessageModel,
    pub(crate) offset_store_dir: Option<PathBuf>,
    pub(crate) consume_from: ConsumeFromWhere,
    pub(crate) strategy: Arc<dyn AllocateMessageQueueStrategy>,
    pub(crate) rebalance_listener: Option<Arc<dyn RebalanceListener>>,
    pub(crate) events: Option<EventListener>,
    pub(crate) pull_batch_size: i32,
    pub(crate) pull_batch_bytes: i32,
    pub(crate) pull_suspend: Duration,
    pub(crate) pull_error_delay: Duration,
    pub(crate) pull_threshold_for_queue: u32,
    pub(crate) pull_threshold_size_for_queue: u64,
    pub(crate) consume_max_span: u32,
    pub(crate) revoke_grace: Duration,
    pub(crate) takeover_delay: Duration,
    pub(crate) max_inflated_size: usize,
}

impl MemberConfig {
    /// The defaults; those that differ between the kinds of consumers are given.
    pub(crate) fn new(group: impl Into<String>, pull_batch_size: i32, pull_suspend: Duration) -> Self {
        Self {
            client: ClientConfig::default(),
            group: group.into(),
            subscriptions: Vec::new(),
            message_model: MessageModel::default(),
            offset_store_dir: None,
            consume_from: ConsumeFromWhere::default(),
            strategy: Arc::new(AllocateAveragely),
            rebalance_listener: None,
            events: None,
            pull_batch_size,
            pull_batch_bytes: 256 * 1024,
            pull_suspend,
            pull_error_delay: Duration::from_secs(1),
            pull_threshold_for_queue: 1000,
            pull_threshold_size_for_queue: 100,
            consume_max_span: 2000,
            revoke_grace: Duration::from_secs(2),
            takeover_delay: Duration::from_millis(500),
            max_inflated_size: 16 << 20,
        }
    }

    /// A second subscription to a topic replaces the first.
    pub(crate) fn subscribe(&mut self, topic: String, selector: MessageSelector) {
        self.subscriptions.retain(|(known, _)| *known != topic);
        self.subscriptions.push((topic, selector));
    }

    pub(crate) fn is_broadcasting(&self) -> bool {
        self.message_model == MessageModel::Broadcasting
    }

    /// How much of a queue may be cached before its pulls wait.
    pub(crate) fn queue_limits(&self) -> Limits {
        Limits {
            messages: self.pull_threshold_for_queue as usize,
            bytes: self.pull_threshold_size_for_queue * MIB,
            span: i64::from(self.consume_max_span),
        }
    }

    /// Checks every item, and completes those that follow from others.
    pub(crate) fn check(&mut self) -> Result<()> {
        topic::check_group(&self.group)?;
        self.client.check()?;
        for (name, _) in &self.subscriptions {
            topic::check_topic(name)?;
        }
        let millis = |duration: Duration| duration.as_millis();
        check_range("pull_batch_size", self.pull_batch_size, 1..=1024)?;
        check_range("pull_batch_bytes", self.pull_batch_bytes, 1024..=16 << 20)?;
        check_range("pull_suspend (ms)", millis(self.pull_suspend), 1000..=60_000)?;
        check_range("pull_error_delay (ms)", millis(self.pull_error_delay), 10..=60_000)?;
        check_range("pull_threshold_for_queue", self.pull_threshold_for_queue, 1..=65_535)?;
        check_range("pull_threshold_size_for_queue (MiB)", self.pull_threshold_size_for_queue, 1..=1024)?;
        check_range("consume_max_span", self.consume_max_span, 1..=65_535)?;
        check_range("revoke_grace (ms)", millis(self.revoke_grace), 0..=600_000)?;
        check_range("takeover_delay (ms)", millis(self.takeover_delay), 0..=60_000)?;
        check_range("max_inflated_size", self.max_inflated_size, 1024..=1 << 30)?;
        if self.is_broadcasting() {
            // A name that the next run has again: it leads to the file with the offsets.
            self.client.instance_name.get_or_insert_with(|| "DEFAULT".to_owned());
        }
        Ok(())
    }
}

/// The items that the builders of all consumers have; `$member` is the builder's [`MemberConfig`].
macro_rules! member_items {
    ($builder:ident, $lookup:ident, $member:ident) => {
        $crate::config::builder_items!($builder, set_member_item {
            text {}
            values {
                /// How often offsets are stored; a lite pull consumer stores so often again what was committed and a broker
                /// did not take. Default 5 s, from 10 ms to 1 h.
                persist_interval: std::time::Duration => $member.client.persist_interval;
                /// The period of rebalance rounds; changes wake one at once. Default 20 s, from 10 ms to 1 h.
                rebalance_interval: std::time::Duration => $member.client.rebalance_interval;
                /// The shortest time between two rounds, so that a storm of notices costs few. Default 250 ms, up to 60 s.
                rebalance_min_interval: std::time::Duration => $member.client.rebalance_min_interval;
                /// Where a group without stored offsets begins. Default: behind the newest message. As text `first`, `last`
                /// or milliseconds since 1970.
                consume_from: $crate::consumer::rebalance::start_offset::ConsumeFromWhere => $member.consume_from;
                /// Bytes asked for in one pull; brokers before 5 ignore it. Default 256 KiB, from 1 KiB to 16 MiB.
                pull_batch_bytes: i32 => $member.pull_batch_bytes;
                /// Pause after a failed pull. Default 1 s, from 10 ms to 60 s.
                pull_error_delay: std::time::Duration => $member.pull_error_delay;
                /// Messages of a queue that may be cached before its pulls wait. Default 1000, from 1 to 65535.
                pull_threshold_for_queue: u32 => $member.pull_threshold_for_queue;
                /// MiB of bodies of a queue that may be cached before its pulls wait. Default 100, from 1 to 1024.
                pull_threshold_size_for_queue: u64 => $member.pull_threshold_size_for_queue;
                /// How far the first unfinished and the last cached offset of a queue may be apart before its pulls wait.
                /// Default 2000, from 1 to 65535.
                consume_max_span: u32 => $member.consume_max_span;
                /// How long a queue that may still have an owner is left alone before its stored offset is read, so that
                /// the owner can store it. Default 500 ms, up to 60 s. Not used where a broker's lock tells when the owner
                /// is done, as for messages in order.
                takeover_delay: std::time::Duration => $member.takeover_delay;
                /// The largest body, in bytes, that is inflated. Default 16 MiB, from 1 KiB to 1 GiB. A push consumer makes
                /// a message above it a dead letter.
                max_inflated_size: usize => $member.max_inflated_size;
            }
        });

        impl $builder {
            /// The folder for the offset files of broadcasting consumers; the file is `CLIENT_ID/GROUP/offsets.json` in it,
            /// in Java's format. Default `.rocketmq_offsets` in the home directory, as in Java.
            ///
            /// The file is replaced as a whole, never rewritten in place. One that is damaged does not stop a start: its
            /// predecessor counts, else `consume_from`; `offset_file_damaged` tells of it, and `offset_file_unwritable` of
            /// one that cannot be written. One that another process uses ends the start with an error.
            pub fn offset_store_dir(mut self, dir: impl Into<std::path::PathBuf>) -> Self {
                self.$member.offset_store_dir = Some(dir.into());
                self
            }

            /// How queues are shared out. Default: averaging. All members of a group must use the same strategy.
            pub fn allocate_strategy(
                mut self,
                strategy: impl $crate::consumer::allocate::AllocateMessageQueueStrategy + 'static,
            ) -> Self {
                self.$member.strategy = std::sync::Arc::new(strategy);
                self
            }

            /// Hears of queues that come and go.
            #[doc(alias = "MessageQueueListener")]
            pub fn rebalance_listener(
                mut self,
                listener: impl $crate::consumer::event::RebalanceListener,
            ) -> Self {
                self.$member.rebalance_listener = Some(std::sync::Arc::new(listener));
                self
            }

            /// Hears of problems; see [`ConsumerEvent`](crate::ConsumerEvent). Called on service threads: return soon.
            pub fn event_listener(
                mut self,
                listener: impl Fn(&$crate::consumer::event::ConsumerEvent) + Send + Sync + 'static,
            ) -> Self {
                self.$member.events = Some(std::sync::Arc::new(listener));
                self
            }

            /// As [`set`](Self::set), for these items; `false` when there is none of this name.
            fn $lookup(&mut self, name: &str, value: &str) -> $crate::error::Result<bool> {
                if name == "offset_store_dir" {
                    self.$member.offset_store_dir = Some(value.into());
                    return Ok(true);
                }
                self.set_member_item(name, value)
            }
        }
    };
}
pub(crate) use member_items;
