//! GET_ROUTEINFO_BY_TOPIC (105), GET_BROKER_CLUSTER_INFO (106), GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206),
//! GET_TOPICS_BY_CLUSTER (224), GET_SYSTEM_TOPIC_LIST_FROM_NS (304), DELETE_TOPIC_IN_NAMESRV (216), WIPE_ and
//! ADD_WRITE_PERM_OF_BROKER (205, 327); and what brokers of other processes send: REGISTER_BROKER (103),
//! UNREGISTER_BROKER (104), QUERY_DATA_VERSION (322), BROKER_HEARTBEAT (904), GET_BROKER_MEMBER_GROUP (901),
//! REGISTER_TOPIC_IN_NAMESRV (217). Values by key: [`super::key_values`].
//!
//! Kept from a real name server: see [`super::routes`]; 17 for a topic without route; deleting a topic that is not
//! there succeeds; broker ids are keys without quotes in 106, and in 105 for clients before 4.9.4 that do not ask for
//! standard JSON. Left out: zones, the switch that sends `orderTopicConf` along (off by default), settings of the name
//! server itself.

use crate::embedded::key_values::KeyValues;
use crate::embedded::routes::Routes;
use crate::error::{Error, ErrorKind, Result};
use crate::message::store_codec::body_crc;
use crate::protocol::body::{
    BrokerMemberGroup, ClusterInfo, DataVersion, GetBrokerMemberGroupResponseBody, RegisterBrokerBody, TopicList,
    TopicRouteData,
};
use crate::protocol::header::{
    BrokerHeartbeatRequestHeader, DeleteTopicFromNamesrvRequestHeader, GetBrokerMemberGroupRequestHeader,
    GetRouteInfoRequestHeader, GetTopicsByClusterRequestHeader, QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader, RegisterBrokerRequestHeader, RegisterBrokerResponseHeader,
    RegisterTopicRequestHeader, UnRegisterBrokerRequestHeader,
};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::remoting::{ConnectionHandle, RequestProcessor, unsupported};
use crate::time::Clock;
use bytes::Bytes;
use std::sync::Arc;

/// The first version of clients (V4_9_4) that read only standard JSON.
const STANDARD_JSON: i32 = 401;
/// The name space that goes to brokers which register.
const ORDER_TOPICS: &str = "ORDER_TOPIC_CONFIG";

/// Answers the requests to a name server.
#[derive(Debug)]
pub(crate) struct NameServer {
    pub(crate) routes: Arc<Routes>,
    pub(crate) values: Arc<KeyValues>,
    pub(crate) clock: Clock,
}

impl RequestProcessor for NameServer {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        self.routes.expire(self.clock.now());
        let answer = match request.request_code() {
            RequestCode::GET_ROUTEINFO_BY_TOPIC => self.route(&request),
            RequestCode::GET_BROKER_CLUSTER_INFO => Ok(self.cluster_info()),
            RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER => Ok(self.topics(None)),
            RequestCode::GET_TOPICS_BY_CLUSTER => {
                request.header::<GetTopicsByClusterRequestHeader<'_>>().map(|header| self.topics(Some(header.cluster)))
            }
            RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_NS => Ok(self.system_topics()),
            RequestCode::DELETE_TOPIC_IN_NAMESRV => {
                request.header::<DeleteTopicFromNamesrvRequestHeader<'_>>().map(|header| {
                    self.routes.delete_topic(header.topic, header.cluster_name.filter(|name| !name.is_empty()));
                    success()
                })
            }
            RequestCode::WIPE_WRITE_PERM_OF_BROKER => self.write_permission(&request, false),
            RequestCode::ADD_WRITE_PERM_OF_BROKER => self.write_permission(&request, true),
            RequestCode::REGISTER_BROKER => self.register(connection, &request),
            RequestCode::UNREGISTER_BROKER => request.header::<UnRegisterBrokerRequestHeader<'_>>().map(|header| {
                self.routes.unregister_remote(header.cluster_name, header.broker_name, header.broker_addr);
                success()
            }),
            RequestCode::QUERY_DATA_VERSION => self.data_version(&request),
            RequestCode::BROKER_HEARTBEAT => request.header::<BrokerHeartbeatRequestHeader<'_>>().map(|header| {
                self.routes.touch_remote(header.cluster_name, header.broker_addr, self.clock.now());
                success()
            }),
            RequestCode::GET_BROKER_MEMBER_GROUP => self.member_group(&request),
            RequestCode::REGISTER_TOPIC_IN_NAMESRV => self.register_topic(&request),
            RequestCode::PUT_KV_CONFIG => self.values.put(&request),
            RequestCode::GET_KV_CONFIG => self.values.get(&request),
            RequestCode::DELETE_KV_CONFIG => self.values.delete(&request),
            RequestCode::GET_KVLIST_BY_NAMESPACE => self.values.list_of(&request),
            code => Ok(unsupported(code)),
        };
        Some(answer.unwrap_or_else(|error: Error| refused(error.to_string())))
    }

    fn disconnected(&self, connection: &ConnectionHandle) {
        self.routes.closed(connection.id());
    }
}

impl NameServer {
    fn route(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: GetRouteInfoRequestHeader<'_> = request.header()?;
        let Some(found) = self.routes.of_topic(header.topic) else {
            let remark = format!("No topic route info in name server for the topic: {}", header.topic);
            return Ok(RemotingCommand::response(ResponseCode::TOPIC_NOT_EXIST, Some(remark)));
        };
        let (broker_datas, queue_datas) = found.into_iter().unzip();
        let body = TopicRouteData { broker_datas, queue_datas, ..TopicRouteData::default() }.encode();
        let is_standard = request.version >= STANDARD_JSON || header.accept_standard_json_only == Some(true);
        Ok(with_body(if is_standard { body } else { bare_broker_ids(&body) }))
    }

    fn cluster_info(&self) -> RemotingCommand {
        let mut info = ClusterInfo::default();
        for broker in self.routes.brokers() {
            info.cluster_addr_table.entry(broker.cluster.clone()).or_default().insert(broker.broker_name.clone());
            info.broker_addr_table.insert(broker.broker_name.clone(), broker);
        }
        with_body(bare_broker_ids(&info.encode()))
    }

    fn topics(&self, cluster: Option<&str>) -> RemotingCommand {
        let names = self.routes.topics(cluster).into_iter().map(|name| name.to_string());
        with_body(TopicList { broker_addr: None, topic_list: names.collect() }.encode())
    }

    /// Names of clusters and brokers: brokers have topics of these names.
    fn system_topics(&self) -> RemotingCommand {
        let brokers = self.routes.brokers();
        let address = brokers.iter().flat_map(|broker| broker.broker_addrs.values()).next();
        let names = brokers.iter().flat_map(|broker| [broker.cluster.to_string(), broker.broker_name.to_string()]);
        let list = TopicList { broker_addr: address.map(ToString::to_string), topic_list: names.collect() };
        with_body(list.encode())
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

    fn register(&self, connection: &ConnectionHandle, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: RegisterBrokerRequestHeader<'_> = request.header()?;
        if header.body_crc32 != 0 && header.body_crc32.cast_unsigned() != body_crc(&request.body) {
            return Ok(refused("crc32 not match"));
        }
        let body = match (request.body.is_empty(), header.compressed) {
            (true, _) => RegisterBrokerBody::default(),
            (false, true) => RegisterBrokerBody::decode_compressed(&request.body)?,
            (false, false) => RegisterBrokerBody::decode(&request.body)?,
        };
        let topics = body.topic_config_serialize_wrapper;
        match self.routes.register_remote(&header, topics, connection.id(), self.clock.now()) {
            Ok(registered) => {
                let answer = RegisterBrokerResponseHeader {
                    ha_server_addr: registered.ha_address.as_deref(),
                    master_addr: registered.master.as_deref(),
                };
                let answer = RemotingCommand::response_with(ResponseCode::SUCCESS, &answer);
                Ok(match self.values.list(ORDER_TOPICS) {
                    Some(table) => answer.with_body(table.encode()),
                    None => answer,
                })
            }
            Err(why) => Ok(refused(format!("register broker failed: {why}"))),
        }
    }

    fn data_version(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: QueryDataVersionRequestHeader<'_> = request.header()?;
        let theirs = DataVersion::decode(&request.body)?;
        let known = self.routes.touch_remote(header.cluster_name, header.broker_addr, self.clock.now());
        let changed = known.as_ref() != Some(&theirs);
        let answer = RemotingCommand::response_with(ResponseCode::SUCCESS, &QueryDataVersionResponseHeader { changed });
        Ok(match known {
            Some(known) => answer.with_body(known.encode()),
            None => answer,
        })
    }

    fn member_group(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: GetBrokerMemberGroupRequestHeader<'_> = request.header()?;
        let group = BrokerMemberGroup {
            broker_addrs: self.routes.broker(header.broker_name).map(|broker| broker.broker_addrs).unwrap_or_default(),
            broker_name: header.broker_name.into(),
            cluster: header.cluster_name.into(),
        };
        let body = GetBrokerMemberGroupResponseBody { broker_member_group: Some(group) };
        Ok(with_body(bare_broker_ids(&body.encode())))
    }

    fn register_topic(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: RegisterTopicRequestHeader<'_> = request.header()?;
        let route = TopicRouteData::decode(&request.body)?;
        self.routes.add_queues(header.topic, route.queue_datas);
        Ok(success())
    }
}

fn success() -> RemotingCommand {
    RemotingCommand::response(ResponseCode::SUCCESS, None)
}

fn refused(remark: impl Into<String>) -> RemotingCommand {
    RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(remark.into()))
}

fn with_body(body: Bytes) -> RemotingCommand {
    success().with_body(body)
}

/// Takes the quotes from the keys of `brokerAddrs`, as the JSON library of a real name server writes them. The text is
/// JSON that we wrote, so there are no blanks, and quotes inside of texts have a backslash in front.
fn bare_broker_ids(json: &[u8]) -> Bytes {
    const TABLE: &[u8] = b"\"brokerAddrs\":{";
    let mut out = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.windows(TABLE.len()).position(|window| window == TABLE) {
        let (head, mut table) = rest.split_at(at + TABLE.len());
        out.extend_from_slice(head);
        // A key in quotes, then a value in quotes, then a comma or the end.
        while table.first() == Some(&b'"') {
            let Some((key, behind)) = text(table) else { break };
            out.extend_from_slice(key);
            let Some((value, behind)) = behind.strip_prefix(b":").and_then(text) else { break };
            out.extend_from_slice(b":\"");
            out.extend_from_slice(value);
            out.push(b'"');
            table = behind;
            if let Some(more) = table.strip_prefix(b",") {
                out.push(b',');
                table = more;
            }
        }
        rest = table;
    }
    out.extend_from_slice(rest);
    out.into()
}

/// The inside of a text in quotes, and what follows it.
fn text(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = json.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = inside.iter().position(|byte| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    })?;
    Some((&inside[..end], &inside[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_keys_of_addresses_lose_their_quotes() {
        for (json, bare) in [
            (r#"{"a":{"0":"x"}}"#, r#"{"a":{"0":"x"}}"#),
            (r#"{"brokerAddrs":{}}"#, r#"{"brokerAddrs":{}}"#),
            (r#"[{"brokerAddrs":{"0":"h:1","2":"{\"}"},"n":"0"}]"#, r#"[{"brokerAddrs":{0:"h:1",2:"{\"}"},"n":"0"}]"#),
            (r#"{"x":"\"brokerAddrs\":{\"0\":1}"}"#, r#"{"x":"\"brokerAddrs\":{\"0\":1}"}"#),
        ] {
            assert_eq!(&*bare_broker_ids(json.as_bytes()), bare.as_bytes());
        }
    }
}
