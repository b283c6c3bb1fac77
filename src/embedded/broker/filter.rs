//! Which messages a subscription lets through, and the compiled conditions of groups.
//!
//! Kept from a real broker (`ExpressionMessageFilter`, `ConsumerFilterManager`): tags are compared by their hash alone;
//! a group's condition for a topic comes from heartbeats, only a newer one replaces it, one that does not compile is
//! passed over (so pulls get 27, or 28 when an older one is known), and it outlives the group's members and a restart.
//! Left out: the bit maps that let a queue's index skip messages, and the file. Bounded: number and total length of
//! the conditions; when they are full, those of groups without members go.

use super::sql92::Sql92;
use crate::message::properties;
use crate::message::store_codec::stored_properties;
use crate::protocol::SubscriptionData;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Most bytes of all conditions of groups.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// A condition takes about so many times the bytes of its text.
const TREE_FACTOR: usize = 24;
/// Most compiled conditions that are kept for those who send theirs with each pull.
const MOST_CACHED: usize = 100;
/// Work that one read may spend on conditions, in comparisons; a read that ends early goes on with the next pull.
pub(crate) const READ_BUDGET: usize = 1_000_000;

/// The part of a subscription that the broker applies.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
    All,
    /// Hashes of tags. Messages without a tag have 0, which is compared like any other.
    Hashes(Vec<i32>),
    Sql(Arc<Sql92>),
}

impl Filter {
    /// What the index of a queue decides: the tags.
    pub(crate) fn passes_code(&self, tags_code: i64) -> bool {
        match self {
            Self::Hashes(hashes) => hashes.contains(&(tags_code as i32)),
            Self::All | Self::Sql(_) => true,
        }
    }

    /// Bytes that are this filter's own.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Hashes(hashes) => size_of_val(&**hashes),
            Self::All | Self::Sql(_) => 0,
        }
    }

    /// What [`passes_code`](Self::passes_code) takes, in the unit of [`READ_BUDGET`].
    pub(crate) fn code_cost(&self) -> usize {
        match self {
            Self::Hashes(hashes) => 1 + hashes.len() / 8,
            Self::All | Self::Sql(_) => 1,
        }
    }

    /// What the message itself decides: the condition. Adds the work that it took to `spent`.
    pub(crate) fn passes_record(&self, record: &[u8], spent: &mut usize) -> bool {
        let Self::Sql(sql) = self else { return true };
        let text = stored_properties(record).unwrap_or_default();
        *spent += sql.cost(text.len());
        sql.matches(properties::parse(text))
    }
}

/// Whether an expression of this type lists tags.
pub(crate) fn is_tag(expression_type: &str) -> bool {
    expression_type.is_empty() || expression_type == SubscriptionData::TAG
}

#[derive(Debug)]
struct GroupFilter {
    version: i64,
    bytes: usize,
    sql: Arc<Sql92>,
}

/// What a pull learns about its group's condition.
#[derive(Debug)]
pub(crate) enum Found {
    None,
    Older,
    Current(Arc<Sql92>),
}

/// The conditions of all groups, and those compiled lately.
#[derive(Debug, Default)]
pub(crate) struct FilterTable {
    groups: BTreeMap<Arc<str>, BTreeMap<String, GroupFilter>>,
    bytes: usize,
    cache: HashMap<String, Arc<Sql92>>,
}

impl FilterTable {
    /// Takes the conditions of a heartbeat over; `is_alive` tells whether a group has members.
    pub(crate) fn register(
        &mut self,
        group: &Arc<str>,
        subscriptions: &[SubscriptionData],
        is_alive: impl Fn(&str) -> bool,
    ) {
        for subscription in subscriptions.iter().filter(|subscription| !is_tag(&subscription.expression_type)) {
            let known = self.groups.get(group).and_then(|topics| topics.get(&subscription.topic));
            if subscription.sub_string.is_empty()
                || known.is_some_and(|known| known.version >= subscription.sub_version)
            {
                continue;
            }
            match self.compile(&subscription.expression_type, &subscription.sub_string) {
                Ok(sql) => self.put(group, subscription, sql, &is_alive),
                Err(error) => {
                    log::warn!("condition of group {group} for topic {} does not compile: {error}", subscription.topic);
                }
            }
        }
    }

    /// The condition of a group for a topic, as of a version.
    pub(crate) fn get(&self, group: &str, topic: &str, version: i64) -> Found {
        match self.groups.get(group).and_then(|topics| topics.get(topic)) {
            None => Found::None,
            Some(known) if known.version < version => Found::Older,
            Some(known) => Found::Current(known.sql.clone()),
        }
    }

    /// Compiles an expression; the error is a text for people.
    pub(crate) fn compile(&mut self, expression_type: &str, expression: &str) -> Result<Arc<Sql92>, String> {
        if expression_type != SubscriptionData::SQL92 {
            return Err(format!("there is no filter of type '{expression_type:.20}'"));
        }
        if let Some(known) = self.cache.get(expression) {
            return Ok(known.clone());
        }
        let sql = Arc::new(Sql92::compile(expression)?);
        if self.cache.len() >= MOST_CACHED {
            self.cache.clear();
        }
        self.cache.insert(expression.to_owned(), sql.clone());
        Ok(sql)
    }

    fn put(
        &mut self,
        group: &Arc<str>,
        subscription: &SubscriptionData,
        sql: Arc<Sql92>,
        is_alive: impl Fn(&str) -> bool,
    ) {
        // The names count as well, and some memory that each entry takes.
        let bytes = subscription.sub_string.len() * TREE_FACTOR + subscription.topic.len() + group.len() + 256;
        if self.bytes + bytes > MOST_BYTES {
            self.groups.retain(|name, _| name == group || is_alive(name));
            self.bytes = self.groups.values().flat_map(BTreeMap::values).map(|filter| filter.bytes).sum();
        }
        if self.bytes + bytes > MOST_BYTES {
            log::error!("no room for the condition of group {group} for topic {}", subscription.topic);
            return;
        }
        let filter = GroupFilter { version: subscription.sub_version, bytes, sql };
        let old = self.groups.entry(group.clone()).or_default().insert(subscription.topic.clone(), filter);
        self.bytes = self.bytes + bytes - old.map_or(0, |old| old.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(topic: &str, condition: &str, sub_version: i64) -> SubscriptionData {
        SubscriptionData {
            expression_type: "SQL92".into(),
            sub_string: condition.into(),
            topic: topic.into(),
            sub_version,
            ..SubscriptionData::default()
        }
    }

    #[test]
    fn a_newer_condition_that_compiles_replaces_an_older_one() {
        let mut table = FilterTable::default();
        let group: Arc<str> = "G".into();
        let register = |table: &mut FilterTable, condition: &str, version| {
            table.register(&group, &[sub("T", condition, version)], |_| true);
        };
        register(&mut table, "a >", 1);
        assert!(matches!(table.get("G", "T", 0), Found::None));
        register(&mut table, "a > 1", 5);
        register(&mut table, "a > 2", 4);
        assert!(matches!(table.get("G", "T", 5), Found::Current(_)));
        register(&mut table, "a >", 6);
        assert!(matches!(table.get("G", "T", 6), Found::Older));
        assert!(matches!(table.get("G", "U", 0), Found::None));
    }

    #[test]
    fn room_is_made_by_groups_that_are_gone() {
        let mut table = FilterTable::default();
        let long = format!("a = 1{}", " or a = 1".repeat(800));
        for number in 0..5000 {
            let group: Arc<str> = format!("G{number}").into();
            table.register(&group, &[sub("T", &long, 1)], |name| name == "G0");
        }
        assert!(table.bytes <= MOST_BYTES && table.cache.len() <= MOST_CACHED);
        assert!(matches!(table.get("G0", "T", 1), Found::Current(_)));
        assert!(matches!(table.get("G4999", "T", 1), Found::Current(_)));
        assert!(matches!(table.get("G1", "T", 1), Found::None));
    }
}
