//! CONSUMER_SEND_MSG_BACK (36): a consumer returns a message that it wants to see again later.
//!
//! Kept from a real broker: the message is read again by its position and stored anew, with one more reconsume time,
//! under the group's retry topic after a delay of level 3 + times, or under its dead-letter topic; which properties
//! change on which hop. Left out: the request to another broker of the group when this one is a slave.

use super::append::Draft;
use super::outbox::Outbox;
use super::send::random;
use super::state::{Answer, Call, State, done, refuse};
use super::topic_table::UNIT_SUB;
use crate::message::properties;
use crate::message::topic::{dlq_topic, retry_topic};
use crate::protocol::ResponseCode;
use crate::protocol::header::ConsumerSendMsgBackRequestHeader;

pub(crate) fn send_back(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let header: ConsumerSendMsgBackRequestHeader<'_> = call.command.header()?;
    let group = header.group;
    let Some(config) = state.group_configs.find(group) else {
        let remark = format!("consumer group {group} does not exist");
        return refuse(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark);
    };
    let own_limit = header.max_reconsume_times.filter(|_| call.limits_retries());
    let most = own_limit.unwrap_or(config.retry_max_times);
    let queues = config.retry_queue_nums;
    if queues <= 0 {
        return done(); // the group keeps no retries: the message is dropped
    }
    let retry = retry_topic(group);
    let made = state.topics.ensure(&retry, queues, false, if header.unit_mode { UNIT_SUB } else { 0 });
    state.publish(made);
    match state.topics.get(&retry) {
        None => return refuse(ResponseCode::SYSTEM_ERROR, format!("topic {retry} does not exist")),
        Some(topic) if topic.perm & super::topic_table::WRITE == 0 => {
            return refuse(ResponseCode::NO_PERMISSION, format!("topic {retry} is not writable"));
        }
        Some(_) => {}
    }
    let Some(message) = state.message_at(header.offset) else {
        return refuse(ResponseCode::SYSTEM_ERROR, format!("no message starts at position {}", header.offset));
    };

    let times = message.reconsume_times();
    let mut draft = Draft::copy_of(&message);
    if draft.properties.get(properties::RETRY_TOPIC).is_none() {
        draft.properties.set(properties::RETRY_TOPIC, message.topic());
    }
    if draft.properties.get(properties::ORIGIN_MESSAGE_ID).is_none() {
        draft.properties.set(properties::ORIGIN_MESSAGE_ID, message.offset_msg_id());
    }
    draft.properties.set(properties::WAIT_STORE_MSG_OK, "false");
    draft.reconsume_times = times.saturating_add(1);
    if times >= most || header.delay_level < 0 {
        let dead = dlq_topic(group);
        let made = state.topics.ensure(&dead, 1, false, 0);
        state.publish(made);
        if state.topics.get(&dead).is_none() {
            return refuse(ResponseCode::SYSTEM_ERROR, format!("topic {dead} does not exist"));
        }
        draft.topic = dead.into();
        draft.queue_id = 0;
        draft.properties.set(properties::DELAY_TIME_LEVEL, "0");
    } else {
        let level = if header.delay_level == 0 { times.saturating_add(3) } else { header.delay_level };
        draft.topic = retry.into();
        draft.queue_id = random() % queues;
        draft.properties.set(properties::DELAY_TIME_LEVEL, level.to_string());
    }
    match state.put(draft, out) {
        Ok(_) => done(),
        Err(refusal) => refuse(ResponseCode::SYSTEM_ERROR, refusal.remark),
    }
}
