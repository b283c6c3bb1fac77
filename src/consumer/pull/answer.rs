//! What an answer holds: messages, damage, the next offset, and the pause that answers without progress ask for.

use super::flow_control::back_off;
use crate::api::pull::PullResult;
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldQueue;
use crate::message::MessageExt;
use crate::message::store_codec::{Damage, DamageKind, DecodeOptions, decode_all};
use crate::protocol::SubscriptionData;
use std::time::Duration;

/// A broker that does not hold pulls would otherwise be asked without end.
const EMPTY_PAUSE: Duration = Duration::from_millis(50);
/// So many answers in a row that lead nowhere, or that correct the offset, are followed at once; then come pauses.
const FREE_TRIES: u32 = 3;
const LONGEST_CORRECTION_PAUSE: Duration = Duration::from_secs(5);
/// So often an undecodable place is asked for again before it is passed over (01-wire 5.1).
const DAMAGE_TRIES: u32 = 3;

/// What an answer with messages comes to.
pub(crate) struct Found {
    pub(crate) messages: Vec<MessageExt>,
    /// Where the next pull begins.
    pub(crate) next: i64,
    /// Whether a damaged place is asked for again, after a pause.
    pub(crate) is_damaged: bool,
    /// A message that is passed over since it cannot be read.
    pub(crate) unreadable: Option<ConsumerEvent>,
}

/// An answer came, whatever it says.
pub(crate) fn answered(group: &str, held: &HeldQueue, answer: &PullResult) {
    let failed_before = held.with_progress(|progress| {
        progress.suggested_broker_id = answer.suggest_which_broker_id;
        progress.standing = None;
        std::mem::take(&mut progress.failures)
    });
    if failed_before > 0 {
        log::info!("group '{group}' pulls {} again", held.queue);
    }
}

/// Reads the messages of an answer. What lies behind damage comes again with the next pull.
pub(crate) fn found(held: &HeldQueue, asked: i64, answer: &PullResult, max_inflated: usize) -> Found {
    let options = DecodeOptions { max_inflated, ..DecodeOptions::default() };
    let mut decoded = decode_all(&answer.body, Some(&held.queue), answer.offset_delta, &options);
    let mut next = answer.next_begin_offset;
    let (mut is_damaged, mut unreadable) = (false, None);
    if let Some(damage) = &decoded.damage {
        let again_at = damage.last_good_offset.map_or(asked, |last| last.saturating_add(1));
        unreadable = given_up(held, again_at, damage);
        if unreadable.is_some() {
            let behind = again_at.saturating_add(1);
            // What lies behind this place was read only if it is the only bad one, in a stream that goes on: else it
            // has its own three tries.
            if damage.kind == DamageKind::BadMessage && damage.places == 1 {
                next = next.max(behind);
            } else {
                decoded.messages.truncate(damage.messages_before);
                next = behind;
            }
        } else {
            decoded.messages.truncate(damage.messages_before);
            next = again_at;
            is_damaged = true;
        }
    } else {
        held.with_progress(|progress| progress.damage = None);
    }
    Found { messages: decoded.messages, next, is_damaged, unreadable }
}

/// Filters by the text of the tag, since brokers compare hashes only.
pub(crate) fn keep_matching(subscription: Option<&SubscriptionData>, messages: &mut Vec<MessageExt>) {
    if let Some(subscription) = subscription
        && !subscription.tags_set.is_empty()
    {
        messages.retain(|message| subscription.matches_tag(message.tags()));
    }
}

impl Found {
    /// Where the next pull begins; one that does not move would ask for the same messages for ever.
    pub(crate) fn next_after(&self, asked: i64) -> i64 {
        let last = self.messages.last().map(|message| message.queue_offset().saturating_add(1));
        self.next.max(last.unwrap_or(asked)).max(asked)
    }
}

/// Where to go on behind an answer without messages. An offset behind the one asked for would repeat messages; only a
/// correction may go back.
pub(crate) fn nothing_found(asked: i64, answer: &PullResult) -> i64 {
    answer.next_begin_offset.max(asked)
}

/// Counts the tries at a place that does not decode; the event when it is bad in the store and must be passed over.
fn given_up(held: &HeldQueue, at: i64, damage: &Damage) -> Option<ConsumerEvent> {
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
        log::warn!("{what} at offset {at} of {} does not decode, it is asked for again: {}", held.queue, damage.reason);
        return None;
    }
    log::error!(
        "message {at} of {} (physical offset {:?}, {} bytes) does not decode in {DAMAGE_TRIES} answers and is passed over: {}",
        held.queue,
        damage.commit_log_offset,
        damage.size,
        damage.reason
    );
    let (queue, reason) = (held.queue.clone(), damage.reason.to_owned());
    Some(ConsumerEvent::MessageUnreadable { queue, offset: at, reason })
}

/// Counts answers in a row that came at once and led nowhere; the pause they ask for.
pub(crate) fn pause_after(held: &HeldQueue, led_on: bool, took: Duration) -> Option<Duration> {
    let empty = held.with_progress(|progress| {
        progress.corrections = 0;
        progress.empty_answers =
            if led_on || took > EMPTY_PAUSE { 0 } else { progress.empty_answers.saturating_add(1) };
        progress.empty_answers
    });
    (empty >= FREE_TRIES).then(|| back_off(empty + 1 - FREE_TRIES, EMPTY_PAUSE, Duration::from_secs(1)))
}

/// The pause that corrections in a row ask for: a broker may refuse every offset.
pub(crate) fn pause_after_corrections(held: &HeldQueue, first: Duration) -> Option<Duration> {
    let corrections = held.with_progress(|progress| progress.corrections);
    (corrections >= FREE_TRIES).then(|| back_off(corrections + 1 - FREE_TRIES, first, LONGEST_CORRECTION_PAUSE))
}
