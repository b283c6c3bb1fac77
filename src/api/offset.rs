//! Offsets: a group's stored one, and those of a queue.

use super::Api;
use crate::error::Result;
use crate::message::MessageQueue;
use crate::protocol::header::{
    GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader, QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader, SearchOffsetRequestHeader, UpdateConsumerOffsetRequestHeader,
};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use std::sync::Arc;
use std::time::Duration;

/// What a broker holds for a group and queue. A failed question is an error, never one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredOffset {
    Value(i64),
    Absent,
}

impl Api {
    /// `QUERY_CONSUMER_OFFSET`. It asks not to be told 0 for "nothing stored", which 5.x brokers honour; older ones may
    /// still answer 0 for a young queue (02-consumer T20).
    pub(crate) fn stored_offset(
        &self,
        address: &Arc<str>,
        group: &str,
        queue: &MessageQueue,
        timeout: Duration,
        done: impl FnOnce(Result<StoredOffset>) + Send + 'static,
    ) {
        let header = QueryConsumerOffsetRequestHeader {
            consumer_group: group,
            topic: queue.topic(),
            queue_id: queue.queue_id(),
            set_zero_if_not_found: Some(false),
            bname: Some(queue.broker_name()),
        };
        let request = self.request(RequestCode::QUERY_CONSUMER_OFFSET, &header);
        self.call_async(address, request, timeout, move |answer| {
            done(match answer {
                Ok(answer) => read_offset(&answer).map(StoredOffset::Value),
                Err(error) if error.response_code() == Some(ResponseCode::QUERY_NOT_FOUND.0) => {
                    Ok(StoredOffset::Absent)
                }
                Err(error) => Err(error),
            });
        });
    }

    /// `UPDATE_CONSUMER_OFFSET`, with an answer, so that progress counts as stored only when it is.
    pub(crate) fn store_offset(
        &self,
        address: &Arc<str>,
        group: &str,
        queue: &MessageQueue,
        offset: i64,
        timeout: Duration,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let header = UpdateConsumerOffsetRequestHeader {
            consumer_group: group,
            topic: queue.topic(),
            queue_id: queue.queue_id(),
            commit_offset: offset,
            bname: Some(queue.broker_name()),
        };
        let request = self.request(RequestCode::UPDATE_CONSUMER_OFFSET, &header);
        self.call_async(address, request, timeout, move |answer| done(answer.map(|_| ())));
    }

    /// `GET_MAX_OFFSET`: the offset that the next message of the queue will get.
    pub(crate) fn max_offset(
        &self,
        address: &Arc<str>,
        queue: &MessageQueue,
        timeout: Duration,
        done: impl FnOnce(Result<i64>) + Send + 'static,
    ) {
        let header = GetMaxOffsetRequestHeader {
            topic: queue.topic(),
            queue_id: queue.queue_id(),
            committed: true,
            bname: Some(queue.broker_name()),
        };
        let request = self.request(RequestCode::GET_MAX_OFFSET, &header);
        self.call_async(address, request, timeout, move |answer| done(answer.and_then(|answer| read_offset(&answer))));
    }

    /// `GET_MIN_OFFSET`: the offset of the oldest message of the queue.
    pub(crate) fn min_offset(
        &self,
        address: &Arc<str>,
        queue: &MessageQueue,
        timeout: Duration,
        done: impl FnOnce(Result<i64>) + Send + 'static,
    ) {
        let header = GetMinOffsetRequestHeader {
            topic: queue.topic(),
            queue_id: queue.queue_id(),
            bname: Some(queue.broker_name()),
        };
        let request = self.request(RequestCode::GET_MIN_OFFSET, &header);
        self.call_async(address, request, timeout, move |answer| done(answer.and_then(|answer| read_offset(&answer))));
    }

    /// `SEARCH_OFFSET_BY_TIMESTAMP`: the first message stored at or after the time, the end of the queue if none is.
    pub(crate) fn search_offset(
        &self,
        address: &Arc<str>,
        queue: &MessageQueue,
        timestamp: i64,
        timeout: Duration,
        done: impl FnOnce(Result<i64>) + Send + 'static,
    ) {
        let header = SearchOffsetRequestHeader {
            topic: queue.topic(),
            queue_id: queue.queue_id(),
            timestamp,
            boundary_type: Some("LOWER"),
            bname: Some(queue.broker_name()),
        };
        let request = self.request(RequestCode::SEARCH_OFFSET_BY_TIMESTAMP, &header);
        self.call_async(address, request, timeout, move |answer| done(answer.and_then(|answer| read_offset(&answer))));
    }
}

/// All offset answers have the one field.
fn read_offset(answer: &RemotingCommand) -> Result<i64> {
    Ok(answer.header::<QueryConsumerOffsetResponseHeader>()?.offset)
}
