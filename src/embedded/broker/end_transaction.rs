//! END_TRANSACTION (37): a producer commits or rolls back a half message.
//!
//! Kept from a real broker (`EndTransactionProcessor`): the checks and their order; a word that leaves it open, or none
//! that is known, is not answered; the final message keeps the properties of the half one, has sysFlag 8 and the half
//! message's position, and is delayed if it asks for it. What is stronger stands in [`super::transaction`].

use super::append::Draft;
use super::outbox::Outbox;
use super::state::{Answer, Call, State, done, refuse};
use super::transaction::{HALF_TOPIC, real_queue};
use crate::message::{properties, sys_flag};
use crate::protocol::ResponseCode;
use crate::protocol::header::EndTransactionRequestHeader;
use crate::time::to_millis;

pub(crate) fn end(state: &mut State, call: Call<'_>, out: &mut Outbox) -> Answer {
    let header: EndTransactionRequestHeader<'_> = call.command.header()?;
    let commits = match header.commit_or_rollback {
        sys_flag::TRANSACTION_COMMIT => true,
        sys_flag::TRANSACTION_ROLLBACK => false,
        _ => return Ok(None),
    };
    let position = header.commit_log_offset;
    let wrong = |what: &str| refuse(ResponseCode::SYSTEM_ERROR, format!("{what} (position {position})"));
    let message = state.message_at(position).filter(|message| message.topic() == HALF_TOPIC);
    let Some(message) = message else { return wrong("there is no half message") };
    let own_time = message.property(properties::CHECK_IMMUNITY_TIME_IN_SECONDS);
    if own_time.is_some() && !header.from_transaction_check {
        let age = state.now_millis().saturating_sub(to_millis(message.born_time()));
        let immunity = state.config.transactions.immunity(own_time).as_millis();
        if u128::try_from(age).is_ok_and(|age| age > immunity) {
            let remark = format!("the half message is older than its own time of {immunity} ms; wait for the check");
            return refuse(ResponseCode::ILLEGAL_OPERATION, remark);
        }
    }
    if message.property(properties::PRODUCER_GROUP) != Some(header.producer_group) {
        return wrong("the half message belongs to another producer group");
    }
    if message.queue_offset() != header.tran_state_table_offset {
        return wrong("the half message has another queue offset");
    }
    let Some((topic, queue_id)) = real_queue(&message) else { return wrong("the half message names no queue") };
    let Some(id) = state.transactions.find(position) else {
        return done(); // decided, or given up, before
    };
    let Some(newest) = state.transactions.newest(id) else { return done() };
    if commits {
        let draft = Draft {
            topic: topic.into(),
            queue_id,
            sys_flag: message.sys_flag() & !sys_flag::TRANSACTION_MASK | sys_flag::TRANSACTION_COMMIT,
            prepared_position: position,
            ..Draft::copy_of(&message)
        };
        // In the place of its half message: a producer does not wait for the answer to a commit, so a broker that is
        // full must not refuse it.
        state.replace_delayed(newest, draft, out)?;
    } else {
        state.store.discard(newest);
    }
    state.transactions.remove(id);
    done()
}
