//! One pull of a lite pull consumer: as a push consumer's, but that messages go to the buffer.
//!
//! Exactly one ticket circulates for a queue that is `Pulling`; each path ends in the one step that submits it again, or
//! leaves it to rest in the buffer. Source: the pull task of `DefaultLitePullConsumerImpl` (02-consumer 14.2.3).

use super::buffer::Admission;
use super::core::Core;
use crate::api::pull::{PullResult, PullStatus};
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldQueue;
use crate::consumer::pull;
use crate::consumer::pull::flow_control::{Correction, correct};
use crate::error::Error;
use crate::thread::contain;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Core {
    /// Decides and sends. Called by the pull service.
    pub(super) fn pull_queue(&self, held: &Arc<HeldQueue>) {
        held.with_progress(|progress| progress.last_pull = Some(Instant::now()));
        match self.buffer.admit(held) {
            Admission::Go => {}
            Admission::Rest(why) => return held.with_progress(|progress| progress.standing = Some(why.into())),
            Admission::Over => return,
        }
        let Some(subscription) = self.subscription(held.queue.topic()) else {
            // Unsubscribed: the next round gives the queue up.
            return self.instance.submit_pull_later(held.ticket(), self.config.pull_error_delay);
        };
        let terms = pull::Terms {
            batch_size: self.config.pull_batch_size,
            batch_bytes: self.config.pull_batch_bytes,
            suspend: self.config.pull_suspend,
            carries_subscription: true,
            // What is committed is sent by itself, when it is committed.
            carries_commit: false,
        };
        let (core, answered) = (self.me.clone(), held.clone());
        let sent = pull::send(&self.instance, &self.group, held, &subscription, &terms, move |asked, took, result| {
            let Some(core) = core.upgrade() else { return };
            // Sought, reset, revoked: what comes late belongs to nobody (field report 94).
            if !answered.is_pulling() || core.is_stopping() {
                return;
            }
            let handled = contain(|| match result {
                Ok(answer) => core.pull_answered(&answered, asked, &answer, took),
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

    fn pull_answered(&self, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult, took: Duration) {
        pull::answered(&self.group, held, answer);
        let (messages, next, damaged) = match answer.status {
            PullStatus::OffsetIllegal => return self.refused(held, asked, answer),
            PullStatus::NoNewMsg | PullStatus::NoMatchedMsg => (Vec::new(), pull::nothing_found(asked, answer), None),
            PullStatus::Found => {
                let mut found = pull::found(held, asked, answer, self.config.max_inflated_size);
                if let Some(event) = &found.unreadable {
                    self.tell(event);
                }
                let next = found.next_after(asked);
                pull::keep_matching(self.subscription(held.queue.topic()).as_deref(), &mut found.messages);
                (found.messages, next, found.is_damaged.then_some(self.config.pull_error_delay))
            }
        };
        let led_nowhere = pull::pause_after(held, next > asked, took);
        self.buffer.take_in(held, messages, next);
        self.submit_after(held, damaged.or(led_nowhere));
    }

    /// The broker refused the offset.
    fn refused(&self, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult) {
        held.with_progress(|progress| progress.corrections = progress.corrections.saturating_add(1));
        let lowest = self.buffer.handled(held).unwrap_or(asked);
        let correction = correct(asked, lowest, answer);
        let (Correction::GoOnAt(corrected) | Correction::RestartAt(corrected)) = correction;
        if corrected != asked {
            self.tell(&ConsumerEvent::OffsetCorrected { queue: held.queue.clone(), asked, corrected });
        }
        match correction {
            Correction::RestartAt(at) => drop(self.restart_at(held, at)),
            Correction::GoOnAt(at) => {
                self.buffer.take_in(held, Vec::new(), at);
                self.submit_after(held, pull::pause_after_corrections(held, self.config.pull_error_delay));
            }
        }
    }

    /// Makes the next ticket, at once or after a pause.
    fn submit_after(&self, held: &HeldQueue, pause: Option<Duration>) {
        match pause {
            Some(pause) => self.instance.submit_pull_later(held.ticket(), pause),
            None => self.instance.submit_pull(held.ticket()),
        }
    }

    fn pull_failed(&self, held: &Arc<HeldQueue>, error: &Error) {
        let failed = pull::failed(&self.instance, &self.group, held, error, self.config.pull_error_delay);
        self.instance.submit_pull_later(held.ticket(), failed.pause);
    }

    /// Ends this ownership and begins the next one of the same queue at `offset`, in one step: what is cached, in flight
    /// or in hand of the old one moves nothing any more. `None`: it is over already, or is being given up.
    pub(super) fn restart_at(&self, held: &Arc<HeldQueue>, offset: i64) -> Option<Arc<HeldQueue>> {
        let next = self.held.restart(held, offset)?;
        let corrections = held.with_progress(|progress| progress.corrections);
        next.with_progress(|progress| progress.corrections = corrections);
        self.submit(self.buffer.open(next.clone()));
        self.submit_after(&next, pull::pause_after_corrections(&next, self.config.pull_error_delay));
        Some(next)
    }
}
