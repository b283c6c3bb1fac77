//! What the name server knows: brokers and, per topic, the queues on each of them.
//!
//! Kept from a real name server (`RouteInfoManager`): a topic has a route while a broker that holds it is there; a
//! topic deleted on its broker stays routable until it is deleted here too, or until everything is registered anew; an
//! address that goes takes itself away at once, and the queues when it was the last one of its broker; a first
//! registration with one topic is refused; topics are taken over when they are new or their version differs; brokers
//! that fall silent are forgotten, and so are those whose connection closes. Left out: zones, static topics, filter
//! servers. Different: brokers of this process never fall silent, and silence is noticed with the next request. Stronger:
//! a broker's change is visible before the broker answers the request that made it. Bounded, where upstream is not.

use crate::embedded::broker::Topic;
use crate::protocol::body::{BrokerData, DataVersion, QueueData, TopicConfig, TopicConfigSerializeWrapper};
use crate::protocol::header::RegisterBrokerRequestHeader;
use crate::sync::{Mutex, Rank};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After so long without a word a broker that named no time of its own is forgotten.
const SILENCE: Duration = Duration::from_secs(120);
/// Most addresses of brokers outside of this process, and most topics, counted on each broker.
const MOST_REMOTE: usize = 4096;
const MOST_QUEUES: usize = 1_000_000;
/// Longest name of a broker, cluster or topic, and longest address.
const LONGEST_NAME: usize = 255;

/// A broker outside of this process that registered.
#[derive(Debug)]
struct Remote {
    name: Arc<str>,
    last: Instant,
    silence: Duration,
    version: DataVersion,
    connection: u64,
    ha_address: String,
}

#[derive(Debug, Default)]
struct Tables {
    brokers: BTreeMap<Arc<str>, BrokerData>,
    topics: BTreeMap<Arc<str>, BTreeMap<Arc<str>, QueueData>>,
    /// By cluster and address.
    remote: HashMap<(Arc<str>, Arc<str>), Remote>,
    /// How many entries `topics` has in all.
    queues: usize,
}

/// What a broker learns when it registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) master: Option<Arc<str>>,
    pub(crate) ha_address: Option<String>,
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

    /// A broker of this process is there, with these topics. Topics of it that are not among them stay, as upstream.
    pub(crate) fn register<'a>(
        &self,
        name: &Arc<str>,
        cluster: &Arc<str>,
        id: i64,
        address: Arc<str>,
        topics: impl Iterator<Item = &'a Topic>,
    ) {
        let mut tables = self.tables.lock();
        tables.broker(name, cluster).broker_addrs.insert(id, address);
        for topic in topics {
            tables.put(name, queues_of(name, topic));
        }
    }

    /// A topic of a registered broker is new or has changed.
    pub(crate) fn update(&self, broker: &Arc<str>, topic: &Topic) {
        let mut tables = self.tables.lock();
        if tables.brokers.contains_key(broker) {
            tables.put(broker, queues_of(broker, topic));
        }
    }

    /// An address of a broker of this process is gone.
    pub(crate) fn unregister(&self, broker: &str, id: i64) {
        let mut tables = self.tables.lock();
        if let Some(address) = tables.brokers.get(broker).and_then(|broker| broker.broker_addrs.get(&id)).cloned() {
            tables.remove_addresses(&[(broker.into(), address)]);
        }
    }

    /// A broker outside of this process registers; the reason when it is refused.
    pub(crate) fn register_remote(
        &self,
        header: &RegisterBrokerRequestHeader<'_>,
        topics: TopicConfigSerializeWrapper,
        connection: u64,
        now: Instant,
    ) -> Result<Registered, String> {
        let mut tables = self.tables.lock();
        let tables = &mut *tables;
        let (name, cluster): (Arc<str>, Arc<str>) = (header.broker_name.into(), header.cluster_name.into());
        let (id, address): (i64, Arc<str>) = (header.broker_id, header.broker_addr.into());
        let key = (cluster.clone(), address.clone());
        let longest = topics.topic_config_table.values().map(|topic| topic.topic_name.len()).max().unwrap_or(0);
        if [name.len(), cluster.len(), address.len(), header.ha_server_addr.len(), longest].into_iter().any(is_too_long)
        {
            return Err(format!("a name or an address has more than {LONGEST_NAME} bytes"));
        }
        match tables.remote.get(&key).map(|known| known.name.clone()) {
            None if tables.remote.len() >= MOST_REMOTE => return Err(format!("more than {MOST_REMOTE} brokers")),
            // It has another name now; nobody else would ever say that the old one is gone.
            Some(old) if old != name => tables.remove_addresses(&[(old, address.clone())]),
            _ => {}
        }
        let known = tables.brokers.get(&name).map(|broker| broker.broker_addrs.clone()).unwrap_or_default();
        let old = known.get(&id).filter(|old| **old != address);
        if let Some(old) = old.and_then(|old| tables.remote.get(&(cluster.clone(), old.clone())))
            && old.version.state_version > topics.data_version.state_version
        {
            tables.remote.remove(&key);
            return Ok(Registered::default());
        }
        let is_first = !known.contains_key(&id);
        if is_first && topics.topic_config_table.len() == 1 {
            return Err("a first registration cannot have a single topic".into());
        }
        let broker = tables.broker(&name, &cluster);
        broker.enable_acting_master = header.enable_acting_master == Some(true);
        broker.broker_addrs.retain(|other, known| *other == id || *known != address);
        broker.broker_addrs.insert(id, address.clone());
        let acting = broker.enable_acting_master;
        let lowest = broker.broker_addrs.keys().next() == Some(&id);
        let master = broker.broker_addrs.get(&0).filter(|_| id != 0).cloned();

        // The lowest slave speaks for a master that is away.
        if id == 0 || (header.enable_acting_master.is_some() && lowest) {
            let is_new = tables.remote.get(&key).is_none_or(|known| known.version != topics.data_version);
            for topic in topics.topic_config_table.into_values() {
                let has = tables.topics.get(&topic.topic_name).is_some_and(|brokers| brokers.contains_key(&name));
                if is_first || is_new || !has {
                    let mut queues = queues_of_config(&name, &topic);
                    if id != 0 && acting {
                        queues.1.perm &= !2;
                    }
                    tables.put(&name, queues);
                }
            }
        }
        let silence = header.heartbeat_timeout_millis.and_then(|millis| u64::try_from(millis).ok());
        tables.remote.insert(
            key,
            Remote {
                name,
                last: now,
                silence: silence.map_or(SILENCE, Duration::from_millis).min(Duration::from_secs(86_400)),
                version: topics.data_version,
                connection,
                ha_address: header.ha_server_addr.into(),
            },
        );
        let ha_address = master.as_ref().and_then(|master| tables.remote.get(&(cluster, master.clone())));
        Ok(Registered { ha_address: ha_address.map(|remote| remote.ha_address.clone()), master })
    }

    /// A broker outside of this process says that it goes.
    pub(crate) fn unregister_remote(&self, cluster: &str, name: &str, address: &str) {
        let mut tables = self.tables.lock();
        tables.remote.remove(&(cluster.into(), address.into()));
        tables.remove_addresses(&[(name.into(), address.into())]);
    }

    /// The version of the topics that a broker has registered; it counts as a word of the broker.
    pub(crate) fn touch_remote(&self, cluster: &str, address: &str, now: Instant) -> Option<DataVersion> {
        let mut tables = self.tables.lock();
        let remote = tables.remote.get_mut(&(cluster.into(), address.into()))?;
        remote.last = now;
        Some(remote.version.clone())
    }

    /// Forgets brokers that fell silent.
    pub(crate) fn expire(&self, now: Instant) {
        self.forget(|remote| now.saturating_duration_since(remote.last) > remote.silence, "fell silent");
    }

    /// Forgets the brokers that registered on a connection.
    pub(crate) fn closed(&self, connection: u64) {
        self.forget(|remote| remote.connection == connection, "hung up");
    }

    fn forget(&self, gone: impl Fn(&Remote) -> bool, why: &str) {
        let mut tables = self.tables.lock();
        let keys: Vec<_> =
            tables.remote.iter().filter(|(_, remote)| gone(remote)).map(|(key, _)| key.clone()).collect();
        let mut addresses = Vec::new();
        for key in keys {
            if let Some(remote) = tables.remote.remove(&key) {
                log::info!("embedded name server: broker {} at {} {why}", remote.name, key.1);
                addresses.push((remote.name, key.1));
            }
        }
        tables.remove_addresses(&addresses);
    }

    /// Adds queues of known brokers to a topic; nothing when one of the brokers is not known.
    pub(crate) fn add_queues(&self, topic: &str, queues: Vec<QueueData>) {
        let mut tables = self.tables.lock();
        if queues.iter().all(|queues| tables.brokers.contains_key(&queues.broker_name)) {
            for queues in queues {
                let name = queues.broker_name.clone();
                tables.put(&name, (topic.into(), queues));
            }
        }
    }

    /// The brokers of a topic with their queues, or `None` when no registered broker has it.
    pub(crate) fn of_topic(&self, topic: &str) -> Option<Vec<(BrokerData, QueueData)>> {
        let tables = self.tables.lock();
        let brokers = tables.topics.get(topic)?;
        let found: Vec<_> = brokers
            .iter()
            .filter_map(|(name, queues)| Some((tables.brokers.get(name)?.clone(), queues.clone())))
            .collect();
        (!found.is_empty()).then_some(found)
    }

    pub(crate) fn brokers(&self) -> Vec<BrokerData> {
        self.tables.lock().brokers.values().cloned().collect()
    }

    pub(crate) fn broker(&self, name: &str) -> Option<BrokerData> {
        self.tables.lock().brokers.get(name).cloned()
    }

    /// All topics, or those on brokers of one cluster.
    pub(crate) fn topics(&self, cluster: Option<&str>) -> Vec<Arc<str>> {
        let tables = self.tables.lock();
        let in_cluster: BTreeSet<&Arc<str>> = tables
            .brokers
            .values()
            .filter(|broker| cluster.is_none_or(|cluster| &*broker.cluster == cluster))
            .map(|broker| &broker.broker_name)
            .collect();
        let wanted = |brokers: &BTreeMap<Arc<str>, QueueData>| brokers.keys().any(|name| in_cluster.contains(name));
        tables.topics.iter().filter(|(_, brokers)| wanted(brokers)).map(|(topic, _)| topic.clone()).collect()
    }

    /// Deletes a topic, everywhere or on the brokers of one cluster.
    pub(crate) fn delete_topic(&self, topic: &str, cluster: Option<&str>) {
        let mut tables = self.tables.lock();
        let tables = &mut *tables;
        match (cluster, tables.topics.get_mut(topic)) {
            (Some(cluster), Some(queues)) => {
                let in_cluster = |name: &Arc<str>| tables.brokers.get(name).is_some_and(|b| &*b.cluster == cluster);
                let before = queues.len();
                queues.retain(|name, _| !in_cluster(name));
                tables.queues -= before - queues.len();
                if queues.is_empty() {
                    tables.topics.remove(topic);
                }
            }
            _ => tables.queues -= tables.topics.remove(topic).map_or(0, |queues| queues.len()),
        }
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
    fn broker(&mut self, name: &Arc<str>, cluster: &Arc<str>) -> &mut BrokerData {
        self.brokers.entry(name.clone()).or_insert_with(|| BrokerData {
            broker_name: name.clone(),
            cluster: cluster.clone(),
            ..BrokerData::default()
        })
    }

    fn put(&mut self, broker: &Arc<str>, (topic, queues): (Arc<str>, QueueData)) {
        let is_known = self.topics.get(&topic).is_some_and(|brokers| brokers.contains_key(broker));
        if !is_known && (self.queues >= MOST_QUEUES || is_too_long(topic.len())) {
            log::error!("embedded name server: no room for topic {topic:.127} of broker {broker}");
            return;
        }
        self.queues += usize::from(!is_known);
        self.topics.entry(topic).or_default().insert(broker.clone(), queues);
    }

    /// Takes addresses of brokers away, and brokers without any. One walk over the topics, however many go.
    fn remove_addresses(&mut self, gone: &[(Arc<str>, Arc<str>)]) {
        let (mut without, mut read_only) = (BTreeSet::new(), BTreeSet::new());
        for (name, address) in gone {
            let Some(broker) = self.brokers.get_mut(name) else { continue };
            broker.broker_addrs.retain(|_, known| known != address);
            if broker.broker_addrs.is_empty() {
                self.brokers.remove(name);
                without.insert(name);
            } else if broker.enable_acting_master && !broker.broker_addrs.contains_key(&0) {
                read_only.insert(name);
            }
        }
        if without.is_empty() && read_only.is_empty() {
            return;
        }
        let queues = &mut self.queues;
        self.topics.retain(|_, brokers| {
            let before = brokers.len();
            brokers.retain(|name, _| !without.contains(name));
            *queues -= before - brokers.len();
            brokers.iter_mut().filter(|(name, _)| read_only.contains(name)).for_each(|(_, queues)| queues.perm &= !2);
            !brokers.is_empty()
        });
    }
}

fn is_too_long(length: usize) -> bool {
    length > LONGEST_NAME
}

fn queues_of(broker: &Arc<str>, topic: &Topic) -> (Arc<str>, QueueData) {
    let queues = QueueData {
        broker_name: broker.clone(),
        perm: topic.perm,
        read_queue_nums: topic.read_queues,
        topic_sys_flag: topic.sys_flag,
        write_queue_nums: topic.write_queues,
    };
    (topic.name.clone(), queues)
}

fn queues_of_config(broker: &Arc<str>, topic: &TopicConfig) -> (Arc<str>, QueueData) {
    let queues = QueueData {
        broker_name: broker.clone(),
        perm: topic.perm,
        read_queue_nums: topic.read_queue_nums,
        topic_sys_flag: topic.topic_sys_flag,
        write_queue_nums: topic.write_queue_nums,
    };
    (topic.topic_name.clone(), queues)
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
