//! LOCK_BATCH_MQ (41), UNLOCK_BATCH_MQ (42).
//!
//! Kept from a real broker: see [`super::lock_table`]; any group, topic and queue can be locked, known or not. Different
//! for malformed bodies, where upstream may be left with a lock that nobody can take: a missing body, group or client id
//! is answered with 1 before anything changes, and queues without topic or broker name are passed over.

use super::outbox::Outbox;
use super::state::{Answer, Call, Refusal, State, done, refuse};
use crate::message::MessageQueue;
use crate::protocol::body::{LockBatchRequestBody, LockBatchResponseBody};
use crate::protocol::{RemotingCommand, ResponseCode};

/// Longest name that is looked at; legal ones are far shorter.
const MAX_NAME: usize = 1024;

pub(crate) fn lock(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let body = read(call)?;
    let now = state.now();
    let queues = body.mq_set.into_iter().filter(is_whole);
    let held = state.locks.lock(&body.consumer_group, &body.client_id, queues, now);
    let answer = LockBatchResponseBody { lock_ok_mq_set: held }.encode();
    Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(answer)))
}

pub(crate) fn unlock(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let body = read(call)?;
    state.locks.unlock(&body.consumer_group, &body.client_id, &body.mq_set);
    done()
}

fn read(call: Call<'_>) -> Result<LockBatchRequestBody, Refusal> {
    let body = LockBatchRequestBody::decode(&call.command.body)?;
    let is_name = |name: &str| (1..=MAX_NAME).contains(&name.len());
    if !is_name(&body.client_id) || !is_name(&body.consumer_group) {
        return refuse(ResponseCode::SYSTEM_ERROR, "a queue lock needs a client id and a consumer group");
    }
    Ok(body)
}

fn is_whole(queue: &MessageQueue) -> bool {
    [queue.topic(), queue.broker_name()].iter().all(|name| (1..=MAX_NAME).contains(&name.len()))
}
