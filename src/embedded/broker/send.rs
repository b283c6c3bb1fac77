//! SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320).
//!
//! Kept from a real broker (5.x): the checks and their order, creation of the topic by a first send, what the broker
//! adds to the properties, the fields of the answer (also on refusals), retries that are sent as ordinary messages and
//! their way to the dead-letter topic. Not checked, as upstream: the write permission of the topic.
//! Left out: inner batches (BatchCQ topics), compaction topics, reply messages (324, 325), the codes 10, 11, 12, and
//! refusals because of load. Different: a half message with a delay waits for its producer first, and then for its time.

use super::append::{Draft, Stored};
use super::config::REGION;
use super::group_config::is_legal_name;
use super::outbox::Outbox;
use super::property_list::PropertyList;
use super::state::{Answer, Call, Refusal, State, refuse};
use super::topic_table::{Template, Topic};
use crate::message::batch::decode_batch;
use crate::message::id::create_unique_id;
use crate::message::topic::{DLQ_PREFIX, FORBIDDEN_TO_SEND, MAX_TOPIC_LENGTH, RETRY_PREFIX, dlq_topic, is_retry};
use crate::message::{properties, sys_flag};
use crate::protocol::RemotingCommand;
use crate::protocol::ResponseCode;
use crate::protocol::header::{SendMessageRequestHeader, SendMessageResponseHeader};

/// Largest total of a batch.
const MAX_BATCH: usize = super::config::MAX_MESSAGE_SIZE;
/// Longest properties that are looked at; equal names may make more than can be stored shorter.
const MAX_PROPERTIES: usize = 4 * properties::MAX_LENGTH;
/// Longest name of a retry or dead-letter topic.
const MAX_DERIVED_TOPIC: usize = 255;

/// Answers a send of any kind. Refusals tell region and trace switch too.
pub(crate) fn send(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let answer = accept(state, call, out).unwrap_or_else(|refusal| {
        let mut answer = refusal.answer();
        answer.ext_fields.put("MSG_REGION", REGION);
        answer.ext_fields.put_bool("TRACE_ON", true);
        answer
    });
    Ok(Some(answer))
}

fn accept(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Result<RemotingCommand, Refusal> {
    let header: SendMessageRequestHeader<'_> = call.command.header()?;
    check_topic_name(header.topic)?;
    if FORBIDDEN_TO_SEND.contains(&header.topic) {
        return refuse(ResponseCode::NO_PERMISSION, format!("sending to topic {} is forbidden", header.topic));
    }
    let topic = find_topic(state, &header)?;
    if header.queue_id >= topic.most_queues() {
        let remark =
            format!("queue id {} is illegal, topic {} has {}", header.queue_id, topic.name, topic.most_queues());
        return refuse(ResponseCode::INVALID_PARAMETER, remark);
    }
    let queue_id = match header.queue_id {
        // Upstream divides by the number of queues.
        ..0 if topic.write_queues <= 0 => {
            return refuse(ResponseCode::SYSTEM_ERROR, format!("topic {} has no queue to write to", topic.name));
        }
        ..0 => random() % topic.write_queues,
        id => id,
    };
    if call.command.body.is_empty() {
        return refuse(ResponseCode::SYSTEM_ERROR, "the message has no body");
    }
    let text = header.properties.unwrap_or_default();
    if text.len() > MAX_PROPERTIES {
        let remark = format!("the message is illegal: its properties have {} bytes", text.len());
        return refuse(ResponseCode::MESSAGE_ILLEGAL, remark);
    }
    let list = PropertyList::parse(text);
    let unique_key = list.get(properties::UNIQ_KEY).map(str::to_owned);
    if header.batch == Some(true) {
        let is_delayed = list.get(properties::DELAY_TIME_LEVEL).is_some_and(|level| level.parse().unwrap_or(0) > 0);
        if is_delayed || header.sys_flag & sys_flag::TRANSACTION_MASK != 0 {
            return refuse(ResponseCode::MESSAGE_ILLEGAL, "a batch can have neither delay nor transaction");
        }
        return accept_batch(state, call, &header, &topic, queue_id, unique_key, out);
    }

    let mut draft = Draft {
        topic: header.topic.into(),
        queue_id,
        flag: header.flag,
        sys_flag: header.sys_flag | if topic.is_multi_tag() { sys_flag::MULTI_TAGS } else { 0 },
        born_millis: header.born_timestamp,
        born_host: call.peer(),
        reconsume_times: header.reconsume_times.unwrap_or(0),
        body: &call.command.body,
        properties: list,
        prepared_position: 0,
    };
    if is_retry(header.topic) {
        divert_spent_retry(state, call, &header, &mut draft)?;
    }
    let unique_key = unique_key.unwrap_or_else(create_unique_id);
    draft.properties.remove(properties::POP_CK);
    draft.properties.set(properties::UNIQ_KEY, unique_key.clone());
    draft.properties.set(properties::MSG_REGION, REGION);
    draft.properties.set(properties::TRACE_SWITCH, "true");
    draft.properties.set(properties::CLUSTER, state.config.cluster.to_string());
    let queue_id = draft.queue_id;
    let is_retried = draft.reconsume_times > 0
        && draft.properties.get(properties::DELAY_TIME_LEVEL).is_some_and(|level| level.parse().unwrap_or(0) > 0);
    let is_prepared = draft.properties.get(properties::TRANSACTION_PREPARED);
    let stored = if is_prepared.is_some_and(|text| text.eq_ignore_ascii_case("true")) && !is_retried {
        state.put_half(draft, out)?
    } else {
        state.put(draft, out)?
    };
    Ok(success(&stored.msg_id, queue_id, &stored, Some(&unique_key)))
}

/// Each message of a batch keeps its own flag and properties; the broker adds nothing to them (since 5.4), and a delay
/// among them has no effect.
fn accept_batch(
    state: &mut State,
    call: Call<'_>,
    header: &SendMessageRequestHeader<'_>,
    topic: &Topic,
    queue_id: i32,
    unique_key: Option<String>,
    out: &mut Outbox,
) -> Result<RemotingCommand, Refusal> {
    if header.topic.len() > MAX_TOPIC_LENGTH || is_retry(header.topic) {
        return refuse(
            ResponseCode::MESSAGE_ILLEGAL,
            "a batch cannot go to a retry topic or to one with so long a name",
        );
    }
    let members = match decode_batch(&call.command.body) {
        Ok(members) if call.command.body.len() <= MAX_BATCH => members,
        Ok(_) => return refuse(ResponseCode::SYSTEM_ERROR, format!("the batch is larger than {MAX_BATCH} bytes")),
        Err(error) => return refuse(ResponseCode::SYSTEM_ERROR, format!("the batch cannot be taken apart: {error}")),
    };
    let drafts = members
        .iter()
        .map(|member| {
            let text = std::str::from_utf8(member.properties);
            let list = text.map(PropertyList::parse).map_err(|_| {
                Refusal::new(ResponseCode::SYSTEM_ERROR, "properties of a message in the batch are not UTF-8")
            })?;
            Ok(Draft {
                topic: header.topic.into(),
                queue_id,
                flag: member.flag,
                sys_flag: header.sys_flag | if topic.is_multi_tag() { sys_flag::MULTI_TAGS } else { 0 },
                born_millis: header.born_timestamp,
                born_host: call.peer(),
                reconsume_times: header.reconsume_times.unwrap_or(0),
                body: member.body,
                properties: list,
                prepared_position: 0,
            })
        })
        .collect::<Result<Vec<_>, Refusal>>()?;
    let stored = state.put_all(drafts, out)?;
    let Some(first) = stored.first() else {
        return refuse(ResponseCode::SYSTEM_ERROR, "the batch holds no message");
    };
    let ids: Vec<&str> = stored.iter().map(|stored| stored.msg_id.as_str()).collect();
    Ok(success(&ids.join(","), queue_id, first, unique_key.as_deref()))
}

fn success(msg_id: &str, queue_id: i32, stored: &Stored, unique_key: Option<&str>) -> RemotingCommand {
    let header = SendMessageResponseHeader {
        msg_id,
        queue_id,
        queue_offset: stored.queue_offset,
        transaction_id: unique_key,
        batch_uniq_id: None,
        recall_handle: stored.recall_handle.as_deref(),
        msg_region: Some(REGION),
        trace_on: Some(true),
    };
    RemotingCommand::response_with(ResponseCode::SUCCESS, &header)
}

fn check_topic_name(topic: &str) -> Result<(), Refusal> {
    let is_derived = topic.starts_with(RETRY_PREFIX) || topic.starts_with(DLQ_PREFIX);
    let longest = if is_derived { MAX_DERIVED_TOPIC } else { MAX_TOPIC_LENGTH };
    if is_legal_name(topic, longest) {
        return Ok(());
    }
    let remark =
        format!("topic '{}' is illegal: letters, digits, %, |, _ and -, up to {longest}", topic.escape_debug());
    refuse(ResponseCode::INVALID_PARAMETER, remark)
}

fn find_topic(state: &mut State, header: &SendMessageRequestHeader<'_>) -> Result<Topic, Refusal> {
    if state.topics.get(header.topic).is_none() {
        let template = Template {
            topic: header.default_topic,
            queues: header.default_topic_queue_nums,
            unit_mode: header.unit_mode.unwrap_or(false),
        };
        let made = state.topics.create_by_send(header.topic, template);
        if made.is_some() {
            log::info!("embedded broker {}: made topic {} for a first message", state.config.name, header.topic);
        }
        state.publish(made);
    }
    match state.topics.get(header.topic) {
        Some(topic) => Ok(topic.clone()),
        None => {
            refuse(ResponseCode::TOPIC_NOT_EXIST, format!("topic {} does not exist; create it first", header.topic))
        }
    }
}

/// A retry that a client sends itself goes to the dead letters when it was retried often enough, or when its group
/// holds a queue lock, that is, consumes in order (since 5.1.1).
fn divert_spent_retry(
    state: &mut State,
    call: Call<'_>,
    header: &SendMessageRequestHeader<'_>,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let group = header.topic.strip_prefix(RETRY_PREFIX).unwrap_or(header.topic);
    let Some(config) = state.group_configs.find(group) else {
        return refuse(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("consumer group {group} of the retry topic does not exist"),
        );
    };
    let own_limit = header.max_reconsume_times.filter(|_| call.limits_retries());
    let most = own_limit.unwrap_or(config.retry_max_times);
    if draft.reconsume_times > most || state.locks.holds_any(group, state.now()) {
        let dead = dlq_topic(group);
        let made = state.topics.ensure(&dead, 1, false, 0);
        state.publish(made);
        draft.topic = dead.into();
        draft.queue_id = 0;
        draft.properties.set(properties::DELAY_TIME_LEVEL, "-1");
    }
    Ok(())
}

/// A number that is not negative, spread well enough to choose a queue.
pub(crate) fn random() -> i32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) as i32) & i32::MAX
}
