//! VIEW_MESSAGE_BY_ID (33), QUERY_MESSAGE (12).
//!
//! Kept from a real broker: messages are found by the position in their offset id, and by unique key or any word of
//! their keys under the topic they are stored in; at most 64, or 32 by unique key, in the order of the log. Stronger:
//! keys are compared, not only their hashes; a position that is no start of a record is refused.

use super::outbox::Outbox;
use super::property_list::index_keys;
use super::state::{Answer, Call, State, refuse};
use crate::protocol::header::{QueryMessageRequestHeader, QueryMessageResponseHeader, ViewMessageRequestHeader};
use crate::protocol::{RemotingCommand, ResponseCode};
use bytes::Bytes;

/// Most messages of one answer.
const MOST: usize = 64;
/// Most messages for a unique key, whatever was asked for.
const MOST_UNIQUE: usize = 32;

pub(crate) fn view(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: ViewMessageRequestHeader<'_> = call.command.header()?;
    match state.store.at_position(header.offset) {
        Some(record) => {
            let body = Bytes::copy_from_slice(record);
            Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
        }
        None => refuse(ResponseCode::SYSTEM_ERROR, format!("no message starts at position {}", header.offset)),
    }
}

pub(crate) fn query(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: QueryMessageRequestHeader<'_> = call.command.header()?;
    let most = match header.unique_key_query {
        Some(true) => MOST_UNIQUE,
        _ => usize::try_from(header.max_num).unwrap_or(0).min(MOST),
    };
    let mut found: Vec<(i64, i64, Bytes)> = Vec::new();
    if most > 0 {
        state.store.by_key(header.topic, header.key, |position, time, record| {
            let is_in_time = (header.begin_timestamp..=header.end_timestamp).contains(&time);
            if is_in_time {
                let record = Bytes::copy_from_slice(record);
                let carries_key = state
                    .decode(record.clone())
                    .is_some_and(|message| index_keys(|name| message.property(name)).any(|key| key == header.key));
                if carries_key {
                    found.push((position, time, record));
                }
            }
            found.len() < most
        });
    }
    let (position, time) = found.first().map_or((0, 0), |(position, time, _)| (*position, *time));
    let head = QueryMessageResponseHeader { index_last_update_timestamp: time, index_last_update_phyoffset: position };
    if found.is_empty() {
        let remark = format!("no message with key '{}' in topic {}", header.key, header.topic);
        return Ok(Some(RemotingCommand::response_with(ResponseCode::QUERY_NOT_FOUND, &head).with_remark(remark)));
    }
    let mut body = Vec::new();
    found.iter().rev().for_each(|(_, _, record)| body.extend_from_slice(record));
    Ok(Some(RemotingCommand::response_with(ResponseCode::SUCCESS, &head).with_body(body.into())))
}
