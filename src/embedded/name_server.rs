//! GET_ROUTEINFO_BY_TOPIC (105), GET_BROKER_CLUSTER_INFO (106), GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206),
//! GET_TOPICS_BY_CLUSTER (224), DELETE_TOPIC_IN_NAMESRV (216), WIPE_ and ADD_WRITE_PERM_OF_BROKER (205, 327).
//!
//! Kept from a real name server: see [`super::routes`]; 17 for a topic without route; deleting a topic that is not
//! there succeeds. Different: keys of JSON objects are always quoted, which every peer reads. Left out: registration
//! of real brokers, key-value settings, zones.

use crate::embedded::routes::{RegisteredBroker, Routes, TopicQueues};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::body::{BrokerData, ClusterInfo, MASTER_ID, QueueData, TopicList, TopicRouteData};
use crate::protocol::header::{
    DeleteTopicFromNamesrvRequestHeader, GetRouteInfoRequestHeader, GetTopicsByClusterRequestHeader,
};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::remoting::{ConnectionHandle, RequestProcessor, unsupported};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers the requests to a name server.
#[derive(Debug)]
pub(crate) struct NameServer {
    pub(crate) routes: Arc<Routes>,
}

impl RequestProcessor for NameServer {
    fn process(&self, _: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let answer = match request.request_code() {
            RequestCode::GET_ROUTEINFO_BY_TOPIC => self.route(&request),
            RequestCode::GET_BROKER_CLUSTER_INFO => Ok(self.cluster_info()),
            RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER => Ok(self.topics(None)),
            RequestCode::GET_TOPICS_BY_CLUSTER => {
                request.header::<GetTopicsByClusterRequestHeader<'_>>().map(|header| self.topics(Some(header.cluster)))
            }
            RequestCode::DELETE_TOPIC_IN_NAMESRV => {
                request.header::<DeleteTopicFromNamesrvRequestHeader<'_>>().map(|header| {
                    self.routes.delete_topic(header.topic);
                    success()
                })
            }
            RequestCode::WIPE_WRITE_PERM_OF_BROKER => self.write_permission(&request, false),
            RequestCode::ADD_WRITE_PERM_OF_BROKER => self.write_permission(&request, true),
            code => Ok(unsupported(code)),
        };
        let failed = |error: Error| RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(error.to_string()));
        Some(answer.unwrap_or_else(failed))
    }
}

impl NameServer {
    fn route(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: GetRouteInfoRequestHeader<'_> = request.header()?;
        let Some(found) = self.routes.of_topic(header.topic) else {
            let remark = format!("No topic route info in name server for the topic: {}", header.topic);
            return Ok(RemotingCommand::response(ResponseCode::TOPIC_NOT_EXIST, Some(remark)));
        };
        let body = TopicRouteData {
            broker_datas: found.iter().map(|(broker, _)| broker_data(broker)).collect(),
            queue_datas: found.iter().map(|(broker, queues)| queue_data(broker, queues)).collect(),
            ..TopicRouteData::default()
        };
        Ok(with_body(body.encode()))
    }

    fn cluster_info(&self) -> RemotingCommand {
        let mut info = ClusterInfo::default();
        for broker in self.routes.brokers() {
            info.cluster_addr_table.entry(broker.cluster.clone()).or_default().insert(broker.name.clone());
            info.broker_addr_table.insert(broker.name.clone(), broker_data(&broker));
        }
        with_body(info.encode())
    }

    fn topics(&self, cluster: Option<&str>) -> RemotingCommand {
        let names = self.routes.topics(cluster).into_iter().map(|name| name.to_string());
        with_body(TopicList { broker_addr: None, topic_list: names.collect() }.encode())
    }

    fn write_permission(&self, request: &RemotingCommand, writable: bool) -> Result<RemotingCommand> {
        let Some(broker) = request.ext_fields.get("brokerName") else {
            return Err(Error::new(ErrorKind::Protocol, "the request lacks the mandatory field brokerName"));
        };
        let count = self.routes.set_writable(broker, writable);
        let mut answer = success();
        answer.ext_fields.put_int(if writable { "addTopicCount" } else { "wipeTopicCount" }, count as i64);
        Ok(answer)
    }
}

fn success() -> RemotingCommand {
    RemotingCommand::response(ResponseCode::SUCCESS, None)
}

fn with_body(body: Bytes) -> RemotingCommand {
    success().with_body(body)
}

fn broker_data(broker: &RegisteredBroker) -> BrokerData {
    BrokerData {
        broker_addrs: BTreeMap::from([(MASTER_ID, broker.address.clone())]),
        broker_name: broker.name.clone(),
        cluster: broker.cluster.clone(),
        ..BrokerData::default()
    }
}

fn queue_data(broker: &RegisteredBroker, queues: &TopicQueues) -> QueueData {
    QueueData {
        broker_name: broker.name.clone(),
        perm: queues.perm,
        read_queue_nums: queues.read_queues,
        topic_sys_flag: queues.sys_flag,
        write_queue_nums: queues.write_queues,
    }
}
