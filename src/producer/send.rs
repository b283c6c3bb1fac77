//! The send kernel: pick a queue, send, classify the failure, try elsewhere until the deadline.
//!
//! One loop for all forms. Each try gets a fair part of the time that is left, so a silent broker cannot use it up
//! (field report 77). Source of the rules: 04-producer 3.4 to 3.6.

use super::config::ProducerConfig;
use super::publish_info::TopicPublishInfo;
use super::result::{SendResult, SendStatus};
use crate::api::retry::is_send_retryable;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::ClientInstance;
use crate::message::{MessageQueue, compress, properties, sys_flag, topic};
use crate::protocol::header::SendMessageRequestHeader;
use crate::time::{Deadline, to_millis};
use bytes::Bytes;
use std::sync::Arc;
use std::time::SystemTime;

/// A message, or a batch, as it goes on the wire. Made once for all tries.
pub(super) struct Outgoing {
    pub(super) topic: Arc<str>,
    /// What the user knows it by.
    pub(super) msg_id: String,
    body: Bytes,
    sys_flag: i32,
    flag: i32,
    properties: String,
    is_batch: bool,
    born: i64,
}

impl Outgoing {
    /// Compresses the body when it is large. One that gets no smaller goes as it is.
    pub(super) fn single(config: &ProducerConfig, message: &crate::message::Message, msg_id: String) -> Result<Self> {
        let mut message = message.clone();
        if message.unique_key().is_none() {
            message.set_raw_property(properties::UNIQ_KEY, msg_id.clone());
        }
        let msg_id = message.unique_key().map_or(msg_id, str::to_owned);
        let mut outgoing = Self {
            topic: message.shared_topic().clone(),
            msg_id,
            body: message.body().clone(),
            sys_flag: 0,
            flag: message.flag(),
            properties: checked_properties(message.topic(), message.properties_string())?,
            is_batch: false,
            born: to_millis(SystemTime::now()),
        };
        if outgoing.body.len() >= config.compress_over {
            let small = compress::deflate(&outgoing.body, config.compress_level)?;
            if small.len() < outgoing.body.len() {
                outgoing.body = small;
                outgoing.sys_flag |= sys_flag::COMPRESSED | sys_flag::CompressionType::Zlib.bits();
            }
        }
        Ok(outgoing)
    }

    /// A batch is never compressed as a whole: no broker could part it (field report 80). The header's properties carry
    /// only what is said of the batch; a unique key there would become that of every message (01-wire 5.9).
    pub(super) fn batch(topic: Arc<str>, body: Bytes, msg_id: String, wait_store: bool) -> Self {
        let mut text = String::new();
        properties::encode([(properties::WAIT_STORE_MSG_OK, if wait_store { "true" } else { "false" })], &mut text);
        Self {
            topic,
            msg_id,
            body,
            sys_flag: 0,
            flag: 0,
            properties: text,
            is_batch: true,
            born: to_millis(SystemTime::now()),
        }
    }

    fn header<'a>(&'a self, group: &'a str, queue: &'a MessageQueue, queues: i32) -> SendMessageRequestHeader<'a> {
        SendMessageRequestHeader {
            producer_group: group,
            topic: &self.topic,
            default_topic: topic::AUTO_CREATE_TOPIC,
            default_topic_queue_nums: queues,
            queue_id: queue.queue_id(),
            sys_flag: self.sys_flag,
            born_timestamp: self.born,
            flag: self.flag,
            properties: Some(&self.properties),
            reconsume_times: Some(0),
            unit_mode: Some(false),
            max_reconsume_times: None,
            batch: Some(self.is_batch),
            bname: Some(queue.broker_name()),
        }
    }
}

pub(super) fn checked_properties(topic: &str, text: String) -> Result<String> {
    if text.len() <= properties::MAX_LENGTH {
        return Ok(text);
    }
    let (size, most) = (text.len(), properties::MAX_LENGTH);
    let text = format!("the properties of a message to '{topic}' have {size} bytes; the most is {most}");
    Err(Error::new(ErrorKind::MessageIllegal, text))
}

/// What every send of a producer needs.
pub(super) struct Sender<'a> {
    pub(super) instance: &'a ClientInstance,
    pub(super) config: &'a ProducerConfig,
}

impl Sender<'_> {
    /// Sends to any queue of the topic.
    pub(super) fn anywhere(
        &self,
        info: &TopicPublishInfo,
        outgoing: &Outgoing,
        deadline: Deadline,
    ) -> Result<SendResult> {
        let tries = self.config.retry_times + 1;
        let mut failed: Vec<Arc<str>> = Vec::new();
        let mut story = Vec::new();
        let mut stored = None;
        let mut last = None;
        for done in 0..tries {
            let Some(queue) = info.next_queue(&failed) else { break };
            if deadline.is_over() {
                break;
            }
            match self.attempt(queue, outgoing, deadline, tries - done) {
                Ok(result) if result.status != SendStatus::SendOk && self.config.retry_not_stored_ok => {
                    stored = Some(result);
                }
                Ok(result) => return Ok(result),
                Err(error) if is_send_retryable(&error) => {
                    story.push(format!("{}: {error}", queue.broker_name()));
                    if matches!(error.kind(), ErrorKind::Connect | ErrorKind::Closed | ErrorKind::NoRoute) {
                        self.instance.refresh_routes_soon();
                    }
                    last = Some(error);
                }
                Err(error) => return stored.ok_or(error),
            }
            failed.push(queue.shared_broker_name().clone());
        }
        if let Some(stored) = stored {
            return Ok(stored);
        }
        let doing = format!("sending to topic '{}', {} of {tries} tries made", outgoing.topic, story.len());
        Err(match last {
            Some(error) if story.len() > 1 => error.context(format!("{doing} [{}]; the last", story.join("; "))),
            Some(error) => error.context(doing),
            None => Error::new(ErrorKind::Timeout, format!("{doing}: no time is left")),
        })
    }

    /// Sends to this queue, once.
    pub(super) fn to_queue(&self, queue: &MessageQueue, outgoing: &Outgoing, deadline: Deadline) -> Result<SendResult> {
        self.attempt(queue, outgoing, deadline, 1).map_err(|error| error.context(format!("sending to {queue}")))
    }

    fn attempt(
        &self,
        queue: &MessageQueue,
        outgoing: &Outgoing,
        deadline: Deadline,
        tries_left: u32,
    ) -> Result<SendResult> {
        let address = self.instance.master(queue.broker_name())?;
        let mut timeout = deadline.remaining() / tries_left.max(1);
        if let Some(most) = self.config.attempt_timeout {
            // The last try may use what is left.
            timeout = if tries_left > 1 { most.min(deadline.remaining()) } else { deadline.remaining() };
        }
        let header = outgoing.header(&self.config.group, queue, self.config.default_topic_queues);
        let answer = self.instance.api().send(&address, &header, outgoing.body.clone(), timeout)?;
        Ok(SendResult {
            status: SendStatus::from_code(answer.code),
            msg_id: outgoing.msg_id.clone(),
            offset_msg_id: answer.offset_msg_id,
            message_queue: MessageQueue::new(
                outgoing.topic.clone(),
                queue.shared_broker_name().clone(),
                answer.queue_id,
            ),
            queue_offset: answer.queue_offset,
            transaction_id: answer.transaction_id,
            region_id: answer.region_id,
        })
    }

    /// Hands it to the connection; nobody answers.
    pub(super) fn oneway(&self, queue: &MessageQueue, outgoing: &Outgoing) -> Result<()> {
        let address = self.instance.master(queue.broker_name())?;
        let header = outgoing.header(&self.config.group, queue, self.config.default_topic_queues);
        self.instance.api().send_oneway(&address, &header, outgoing.body.clone())
    }
}
