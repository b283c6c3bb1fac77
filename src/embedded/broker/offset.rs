//! Offsets of groups and queues: QUERY_CONSUMER_OFFSET (14), UPDATE_CONSUMER_OFFSET (15), SEARCH_OFFSET_BY_TIMESTAMP (29),
//! GET_MAX_OFFSET (30), GET_MIN_OFFSET (31), GET_EARLIEST_MSG_STORETIME (32), INVOKE_BROKER_TO_RESET_OFFSET (222).
//!
//! Kept from a real broker: a new group on a queue that still has its first message is told 0, on an empty queue that
//! there is nothing (since 5.1.0); commits need group and topic to exist, may go backwards, and are ignored while a
//! reset waits; queues that do not exist have offsets 0 and no error; resets happen on the broker and take effect at the
//! next pull (since 5.2.0). Left out: the older way to reset, by a request (220) to the members.

use super::outbox::Outbox;
use super::state::{Answer, Call, State, done, refuse};
use super::store_read::Boundary;
use crate::message::MessageQueue;
use crate::protocol::body::ResetOffsetBody;
use crate::protocol::header::{
    GetEarliestMsgStoretimeRequestHeader, GetEarliestMsgStoretimeResponseHeader, GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader, GetMinOffsetRequestHeader, GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader, QueryConsumerOffsetResponseHeader, ResetOffsetRequestHeader,
    SearchOffsetRequestHeader, SearchOffsetResponseHeader, UpdateConsumerOffsetRequestHeader,
};
use crate::protocol::{CommandHeader, LanguageCode, RemotingCommand, ResponseCode};
use std::collections::BTreeMap;

fn success<'a>(header: &impl CommandHeader<'a>) -> Answer {
    Ok(Some(RemotingCommand::response_with(ResponseCode::SUCCESS, header)))
}

pub(crate) fn query(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: QueryConsumerOffsetRequestHeader<'_> = call.command.header()?;
    let (group, topic, queue_id) = (header.consumer_group, header.topic, header.queue_id);
    let known = state.offsets.pending_reset(group, topic, queue_id);
    let known = known.or_else(|| state.offsets.committed(group, topic, queue_id).filter(|offset| *offset >= 0));
    if let Some(offset) = known {
        return success(&QueryConsumerOffsetResponseHeader { offset });
    }
    let (min, max) = state.store.bounds(topic, queue_id);
    if header.set_zero_if_not_found != Some(false) && min == 0 && max > 0 {
        return success(&QueryConsumerOffsetResponseHeader { offset: 0 });
    }
    refuse(ResponseCode::QUERY_NOT_FOUND, format!("consumer group {group} has no offset for {topic}, queue {queue_id}"))
}

pub(crate) fn update(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: UpdateConsumerOffsetRequestHeader<'_> =
        call.command.header().or_else(|error| refuse(ResponseCode::INVALID_PARAMETER, error.to_string()))?;
    let (group, topic, queue_id) = (header.consumer_group, header.topic, header.queue_id);
    if state.group_configs.get(group).is_none() {
        let remark = format!("consumer group {group} does not exist");
        return refuse(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark);
    }
    if state.topics.get(topic).is_none() {
        return refuse(ResponseCode::TOPIC_NOT_EXIST, format!("topic {topic} does not exist"));
    }
    if state.offsets.pending_reset(group, topic, queue_id).is_some() {
        let remark = "the offset was reset before; this commit is ignored".to_owned();
        return Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, Some(remark))));
    }
    match state.offsets.commit(group, topic, queue_id, header.commit_offset) {
        Ok(()) => done(),
        Err(_) => refuse(ResponseCode::SYSTEM_ERROR, "this broker has no room for more offsets"),
    }
}

pub(crate) fn max(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetMaxOffsetRequestHeader<'_> = call.command.header()?;
    let (_, offset) = state.store.bounds(header.topic, header.queue_id);
    success(&GetMaxOffsetResponseHeader { offset })
}

pub(crate) fn min(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetMinOffsetRequestHeader<'_> = call.command.header()?;
    let (offset, _) = state.store.bounds(header.topic, header.queue_id);
    success(&GetMinOffsetResponseHeader { offset })
}

pub(crate) fn search(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: SearchOffsetRequestHeader<'_> = call.command.header()?;
    let is_upper = header.boundary_type.is_some_and(|text| text.eq_ignore_ascii_case("upper"));
    let boundary = if is_upper { Boundary::Upper } else { Boundary::Lower };
    let offset = state.store.offset_by_time(header.topic, header.queue_id, header.timestamp, boundary);
    success(&SearchOffsetResponseHeader { offset })
}

pub(crate) fn earliest(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetEarliestMsgStoretimeRequestHeader<'_> = call.command.header()?;
    let timestamp = state.store.earliest_time(header.topic, header.queue_id).unwrap_or(-1);
    success(&GetEarliestMsgStoretimeResponseHeader { timestamp })
}

pub(crate) fn reset(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: ResetOffsetRequestHeader<'_> = call.command.header()?;
    let (group, name) = (header.group, header.topic);
    let Some(topic) = state.topics.get(name) else {
        return refuse(ResponseCode::TOPIC_NOT_EXIST, format!("topic {name} does not exist"));
    };
    if state.group_configs.get(group).is_none() {
        let remark = format!("consumer group {group} does not exist");
        return refuse(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark);
    }
    let queues = match header.queue_id {
        Some(id) if id >= 0 => id..id.saturating_add(1),
        _ => 0..topic.read_queues,
    };
    let explicit = header.offset.filter(|offset| *offset != -1 && header.queue_id.is_some_and(|id| id >= 0));
    let mut table = BTreeMap::new();
    for queue_id in queues {
        let (min, max) = state.store.bounds(name, queue_id);
        let target = match explicit {
            Some(offset) if offset < min || offset > max + 1 => {
                let remark = format!("offset {offset} is not within {min} to {max} of {name}, queue {queue_id}");
                return refuse(ResponseCode::SYSTEM_ERROR, remark);
            }
            Some(offset) => offset,
            None if header.timestamp < 0 => max,
            None => state.store.offset_by_time(name, queue_id, header.timestamp, Boundary::Lower),
        };
        if state.offsets.reset(group, name, queue_id, target).is_err() {
            return refuse(ResponseCode::SYSTEM_ERROR, "this broker has no room for more offsets");
        }
        table.insert(MessageQueue::new(name, state.config.name.clone(), queue_id), target);
    }
    let body = ResetOffsetBody { offset_table: table };
    let body = if call.command.language == LanguageCode::CPP { body.encode_list() } else { body.encode() };
    Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
}
