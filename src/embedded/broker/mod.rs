//! One broker: its tables behind one lock, a server that hands requests to handlers, and a thread for what is due.
//!
//! ```text
//!   I/O thread of the server            clock thread
//!   request -> lock state -> handler    sleeps until the next delayed message, end of a hold, or member to expire
//!           -> unlock -> send           -> lock state -> run_due -> unlock -> send
//! ```
//!
//! Handlers run on the I/O thread, since all they touch is memory; none blocks, and nothing is sent while the lock is
//! held. The clock thread has no tick: whoever makes something due earlier than it sleeps wakes it. Each slave has a server
//! and a clock thread of its own, on the same tables; see [`session`].

mod append;
mod client;
mod config;
mod delay;
mod end_transaction;
mod filter;
mod group;
mod group_admin;
mod group_config;
mod hold;
mod key_index;
mod lock;
mod lock_table;
mod offset;
mod offset_table;
mod outbox;
mod property_list;
mod pull;
mod query;
mod relay;
mod schedule;
mod send;
mod send_back;
mod session;
mod slave;
mod sql92;
mod state;
mod stats;
mod store;
mod store_read;
mod topic_admin;
mod topic_table;
mod transaction;

pub(crate) use config::BrokerConfig;
pub(crate) use group_config::is_legal_name;
pub(crate) use schedule::{DEFAULT_LEVELS, DelayLevels};
pub(crate) use store::Limits;
pub use store::WhenFull;
pub(crate) use topic_table::{READ_WRITE, Topic};
pub(crate) use transaction::TransactionLimits;

use crate::embedded::fault::{FaultTable, Faulty, Place};
use crate::embedded::routes::Routes;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{RemotingCommand, RequestCode};
use crate::remoting::{ConnectionHandle, Dispatch, RemotingServer, RequestProcessor, unsupported};
use crate::sync::{Condvar, Mutex, MutexGuard, Rank};
use crate::thread::spawn_named;
use crate::time::Deadline;
use outbox::Outbox;
use state::{Answer, Call, State};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a stop waits for the threads of a broker.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

type Handler = fn(&mut State, Call<'_>, &mut Outbox) -> Answer;

/// Who answers a request.
fn handler(code: RequestCode) -> Option<Handler> {
    Some(match code {
        RequestCode::SEND_MESSAGE | RequestCode::SEND_MESSAGE_V2 | RequestCode::SEND_BATCH_MESSAGE => send::send,
        RequestCode::PULL_MESSAGE | RequestCode::LITE_PULL_MESSAGE => pull::pull,
        RequestCode::CONSUMER_SEND_MSG_BACK => send_back::send_back,
        RequestCode::END_TRANSACTION => end_transaction::end,
        RequestCode::QUERY_CONSUMER_OFFSET => offset::query,
        RequestCode::UPDATE_CONSUMER_OFFSET => offset::update,
        RequestCode::SEARCH_OFFSET_BY_TIMESTAMP => offset::search,
        RequestCode::GET_MAX_OFFSET => offset::max,
        RequestCode::GET_MIN_OFFSET => offset::min,
        RequestCode::GET_EARLIEST_MSG_STORETIME => offset::earliest,
        RequestCode::INVOKE_BROKER_TO_RESET_OFFSET => offset::reset,
        RequestCode::HEART_BEAT => client::heartbeat,
        RequestCode::UNREGISTER_CLIENT => client::unregister,
        RequestCode::GET_CONSUMER_LIST_BY_GROUP => client::consumer_list,
        RequestCode::CHECK_CLIENT_CONFIG => client::check_config,
        RequestCode::GET_CONSUMER_CONNECTION_LIST => client::consumer_connections,
        RequestCode::GET_PRODUCER_CONNECTION_LIST => client::producer_connections,
        RequestCode::LOCK_BATCH_MQ => lock::lock,
        RequestCode::UNLOCK_BATCH_MQ => lock::unlock,
        RequestCode::VIEW_MESSAGE_BY_ID => query::view,
        RequestCode::QUERY_MESSAGE => query::query,
        RequestCode::UPDATE_AND_CREATE_TOPIC => topic_admin::create,
        RequestCode::DELETE_TOPIC_IN_BROKER => topic_admin::delete,
        RequestCode::GET_TOPIC_CONFIG => topic_admin::config,
        RequestCode::GET_ALL_TOPIC_CONFIG => topic_admin::all,
        RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => group_admin::create,
        RequestCode::DELETE_SUBSCRIPTIONGROUP => group_admin::delete,
        RequestCode::GET_SUBSCRIPTIONGROUP_CONFIG => group_admin::config,
        RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG => group_admin::all,
        RequestCode::GET_TOPIC_STATS_INFO => stats::topic,
        RequestCode::GET_CONSUME_STATS => stats::consume,
        RequestCode::GET_BROKER_RUNTIME_INFO => stats::runtime_info,
        RequestCode::QUERY_TOPIC_CONSUME_BY_WHO => stats::groups_of_topic,
        RequestCode::QUERY_TOPICS_BY_CONSUMER => stats::topics_of_group,
        RequestCode::QUERY_SUBSCRIPTION_BY_CONSUMER => stats::subscription,
        RequestCode::GET_CONSUMER_RUNNING_INFO => relay::running_info,
        RequestCode::CONSUME_MESSAGE_DIRECTLY => relay::consume_directly,
        RequestCode::INVOKE_BROKER_TO_GET_CONSUMER_STATUS => relay::consumer_status,
        _ => return None,
    })
}

/// One embedded broker. Its messages, topics, groups and offsets live as long as this value; a stop takes the clients.
#[derive(Debug)]
pub(crate) struct Broker {
    shared: Arc<Shared>,
    /// Its servers: the master first, then the slaves by their ids.
    running: Mutex<Vec<Option<Running>>>,
}

#[derive(Debug)]
struct Running {
    server: RemotingServer,
    clock: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    config: Arc<BrokerConfig>,
    guarded: Mutex<Guarded>,
    clock_wake: Condvar,
    /// Woken when a pause ends.
    resumed: Condvar,
    faults: Arc<FaultTable>,
    place: Place,
}

#[derive(Debug)]
struct Guarded {
    state: State,
    servers: Vec<Server>,
}

/// How one server of the broker, master or slave, is run.
#[derive(Debug, Clone, Default)]
struct Server {
    /// Until when its clock thread sleeps; `None` while it works, or sleeps until it is woken.
    asleep_until: Option<Instant>,
    stopping: bool,
    /// Whether its threads are to stand still.
    paused: bool,
}

impl Broker {
    /// A broker that does not run yet.
    pub(crate) fn new(config: BrokerConfig, routes: Arc<Routes>, faults: Arc<FaultTable>) -> Self {
        let config = Arc::new(config);
        let servers = 1 + config.slaves;
        let guarded = Guarded { state: State::new(config.clone(), routes), servers: vec![Server::default(); servers] };
        let shared = Shared {
            place: Place::Broker(config.name.clone()),
            config,
            guarded: Mutex::new(Rank::Embedded, guarded),
            clock_wake: Condvar::new(),
            resumed: Condvar::new(),
            faults,
        };
        let running = (0..servers).map(|_| None).collect();
        Self { shared: Arc::new(shared), running: Mutex::new(Rank::Registry, running) }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.shared.config.name
    }

    /// How many servers it has: a master and slaves.
    pub(crate) fn servers(&self) -> usize {
        1 + self.shared.config.slaves
    }

    /// Address that clients are told of a server, once it has run.
    pub(crate) fn address(&self, role: usize) -> SocketAddr {
        let mut guarded = self.shared.guarded.lock();
        guarded.state.enter(role);
        guarded.state.address
    }

    /// Starts the master and all slaves; see [`start`](Self::start).
    pub(crate) fn start_all(&self) -> Result<()> {
        (0..self.servers()).try_for_each(|role| self.start(role))
    }

    pub(crate) fn stop_all(&self) {
        (0..self.servers()).for_each(|role| self.stop(role));
    }

    /// A server listens, on the port of its last run if there was one, and registers. Does nothing while it runs.
    pub(crate) fn start(&self, role: usize) -> Result<()> {
        let mut running = self.running.lock();
        if running[role].is_some() {
            return Ok(());
        }
        let config = &self.shared.config;
        let bind = SocketAddr::new(config.bind, self.address(role).port());
        let processor = Arc::new(Faulty {
            inner: Arc::new(Processor { shared: self.shared.clone(), role }),
            place: self.shared.place.clone(),
            faults: self.shared.faults.clone(),
        });
        {
            let mut guarded = self.shared.guarded.lock();
            guarded.servers[role] = Server::default();
            guarded.state.enter(role);
            guarded.state.set_running(true);
        }
        let server = RemotingServer::start(
            &format!("rmq-{}", config.name),
            &[bind],
            config.remoting.clone(),
            processor,
            Dispatch::Inline,
        )
        .map_err(|error| {
            self.shared.give_up(role);
            error.context(format_args!("embedded broker {} cannot listen on {bind}", config.name))
        })?;
        let port = server.local_addrs().first().map_or(bind.port(), SocketAddr::port);
        {
            let mut guarded = self.shared.guarded.lock();
            guarded.state.enter(role);
            guarded.state.address = SocketAddr::new(config.advertise, port);
        }
        let shared = self.shared.clone();
        let clock = match spawn_named("rmq-embed-clk", move || shared.run_clock(role)) {
            Ok(clock) => clock,
            Err(error) => {
                server.shutdown(Deadline::after(STOP_TIMEOUT));
                self.shared.give_up(role);
                return Err(error);
            }
        };
        running[role] = Some(Running { server, clock });
        drop(running);
        self.register_server(role);
        Ok(())
    }

    /// A server closes all its connections and forgets its clients. Does nothing while it does not run.
    pub(crate) fn stop(&self, role: usize) {
        let mut running = self.running.lock();
        let Some(Running { server, clock }) = running[role].take() else { return };
        let name = self.name();
        {
            let mut guarded = self.shared.guarded.lock();
            guarded.state.routes.unregister(name, role as i64);
            guarded.servers[role] = Server { stopping: true, ..Server::default() };
            self.shared.clock_wake.notify_all();
            self.shared.resumed.notify_all();
        }
        if !server.shutdown(Deadline::after(STOP_TIMEOUT)) {
            log::error!("embedded broker {name}: its server did not stop within {STOP_TIMEOUT:?}");
        }
        if clock.join().is_err() {
            log::error!("embedded broker {name}: its clock thread had panicked");
        }
        let mut guarded = self.shared.guarded.lock();
        guarded.state.enter(role);
        guarded.state.set_running(false);
        guarded.state.restart();
    }

    /// Tells the name server of the servers that run, and of all topics.
    pub(crate) fn register(&self) {
        (0..self.servers()).for_each(|role| self.register_server(role));
    }

    fn register_server(&self, role: usize) {
        let mut guarded = self.shared.guarded.lock();
        guarded.state.enter(role);
        let is_running = !guarded.servers[role].stopping && guarded.state.address.port() != 0;
        if !is_running {
            return;
        }
        let state = &guarded.state;
        let address = state.address.to_string().into();
        // Topics are the master's word.
        let topics = state.topics.iter().filter(|_| role == 0);
        state.routes.register(self.name(), &self.shared.config.cluster, role as i64, address, topics);
    }

    /// Creates a topic, or changes its number of queues.
    pub(crate) fn create_topic(&self, name: &str, queues: i32) -> Result<()> {
        let mut guarded = self.shared.guarded.lock();
        let state = &mut guarded.state;
        if state.topics.is_system(name) {
            return Err(Error::new(ErrorKind::Config, format!("topic '{name}' belongs to the system; choose another")));
        }
        let made = state.topics.put(Topic::new(name, queues, READ_WRITE));
        if made.is_none() && state.topics.get(name).is_none() {
            return Err(Error::new(ErrorKind::Busy, format!("embedded broker {} takes no more topics", self.name())));
        }
        if !guarded.servers[0].stopping {
            guarded.state.publish(made);
        }
        Ok(())
    }

    /// Does what is due by the clock, on the thread of the caller; for clocks that are moved by hand.
    pub(crate) fn run_due(&self) {
        (0..self.servers()).for_each(|role| self.run_server(role));
    }

    fn run_server(&self, role: usize) {
        loop {
            let mut out = Outbox::default();
            {
                let mut guarded = self.shared.guarded.lock();
                guarded.state.enter(role);
                let (now, server) = (guarded.state.now(), &guarded.servers[role]);
                let is_at_rest = server.stopping || server.paused || guarded.state.address.port() == 0;
                if is_at_rest || guarded.state.next_due().is_none_or(|due| due > now) {
                    return;
                }
                guarded.state.run_due(&mut out);
            }
            out.flush(&self.shared.faults, &self.shared.place);
        }
    }

    /// Lets every thread of the master stand still, or go on. Connections stay open meanwhile, and what comes waits.
    pub(crate) fn pause(&self, pause: bool) {
        let mut guarded = self.shared.guarded.lock();
        let server = &mut guarded.servers[0];
        server.paused = pause && !server.stopping;
        self.shared.resumed.notify_all();
        self.shared.clock_wake.notify_all();
    }

    /// Removes a member of a consumer group without telling anybody; returns how many connections it had.
    pub(crate) fn forget_member(&self, group: &str, client_id: &str) -> usize {
        let mut count = 0;
        self.shared.guarded.lock().state.in_each_session(|state| count += state.consumers.forget(group, client_id));
        count
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop_all();
    }
}

impl Shared {
    /// A server could not be started: nobody may take it for one that runs.
    fn give_up(&self, role: usize) {
        let mut guarded = self.guarded.lock();
        guarded.servers[role].stopping = true;
        guarded.state.enter(role);
        guarded.state.set_running(false);
    }

    /// Wakes the clock thread if something is due before it would wake by itself.
    fn rouse(&self, guarded: &mut MutexGuard<'_, Guarded>, role: usize) {
        if std::mem::take(&mut guarded.state.is_overdue) {
            self.clock_wake.notify_all();
        }
        let Some(due) = guarded.state.next_due() else { return };
        let asleep_until = &mut guarded.servers[role].asleep_until;
        if asleep_until.is_none_or(|until| due < until) {
            *asleep_until = Some(due);
            self.clock_wake.notify_all();
        }
    }

    fn run_clock(&self, role: usize) {
        let mut guarded = self.guarded.lock();
        while !guarded.servers[role].stopping {
            if guarded.servers[role].paused {
                guarded.servers[role].asleep_until = None;
                guarded = self.resumed.wait(guarded);
                continue;
            }
            guarded.state.enter(role);
            let now = guarded.state.now();
            match guarded.state.next_due() {
                Some(due) if due <= now => {
                    let mut out = Outbox::default();
                    guarded.servers[role].asleep_until = None;
                    guarded.state.run_due(&mut out);
                    if std::mem::take(&mut guarded.state.is_overdue) {
                        self.clock_wake.notify_all();
                    }
                    drop(guarded);
                    out.flush(&self.faults, &self.place);
                    guarded = self.guarded.lock();
                }
                Some(due) => {
                    guarded.servers[role].asleep_until = Some(due);
                    guarded = self.clock_wake.wait_timeout(guarded, due - now);
                }
                None => {
                    guarded.servers[role].asleep_until = None;
                    guarded = self.clock_wake.wait(guarded);
                }
            }
        }
    }
}

#[derive(Debug)]
struct Processor {
    shared: Arc<Shared>,
    role: usize,
}

impl Processor {
    fn with_state<T>(&self, act: impl FnOnce(&mut State, &mut Outbox) -> T) -> T {
        let mut out = Outbox::default();
        let result = {
            let mut guarded = self.shared.guarded.lock();
            // Holds up the I/O thread, so nothing is read or written: a process that was stopped looks like that.
            while guarded.servers[self.role].paused {
                guarded = self.shared.resumed.wait(guarded);
            }
            guarded.state.enter(self.role);
            let result = act(&mut guarded.state, &mut out);
            self.shared.rouse(&mut guarded, self.role);
            result
        };
        out.flush(&self.shared.faults, &self.shared.place);
        result
    }
}

impl RequestProcessor for Processor {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let code = request.request_code();
        let Some(handler) = handler(code) else { return Some(unsupported(code)) };
        if self.role != 0
            && let Some(refusal) = slave::refusal(code, &self.shared.config)
        {
            return Some(refusal.answer());
        }
        let call = Call { connection, command: &request };
        self.with_state(|state, out| handler(state, call, out)).unwrap_or_else(|refusal| {
            log::debug!("embedded broker {}: {code} refused: {}", self.shared.config.name, refusal.remark);
            Some(refusal.answer())
        })
    }

    fn connected(&self, connection: &ConnectionHandle) {
        self.with_state(|state, _| state.connected(connection));
    }

    fn disconnected(&self, connection: &ConnectionHandle) {
        self.with_state(|state, out| state.disconnected(connection.id(), out));
    }
}

/// The address to tell clients of a broker that listens on `bind`.
pub(crate) fn advertised(bind: IpAddr, advertise: Option<IpAddr>) -> Result<IpAddr> {
    match advertise {
        Some(address) => Ok(address),
        None if bind.is_unspecified() => Err(Error::new(
            ErrorKind::Config,
            format!("bind: {bind} stands for all addresses; say with advertise() which one clients are to use"),
        )),
        None => Ok(bind),
    }
}
