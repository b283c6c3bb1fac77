//! Queue locks of ordered groups.

use super::Api;
use crate::error::Result;
use crate::message::MessageQueue;
use crate::protocol::RequestCode;
use crate::protocol::body::{LockBatchRequestBody, LockBatchResponseBody};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

impl Api {
    /// `LOCK_BATCH_MQ`: locks or renews; `done` gets the queues that are ours now, of those asked for. The broker keeps
    /// each for 60 s.
    pub(crate) fn lock_queues(
        &self,
        address: &Arc<str>,
        group: &str,
        client_id: &str,
        queues: Vec<MessageQueue>,
        timeout: Duration,
        done: impl FnOnce(Result<Vec<MessageQueue>>) + Send + 'static,
    ) {
        let request = self.bare_request(RequestCode::LOCK_BATCH_MQ).with_body(body(group, client_id, queues));
        let target = address.clone();
        self.call_async(address, request, timeout, move |answer| {
            done(answer.and_then(|answer| {
                let body = LockBatchResponseBody::decode(&answer.body);
                Ok(body.map_err(|error| error.with_address(&*target))?.lock_ok_mq_set)
            }));
        });
    }

    /// `UNLOCK_BATCH_MQ`.
    pub(crate) fn unlock_queues(
        &self,
        address: &Arc<str>,
        group: &str,
        client_id: &str,
        queues: Vec<MessageQueue>,
        timeout: Duration,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let request = self.bare_request(RequestCode::UNLOCK_BATCH_MQ).with_body(body(group, client_id, queues));
        self.call_async(address, request, timeout, move |answer| done(answer.map(|_| ())));
    }
}

fn body(group: &str, client_id: &str, queues: Vec<MessageQueue>) -> Bytes {
    LockBatchRequestBody {
        client_id: client_id.into(),
        consumer_group: group.into(),
        mq_set: queues,
        only_this_broker: false,
    }
    .encode()
}
