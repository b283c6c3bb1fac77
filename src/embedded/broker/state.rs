//! Everything that one broker knows, behind one lock, and the shape of its request handlers.

use super::config::BrokerConfig;
use super::delay::TakenBack;
use super::filter::FilterTable;
use super::group::{ConsumerGroups, Notice, ProducerGroups};
use super::group_config::GroupConfigs;
use super::hold::HoldTable;
use super::lock_table::LockTable;
use super::offset_table::OffsetTable;
use super::outbox::Outbox;
use super::pull::HeldPull;
use super::schedule::Schedule;
use super::session::{MOST_HELD, MOST_OFFSETS, Session};
use super::store::MessageStore;
use super::topic_table::{Topic, TopicTable};
use super::transaction::Transactions;
use crate::embedded::routes::Routes;
use crate::error::Error;
use crate::protocol::header::NotifyConsumerIdsChangedRequestHeader;
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::remoting::ConnectionHandle;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much is done for the clock in one go, so that requests get their turn in between.
const CLOCK_BATCH: usize = 256;
/// The expiry scan looks this much after the first member may have expired, so that it meets several at once.
const SCAN_SLACK: Duration = Duration::from_secs(10);

/// One request and where it came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) connection: &'a ConnectionHandle,
    pub(crate) command: &'a RemotingCommand,
}

impl Call<'_> {
    /// The address of the peer; an IPv4 one in IPv6 form counts as IPv4, as in Java.
    pub(crate) fn peer(&self) -> SocketAddr {
        plain(self.connection.peer_addr())
    }

    /// Whether the field `maxReconsumeTimes` of this client is looked at (since V3_4_9).
    pub(crate) fn limits_retries(&self) -> bool {
        self.command.version >= 121
    }
}

/// A request that is answered with another code than success.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: ResponseCode,
    pub(crate) remark: String,
    /// Why nothing may be pulled, for clients of 5.0 and later.
    forbidden_type: Option<i64>,
}

impl Refusal {
    pub(crate) fn new(code: ResponseCode, remark: impl Into<String>) -> Self {
        Self { code, remark: remark.into(), forbidden_type: None }
    }

    /// A pull that is not permitted, with the reason as a number.
    pub(crate) fn forbidden(forbidden_type: i64, remark: impl Into<String>) -> Self {
        Self { forbidden_type: Some(forbidden_type), ..Self::new(ResponseCode::NO_PERMISSION, remark) }
    }

    pub(crate) fn answer(self) -> RemotingCommand {
        let mut answer = RemotingCommand::response(self.code, Some(self.remark));
        if let Some(forbidden_type) = self.forbidden_type {
            answer.ext_fields.put_int("forbiddenType", forbidden_type);
        }
        answer
    }
}

/// What cannot be read ends as an exception does on a real broker.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(ResponseCode::SYSTEM_ERROR, error.to_string())
    }
}

/// `None` is no answer now: the request is held, or relayed.
pub(crate) type Answer = Result<Option<RemotingCommand>, Refusal>;

/// Success without header and body.
pub(crate) fn done() -> Answer {
    Ok(Some(RemotingCommand::response(ResponseCode::SUCCESS, None)))
}

/// Refuses with a code and a text for people.
pub(crate) fn refuse<T>(code: ResponseCode, remark: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(code, remark))
}

/// All tables of one broker.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: Arc<BrokerConfig>,
    /// The broker's address as clients are told; known once it listens.
    pub(crate) address: SocketAddr,
    pub(crate) routes: Arc<Routes>,
    pub(crate) topics: TopicTable,
    pub(crate) group_configs: GroupConfigs,
    pub(crate) store: MessageStore,
    pub(crate) schedule: Schedule,
    pub(crate) filters: FilterTable,
    pub(crate) taken_back: TakenBack,
    pub(crate) transactions: Transactions,
    /// Whether pulls became due that a clock thread may not know of.
    pub(super) is_overdue: bool,
    /// When the broker was made, by the wall clock.
    pub(crate) boot_millis: i64,
    /// The server whose tables stand below: 0 for the master, else a slave's id.
    pub(super) role: usize,
    pub(super) parked: Vec<Session>,
    // What follows is each server's own, and lost when it restarts but for the offsets.
    pub(crate) offsets: OffsetTable,
    pub(crate) connections: HashMap<u64, ConnectionHandle>,
    pub(crate) consumers: ConsumerGroups,
    pub(crate) producers: ProducerGroups,
    pub(crate) fingerprints: HashMap<Arc<str>, i32>,
    pub(crate) locks: LockTable,
    pub(crate) holds: HoldTable<HeldPull>,
    pub(super) next_scan: Option<Instant>,
}

impl State {
    pub(crate) fn new(config: Arc<BrokerConfig>, routes: Arc<Routes>) -> Self {
        let levels = config.delay_levels.count();
        let address = SocketAddr::new(config.advertise, 0);
        // The master's own place holds nothing while its tables are entered.
        let parked: Vec<_> = (0..=config.slaves).map(|_| Session::new(address)).collect();
        Self {
            role: 0,
            parked,
            address,
            routes,
            topics: TopicTable::new(
                &config.cluster,
                &config.name,
                levels,
                config.auto_create_topics,
                config.max_topics,
            ),
            group_configs: GroupConfigs::new(true, config.max_groups),
            store: MessageStore::new(config.limits),
            schedule: Schedule::default(),
            filters: FilterTable::default(),
            taken_back: TakenBack::new(),
            transactions: Transactions::default(),
            is_overdue: false,
            boot_millis: config.clock.wall_millis(),
            offsets: OffsetTable::new(MOST_OFFSETS),
            connections: HashMap::new(),
            consumers: ConsumerGroups::default(),
            producers: ProducerGroups::default(),
            fingerprints: HashMap::new(),
            locks: LockTable::default(),
            holds: HoldTable::new(MOST_HELD),
            next_scan: None,
            config,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.config.clock.now()
    }

    pub(crate) fn now_millis(&self) -> i64 {
        self.config.clock.wall_millis()
    }

    /// Tells the name server of a topic that is new or has changed.
    pub(crate) fn publish(&self, topic: Option<Topic>) {
        if let Some(topic) = topic {
            self.routes.update(&self.config.name, &topic);
        }
    }

    /// Tells members of a group that the group has changed (request 40).
    pub(crate) fn notify(&self, notice: Option<Notice>, out: &mut Outbox) {
        let Some((group, connections)) = notice else { return };
        let header = NotifyConsumerIdsChangedRequestHeader { consumer_group: &group };
        for connection in connections.iter().filter_map(|id| self.connections.get(id)) {
            let request = RemotingCommand::request(RequestCode::NOTIFY_CONSUMER_IDS_CHANGED, &header);
            out.send(connection, request.oneway());
        }
    }

    /// A connection is open.
    pub(crate) fn connected(&mut self, connection: &ConnectionHandle) {
        self.connections.insert(connection.id(), connection.clone());
    }

    /// A connection is gone, however that came.
    pub(crate) fn disconnected(&mut self, connection: u64, out: &mut Outbox) {
        self.connections.remove(&connection);
        self.holds.forget_connection(connection);
        self.producers.close(connection);
        for notice in self.consumers.close(connection) {
            self.notify(Some(notice), out);
        }
    }

    /// Makes sure that members that fall silent are noticed.
    pub(crate) fn watch_members(&mut self) {
        if self.next_scan.is_none() {
            let first = [self.consumers.next_expiry(), self.producers.next_expiry()].into_iter().flatten().min();
            self.next_scan = first.map(|due| due + SCAN_SLACK);
        }
    }

    /// When the clock has to do something next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let of_master = match self.is_slave() {
            true => [None, None],
            false => [self.schedule.next_due(), self.transactions.next_due()],
        };
        let own = [self.holds.next_due(), self.next_scan, self.next_sync()];
        of_master.into_iter().chain(own).flatten().min()
    }

    /// Does what is due: delivers delayed messages, asks about transactions, ends held pulls, removes silent members. A
    /// bounded part of it; whatever is left is still due.
    pub(crate) fn run_due(&mut self, out: &mut Outbox) {
        let now = self.now();
        self.sync_offsets(now);
        let of_master = if self.is_slave() { 0 } else { CLOCK_BATCH };
        for _ in 0..of_master {
            let Some(position) = self.schedule.pop_due(now) else { break };
            self.deliver_delayed(position, out);
            if out.is_spent() {
                break;
            }
        }
        for _ in 0..of_master {
            let Some(id) = self.transactions.due(now) else { break };
            self.check_transaction(id, out);
        }
        for _ in 0..CLOCK_BATCH {
            let Some(held) = self.holds.take_due(now) else { break };
            self.resume(held, out);
            if out.is_spent() {
                break;
            }
        }
        if self.next_scan.is_some_and(|due| due <= now) {
            let silent: Vec<u64> = self.consumers.expire(now).into_iter().chain(self.producers.expire(now)).collect();
            for connection in silent.iter().filter_map(|id| self.connections.get(id)) {
                log::info!("embedded broker {}: no heartbeat from {}", self.config.name, connection.peer_addr());
                out.close(connection);
            }
            self.next_scan = None;
            self.watch_members();
        }
    }

    /// Forgets what a real broker keeps in memory only, as a restart does.
    pub(crate) fn restart(&mut self) {
        self.connections.clear();
        self.consumers.clear();
        self.producers.clear();
        self.fingerprints.clear();
        self.locks.clear();
        self.holds.clear();
        self.offsets.restart();
        self.next_scan = None;
    }
}

/// An IPv4 address that came through an IPv6 socket, as IPv4.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), address.port()),
            None => address,
        },
        IpAddr::V4(_) => address,
    }
}
