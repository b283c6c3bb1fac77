//! What a consumer receives.

use super::properties::{self, find};
use super::sys_flag::{self, BORN_HOST_V6, STORE_HOST_V6};
use super::{BodyError, Message, MessageQueue, id};
use crate::time::from_millis;
use byteorder::{BigEndian, ByteOrder};
use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

/// Where the born host begins in a record; before it all is at fixed places.
const BORN_HOST_AT: usize = 48;
/// Where the body begins in a record whose hosts are IPv4.
const BODY_AT: usize = 88;

/// A message as a consumer receives it. Clones share everything.
///
/// It is a slice of the broker's answer: nothing of it was copied, and properties are searched when asked for. So a
/// message that is kept keeps its whole answer in memory; copy out what must live long.
#[derive(Clone)]
#[doc(alias = "org.apache.rocketmq.common.message.MessageExt")]
pub struct MessageExt {
    /// Exactly one record in the stored form. Its lengths were checked when this message was made.
    pub(super) record: Bytes,
    /// The queue it was taken from.
    pub(super) queue: Arc<MessageQueue>,
    /// The topic, where it is not the queue's.
    pub(super) topic: Option<Arc<str>>,
    /// What is not as in the record.
    pub(super) overlay: Option<Arc<Overlay>>,
    pub(super) queue_offset: i64,
    pub(super) sys_flag: i32,
    pub(super) reconsume_times: i32,
    /// Length of the body in the record.
    pub(super) body_len: u32,
    /// Where in the record the properties begin; they end with it.
    pub(super) properties_at: u32,
}

/// Parts of a message that are not as its record has them: an inflated body, a member of an inner batch.
#[derive(Clone, Default)]
pub(super) struct Overlay {
    pub(super) body: Option<Bytes>,
    pub(super) body_error: Option<BodyError>,
    /// UTF-8.
    pub(super) properties: Option<Bytes>,
    pub(super) flag: Option<i32>,
}

impl MessageExt {
    /// The topic, as the user knows it.
    pub fn topic(&self) -> &str {
        self.shared_topic()
    }

    /// The topic, to be shared.
    pub fn shared_topic(&self) -> &Arc<str> {
        self.topic.as_ref().unwrap_or(self.queue.shared_topic())
    }

    /// The queue it was taken from. For a message to be consumed again this is a queue of the retry topic.
    pub fn message_queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// The name of the broker it was taken from; empty where that is not known, as in the answer to a query.
    pub fn broker_name(&self) -> &str {
        self.queue.broker_name()
    }

    /// The number of the queue it was taken from.
    pub fn queue_id(&self) -> i32 {
        self.queue.queue_id()
    }

    /// Its place in the queue.
    pub fn queue_offset(&self) -> i64 {
        self.queue_offset
    }

    /// Its place in the broker's commit log.
    pub fn commit_log_offset(&self) -> i64 {
        BigEndian::read_i64(&self.record[28..36])
    }

    /// The bytes it takes in the store. Members of an inner batch all tell the size of the batch.
    pub fn store_size(&self) -> usize {
        self.record.len()
    }

    /// The number that the producer set and RocketMQ never looks at.
    pub fn flag(&self) -> i32 {
        let own = self.overlay.as_ref().and_then(|overlay| overlay.flag);
        own.unwrap_or_else(|| BigEndian::read_i32(&self.record[16..20]))
    }

    /// The system's flag word. The bit for compression is set only if the body is still compressed.
    pub fn sys_flag(&self) -> i32 {
        self.sys_flag
    }

    /// When the producer made it, by the producer's clock.
    pub fn born_time(&self) -> SystemTime {
        from_millis(BigEndian::read_i64(&self.record[40..48]))
    }

    /// When the broker stored it, by the broker's clock.
    pub fn store_time(&self) -> SystemTime {
        let at = BORN_HOST_AT + self.born_host_len();
        from_millis(BigEndian::read_i64(&self.record[at..at + 8]))
    }

    /// The address it was sent from.
    pub fn born_host(&self) -> SocketAddr {
        read_host(&self.record[BORN_HOST_AT..BORN_HOST_AT + self.born_host_len()])
    }

    /// The address of the broker that stored it.
    pub fn store_host(&self) -> SocketAddr {
        let at = BORN_HOST_AT + self.born_host_len() + 8;
        read_host(&self.record[at..self.body_at() - 16])
    }

    /// How often the group was given the message before; 0 the first time.
    pub fn reconsume_times(&self) -> i32 {
        self.reconsume_times
    }

    /// The commit-log offset of the half message of its transaction, 0 without one.
    pub fn prepared_transaction_offset(&self) -> i64 {
        let at = self.body_at() - 12;
        BigEndian::read_i64(&self.record[at..at + 8])
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        match self.own_body() {
            Some(body) => body,
            None => &self.record[self.body_at()..self.body_at() + self.body_len as usize],
        }
    }

    /// The body, to be shared without a copy.
    pub fn shared_body(&self) -> Bytes {
        match self.own_body() {
            Some(body) => body.clone(),
            None => self.record.slice(self.body_at()..self.body_at() + self.body_len as usize),
        }
    }

    /// The checksum of the stored body: CRC-32, of which the top bit is cleared.
    pub fn body_crc(&self) -> u32 {
        BigEndian::read_u32(&self.record[8..12])
    }

    /// Why the body is as it was stored although the message says that it is compressed, or a batch.
    pub fn body_error(&self) -> Option<BodyError> {
        self.overlay.as_ref().and_then(|overlay| overlay.body_error)
    }

    /// The value of a property. It is searched for on each call.
    pub fn property(&self, name: &str) -> Option<&str> {
        find(self.property_bytes(), name)
    }

    /// All properties, in the order they are stored. Should a name come twice, the last value counts.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        // Found to be UTF-8, or made so, when this message was made; safe code has to ask again.
        properties::parse(std::str::from_utf8(self.property_bytes()).unwrap_or_default())
    }

    /// The tag.
    pub fn tags(&self) -> Option<&str> {
        self.property(properties::TAGS)
    }

    /// The keys, separated by blanks.
    pub fn keys(&self) -> Option<&str> {
        self.property(properties::KEYS)
    }

    /// The delay level that the message was sent with, 0 for none.
    pub fn delay_level(&self) -> u32 {
        self.property(properties::DELAY_TIME_LEVEL).and_then(|level| level.parse().ok()).unwrap_or(0)
    }

    /// The id that its producer made. A message keeps it when it is sent again or retried.
    pub fn unique_key(&self) -> Option<&str> {
        self.property(properties::UNIQ_KEY)
    }

    /// The id to show: the [unique key](Self::unique_key), or the [offset id](Self::offset_msg_id) without one.
    pub fn msg_id(&self) -> Cow<'_, str> {
        self.unique_key().map_or_else(|| self.offset_msg_id().into(), Cow::Borrowed)
    }

    /// The id by its place: the broker's address and the commit-log offset.
    pub fn offset_msg_id(&self) -> String {
        id::offset_message_id(self.store_host(), self.commit_log_offset())
    }

    /// The id of its transaction, for a half message.
    pub fn transaction_id(&self) -> Option<&str> {
        let half = self.property(properties::TRANSACTION_PREPARED) == Some("true");
        if half { self.unique_key() } else { None }
    }

    /// Whether it is one of several messages that the broker stores as one, or all of them undivided.
    pub(crate) fn is_inner_batch(&self) -> bool {
        sys_flag::is_inner_batch(self.sys_flag)
    }

    /// A message with the same body, flag and properties, to be sent to a topic.
    pub(crate) fn to_message(&self, topic: impl Into<Arc<str>>) -> Message {
        let mut message = Message::new(topic, self.shared_body()).with_flag(self.flag());
        for (name, value) in self.properties() {
            message.set_raw_property(name.to_owned(), value);
        }
        message
    }

    /// Says which queue it was taken from.
    pub(crate) fn set_queue(&mut self, queue: MessageQueue) {
        self.queue = Arc::new(queue);
    }

    /// Shows another topic; the queue it was taken from stays.
    pub(crate) fn set_topic(&mut self, topic: Arc<str>) {
        self.topic = Some(topic);
    }

    /// Says how often the group was given it before.
    pub(crate) fn set_reconsume_times(&mut self, times: i32) {
        self.reconsume_times = times;
    }

    fn own_body(&self) -> Option<&Bytes> {
        self.overlay.as_ref()?.body.as_ref()
    }

    fn property_bytes(&self) -> &[u8] {
        let own = self.overlay.as_ref().and_then(|overlay| overlay.properties.as_deref());
        own.unwrap_or(&self.record[self.properties_at as usize..])
    }

    fn born_host_len(&self) -> usize {
        host_len(self.sys_flag & BORN_HOST_V6)
    }

    fn body_at(&self) -> usize {
        body_at(self.sys_flag)
    }
}

impl fmt::Debug for MessageExt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageExt")
            .field("topic", &self.topic())
            .field("queue", &self.queue)
            .field("queue_offset", &self.queue_offset)
            .field("commit_log_offset", &self.commit_log_offset())
            .field("msg_id", &self.msg_id())
            .field("sys_flag", &self.sys_flag)
            .field("reconsume_times", &self.reconsume_times)
            .field("store_size", &self.store_size())
            .field("body_len", &self.body().len())
            .field("body_error", &self.body_error())
            .finish_non_exhaustive()
    }
}

fn host_len(v6: i32) -> usize {
    if v6 == 0 { 8 } else { 20 }
}

/// Where the body begins in a record with this flag word.
pub(super) fn body_at(sys_flag: i32) -> usize {
    BODY_AT - 16 + host_len(sys_flag & BORN_HOST_V6) + host_len(sys_flag & STORE_HOST_V6)
}

/// The address in 8 or 20 bytes. A port that none can be reads as 0: the message is worth more than the address.
fn read_host(bytes: &[u8]) -> SocketAddr {
    let (ip, port) = bytes.split_at(bytes.len() - 4);
    let ip = match <[u8; 16]>::try_from(ip) {
        Ok(v6) => IpAddr::from(v6),
        Err(_) => IpAddr::from(BigEndian::read_u32(ip).to_be_bytes()),
    };
    SocketAddr::new(ip, u16::try_from(BigEndian::read_u32(port)).unwrap_or(0))
}
