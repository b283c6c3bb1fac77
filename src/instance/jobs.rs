//! The periodic jobs of an instance: routes, heartbeats, offsets.

use super::ClientInstance;
use super::heartbeat::Heartbeats;
use super::name_servers::{NameServers, RouteAnswer};
use super::rebalance_service::RebalanceWaker;
use super::registry::Registry;
use super::route_table::RouteTable;
use super::scheduled::{Job, ScheduledExecutor};
use crate::api::Api;
use crate::sync::{Mutex, Rank};
use crate::time::Deadline;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// First look for topics that were unknown at start; doubles up to [`LONGEST_LOOK`].
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(200);
/// A subscribed topic that does not exist yet is looked for at least this often.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// A heartbeat that no broker accepted, or some did not, is sent again this soon.
const BEAT_AGAIN: Duration = Duration::from_secs(1);

pub(super) fn persist_job(executor: &Arc<ScheduledExecutor>, registry: &Arc<Registry>, period: Duration) -> Arc<Job> {
    let registry = registry.clone();
    Job::new(executor, move || {
        let deadline = Deadline::after(period.max(Duration::from_secs(3)));
        for consumer in registry.consumers() {
            consumer.persist_offsets(deadline);
        }
        period
    })
}

pub(super) fn heartbeat_job(
    executor: &Arc<ScheduledExecutor>,
    heartbeats: &Arc<Heartbeats>,
    api: &Arc<Api>,
    registry: &Arc<Registry>,
    routes: &Arc<RouteTable>,
    period: Duration,
) -> Arc<Job> {
    let (heartbeats, api, registry, routes) = (heartbeats.clone(), api.clone(), registry.clone(), routes.clone());
    Job::new(executor, move || {
        let beat = heartbeats.send(&api, &registry, &routes);
        if beat.accepted > 0 {
            for consumer in registry.consumers() {
                consumer.registered();
            }
        }
        if beat.failed > 0 { BEAT_AGAIN.min(period) } else { period }
    })
}

/// A new connection to a broker: the broker must hear of our groups at once, since it keeps them by connection, unless
/// the connection was made for a heartbeat. One that restarted with old offsets gets the progress again with the next
/// storing, also without new messages (field report 31).
pub(super) fn on_connect(
    api: &Arc<Api>,
    heartbeats: &Arc<Heartbeats>,
    registry: &Arc<Registry>,
    routes: &Arc<RouteTable>,
    job: &Arc<Job>,
) {
    let (heartbeats, registry, routes) = (heartbeats.clone(), registry.clone(), routes.clone());
    let job = Arc::downgrade(job);
    api.on_connected(move |address| {
        if !routes.brokers().contains(address) {
            return;
        }
        for consumer in registry.consumers() {
            consumer.connected(address);
        }
        if !heartbeats.is_in_flight(address)
            && let Some(job) = job.upgrade()
        {
            job.run_now();
        }
    });
}

/// Keeps the routes of all topics in use fresh, looks often for those still unknown, and says once what it waits for.
#[allow(clippy::too_many_arguments)] // each part of the instance that a route concerns, named
pub(super) fn route_job(
    executor: &Arc<ScheduledExecutor>,
    names: &Arc<NameServers>,
    api: &Arc<Api>,
    registry: &Arc<Registry>,
    routes: &Arc<RouteTable>,
    period: Duration,
    heartbeat_job: &Arc<Job>,
    waker: &RebalanceWaker,
) -> Arc<Job> {
    let (names, api, registry, routes) = (names.clone(), api.clone(), registry.clone(), routes.clone());
    let (heartbeat_job, waker) = (heartbeat_job.clone(), waker.clone());
    let look = Mutex::new(Rank::Leaf, Look { delay: FIRST_LOOK, told: BTreeSet::new(), failing: false });
    Job::new(executor, move || {
        let topics = ClientInstance::used_topics(&registry);
        let mut unknown = BTreeSet::new();
        let mut changed = false;
        let mut failure = None;
        for topic in &topics {
            let known = routes.get(topic).is_some();
            // One budget is spent on a cluster of name servers that is away, not one for each topic.
            if failure.is_some() {
                if !known {
                    unknown.insert(topic.clone());
                }
                continue;
            }
            match names.route(&api, topic, known) {
                Ok(RouteAnswer::Found(data)) => changed |= routes.update(topic, data).is_some(),
                Ok(RouteAnswer::Absent) if known => {}
                Ok(RouteAnswer::Absent) => {
                    routes.note_absent(topic);
                    unknown.insert(topic.clone());
                }
                Err(error) => {
                    if !known {
                        unknown.insert(topic.clone());
                    }
                    failure = Some(error);
                }
            }
        }
        if failure.is_none() {
            routes.retain(&topics);
        }
        if changed {
            // Brokers first, then the round: a broker lists nobody it has not heard of.
            heartbeat_job.run_now();
            waker.wake();
        }
        look.lock().next(period, &unknown, failure.as_ref())
    })
}

struct Look {
    delay: Duration,
    told: BTreeSet<Arc<str>>,
    failing: bool,
}

impl Look {
    fn next(&mut self, period: Duration, unknown: &BTreeSet<Arc<str>>, failure: Option<&crate::Error>) -> Duration {
        match failure {
            Some(error) if !self.failing => log::warn!("waiting for a name server: {error}"),
            None if self.failing => log::info!("a name server answers again"),
            _ => {}
        }
        self.failing = failure.is_some();
        if failure.is_none() {
            for topic in unknown.difference(&self.told) {
                // A group's retry topic is made by its first heartbeat.
                let level = if crate::message::topic::is_retry(topic) { log::Level::Debug } else { log::Level::Warn };
                log::log!(level, "waiting for topic '{topic}': the name servers do not know it");
            }
            for topic in self.told.difference(unknown) {
                log::info!("topic '{topic}' has a route now");
            }
            self.told.clone_from(unknown);
        }
        if unknown.is_empty() && failure.is_none() {
            self.delay = FIRST_LOOK;
            return period;
        }
        let delay = self.delay.min(period);
        self.delay = (self.delay * 2).min(LONGEST_LOOK);
        delay
    }
}
