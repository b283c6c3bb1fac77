//! Who is a member of which group, and who must be told when that changes.
//!
//! A pure state machine: the methods return the connections to notify, and the caller sends request 40 to them. Kept
//! from a real broker (`ConsumerManager`, `ConsumerGroupInfo`, `ProducerManager`):
//! - Members are connections, not client ids: two connections with one client id are two members.
//! - The last heartbeat of any member decides the group's consume type, model, start and its *set* of topics.
//! - "Changed" means a new connection, or a topic that appeared or vanished. A newer version of a subscription is
//!   taken silently; an older or equal one is ignored even if its expression differs.
//! - A connection that comes with another client id is replaced without a notice.
//! - Every change goes to all members, the newcomer included; the expiry scan tells nobody.
//! - Broadcasting groups are not notified.
//!
//! Left out: the switch that collects notices for 15 s, and the table of groups that only ever pulled.

use crate::protocol::body::{ConsumeFromWhere, ConsumeType, MessageModel};
use crate::protocol::{LanguageCode, SubscriptionData};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A member that sent no heartbeat for this long is removed.
const EXPIRY: Duration = Duration::from_secs(120);

/// Most groups of producers, whose names come unchecked.
const MOST_PRODUCER_GROUPS: usize = 65_536;

/// One connection of a group.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) client_id: Arc<str>,
    pub(crate) language: LanguageCode,
    pub(crate) version: i32,
    pub(crate) peer: SocketAddr,
    pub(crate) last_update: Instant,
}

/// What a heartbeat says about one consumer group.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) group: Arc<str>,
    pub(crate) consume_type: ConsumeType,
    pub(crate) message_model: MessageModel,
    pub(crate) consume_from_where: ConsumeFromWhere,
    /// All topics of the group, or `None` in a heartbeat that leaves them out because they are known.
    pub(crate) subscriptions: Option<Vec<SubscriptionData>>,
    /// The group's own switch for notices.
    pub(crate) notify: bool,
}

/// A consumer group with at least one member.
#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    pub(crate) consume_type: ConsumeType,
    pub(crate) message_model: MessageModel,
    pub(crate) consume_from_where: ConsumeFromWhere,
    subscriptions: BTreeMap<String, SubscriptionData>,
    members: BTreeMap<u64, Member>,
}

impl ConsumerGroup {
    pub(crate) fn subscription(&self, topic: &str) -> Option<&SubscriptionData> {
        self.subscriptions.get(topic)
    }

    pub(crate) fn subscriptions(&self) -> &BTreeMap<String, SubscriptionData> {
        &self.subscriptions
    }

    /// Members by connection, in the order in which they connected.
    pub(crate) fn members(&self) -> &BTreeMap<u64, Member> {
        &self.members
    }

    /// The connection of a client id; of two the older one.
    pub(crate) fn connection_of(&self, client_id: &str) -> Option<(u64, &Member)> {
        self.members.iter().find(|(_, member)| &*member.client_id == client_id).map(|(id, member)| (*id, member))
    }

    fn is_broadcasting(&self) -> bool {
        self.message_model == MessageModel::Broadcasting
    }

    fn everybody(&self) -> Vec<u64> {
        self.members.keys().copied().collect()
    }

    /// Makes the group's topics those of the newest heartbeat; `true` if one appeared or vanished.
    fn adopt(&mut self, incoming: Vec<SubscriptionData>) -> bool {
        let mut changed = false;
        let topics: BTreeSet<String> = incoming.iter().map(|subscription| subscription.topic.clone()).collect();
        for subscription in incoming {
            match self.subscriptions.get_mut(&subscription.topic) {
                None => {
                    changed = true;
                    self.subscriptions.insert(subscription.topic.clone(), subscription);
                }
                Some(known) if subscription.sub_version > known.sub_version => *known = subscription,
                Some(_) => {}
            }
        }
        let before = self.subscriptions.len();
        self.subscriptions.retain(|topic, _| topics.contains(topic));
        changed || self.subscriptions.len() != before
    }
}

/// The consumer groups on one broker.
#[derive(Debug, Default)]
pub(crate) struct ConsumerGroups {
    groups: HashMap<Arc<str>, ConsumerGroup>,
    by_connection: HashMap<u64, BTreeSet<Arc<str>>>,
}

/// A group and the connections of it that must hear of a change.
pub(crate) type Notice = (Arc<str>, Vec<u64>);

impl ConsumerGroups {
    pub(crate) fn get(&self, group: &str) -> Option<&ConsumerGroup> {
        self.groups.get(group)
    }

    /// Groups that subscribe to the topic now, in order.
    pub(crate) fn subscribers_of(&self, topic: &str) -> Vec<Arc<str>> {
        let subscribes = |group: &ConsumerGroup| group.subscriptions.contains_key(topic);
        let mut groups: Vec<_> =
            self.groups.iter().filter(|(_, group)| subscribes(group)).map(|(name, _)| name.clone()).collect();
        groups.sort_unstable();
        groups
    }

    /// Takes in a heartbeat.
    pub(crate) fn register(&mut self, connection: u64, member: Member, what: Registration) -> Option<Notice> {
        let group = self.groups.entry(what.group.clone()).or_insert_with(|| ConsumerGroup {
            consume_type: what.consume_type,
            message_model: what.message_model,
            consume_from_where: what.consume_from_where,
            subscriptions: BTreeMap::new(),
            members: BTreeMap::new(),
        });
        group.consume_type = what.consume_type;
        group.message_model = what.message_model;
        group.consume_from_where = what.consume_from_where;
        if let Some(known) = group.members.get(&connection)
            && known.client_id != member.client_id
        {
            log::error!(
                "group {}: {} changed its client id from {} to {} on one connection",
                what.group,
                member.peer,
                known.client_id,
                member.client_id
            );
        }
        let joined = group.members.insert(connection, member).is_none();
        let resubscribed = what.subscriptions.is_some_and(|incoming| group.adopt(incoming));
        let told = ((joined || resubscribed) && what.notify && !group.is_broadcasting()).then(|| group.everybody());
        self.by_connection.entry(connection).or_default().insert(what.group.clone());
        told.map(|connections| (what.group, connections))
    }

    /// Takes a connection out of a group because its client said so. The others are told even if it was no member.
    pub(crate) fn unregister(&mut self, group: &str, connection: u64, notify: bool) -> Option<Notice> {
        let (name, _) = self.groups.get_key_value(group)?;
        let name = name.clone();
        self.leave(connection, &name);
        if let Some(groups) = self.by_connection.get_mut(&connection) {
            groups.remove(group);
            if groups.is_empty() {
                self.by_connection.remove(&connection);
            }
        }
        self.rest_of(name).filter(|_| notify)
    }

    /// Takes a closed connection out of all its groups. The groups' own switches for notices do not count here.
    pub(crate) fn close(&mut self, connection: u64) -> Vec<Notice> {
        let groups = self.by_connection.remove(&connection).unwrap_or_default();
        groups
            .into_iter()
            .filter_map(|group| {
                self.leave(connection, &group);
                self.rest_of(group)
            })
            .collect()
    }

    /// Takes a client out of a group without telling anybody, on all its connections; returns how many there were.
    pub(crate) fn forget(&mut self, group: &str, client_id: &str) -> usize {
        let Some(found) = self.groups.get(group) else { return 0 };
        let is_meant = |member: &Member| &*member.client_id == client_id;
        let connections: Vec<u64> =
            found.members.iter().filter(|(_, member)| is_meant(member)).map(|(id, _)| *id).collect();
        for connection in &connections {
            self.leave(*connection, group);
            if let Some(groups) = self.by_connection.get_mut(connection) {
                groups.remove(group);
                if groups.is_empty() {
                    self.by_connection.remove(connection);
                }
            }
        }
        connections.len()
    }

    /// Removes members that were silent for too long, without telling anybody; returns the connections to close.
    pub(crate) fn expire(&mut self, now: Instant) -> BTreeSet<u64> {
        let mut silent = BTreeSet::new();
        self.groups.retain(|_, group| {
            group.members.retain(|connection, member| {
                let alive = is_alive(member, now);
                if !alive {
                    silent.insert(*connection);
                }
                alive
            });
            !group.members.is_empty()
        });
        for connection in &silent {
            if let Some(groups) = self.by_connection.get_mut(connection) {
                groups
                    .retain(|group| self.groups.get(group).is_some_and(|group| group.members.contains_key(connection)));
            }
        }
        self.by_connection.retain(|_, groups| !groups.is_empty());
        silent
    }

    /// When the next member may expire.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        next_expiry(self.groups.values().flat_map(|group| group.members.values()))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn leave(&mut self, connection: u64, group: &str) {
        if let Some(found) = self.groups.get_mut(group) {
            found.members.remove(&connection);
            if found.members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    fn rest_of(&self, group: Arc<str>) -> Option<Notice> {
        let found = self.groups.get(&group).filter(|found| !found.is_broadcasting())?;
        let rest = found.everybody();
        Some((group, rest))
    }
}

/// The producer groups on one broker. They are never notified; their connections serve transaction checks.
#[derive(Debug, Default)]
pub(crate) struct ProducerGroups {
    groups: BTreeMap<Arc<str>, BTreeMap<u64, Member>>,
}

impl ProducerGroups {
    pub(crate) fn register(&mut self, group: &str, connection: u64, member: Member) {
        match self.groups.get_mut(group) {
            Some(members) => {
                members.insert(connection, member);
            }
            None => {
                if self.groups.len() >= MOST_PRODUCER_GROUPS {
                    // Nobody needs so many; what such a producer misses are checks of its transactions.
                    log::warn!("embedded broker: no room for one more producer group, {group} is not registered");
                    return;
                }
                self.groups.insert(group.into(), BTreeMap::from([(connection, member)]));
            }
        }
    }

    pub(crate) fn unregister(&mut self, group: &str, connection: u64) {
        if let Some(members) = self.groups.get_mut(group) {
            members.remove(&connection);
            if members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    pub(crate) fn close(&mut self, connection: u64) {
        self.groups.retain(|_, members| {
            members.remove(&connection);
            !members.is_empty()
        });
    }

    pub(crate) fn get(&self, group: &str) -> Option<&BTreeMap<u64, Member>> {
        self.groups.get(group)
    }

    pub(crate) fn expire(&mut self, now: Instant) -> BTreeSet<u64> {
        let mut silent = BTreeSet::new();
        self.groups.retain(|_, members| {
            members.retain(|connection, member| {
                let alive = is_alive(member, now);
                if !alive {
                    silent.insert(*connection);
                }
                alive
            });
            !members.is_empty()
        });
        silent
    }

    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        next_expiry(self.groups.values().flat_map(BTreeMap::values))
    }

    pub(crate) fn clear(&mut self) {
        self.groups.clear();
    }
}

fn is_alive(member: &Member, now: Instant) -> bool {
    now.saturating_duration_since(member.last_update) <= EXPIRY
}

fn next_expiry<'a>(members: impl Iterator<Item = &'a Member>) -> Option<Instant> {
    // One millisecond later, because a member is alive at its last moment.
    members.map(|member| member.last_update).min().map(|oldest| oldest + EXPIRY + Duration::from_millis(1))
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
