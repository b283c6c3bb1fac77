//! What a member subscribes to, and how that changes while it runs.

use super::Member;
use crate::consumer::selector::{self, MessageSelector};
use crate::error::Result;
use crate::message::topic as topic_names;
use crate::protocol::SubscriptionData;
use crate::sync::{Rank, RwLock};
use crate::time::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Table = BTreeMap<Arc<str>, Arc<SubscriptionData>>;

pub(crate) struct Subscriptions {
    state: RwLock<State>,
}

struct State {
    table: Table,
    /// Brokers take over only what has a higher version, also when the clock was set back (field report 11).
    last_version: i64,
}

impl Subscriptions {
    pub(crate) fn new<'a>(given: impl IntoIterator<Item = &'a (String, MessageSelector)>) -> Result<Self> {
        let last_version = Clock::system().wall_millis();
        let mut table = Table::new();
        for (topic, selector) in given {
            table.insert(Arc::from(topic.as_str()), Arc::new(selector.subscription(topic, last_version)?));
        }
        Ok(Self { state: RwLock::new(Rank::Leaf, State { table, last_version }) })
    }

    pub(crate) fn get(&self, topic: &str) -> Option<Arc<SubscriptionData>> {
        self.state.read().table.get(topic).cloned()
    }

    pub(crate) fn topics(&self) -> Vec<Arc<str>> {
        self.state.read().table.keys().cloned().collect()
    }

    pub(crate) fn all(&self) -> Table {
        self.state.read().table.clone()
    }

    /// As heartbeats and tools have them.
    pub(crate) fn on_the_wire(&self) -> Vec<SubscriptionData> {
        self.state.read().table.values().map(|data| (**data).clone()).collect()
    }

    /// The topic's name, shared when it is subscribed.
    pub(crate) fn shared_name(&self, topic: &str) -> Arc<str> {
        let known = self.state.read().table.get_key_value(topic).map(|(known, _)| known.clone());
        known.unwrap_or_else(|| Arc::from(topic))
    }

    /// Puts a subscription in place of the topic's former one, with a version above all before; `false` when it is the
    /// same, whose version must stay.
    fn put(&self, mut data: SubscriptionData, now: i64) -> bool {
        let mut state = self.state.write();
        if state.table.get(&*data.topic).is_some_and(|known| is_same(known, &data)) {
            return false;
        }
        state.last_version = now.max(state.last_version.saturating_add(1));
        data.sub_version = state.last_version;
        state.table.insert(Arc::from(&*data.topic), Arc::new(data));
        true
    }

    /// Puts these in place of all.
    pub(crate) fn replace(&self, table: Table) {
        self.state.write().table = table;
    }

    fn remove(&self, topic: &str) -> bool {
        self.state.write().table.remove(topic).is_some()
    }
}

fn is_same(a: &SubscriptionData, b: &SubscriptionData) -> bool {
    a.expression_type == b.expression_type && a.sub_string == b.sub_string
}

impl Member {
    /// Takes a subscription into the table, after the brokers were asked about its filter. `false`: it is there already.
    pub(crate) fn add_subscription(&self, topic: &str, selector: &MessageSelector) -> Result<bool> {
        let data = selector.subscription(topic, 0)?;
        self.check_filters([&data])?;
        Ok(self.subscriptions.put(data, Clock::system().wall_millis()))
    }

    /// Subscribes while the consumer runs.
    pub(crate) fn subscribe(&self, topic: &str, selector: &MessageSelector) -> Result<()> {
        self.check_running()?;
        topic_names::check_topic(topic)?;
        if self.add_subscription(topic, selector)? {
            log::info!("group '{}' subscribes to '{topic}' with {selector}", self.group);
            self.introduce(&[Arc::from(topic)]);
            self.check_group_soon();
        }
        Ok(())
    }

    /// The next round, which follows at once, gives up the queues. `false`: there was no such subscription.
    pub(crate) fn unsubscribe(&self, topic: &str) -> bool {
        let was_there = self.subscriptions.remove(topic);
        if was_there {
            log::info!("group '{}' unsubscribes from '{topic}'", self.group);
            self.instance.heartbeat_soon();
            self.instance.rebalance_soon();
            self.check_group_soon();
        }
        was_there
    }

    /// Asks the brokers whether they take these filters.
    pub(crate) fn check_filters<'a>(&self, filters: impl IntoIterator<Item = &'a SubscriptionData>) -> Result<()> {
        selector::check(&self.instance, &self.group, self.request_timeout(), filters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(topic: &str, tags: &str) -> SubscriptionData {
        SubscriptionData::tag_expression(topic, tags, 0).unwrap()
    }

    #[test]
    fn versions_grow_with_each_change_and_with_nothing_else() {
        let subscriptions = Subscriptions::new(&[("a".to_owned(), MessageSelector::all())]).unwrap();
        let version = |topic: &str| subscriptions.get(topic).unwrap().sub_version;
        let first = version("a");
        assert!(!subscriptions.put(of("a", "*"), first + 10), "the same again");
        assert_eq!(version("a"), first);
        // The clock was set back.
        assert!(subscriptions.put(of("a", "x"), first - 3_600_000));
        assert_eq!(version("a"), first + 1);
        assert!(subscriptions.put(of("b", "*"), first - 3_600_000));
        assert_eq!(version("b"), first + 2);
        assert!(subscriptions.remove("a") && !subscriptions.remove("a"));
        assert!(subscriptions.put(of("a", "x"), first + 100));
        assert_eq!(version("a"), first + 100);
    }
}
