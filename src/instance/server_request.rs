//! Requests that brokers begin: code to handler. Source: `ClientRemotingProcessor` (02-consumer section 13).
//!
//! They run on the small call pool, never on the reactor. One that takes long goes to the executor and answers later.

use super::rebalance_service::RebalanceWaker;
use super::registry::Registry;
use super::scheduled::ScheduledExecutor;
use crate::error::Result;
use crate::protocol::body::{GetConsumerStatusBody, ResetOffsetBody};
use crate::protocol::header::{
    GetConsumerRunningInfoRequestHeader, GetConsumerStatusRequestHeader, NotifyConsumerIdsChangedRequestHeader,
    ResetOffsetRequestHeader,
};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::remoting::{ConnectionHandle, RequestProcessor};
use std::sync::Arc;

pub(crate) struct ServerRequests {
    client_id: Arc<str>,
    registry: Arc<Registry>,
    waker: RebalanceWaker,
    executor: Arc<ScheduledExecutor>,
}

impl ServerRequests {
    pub(super) fn new(
        client_id: Arc<str>,
        registry: Arc<Registry>,
        waker: RebalanceWaker,
        executor: Arc<ScheduledExecutor>,
    ) -> Self {
        Self { client_id, registry, waker, executor }
    }

    /// Members of a group came or went. The answer to our heartbeat may still be on its way: nothing here needs it.
    fn ids_changed(&self, request: &RemotingCommand) -> Result<()> {
        let header: NotifyConsumerIdsChangedRequestHeader<'_> = request.header()?;
        log::debug!("a broker tells that members of group '{}' changed", header.consumer_group);
        self.waker.wake();
        Ok(())
    }

    fn reset_offset(&self, request: &RemotingCommand) -> Result<()> {
        let header: ResetOffsetRequestHeader<'_> = request.header()?;
        let offsets: Vec<_> = match &request.body[..] {
            [] => Vec::new(),
            body => ResetOffsetBody::decode(body)?.offset_table.into_iter().collect(),
        };
        if let Some(consumer) = self.registry.consumer(header.group) {
            log::info!(
                "an operator resets {} offsets of '{}' in group '{}'",
                offsets.len(),
                header.topic,
                header.group
            );
            let topic = header.topic.to_owned();
            // It waits for running listeners, which a call thread must not.
            self.executor.soon(move || consumer.reset_offsets(&topic, offsets));
        }
        Ok(())
    }

    fn consumer_status(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: GetConsumerStatusRequestHeader<'_> = request.header()?;
        let offsets = self.registry.consumer(header.group).map(|consumer| consumer.consume_offsets(header.topic));
        let body = GetConsumerStatusBody {
            message_queue_table: offsets.unwrap_or_default().into_iter().collect(),
            ..Default::default()
        };
        Ok(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body.encode()))
    }

    fn running_info(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: GetConsumerRunningInfoRequestHeader<'_> = request.header()?;
        let info = self.registry.consumer(header.consumer_group).and_then(|consumer| consumer.running_info());
        Ok(match info {
            Some(info) => RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(info.encode()),
            None => {
                let remark = format!("group {} has no consumer in client {}", header.consumer_group, self.client_id);
                RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(remark))
            }
        })
    }
}

impl RequestProcessor for ServerRequests {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let answer = match request.request_code() {
            RequestCode::NOTIFY_CONSUMER_IDS_CHANGED => self.ids_changed(&request).map(|()| None),
            RequestCode::RESET_CONSUMER_CLIENT_OFFSET => self.reset_offset(&request).map(|()| None),
            RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT => self.consumer_status(&request).map(Some),
            RequestCode::GET_CONSUMER_RUNNING_INFO => self.running_info(&request).map(Some),
            other => {
                let remark = format!(" request type {} not supported", other.0);
                Ok(Some(RemotingCommand::response(ResponseCode::REQUEST_CODE_NOT_SUPPORTED, Some(remark))))
            }
        };
        answer.unwrap_or_else(|error| {
            log::warn!("a request of code {} from {} is not valid: {error}", request.code, connection.peer_addr());
            Some(RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(error.to_string())))
        })
    }
}
