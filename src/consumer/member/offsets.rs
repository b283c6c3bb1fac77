//! Offsets: storing what the queues held have come to, resets by operators, and questions about them.

use super::Member;
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldQueue;
use crate::consumer::offset::{self, BrokerOffsets, LocalFile, OffsetStore, Stored};
use crate::error::Result;
use crate::instance::ClientInstance;
use crate::message::MessageQueue;
use crate::time::Deadline;
use crossbeam::channel::unbounded;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A reset to the same offset within this time is a repetition.
const SAME_RESET: Duration = Duration::from_secs(1);
/// Storing the offsets of some queues may take so long: the next owner of those given up waits less, and the pull behind a
/// correction should not wait for long.
pub(crate) const STORE_TIME: Duration = Duration::from_secs(3);

impl Member {
    /// Where a member with these settings keeps its offsets.
    pub(crate) fn open_store(config: &super::MemberConfig, instance: &Arc<ClientInstance>) -> Result<OffsetStore> {
        let group = Arc::from(config.group.as_str());
        Ok(if config.is_broadcasting() {
            let dir = config.offset_store_dir.clone().unwrap_or_else(LocalFile::default_dir);
            OffsetStore::LocalFile(LocalFile::open(&dir, instance.client_id(), &group)?)
        } else {
            OffsetStore::Brokers(BrokerOffsets::new(instance.clone(), group))
        })
    }

    /// Stores the offsets of these queues, except those that are stored already or may not be.
    pub(crate) fn store(&self, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        let _one_at_a_time = self.storing.lock();
        self.store_locked(queues, deadline)
    }

    /// Stores the offsets of queues that are given up, and ends their ownerships before anybody else may store: an offset
    /// of one that is over could overtake the next owner's.
    pub(super) fn store_and_remove(&self, going: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        let _one_at_a_time = self.storing.lock();
        let stored = self.store_locked(going, deadline);
        for held in going {
            self.held.remove(held);
        }
        stored
    }

    /// By whoever has `storing`.
    fn store_locked(&self, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        let Some(kind) = self.kind() else { return Stored::default() };
        let queues: Vec<_> = queues.iter().filter(|held| kind.may_store(held)).cloned().collect();
        let stored = self.store.store(&queues, deadline);
        self.check_file();
        stored
    }

    /// What opening the offset file showed.
    pub(crate) fn tell_of_file(&self) {
        let Some(file) = self.store.file() else { return };
        if let Some(reason) = file.damage() {
            let path = file.path().display().to_string();
            self.tell(&ConsumerEvent::OffsetFileDamaged { path, reason: reason.to_owned() });
        }
        self.check_file();
    }

    /// A file that cannot be written is a problem of the consumer.
    fn check_file(&self) {
        let Some(file) = self.store.file() else { return };
        let failure = file
            .failure()
            .map(|reason| ConsumerEvent::OffsetFileUnwritable { path: file.path().display().to_string(), reason });
        self.problems_of("offset_file_unwritable", failure.into_iter().collect());
    }

    /// The queues held whose master is at this address.
    fn held_at(&self, address: &str) -> Vec<Arc<HeldQueue>> {
        let brokers = self.instance.brokers();
        let is_there =
            |held: &Arc<HeldQueue>| brokers.master(held.queue.broker_name()).is_some_and(|master| **master == *address);
        self.held.all().into_iter().filter(is_there).collect()
    }

    /// A new connection to the broker at this address is open; it may have restarted with old offsets.
    pub(crate) fn connected(&self, address: &str) {
        for held in self.held_at(address) {
            offset::doubt(&held);
            if let Some(kind) = self.kind() {
                kind.doubt(&held);
            }
        }
    }

    /// The connection to the broker at this address is gone.
    pub(crate) fn disconnected(&self, address: &str) {
        let Some(kind) = self.kind() else { return };
        for held in self.held_at(address) {
            kind.doubt(&held);
        }
    }

    /// What would be stored now of the queues of a topic.
    pub(crate) fn consume_offsets(&self, topic: &str) -> Vec<(MessageQueue, i64)> {
        let Some(kind) = self.kind() else { return Vec::new() };
        let held = self.held.of_topic(topic);
        held.iter().filter_map(|held| Some((held.queue.clone(), kind.unfinished_from(held)?))).collect()
    }

    /// An operator's new offsets.
    pub(crate) fn reset_offsets(&self, topic: &str, offsets: Vec<(MessageQueue, i64)>) {
        let Some(kind) = self.kind() else { return };
        let held = self.held.of_topic(topic);
        // One at a time, and a repetition that tools and brokers make is the same reset (field report 30).
        let mut recent = self.resets.lock();
        recent.retain(|_, (_, at)| at.elapsed() < SAME_RESET);
        let mut reset = Vec::new();
        for (queue, offset) in offsets.into_iter().filter(|(_, offset)| *offset >= 0) {
            let is_same = recent.get(&queue).is_some_and(|(before, _)| *before == offset);
            if let Some(held) = held.iter().find(|held| held.queue == queue && !is_same) {
                recent.insert(queue, (offset, Instant::now()));
                reset.extend(kind.restart_at(held, offset));
            }
        }
        kind.were_reset(&reset);
    }

    /// The master of a queue that need not be held.
    pub(crate) fn master_of(&self, queue: &MessageQueue) -> Result<Arc<str>> {
        if self.instance.brokers().master(queue.broker_name()).is_none() {
            self.instance.refresh_route(queue.shared_topic())?;
        }
        self.instance.master(queue.broker_name())
    }

    /// Asks the brokers how many messages of each queue held are not finished; in order.
    pub(crate) fn lag(&self) -> Result<Vec<(MessageQueue, i64)>> {
        let (done, answers) = unbounded();
        for held in self.held.all() {
            let master = self.master_of(&held.queue)?;
            let (done, queue) = (done.clone(), held.queue.clone());
            self.instance.api().max_offset(&master, &queue, self.request_timeout(), move |answer| {
                let _ = done.send((held, answer));
            });
        }
        drop(done);
        let mut lags = Vec::new();
        for (held, answer) in answers {
            let end = answer.map_err(|error| error.context(format!("asking for the end of {}", held.queue)))?;
            // A queue whose start is not known yet has all of it ahead, which only its start offset can tell.
            let at = self.kind().and_then(|kind| kind.unfinished_from(&held)).unwrap_or(end);
            lags.push((held.queue.clone(), (end - at).max(0)));
        }
        lags.sort();
        Ok(lags)
    }
}
