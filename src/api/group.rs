//! Membership: heartbeat, leave, who is there.

use super::Api;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::RequestCode;
use crate::protocol::body::{CheckClientRequestBody, ConsumerConnection, ConsumerRunningInfo};
use crate::protocol::header::{
    GetConsumerConnectionListRequestHeader, GetConsumerListByGroupRequestHeader, GetConsumerRunningInfoRequestHeader,
    UnregisterClientRequestHeader,
};
use crate::time::Deadline;
use bytes::Bytes;
use crossbeam::channel::bounded;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// One answer to [`Api::unregister`] may take no longer than this, so that a dead broker does not use up a stop.
const UNREGISTER_TIMEOUT: Duration = Duration::from_secs(3);

impl Api {
    /// `HEART_BEAT`.
    pub(crate) fn heartbeat(
        &self,
        address: &Arc<str>,
        body: Bytes,
        timeout: Duration,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let request = self.bare_request(RequestCode::HEART_BEAT).with_body(body);
        self.call_async(address, request, timeout, move |answer| done(answer.map(|_| ())));
    }

    /// `CHECK_CLIENT_CONFIG`: whether the broker takes the filter.
    pub(crate) fn check_client(
        &self,
        address: &Arc<str>,
        body: &CheckClientRequestBody,
        timeout: Duration,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let request = self.bare_request(RequestCode::CHECK_CLIENT_CONFIG).with_body(body.encode());
        self.call_async(address, request, timeout, move |answer| done(answer.map(|_| ())));
    }

    /// `UNREGISTER_CLIENT` at all these brokers at once. A broker that does not hear it notices the closed connection.
    pub(crate) fn unregister(
        &self,
        addresses: &BTreeSet<Arc<str>>,
        client_id: &str,
        producer_group: Option<&str>,
        consumer_group: Option<&str>,
        deadline: Deadline,
    ) {
        let header = UnregisterClientRequestHeader { client_id, producer_group, consumer_group };
        let timeout = deadline.capped(UNREGISTER_TIMEOUT).remaining();
        let (done, answers) = bounded(addresses.len());
        for address in addresses {
            let (done, target) = (done.clone(), address.clone());
            let request = self.request(RequestCode::UNREGISTER_CLIENT, &header);
            self.call_async(address, request, timeout, move |answer| {
                let _ = done.send((target, answer));
            });
        }
        drop(done);
        for (address, answer) in answers {
            if let Err(error) = answer {
                log::debug!("leaving at broker {address} failed; it will notice the closed connection: {error}");
            }
        }
    }

    /// `GET_CONSUMER_CONNECTION_LIST`: who is connected for the group, and what the broker takes its subscription to be.
    pub(crate) fn consumer_connections(
        &self,
        address: &Arc<str>,
        group: &str,
        timeout: Duration,
    ) -> Result<ConsumerConnection> {
        let header = GetConsumerConnectionListRequestHeader { consumer_group: group };
        let answer = self.call(address, self.request(RequestCode::GET_CONSUMER_CONNECTION_LIST, &header), timeout)?;
        ConsumerConnection::decode(&answer.body).map_err(|error| error.with_address(&**address))
    }

    /// `GET_CONSUMER_RUNNING_INFO` of another member, through the broker.
    pub(crate) fn running_info(
        &self,
        address: &Arc<str>,
        group: &str,
        client_id: &str,
        timeout: Duration,
        done: impl FnOnce(Result<ConsumerRunningInfo>) + Send + 'static,
    ) {
        let header = GetConsumerRunningInfoRequestHeader { consumer_group: group, client_id, jstack_enable: false };
        let request = self.request(RequestCode::GET_CONSUMER_RUNNING_INFO, &header);
        self.call_async(address, request, timeout, move |answer| {
            done(answer.and_then(|answer| ConsumerRunningInfo::decode(&answer.body)));
        });
    }

    /// `GET_CONSUMER_LIST_BY_GROUP`: the raw JSON body, so that an unchanged list need not be read again. An unknown or
    /// empty group is an error of code 1, never an empty list.
    pub(crate) fn consumer_list(&self, address: &Arc<str>, group: &str, timeout: Duration) -> Result<Bytes> {
        let header = GetConsumerListByGroupRequestHeader { consumer_group: group };
        let answer = self.call(address, self.request(RequestCode::GET_CONSUMER_LIST_BY_GROUP, &header), timeout)?;
        if answer.body.is_empty() {
            let text = format!("the answer with the members of group '{group}' has no body");
            return Err(Error::new(ErrorKind::Protocol, text).with_address(&**address));
        }
        Ok(answer.body)
    }
}
