//! A message that a tool has the listener handle now (`CONSUME_MESSAGE_DIRECTLY`, 02-consumer 9.6 and 10.5).
//!
//! It runs on threads of its own, which exist only while there is such a message: not on a call thread, which must not
//! wait for a listener, and not on the workers, which may all be stuck in what the operator wants to look into.

use super::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::role::DirectAnswer;
use crate::message::MessageQueue;
use crate::message::store_codec::{DecodeOptions, decode_one};
use crate::protocol::body::ConsumeMessageDirectlyResult;
use crate::thread::WorkerPool;
use crate::time::Deadline;
use bytes::Bytes;
use std::time::Duration;

/// So many at a time; further ones wait.
const THREADS: usize = 2;
/// Brokers wait for an answer for 10 s, so more would be answered to nobody.
const MOST_WAITING: usize = 16;
const KEEP_ALIVE: Duration = Duration::from_secs(1);

pub(super) struct DirectThreads(WorkerPool);

impl DirectThreads {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(WorkerPool::new("rmq-direct", 0, THREADS, MOST_WAITING, KEEP_ALIVE)?))
    }

    /// As that of the workers: `false` when a listener had not returned by the deadline.
    pub(super) fn join(&self, deadline: Deadline) -> bool {
        self.0.shutdown(deadline)
    }
}

/// Answers exactly once, also when it is dropped.
struct Answer(Option<DirectAnswer>);

impl Answer {
    fn give(mut self, result: Result<ConsumeMessageDirectlyResult>) {
        if let Some(answer) = self.0.take() {
            answer(result);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer(Err(Error::new(ErrorKind::Busy, "too many messages wait to be consumed directly")));
        }
    }
}

impl Core {
    pub(super) fn consume_directly(&self, record: Bytes, broker_name: Option<&str>, answer: DirectAnswer) {
        let options = DecodeOptions { max_inflated: self.member.config.max_inflated_size, ..DecodeOptions::default() };
        let mut message = match decode_one(record, &options) {
            Ok(message) => message,
            Err(error) => return answer(Err(error)),
        };
        if self.member.is_stopping() {
            return answer(Err(Error::new(ErrorKind::State, format!("group '{}' stops here", self.member.group))));
        }
        if let Some(error) = message.body_error() {
            return answer(Err(Error::new(ErrorKind::Protocol, format!("its body cannot be read: {error}"))));
        }
        let queue = message.message_queue();
        let broker_name = broker_name.unwrap_or_default();
        message.set_queue(MessageQueue::new(queue.shared_topic().clone(), broker_name, queue.queue_id()));
        if message.topic() == &*self.retry_topic {
            self.restore_topics(std::slice::from_mut(&mut message));
        }
        let (core, answer) = (self.me.clone(), Answer(Some(answer)));
        let begun = self.direct.0.submit(move || {
            if let Some(core) = core.upgrade() {
                answer.give(Ok(core.service.consume_directly(message)));
            }
        });
        if let Err(error) = begun {
            log::warn!("group '{}' did not consume a message directly: {error}", self.member.group);
        }
    }
}
