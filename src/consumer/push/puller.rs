//! One pull: decide, send, handle the answer, make the next ticket.
//!
//! Exactly one ticket circulates for a queue that is `Pulling`. Each path below ends in one step that submits it again
//! (now, later, or by parking it), and that step is the last one, so that no error can make two of one (02-consumer
//! T11). Source: `DefaultMQPushConsumerImpl.pullMessage` (02-consumer 7.2 to 7.6).

use super::core::Core;
use super::flow_control::{Correction, back_off, correct};
use super::service::size_of;
use crate::api::pull::{PullResult, PullStatus};
use crate::api::retry::{PullFailure, pull_failure};
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldQueue;
use crate::consumer::offset;
use crate::error::{Error, ErrorKind};
use crate::message::store_codec::{Damage, DamageKind, DecodeOptions, decode_all};
use crate::message::sys_flag::pull as pull_flag;
use crate::message::{MessageExt, properties};
use crate::protocol::header::PullMessageRequestHeader;
use crate::thread::contain;
use crate::time::Deadline;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The request may take this much longer than the broker was asked to hold it (field report 25); brokers look for
/// expired holds every 5 s.
const PULL_MARGIN: Duration = Duration::from_secs(15);
/// First pause when a broker does not know our subscription; a heartbeat is on its way to it.
const UNREGISTERED_PAUSE: Duration = Duration::from_millis(100);
const FLOW_CONTROL_PAUSE: Duration = Duration::from_millis(20);
/// Pause while the consumer as a whole has no room.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(50);
/// A broker that does not hold pulls would otherwise be asked without end.
const EMPTY_PAUSE: Duration = Duration::from_millis(50);
/// So many answers in a row that lead nowhere, or that correct the offset, are followed at once; then come pauses.
const FREE_TRIES: u32 = 3;
const LONGEST_CORRECTION_PAUSE: Duration = Duration::from_secs(5);
/// So many refusals in a row are no longer a heartbeat that is late.
const CONFLICT_AFTER: u32 = 5;
/// So often an undecodable place is asked for again before it is passed over (01-wire 5.1).
const DAMAGE_TRIES: u32 = 3;
/// Storing a corrected offset must not hold up the next pull for long.
const STORE_CORRECTION: Duration = Duration::from_secs(3);

impl Core {
    /// Decides and sends. Called by the pull service.
    pub(super) fn pull_queue(&self, held: &Arc<HeldQueue>) {
        let Some(process) = held.process() else { return };
        // From here on until the answer the queue has a pull in flight or a ticket somewhere.
        held.with_progress(|progress| progress.last_pull = Some(Instant::now()));
        if let Err(full) = process.admit(&self.limits) {
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
        let progress = held.with_progress(|progress| progress.clone());
        let brokers = self.instance.brokers();
        let Some(target) = brokers.to_read(held.queue.broker_name(), progress.suggested_broker_id) else {
            let text = format!("no route names an address of broker '{}'", held.queue.broker_name());
            return self.pull_failed(held, &Error::new(ErrorKind::NoRoute, text));
        };
        // Only a master may store the offset that travels with a pull (field report 33).
        let commit = held.carried_commit().filter(|_| target.is_master);
        let carries = self.config.post_subscription_when_pull;
        let flag = pull_flag::SUSPEND
            | if commit.is_some() { pull_flag::COMMIT_OFFSET } else { 0 }
            | if carries { pull_flag::SUBSCRIPTION } else { 0 };
        let asked = progress.next_offset;
        let header = PullMessageRequestHeader {
            consumer_group: &self.group,
            topic: held.queue.topic(),
            queue_id: held.queue.queue_id(),
            queue_offset: asked,
            max_msg_nums: if progress.damage.is_some() { 1 } else { self.config.pull_batch_size },
            sys_flag: flag,
            commit_offset: commit.unwrap_or(0),
            suspend_timeout_millis: i64::try_from(self.config.pull_suspend.as_millis()).unwrap_or(i64::MAX),
            subscription: carries.then_some(&*subscription.sub_string),
            sub_version: subscription.sub_version,
            expression_type: Some(&subscription.expression_type),
            max_msg_bytes: Some(self.config.pull_batch_bytes),
            bname: Some(held.queue.broker_name()),
        };
        let (core, answered) = (self.me.clone(), held.clone());
        let sent = Instant::now();
        self.instance.api().pull(&target.address, &header, self.config.pull_suspend + PULL_MARGIN, move |result| {
            // A consumer that is gone needs no answer.
            let Some(core) = core.upgrade() else { return };
            if !answered.is_pulling() || core.is_stopping() {
                return;
            }
            // The step that submits the ticket again is the last one, so a panic means that it was not reached.
            let handled = contain(|| match result {
                Ok(answer) => core.pull_answered(&answered, asked, answer, sent.elapsed()),
                Err(error) => core.pull_failed(&answered, &error),
            });
            if let Err(panic) = handled {
                log::error!("an answer to a pull of {} panicked; it is pulled again: {panic}", answered.queue);
                core.instance.submit_pull_later(answered.ticket(), core.config.pull_error_delay);
            }
        });
    }

    fn pull_answered(&self, held: &Arc<HeldQueue>, asked: i64, answer: PullResult, took: Duration) {
        let failed_before = held.with_progress(|progress| {
            progress.suggested_broker_id = answer.suggest_which_broker_id;
            progress.standing = None;
            std::mem::take(&mut progress.failures)
        });
        if failed_before > 0 {
            log::info!("group '{}' pulls {} again", self.group, held.queue);
        }
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
        let corrections = held.with_progress(|progress| progress.corrections);
        if corrections < FREE_TRIES {
            return self.instance.submit_pull(held.ticket());
        }
        let pause = back_off(corrections + 1 - FREE_TRIES, self.config.pull_error_delay, LONGEST_CORRECTION_PAUSE);
        self.instance.submit_pull_later(held.ticket(), pause);
    }

    fn found(&self, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult, took: Duration) {
        let options = DecodeOptions { max_inflated: self.config.max_inflated_size, ..DecodeOptions::default() };
        let mut decoded = decode_all(&answer.body, Some(&held.queue), answer.offset_delta, &options);
        let mut next = answer.next_begin_offset;
        let mut pause = None;
        if let Some(damage) = &decoded.damage {
            let again_at = damage.last_good_offset.map_or(asked, |last| last.saturating_add(1));
            if self.is_given_up(held, again_at, damage) {
                next = next.max(again_at.saturating_add(1));
            } else {
                // What lies behind the damage comes again with the next pull.
                decoded.messages.truncate(damage.messages_before);
                next = again_at;
                pause = Some(self.config.pull_error_delay);
            }
        } else {
            held.with_progress(|progress| progress.damage = None);
        }
        let messages = self.prepare(held, decoded.messages);
        // A next offset that does not move would ask for the same messages for ever.
        let last = messages.last().map(|message| message.queue_offset().saturating_add(1));
        let next = next.max(last.unwrap_or(asked)).max(asked);
        let sizes = messages.iter().map(|message| (message.queue_offset(), size_of(message) as usize));
        let taken = held.take_in(sizes, next);
        let messages = if taken.iter().all(|taken| *taken) {
            messages
        } else {
            messages.into_iter().zip(taken).filter_map(|(message, taken)| taken.then_some(message)).collect()
        };
        let led_nowhere = self.pause_after(held, !messages.is_empty() || next > asked, took);
        self.service.submit(held.clone(), messages);
        match pause
            .or(led_nowhere)
            .or_else(|| (!self.config.pull_interval.is_zero()).then_some(self.config.pull_interval))
        {
            Some(pause) => self.instance.submit_pull_later(held.ticket(), pause),
            None => self.instance.submit_pull(held.ticket()),
        }
    }

    /// Filters by the text of the tag, since brokers compare hashes only, and gives messages that came again the topic
    /// they were sent to.
    fn prepare(&self, held: &HeldQueue, mut messages: Vec<MessageExt>) -> Vec<MessageExt> {
        if let Some(subscription) = self.subscription(held.queue.topic())
            && !subscription.tags_set.is_empty()
        {
            messages.retain(|message| subscription.matches_tag(message.tags()));
        }
        if held.queue.topic() == &*self.retry_topic {
            let subscriptions = self.subscriptions.read();
            for message in &mut messages {
                if let Some(topic) = message.property(properties::RETRY_TOPIC) {
                    let known = subscriptions.get_key_value(topic).map(|(known, _)| known.clone());
                    let topic = known.unwrap_or_else(|| Arc::from(topic));
                    message.set_topic(topic);
                }
            }
        }
        messages
    }

    /// Counts the tries at a place that does not decode; `true` when it is bad in the store and must be passed over.
    fn is_given_up(&self, held: &Arc<HeldQueue>, at: i64, damage: &Damage) -> bool {
        let tries = held.with_progress(|progress| {
            let tries = match progress.damage {
                Some((place, tries)) if place == at => tries + 1,
                _ => 1,
            };
            progress.damage = (tries < DAMAGE_TRIES).then_some((at, tries));
            tries
        });
        if tries < DAMAGE_TRIES {
            let what = if damage.kind == DamageKind::BrokenStream { "the answer" } else { "a message" };
            log::warn!(
                "{what} at offset {at} of {} does not decode, it is asked for again: {}",
                held.queue,
                damage.reason
            );
            return false;
        }
        log::error!(
            "message {at} of {} (physical offset {:?}, {} bytes) does not decode in {DAMAGE_TRIES} answers and is passed over: {}",
            held.queue,
            damage.commit_log_offset,
            damage.size,
            damage.reason
        );
        self.tell(&ConsumerEvent::MessageUnreadable {
            queue: held.queue.clone(),
            offset: at,
            reason: damage.reason.to_owned(),
        });
        true
    }

    fn nothing_found(&self, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult, took: Duration) {
        // An offset behind the one asked for would repeat messages; only a correction may go back.
        let next = answer.next_begin_offset.max(asked);
        held.pass_over(next);
        match self.pause_after(held, next > asked, took) {
            Some(pause) => self.instance.submit_pull_later(held.ticket(), pause),
            None => self.instance.submit_pull(held.ticket()),
        }
    }

    /// Counts answers in a row that came at once and led nowhere; the pause they ask for.
    fn pause_after(&self, held: &HeldQueue, led_on: bool, took: Duration) -> Option<Duration> {
        let empty = held.with_progress(|progress| {
            progress.corrections = 0;
            progress.empty_answers =
                if led_on || took > EMPTY_PAUSE { 0 } else { progress.empty_answers.saturating_add(1) };
            progress.empty_answers
        });
        (empty >= FREE_TRIES).then(|| back_off(empty + 1 - FREE_TRIES, EMPTY_PAUSE, Duration::from_secs(1)))
    }

    fn pull_failed(&self, held: &Arc<HeldQueue>, error: &Error) {
        let failures = held.with_progress(|progress| {
            progress.failures = progress.failures.saturating_add(1);
            progress.standing = Some(error.to_string());
            progress.failures
        });
        let failure = pull_failure(error);
        // One line when it begins and one when it is over, whatever the number of tries.
        let level =
            if failures == 1 && failure != PullFailure::NotRegistered { log::Level::Warn } else { log::Level::Debug };
        log::log!(level, "group '{}' cannot pull {}, it tries again: {error}", self.group, held.queue);
        let pause = match failure {
            PullFailure::NotRegistered => {
                if failures == CONFLICT_AFTER {
                    let topic = held.queue.shared_topic().clone();
                    let (members, reason) = (Vec::new(), error.to_string());
                    self.problem(ConsumerEvent::SubscriptionConflict { topic, members, reason });
                    self.check_group_soon();
                }
                self.instance.heartbeat_soon();
                back_off(failures, UNREGISTERED_PAUSE, self.config.pull_error_delay.max(UNREGISTERED_PAUSE))
            }
            PullFailure::FlowControl => FLOW_CONTROL_PAUSE,
            PullFailure::Unreachable => {
                offset::doubt(held);
                self.instance.refresh_routes_soon();
                self.config.pull_error_delay
            }
            PullFailure::Other => self.config.pull_error_delay,
        };
        self.instance.submit_pull_later(held.ticket(), pause);
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
                offset::store(
                    &core.instance,
                    &core.group,
                    std::slice::from_ref(&next),
                    Deadline::after(STORE_CORRECTION),
                );
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
