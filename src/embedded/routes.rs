//! What the name server knows: brokers and, per topic, the queues on each of them.
//!
//! Kept from a real name server (`RouteInfoManager`): a topic has a route while a broker that holds it is there; a
//! topic deleted on its broker stays routable until it is deleted here too, or until everything is registered anew;
//! a master that goes takes its address with it at once. Left out: expiry of brokers (these are in the same process
//! and say when they go), slaves, zones, topics of real brokers, static topics. Stronger: a broker's change is visible
//! before the broker answers the request that made it.

use crate::embedded::broker::Topic;
use crate::sync::{Mutex, Rank};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The queues of a topic on one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicQueues {
    pub(crate) read_queues: i32,
    pub(crate) write_queues: i32,
    pub(crate) perm: i32,
    pub(crate) sys_flag: i32,
}

/// A broker as the name server sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredBroker {
    pub(crate) name: Arc<str>,
    pub(crate) cluster: Arc<str>,
    /// Address of the master.
    pub(crate) address: Arc<str>,
}

#[derive(Debug, Default)]
struct Tables {
    brokers: BTreeMap<Arc<str>, RegisteredBroker>,
    topics: BTreeMap<Arc<str>, BTreeMap<Arc<str>, TopicQueues>>,
}

/// The tables, shared by the name server (which reads) and the brokers (which register).
#[derive(Debug)]
pub(crate) struct Routes {
    // Brokers register while their own state is locked, so this lock comes after it.
    tables: Mutex<Tables>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self { tables: Mutex::new(Rank::Leaf, Tables::default()) }
    }

    /// A broker is there, with these topics. Topics of it that are not among them stay, as upstream.
    pub(crate) fn register<'a>(&self, broker: RegisteredBroker, topics: impl Iterator<Item = &'a Topic>) {
        let mut tables = self.tables.lock();
        let name = broker.name.clone();
        tables.brokers.insert(name.clone(), broker);
        for topic in topics {
            tables.put(&name, topic);
        }
    }

    /// A topic of a registered broker is new or has changed.
    pub(crate) fn update(&self, broker: &Arc<str>, topic: &Topic) {
        let mut tables = self.tables.lock();
        if tables.brokers.contains_key(broker) {
            tables.put(broker, topic);
        }
    }

    /// A broker is gone, and its queues with it.
    pub(crate) fn unregister(&self, broker: &str) {
        let mut tables = self.tables.lock();
        tables.brokers.remove(broker);
        tables.topics.retain(|_, brokers| {
            brokers.remove(broker);
            !brokers.is_empty()
        });
    }

    /// The brokers of a topic with their queues, or `None` when no registered broker has it.
    pub(crate) fn of_topic(&self, topic: &str) -> Option<Vec<(RegisteredBroker, TopicQueues)>> {
        let tables = self.tables.lock();
        let brokers = tables.topics.get(topic)?;
        let found: Vec<_> = brokers
            .iter()
            .filter_map(|(name, queues)| Some((tables.brokers.get(name)?.clone(), queues.clone())))
            .collect();
        (!found.is_empty()).then_some(found)
    }

    pub(crate) fn brokers(&self) -> Vec<RegisteredBroker> {
        self.tables.lock().brokers.values().cloned().collect()
    }

    /// All topics, or those on brokers of one cluster.
    pub(crate) fn topics(&self, cluster: Option<&str>) -> Vec<Arc<str>> {
        let tables = self.tables.lock();
        let in_cluster: BTreeSet<&Arc<str>> = tables
            .brokers
            .values()
            .filter(|broker| cluster.is_none_or(|cluster| &*broker.cluster == cluster))
            .map(|broker| &broker.name)
            .collect();
        let wanted = |brokers: &BTreeMap<Arc<str>, TopicQueues>| brokers.keys().any(|name| in_cluster.contains(name));
        tables.topics.iter().filter(|(_, brokers)| wanted(brokers)).map(|(topic, _)| topic.clone()).collect()
    }

    pub(crate) fn delete_topic(&self, topic: &str) {
        self.tables.lock().topics.remove(topic);
    }

    /// Sets or clears the write permission of all topics of a broker; returns how many there are.
    pub(crate) fn set_writable(&self, broker: &str, writable: bool) -> usize {
        let mut tables = self.tables.lock();
        let mut count = 0;
        for queues in tables.topics.values_mut().filter_map(|brokers| brokers.get_mut(broker)) {
            // Upstream does not remember what it took: giving it back makes every topic readable and writable.
            queues.perm = if writable { 6 } else { queues.perm & !2 };
            count += 1;
        }
        count
    }

    /// Forgets everything, as a name server does that was restarted.
    pub(crate) fn clear(&self) {
        *self.tables.lock() = Tables::default();
    }
}

impl Tables {
    fn put(&mut self, broker: &Arc<str>, topic: &Topic) {
        let queues = TopicQueues {
            read_queues: topic.read_queues,
            write_queues: topic.write_queues,
            perm: topic.perm,
            sys_flag: topic.sys_flag,
        };
        self.topics.entry(topic.name.clone()).or_default().insert(broker.clone(), queues);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(name: &str, cluster: &str) -> RegisteredBroker {
        RegisteredBroker { name: name.into(), cluster: cluster.into(), address: format!("{name}:1").into() }
    }

    #[test]
    fn a_topic_has_a_route_while_one_of_its_brokers_is_there() {
        let routes = Routes::new();
        let topic = Topic::new("T", 4, 6);
        routes.register(broker("a", "C"), [&topic].into_iter());
        routes.register(broker("b", "D"), [&topic, &Topic::new("U", 1, 6)].into_iter());
        assert_eq!(routes.of_topic("T").unwrap().len(), 2);
        assert_eq!(routes.topics(None), ["T".into(), "U".into()]);
        assert_eq!(routes.topics(Some("C")), ["T".into()]);
        routes.unregister("b");
        assert_eq!(routes.of_topic("T").unwrap()[0].0, broker("a", "C"));
        assert_eq!(routes.of_topic("U"), None);
        routes.update(&"b".into(), &topic);
        assert_eq!(routes.of_topic("T").unwrap().len(), 1);
        routes.delete_topic("T");
        assert_eq!(routes.of_topic("T"), None);
    }

    #[test]
    fn write_permission_is_taken_and_given_back_for_all_topics_of_a_broker() {
        let routes = Routes::new();
        routes.register(broker("a", "C"), [&Topic::new("T", 4, 7), &Topic::new("U", 4, 4)].into_iter());
        assert_eq!(routes.set_writable("a", false), 2);
        assert_eq!(routes.of_topic("T").unwrap()[0].1.perm, 5);
        assert_eq!(routes.set_writable("a", true), 2);
        assert_eq!(routes.of_topic("U").unwrap()[0].1.perm, 6);
        assert_eq!(routes.set_writable("x", true), 0);
        routes.clear();
        assert!(routes.brokers().is_empty());
    }
}
