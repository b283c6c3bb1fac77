//! Settings of an [`EmbeddedCluster`].

use super::broker::{self, Broker, BrokerConfig, DEFAULT_LEVELS, DelayLevels, Limits, TransactionLimits, WhenFull};
use super::fault::FaultTable;
use super::routes::Routes;
use super::{EmbeddedCluster, Parts, check_new_topic};
use crate::error::{Error, ErrorKind, Result};
use crate::remoting::RemotingConfig;
use crate::time::Clock;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// Most topics and groups of one broker; clients can make both.
const MAX_TOPICS: usize = 65_536;
const MAX_GROUPS: usize = 65_536;
/// Most brokers of one cluster.
const MAX_BROKERS: usize = 64;
/// Most slaves of one broker.
const MAX_SLAVES: usize = 8;
/// Bounds of the largest frame.
const MIN_FRAME: usize = 64 * 1024;
const MAX_FRAME: usize = crate::protocol::frame::MAX_FRAME;

/// Settings of an [`EmbeddedCluster`]. Made by [`EmbeddedCluster::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct EmbeddedClusterBuilder {
    cluster_name: String,
    broker_names: Vec<String>,
    slaves: usize,
    slave_read: bool,
    topics: Vec<(String, u32)>,
    delay_levels: String,
    timer_max_delay: Duration,
    transactions: TransactionLimits,
    auto_create_topics: bool,
    property_filter: bool,
    max_bytes: usize,
    max_messages: usize,
    when_full: WhenFull,
    bind: IpAddr,
    advertise: Option<IpAddr>,
    name_server_port: u16,
    max_connections: usize,
    max_frame: usize,
    fault_seed: u64,
    clock: Clock,
}

impl EmbeddedClusterBuilder {
    pub(crate) fn new() -> Self {
        Self {
            cluster_name: "DefaultCluster".into(),
            broker_names: vec!["broker-a".into()],
            slaves: 0,
            slave_read: true,
            topics: Vec::new(),
            delay_levels: DEFAULT_LEVELS.into(),
            timer_max_delay: Duration::from_secs(3 * 86_400),
            transactions: TransactionLimits {
                timeout: Duration::from_secs(6),
                interval: Duration::from_secs(30),
                most_checks: 15,
            },
            auto_create_topics: true,
            property_filter: true,
            max_bytes: 256 * 1024 * 1024,
            max_messages: 10_000_000,
            when_full: WhenFull::Refuse,
            bind: Ipv4Addr::LOCALHOST.into(),
            advertise: None,
            name_server_port: 0,
            max_connections: 10_000,
            max_frame: MAX_FRAME,
            fault_seed: 0,
            clock: Clock::system(),
        }
    }

    /// How many brokers there are, all of them masters, named `broker-a`, `broker-b` and so on. Default 1, at most 64.
    pub fn brokers(self, count: usize) -> Self {
        let name = |number: usize| match u8::try_from(number) {
            Ok(number @ 0..26) => format!("broker-{}", char::from(b'a' + number)),
            _ => format!("broker-{number}"),
        };
        // One over the limit is enough for start() to refuse it.
        self.broker_names((0..count.min(MAX_BROKERS + 1)).map(name))
    }

    /// The names of the brokers, one each. `room@broker` puts a broker into a machine room.
    pub fn broker_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.broker_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// How many slaves each broker has, with the ids 1 and up. A slave has at once what its master has, and serves reads
    /// also while the master is stopped. Default 0, at most 8.
    pub fn slaves(mut self, count: usize) -> Self {
        self.slaves = count;
        self
    }

    /// Whether slaves may be read from, as the broker setting `slaveReadEnable`: by clients that find no master, and by
    /// those that lag so far behind that the master sends them to a slave (two fifths of
    /// [`max_bytes`](Self::max_bytes)). Default true, where that of a real broker is false.
    pub fn slave_read(mut self, enable: bool) -> Self {
        self.slave_read = enable;
        self
    }

    /// The name of the cluster. Default `DefaultCluster`.
    pub fn cluster_name(mut self, name: impl Into<String>) -> Self {
        self.cluster_name = name.into();
        self
    }

    /// A topic that is there from the start, with this many queues on each broker.
    pub fn topic(mut self, name: impl Into<String>, queues: u32) -> Self {
        self.topics.push((name.into(), queues));
        self
    }

    /// The delays of messages to be delivered later, level 1 first, in the form of the broker setting
    /// `messageDelayLevel`; the unit `ms` is allowed too. Retries of a group start at level 3. Default
    /// `1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h`.
    pub fn delay_levels(mut self, levels: impl Into<String>) -> Self {
        self.delay_levels = levels.into();
        self
    }

    /// How far ahead of its arrival a message with a timer property (`TIMER_DELAY_SEC`, `TIMER_DELAY_MS` or
    /// `TIMER_DELIVER_MS`) may want to be delivered; one that wants more is refused with code 13. As the broker setting
    /// `timerMaxDelaySec`. Default 3 days, at most 366.
    pub fn timer_max_delay(mut self, delay: Duration) -> Self {
        self.timer_max_delay = delay.min(Duration::from_secs(366 * 86_400));
        self
    }

    /// How long a broker waits for the word of a producer about a transactional message before it asks, as the broker
    /// setting `transactionTimeOut`. A message may bring a longer time of its own. Default 6 s.
    pub fn transaction_timeout(mut self, timeout: Duration) -> Self {
        self.transactions.timeout = timeout;
        self
    }

    /// How long a broker waits before it asks about the same message again, as `transactionCheckInterval`; at least
    /// 1 ms. Default 30 s.
    pub fn transaction_check_interval(mut self, interval: Duration) -> Self {
        self.transactions.interval = interval.clamp(Duration::from_millis(1), Duration::from_secs(366 * 86_400));
        self
    }

    /// How often a broker asks about a message before it gives it up to the topic `TRANS_CHECK_MAX_TIME_TOPIC`, as
    /// `transactionCheckMax`. Default 15.
    pub fn transaction_check_max(mut self, times: u32) -> Self {
        self.transactions.most_checks = times;
        self
    }

    /// Whether the first message to an unknown topic makes it. Default true, with up to 8 queues (4 for most clients).
    pub fn auto_create_topics(mut self, auto_create: bool) -> Self {
        self.auto_create_topics = auto_create;
        self
    }

    /// Whether consumers may filter by SQL92 conditions over properties, as the broker setting `enablePropertyFilter`.
    /// Default true, where that of a real broker is false: there each such subscription is refused.
    pub fn property_filter(mut self, enable: bool) -> Self {
        self.property_filter = enable;
        self
    }

    /// Most bytes of messages each broker holds, as they are stored; some 70 bytes a message come on top. Default
    /// 256 MiB. Memory is taken as messages come.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Most messages each broker holds. Default 10 million.
    pub fn max_messages(mut self, messages: usize) -> Self {
        self.max_messages = messages;
        self
    }

    /// What happens to a message for which there is no room. Default: it is refused.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Most connections to each server, name server included; further ones are closed at once. Default 10,000.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Largest frame in either direction, in bytes; a connection that brings a larger one is closed. A message and its
    /// properties must fit. 64 KiB to 16 MiB; default 16 MiB.
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.max_frame = bytes;
        self
    }

    /// The address to listen on. Default 127.0.0.1. There is neither authentication nor encryption: listen on others
    /// only where everybody who can connect may read and write everything.
    pub fn bind(mut self, address: IpAddr) -> Self {
        self.bind = address;
        self
    }

    /// The address that clients are told to connect to. Default: the one listened on. Needed for 0.0.0.0 and `::`.
    pub fn advertise(mut self, address: IpAddr) -> Self {
        self.advertise = Some(address);
        self
    }

    /// The port of the name server. Default 0: any free one. Brokers always take free ones.
    pub fn name_server_port(mut self, port: u16) -> Self {
        self.name_server_port = port;
        self
    }

    /// From what the [chances](crate::Fault::chance) of faults are drawn: with the same requests in the same order the
    /// same ones meet a fault. Default 0.
    pub fn fault_seed(mut self, seed: u64) -> Self {
        self.fault_seed = seed;
        self
    }

    /// The clock for store times, delays, holds, queue locks and the expiry of members. With a manual one move it by
    /// [`EmbeddedCluster::advance_clock`]. Default: the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Starts name server and brokers; takes milliseconds.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a setting that is not valid, [`ErrorKind::Io`] for a port that cannot be had.
    pub fn start(self) -> Result<EmbeddedCluster> {
        let wrong = |text: String| Err(Error::new(ErrorKind::Config, text));
        let brokers = self.broker_names.len();
        if self.slaves > MAX_SLAVES {
            return wrong(format!("slaves: {}; at most {MAX_SLAVES} are allowed", self.slaves));
        }
        if !(1..=MAX_BROKERS).contains(&brokers) {
            return wrong(format!("brokers: {brokers}; 1 to {MAX_BROKERS} are allowed"));
        }
        for (at, name) in self.broker_names.iter().enumerate() {
            // `room@broker` is how the strategy of machine rooms knows the room.
            if !broker::is_legal_name(&name.replacen('@', "-", 1), 120) || self.broker_names[..at].contains(name) {
                return wrong(format!(
                    "broker_names: '{name}' occurs twice or is no name (letters, digits, %, |, _, - and one @)"
                ));
            }
        }
        if !broker::is_legal_name(&self.cluster_name, 100) {
            return wrong(format!("cluster_name: '{}' is no name (letters, digits, %, |, _, -)", self.cluster_name));
        }
        if self.max_bytes == 0 || self.max_messages == 0 {
            return wrong(format!(
                "max_bytes {} and max_messages {} must be over 0",
                self.max_bytes, self.max_messages
            ));
        }
        if self.max_connections == 0 || !(MIN_FRAME..=MAX_FRAME).contains(&self.max_frame) {
            return wrong(format!(
                "max_connections {} must be over 0, max_frame {} within {MIN_FRAME} to {MAX_FRAME}",
                self.max_connections, self.max_frame
            ));
        }
        let delay_levels = DelayLevels::parse(&self.delay_levels)?;
        let advertise = broker::advertised(self.bind, self.advertise)?;
        for (name, queues) in &self.topics {
            check_new_topic(name, *queues)?;
        }

        let remoting = RemotingConfig {
            max_connections: self.max_connections,
            max_frame: self.max_frame,
            ..RemotingConfig::default()
        };
        let routes = Arc::new(Routes::new());
        let faults = Arc::new(FaultTable::new(self.clock.clone(), self.fault_seed));
        let limits = Limits { bytes: self.max_bytes, messages: self.max_messages, when_full: self.when_full };
        let make = |name: &String| {
            let config = BrokerConfig {
                name: name.as_str().into(),
                cluster: self.cluster_name.as_str().into(),
                slaves: self.slaves,
                slave_read: self.slave_read,
                bind: self.bind,
                advertise,
                delay_levels: delay_levels.clone(),
                timer_max_delay: self.timer_max_delay,
                transactions: self.transactions,
                auto_create_topics: self.auto_create_topics,
                property_filter: self.property_filter,
                limits,
                max_topics: MAX_TOPICS,
                max_groups: MAX_GROUPS,
                remoting: remoting.clone(),
                clock: self.clock.clone(),
            };
            Broker::new(config, routes.clone(), faults.clone())
        };
        let brokers = self.broker_names.iter().map(make).collect();
        let parts = Parts { brokers, routes, faults, remoting, clock: self.clock };
        EmbeddedCluster::launch(parts, self.bind, advertise, self.name_server_port, &self.topics)
    }
}
