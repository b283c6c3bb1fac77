//! What a slave does not do.
//!
//! Kept from a real broker: messages, send-backs and (unless it may be read from) pulls are refused as busy, the end of
//! a transaction with 11, changes of topics, groups and offsets with 1. Everything else it answers from its own tables,
//! see [`super::session`]; what is particular about pulls stands in [`super::pull`].

use super::config::BrokerConfig;
use super::state::Refusal;
use crate::protocol::{RequestCode, ResponseCode};

/// Why a slave refuses a request, if it does.
pub(crate) fn refusal(code: RequestCode, config: &BrokerConfig) -> Option<Refusal> {
    let busy = || Refusal::new(ResponseCode::SYSTEM_BUSY, "[REJECTREQUEST]this is a slave; ask its master");
    match code {
        RequestCode::SEND_MESSAGE
        | RequestCode::SEND_MESSAGE_V2
        | RequestCode::SEND_BATCH_MESSAGE
        | RequestCode::CONSUMER_SEND_MSG_BACK => Some(busy()),
        RequestCode::PULL_MESSAGE | RequestCode::LITE_PULL_MESSAGE if !config.slave_read => Some(busy()),
        RequestCode::END_TRANSACTION => {
            Some(Refusal::new(ResponseCode::SLAVE_NOT_AVAILABLE, "a slave ends no transactions"))
        }
        RequestCode::UPDATE_AND_CREATE_TOPIC
        | RequestCode::DELETE_TOPIC_IN_BROKER
        | RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        | RequestCode::DELETE_SUBSCRIPTIONGROUP
        | RequestCode::INVOKE_BROKER_TO_RESET_OFFSET => {
            Some(Refusal::new(ResponseCode::SYSTEM_ERROR, "a slave changes nothing; ask its master"))
        }
        _ => None,
    }
}
