//! One request, as `DefaultMQPushConsumerImpl.pullMessage` composes it (02-consumer 7.3).

use crate::api::pull::PullResult;
use crate::consumer::held::HeldQueue;
use crate::error::{Error, ErrorKind, Result};
use crate::instance::ClientInstance;
use crate::message::sys_flag::pull as pull_flag;
use crate::protocol::SubscriptionData;
use crate::protocol::header::PullMessageRequestHeader;
use std::time::{Duration, Instant};

/// The request may take this much longer than the broker was asked to hold it (field report 25); brokers look for
/// expired holds every 5 s.
const PULL_MARGIN: Duration = Duration::from_secs(15);

/// What a consumer asks for with each pull.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) batch_size: i32,
    pub(crate) batch_bytes: i32,
    /// How long a broker may hold a pull that finds nothing.
    pub(crate) suspend: Duration,
    /// Whether the pull carries its subscription instead of relying on heartbeats.
    pub(crate) carries_subscription: bool,
    /// Whether pulls to masters carry the offset to store.
    pub(crate) carries_commit: bool,
}

/// Sends a pull for the next offset of the queue. `done` gets that offset, the time it took and the answer, on a call
/// thread.
///
/// # Errors
/// [`ErrorKind::NoRoute`] when no address of the queue's broker is known; `done` is not called then.
pub(crate) fn send(
    instance: &ClientInstance,
    group: &str,
    held: &HeldQueue,
    subscription: &SubscriptionData,
    terms: &Terms,
    done: impl FnOnce(i64, Duration, Result<PullResult>) + Send + 'static,
) -> Result<()> {
    let (asked, broker_id, is_damaged) =
        held.with_progress(|progress| (progress.next_offset, progress.suggested_broker_id, progress.damage.is_some()));
    let Some(target) = instance.brokers().to_read(held.queue.broker_name(), broker_id) else {
        let text = format!("no route names an address of broker '{}'", held.queue.broker_name());
        return Err(Error::new(ErrorKind::NoRoute, text));
    };
    // Only a master may store the offset that travels with a pull (field report 33).
    let commit = held.carried_commit().filter(|_| terms.carries_commit && target.is_master);
    let by_class = subscription.class_filter_mode;
    let carries_subscription = terms.carries_subscription && !by_class;
    let flag = pull_flag::SUSPEND
        | if commit.is_some() { pull_flag::COMMIT_OFFSET } else { 0 }
        | if carries_subscription { pull_flag::SUBSCRIPTION } else { 0 }
        | if by_class { pull_flag::CLASS_FILTER } else { 0 };
    let header = PullMessageRequestHeader {
        consumer_group: group,
        topic: held.queue.topic(),
        queue_id: held.queue.queue_id(),
        queue_offset: asked,
        max_msg_nums: if is_damaged { 1 } else { terms.batch_size },
        sys_flag: flag,
        commit_offset: commit.unwrap_or(0),
        suspend_timeout_millis: i64::try_from(terms.suspend.as_millis()).unwrap_or(i64::MAX),
        subscription: carries_subscription.then_some(&*subscription.sub_string),
        sub_version: subscription.sub_version,
        expression_type: Some(&subscription.expression_type),
        max_msg_bytes: Some(terms.batch_bytes),
        bname: Some(held.queue.broker_name()),
    };
    let sent = Instant::now();
    instance.api().pull(&target.address, &header, terms.suspend + PULL_MARGIN, move |result| {
        done(asked, sent.elapsed(), result);
    });
    Ok(())
}
