//! Messages that wait for their time: by delay level, or to a given moment (timer messages of 5.x).
//!
//! Kept from a real broker (`HookUtils`, `ScheduleMessageService`, `TimerMessageStore`): a message with a delay level
//! waits in the schedule topic, one with a timer property in `rmq_sys_wheel_timer`, under REAL_TOPIC and REAL_QID, which
//! stay visible on the delivered message, and so do the TIMER_ properties; which property counts when there are several;
//! a moment in the past delivers at once, one too far ahead is refused with 13; a message with TIMER_DEL_UNIQKEY takes
//! back another one of the same second. Stronger: delivered at its time, to the millisecond, where upstream looks every
//! 100 ms (levels) or second (timers); it takes the room of its own copy, so a full broker still delivers. Left out: flow
//! control of the wheel, taking back by request 370.

use super::append::{Draft, Ready, Stored};
use super::outbox::Outbox;
use super::property_list::PropertyList;
use super::state::{Refusal, State, refuse};
use super::transaction::real_queue;
use crate::message::properties;
use crate::message::topic::{SCHEDULE_TOPIC, is_retry};
use crate::protocol::ResponseCode;
use crate::time::to_millis;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Where timer messages wait.
pub(crate) const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";
/// The moments of timer messages are told in steps of this.
const PRECISION_MILLIS: i64 = 1000;
/// Most messages that are taken back at once.
const MOST_TAKEN_BACK: usize = 100_000;
/// Longest key of a message that is taken back; real ones are far shorter.
const LONGEST_KEY: usize = 1024;
/// Room in the properties for what the delivery of a timer message adds.
pub(super) const DELIVERY_SLACK: usize = 128;

/// For what a message waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Level(i32),
    Until(Instant),
}

/// Timer messages that are not to be delivered: the second, and topic and unique key.
pub(crate) type TakenBack = BTreeSet<(i64, String)>;

impl State {
    /// Sends a message that asks for a delay to where such messages wait.
    pub(crate) fn delay(&self, draft: &mut Draft<'_>) -> Result<Option<Wait>, Refusal> {
        let level = draft.properties.get(properties::DELAY_TIME_LEVEL).and_then(|level| level.parse().ok());
        if let Some(level @ 1..) = level {
            for timer in [properties::TIMER_DELIVER_MS, properties::TIMER_DELAY_SEC, properties::TIMER_DELAY_MS] {
                draft.properties.remove(timer);
            }
            let level = self.config.delay_levels.capped(level);
            draft.properties.set(properties::DELAY_TIME_LEVEL, level.to_string());
            set_aside(draft, SCHEDULE_TOPIC, level - 1);
            return Ok(Some(Wait::Level(level)));
        }
        if draft.topic == TIMER_TOPIC || draft.properties.get(properties::TIMER_OUT_MS).is_some() {
            return Ok(None);
        }
        let now = self.now_millis();
        let takes_back = draft.properties.get(properties::TIMER_DEL_UNIQKEY).is_some();
        let most = i64::try_from(self.config.timer_max_delay.as_millis()).unwrap_or(i64::MAX);
        let deliver = match deliver_millis(&draft.properties, now) {
            None => return Ok(None),
            Some(Ok(deliver)) if deliver <= now && !takes_back => return Ok(None),
            Some(Ok(deliver)) if deliver > now && deliver.saturating_sub(now) <= most => deliver,
            Some(_) => {
                let remark = format!(
                    "the timer message is illegal: its time is no number, or more than {most} ms ahead, or past \
                     although it takes another one back"
                );
                return refuse(ResponseCode::MESSAGE_ILLEGAL, remark);
            }
        };
        // An exact second counts as the one before.
        let out = (deliver - 1).div_euclid(PRECISION_MILLIS) * PRECISION_MILLIS;
        draft.properties.set(properties::TIMER_OUT_MS, out.to_string());
        set_aside(draft, TIMER_TOPIC, 0);
        // In the future, so the difference is positive.
        Ok(Some(Wait::Until(self.now() + Duration::from_millis((deliver - now).unsigned_abs()))))
    }

    /// Remembers what a stored timer message takes back.
    pub(crate) fn note_timer(&mut self, properties: &PropertyList<'_>) {
        if let Some(key) = taken_back(|name| properties.get(name))
            && key.1.len() <= LONGEST_KEY
            && self.taken_back.len() < MOST_TAKEN_BACK
        {
            self.taken_back.insert(key);
        }
    }

    /// Delivers the message whose waiting copy lies at `position`.
    pub(crate) fn deliver_delayed(&mut self, position: i64, out: &mut Outbox) {
        // Dropped to make room: a real broker skips it as well.
        let Some(message) = self.message_at(position) else { return };
        let Some((topic, queue_id)) = real_queue(&message) else {
            log::error!("embedded broker {}: the delayed message at {position} names no queue", self.config.name);
            return;
        };
        let mut draft = Draft { topic: topic.into(), queue_id, ..Draft::copy_of(&message) };
        if message.topic() == TIMER_TOPIC {
            // Messages come by their time, so those of earlier seconds are through. The key itself stays until its second
            // is over: what it takes back may be due after it.
            let second =
                message.property(properties::TIMER_OUT_MS).and_then(|out| out.parse().ok()).unwrap_or(i64::MIN);
            while self.taken_back.first().is_some_and(|(out, _)| *out < second) {
                self.taken_back.pop_first();
            }
            if taken_back(|name| message.property(name)).is_some() {
                self.store.discard(position);
                return;
            }
            if own_key(|name| message.property(name)).is_some_and(|key| self.taken_back.contains(&key)) {
                self.store.discard(position);
                return;
            }
            draft.properties.set(properties::TIMER_ENQUEUE_MS, to_millis(message.store_time()).to_string());
            draft.properties.set(properties::TIMER_DEQUEUE_MS, self.now_millis().to_string());
        }
        if let Err(refusal) = self.replace(position, draft, out) {
            log::error!(
                "embedded broker {}: the delayed message at {position} cannot be delivered: {}",
                self.config.name,
                refusal.remark
            );
        }
    }

    /// Stores a message in the place of its own copy at `position`, full or not.
    pub(crate) fn replace(&mut self, position: i64, draft: Draft<'_>, out: &mut Outbox) -> Result<Stored, Refusal> {
        let ready = self.prepare(draft, false)?;
        self.replace_ready(position, ready, out)
    }

    /// As [`replace`](Self::replace); a message that asks for a delay gets it.
    pub(crate) fn replace_delayed(
        &mut self,
        position: i64,
        draft: Draft<'_>,
        out: &mut Outbox,
    ) -> Result<Stored, Refusal> {
        let ready = self.prepare(draft, true)?;
        self.replace_ready(position, ready, out)
    }

    fn replace_ready(&mut self, position: i64, ready: Ready<'_>, out: &mut Outbox) -> Result<Stored, Refusal> {
        self.store.discard(position);
        // Whether or not it says yes, it has made what room there was: the copy's own at least.
        let _ = self.store.admit(ready.size, 1);
        let stored = self.store_ready(ready)?;
        self.wake(stored.wake, out);
        Ok(stored)
    }
}

fn set_aside(draft: &mut Draft<'_>, topic: &'static str, queue_id: i32) {
    let real_topic = std::mem::replace(&mut draft.topic, topic.into());
    draft.properties.set(properties::REAL_TOPIC, real_topic);
    draft.properties.set(properties::REAL_QUEUE_ID, draft.queue_id.to_string());
    draft.queue_id = queue_id;
}

/// When a message wants to be delivered; an error for a text that is no number.
fn deliver_millis(list: &PropertyList<'_>, now: i64) -> Option<Result<i64, ()>> {
    let read = |text: &str| text.parse::<i64>().map_err(|_| ());
    if let Some(seconds) = list.get(properties::TIMER_DELAY_SEC) {
        return Some(read(seconds).map(|seconds| now.saturating_add(seconds.saturating_mul(1000))));
    }
    if let Some(millis) = list.get(properties::TIMER_DELAY_MS) {
        return Some(read(millis).map(|millis| now.saturating_add(millis)));
    }
    list.get(properties::TIMER_DELIVER_MS).map(read)
}

/// What a timer message takes back, if it does.
fn taken_back<'p>(property: impl Fn(&str) -> Option<&'p str>) -> Option<(i64, String)> {
    let out = property(properties::TIMER_OUT_MS)?.parse().ok()?;
    property(properties::TIMER_DEL_UNIQKEY).map(|key| (out, key.to_owned()))
}

/// The key by which a timer message is taken back.
fn own_key<'p>(property: impl Fn(&str) -> Option<&'p str>) -> Option<(i64, String)> {
    let out = property(properties::TIMER_OUT_MS)?.parse().ok()?;
    Some((out, format!("{}+{}", property(properties::REAL_TOPIC)?, property(properties::UNIQ_KEY)?)))
}

/// What the answer to the send of a timer message carries, for taking it back: five words in URL-safe base64.
pub(crate) fn recall_handle(broker: &str, properties: &PropertyList<'_>) -> Option<String> {
    let out: i64 = properties.get(properties::TIMER_OUT_MS)?.parse().ok()?;
    let topic = properties.get(properties::REAL_TOPIC).filter(|topic| !is_retry(topic))?;
    // The moment was rounded down, and an exact second would count as the one before.
    let text = format!("v1 {topic} {broker} {} {}", out + 1, properties.get(properties::UNIQ_KEY)?);
    Some(base64_url(text.as_bytes()))
}

fn base64_url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at) & 63) as usize];
            out.push(if at > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_timer_properties_counts() {
        let of = |text: &str| deliver_millis(&PropertyList::parse(text), 1000);
        assert_eq!(of("a\u{1}1\u{2}"), None);
        assert_eq!(of("TIMER_DELIVER_MS\u{1}5\u{2}TIMER_DELAY_MS\u{1}7\u{2}"), Some(Ok(1007)));
        assert_eq!(of("TIMER_DELAY_MS\u{1}7\u{2}TIMER_DELAY_SEC\u{1}2\u{2}"), Some(Ok(3000)));
        assert_eq!(of("TIMER_DELIVER_MS\u{1}5\u{2}"), Some(Ok(5)));
        assert_eq!(of("TIMER_DELIVER_MS\u{1}x\u{2}"), Some(Err(())));
        assert_eq!(of("TIMER_DELAY_SEC\u{1}9223372036854775807\u{2}"), Some(Ok(i64::MAX)));
    }

    #[test]
    fn a_handle_is_base64_for_urls() {
        for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("\u{3f}\u{3e}~", "Pz5-")] {
            assert_eq!(base64_url(text.as_bytes()), encoded);
        }
        let list = PropertyList::parse("TIMER_OUT_MS\u{1}5000\u{2}REAL_TOPIC\u{1}T\u{2}UNIQ_KEY\u{1}u\u{2}");
        assert_eq!(recall_handle("b", &list).unwrap(), base64_url(b"v1 T b 5001 u"));
    }
}
