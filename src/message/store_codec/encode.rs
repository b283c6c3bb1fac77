//! One message to its stored form.

use super::{DecodeOptions, MAGIC_V1, MAGIC_V2, MIN_RECORD, body_crc, decode_one};
use crate::error::{Error, ErrorKind, Result};
use crate::message::sys_flag::{BORN_HOST_V6, STORE_HOST_V6};
use crate::message::{MessageExt, properties};
use bytes::BufMut;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Longest topic that the older of the two forms can hold.
const MAX_V1_TOPIC: usize = i8::MAX as usize;

/// All that a record holds. Sizes, checksum and the flags for IPv6 follow from it.
#[derive(Clone, Copy)]
pub struct StoredFields<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The queue.
    pub queue_id: i32,
    /// The user's flag.
    pub flag: i32,
    /// Place in the queue.
    pub queue_offset: i64,
    /// Place in the commit log.
    pub commit_log_offset: i64,
    /// The system's flag word, without the bits for IPv6 hosts.
    pub sys_flag: i32,
    /// When the producer made it, in milliseconds since 1970.
    pub born_millis: i64,
    /// The address it was sent from.
    pub born_host: SocketAddr,
    /// When the broker stored it, in milliseconds since 1970.
    pub store_millis: i64,
    /// The address of the broker.
    pub store_host: SocketAddr,
    /// How often it was retried.
    pub reconsume_times: i32,
    /// Commit-log offset of the half message of its transaction.
    pub prepared_transaction_offset: i64,
    /// The body, compressed or not as the flag word says.
    pub body: &'a [u8],
    /// The property string.
    pub properties: &'a str,
}

impl<'a> StoredFields<'a> {
    /// A record with the given topic, body and property string, and zero for all else.
    pub fn new(topic: &'a str, body: &'a [u8], properties: &'a str) -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Self {
            topic,
            queue_id: 0,
            flag: 0,
            queue_offset: 0,
            commit_log_offset: 0,
            sys_flag: 0,
            born_millis: 0,
            born_host: nowhere,
            store_millis: 0,
            store_host: nowhere,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body,
            properties,
        }
    }

    /// The bytes that the record takes.
    pub fn size(&self) -> usize {
        let v6 = usize::from(self.born_host.is_ipv6()) + usize::from(self.store_host.is_ipv6());
        let wide = usize::from(self.topic.len() > MAX_V1_TOPIC);
        MIN_RECORD + wide + 12 * v6 + self.body.len() + self.topic.len() + self.properties.len()
    }

    /// The message that a consumer makes of the record.
    ///
    /// # Errors
    /// As [`encode_stored`].
    pub fn to_message(&self) -> Result<MessageExt> {
        let mut record = Vec::new();
        encode_stored(self, &mut record)?;
        decode_one(record.into(), &DecodeOptions::default())
    }
}

impl fmt::Debug for StoredFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredFields")
            .field("topic", &self.topic)
            .field("queue_id", &self.queue_id)
            .field("queue_offset", &self.queue_offset)
            .field("commit_log_offset", &self.commit_log_offset)
            .field("sys_flag", &self.sys_flag)
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Appends the record to `out` and returns its size.
///
/// # Errors
/// [`ErrorKind::MessageIllegal`] when a part is longer than its field can tell; `out` is as before then.
pub fn encode_stored(fields: &StoredFields<'_>, out: &mut Vec<u8>) -> Result<usize> {
    let size = fields.size();
    let fits = fields.topic.len() <= usize::from(u16::MAX)
        && fields.properties.len() <= properties::MAX_LENGTH
        && i32::try_from(size).is_ok();
    if !fits {
        let (topic, properties, body) = (fields.topic.len(), fields.properties.len(), fields.body.len());
        return Err(Error::new(
            ErrorKind::MessageIllegal,
            format!(
                "a message of {topic} bytes of topic, {properties} of properties and {body} of body does not fit a record"
            ),
        ));
    }
    let wide = fields.topic.len() > MAX_V1_TOPIC;
    let mut sys_flag = fields.sys_flag & !(BORN_HOST_V6 | STORE_HOST_V6);
    if fields.born_host.is_ipv6() {
        sys_flag |= BORN_HOST_V6;
    }
    if fields.store_host.is_ipv6() {
        sys_flag |= STORE_HOST_V6;
    }
    out.reserve(size);
    out.put_u32(size as u32);
    out.put_u32(if wide { MAGIC_V2 } else { MAGIC_V1 });
    out.put_u32(body_crc(fields.body));
    out.put_i32(fields.queue_id);
    out.put_i32(fields.flag);
    out.put_i64(fields.queue_offset);
    out.put_i64(fields.commit_log_offset);
    out.put_i32(sys_flag);
    out.put_i64(fields.born_millis);
    put_host(out, fields.born_host);
    out.put_i64(fields.store_millis);
    put_host(out, fields.store_host);
    out.put_i32(fields.reconsume_times);
    out.put_i64(fields.prepared_transaction_offset);
    out.put_u32(fields.body.len() as u32);
    out.put_slice(fields.body);
    if wide {
        out.put_u16(fields.topic.len() as u16);
    } else {
        out.put_u8(fields.topic.len() as u8);
    }
    out.put_slice(fields.topic.as_bytes());
    out.put_u16(fields.properties.len() as u16);
    out.put_slice(fields.properties.as_bytes());
    Ok(size)
}

fn put_host(out: &mut Vec<u8>, host: SocketAddr) {
    match host.ip() {
        IpAddr::V4(v4) => out.put_slice(&v4.octets()),
        IpAddr::V6(v6) => out.put_slice(&v6.octets()),
    }
    out.put_u32(host.port().into());
}
