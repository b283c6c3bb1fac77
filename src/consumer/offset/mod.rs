//! Storing progress at the brokers. What to store is derived from the queues held; nothing is kept here.
//!
//! Updates go out together and are answered, so progress counts as stored when the broker said so. Source of the
//! requests: `RemoteBrokerOffsetStore` (02-consumer 12.2).

use super::held::{HeldQueue, QueuePhase};
use crate::instance::ClientInstance;
use crate::time::Deadline;
use crossbeam::channel::unbounded;
use std::sync::Arc;
use std::time::Duration;

/// One update may take no longer than this, whatever the deadline of the whole is.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a round of storing ended.
#[derive(Default)]
pub(crate) struct Stored {
    /// Queues whose offset is at the broker now, sent or found there already.
    pub(crate) stored: Vec<Arc<HeldQueue>>,
    /// Queues whose offset could not be stored.
    pub(crate) failed: Vec<Arc<HeldQueue>>,
}

/// What to store of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// No offset is known yet, or the ownership is over and the next one answers for the queue.
    Nothing,
    /// The broker has it already.
    Stored,
    Send(i64),
}

/// Decides what to store of a queue. Pure.
pub(crate) fn due(held: &HeldQueue) -> Due {
    if held.phase() == QueuePhase::Released {
        return Due::Nothing;
    }
    match held.commit_offset() {
        None => Due::Nothing,
        Some(offset) if held.with_progress(|progress| progress.stored == Some(offset) && !progress.is_doubtful) => {
            Due::Stored
        }
        Some(offset) => Due::Send(offset),
    }
}

/// The broker has stored this offset.
pub(crate) fn confirm(held: &HeldQueue, offset: i64) {
    if held.phase() != QueuePhase::Released {
        held.with_progress(|progress| {
            progress.stored = Some(offset);
            progress.is_doubtful = false;
        });
    }
}

/// The broker was out of reach. One that died may have lost the offsets it had not written yet, and a pull carries no
/// offset 0: what it confirmed is sent once more.
pub(crate) fn doubt(held: &HeldQueue) {
    held.with_progress(|progress| progress.is_doubtful = true);
}

/// Stores the offsets of these queues, except those the broker has already, and waits for the answers.
pub(crate) fn store(instance: &ClientInstance, group: &str, queues: &[Arc<HeldQueue>], deadline: Deadline) -> Stored {
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
        let master = match instance.master(held.queue.broker_name()) {
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
        instance.api().store_offset(&master, group, &held.queue, offset, timeout, move |answer| {
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
                    "storing offset {offset} of {} for group '{group}' failed; it is tried again: {error}",
                    held.queue
                );
                result.failed.push(held);
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::held::HeldTable;
    use crate::message::MessageQueue;

    #[test]
    fn only_a_living_ownership_has_something_to_store() {
        let table = HeldTable::new("g".into());
        let held = table.acquire(&MessageQueue::new("t", "b", 0)).unwrap();
        assert_eq!(due(&held), Due::Nothing);
        held.advance(QueuePhase::Wanted, QueuePhase::Locating);
        assert!(held.begin(5, None));
        assert_eq!(due(&held), Due::Send(5));
        confirm(&held, 5);
        assert_eq!(due(&held), Due::Stored);
        held.take_in([(5, 1)].into_iter(), 6);
        held.pass_over(9);
        assert_eq!(due(&held), Due::Stored);
        doubt(&held);
        assert_eq!(due(&held), Due::Send(5));
        let next = table.restart(&held, 2).unwrap();
        assert_eq!(due(&held), Due::Nothing);
        assert_eq!(due(&next), Due::Send(2));
    }
}
