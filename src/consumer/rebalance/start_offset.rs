//! Where a queue begins when it comes to us. Source: `computePullFromWhere` (02-consumer 5.6).
//!
//! A stored offset always wins. The policy answers only when the broker said that nothing is stored; a failed question
//! starts nothing, and is asked again (field report 18). The start is computed once for each ownership.

use crate::api::StoredOffset;
use crate::config::Item;
use crate::consumer::offset::OffsetStore;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::ClientInstance;
use crate::message::{MessageQueue, topic};
use crate::time::to_millis;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where a group without a stored offset begins to read a queue. Stored offsets always win over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "org.apache.rocketmq.common.consumer.ConsumeFromWhere")]
pub enum ConsumeFromWhere {
    /// Behind the newest message (default). A broker may still begin a young queue at its start: 4.x and early 5.x
    /// brokers answer 0 for "nothing stored" while the queue's first message is in memory.
    #[default]
    LastOffset,
    /// At the oldest message still stored.
    FirstOffset,
    /// At the first message stored at or after this time.
    Timestamp(SystemTime),
}

impl Item for ConsumeFromWhere {
    fn from_text(text: &str) -> std::result::Result<Self, &'static str> {
        match text {
            "first" => Ok(Self::FirstOffset),
            "last" => Ok(Self::LastOffset),
            other => Item::from_text(other)
                .map(Self::Timestamp)
                .map_err(|_| "is not 'first', 'last' or a time in milliseconds since 1970"),
        }
    }
}

/// A start offset, and whether it came from the broker's memory of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) offset: i64,
    pub(crate) is_stored: bool,
}

/// What to ask next when nothing is stored. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The broker's correction of offset 0 finds the oldest message.
    Zero,
    Max,
    At(i64),
}

pub(crate) fn policy(from: ConsumeFromWhere, topic: &str) -> Policy {
    match from {
        // A retry topic holds only what this group failed: never skip any of it. (Java starts it at the end with
        // TIMESTAMP, T20.)
        _ if topic::is_retry(topic) => Policy::Zero,
        ConsumeFromWhere::LastOffset => Policy::Max,
        ConsumeFromWhere::FirstOffset => Policy::Zero,
        ConsumeFromWhere::Timestamp(time) => Policy::At(to_millis(time)),
    }
}

/// Finds the start offset without blocking; `done` runs on a call thread, exactly once.
pub(crate) fn locate(
    instance: &Arc<ClientInstance>,
    store: &OffsetStore,
    queue: &MessageQueue,
    from: ConsumeFromWhere,
    timeout: Duration,
    done: impl FnOnce(Result<Start>) + Send + 'static,
) {
    let (instance, asked) = (instance.clone(), queue.clone());
    store.read(queue, timeout, move |answer| {
        let by_policy = match answer {
            Ok(StoredOffset::Value(offset)) => {
                return done(valid(offset).map(|offset| Start { offset, is_stored: true }));
            }
            Ok(StoredOffset::Absent) => policy(from, asked.topic()),
            Err(error) => return done(Err(error)),
        };
        let tell = move |result: Result<i64>| {
            done(result.and_then(valid).map(|offset| Start { offset, is_stored: false }));
        };
        let master = match instance.master(asked.broker_name()) {
            Ok(master) => master,
            Err(error) => return tell(Err(error)),
        };
        match by_policy {
            Policy::Zero => tell(Ok(0)),
            Policy::Max => instance.api().max_offset(&master, &asked, timeout, tell),
            Policy::At(time) => instance.api().search_offset(&master, &asked, time, timeout, tell),
        }
    });
}

fn valid(offset: i64) -> Result<i64> {
    if offset >= 0 {
        return Ok(offset);
    }
    Err(Error::new(ErrorKind::Protocol, format!("a broker named {offset} as an offset to start from")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_topic_begins_at_its_start_whatever_the_policy() {
        let time = ConsumeFromWhere::Timestamp(SystemTime::UNIX_EPOCH + Duration::from_millis(5));
        for from in [ConsumeFromWhere::LastOffset, ConsumeFromWhere::FirstOffset, time] {
            assert_eq!(policy(from, "%RETRY%g"), Policy::Zero);
        }
        assert_eq!(policy(time, "t"), Policy::At(5));
        assert_eq!(policy(ConsumeFromWhere::LastOffset, "t"), Policy::Max);
    }
}
