//! Questions about offsets, and moves to another one.

use super::core::Core;
use crate::api::StoredOffset;
use crate::consumer::member::Kind;
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use crossbeam::channel::bounded;
use std::sync::Arc;
use std::time::Duration;

/// The end of a queue that a seek goes to.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    First,
    Last,
}

/// Answers arrive on a call thread; this one waits for it.
fn wait<T: Send + 'static>(ask: impl FnOnce(Box<dyn FnOnce(Result<T>) + Send>)) -> Result<T> {
    let (done, answer) = bounded(1);
    ask(Box::new(move |result| drop(done.send(result))));
    // Each call has its own time-out, so each one answers.
    answer.recv().unwrap_or_else(|_| Err(Error::new(ErrorKind::Closed, "the client stopped before the answer came")))
}

impl Core {
    fn timeout(&self) -> Duration {
        self.member.request_timeout()
    }

    /// The lowest offset stored, and the one that the next message gets.
    fn bounds(&self, queue: &MessageQueue) -> Result<(i64, i64)> {
        let master = self.member.master_of(queue)?;
        let api = self.member.instance.api();
        let min = wait(|done| api.min_offset(&master, queue, self.timeout(), done))?;
        let max = wait(|done| api.max_offset(&master, queue, self.timeout(), done))?;
        Ok((min.max(0), max.max(0)))
    }

    pub(super) fn seek(&self, queue: &MessageQueue, offset: i64) -> Result<()> {
        self.owned(queue)?;
        let (min, max) = self.bounds(queue)?;
        if !(min..=max).contains(&offset) {
            let text = format!("offset {offset} of {queue} is out of range: the broker has {min} to {max}");
            return Err(Error::new(ErrorKind::Config, text));
        }
        self.move_to(queue, offset)
    }

    pub(super) fn seek_to_end(&self, queue: &MessageQueue, end: End) -> Result<()> {
        self.owned(queue)?;
        let (min, max) = self.bounds(queue)?;
        self.move_to(
            queue,
            match end {
                End::First => min,
                End::Last => max,
            },
        )
    }

    fn move_to(&self, queue: &MessageQueue, offset: i64) -> Result<()> {
        // Another seek, a correction or a reset may renew the ownership in between: then it is tried on the new one.
        while self.restart_at(&self.owned(queue)?, offset).is_none() {}
        log::debug!("group '{}' goes on at {offset} of {queue}", self.member.group);
        Ok(())
    }

    pub(super) fn committed(&self, queue: &MessageQueue) -> Result<Option<i64>> {
        if !self.member.is_broadcasting() {
            self.member.master_of(queue)?;
        }
        Ok(match wait(|done| self.member.store.read(queue, self.timeout(), done))? {
            StoredOffset::Value(offset) => Some(offset),
            StoredOffset::Absent => None,
        })
    }

    pub(super) fn offset_for(&self, queue: &MessageQueue, millis: i64) -> Result<i64> {
        let master = self.member.master_of(queue)?;
        wait(|done| self.member.instance.api().search_offset(&master, queue, millis, self.timeout(), done))
    }

    pub(super) fn queues_of(&self, topic: &str) -> Result<Arc<[MessageQueue]>> {
        let route = self.member.instance.refresh_route(&Arc::from(topic))?;
        let route = route.ok_or_else(|| {
            Error::new(
                ErrorKind::NoRoute,
                format!("the name servers know no route of topic '{topic}'; create it first"),
            )
        })?;
        Ok(route.readable.clone())
    }
}
