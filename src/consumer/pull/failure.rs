//! What a failed pull asks for: a pause, and what to do meanwhile.

use super::flow_control::back_off;
use crate::api::retry::{PullFailure, pull_failure};
use crate::consumer::held::HeldQueue;
use crate::consumer::offset;
use crate::error::Error;
use crate::instance::ClientInstance;
use std::time::Duration;

/// First pause when a broker does not know our subscription; a heartbeat is on its way to it.
const UNREGISTERED_PAUSE: Duration = Duration::from_millis(100);
const FLOW_CONTROL_PAUSE: Duration = Duration::from_millis(20);
/// So many refusals in a row are no longer a heartbeat that is late.
const CONFLICT_AFTER: u32 = 5;

/// What follows from a failed pull.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failed {
    /// The next try comes after this long.
    pub(crate) pause: Duration,
    /// The broker keeps saying that it does not know our subscription: others of the group may have another.
    pub(crate) is_conflict: bool,
}

/// Notes a failed pull and starts what helps: a heartbeat, or a look for new routes.
pub(crate) fn failed(
    instance: &ClientInstance,
    group: &str,
    held: &HeldQueue,
    error: &Error,
    error_delay: Duration,
) -> Failed {
    let failures = held.with_progress(|progress| {
        progress.failures = progress.failures.saturating_add(1);
        progress.standing = Some(error.to_string());
        progress.failures
    });
    let failure = pull_failure(error);
    // One line when it begins and one when it is over, whatever the number of tries.
    let level =
        if failures == 1 && failure != PullFailure::NotRegistered { log::Level::Warn } else { log::Level::Debug };
    log::log!(level, "group '{group}' cannot pull {}, it tries again: {error}", held.queue);
    let pause = match failure {
        PullFailure::NotRegistered => {
            instance.heartbeat_soon();
            back_off(failures, UNREGISTERED_PAUSE, error_delay.max(UNREGISTERED_PAUSE))
        }
        PullFailure::FlowControl => FLOW_CONTROL_PAUSE,
        PullFailure::Unreachable => {
            offset::doubt(held);
            instance.refresh_routes_soon();
            error_delay
        }
        PullFailure::Other => error_delay,
    };
    Failed { pause, is_conflict: failure == PullFailure::NotRegistered && failures == CONFLICT_AFTER }
}
