//! From a message to a record in the store: delay, limits, place, wake-up.
//!
//! Kept from a real broker (`HookUtils`, `DefaultMessageStore.putMessage`, `ScheduleMessageService`): a message with a
//! delay level waits in the schedule topic under REAL_TOPIC and REAL_QID, which stay visible on the delivered message;
//! the limits and codes of the store. Stronger: readable at once; a delayed message is delivered at its time and takes
//! the room of its own copy, so a full broker still delivers. Left out: timer messages, flush and replication codes.

use super::config::MAX_MESSAGE_SIZE;
use super::filter::Filter;
use super::outbox::Outbox;
use super::property_list::PropertyList;
use super::state::{Refusal, State, refuse};
use super::store::Placement;
use crate::base::java_hash::string_hash;
use crate::message::id::offset_message_id;
use crate::message::store_codec::{DecodeOptions, StoredFields, decode_one, encode_stored};
use crate::message::topic::{MAX_TOPIC_LENGTH, SCHEDULE_TOPIC, is_retry};
use crate::message::{MessageExt, properties, sys_flag};
use crate::protocol::ResponseCode;
use crate::time::to_millis;
use bytes::Bytes;
use std::borrow::Cow;
use std::net::SocketAddr;

/// Longest name of a retry topic.
const MAX_RETRY_TOPIC: usize = 255;
/// What a record may have beside its body.
const RECORD_SLACK: usize = 64 * 1024;

/// A message that is not stored yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft<'a> {
    pub(crate) topic: Cow<'a, str>,
    pub(crate) queue_id: i32,
    pub(crate) flag: i32,
    pub(crate) sys_flag: i32,
    pub(crate) born_millis: i64,
    pub(crate) born_host: SocketAddr,
    pub(crate) reconsume_times: i32,
    pub(crate) body: &'a [u8],
    pub(crate) properties: PropertyList<'a>,
}

impl<'a> Draft<'a> {
    /// A copy of a stored message, to be stored again; the body is taken as it is, compressed or not.
    pub(crate) fn copy_of(message: &'a MessageExt) -> Self {
        Self {
            topic: message.topic().into(),
            queue_id: message.queue_id(),
            flag: message.flag(),
            sys_flag: message.sys_flag(),
            born_millis: to_millis(message.born_time()),
            born_host: message.born_host(),
            reconsume_times: message.reconsume_times(),
            body: message.body(),
            properties: message.properties().collect(),
        }
    }
}

/// Where a message was stored.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) msg_id: String,
    pub(crate) queue_offset: i64,
    wake: Option<(u32, i64, i64)>,
}

/// A draft that passed the checks, with what they computed.
#[derive(Debug)]
struct Ready<'a> {
    draft: Draft<'a>,
    properties: String,
    size: usize,
    /// The level at which it waits.
    delay_level: Option<i32>,
}

impl State {
    /// Stores a message, and wakes the pulls that wait for it.
    pub(crate) fn put(&mut self, draft: Draft<'_>, out: &mut Outbox) -> Result<Stored, Refusal> {
        let ready = self.prepare(draft, true)?;
        if !self.store.admit(ready.size, 1) {
            return refuse(ResponseCode::SERVICE_NOT_AVAILABLE, self.full_remark());
        }
        let stored = self.store_ready(ready)?;
        self.wake(stored.wake, out);
        Ok(stored)
    }

    /// Stores messages of one queue next to each other, at once: all of them or none.
    pub(crate) fn put_all(&mut self, drafts: Vec<Draft<'_>>, out: &mut Outbox) -> Result<Vec<Stored>, Refusal> {
        let ready: Vec<_> = drafts.into_iter().map(|draft| self.prepare(draft, false)).collect::<Result<_, _>>()?;
        if !self.store.admit(ready.iter().map(|ready| ready.size).sum(), ready.len()) {
            return refuse(ResponseCode::SERVICE_NOT_AVAILABLE, self.full_remark());
        }
        let stored: Vec<_> = ready.into_iter().map(|ready| self.store_ready(ready)).collect::<Result<_, _>>()?;
        // Only now, so that a pull that waited gets them all at once.
        for stored in &stored {
            self.wake(stored.wake, out);
        }
        Ok(stored)
    }

    /// Delivers the delayed message whose copy in the schedule topic lies at `position`.
    pub(crate) fn deliver_delayed(&mut self, position: i64, out: &mut Outbox) {
        // Dropped to make room: a real broker skips it as well.
        let Some(message) = self.message_at(position) else { return };
        let real_queue = message.property(properties::REAL_QUEUE_ID).and_then(|id| id.parse().ok());
        let (Some(topic), Some(queue_id)) = (message.property(properties::REAL_TOPIC), real_queue) else {
            log::error!("embedded broker {}: the delayed message at {position} names no queue", self.config.name);
            return;
        };
        self.store.discard(position);
        let draft = Draft { topic: topic.into(), queue_id, ..Draft::copy_of(&message) };
        let stored = self.prepare(draft, false).and_then(|ready| {
            // Whether or not it says yes, it has made what room there was: the copy's own at least.
            let _ = self.store.admit(ready.size, 1);
            self.store_ready(ready)
        });
        match stored {
            Ok(stored) => self.wake(stored.wake, out),
            Err(refusal) => log::error!(
                "embedded broker {}: the delayed message at {position} cannot be delivered: {}",
                self.config.name,
                refusal.remark
            ),
        }
    }

    /// The stored message that starts at `position`.
    pub(crate) fn message_at(&self, position: i64) -> Option<MessageExt> {
        let record = Bytes::copy_from_slice(self.store.at_position(position)?);
        self.decode(record)
    }

    /// A message of a record, with its body as it is stored.
    pub(crate) fn decode(&self, record: Bytes) -> Option<MessageExt> {
        let options = DecodeOptions { inflate: false, ..DecodeOptions::default() };
        match decode_one(record, &options) {
            Ok(message) => Some(message),
            Err(error) => {
                log::error!("embedded broker {}: a stored record does not decode: {error}", self.config.name);
                None
            }
        }
    }

    fn prepare<'a>(&self, mut draft: Draft<'a>, may_delay: bool) -> Result<Ready<'a>, Refusal> {
        let illegal = |what: String| refuse(ResponseCode::MESSAGE_ILLEGAL, format!("the message is illegal: {what}"));
        let longest = if is_retry(&draft.topic) { MAX_RETRY_TOPIC } else { MAX_TOPIC_LENGTH };
        if draft.topic.len() > longest {
            return illegal(format!("its topic has {} bytes; the most is {longest}", draft.topic.len()));
        }
        if draft.body.len() > MAX_MESSAGE_SIZE {
            return illegal(format!("its body has {} bytes; the most is {MAX_MESSAGE_SIZE}", draft.body.len()));
        }
        let decided = matches!(draft.sys_flag & sys_flag::TRANSACTION_MASK, 0 | sys_flag::TRANSACTION_COMMIT);
        let delay_level = if may_delay && decided { self.delay(&mut draft) } else { None };
        let properties = draft.properties.encode();
        if properties.len() > properties::MAX_LENGTH {
            let most = properties::MAX_LENGTH;
            return illegal(format!("its properties have {} bytes; the most is {most}", properties.len()));
        }
        let at = Placement { queue_offset: 0, position: 0, store_time: 0, slot: 0 };
        let size = fields(&draft, &properties, at, self.address).size();
        if size > MAX_MESSAGE_SIZE + RECORD_SLACK {
            return illegal(format!("it takes {size} bytes in all; the most is {}", MAX_MESSAGE_SIZE + RECORD_SLACK));
        }
        Ok(Ready { draft, properties, size, delay_level })
    }

    /// Sends a message that asks for a delay to the schedule topic; returns its level.
    fn delay(&self, draft: &mut Draft<'_>) -> Option<i32> {
        let level: i32 = draft.properties.get(properties::DELAY_TIME_LEVEL)?.parse().ok()?;
        if level <= 0 {
            return None;
        }
        for timer in [properties::TIMER_DELIVER_MS, properties::TIMER_DELAY_SEC, properties::TIMER_DELAY_MS] {
            draft.properties.remove(timer);
        }
        let level = self.config.delay_levels.capped(level);
        draft.properties.set(properties::DELAY_TIME_LEVEL, level.to_string());
        let topic = std::mem::replace(&mut draft.topic, SCHEDULE_TOPIC.into());
        draft.properties.set(properties::REAL_TOPIC, topic);
        draft.properties.set(properties::REAL_QUEUE_ID, draft.queue_id.to_string());
        draft.queue_id = level - 1;
        Some(level)
    }

    fn store_ready(&mut self, ready: Ready<'_>) -> Result<Stored, Refusal> {
        let Ready { draft, properties, size, delay_level } = ready;
        let at = self.store.place(&draft.topic, draft.queue_id, self.now_millis());
        let mut record = Vec::with_capacity(size);
        encode_stored(&fields(&draft, &properties, at, self.address), &mut record)?;
        let tags_code = match delay_level {
            Some(level) => at.store_time + self.config.delay_levels.delay(level).as_millis() as i64,
            None => draft.properties.get(properties::TAGS).map_or(0, |tags| i64::from(string_hash(tags))),
        };
        self.store.append(at, record, tags_code, draft.properties.index_keys());
        if let Some(level) = delay_level {
            self.schedule.add(self.now() + self.config.delay_levels.delay(level), at.position);
        }
        Ok(Stored {
            msg_id: offset_message_id(self.address, at.position),
            queue_offset: at.queue_offset,
            wake: Some((at.slot, at.queue_offset + 1, tags_code)),
        })
    }

    fn wake(&mut self, arrival: Option<(u32, i64, i64)>, out: &mut Outbox) {
        let Some((slot, max_offset, tags_code)) = arrival else { return };
        let record = self.store.record_in(slot, max_offset - 1);
        let passes = |filter: &Filter| filter.passes_code(tags_code) && filter.passes_record(record, &mut 0);
        for held in self.holds.take_arrived(slot, max_offset, passes) {
            self.resume(held, out);
        }
    }

    fn full_remark(&self) -> String {
        format!(
            "broker {} is full with {} messages of {} bytes in all; give it more room or let it drop the oldest",
            self.config.name,
            self.store.messages(),
            self.store.bytes()
        )
    }
}

fn fields<'a>(draft: &'a Draft<'_>, properties: &'a str, at: Placement, store_host: SocketAddr) -> StoredFields<'a> {
    StoredFields {
        queue_id: draft.queue_id,
        flag: draft.flag,
        queue_offset: at.queue_offset,
        commit_log_offset: at.position,
        sys_flag: draft.sys_flag,
        born_millis: draft.born_millis,
        born_host: draft.born_host,
        store_millis: at.store_time,
        store_host,
        reconsume_times: draft.reconsume_times,
        prepared_transaction_offset: 0,
        ..StoredFields::new(&draft.topic, draft.body, properties)
    }
}
