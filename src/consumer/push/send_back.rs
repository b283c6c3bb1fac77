//! Failed messages go back to the broker, to be consumed again or, past the limit, to the dead-letter topic.
//!
//! The broker re-reads the message from its log (`CONSUMER_SEND_MSG_BACK`). If that fails, a copy is published to the
//! group's retry topic; if that fails too, the caller keeps the message. Source: 02-consumer section 11.

use crate::base::rng;
use crate::consumer::event::{ConsumerEvent, EventListener};
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::error::{Error, ErrorKind, Result};
use crate::instance::ClientInstance;
use crate::message::{MessageExt, properties, topic};
use crate::protocol::header::{ConsumerSendMsgBackRequestHeader, SendMessageRequestHeader};
use crate::thread::contain;
use crate::time::to_millis;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// One documented time-out for every send-back (field report 56). After a time-out the broker may still have stored the
/// message, so that a copy by the second way makes it come twice.
const SEND_BACK_TIMEOUT: Duration = Duration::from_secs(5);
/// The level of a first retry is this one; each further one adds 1. Brokers use the same rule.
const FIRST_RETRY_LEVEL: i32 = 3;

/// A message that could be stored nowhere is offered to the listener again after this long (02-consumer 9.5).
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(5);

/// Straight to the dead-letter topic.
pub(crate) const TO_DEAD_LETTERS: i32 = -1;

/// Where a message that was not handled is now.
pub(crate) enum Settled {
    /// Stored in the retry or dead-letter topic.
    Elsewhere,
    /// Still only here.
    Kept,
    /// No longer ours to settle.
    Abandoned,
}

pub(crate) struct SendBack {
    instance: Arc<ClientInstance>,
    group: Arc<str>,
    retry_topic: Arc<str>,
    max_reconsume_times: i32,
    /// There is no retry topic: the message stays with its member.
    stays_here: bool,
    events: Option<EventListener>,
}

impl SendBack {
    pub(crate) fn new(instance: Arc<ClientInstance>, group: Arc<str>, max_reconsume_times: i32) -> Self {
        let retry_topic = Arc::from(topic::retry_topic(&group));
        Self { instance, group, retry_topic, max_reconsume_times, stays_here: false, events: None }
    }

    /// For broadcasting: failed messages stay here for another delivery, and are passed over, which is told, when they
    /// have failed too often. (Java passes them over at once, and says so in its log only.)
    pub(crate) fn that_stays_here(mut self, events: Option<EventListener>) -> Self {
        self.stays_here = true;
        self.events = events;
        self
    }

    /// Whether a message can be stored elsewhere at all.
    pub(crate) fn has_retry_topic(&self) -> bool {
        !self.stays_here
    }

    /// Stores a failed message elsewhere, if it is still ours.
    pub(crate) fn settle(&self, held: &HeldQueue, message: &MessageExt, delay_level: i32) -> Settled {
        // What is given up, or taken over by now, comes again by itself: a copy would make it come twice.
        if held.phase() == QueuePhase::Released {
            return Settled::Abandoned;
        }
        match self.send(message, delay_level) {
            Ok(()) => Settled::Elsewhere,
            Err(error) => {
                log::warn!("{} could not be sent back and stays here: {error}", Named(message));
                Settled::Kept
            }
        }
    }

    /// A message whose body does not inflate is shown to no listener: it becomes a dead letter, and the user hears of it.
    pub(crate) fn bury_unreadable(
        &self,
        held: &HeldQueue,
        message: &MessageExt,
        events: Option<&EventListener>,
    ) -> Settled {
        let reason = message.body_error().map(|error| error.to_string()).unwrap_or_default();
        log::error!("the body of {} cannot be read, it becomes a dead letter: {reason}", Named(message));
        if let Some(events) = events {
            let queue = message.message_queue().clone();
            let event = ConsumerEvent::BodyUnreadable { queue, offset: message.queue_offset(), reason };
            let _ = contain(|| events(&event));
        }
        // An inner batch is one record for the broker, which cannot dead-letter it: it is shown to nobody and passed.
        if message.is_inner_batch() {
            return Settled::Elsewhere;
        }
        self.settle(held, message, TO_DEAD_LETTERS)
    }

    /// Stores the message elsewhere. After an error it is stored nowhere, as far as is known.
    pub(crate) fn send(&self, message: &MessageExt, delay_level: i32) -> Result<()> {
        if self.stays_here {
            return self.keep_or_drop(message, delay_level);
        }
        let by_offset = match self.by_offset(message, delay_level) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // A copy could not carry the mark of a body that does not inflate, nor one member of an inner batch.
        if message.body_error().is_some() {
            return Err(by_offset);
        }
        log::warn!("{} is not sent back by its offset, a copy is sent: {by_offset}", Named(message));
        self.by_copy(message, delay_level)
    }

    fn keep_or_drop(&self, message: &MessageExt, delay_level: i32) -> Result<()> {
        let deliveries = message.reconsume_times().saturating_add(1);
        if delay_level >= 0 && deliveries <= self.max_reconsume_times {
            let text = format!("it failed in delivery {deliveries}, and a broadcasting consumer has no retry topic");
            return Err(Error::new(ErrorKind::State, text));
        }
        log::error!("{} failed in {deliveries} deliveries and is passed over", Named(message));
        if let Some(events) = &self.events {
            let queue = message.message_queue().clone();
            let event = ConsumerEvent::MessageDropped { queue, offset: message.queue_offset(), deliveries };
            let _ = contain(|| events(&event));
        }
        Ok(())
    }

    /// The address comes from the route by the broker's name; the host in the message may be unreachable from here
    /// (field report 52).
    fn by_offset(&self, message: &MessageExt, delay_level: i32) -> Result<()> {
        let address = self.instance.master(message.broker_name())?;
        let header = ConsumerSendMsgBackRequestHeader {
            offset: message.commit_log_offset(),
            group: &self.group,
            delay_level,
            origin_msg_id: Some(&message.msg_id()),
            origin_topic: Some(message.topic()),
            unit_mode: false,
            max_reconsume_times: Some(self.max_reconsume_times),
            bname: Some(message.broker_name()),
        };
        self.instance.api().send_back(&address, &header, SEND_BACK_TIMEOUT)
    }

    /// The broker moves the copy to the dead-letter topic itself when the count is past the limit.
    fn by_copy(&self, message: &MessageExt, delay_level: i32) -> Result<()> {
        let route = self.instance.route(&self.retry_topic)?;
        let queues = route.as_ref().map(|route| &route.writable[..]).unwrap_or_default();
        if queues.is_empty() {
            let text = format!("topic '{}' has no queue to write to", self.retry_topic);
            return Err(Error::new(ErrorKind::NoRoute, text));
        }
        let queue = &queues[rng::entropy() as usize % queues.len()];
        let address = self.instance.master(queue.broker_name())?;
        let times = message.reconsume_times().saturating_add(1);
        let is_last = delay_level < 0 || times > self.max_reconsume_times;

        let mut copy = message.to_message(self.retry_topic.clone());
        // What belonged to the delivery that failed must not look like the next one's (02-consumer T6, T13).
        for stale in [
            properties::TRANSACTION_PREPARED,
            properties::CONSUME_START_TIME,
            properties::MIN_OFFSET,
            properties::MAX_OFFSET,
            properties::POP_CK,
            properties::DELAY_TIME_LEVEL,
        ] {
            copy.remove_raw_property(stale);
        }
        if copy.property(properties::ORIGIN_MESSAGE_ID).is_none() {
            copy.set_raw_property(properties::ORIGIN_MESSAGE_ID, message.msg_id());
        }
        copy.set_raw_property(properties::RETRY_TOPIC, message.topic());
        copy.set_raw_property(properties::RECONSUME_TIME, times.to_string());
        copy.set_raw_property(properties::MAX_RECONSUME_TIMES, self.max_reconsume_times.to_string());
        let level = if delay_level > 0 { delay_level } else { FIRST_RETRY_LEVEL + times - 1 };
        // No delay on the last one: a dead letter should be seen at once (field report 53).
        if !is_last {
            copy.set_raw_property(properties::DELAY_TIME_LEVEL, level.to_string());
        }
        let text = copy.properties_string();
        let header = SendMessageRequestHeader {
            producer_group: "CLIENT_INNER_PRODUCER",
            topic: &self.retry_topic,
            default_topic: topic::AUTO_CREATE_TOPIC,
            default_topic_queue_nums: 4,
            queue_id: queue.queue_id(),
            sys_flag: 0,
            born_timestamp: to_millis(SystemTime::now()),
            flag: message.flag(),
            properties: Some(&text),
            // Brokers compare with "greater than" here, so this is past any limit when it is meant to be the last.
            reconsume_times: Some(if is_last { times.max(self.max_reconsume_times.saturating_add(1)) } else { times }),
            unit_mode: Some(false),
            max_reconsume_times: Some(self.max_reconsume_times),
            batch: Some(false),
            bname: Some(queue.broker_name()),
        };
        self.instance.api().send(&address, &header, message.shared_body(), SEND_BACK_TIMEOUT).map(|_| ())
    }
}

/// A message in a log line: where it is and what its id is, never what is in it.
pub(crate) struct Named<'a>(pub(crate) &'a MessageExt);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "message {} (offset {} of {})", self.0.msg_id(), self.0.queue_offset(), self.0.message_queue())
    }
}
