//! A RocketMQ cluster inside this process: a name server and brokers that keep everything in memory.
//!
//! For tests and examples that must not need an installation, and for small programs that run producer, broker and
//! consumer together. It speaks the remoting protocol over TCP, so every client can use it, also from other processes.
//!
//! What it does not promise: durability (all is gone with the process) and replication (slaves share their master's memory). There is
//! no authentication and no encryption. Whoever needs those points the same client at a cluster of Apache RocketMQ.
//! What each request does like a real broker, and what not, stands at the head of its file.
//!
//! This module is not under semantic versioning yet: it may change in a minor release.

mod broker;
mod builder;
mod control;
mod fault;
mod key_values;
mod name_server;
mod routes;

pub use broker::WhenFull;
pub use builder::EmbeddedClusterBuilder;
pub use fault::{Fault, InjectedFault};

use crate::error::{Error, ErrorKind, Result};
use crate::message::topic::check_topic;
use crate::remoting::{Dispatch, RemotingConfig, RemotingServer};
use crate::sync::{Mutex, Rank};
use crate::time::{Clock, Deadline};
use broker::Broker;
use fault::{FaultTable, Faulty, Place};
use key_values::KeyValues;
use name_server::NameServer;
use routes::Routes;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How long a stop waits for the threads of the name server.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Most queues of a topic on one broker.
const MAX_QUEUES: u32 = 65_536;

/// A running cluster in this process: a name server and brokers, which every client of the remoting protocol can use,
/// also from other processes. It stops when it is dropped.
///
/// ```
/// use rocketmq_sync::EmbeddedCluster;
/// let cluster = EmbeddedCluster::builder().topic("orders", 8).start()?;
/// println!("clients connect to {}", cluster.name_servers());
/// # Ok::<(), rocketmq_sync::Error>(())
/// ```
///
/// # What it does not promise
///
/// - **Durability.** Messages, offsets and topics live in memory: they outlive a
///   [restart](Self::restart_broker) of a broker, and end with the process, also when it crashes.
/// - **Replication.** Slaves share the memory of their master. They help to test what clients do when a master is away,
///   not against the loss of a machine.
/// - **Retention by time.** What is kept is bounded by [bytes](EmbeddedClusterBuilder::max_bytes) and
///   [messages](EmbeddedClusterBuilder::max_messages) alone, and what happens at the bound is
///   [a choice](WhenFull). Messages that were consumed stay until their room is needed.
/// - **Protection.** There is neither authentication nor encryption; whoever can connect may read and write everything.
/// - **Load.** Each server works on one thread. It bounds what it keeps for each client, closes a connection whose peer
///   does not read, and never waits for one, but whoever sends the largest frames makes the others wait for their turn.
///
/// Pop consumption, static topics, compaction and the proxy's gRPC protocol are not there at all. Whoever needs one of
/// these, or keeps messages whose loss would matter, points the same client at a cluster of Apache RocketMQ: only the
/// address of the name server changes.
#[derive(Debug)]
pub struct EmbeddedCluster {
    brokers: Vec<Broker>,
    routes: Arc<Routes>,
    values: Arc<KeyValues>,
    bind: IpAddr,
    /// Address of the name server that clients are told; the port stays the same when it is restarted.
    name_server_address: SocketAddr,
    name_server: Mutex<Option<RemotingServer>>,
    faults: Arc<FaultTable>,
    remoting: RemotingConfig,
    clock: Clock,
}

/// What a builder made.
struct Parts {
    brokers: Vec<Broker>,
    routes: Arc<Routes>,
    faults: Arc<FaultTable>,
    remoting: RemotingConfig,
    clock: Clock,
}

impl EmbeddedCluster {
    /// Settings, with one broker and free ports on 127.0.0.1 unless told otherwise.
    pub fn builder() -> EmbeddedClusterBuilder {
        EmbeddedClusterBuilder::new()
    }

    /// One name server and one broker on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// As [`EmbeddedClusterBuilder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    fn launch(parts: Parts, bind: IpAddr, advertise: IpAddr, port: u16, topics: &[(String, u32)]) -> Result<Self> {
        let Parts { brokers, routes, faults, remoting, clock } = parts;
        let values = Arc::new(KeyValues::new());
        let name_server = NameServer { routes: routes.clone(), values: values.clone(), clock: clock.clone() };
        let server = start_name_server(SocketAddr::new(bind, port), name_server, &faults, &remoting)?;
        let port = server.local_addrs().first().map_or(port, SocketAddr::port);
        let cluster = Self {
            brokers,
            routes,
            values,
            bind,
            name_server_address: SocketAddr::new(advertise, port),
            name_server: Mutex::new(Rank::Registry, Some(server)),
            faults,
            remoting,
            clock,
        };
        // From here on a failure drops the cluster, which stops what has started.
        for (name, queues) in topics {
            cluster.create_topic(name, *queues)?;
        }
        for broker in &cluster.brokers {
            broker.start_all()?;
        }
        Ok(cluster)
    }

    /// The name server's address, as clients want it: `host:port`.
    pub fn name_servers(&self) -> String {
        self.name_server_address.to_string()
    }

    /// The names of the brokers, running or not.
    pub fn broker_names(&self) -> Vec<&str> {
        self.brokers.iter().map(|broker| &**broker.name()).collect()
    }

    /// The address of a broker's master; it stays the same when it is restarted.
    pub fn broker_address(&self, name: &str) -> Option<SocketAddr> {
        self.broker(name).ok().map(|broker| broker.address(0))
    }

    /// Makes a topic with this many queues on each broker, or changes their number.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name that is not allowed or more than 65,536 queues.
    pub fn create_topic(&self, name: &str, queues: u32) -> Result<()> {
        check_new_topic(name, queues)?;
        self.brokers.iter().try_for_each(|broker| broker.create_topic(name, queues as i32))
    }

    /// Stops a broker's master: its connections close, the name server forgets it. Slaves go on. Its messages, topics and offsets stay for
    /// [`restart_broker`](Self::restart_broker); who was a member of what, queue locks and held pulls are lost, as on a
    /// real broker.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when there is no broker of this name.
    pub fn stop_broker(&self, name: &str) -> Result<()> {
        self.broker(name)?.stop(0);
        Ok(())
    }

    /// Starts a stopped broker again on its old port, or stops and starts a running one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when there is no broker of this name, [`ErrorKind::Io`] when somebody took its port.
    pub fn restart_broker(&self, name: &str) -> Result<()> {
        let broker = self.broker(name)?;
        broker.stop(0);
        broker.start(0)
    }

    /// Stops the name server; the brokers go on.
    pub fn stop_name_server(&self) {
        let server = self.name_server.lock().take();
        if let Some(server) = server
            && !server.shutdown(Deadline::after(STOP_TIMEOUT))
        {
            log::error!("the embedded name server did not stop within {STOP_TIMEOUT:?}");
        }
    }

    /// Starts the name server again on its old port, after stopping it if it runs. It has forgotten everything but the
    /// values of its name spaces; all running brokers register at once, those of other processes when they do it next.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when somebody took its port.
    pub fn restart_name_server(&self) -> Result<()> {
        self.stop_name_server();
        self.routes.clear();
        self.brokers.iter().for_each(Broker::register);
        let bind = SocketAddr::new(self.bind, self.name_server_address.port());
        let name_server =
            NameServer { routes: self.routes.clone(), values: self.values.clone(), clock: self.clock.clone() };
        *self.name_server.lock() = Some(start_name_server(bind, name_server, &self.faults, &self.remoting)?);
        Ok(())
    }

    /// Moves a manual clock, and lets everything that is due by then happen before it returns. With the system's clock
    /// it only does what is due anyway.
    pub fn advance_clock(&self, by: Duration) {
        self.clock.advance(by);
        self.faults.run_due();
        self.brokers.iter().for_each(Broker::run_due);
    }

    /// Stops everything and waits for the threads.
    pub fn stop(self) {}

    fn broker(&self, name: &str) -> Result<&Broker> {
        self.brokers.iter().find(|broker| &**broker.name() == name).ok_or_else(|| {
            let text = format!("no embedded broker '{name}'; there are {}", self.broker_names().join(", "));
            Error::new(ErrorKind::Config, text)
        })
    }
}

impl Drop for EmbeddedCluster {
    fn drop(&mut self) {
        self.brokers.iter().for_each(Broker::stop_all);
        self.stop_name_server();
        self.faults.stop();
    }
}

fn start_name_server(
    bind: SocketAddr,
    name_server: NameServer,
    faults: &Arc<FaultTable>,
    remoting: &RemotingConfig,
) -> Result<RemotingServer> {
    let processor = Arc::new(Faulty { inner: Arc::new(name_server), place: Place::NameServer, faults: faults.clone() });
    RemotingServer::start("rmq-namesrv", &[bind], remoting.clone(), processor, Dispatch::Inline)
        .map_err(|error| error.context(format_args!("the embedded name server cannot listen on {bind}")))
}

fn check_new_topic(name: &str, queues: u32) -> Result<()> {
    check_topic(name)?;
    if queues > MAX_QUEUES {
        let text = format!("topic '{name}': {queues} queues are too many; the most is {MAX_QUEUES}");
        return Err(Error::new(ErrorKind::Config, text));
    }
    Ok(())
}
