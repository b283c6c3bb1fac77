//! One pull: decide, send, handle the answer, make the next ticket.
//!
//! Exactly one ticket circulates for a queue that is `Pulling`. Each path below ends in one step that submits it again
//! (now, later, or by leaving it where room is made), and that step is the last one, so that no error can make two of one
//! (02-consumer T11). Source: `DefaultMQPushConsumerImpl.pullMessage` (02-consumer 7.2 to 7.6) and the pull task of
//! `DefaultLitePullConsumerImpl` (02-consumer 14.2.3).

use super::{Kind, Member};
use crate::api::pull::{PullResult, PullStatus};
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldQueue;
use crate::consumer::pull;
use crate::consumer::pull::flow_control::{Correction, correct};
use crate::error::{Error, ErrorKind};
use crate::instance::role::PullTicket;
use crate::thread::contain;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Member {
    /// Decides and sends. Called by the pull service.
    pub(crate) fn pull(&self, ticket: &PullTicket) {
        // A ticket of an ownership that is over finds nothing and ends here.
        let held = self.held.get(&ticket.queue, ticket.epoch).filter(|held| held.is_pulling() && !self.is_stopping());
        let (Some(held), Some(kind)) = (held, self.kind()) else { return };
        // From here on until the answer the queue has a pull in flight or a ticket somewhere.
        held.with_progress(|progress| progress.last_pull = Some(Instant::now()));
        if !kind.admit(&held) {
            return;
        }
        // What it waited for is there; a failure lasts until an answer comes.
        held.with_progress(|progress| progress.standing = progress.standing.take().filter(|_| progress.failures > 0));
        let Some(subscription) = self.subscription(held.queue.topic()) else {
            // Unsubscribed: the next round gives the queue up.
            return self.instance.submit_pull_later(held.ticket(), self.config.pull_error_delay);
        };
        let (carries_subscription, carries_commit) = kind.carries();
        let terms = pull::Terms {
            batch_size: self.config.pull_batch_size,
            batch_bytes: self.config.pull_batch_bytes,
            suspend: self.config.pull_suspend,
            carries_subscription,
            carries_commit,
        };
        let (asking, answered) = (self.kind.clone(), held.clone());
        let sent = pull::send(&self.instance, &self.group, &held, &subscription, &terms, move |asked, took, result| {
            // A consumer that is gone needs no answer.
            let Some(kind) = asking.upgrade() else { return };
            let member = kind.member();
            // Moved, reset, revoked: what comes late belongs to nobody (field report 94).
            if !answered.is_pulling() || member.is_stopping() {
                return;
            }
            // The step that submits the ticket again is the last one, so a panic means that it was not reached.
            let handled = contain(|| match result {
                Ok(answer) => member.pull_answered(&*kind, &answered, asked, &answer, took),
                Err(error) => member.pull_failed(&*kind, &answered, &error),
            });
            if let Err(panic) = handled {
                log::error!("an answer to a pull of {} panicked; it is pulled again: {panic}", answered.queue);
                member.instance.submit_pull_later(answered.ticket(), member.config.pull_error_delay);
            }
        });
        if let Err(error) = sent {
            self.pull_failed(&*kind, &held, &error);
        }
    }

    fn pull_answered(&self, kind: &dyn Kind, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult, took: Duration) {
        pull::answered(&self.group, held, answer);
        match answer.status {
            PullStatus::Found => self.found(kind, held, asked, answer, took),
            PullStatus::NoNewMsg | PullStatus::NoMatchedMsg => {
                let next = pull::nothing_found(asked, answer);
                kind.pass_over(held, next);
                self.submit_after(held, pull::pause_after(held, next > asked, took));
            }
            PullStatus::OffsetIllegal => self.refused(kind, held, asked, answer),
        }
    }

    fn found(&self, kind: &dyn Kind, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult, took: Duration) {
        let mut found = pull::found(held, asked, answer, self.config.max_inflated_size);
        if let Some(event) = &found.unreadable {
            self.tell(event);
        }
        pull::keep_matching(self.subscription(held.queue.topic()).as_deref(), &mut found.messages);
        let next = found.next_after(asked);
        let damaged = found.is_damaged.then_some(self.config.pull_error_delay);
        let is_new = kind.take_in(held, found.messages, next, took);
        let led_nowhere = pull::pause_after(held, is_new || next > asked, took);
        self.submit_after(held, damaged.or(led_nowhere).or(kind.pull_interval()));
    }

    /// The broker refused the offset. One that refuses every offset is asked again and again, so with pauses.
    fn refused(&self, kind: &dyn Kind, held: &Arc<HeldQueue>, asked: i64, answer: &PullResult) {
        held.with_progress(|progress| progress.corrections = progress.corrections.saturating_add(1));
        let correction = correct(asked, kind.unfinished_from(held).unwrap_or(asked), answer);
        let (Correction::GoOnAt(corrected) | Correction::RestartAt(corrected)) = correction;
        if corrected != asked {
            self.tell(&ConsumerEvent::OffsetCorrected { queue: held.queue.clone(), asked, corrected });
        }
        match correction {
            Correction::RestartAt(at) => drop(kind.restart_at(held, at)),
            Correction::GoOnAt(at) => {
                kind.pass_over(held, at);
                self.submit_corrected(held);
            }
        }
    }

    /// Makes the next ticket of a queue whose offset was corrected.
    pub(crate) fn submit_corrected(&self, held: &Arc<HeldQueue>) {
        self.submit_after(held, pull::pause_after_corrections(held, self.config.pull_error_delay));
    }

    /// Makes the next ticket, at once or after a pause.
    fn submit_after(&self, held: &HeldQueue, pause: Option<Duration>) {
        match pause {
            Some(pause) => self.instance.submit_pull_later(held.ticket(), pause),
            None => self.instance.submit_pull(held.ticket()),
        }
    }

    fn pull_failed(&self, kind: &dyn Kind, held: &Arc<HeldQueue>, error: &Error) {
        let failed = pull::failed(&self.instance, &self.group, held, error, self.config.pull_error_delay);
        if matches!(error.kind(), ErrorKind::Connect | ErrorKind::Closed) {
            kind.doubt(held);
        }
        if failed.is_conflict {
            let topic = held.queue.shared_topic().clone();
            let (members, reason) = (Vec::new(), error.to_string());
            self.problem(ConsumerEvent::SubscriptionConflict { topic, members, reason });
            self.check_group_soon();
        }
        self.instance.submit_pull_later(held.ticket(), failed.pause);
    }

    /// Ends this ownership and begins the next one of the same queue at `offset`, in one step: results of the old one can
    /// no longer move the offset, so nothing needs to wait for them (field report 22). The caller makes its ticket.
    pub(crate) fn renew_at(&self, held: &Arc<HeldQueue>, offset: i64) -> Option<Arc<HeldQueue>> {
        let next = self.held.restart(held, offset)?;
        let corrections = held.with_progress(|progress| progress.corrections);
        next.with_progress(|progress| progress.corrections = corrections);
        Some(next)
    }
}
