//! Questions about offsets, and moves to another one.

use super::core::Core;
use crate::api::StoredOffset;
use crate::consumer::held::HeldQueue;
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
        self.config.client.request_timeout
    }

    /// The master of a queue that need not be held.
    fn master_of(&self, queue: &MessageQueue) -> Result<Arc<str>> {
        if self.instance.brokers().master(queue.broker_name()).is_none() {
            self.instance.refresh_route(queue.shared_topic())?;
        }
        self.instance.master(queue.broker_name())
    }

    /// The lowest offset stored, and the one that the next message gets.
    fn bounds(&self, queue: &MessageQueue) -> Result<(i64, i64)> {
        let master = self.master_of(queue)?;
        let api = self.instance.api();
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
        log::debug!("group '{}' goes on at {offset} of {queue}", self.group);
        Ok(())
    }

    pub(super) fn committed(&self, queue: &MessageQueue) -> Result<Option<i64>> {
        if !self.is_broadcasting() {
            self.master_of(queue)?;
        }
        Ok(match wait(|done| self.store.read(queue, self.timeout(), done))? {
            StoredOffset::Value(offset) => Some(offset),
            StoredOffset::Absent => None,
        })
    }

    pub(super) fn offset_for(&self, queue: &MessageQueue, millis: i64) -> Result<i64> {
        let master = self.master_of(queue)?;
        wait(|done| self.instance.api().search_offset(&master, queue, millis, self.timeout(), done))
    }

    pub(super) fn lag(&self) -> Result<Vec<(MessageQueue, i64)>> {
        let mut lags = Vec::new();
        for held in self.held.all() {
            let lag =
                self.lag_of(&held).map_err(|error| error.context(format!("asking for the end of {}", held.queue)))?;
            lags.push((held.queue.clone(), lag));
        }
        Ok(lags)
    }

    fn lag_of(&self, held: &HeldQueue) -> Result<i64> {
        let master = self.master_of(&held.queue)?;
        let end = wait(|done| self.instance.api().max_offset(&master, &held.queue, self.timeout(), done))?;
        // A queue whose start is not known yet has all of it ahead, which only its start offset can tell.
        Ok((end - self.buffer.handled(held).unwrap_or(end)).max(0))
    }

    pub(super) fn queues_of(&self, topic: &str) -> Result<Arc<[MessageQueue]>> {
        let route = self.instance.refresh_route(&Arc::from(topic))?;
        let route = route.ok_or_else(|| {
            Error::new(
                ErrorKind::NoRoute,
                format!("the name servers know no route of topic '{topic}'; create it first"),
            )
        })?;
        Ok(route.readable.clone())
    }
}
