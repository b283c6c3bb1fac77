//! The client instance: what the producers and consumers of one client id share.
//!
//! One connection to each broker, one route table, one heartbeat for all groups, and the service threads. Started by
//! the first client, stopped by the last. The threads and the order of locks stand in `DESIGN.md`.

mod heartbeat;
mod jobs;
mod manager;
mod name_servers;
mod pull_service;
pub(crate) mod rebalance_service;
mod registry;
pub(crate) mod role;
pub(crate) mod route_table;
pub(crate) mod scheduled;
mod server_request;

use crate::api::Api;
use crate::config::ClientConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::remoting::{RemotingClient, RemotingConfig};
use crate::time::Deadline;
use heartbeat::Heartbeats;
use name_servers::{NameServers, RouteAnswer};
use pull_service::PullMessageService;
use rebalance_service::{RebalanceService, RebalanceWaker};
use registry::Registry;
use role::{ConsumerRole, ProducerRole, PullTicket};
use route_table::{BrokerTable, RouteTable, TopicRoute};
use scheduled::{Job, ScheduledExecutor};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use manager::{acquire, release};

/// Time for the steps of a stop that wait for peers or threads, after the clients have settled theirs.
const STOP_TIME: Duration = Duration::from_secs(5);

pub(crate) struct ClientInstance {
    client_id: Arc<str>,
    api: Arc<Api>,
    names: Arc<NameServers>,
    routes: Arc<RouteTable>,
    registry: Arc<Registry>,
    heartbeats: Arc<Heartbeats>,
    executor: Arc<ScheduledExecutor>,
    pulls: PullMessageService,
    rebalance: RebalanceService,
    route_job: Arc<Job>,
    heartbeat_job: Arc<Job>,
    persist_job: Arc<Job>,
}

impl ClientInstance {
    /// Starts the threads. Nothing is sent yet, so an unreachable cluster is no error here.
    fn start(client_id: Arc<str>, config: &ClientConfig) -> Result<Self> {
        let registry = Arc::new(Registry::new());
        let routes = Arc::new(RouteTable::new());
        let executor = ScheduledExecutor::start()?;
        let waker = RebalanceWaker::new();
        let processor = Arc::new(server_request::ServerRequests::new(
            client_id.clone(),
            registry.clone(),
            waker.clone(),
            executor.clone(),
        ));
        let remoting_config = RemotingConfig {
            connect_timeout: config.connect_timeout,
            // A broker that is back should be read within seconds.
            backoff_max: Duration::from_secs(2),
            ..Default::default()
        };
        let remoting = RemotingClient::start("rmq", remoting_config, processor)?;
        let api = Arc::new(Api::new(remoting, config));
        let addresses = config.name_server_list()?;
        let spread = client_id.bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let names = Arc::new(NameServers::new(addresses, spread, config.request_timeout));
        let heartbeats = Arc::new(Heartbeats::new(client_id.clone(), config.request_timeout));

        let persist_job = jobs::persist_job(&executor, &registry, config.persist_interval);
        let heartbeat_job =
            jobs::heartbeat_job(&executor, &heartbeats, &api, &registry, &routes, config.heartbeat_interval);
        let route_job =
            jobs::route_job(&executor, &names, &api, &registry, &routes, config.route_interval, &heartbeat_job, &waker);
        jobs::on_connect(&api, &heartbeats, &registry, &routes, &heartbeat_job);

        let rebalance =
            RebalanceService::start(registry.clone(), waker, config.rebalance_interval, config.rebalance_min_interval)?;
        let pulls = PullMessageService::start(registry.clone())?;
        route_job.run_after(config.route_interval);
        heartbeat_job.run_after(config.heartbeat_interval);
        persist_job.run_after(config.persist_interval);
        Ok(Self {
            client_id,
            api,
            names,
            routes,
            registry,
            heartbeats,
            executor,
            pulls,
            rebalance,
            route_job,
            heartbeat_job,
            persist_job,
        })
    }

    pub(crate) fn client_id(&self) -> &Arc<str> {
        &self.client_id
    }

    pub(crate) fn api(&self) -> &Arc<Api> {
        &self.api
    }

    pub(crate) fn executor(&self) -> &Arc<ScheduledExecutor> {
        &self.executor
    }

    pub(crate) fn name_servers(&self) -> &[Arc<str>] {
        self.names.addresses()
    }

    pub(crate) fn brokers(&self) -> Arc<BrokerTable> {
        self.routes.brokers()
    }

    pub(crate) fn brokers_of(&self, topic: &str) -> Vec<Arc<str>> {
        self.routes.brokers_of(topic)
    }

    /// The cached route; no request is made.
    pub(crate) fn known_route(&self, topic: &str) -> Option<Arc<TopicRoute>> {
        self.routes.get(topic)
    }

    /// Whether the name servers said that they do not know the topic, and no route of it was ever seen.
    pub(crate) fn is_known_absent(&self, topic: &str) -> bool {
        self.routes.is_known_absent(topic)
    }

    /// The cached route, else the name servers are asked. `None`: they know no such topic.
    pub(crate) fn route(&self, topic: &Arc<str>) -> Result<Option<Arc<TopicRoute>>> {
        match self.routes.get(topic) {
            Some(route) => Ok(Some(route)),
            None => self.refresh_route(topic),
        }
    }

    /// Asks the name servers for the route. `None`: they know no such topic and neither did we.
    pub(crate) fn refresh_route(&self, topic: &Arc<str>) -> Result<Option<Arc<TopicRoute>>> {
        let known = self.routes.get(topic);
        match self.names.route(&self.api, topic, known.is_some())? {
            RouteAnswer::Found(data) => Ok(self.routes.update(topic, data).or_else(|| self.routes.get(topic))),
            RouteAnswer::Absent => {
                self.routes.note_absent(topic);
                Ok(known)
            }
        }
    }

    /// The master of a broker name.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoute`] when no route names one; the routes are asked for again.
    pub(crate) fn master(&self, broker_name: &str) -> Result<Arc<str>> {
        let brokers = self.routes.brokers();
        if let Some(address) = brokers.master(broker_name) {
            return Ok(address.clone());
        }
        self.route_job.run_now();
        Err(Error::new(ErrorKind::NoRoute, format!("no route names a master of broker '{broker_name}'")))
    }

    pub(crate) fn add_consumer(&self, role: &Arc<dyn ConsumerRole>) -> Result<()> {
        self.registry.add_consumer(role)
    }

    pub(crate) fn add_producer(&self, role: &Arc<dyn ProducerRole>) -> Result<()> {
        self.registry.add_producer(role)
    }

    /// Takes a consumer out of every service and tells the brokers, so that the others take over at once.
    pub(crate) fn remove_consumer(&self, group: &str, deadline: Deadline) {
        self.registry.remove_consumer(group);
        let targets = self.routes.brokers().addresses(false);
        self.api.unregister(&targets, &self.client_id, None, Some(group), deadline);
    }

    pub(crate) fn remove_producer(&self, group: &str, deadline: Deadline) {
        self.registry.remove_producer(group);
        let targets = self.routes.brokers().addresses(true);
        self.api.unregister(&targets, &self.client_id, Some(group), None, deadline);
    }

    /// Fetches the routes of these topics and registers with their brokers, within the request time-outs. What fails is
    /// tried again by the jobs; the error says what it was.
    pub(crate) fn introduce(&self, topics: &[Arc<str>]) -> Result<()> {
        let mut missing = Ok(());
        for topic in topics {
            if let Err(error) = self.refresh_route(topic) {
                missing = Err(error);
                break;
            }
        }
        let beat = self.heartbeats.send(&self.api, &self.registry, &self.routes);
        if beat.accepted > 0 {
            for consumer in self.registry.consumers() {
                consumer.registered();
            }
        }
        self.route_job.run_after(jobs::FIRST_LOOK);
        missing
    }

    pub(crate) fn heartbeat_soon(&self) {
        self.heartbeat_job.run_now();
    }

    pub(crate) fn refresh_routes_soon(&self) {
        self.route_job.run_now();
    }

    pub(crate) fn rebalance_soon(&self) {
        self.rebalance.waker().wake();
    }

    pub(crate) fn submit_pull(&self, ticket: PullTicket) {
        self.pulls.submit(ticket);
    }

    pub(crate) fn submit_pull_later(&self, ticket: PullTicket, delay: Duration) {
        self.pulls.submit_later(ticket, delay);
    }

    /// Topics that somebody on this instance uses.
    pub(crate) fn used_topics(registry: &Registry) -> BTreeSet<Arc<str>> {
        let consumers = registry.consumers();
        let producers = registry.producers();
        let read = consumers.iter().flat_map(|consumer| consumer.topics());
        read.chain(producers.iter().flat_map(|producer| producer.topics())).collect()
    }

    /// Stops the services: first those that start work, then those that carry it, then the connections.
    fn shutdown(&self) {
        let deadline = Deadline::after(STOP_TIME);
        for job in [&self.route_job, &self.heartbeat_job, &self.persist_job] {
            job.stop();
        }
        if !self.rebalance.shutdown(deadline) {
            log::warn!("a rebalance round of client {} did not end within {STOP_TIME:?}", self.client_id);
        }
        if !self.pulls.shutdown(deadline) {
            log::warn!("the pull service of client {} did not end within {STOP_TIME:?}", self.client_id);
        }
        self.api.shutdown(deadline);
        if !self.executor.shutdown(deadline) {
            log::warn!("a housekeeping job of client {} did not end within {STOP_TIME:?}", self.client_id);
        }
    }
}
