//! What an administrator asks of a client through the broker: GET_CONSUMER_RUNNING_INFO (307),
//! CONSUME_MESSAGE_DIRECTLY (309), INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223, as 221 to the clients).
//!
//! Kept from a real broker: the request goes on unchanged, with the message for 309; the client's answer comes back as
//! it is; 1 for a client that is not there or too old, 207 for one that does not answer within 10 s.
//! Different: nobody waits meanwhile; the answer is sent when it comes.

use super::outbox::{Outbox, deliver};
use super::state::{Answer, Call, Refusal, State, refuse};
use crate::error::ErrorKind;
use crate::message::id::parse_offset_message_id;
use crate::protocol::body::GetConsumerStatusBody;
use crate::protocol::header::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader, GetConsumerStatusRequestHeader,
};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::remoting::ConnectionHandle;
use crate::sync::{Mutex, Rank};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How long a client has to answer 307 and 309.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long each client has to answer 221.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// The first version that answers these requests (V3_1_8_SNAPSHOT).
const FIRST_VERSION: i32 = 62;

pub(crate) fn running_info(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let header: GetConsumerRunningInfoRequestHeader<'_> = call.command.header()?;
    let client = client(state, header.consumer_group, header.client_id)?;
    let request = RemotingCommand::request(RequestCode::GET_CONSUMER_RUNNING_INFO, &header);
    relay(call, &client, request, out)
}

pub(crate) fn consume_directly(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let header: ConsumeMessageDirectlyResultRequestHeader<'_> = call.command.header()?;
    let client = client(state, header.consumer_group, header.client_id.unwrap_or_default())?;
    let msg_id = header.msg_id.unwrap_or_default();
    let (_, position) = parse_offset_message_id(msg_id)?;
    let Some(record) = state.store.at_position(position) else {
        return refuse(ResponseCode::SYSTEM_ERROR, format!("no message starts at position {position} (id {msg_id})"));
    };
    let record = Bytes::copy_from_slice(record);
    let topic_flag = header.topic.and_then(|topic| state.topics.get(topic)).map(|topic| topic.sys_flag);
    let group_flag = state.group_configs.get(header.consumer_group).map(|group| group.group_sys_flag);
    let header = ConsumeMessageDirectlyResultRequestHeader {
        broker_name: Some(&state.config.name),
        topic_sys_flag: topic_flag,
        group_sys_flag: group_flag,
        ..header
    };
    let request = RemotingCommand::request(RequestCode::CONSUME_MESSAGE_DIRECTLY, &header).with_body(record);
    relay(call, &client, request, out)
}

pub(crate) fn consumer_status(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let header: GetConsumerStatusRequestHeader<'_> = call.command.header()?;
    let wanted = header.client_addr.filter(|id| !id.is_empty());
    let group = state.consumers.get(header.group);
    let clients: Vec<_> = group
        .into_iter()
        .flat_map(|group| group.members())
        .filter(|(_, member)| wanted.is_none_or(|id| &*member.client_id == id))
        .filter_map(|(id, member)| Some((state.connections.get(id)?.clone(), member.client_id.clone())))
        .collect();
    if clients.is_empty() {
        let remark = format!("no such member of consumer group {} is connected", header.group);
        return refuse(ResponseCode::SYSTEM_ERROR, remark);
    }
    let gathered = Arc::new(Gathered {
        admin: call.connection.clone(),
        opaque: call.command.opaque,
        state: Mutex::new(Rank::Leaf, (clients.len(), GetConsumerStatusBody::default())),
    });
    for (connection, client_id) in clients {
        let header = GetConsumerStatusRequestHeader { client_addr: None, ..header };
        let request = RemotingCommand::request(RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT, &header);
        let gathered = gathered.clone();
        out.invoke(&connection, request, STATUS_TIMEOUT, move |answer| {
            let table = answer
                .ok()
                .filter(|answer| answer.response_code() == ResponseCode::SUCCESS)
                .and_then(|answer| GetConsumerStatusBody::decode(&answer.body).ok())
                .map(|body| body.message_queue_table);
            gathered.add(&client_id, table);
        });
    }
    Ok(None)
}

/// Answers of several clients for one administrator.
#[derive(Debug)]
struct Gathered {
    admin: ConnectionHandle,
    opaque: i32,
    /// How many are still to answer, and what the others said.
    state: Mutex<(usize, GetConsumerStatusBody)>,
}

impl Gathered {
    fn add(&self, client_id: &str, table: Option<std::collections::BTreeMap<crate::message::MessageQueue, i64>>) {
        let answer = {
            let mut state = self.state.lock();
            let (waiting, body) = &mut *state;
            if let Some(table) = table {
                body.consumer_table.insert(client_id.to_owned(), table);
            }
            *waiting -= 1;
            if *waiting > 0 {
                return;
            }
            RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body.encode())
        };
        deliver(&self.admin, RemotingCommand { opaque: self.opaque, ..answer });
    }
}

/// The connection of a member that can answer.
fn client(state: &State, group: &str, client_id: &str) -> Result<ConnectionHandle, Refusal> {
    let found = state.consumers.get(group).and_then(|group| group.connection_of(client_id));
    let Some((connection, member)) = found.and_then(|(id, member)| Some((state.connections.get(&id)?, member))) else {
        return refuse(ResponseCode::SYSTEM_ERROR, format!("the consumer {group} {client_id} is not online"));
    };
    if member.version < FIRST_VERSION {
        return refuse(ResponseCode::SYSTEM_ERROR, format!("the consumer {group} {client_id} is too old to be asked"));
    }
    Ok(connection.clone())
}

fn relay(call: Call<'_>, client: &ConnectionHandle, request: RemotingCommand, out: &mut Outbox) -> Answer {
    let (admin, opaque) = (call.connection.clone(), call.command.opaque);
    let peer = client.peer_addr();
    out.invoke(client, request, CLIENT_TIMEOUT, move |answer| {
        let answer = answer.unwrap_or_else(|error| {
            let code = match error.kind() {
                ErrorKind::Timeout => ResponseCode::CONSUME_MSG_TIMEOUT,
                _ => ResponseCode::SYSTEM_ERROR,
            };
            RemotingCommand::response(code, Some(format!("the consumer at {peer} did not answer: {error}")))
        });
        deliver(&admin, RemotingCommand { opaque, ..answer });
    });
    Ok(None)
}
