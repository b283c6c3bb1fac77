//! One pull: decide, send, handle the answer, make the next ticket.
//!
//! Exactly one ticket circulates for a queue that is `Pulling`. Each path below ends in one step that submits it again
//! (now, later, or by parking it), and that step is the last one, so that no error can make two of one (02-consumer
//! T11). Source: `DefaultMQPushConsumerImpl.pullMessage` (02-consumer 7.2 to 7.6).

use super::core::Core;
use super::service::size_of;
use crate::api::pull::{PullResult, PullStatus};
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldQueue;
use crate::consumer::pull;
use crate::consumer::pull::flow_control::{Correction, correct};
use crate::error::{Error, ErrorKind};
use crate::message::{MessageExt, properties};
use crate::thread::contain;
use crate::time::Deadline;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause while the consumer as a whole has no room.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(50);
/// Storing a corrected offset must not hold up the next pull for long.
const STORE_CORRECTION: Duration = Duration::from_secs(3);

impl Core {
    /// Decides and sends. Called by the pull service.
    pub(super) fn pull_queue(&self, held: &Arc<HeldQueue>) {
        let Some(process) = held.process() else { return };
        // From here on until the answer the queue has a pull in flight or a ticket somewhere.
        held.with_progress(|progress| progress.last_pull = Some(Instant::now()));
        if held.park_if_suspended() {
            return;
        }
        if let Err(full) = process.admit(&held.limits()) {
            // Parked: the worker that makes room submits the ticket.
            return held.with_progress(|progress| progress.standing = Some(format!("flow control: {full:?}")));
        }
        if !self.service.has_room() && process.cached().messages > 0 {
            held.with_progress(|progress| progress.standing = Some("flow control: the consumer's total".into()));
            return self.instance.submit_pull_later(held.ticket(), NO_ROOM_PAUSE);
        }
        let Some(subscription) = self.subscription(held.queue.topic()) else {
            // Unsubscribed: the next round gives the queue up.
            return self.instance.submit_pull_later(held.ticket(), self.config.pull_error_delay);
        };
        let terms = pull::Terms {
            batch_size: self.config.pull_batch_size,
            batch_bytes: self.config.pull_batch_bytes,
            suspend: self.config.pull_suspend,
            carries_subscription: self.config.post_subscription_when_pull,
            carries_commit: self.store.travels_with_pulls(),
        };
        let (core, answered) = (self.me.clone(), held.clone());
        let sent = pull::send(&self.instance, &self.group, held, &subscription, &terms, move |asked, took, result| {
            // A consumer that is gone needs no answer.
            let Some(core) = core.upgrade() else { return };
            if !answered.is_pulling() || core.is_stopping() {
                return;
            }
            // The step that submits the ticket again is the last one, so a panic means that it was not reached.
            let handled = contain(|| match result {
                Ok(answer) => core.pull_answered(&answered, asked, answer, took),
                Err(error) => core.pull_failed(&answered, &error),
            });
            if let Err(panic) = handled {
                log::error!("an answer to a pull of {} panicked; it is pulled again: {panic}", answered.queue);
                core.instance.submit_pull_later(answered.ticket(), core.config.pull_error_delay);
            }
        });
        if let Err(error) = sent {
            self.pull_failed(held, &error);
        }
    }

    fn pull_answered(&self, held: &Arc<HeldQueue>, asked: i64, answer: PullResult, took: Duration) {
        pull::answered(&self.group, held, &answer);
        match answer.status {
            PullStatus::Found => self.found(held, asked, &answer, took),
            PullStatus::NoNewMsg | PullStatus::NoMatchedMsg => self.nothing_found(held, asked, &answer, took),
            PullStatus::OffsetIllegal => self.refused(held, asked, &answer),
        }
    }

    /// The broker refused the offset. One that refuses every offset is asked again and again, so with pauses.
    fn refused(&self, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult) {
        let Some(process) = held.process() else { return };
        held.with_progress(|progress| progress.corrections = progress.corrections.saturating_add(1));
        let correction = correct(asked, process.commit_offset(), answer);
        let (Correction::GoOnAt(corrected) | Correction::RestartAt(corrected)) = correction;
        if corrected != asked {
            self.tell(&ConsumerEvent::OffsetCorrected { queue: held.queue.clone(), asked, corrected });
        }
        match correction {
            Correction::RestartAt(at) => self.restart_at(held, at),
            Correction::GoOnAt(at) => {
                held.pass_over(at);
                self.submit_corrected(held);
            }
        }
    }

    fn submit_corrected(&self, held: &Arc<HeldQueue>) {
        self.submit_after(held, pull::pause_after_corrections(held, self.config.pull_error_delay));
    }

    /// Makes the next ticket, at once or after a pause.
    fn submit_after(&self, held: &HeldQueue, pause: Option<Duration>) {
        match pause {
            Some(pause) => self.instance.submit_pull_later(held.ticket(), pause),
            None => self.instance.submit_pull(held.ticket()),
        }
    }

    fn found(&self, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult, took: Duration) {
        let mut found = pull::found(held, asked, answer, self.config.max_inflated_size);
        if let Some(event) = &found.unreadable {
            self.tell(event);
        }
        self.prepare(held, &mut found.messages);
        let next = found.next_after(asked);
        let pause = found.is_damaged.then_some(self.config.pull_error_delay);
        let messages = found.messages;
        let sizes = messages.iter().map(|message| (message.queue_offset(), size_of(message) as usize));
        let taken = held.take_in(sizes, next);
        let messages = if taken.iter().all(|taken| *taken) {
            messages
        } else {
            messages.into_iter().zip(taken).filter_map(|(message, taken)| taken.then_some(message)).collect()
        };
        let led_nowhere = pull::pause_after(held, !messages.is_empty() || next > asked, took);
        if !messages.is_empty() {
            self.observer.stats.of(held.queue.shared_topic()).pulled(messages.len(), took);
        }
        self.service.submit(held.clone(), messages);
        let interval = (!self.config.pull_interval.is_zero()).then_some(self.config.pull_interval);
        self.submit_after(held, pause.or(led_nowhere).or(interval));
    }

    /// Filters by the text of the tag, since brokers compare hashes only, and gives messages that came again the topic
    /// they were sent to.
    fn prepare(&self, held: &HeldQueue, messages: &mut Vec<MessageExt>) {
        pull::keep_matching(self.subscription(held.queue.topic()).as_deref(), messages);
        if held.queue.topic() == &*self.retry_topic {
            self.restore_topics(messages);
        }
    }

    /// For messages of the retry topic.
    pub(super) fn restore_topics(&self, messages: &mut [MessageExt]) {
        for message in messages {
            if let Some(topic) = message.property(properties::RETRY_TOPIC) {
                let topic = self.subscriptions.shared_name(topic);
                message.set_topic(topic);
            }
        }
    }

    fn nothing_found(&self, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult, took: Duration) {
        let next = pull::nothing_found(asked, answer);
        held.pass_over(next);
        self.submit_after(held, pull::pause_after(held, next > asked, took));
    }

    fn pull_failed(&self, held: &Arc<HeldQueue>, error: &Error) {
        let failed = pull::failed(&self.instance, &self.group, held, error, self.config.pull_error_delay);
        if matches!(error.kind(), ErrorKind::Connect | ErrorKind::Closed) {
            self.doubt_lock(held);
        }
        if failed.is_conflict {
            let topic = held.queue.shared_topic().clone();
            let (members, reason) = (Vec::new(), error.to_string());
            self.problem(ConsumerEvent::SubscriptionConflict { topic, members, reason });
            self.check_group_soon();
        }
        self.instance.submit_pull_later(held.ticket(), failed.pause);
    }

    /// Ends this ownership and begins the next one of the same queue at `offset`, in one step: results of the old one
    /// can no longer move the offset, so nothing needs to wait for them (field report 22).
    pub(super) fn restart_at(&self, held: &Arc<HeldQueue>, offset: i64) {
        let Some(next) = self.held.restart(held, offset) else { return };
        self.abandon(held);
        let corrections = held.with_progress(|progress| progress.corrections);
        next.with_progress(|progress| progress.corrections = corrections);
        // Stored at once: a pull under way may have carried the old offset to the broker (03-broker 3.10).
        let core = self.me.clone();
        self.instance.executor().soon(move || {
            let Some(core) = core.upgrade() else { return };
            {
                let _one_at_a_time = core.storing.lock();
                core.store_offsets(std::slice::from_ref(&next), Deadline::after(STORE_CORRECTION));
            }
            core.submit_corrected(&next);
        });
    }

    /// Gives back what an ended ownership still counted.
    pub(super) fn abandon(&self, held: &HeldQueue) {
        if let Some(process) = held.process() {
            self.service.forget(held, process.abandon());
        }
    }
}
