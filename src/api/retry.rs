//! Which failures deserve another try, for each operation, each with its reason.

use crate::error::{Error, ErrorKind};
use crate::protocol::ResponseCode;

/// Whether a send may be tried at another broker. Source of the codes: `retryResponseCodes` (04-producer 3.1).
///
/// A try after [`ErrorKind::Timeout`] or [`ErrorKind::Closed`] can store the message twice: the first outcome is
/// unknown. RocketMQ promises at least once, so the try is made; both copies carry the same unique key.
pub(crate) fn is_send_retryable(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Connect | ErrorKind::Timeout | ErrorKind::Closed | ErrorKind::Protocol | ErrorKind::NoRoute => true,
        ErrorKind::Broker => error.response_code().is_some_and(|code| {
            [
                // Not created there yet, or dropped there.
                ResponseCode::TOPIC_NOT_EXIST,
                // Another broker may have room, time or the right.
                ResponseCode::SERVICE_NOT_AVAILABLE,
                ResponseCode::SYSTEM_ERROR,
                ResponseCode::SYSTEM_BUSY,
                ResponseCode::NO_PERMISSION,
                ResponseCode::NO_BUYER_ID,
                ResponseCode::NOT_IN_CURRENT_UNIT,
                ResponseCode::GO_AWAY,
                ResponseCode::FLOW_CONTROL,
            ]
            .contains(&ResponseCode(code))
        }),
        // The message, the arguments or this client are the cause: nothing changes elsewhere.
        _ => false,
    }
}

/// What to do about a pull that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullFailure {
    /// The broker does not know our subscription, or not this version of it: a heartbeat first, then soon again.
    NotRegistered,
    /// The broker asks for a short pause.
    FlowControl,
    /// Another address may serve the queue: fetch the route, then again after the usual pause.
    Unreachable,
    /// Again after the usual pause.
    Other,
}

/// Classifies a failed pull.
pub(crate) fn pull_failure(error: &Error) -> PullFailure {
    match error.response_code().map(ResponseCode) {
        // The last two are the same of an SQL92 filter, which a broker compiles when it hears a heartbeat.
        Some(
            ResponseCode::SUBSCRIPTION_NOT_EXIST
            | ResponseCode::SUBSCRIPTION_NOT_LATEST
            | ResponseCode::FILTER_DATA_NOT_EXIST
            | ResponseCode::FILTER_DATA_NOT_LATEST,
        ) => PullFailure::NotRegistered,
        Some(ResponseCode::FLOW_CONTROL) => PullFailure::FlowControl,
        Some(ResponseCode::TOPIC_NOT_EXIST) => PullFailure::Unreachable,
        Some(_) => PullFailure::Other,
        None if matches!(error.kind(), ErrorKind::Connect | ErrorKind::Closed | ErrorKind::NoRoute) => {
            PullFailure::Unreachable
        }
        None => PullFailure::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_message_is_not_offered_to_another_broker() {
        assert!(!is_send_retryable(&Error::broker(ResponseCode::MESSAGE_ILLEGAL.0, "too large")));
        assert!(!is_send_retryable(&Error::new(ErrorKind::MessageIllegal, "empty body")));
        assert!(is_send_retryable(&Error::broker(ResponseCode::SYSTEM_BUSY.0, "")));
        assert!(is_send_retryable(&Error::new(ErrorKind::Connect, "refused")));
    }

    #[test]
    fn an_unknown_subscription_asks_for_a_heartbeat() {
        let error = Error::broker(ResponseCode::SUBSCRIPTION_NOT_LATEST.0, "");
        assert_eq!(pull_failure(&error), PullFailure::NotRegistered);
        assert_eq!(pull_failure(&Error::new(ErrorKind::Closed, "reset")), PullFailure::Unreachable);
    }
}
