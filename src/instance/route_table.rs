//! Routes by topic, and what is derived from them: queues to read, queues to write, addresses of brokers.
//!
//! The cached route is the one fact; the broker table is computed from all cached routes whenever one changes, so an
//! address that no route names any more is gone without a clean-up of its own. A topic that the name servers stop
//! knowing keeps its last route: a name server that has just restarted knows nothing for up to half a minute.

use crate::message::MessageQueue;
use crate::protocol::body::{MASTER_ID, TopicRouteData, perm};
use crate::sync::{Rank, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Queues of one broker and topic beyond this are a damaged route.
const MOST_QUEUES: i32 = 65_536;

/// One version of a topic's route. Both lists are in Java's order, whatever order the answer had.
#[derive(Debug)]
pub(crate) struct TopicRoute {
    pub(crate) readable: Arc<[MessageQueue]>,
    pub(crate) writable: Arc<[MessageQueue]>,
    data: TopicRouteData,
}

/// Broker name, to broker id, to address.
#[derive(Debug, Default)]
pub(crate) struct BrokerTable {
    brokers: BTreeMap<Arc<str>, BTreeMap<i64, Arc<str>>>,
}

/// Where to read a queue from.
#[derive(Debug, Clone)]
pub(crate) struct ReadAddress {
    pub(crate) address: Arc<str>,
    pub(crate) is_master: bool,
}

impl BrokerTable {
    /// The address of the master.
    pub(crate) fn master(&self, broker_name: &str) -> Option<&Arc<str>> {
        self.brokers.get(broker_name)?.get(&MASTER_ID)
    }

    /// The broker of this id, else the next one, else any: as `findBrokerAddressInSubscribe` chooses (02-consumer 3.4).
    pub(crate) fn to_read(&self, broker_name: &str, broker_id: i64) -> Option<ReadAddress> {
        let ids = self.brokers.get(broker_name)?;
        let (id, address) = ids
            .get_key_value(&broker_id)
            .or_else(|| (broker_id != MASTER_ID).then(|| ids.get_key_value(&broker_id.saturating_add(1))).flatten())
            .or_else(|| ids.first_key_value())?;
        Some(ReadAddress { address: address.clone(), is_master: *id == MASTER_ID })
    }

    /// Every address, or only those of masters.
    pub(crate) fn addresses(&self, masters_only: bool) -> BTreeSet<Arc<str>> {
        let ids = self.brokers.values().flatten();
        ids.filter(|(id, _)| !masters_only || **id == MASTER_ID).map(|(_, address)| address.clone()).collect()
    }

    pub(crate) fn contains(&self, address: &str) -> bool {
        self.brokers.values().any(|ids| ids.values().any(|held| &**held == address))
    }
}

pub(crate) struct RouteTable {
    tables: RwLock<Tables>,
}

struct Tables {
    /// Topics that the name servers said they do not know, and that we never had a route of.
    absent: BTreeSet<Arc<str>>,
    routes: HashMap<Arc<str>, Arc<TopicRoute>>,
    brokers: Arc<BrokerTable>,
}

impl RouteTable {
    pub(crate) fn new() -> Self {
        let tables = Tables { absent: BTreeSet::new(), routes: HashMap::new(), brokers: Arc::default() };
        Self { tables: RwLock::new(Rank::Route, tables) }
    }

    pub(crate) fn get(&self, topic: &str) -> Option<Arc<TopicRoute>> {
        self.tables.read().routes.get(topic).cloned()
    }

    pub(crate) fn brokers(&self) -> Arc<BrokerTable> {
        self.tables.read().brokers.clone()
    }

    /// Brokers that hold the topic: first those with a master, in the order of their names, the same for all members of a group.
    pub(crate) fn brokers_of(&self, topic: &str) -> Vec<Arc<str>> {
        let (route, brokers) = {
            let tables = self.tables.read();
            let Some(route) = tables.routes.get(topic) else { return Vec::new() };
            (route.clone(), tables.brokers.clone())
        };
        // The route's own order is that of the names.
        let names = route.data.broker_datas.iter().map(|broker| &broker.broker_name);
        let reads = names.filter_map(|name| brokers.to_read(name, MASTER_ID));
        let (masters, others): (Vec<_>, Vec<_>) = reads.partition(|read| read.is_master);
        masters.into_iter().chain(others).map(|read| read.address).collect()
    }

    /// Stores an answer of a name server; the route when it differs from the one known.
    pub(crate) fn update(&self, topic: &Arc<str>, mut data: TopicRouteData) -> Option<Arc<TopicRoute>> {
        // Servers answer in any order; equal routes must compare equal.
        data.queue_datas.sort_by(|a, b| a.broker_name.cmp(&b.broker_name));
        data.broker_datas.sort_by(|a, b| a.broker_name.cmp(&b.broker_name));
        let mut tables = self.tables.write();
        if tables.routes.get(topic).is_some_and(|known| known.data == data) {
            return None;
        }
        let route = Arc::new(TopicRoute::new(topic, data));
        tables.absent.remove(topic);
        tables.routes.insert(topic.clone(), route.clone());
        tables.brokers = Arc::new(derive_brokers(tables.routes.values()));
        Some(route)
    }

    /// The name servers do not know the topic. A route we have stays.
    pub(crate) fn note_absent(&self, topic: &Arc<str>) {
        let mut tables = self.tables.write();
        if !tables.routes.contains_key(topic) {
            tables.absent.insert(topic.clone());
        }
    }

    pub(crate) fn is_known_absent(&self, topic: &str) -> bool {
        self.tables.read().absent.contains(topic)
    }

    /// Forgets a topic that nobody on this instance uses any more.
    pub(crate) fn retain(&self, used: &BTreeSet<Arc<str>>) {
        let mut tables = self.tables.write();
        tables.absent.retain(|topic| used.contains(topic));
        let before = tables.routes.len();
        tables.routes.retain(|topic, _| used.contains(topic));
        if tables.routes.len() != before {
            tables.brokers = Arc::new(derive_brokers(tables.routes.values()));
        }
    }
}

impl TopicRoute {
    pub(crate) fn new(topic: &Arc<str>, data: TopicRouteData) -> Self {
        let mut readable = Vec::new();
        let mut writable = Vec::new();
        for queues in &data.queue_datas {
            // One name for all queues of a broker.
            let name: Arc<str> = queues.broker_name.clone();
            let of = |count: i32| {
                (0..count.clamp(0, MOST_QUEUES)).map(|id| MessageQueue::new(topic.clone(), name.clone(), id))
            };
            if perm::is_readable(queues.perm) {
                readable.extend(of(queues.read_queue_nums));
            }
            let has_master = data
                .broker_datas
                .iter()
                .any(|broker| broker.broker_name == queues.broker_name && broker.broker_addrs.contains_key(&MASTER_ID));
            if perm::is_writable(queues.perm) && has_master {
                writable.extend(of(queues.write_queue_nums));
            }
        }
        for list in [&mut readable, &mut writable] {
            list.sort();
            list.dedup();
        }
        Self { readable: readable.into(), writable: writable.into(), data }
    }
}

fn derive_brokers<'a>(routes: impl Iterator<Item = &'a Arc<TopicRoute>>) -> BrokerTable {
    let mut brokers: BTreeMap<Arc<str>, BTreeMap<i64, Arc<str>>> = BTreeMap::new();
    for broker in routes.flat_map(|route| &route.data.broker_datas) {
        let ids = brokers.entry(broker.broker_name.clone()).or_default();
        ids.extend(broker.broker_addrs.iter().map(|(id, address)| (*id, address.clone())));
    }
    BrokerTable { brokers }
}
