//! Offsets at the brokers: the group's memory in clustering. Source: `RemoteBrokerOffsetStore` (02-consumer 12.2).
//!
//! Updates go out together and are answered, so progress counts as stored when the broker said so.

use super::{Due, Stored, confirm, due};
use crate::api::StoredOffset;
use crate::consumer::held::HeldQueue;
use crate::error::Result;
use crate::instance::ClientInstance;
use crate::message::MessageQueue;
use crate::time::Deadline;
use crossbeam::channel::unbounded;
use std::sync::Arc;
use std::time::Duration;

/// One update may take no longer than this, whatever the deadline of the whole is.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct BrokerOffsets {
    instance: Arc<ClientInstance>,
    group: Arc<str>,
}

impl BrokerOffsets {
    pub(crate) fn new(instance: Arc<ClientInstance>, group: Arc<str>) -> Self {
        Self { instance, group }
    }

    pub(super) fn read(
        &self,
        queue: &MessageQueue,
        timeout: Duration,
        done: impl FnOnce(Result<StoredOffset>) + Send + 'static,
    ) {
        match self.instance.master(queue.broker_name()) {
            Ok(master) => self.instance.api().stored_offset(&master, &self.group, queue, timeout, done),
            Err(error) => done(Err(error)),
        }
    }

    pub(super) fn store(&self, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
        let (done, answers) = unbounded();
        let mut result = Stored::default();
        let mut sent = 0;
        for held in queues {
            let offset = match due(held) {
                Due::Nothing => continue,
                Due::Stored => {
                    result.stored.push(held.clone());
                    continue;
                }
                Due::Send(offset) => offset,
            };
            // The master is the memory of the group; one that is away gets the offset when it is back (field report 31).
            let master = match self.instance.master(held.queue.broker_name()) {
                Ok(master) => master,
                Err(error) => {
                    log::debug!("offset {offset} of {} is not stored yet: {error}", held.queue);
                    result.failed.push(held.clone());
                    continue;
                }
            };
            let timeout = deadline.capped(STORE_TIMEOUT).remaining();
            let (done, answered) = (done.clone(), held.clone());
            sent += 1;
            self.instance.api().store_offset(&master, &self.group, &held.queue, offset, timeout, move |answer| {
                if answer.is_ok() {
                    confirm(&answered, offset);
                }
                let _ = done.send((answered, offset, answer));
            });
        }
        for _ in 0..sent {
            // Each call has its own time-out, so each one answers.
            let Ok((held, offset, answer)) = answers.recv() else { break };
            match answer {
                Ok(()) => result.stored.push(held),
                Err(error) => {
                    log::warn!(
                        "storing offset {offset} of {} for group '{}' failed; it is tried again: {error}",
                        held.queue,
                        self.group
                    );
                    result.failed.push(held);
                }
            }
        }
        result
    }
}
