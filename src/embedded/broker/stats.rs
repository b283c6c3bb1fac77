//! GET_TOPIC_STATS_INFO (202), GET_CONSUME_STATS (208), QUERY_TOPIC_CONSUME_BY_WHO (300), QUERY_TOPICS_BY_CONSUMER (343),
//! QUERY_SUBSCRIPTION_BY_CONSUMER (345), GET_BROKER_RUNTIME_INFO (28).
//!
//! Kept from a real broker: which topics and queues a table lists; a group without offset shows 0; the pull offset is
//! never behind the committed one. Left out: rates of groups and topics, which are always 0; most of what a broker tells
//! of itself, which is free-form.

use super::outbox::Outbox;
use super::state::{Answer, Call, State, refuse};
use crate::message::MessageQueue;
use crate::protocol::body::{
    self, ConsumeStats, GroupList, KVTable, OffsetWrapper, TopicList, TopicOffset, TopicStatsTable,
};
use crate::protocol::header::{
    GetConsumeStatsRequestHeader, GetTopicStatsInfoRequestHeader, QuerySubscriptionByConsumerRequestHeader,
    QueryTopicConsumeByWhoRequestHeader, QueryTopicsByConsumerRequestHeader,
};
use crate::protocol::{RemotingCommand, ResponseCode, SubscriptionData, VERSION};
use bytes::Bytes;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The answer to request 345.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct QuerySubscriptionResponseBody<'a> {
    group: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subscription_data: Option<&'a SubscriptionData>,
    topic: &'a str,
}

fn with_body(body: Bytes) -> Answer {
    Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(body)))
}

pub(crate) fn topic(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetTopicStatsInfoRequestHeader<'_> = call.command.header()?;
    let Some(topic) = state.topics.get(header.topic) else {
        return refuse(ResponseCode::TOPIC_NOT_EXIST, format!("topic {} does not exist", header.topic));
    };
    let mut table = TopicStatsTable::default();
    for queue_id in 0..topic.most_queues() {
        let (min_offset, max_offset) = state.store.bounds(&topic.name, queue_id);
        let last = state.store.time_at(&topic.name, queue_id, max_offset - 1);
        let queue = MessageQueue::new(topic.name.clone(), state.config.name.clone(), queue_id);
        let offset = TopicOffset { last_update_timestamp: last.unwrap_or(0), max_offset, min_offset };
        table.offset_table.insert(queue, offset);
    }
    with_body(table.encode())
}

pub(crate) fn consume(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: GetConsumeStatsRequestHeader<'_> = call.command.header()?;
    let group = header.consumer_group;
    // Each name once, however often it is listed.
    let (asked, is_list): (BTreeSet<Arc<str>>, bool) = match (header.topic_list, header.topic) {
        (Some(list), _) => {
            (list.split(';').filter(|name| state.topics.get(name).is_some()).map(Arc::from).collect(), true)
        }
        (None, Some(topic)) if !topic.is_empty() => (BTreeSet::from([topic.into()]), false),
        _ => (state.offsets.topics_of(group).into_iter().collect(), false),
    };
    let mut stats = ConsumeStats::default();
    for name in asked {
        let Some(topic) = state.topics.get(&name) else { continue };
        let live = state.consumers.get(group).filter(|group| !group.subscriptions().is_empty());
        if !is_list && live.is_some_and(|group| group.subscription(&name).is_none()) {
            continue;
        }
        for queue_id in 0..topic.read_queues {
            let (_, broker_offset) = state.store.bounds(&name, queue_id);
            let consumer_offset = state.offsets.committed(group, &name, queue_id).unwrap_or(0).max(0);
            let pulled = state.offsets.pulled(group, &name, queue_id).unwrap_or(0);
            let offset = OffsetWrapper {
                broker_offset,
                consumer_offset,
                last_timestamp: state.store.time_at(&name, queue_id, consumer_offset - 1).unwrap_or(0),
                pull_offset: pulled.max(consumer_offset),
            };
            stats.offset_table.insert(MessageQueue::new(name.clone(), state.config.name.clone(), queue_id), offset);
        }
    }
    with_body(stats.encode())
}

pub(crate) fn groups_of_topic(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: QueryTopicConsumeByWhoRequestHeader<'_> = call.command.header()?;
    let live = state.consumers.subscribers_of(header.topic).into_iter();
    let groups = live.chain(state.offsets.groups_of(header.topic)).map(|name| name.to_string());
    with_body(GroupList { group_list: groups.collect() }.encode())
}

pub(crate) fn topics_of_group(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: QueryTopicsByConsumerRequestHeader<'_> = call.command.header()?;
    let topics = state.offsets.topics_of(header.group).into_iter().map(|name| name.to_string());
    with_body(TopicList { broker_addr: Some(state.address.to_string()), topic_list: topics.collect() }.encode())
}

pub(crate) fn subscription(state: &mut State, call: Call<'_>, _: &mut Outbox) -> Answer {
    let header: QuerySubscriptionByConsumerRequestHeader<'_> = call.command.header()?;
    let topic = header.topic.unwrap_or_default();
    let found = state.consumers.get(header.group).and_then(|group| group.subscription(topic));
    with_body(body::encode(&QuerySubscriptionResponseBody { group: header.group, subscription_data: found, topic }))
}

/// What every version of the tools reads of it must be there: `clusterList` of 4.9 ends with an exception where a rate is
/// missing. No pool has a queue here, so nothing waits in one.
pub(crate) fn runtime_info(state: &mut State, _: Call<'_>, _: &mut Outbox) -> Answer {
    let seconds = (state.now_millis() - state.boot_millis).max(1) as f64 / 1000.0;
    // Averages since the start, where a real broker has those of the last 10 s, 1 min and 10 min.
    let rate = |count: u64| format!("{0:.3} {0:.3} {0:.3}", count as f64 / seconds);
    let (put, got) = (state.store.appended(), state.store.handed_out());
    let pairs = [
        ("brokerVersionDesc", "V5_3_3".to_owned()),
        ("brokerVersion", VERSION.to_string()),
        ("brokerActive", "true".to_owned()),
        ("bootTimestamp", state.boot_millis.to_string()),
        ("putTps", rate(put)),
        ("getTransferedTps", rate(got)),
        ("getTransferredTps", rate(got)),
        ("msgPutTotalTodayNow", put.to_string()),
        ("msgGetTotalTodayNow", got.to_string()),
        ("commitLogDiskRatio", format!("{:.4}", state.store.fullness())),
        ("storedMessages", state.store.messages().to_string()),
        ("storedBytes", state.store.bytes().to_string()),
        ("delayedMessages", state.schedule.len().to_string()),
        ("pendingTransactions", state.transactions.len().to_string()),
        ("heldPulls", state.holds.len().to_string()),
        ("connections", state.connections.len().to_string()),
    ];
    let nothing = [
        "msgPutTotalTodayMorning",
        "msgPutTotalYesterdayMorning",
        "msgGetTotalTodayMorning",
        "msgGetTotalYesterdayMorning",
        "sendThreadPoolQueueSize",
        "sendThreadPoolQueueHeadWaitTimeMills",
        "pullThreadPoolQueueSize",
        "pullThreadPoolQueueHeadWaitTimeMills",
        "queryThreadPoolQueueSize",
        "queryThreadPoolQueueHeadWaitTimeMills",
        "ackThreadPoolQueueSize",
        "ackThreadPoolQueueHeadWaitTimeMills",
        "pageCacheLockTimeMills",
    ];
    let pairs = pairs.into_iter().chain(nothing.map(|name| (name, "0".to_owned())));
    let table = pairs.map(|(name, value)| (name.to_owned(), value)).collect();
    with_body(KVTable { table }.encode())
}
