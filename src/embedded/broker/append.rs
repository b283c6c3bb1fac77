//! From a message to a record in the store: limits, place, wake-up.
//!
//! Kept from a real broker (`HookUtils`, `DefaultMessageStore.putMessage`): the limits and codes of the store. Stronger:
//! readable at once. Left out: flush and replication codes.

use super::config::MAX_MESSAGE_SIZE;
use super::delay::{DELIVERY_SLACK, Wait, recall_handle};
use super::filter::Filter;
use super::outbox::Outbox;
use super::property_list::PropertyList;
use super::state::{Refusal, State, refuse};
use super::store::Placement;
use crate::base::java_hash::string_hash;
use crate::message::id::offset_message_id;
use crate::message::store_codec::{DecodeOptions, StoredFields, decode_one, encode_stored};
use crate::message::topic::{MAX_TOPIC_LENGTH, is_retry};
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
    /// Where the half message of this final one lies; 0 for others.
    pub(crate) prepared_position: i64,
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
            prepared_position: 0,
        }
    }
}

/// Where a message was stored.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) msg_id: String,
    pub(crate) queue_offset: i64,
    pub(crate) position: i64,
    /// With which a timer message could be taken back.
    pub(crate) recall_handle: Option<String>,
    /// Slot, next offset and tags code, for the pulls that wait.
    pub(super) wake: (u32, i64, i64),
}

/// A draft that passed the checks, with what they computed.
#[derive(Debug)]
pub(super) struct Ready<'a> {
    draft: Draft<'a>,
    properties: String,
    pub(super) size: usize,
    wait: Option<Wait>,
}

impl State {
    /// Stores a message, and wakes the pulls that wait for it.
    pub(crate) fn put(&mut self, draft: Draft<'_>, out: &mut Outbox) -> Result<Stored, Refusal> {
        let ready = self.prepare(draft, true)?;
        self.put_ready(ready, out)
    }

    /// Stores a message as it is, whatever delay it asks for.
    pub(crate) fn put_plain(&mut self, draft: Draft<'_>, out: &mut Outbox) -> Result<Stored, Refusal> {
        let ready = self.prepare(draft, false)?;
        self.put_ready(ready, out)
    }

    fn put_ready(&mut self, ready: Ready<'_>, out: &mut Outbox) -> Result<Stored, Refusal> {
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

    pub(super) fn prepare<'a>(&self, mut draft: Draft<'a>, may_delay: bool) -> Result<Ready<'a>, Refusal> {
        let illegal = |what: String| refuse(ResponseCode::MESSAGE_ILLEGAL, format!("the message is illegal: {what}"));
        let longest = if is_retry(&draft.topic) { MAX_RETRY_TOPIC } else { MAX_TOPIC_LENGTH };
        if draft.topic.len() > longest {
            return illegal(format!("its topic has {} bytes; the most is {longest}", draft.topic.len()));
        }
        if draft.body.len() > MAX_MESSAGE_SIZE {
            return illegal(format!("its body has {} bytes; the most is {MAX_MESSAGE_SIZE}", draft.body.len()));
        }
        let decided = matches!(draft.sys_flag & sys_flag::TRANSACTION_MASK, 0 | sys_flag::TRANSACTION_COMMIT);
        let wait = if may_delay && decided { self.delay(&mut draft)? } else { None };
        let properties = draft.properties.encode();
        let slack = if matches!(wait, Some(Wait::Until(_))) { DELIVERY_SLACK } else { 0 };
        let most = properties::MAX_LENGTH - slack;
        if properties.len() > most {
            return illegal(format!("its properties have {} bytes; the most is {most}", properties.len()));
        }
        let at = Placement { queue_offset: 0, position: 0, store_time: 0, slot: 0 };
        let size = fields(&draft, &properties, at, self.address).size();
        if size > MAX_MESSAGE_SIZE + RECORD_SLACK {
            return illegal(format!("it takes {size} bytes in all; the most is {}", MAX_MESSAGE_SIZE + RECORD_SLACK));
        }
        Ok(Ready { draft, properties, size, wait })
    }

    pub(super) fn store_ready(&mut self, ready: Ready<'_>) -> Result<Stored, Refusal> {
        let Ready { draft, properties, size, wait } = ready;
        let at = self.store.place(&draft.topic, draft.queue_id, self.now_millis());
        let mut record = Vec::with_capacity(size);
        encode_stored(&fields(&draft, &properties, at, self.address), &mut record)?;
        let tags_code = match wait {
            Some(Wait::Level(level)) => at.store_time + self.config.delay_levels.delay(level).as_millis() as i64,
            _ => draft.properties.get(properties::TAGS).map_or(0, |tags| i64::from(string_hash(tags))),
        };
        self.store.append(at, record, tags_code, draft.properties.index_keys());
        let mut handle = None;
        if wait.is_some() {
            // Those that were dropped to make room must not pile up.
            self.schedule.tidy(self.store.messages(), |position| self.store.at_position(position).is_some());
        }
        match wait {
            None => {}
            Some(Wait::Level(level)) => {
                self.schedule.add(self.now() + self.config.delay_levels.delay(level), at.position);
            }
            Some(Wait::Until(due)) => {
                self.schedule.add(due, at.position);
                self.note_timer(&draft.properties);
                handle = recall_handle(&self.config.name, &draft.properties);
            }
        }
        Ok(Stored {
            msg_id: offset_message_id(self.address, at.position),
            queue_offset: at.queue_offset,
            position: at.position,
            recall_handle: handle,
            wake: (at.slot, at.queue_offset + 1, tags_code),
        })
    }

    /// Answers the pulls that wait for a message, at all servers of this broker: what one has, all have.
    pub(super) fn wake(&mut self, arrival: (u32, i64, i64), out: &mut Outbox) {
        if self.parked.len() == 1 {
            self.wake_here(arrival, out);
        } else {
            self.in_each_session(|state| state.wake_here(arrival, out));
        }
        // Those that are left are for the clock threads.
        self.is_overdue |= out.is_spent();
    }

    fn wake_here(&mut self, (slot, max_offset, tags_code): (u32, i64, i64), out: &mut Outbox) {
        let now = self.now();
        let record = self.store.record_in(slot, max_offset - 1);
        let passes = |filter: &Filter| {
            if out.is_spent() {
                return None;
            }
            out.spent += filter.code_cost();
            Some(filter.passes_code(tags_code) && filter.passes_record(record, &mut out.spent))
        };
        for held in self.holds.take_arrived(slot, max_offset, now, passes) {
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
        prepared_transaction_offset: draft.prepared_position,
        ..StoredFields::new(&draft.topic, draft.body, properties)
    }
}
