//! HEART_BEAT (34), UNREGISTER_CLIENT (35), GET_CONSUMER_LIST_BY_GROUP (38), CHECK_CLIENT_CONFIG (46),
//! GET_CONSUMER_CONNECTION_LIST (203), GET_PRODUCER_CONNECTION_LIST (204).
//!
//! Kept from a real broker: the rules of [`super::group`]; a heartbeat makes the group and its retry topic, consumers
//! come before producers, a group that cannot be made is passed over silently; heartbeats of the second kind (with a
//! fingerprint, since 5.1.3); unregistering tells the others even when nothing was registered. Different: the list of a
//! group is sorted; a heartbeat without client id, group name or topic is answered with 1 before anything changes,
//! where upstream may have done half of it.

use super::filter::is_tag;
use super::group::{Member, Registration};
use super::outbox::Outbox;
use super::pull::no_filter;
use super::state::{Answer, Call, State, done, refuse};
use super::topic_table::UNIT_SUB;
use crate::message::topic::retry_topic;
use crate::protocol::body::{
    self, Connection, ConsumerConnection, ConsumerData, GetConsumerListByGroupResponseBody, HeartbeatData,
    ProducerConnection,
};
use crate::protocol::header::{
    GetConsumerConnectionListRequestHeader, GetConsumerListByGroupRequestHeader,
    GetProducerConnectionListRequestHeader, HeartbeatResponseHeader, UnregisterClientRequestHeader,
};
use crate::protocol::{RemotingCommand, ResponseCode, SubscriptionData};
use bytes::Bytes;
use serde::Deserialize;

/// What request 46 carries, as far as it is looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CheckClientRequestBody {
    subscription_data: Option<SubscriptionData>,
}

/// Longest client id, group name and topic that are looked at; names that are legal are far shorter.
const MAX_NAME: usize = 1024;
/// Longest expression of a subscription.
const MAX_EXPRESSION: usize = 64 * 1024;

fn with_body(body: Bytes) -> Answer {
    Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
}

pub(crate) fn heartbeat(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let beat = HeartbeatData::decode(&call.command.body)?;
    let is_name = |name: &str| (1..=MAX_NAME).contains(&name.len());
    let is_whole = is_name(&beat.client_id)
        && beat.producer_data_set.iter().all(|producer| is_name(&producer.group_name))
        && beat.consumer_data_set.iter().all(|consumer| {
            let mut subscriptions = consumer.subscription_data_set.iter();
            is_name(&consumer.group_name)
                && subscriptions.all(|sub| is_name(&sub.topic) && sub.sub_string.len() <= MAX_EXPRESSION)
        });
    if !is_whole {
        let remark = "the heartbeat lacks a client id, a group name or a topic, or one of them is far too long";
        return refuse(ResponseCode::SYSTEM_ERROR, remark);
    }
    let member = Member {
        client_id: beat.client_id.as_str().into(),
        language: call.command.language,
        version: call.command.version,
        peer: call.peer(),
        last_update: state.now(),
    };
    let fingerprint = beat.heartbeat_fingerprint;
    // A heartbeat of the first kind says nothing of its contents, so it always counts as new.
    let mut changed = fingerprint == 0;
    for consumer in beat.consumer_data_set {
        if state.group_configs.find(&consumer.group_name).is_none() {
            continue; // upstream says nothing, too
        }
        let known = state.fingerprints.insert(consumer.group_name.clone(), fingerprint);
        changed |= known.is_some_and(|known| known != fingerprint);
        let slim = fingerprint != 0 && beat.without_sub;
        register(state, call, consumer, slim, member.clone(), out);
    }
    for producer in beat.producer_data_set {
        state.producers.register(&producer.group_name, call.connection.id(), member.clone());
    }
    state.watch_members();
    let header = HeartbeatResponseHeader { is_support_heart_beat_v2: Some(true), is_sub_change: Some(changed) };
    Ok(Some(RemotingCommand::response_with(ResponseCode::SUCCESS, &header)))
}

fn register(state: &mut State, call: Call<'_>, consumer: ConsumerData, slim: bool, member: Member, out: &mut Outbox) {
    let Some(config) = state.group_configs.find(&consumer.group_name) else { return };
    let (notify, retry_queues) = (config.notify_consumer_ids_changed_enable, config.retry_queue_nums);
    let is_ordered = |topic: &str| state.topics.get(topic).is_some_and(|topic| topic.order);
    let order = consumer.subscription_data_set.iter().any(|subscription| is_ordered(&subscription.topic));
    let unit = if consumer.unit_mode { UNIT_SUB } else { 0 };
    let made = state.topics.ensure(&retry_topic(&consumer.group_name), retry_queues, order, unit);
    state.publish(made);
    if !slim {
        let consumers = &state.consumers;
        let is_alive = |group: &str| consumers.get(group).is_some();
        state.filters.register(&consumer.group_name, &consumer.subscription_data_set, is_alive);
    }
    let registration = Registration {
        group: consumer.group_name,
        consume_type: consumer.consume_type,
        message_model: consumer.message_model,
        consume_from_where: consumer.consume_from_where,
        subscriptions: (!slim).then_some(consumer.subscription_data_set),
        notify,
    };
    let notice = state.consumers.register(call.connection.id(), member, registration);
    state.notify(notice, out);
}

pub(crate) fn unregister(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let header: UnregisterClientRequestHeader<'_> = call.command.header()?;
    let connection = call.connection.id();
    if let Some(group) = header.producer_group {
        state.producers.unregister(group, connection);
    }
    if let Some(group) = header.consumer_group {
        let notify = state.group_configs.find(group).is_none_or(|config| config.notify_consumer_ids_changed_enable);
        let notice = state.consumers.unregister(group, connection, notify);
        state.notify(notice, out);
    }
    done()
}

pub(crate) fn consumer_list(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetConsumerListByGroupRequestHeader<'_> = call.command.header()?;
    let Some(group) = state.consumers.get(header.consumer_group) else {
        let remark = format!("no consumer for this group, {}", header.consumer_group);
        return refuse(ResponseCode::SYSTEM_ERROR, remark);
    };
    let mut ids: Vec<_> = group.members().values().map(|member| member.client_id.clone()).collect();
    ids.sort_unstable();
    with_body(GetConsumerListByGroupResponseBody { consumer_id_list: ids }.encode())
}

pub(crate) fn check_config(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    if call.command.body.is_empty() {
        return done();
    }
    let body: CheckClientRequestBody = body::decode("CheckClientRequestBody", &call.command.body)?;
    let Some(subscription) = body.subscription_data.filter(|subscription| !is_tag(&subscription.expression_type))
    else {
        return done();
    };
    if !state.config.property_filter {
        return refuse(ResponseCode::SYSTEM_ERROR, no_filter(&subscription.expression_type));
    }
    match state.filters.compile(&subscription.expression_type, &subscription.sub_string) {
        Ok(_) => done(),
        Err(error) => refuse(ResponseCode::SUBSCRIPTION_PARSE_FAILED, error),
    }
}

pub(crate) fn consumer_connections(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetConsumerConnectionListRequestHeader<'_> = call.command.header()?;
    let Some(group) = state.consumers.get(header.consumer_group) else {
        let remark = format!("consumer group {} is not online", header.consumer_group);
        return refuse(ResponseCode::CONSUMER_NOT_ONLINE, remark);
    };
    let body = ConsumerConnection {
        connection_set: group.members().values().map(connection).collect(),
        consume_from_where: group.consume_from_where,
        consume_type: group.consume_type,
        message_model: group.message_model,
        subscription_table: group.subscriptions().clone(),
    };
    with_body(body.encode())
}

pub(crate) fn producer_connections(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetProducerConnectionListRequestHeader<'_> = call.command.header()?;
    match state.producers.get(header.producer_group) {
        Some(members) => {
            with_body(ProducerConnection { connection_set: members.values().map(connection).collect() }.encode())
        }
        None => {
            let remark = format!("producer group {} is not online", header.producer_group);
            refuse(ResponseCode::SYSTEM_ERROR, remark)
        }
    }
}

fn connection(member: &Member) -> Connection {
    Connection {
        client_addr: member.peer.to_string(),
        client_id: member.client_id.to_string(),
        language: member.language,
        version: member.version,
    }
}
