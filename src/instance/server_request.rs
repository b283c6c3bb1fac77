//! Requests that brokers begin: code to handler. Source: `ClientRemotingProcessor` (02-consumer section 13).
//!
//! They run on the small call pool, never on the reactor. One that takes long goes to the executor and answers later.

use super::rebalance_service::RebalanceWaker;
use super::registry::Registry;
use super::scheduled::ScheduledExecutor;
use crate::error::Result;
use crate::protocol::body::{ConsumeMessageDirectlyResult, GetConsumerStatusBody, ResetOffsetBody};
use crate::protocol::header::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader, GetConsumerStatusRequestHeader,
    NotifyConsumerIdsChangedRequestHeader, ResetOffsetRequestHeader,
};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::remoting::{ConnectionHandle, RequestProcessor, unsupported};
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
        let consumer = self.registry.consumer(header.consumer_group);
        let info = consumer.and_then(|consumer| consumer.running_info(header.jstack_enable));
        Ok(match info {
            Some(info) => RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(info.encode()),
            None => self.no_consumer(header.consumer_group),
        })
    }

    /// The listener may take as long as it likes; the broker gives up after 10 s, and a later answer finds nobody.
    fn consume_directly(
        &self,
        connection: &ConnectionHandle,
        request: &RemotingCommand,
    ) -> Result<Option<RemotingCommand>> {
        let header: ConsumeMessageDirectlyResultRequestHeader<'_> = request.header()?;
        let Some(consumer) = self.registry.consumer(header.consumer_group) else {
            return Ok(Some(self.no_consumer(header.consumer_group)));
        };
        log::info!("a tool has group '{}' consume message {:?}", header.consumer_group, header.msg_id);
        let answer = later(connection, request, |result: Result<ConsumeMessageDirectlyResult>| match result {
            Ok(result) => RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(result.encode()),
            Err(error) => RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(error.to_string())),
        });
        consumer.consume_directly(request.body.clone(), header.broker_name, Box::new(answer));
        Ok(None)
    }

    fn no_consumer(&self, group: &str) -> RemotingCommand {
        let remark = format!("group {group} has no consumer in client {}", self.client_id);
        RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(remark))
    }
}

/// What sends the answer to `request` once there is a result.
fn later<T, F: FnOnce(T) -> RemotingCommand + Send>(
    connection: &ConnectionHandle,
    request: &RemotingCommand,
    answer: F,
) -> impl FnOnce(T) + Send + use<T, F> {
    let (connection, opaque, is_oneway) = (connection.clone(), request.opaque, request.is_oneway());
    move |result| {
        let answer = RemotingCommand { opaque, ..answer(result) };
        if !is_oneway && let Err(error) = connection.send(answer) {
            log::debug!("a late answer to {} was not sent: {error}", connection.peer_addr());
        }
    }
}

impl RequestProcessor for ServerRequests {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let answer = match request.request_code() {
            RequestCode::NOTIFY_CONSUMER_IDS_CHANGED => self.ids_changed(&request).map(|()| None),
            RequestCode::RESET_CONSUMER_CLIENT_OFFSET => self.reset_offset(&request).map(|()| None),
            RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT => self.consumer_status(&request).map(Some),
            RequestCode::GET_CONSUMER_RUNNING_INFO => self.running_info(&request).map(Some),
            RequestCode::CONSUME_MESSAGE_DIRECTLY => self.consume_directly(connection, &request),
            other => Ok(Some(unsupported(other))),
        };
        answer.unwrap_or_else(|error| {
            log::warn!("a request of code {} from {} is not valid: {error}", request.code, connection.peer_addr());
            Some(RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(error.to_string())))
        })
    }

    fn disconnected(&self, connection: &ConnectionHandle) {
        let address = connection.peer_addr().to_string();
        for consumer in self.registry.consumers() {
            consumer.disconnected(&address);
        }
    }
}
