//! UPDATE_AND_CREATE_TOPIC (17), DELETE_TOPIC_IN_BROKER (215), GET_TOPIC_CONFIG (351), GET_ALL_TOPIC_CONFIG (21).
//!
//! Kept from a real broker: illegal and system names are refused with 29; queue counts may shrink, and what lies in the
//! dropped queues stays but cannot be reached; deleting a topic takes its messages and offsets and leaves the route to
//! the name server. Stronger: pulls that wait on a deleted topic are answered at once. Left out: attributes with a
//! meaning, static topics, versions of the topic table.

use super::group_config::is_legal_name;
use super::outbox::Outbox;
use super::state::{Answer, Call, State, done, refuse};
use super::topic_table::Topic;
use crate::message::topic::MAX_TOPIC_LENGTH;
use crate::protocol::body::{TopicConfig, TopicConfigSerializeWrapper};
use crate::protocol::header::{CreateTopicRequestHeader, DeleteTopicRequestHeader, GetTopicConfigRequestHeader};
use crate::protocol::{RemotingCommand, ResponseCode};
use std::collections::BTreeMap;

/// More queues than any topic needs; upstream takes any number.
const MAX_QUEUES: i32 = 65_536;

pub(crate) fn create(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: CreateTopicRequestHeader<'_> = call.command.header()?;
    let name = header.topic;
    if !is_legal_name(name, MAX_TOPIC_LENGTH) || state.topics.is_system(name) {
        let remark = format!("topic '{}' is illegal or belongs to the system", name.escape_debug());
        return refuse(ResponseCode::INVALID_PARAMETER, remark);
    }
    let counts = [header.read_queue_nums, header.write_queue_nums];
    if !counts.iter().all(|count| (0..=MAX_QUEUES).contains(count)) {
        let remark = format!("topic {name} cannot have {} queues to read and {} to write", counts[0], counts[1]);
        return refuse(ResponseCode::INVALID_PARAMETER, remark);
    }
    let mut attributes = state.topics.get(name).map(|topic| topic.attributes.clone()).unwrap_or_default();
    change_attributes(&mut attributes, header.attributes.unwrap_or_default());
    let topic = Topic {
        name: name.into(),
        read_queues: header.read_queue_nums,
        write_queues: header.write_queue_nums,
        perm: header.perm,
        sys_flag: header.topic_sys_flag.unwrap_or(0),
        order: header.order,
        filter_type: header.topic_filter_type.into(),
        attributes,
    };
    let stored = state.topics.put(topic);
    if stored.is_none() && state.topics.get(name).is_none() {
        return refuse(ResponseCode::SYSTEM_ERROR, "this broker has no room for more topics");
    }
    state.publish(stored);
    done()
}

pub(crate) fn delete(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let header: DeleteTopicRequestHeader<'_> = call.command.header()?;
    let name = header.topic;
    if name.trim().is_empty() || state.topics.is_system(name) {
        let remark = format!("topic '{}' belongs to the system or has no name", name.escape_debug());
        return refuse(ResponseCode::INVALID_PARAMETER, remark);
    }
    state.topics.remove(name);
    let slots = state.store.delete_topic(name);
    state.in_each_session(|state| {
        state.offsets.remove_topic(name);
        for slot in &slots {
            for held in state.holds.take_slot(*slot) {
                state.resume(held, out);
            }
        }
    });
    done()
}

pub(crate) fn config(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetTopicConfigRequestHeader<'_> = call.command.header()?;
    match state.topics.get(header.topic) {
        Some(topic) => {
            let body = config_of(topic).encode();
            Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
        }
        None => refuse(ResponseCode::TOPIC_NOT_EXIST, format!("topic {} does not exist", header.topic)),
    }
}

pub(crate) fn all(state: &mut State, _: Call<'_>, _: &mut Outbox) -> Answer {
    let topic_config_table = state.topics.iter().map(|topic| (topic.name.clone(), config_of(topic))).collect();
    let body = TopicConfigSerializeWrapper { topic_config_table, ..Default::default() }.encode();
    Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
}

fn config_of(topic: &Topic) -> TopicConfig {
    TopicConfig {
        attributes: topic.attributes.clone(),
        order: topic.order,
        perm: topic.perm,
        read_queue_nums: topic.read_queues,
        topic_filter_type: topic.filter_type.to_string(),
        topic_name: topic.name.clone(),
        topic_sys_flag: topic.sys_flag,
        write_queue_nums: topic.write_queues,
    }
}

/// Applies a list like `+key=value,-key`.
fn change_attributes(attributes: &mut BTreeMap<String, String>, changes: &str) {
    for change in changes.split(',').map(str::trim) {
        if let Some(name) = change.strip_prefix('-') {
            attributes.remove(name);
        } else if let Some((name, value)) = change.strip_prefix('+').unwrap_or(change).split_once('=') {
            attributes.insert(name.to_owned(), value.to_owned());
        }
    }
}
