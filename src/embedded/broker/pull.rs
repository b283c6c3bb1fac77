//! PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361), with long polling.
//!
//! Kept from a real broker (`PullMessageProcessor`): the checks and their order, whose subscription counts, filtering by
//! the hash of the tag (so collisions get through) or by a condition, the code and next offset of every outcome, the
//! commit that a first pull carries, a reset that waits for its pull. A condition that comes with a pull and does not
//! compile lets everything through, as upstream; which broker id a reader is told to ask next, and what a slave answers
//! while its master lives. Stronger: see [`super::hold`]. Left out: cold data, groups forbidden to
//! read.

use super::filter::{self, Filter, is_tag};
use super::hold::Held;
use super::outbox::Outbox;
use super::state::{Answer, Call, Refusal, State, refuse};
use super::store_read::{ReadAnswer, ReadStatus};
use super::topic_table::READ;
use crate::message::sys_flag::pull::{COMMIT_OFFSET, SUBSCRIPTION, SUSPEND, has};
use crate::protocol::body::{MASTER_ID, MessageModel};
use crate::protocol::header::{PullMessageRequestHeader, PullMessageResponseHeader};
use crate::protocol::{RemotingCommand, ResponseCode, SubscriptionData};
use crate::remoting::ConnectionHandle;
use bytes::Bytes;
use std::time::Duration;

/// Longest time for which a pull is held, whatever it asks for.
const LONGEST_HOLD: Duration = Duration::from_secs(3600);

/// Most bytes of fields that a pull may have to be held.
const MAX_HELD_REQUEST: usize = 64 * 1024;

/// A pull that waits: all that is needed to run it again.
#[derive(Debug)]
pub(crate) struct HeldPull {
    connection: ConnectionHandle,
    request: RemotingCommand,
}

/// What a pull found, before it is decided whether it waits.
struct Found {
    read: ReadAnswer,
    filter: Filter,
    topic_sys_flag: i32,
    group_sys_flag: i32,
    /// The broker id that the reader is to ask next.
    next_broker: i64,
    /// Whether this is a slave that the reader did better not to ask.
    is_detour: bool,
}

/// Why nothing may be pulled, in the field `forbiddenType`.
const FORBIDDEN_GROUP: i64 = 2;
const FORBIDDEN_TOPIC: i64 = 3;
const FORBIDDEN_BROADCAST: i64 = 4;

/// Answers a pull, or holds it.
pub(crate) fn pull(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: PullMessageRequestHeader<'_> = call.command.header()?;
    let found = look(state, &header)?;
    let (group, topic, queue_id) = (header.consumer_group, header.topic, header.queue_id);
    state.offsets.note_pull(group, topic, queue_id, found.read.next_offset);
    if has(header.sys_flag, COMMIT_OFFSET)
        && state.offsets.commit(group, topic, queue_id, header.commit_offset).is_err()
    {
        log::error!("embedded broker {}: no room for more offsets; one of group {group} is lost", state.config.name);
    }
    let code = code(&found, header.queue_offset);
    // What waits keeps its whole frame in memory, so a frame that carries more than a pull is not kept.
    let is_small = call.command.body.is_empty()
        && call.command.remark.is_none()
        && call.command.ext_fields.raw().1.len() <= MAX_HELD_REQUEST;
    let weight = 1024 + call.command.ext_fields.raw().1.len() + found.filter.bytes();
    let may_wait = has(header.sys_flag, SUSPEND) && !call.command.is_oneway() && is_small;
    if code != ResponseCode::PULL_NOT_FOUND || !may_wait {
        return Ok(Some(answer(code, found)));
    }
    let Some(slot) = state.store.slot(topic, queue_id) else {
        return Ok(Some(answer(code, found)));
    };
    let wait = Duration::from_millis(u64::try_from(header.suspend_timeout_millis).unwrap_or(0)).min(LONGEST_HOLD);
    let held = Held {
        slot,
        connection: call.connection.id(),
        offset: header.queue_offset,
        until: state.now() + wait,
        filter: found.filter.clone(),
        weight,
        pull: HeldPull { connection: call.connection.clone(), request: call.command.clone() },
    };
    match state.holds.hold(held) {
        Ok(()) => Ok(None),
        Err(_) => Ok(Some(answer(code, found))),
    }
}

impl State {
    /// Answers a pull that was held. All checks are made again; it does not wait a second time, nor commit.
    pub(crate) fn resume(&mut self, held: Held<HeldPull>, out: &mut Outbox) {
        let HeldPull { connection, request } = held.pull;
        let outcome = request.header::<PullMessageRequestHeader<'_>>().map_err(Refusal::from).and_then(|header| {
            let found = look(self, &header)?;
            out.spent += 1000 + found.read.spent + found.read.records.len() / 4;
            Ok(answer(code(&found, header.queue_offset), found))
        });
        let mut response = outcome.unwrap_or_else(Refusal::answer);
        response.opaque = request.opaque;
        out.send(&connection, response);
    }
}

/// Checks the request and reads.
fn look(state: &mut State, header: &PullMessageRequestHeader<'_>) -> Result<Found, Refusal> {
    let (group, name, queue_id) = (header.consumer_group, header.topic, header.queue_id);

    let Some(config) = state.group_configs.find(group) else {
        return Err(Refusal::new(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("consumer group {group} does not exist and cannot be made"),
        ));
    };
    if !config.consume_enable {
        return Err(Refusal::forbidden(FORBIDDEN_GROUP, format!("consumer group {group} may not consume")));
    }
    let (allows_broadcast, group_sys_flag) = (config.consume_broadcast_enable, config.group_sys_flag);
    let (usual_broker, slow_broker) = (config.broker_id, config.which_broker_when_consume_slowly);
    let Some(topic) = state.topics.get(name) else {
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("topic {name} does not exist; create it first"),
        ));
    };
    if topic.perm & READ == 0 {
        return Err(Refusal::forbidden(FORBIDDEN_TOPIC, format!("topic {name} may not be read")));
    }
    if queue_id < 0 || queue_id >= topic.read_queues {
        let remark = format!("queue id {queue_id} is illegal, topic {name} has {} to read", topic.read_queues);
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    }
    let topic_sys_flag = topic.sys_flag;

    let posted;
    let subscription = if has(header.sys_flag, SUBSCRIPTION) {
        posted = posted_subscription(header)?;
        &posted
    } else {
        let Some(members) = state.consumers.get(group) else {
            return Err(Refusal::new(
                ResponseCode::SUBSCRIPTION_NOT_EXIST,
                format!("no member of consumer group {group} sent a heartbeat here"),
            ));
        };
        if !allows_broadcast && members.message_model == MessageModel::Broadcasting {
            return Err(Refusal::forbidden(FORBIDDEN_BROADCAST, format!("consumer group {group} may not broadcast")));
        }
        let Some(subscription) = members.subscription(name) else {
            return Err(Refusal::new(
                ResponseCode::SUBSCRIPTION_NOT_EXIST,
                format!("consumer group {group} does not subscribe to {name} by its latest heartbeat"),
            ));
        };
        if subscription.sub_version < header.sub_version {
            return Err(Refusal::new(
                ResponseCode::SUBSCRIPTION_NOT_LATEST,
                format!("the subscription of consumer group {group} to {name} known here is older than the pull's"),
            ));
        }
        subscription
    };
    let filter = filter_of(subscription);
    let sql = if is_tag(&subscription.expression_type) {
        None
    } else if has(header.sys_flag, SUBSCRIPTION) {
        // Upstream lets everything through when such an expression does not compile.
        state.filters.compile(&subscription.expression_type, &subscription.sub_string).ok()
    } else {
        match state.filters.get(group, name, header.sub_version) {
            filter::Found::Current(sql) => Some(sql),
            filter::Found::Older => {
                return Err(Refusal::new(
                    ResponseCode::FILTER_DATA_NOT_LATEST,
                    format!("the condition of consumer group {group} for {name} known here is older than the pull's"),
                ));
            }
            filter::Found::None => {
                return Err(Refusal::new(
                    ResponseCode::FILTER_DATA_NOT_EXIST,
                    format!("no condition of consumer group {group} for {name} is known here; it may be wrong"),
                ));
            }
        }
    };
    if !is_tag(&subscription.expression_type) && !state.config.property_filter {
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, no_filter(&subscription.expression_type)));
    }
    let filter = match sql {
        Some(sql) if !subscription.class_filter_mode => Filter::Sql(sql),
        _ => filter,
    };

    let mut read = match state.offsets.take_reset(group, name, queue_id) {
        Some(offset) => {
            let (min_offset, max_offset) = state.store.bounds(name, queue_id);
            let status = ReadStatus::OffsetReset;
            ReadAnswer { status, next_offset: offset, min_offset, max_offset, behind: 0, spent: 0, records: Vec::new() }
        }
        None => state.store.read(name, queue_id, header.queue_offset, header.max_msg_nums, &filter),
    };
    // As upstream, where it is that part of the machine's memory.
    let is_slow = read.behind as u128 > state.config.limits.bytes as u128 * 2 / 5;
    let is_detour = state.is_slave() && !is_slow && state.is_master_running();
    let next_broker = match (state.config.slave_read && state.config.slaves > 0, is_slow) {
        (false, _) => MASTER_ID,
        (true, true) => slow_broker,
        (true, false) if is_detour => MASTER_ID,
        (true, false) => usual_broker,
    };
    if state.is_slave() && read.is_corrected() {
        // Only a master knows better than its reader.
        read.next_offset = header.queue_offset;
    }
    Ok(Found { read, filter, topic_sys_flag, group_sys_flag, next_broker, is_detour })
}

fn posted_subscription(header: &PullMessageRequestHeader<'_>) -> Result<SubscriptionData, Refusal> {
    let expression = header.subscription.unwrap_or_default();
    if !header.expression_type.is_none_or(is_tag) {
        if expression.is_empty() {
            return refuse(ResponseCode::SUBSCRIPTION_PARSE_FAILED, "the subscription of the pull has no expression");
        }
        return Ok(SubscriptionData {
            expression_type: header.expression_type.unwrap_or_default().into(),
            sub_string: expression.into(),
            sub_version: header.sub_version,
            topic: header.topic.into(),
            ..SubscriptionData::default()
        });
    }
    if header.expression_type == Some("") && !expression.is_empty() && expression != SubscriptionData::ALL {
        // Upstream takes an empty type for none of those it parses: there are no tags then, and nothing matches.
        let all = SubscriptionData::tag_expression(header.topic, SubscriptionData::ALL, header.sub_version)?;
        return Ok(SubscriptionData { sub_string: expression.into(), ..all });
    }
    SubscriptionData::tag_expression(header.topic, expression, header.sub_version)
        .or_else(|error| refuse(ResponseCode::SUBSCRIPTION_PARSE_FAILED, error.to_string()))
}

/// What is said to an expression of a type that is switched off.
pub(crate) fn no_filter(expression_type: &str) -> String {
    format!("this broker does not filter messages by {expression_type:.20}; its property filter is off")
}

/// The filter of a list of tags; conditions are looked up elsewhere.
fn filter_of(subscription: &SubscriptionData) -> Filter {
    let is_list = is_tag(&subscription.expression_type);
    if subscription.class_filter_mode || !is_list || subscription.sub_string == SubscriptionData::ALL {
        Filter::All
    } else {
        Filter::Hashes(subscription.code_set.iter().copied().collect())
    }
}

fn code(found: &Found, offset: i64) -> ResponseCode {
    match found.read.status {
        ReadStatus::Found => ResponseCode::SUCCESS,
        // To the master, then.
        _ if found.is_detour => ResponseCode::PULL_RETRY_IMMEDIATELY,
        ReadStatus::NoMatchedMessage | ReadStatus::MessageWasRemoving => ResponseCode::PULL_RETRY_IMMEDIATELY,
        ReadStatus::OffsetOverflowOne => ResponseCode::PULL_NOT_FOUND,
        ReadStatus::NoMessageInQueue if offset == 0 => ResponseCode::PULL_NOT_FOUND,
        ReadStatus::NoMessageInQueue
        | ReadStatus::OffsetTooSmall
        | ReadStatus::OffsetOverflowBadly
        | ReadStatus::OffsetReset => ResponseCode::PULL_OFFSET_MOVED,
    }
}

fn answer(code: ResponseCode, found: Found) -> RemotingCommand {
    let header = PullMessageResponseHeader {
        suggest_which_broker_id: found.next_broker,
        next_begin_offset: found.read.next_offset,
        min_offset: found.read.min_offset,
        max_offset: found.read.max_offset,
        offset_delta: None,
        topic_sys_flag: Some(found.topic_sys_flag),
        group_sys_flag: Some(found.group_sys_flag),
        forbidden_type: None,
    };
    RemotingCommand::response_with(code, &header)
        .with_remark(found.read.status.name())
        .with_body(Bytes::from(found.read.records))
}
