//! UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200), GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201), DELETE_SUBSCRIPTIONGROUP (207),
//! GET_SUBSCRIPTIONGROUP_CONFIG (352).
//!
//! Kept from a real broker: a bad name is refused with 29, a missing group with 26; members a request leaves out get
//! their defaults, not what was set before. Left out: versions of the group table.

use super::outbox::Outbox;
use super::state::{Answer, Call, State, done, refuse};
use crate::protocol::body::{SubscriptionGroupConfig, SubscriptionGroupWrapper};
use crate::protocol::header::{DeleteSubscriptionGroupRequestHeader, GetSubscriptionGroupConfigRequestHeader};
use crate::protocol::{RemotingCommand, ResponseCode};

pub(crate) fn create(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let config = SubscriptionGroupConfig::decode(&call.command.body)?;
    let name = config.group_name.clone();
    if state.group_configs.put(config) {
        return done();
    }
    refuse(ResponseCode::INVALID_PARAMETER, format!("consumer group '{}' cannot be made", name.escape_debug()))
}

pub(crate) fn delete(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: DeleteSubscriptionGroupRequestHeader<'_> = call.command.header()?;
    state.group_configs.remove(header.group_name);
    if header.clean_offset {
        state.offsets.remove_group(header.group_name);
    }
    done()
}

pub(crate) fn config(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetSubscriptionGroupConfigRequestHeader<'_> = call.command.header()?;
    match state.group_configs.find(header.group) {
        Some(config) => {
            let body = config.encode();
            Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
        }
        None => {
            let remark = format!("consumer group {} does not exist", header.group);
            refuse(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        }
    }
}

pub(crate) fn all(state: &mut State, _: Call<'_>, _: &mut Outbox) -> Answer {
    let table = state.group_configs.iter().map(|(name, config)| (name.clone(), config.clone())).collect();
    let body = SubscriptionGroupWrapper { subscription_group_table: table, ..Default::default() }.encode();
    Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
}
