//! What a push consumer does in its own way as a member of its group: messages go to the service that runs the listener,
//! and queues in order wait for their broker's lock.

use super::core::Core;
use super::service::size_of;
use crate::consumer::held::HeldQueue;
use crate::consumer::member::{Kind, Member, STORE_TIME};
use crate::instance::role::DirectAnswer;
use crate::message::{MessageExt, properties};
use crate::protocol::body::{ConsumeType, ConsumerRunningInfo};
use crate::time::Deadline;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Pause while the consumer as a whole has no room.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(50);

impl Kind for Core {
    fn member(&self) -> &Member {
        &self.member
    }

    fn consume_type(&self) -> ConsumeType {
        ConsumeType::Passively
    }

    fn take_over(&self, coming: Vec<Arc<HeldQueue>>, delay: Duration) {
        if self.member.held.needs_locks() {
            // A grant tells that the previous owner is done; then its offset is stored too.
            return self.look_for_locks();
        }
        for held in coming {
            self.member.locate_after(held, delay);
        }
    }

    fn admit(&self, held: &Arc<HeldQueue>) -> bool {
        let Some(process) = held.process() else { return false };
        if held.park_if_suspended() {
            return false;
        }
        if let Err(full) = process.admit(&held.limits()) {
            // Parked: the worker that makes room submits the ticket.
            held.with_progress(|progress| progress.standing = Some(format!("flow control: {full:?}")));
            return false;
        }
        let has_room = self.service.has_room() || process.cached().messages == 0;
        if !has_room {
            held.with_progress(|progress| progress.standing = Some("flow control: the consumer's total".into()));
            self.member.instance.submit_pull_later(held.ticket(), NO_ROOM_PAUSE);
        }
        has_room
    }

    fn is_resting(&self, held: &HeldQueue) -> bool {
        held.process().is_some_and(|process| process.cached().is_parked)
    }

    fn carries(&self) -> (bool, bool) {
        (self.config.post_subscription_when_pull, self.member.store.travels_with_pulls())
    }

    fn take_in(&self, held: &Arc<HeldQueue>, mut messages: Vec<MessageExt>, next: i64, took: Duration) -> bool {
        if held.queue.topic() == &*self.retry_topic {
            self.restore_topics(&mut messages);
        }
        let sizes = messages.iter().map(|message| (message.queue_offset(), size_of(message) as usize));
        let taken = held.take_in(sizes, next);
        if !taken.iter().all(|taken| *taken) {
            messages =
                messages.into_iter().zip(taken).filter_map(|(message, taken)| taken.then_some(message)).collect();
        }
        let is_new = !messages.is_empty();
        if is_new {
            self.observer.stats.of(held.queue.shared_topic()).pulled(messages.len(), took);
        }
        self.service.submit(held.clone(), messages);
        is_new
    }

    fn pass_over(&self, held: &HeldQueue, next: i64) {
        held.pass_over(next);
    }

    fn pull_interval(&self) -> Option<Duration> {
        (!self.config.pull_interval.is_zero()).then_some(self.config.pull_interval)
    }

    fn doubt(&self, held: &HeldQueue) {
        self.doubt_lock(held);
    }

    fn restart_at(&self, held: &Arc<HeldQueue>, offset: i64) -> Option<Arc<HeldQueue>> {
        let next = self.member.renew_at(held, offset)?;
        self.forget(held);
        // Stored at once: a pull under way may have carried the old offset to the broker (03-broker 3.10).
        let (core, renewed) = (self.me.clone(), next.clone());
        self.member.instance.executor().soon(move || {
            let Some(core) = core.upgrade() else { return };
            core.member.store(std::slice::from_ref(&renewed), Deadline::after(STORE_TIME));
            core.member.submit_corrected(&renewed);
        });
        Some(next)
    }

    fn settle(&self, _: &[Arc<HeldQueue>]) {
        self.service.settle_finished();
    }

    fn forget(&self, held: &HeldQueue) {
        if let Some(process) = held.process() {
            self.service.forget(held, process.abandon());
        }
    }

    fn gave_up(&self, gone: &[Arc<HeldQueue>], wait: Option<Deadline>) {
        if let Some(locks) = self.locks.as_ref().filter(|_| wait.is_some()) {
            locks.stop();
        }
        self.give_back_locks(gone, wait);
    }

    fn end_jobs(&self) {}

    fn finish(&self, held: &[Arc<HeldQueue>], deadline: Deadline) -> usize {
        let late: Vec<_> = held.iter().filter(|held| !held.wait_drained(deadline)).collect();
        self.service.settle_finished();
        late.iter().map(|held| held.running_messages()).sum()
    }

    fn join(&self, deadline: Deadline) -> bool {
        let workers_ended = self.service.join(deadline);
        self.direct.join(deadline) && workers_ended
    }

    fn persist(&self, deadline: Deadline) {
        self.observer.stats.sample();
        self.service.settle_finished();
        self.member.store(&self.member.held.all(), deadline);
    }

    fn describe(&self, with_threads: bool) -> ConsumerRunningInfo {
        self.running_info(with_threads)
    }

    fn direct(&self, record: Bytes, broker_name: Option<&str>, answer: DirectAnswer) {
        self.consume_directly(record, broker_name, answer);
    }

    fn consumed(&self) -> u64 {
        self.observer.stats.counts().0
    }
}

impl Core {
    /// Messages of the retry topic get the topic they were sent to.
    pub(super) fn restore_topics(&self, messages: &mut [MessageExt]) {
        for message in messages {
            if let Some(topic) = message.property(properties::RETRY_TOPIC) {
                let topic = self.member.subscriptions.shared_name(topic);
                message.set_topic(topic);
            }
        }
    }
}
