//! Several messages in one body: what a batch send carries, and what a batch topic stores.
//!
//! Source: `MessageDecoder.encodeMessages`, `decodeMessage`, `MessageBatch` of Apache RocketMQ.

use super::{BodyError, Message, properties, topic};
use crate::error::{Error, ErrorKind, Result};
use byteorder::{BigEndian, ByteOrder};
use bytes::{BufMut, Bytes};

/// Bytes of a member beside its body and its properties.
const MEMBER_OVERHEAD: usize = 22;

/// One message of a batch body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BatchMember<'a> {
    /// The user's flag.
    pub flag: i32,
    /// The body.
    pub body: &'a [u8],
    /// The property string, as it came.
    pub properties: &'a [u8],
}

impl std::fmt::Debug for BatchMember<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BatchMember(flag {}, {} + {} bytes)", self.flag, self.body.len(), self.properties.len())
    }
}

/// Whether the messages may go in one batch.
///
/// # Errors
/// [`ErrorKind::MessageIllegal`] for an empty batch, one whose messages differ in topic or in whether to wait for the
/// store, one with a delay, one to a retry topic, and one with a message that is illegal itself.
pub fn check_batch(messages: &[Message]) -> Result<()> {
    let wrong = |at: usize, why: &str| {
        Err(Error::new(ErrorKind::MessageIllegal, format!("message {at} of {} in the batch {why}", messages.len())))
    };
    let Some(first) = messages.first() else {
        return Err(Error::new(ErrorKind::MessageIllegal, "the batch is empty"));
    };
    if topic::is_retry(first.topic()) {
        return wrong(0, "goes to a retry topic, which takes no batches");
    }
    for (at, message) in messages.iter().enumerate() {
        message.check().map_err(|error| error.context(format_args!("message {at} in the batch")))?;
        if message.topic() != first.topic() {
            return wrong(at, "has another topic than the first");
        }
        if message.wait_store() != first.wait_store() {
            return wrong(at, "differs from the first in whether the broker waits for the store");
        }
        if message.delay_level() > 0 {
            return wrong(at, "has a delay level, which batches cannot have");
        }
    }
    Ok(())
}

/// The body of a batch send.
///
/// # Errors
/// [`ErrorKind::MessageIllegal`] when a body or the properties of a message are longer than their field can tell.
pub fn encode_batch(messages: &[Message]) -> Result<Bytes> {
    let strings: Vec<_> = messages.iter().map(Message::properties_string).collect();
    let sizes =
        messages.iter().zip(&strings).map(|(message, text)| MEMBER_OVERHEAD + message.body().len() + text.len());
    let mut out = Vec::with_capacity(sizes.sum());
    for (at, (message, text)) in messages.iter().zip(&strings).enumerate() {
        let size = i32::try_from(MEMBER_OVERHEAD + message.body().len() + text.len());
        let (Ok(size), true) = (size, text.len() <= properties::MAX_LENGTH) else {
            return Err(Error::new(
                ErrorKind::MessageIllegal,
                format!(
                    "message {at} in the batch has {} bytes of body and {} of properties; a batch holds up to {} of \
                     properties and 2 GiB in all",
                    message.body().len(),
                    text.len(),
                    properties::MAX_LENGTH
                ),
            ));
        };
        out.put_i32(size);
        out.put_i32(0); // magic, not looked at
        out.put_i32(0); // checksum, not looked at
        out.put_i32(message.flag());
        out.put_i32(message.body().len() as i32);
        out.put_slice(message.body());
        out.put_i16(text.len() as i16);
        out.put_slice(text.as_bytes());
    }
    Ok(out.into())
}

/// Takes a batch body apart.
///
/// # Errors
/// [`BodyError::BatchNotSplit`] when its lengths do not add up.
pub fn decode_batch(body: &[u8]) -> Result<Vec<BatchMember<'_>>, BodyError> {
    let mut members = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (member, behind) = split_member(rest).ok_or(BodyError::BatchNotSplit)?;
        members.push(member);
        rest = behind;
    }
    Ok(members)
}

fn split_member(rest: &[u8]) -> Option<(BatchMember<'_>, &[u8])> {
    let size = BigEndian::read_u32(rest.get(..4)?) as usize;
    let (member, behind) = rest.split_at_checked(size)?;
    let head = member.first_chunk::<20>()?;
    let (body, tail) = member[20..].split_at_checked(BigEndian::read_u32(&head[16..]) as usize)?;
    let (length, properties) = tail.split_first_chunk::<2>()?;
    let complete = usize::from(u16::from_be_bytes(*length)) == properties.len();
    complete.then(|| (BatchMember { flag: BigEndian::read_i32(&head[12..16]), body, properties }, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::vectors::{BATCH_BODY, unhex};

    #[test]
    fn writes_and_reads_what_java_writes() {
        let messages = [Message::new("t", "hello").with_tags("A"), Message::new("t", "world!")];
        let body = encode_batch(&messages).unwrap();
        assert_eq!(body, unhex(BATCH_BODY));
        let members = decode_batch(&body).unwrap();
        assert_eq!(members.len(), 2);
        assert_eq!((members[0].body, members[0].properties), (&b"hello"[..], &b"TAGS\x01A\x02"[..]));
        assert_eq!((members[1].body, members[1].properties), (&b"world!"[..], &b""[..]));
    }

    #[test]
    fn refuses_every_cut_and_every_wrong_length() {
        let whole = unhex(BATCH_BODY);
        for cut in (1..whole.len()).filter(|cut| *cut != 34) {
            assert_eq!(decode_batch(&whole[..cut]), Err(BodyError::BatchNotSplit), "cut at {cut}");
        }
        for at in [0, 16, 25, 34, 50] {
            for byte in [0x80, 0xFF, 1] {
                let mut bytes = whole.clone();
                bytes[at] ^= byte;
                assert_eq!(decode_batch(&bytes), Err(BodyError::BatchNotSplit), "byte {at} changed by {byte}");
            }
        }
        assert_eq!(decode_batch(&[]), Ok(vec![]));
    }

    #[test]
    fn refuses_messages_that_do_not_go_together() {
        let plain = || Message::new("t", "b");
        let text = |messages: &[Message]| check_batch(messages).unwrap_err().to_string();
        assert!(check_batch(&[plain(), plain().with_wait_store(true)]).is_ok());
        assert!(text(&[]).contains("empty"));
        assert!(text(&[plain(), Message::new("u", "b")]).starts_with("message 1 of 2 in the batch has another topic"));
        assert!(text(&[plain(), plain().with_wait_store(false)]).contains("waits"));
        assert!(text(&[plain().with_delay_level(1)]).contains("delay"));
        assert!(text(&[Message::new("%RETRY%g", "b")]).contains("retry"));
        assert!(text(&[plain(), plain().with_tags("\u{1}")]).starts_with("message 1 in the batch: "));
        let long = plain().with_property("k", "v".repeat(properties::MAX_LENGTH));
        assert_eq!(encode_batch(&[long]).unwrap_err().kind(), ErrorKind::MessageIllegal);
    }
}
