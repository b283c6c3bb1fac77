//! Stored records to messages.

use super::{MAGIC_V1, MAGIC_V2, MIN_RECORD};
use crate::error::{Error, ErrorKind, Result};
use crate::message::batch::decode_batch;
use crate::message::compress::Inflater;
use crate::message::message_ext::{Overlay, body_at};
use crate::message::{BodyError, MessageExt, MessageQueue, sys_flag};
use byteorder::{BigEndian, ByteOrder};
use bytes::Bytes;
use std::sync::Arc;

/// How records are decoded.
#[derive(Debug, Clone, Copy)]
pub struct DecodeOptions {
    /// Whether compressed bodies are inflated.
    pub inflate: bool,
    /// The most bytes that one body may inflate to.
    pub max_inflated: usize,
    /// The most bytes that the bodies of one answer may inflate to together. The message that would pass it, and what
    /// follows, is left for the next pull; the first one of an answer always goes.
    pub max_inflated_total: usize,
    /// Whether a batch that is stored as one message becomes its members again.
    pub split_batches: bool,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { inflate: true, max_inflated: 16 << 20, max_inflated_total: 256 << 20, split_batches: true }
    }
}

/// What [`decode_all`] made of an answer.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The sound messages in their order, those behind the damage included.
    pub messages: Vec<MessageExt>,
    /// The first place where the answer was not what it should be.
    pub damage: Option<Damage>,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// One record makes no sense, but its neighbours do: it was passed over.
    BadMessage,
    /// From here on nothing can be trusted: decoding stopped.
    BrokenStream,
}

/// Where an answer is damaged, and what of it can be used. Nothing behind it may be taken as consumed before the
/// answer was asked for again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Whether decoding could go on behind it.
    pub kind: DamageKind,
    /// What is wrong, for a log.
    pub reason: &'static str,
    /// Where the record begins in the answer.
    pub position: usize,
    /// The size that the record claims, 0 if not even that is there.
    pub size: usize,
    /// How many of the decoded messages lie before it.
    pub messages_before: usize,
    /// The queue offset of the last sound message before it, as the user sees it.
    pub last_good_offset: Option<i64>,
    /// The queue offset that the record claims, as the user would see it.
    pub queue_offset: Option<i64>,
    /// The commit-log offset that the record claims.
    pub commit_log_offset: Option<i64>,
    /// How many places are damaged in all.
    pub places: usize,
}

/// Decodes one record that fills `record` exactly. A batch stored as one message is not split.
///
/// # Errors
/// [`ErrorKind::Protocol`] when it is no record, or not the whole of it.
pub fn decode_one(record: Bytes, options: &DecodeOptions) -> Result<MessageExt> {
    let wrong =
        |why: &str| Error::new(ErrorKind::Protocol, format!("{} bytes are no stored message: {why}", record.len()));
    let claimed = record.first_chunk::<4>().map_or(0, |size| u32::from_be_bytes(*size) as usize);
    if claimed != record.len() {
        return Err(wrong("its size says otherwise"));
    }
    let layout = walk(&record).map_err(wrong)?;
    let mut decoder = Decoder::new(None, 0, options);
    let mut message = decoder.message(record, &layout);
    decoder.settle_body(&mut message);
    Ok(message)
}

/// The property string of one record that fills `record` exactly, without decoding the rest. `None` for what is no
/// record, or holds one that is not UTF-8.
pub fn stored_properties(record: &[u8]) -> Option<&str> {
    let layout = walk(record).ok()?;
    std::str::from_utf8(&record[layout.properties_at as usize..]).ok()
}

/// Decodes all records of `body`. With `queue`, the messages come from that queue, whatever their records say, and
/// `offset_delta` is added to their queue offsets; else from the queue that the record names, on a broker without name.
pub fn decode_all(body: &Bytes, queue: Option<&MessageQueue>, offset_delta: i64, options: &DecodeOptions) -> Decoded {
    let mut decoder = Decoder::new(queue, offset_delta, options);
    let mut out = Decoded { messages: Vec::with_capacity(count(body)), damage: None };
    let mut position = 0;
    while position < body.len() {
        let rest = &body[position..];
        let size = rest.first_chunk::<4>().map_or(0, |size| u32::from_be_bytes(*size) as usize);
        if size < MIN_RECORD || size > rest.len() {
            let reason = if size < MIN_RECORD { "its size is too small" } else { "it is cut short" };
            out.note(DamageKind::BrokenStream, reason, position, rest, offset_delta);
            break;
        }
        match walk(&rest[..size]) {
            Ok(layout) => {
                let message = decoder.message(body.slice(position..position + size), &layout);
                if !decoder.finish(message, &mut out.messages) {
                    let reason = "the bodies of this answer inflate to too much, the rest is for another one";
                    out.note(DamageKind::BrokenStream, reason, position, rest, offset_delta);
                    break;
                }
            }
            Err(reason) if is_boundary(&rest[size..]) => {
                out.note(DamageKind::BadMessage, reason, position, rest, offset_delta);
            }
            Err(reason) => {
                out.note(DamageKind::BrokenStream, reason, position, rest, offset_delta);
                break;
            }
        }
        position += size;
    }
    out
}

impl Decoded {
    fn note(&mut self, kind: DamageKind, reason: &'static str, position: usize, rest: &[u8], delta: i64) {
        if let Some(first) = &mut self.damage {
            first.places += 1;
            return;
        }
        self.damage = Some(Damage {
            kind,
            reason,
            position,
            size: rest.first_chunk::<4>().map_or(0, |size| u32::from_be_bytes(*size) as usize),
            messages_before: self.messages.len(),
            last_good_offset: self.messages.last().map(MessageExt::queue_offset),
            queue_offset: rest.get(20..28).map(|bytes| BigEndian::read_i64(bytes).wrapping_add(delta)),
            commit_log_offset: rest.get(28..36).map(BigEndian::read_i64),
            places: 1,
        });
    }
}

/// Whether a record can begin here, or the answer ends.
fn is_boundary(rest: &[u8]) -> bool {
    rest.is_empty() || rest.first_chunk::<8>().is_some_and(|head| is_magic(BigEndian::read_u32(&head[4..])))
}

fn is_magic(word: u32) -> bool {
    matches!(word, MAGIC_V1 | MAGIC_V2)
}

/// How many records `body` seems to hold: never more than would fit.
fn count(body: &[u8]) -> usize {
    let mut rest = body;
    let mut count = 0;
    while let Some(size) = rest.first_chunk::<4>() {
        match rest.get((u32::from_be_bytes(*size) as usize).max(MIN_RECORD)..) {
            Some(behind) => rest = behind,
            None => break,
        }
        count += 1;
    }
    count
}

/// Where the parts of a record lie that have no fixed place.
struct Layout {
    sys_flag: i32,
    body_len: u32,
    topic_at: u32,
    topic_len: u32,
    properties_at: u32,
}

/// Checks that the lengths within `record` lead exactly to its end.
fn walk(record: &[u8]) -> Result<Layout, &'static str> {
    let head = record.first_chunk::<MIN_RECORD>().ok_or("it is shorter than the shortest record")?;
    let wide_topic = match BigEndian::read_u32(&head[4..8]) {
        MAGIC_V1 => false,
        MAGIC_V2 => true,
        _ => return Err("its magic is unknown"),
    };
    let sys_flag = BigEndian::read_i32(&head[36..40]);
    let body_at = body_at(sys_flag);
    let body_len = record.get(body_at - 4..body_at).map(BigEndian::read_i32).ok_or("its hosts do not fit")?;
    let body_len = u32::try_from(body_len).map_err(|_| "its body has a negative length")?;
    let rest = record.get(body_at..).unwrap_or_default();
    let rest = rest.get(body_len as usize..).ok_or("its body does not fit")?;
    let (topic_len, rest) = if wide_topic {
        rest.split_first_chunk::<2>().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))
    } else {
        rest.split_first_chunk::<1>().map(|(length, rest)| (usize::from(length[0]), rest))
    }
    .ok_or("its topic does not fit")?;
    let topic_at = record.len() - rest.len();
    let rest = rest.get(topic_len..).ok_or("its topic does not fit")?;
    let (length, rest) = rest.split_first_chunk::<2>().ok_or("its properties do not fit")?;
    // A negative length means none.
    let properties_len = usize::try_from(i16::from_be_bytes(*length)).unwrap_or(0);
    if properties_len != rest.len() {
        return Err("its parts do not end where it does");
    }
    Ok(Layout {
        sys_flag,
        body_len,
        topic_at: topic_at as u32,
        topic_len: topic_len as u32,
        properties_at: (record.len() - rest.len()) as u32,
    })
}

/// What the records of one answer share.
struct Decoder<'a> {
    options: &'a DecodeOptions,
    pulled: bool,
    offset_delta: i64,
    /// The queue pulled from, else the queue of the last message.
    queue: Option<Arc<MessageQueue>>,
    /// The last topic that was not the queue's.
    topic: Option<Arc<str>>,
    inflater: Inflater,
    inflated: usize,
}

impl<'a> Decoder<'a> {
    fn new(queue: Option<&MessageQueue>, offset_delta: i64, options: &'a DecodeOptions) -> Self {
        Self {
            options,
            pulled: queue.is_some(),
            offset_delta,
            queue: queue.map(|queue| Arc::new(queue.clone())),
            topic: None,
            inflater: Inflater::default(),
            inflated: 0,
        }
    }

    /// The message of a record that [`walk`] found sound, its body as stored.
    fn message(&mut self, record: Bytes, layout: &Layout) -> MessageExt {
        let (queue, topic) = self.origin(&record, layout);
        let reconsume_at = body_at(layout.sys_flag) - 16;
        let mut message = MessageExt {
            queue,
            topic,
            overlay: None,
            queue_offset: BigEndian::read_i64(&record[20..28]).wrapping_add(self.offset_delta),
            sys_flag: layout.sys_flag,
            reconsume_times: BigEndian::read_i32(&record[reconsume_at..reconsume_at + 4]),
            body_len: layout.body_len,
            properties_at: layout.properties_at,
            record,
        };
        let properties = &message.record[layout.properties_at as usize..];
        if let Some(properties) = repaired(properties) {
            message.overlay = Some(Arc::new(Overlay { properties: Some(properties), ..Overlay::default() }));
        }
        message
    }

    fn origin(&mut self, record: &[u8], layout: &Layout) -> (Arc<MessageQueue>, Option<Arc<str>>) {
        let topic_at = layout.topic_at as usize;
        let topic = &record[topic_at..topic_at + layout.topic_len as usize];
        let queue_id = BigEndian::read_i32(&record[12..16]);
        if let Some(queue) = &self.queue {
            let same_topic = queue.topic().as_bytes() == topic;
            if same_topic && (self.pulled || queue.queue_id() == queue_id) {
                return (Arc::clone(queue), None);
            }
            if self.pulled {
                let shared = match &self.topic {
                    Some(last) if last.as_bytes() == topic => Arc::clone(last),
                    _ => String::from_utf8_lossy(topic).into(),
                };
                self.topic = Some(Arc::clone(&shared));
                return (Arc::clone(queue), Some(shared));
            }
        }
        let queue = Arc::new(MessageQueue::new(String::from_utf8_lossy(topic), "", queue_id));
        self.queue = Some(Arc::clone(&queue));
        (queue, None)
    }

    /// Inflates the body of `message` and adds it, or its members, to `out`; false if that would be too much.
    fn finish(&mut self, mut message: MessageExt, out: &mut Vec<MessageExt>) -> bool {
        self.settle_body(&mut message);
        if self.inflated > self.options.max_inflated_total && !out.is_empty() {
            return false;
        }
        if self.options.split_batches && sys_flag::is_inner_batch(message.sys_flag) {
            split(message, out);
        } else {
            out.push(message);
        }
        true
    }

    fn settle_body(&mut self, message: &mut MessageExt) {
        if !self.options.inflate || message.sys_flag & sys_flag::COMPRESSED == 0 {
            return;
        }
        if message.body_len == 0 {
            message.sys_flag &= !sys_flag::COMPRESSED;
            return;
        }
        let overlay = Arc::make_mut(message.overlay.get_or_insert_default());
        let at = body_at(message.sys_flag);
        let stored = &message.record[at..at + message.body_len as usize];
        match self.inflater.inflate(stored, message.sys_flag, self.options.max_inflated) {
            Ok(body) => {
                self.inflated = self.inflated.saturating_add(body.len());
                overlay.body = Some(body);
                message.sys_flag &= !sys_flag::COMPRESSED;
            }
            Err(error) => overlay.body_error = Some(error),
        }
    }
}

/// Adds the members of an inner batch to `out`, or the batch itself, marked, if it cannot be taken apart.
fn split(mut batch: MessageExt, out: &mut Vec<MessageExt>) {
    let body = batch.shared_body();
    let members = if batch.sys_flag & sys_flag::COMPRESSED == 0 {
        decode_batch(&body)
    } else {
        Err(batch.body_error().unwrap_or(BodyError::BatchNotSplit))
    };
    let members = match members {
        Ok(members) if !members.is_empty() => members,
        result => {
            let error = result.err().unwrap_or(BodyError::BatchNotSplit);
            Arc::make_mut(batch.overlay.get_or_insert_default()).body_error = Some(error);
            out.push(batch);
            return;
        }
    };
    for (at, member) in members.into_iter().enumerate() {
        let mut message = batch.clone();
        message.queue_offset = batch.queue_offset.wrapping_add(at as i64);
        message.reconsume_times = 0;
        message.overlay = Some(Arc::new(Overlay {
            body: Some(body.slice_ref(member.body)),
            body_error: None,
            properties: Some(repaired(member.properties).unwrap_or_else(|| body.slice_ref(member.properties))),
            flag: Some(member.flag),
        }));
        out.push(message);
    }
}

/// The text with replacement characters, as Java reads it, if it is not UTF-8.
fn repaired(text: &[u8]) -> Option<Bytes> {
    match std::str::from_utf8(text) {
        Ok(_) => None,
        Err(_) => Some(String::from_utf8_lossy(text).into_owned().into()),
    }
}
