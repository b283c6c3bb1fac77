//! The faults of one cluster, and the layer in front of its servers that applies them.

use super::later::Later;
use super::{AnswerFault, Fault, InjectedFault, Kind};
use crate::protocol::{RemotingCommand, RequestCode};
use crate::remoting::{ConnectionHandle, RequestProcessor};
use crate::sync::{Mutex, Rank};
use crate::time::Clock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    NameServer,
    Broker(Arc<str>),
}

#[derive(Debug)]
struct Rule {
    id: u64,
    fault: Fault,
    /// How many requests it met, those that it let pass included.
    met: u64,
    hits: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Rule>,
    next_id: u64,
    random: u64,
    /// What is to happen to answers that are yet to come, by connection and opaque.
    answers: HashMap<(u64, i32), AnswerFault>,
    /// Answers that wait for another one to go first.
    swapped: HashMap<u64, Vec<(ConnectionHandle, RemotingCommand)>>,
}

/// All faults of a cluster.
#[derive(Debug)]
pub(crate) struct FaultTable {
    /// Whether there is anything to be looked at, so that a cluster without faults takes no lock.
    active: AtomicBool,
    inner: Mutex<Inner>,
    later: Later,
}

impl FaultTable {
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        let inner = Inner { random: seed, ..Inner::default() };
        Self { active: AtomicBool::new(false), inner: Mutex::new(Rank::Leaf, inner), later: Later::new(clock) }
    }

    pub(crate) fn inject(self: &Arc<Self>, fault: Fault) -> InjectedFault {
        let mut inner = self.inner.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        let hits = Arc::new(AtomicU64::new(0));
        inner.rules.push(Rule { id, fault, met: 0, hits: hits.clone() });
        self.active.store(true, Ordering::Relaxed);
        InjectedFault { id, hits, table: self.clone() }
    }

    pub(crate) fn remove(&self, id: u64) {
        let mut inner = self.inner.lock();
        inner.rules.retain(|rule| rule.id != id);
        self.note_active(&inner);
    }

    /// Ends all faults; answers that waited for another one go out.
    pub(crate) fn clear(&self) {
        let waiting: Vec<_> = {
            let mut inner = self.inner.lock();
            inner.rules.clear();
            inner.answers.clear();
            let waiting = inner.swapped.drain().flat_map(|(_, waiting)| waiting).collect();
            self.note_active(&inner);
            waiting
        };
        waiting.into_iter().for_each(|(connection, answer)| send(&connection, answer));
    }

    /// Does what was delayed until now, on the thread of the caller.
    pub(crate) fn run_due(&self) {
        self.later.run_due();
    }

    /// Ends the thread that does what was delayed, and forgets that.
    pub(crate) fn stop(&self) {
        self.later.stop();
    }

    /// Sends a request of a broker, or an answer that was made to wait.
    pub(crate) fn deliver(self: &Arc<Self>, place: &Place, connection: &ConnectionHandle, command: RemotingCommand) {
        if !self.active.load(Ordering::Relaxed) {
            return send(connection, command);
        }
        if command.is_response() {
            let fault = self.take_answer_fault(connection, command.opaque);
            return self.answer(connection, command, fault);
        }
        match self.decide(place, &command) {
            None => self.answer(connection, command, None),
            Some(Kind::Delay(by)) => self.send_later(by, connection, command),
            Some(Kind::Lose | Kind::Refuse(..)) => {}
            Some(Kind::Close) => connection.close(),
            Some(Kind::Answer(fault)) => self.answer(connection, command, Some(fault)),
        }
    }

    pub(super) fn delayed(&self) -> &Later {
        &self.later
    }

    fn send_later(self: &Arc<Self>, by: Duration, connection: &ConnectionHandle, command: RemotingCommand) {
        let connection = connection.clone();
        self.later.add(self, by, Box::new(move || send(&connection, command)));
    }

    /// Sends an answer (or notice) with what is to happen to it, and those that waited for it.
    fn answer(self: &Arc<Self>, connection: &ConnectionHandle, command: RemotingCommand, fault: Option<AnswerFault>) {
        match fault {
            Some(AnswerFault::Lose) => return,
            Some(AnswerFault::Delay(by)) => return self.send_later(by, connection, command),
            Some(AnswerFault::Half) => return connection.send_half(command),
            Some(AnswerFault::Swap) => {
                let mut inner = self.inner.lock();
                inner.swapped.entry(connection.id()).or_default().push((connection.clone(), command));
                return;
            }
            Some(AnswerFault::Double) => send(connection, command.clone()),
            None => {}
        }
        send(connection, command);
        let waiting = self.inner.lock().swapped.remove(&connection.id());
        waiting.into_iter().flatten().for_each(|(connection, answer)| send(&connection, answer));
    }

    fn take_answer_fault(&self, connection: &ConnectionHandle, opaque: i32) -> Option<AnswerFault> {
        self.inner.lock().answers.remove(&(connection.id(), opaque))
    }

    /// What happens to a request, if anything does.
    pub(super) fn decide(&self, place: &Place, request: &RemotingCommand) -> Option<Kind> {
        let mut inner = self.inner.lock();
        let Inner { rules, random, .. } = &mut *inner;
        let code = request.request_code();
        for rule in rules {
            let fault = &rule.fault;
            let fits = (fault.codes.is_empty() || fault.codes.contains(&code))
                && fault.place.as_ref().is_none_or(|wanted| wanted == place)
                && fault.when.as_ref().is_none_or(|when| when(request));
            if !fits || rule.hits.load(Ordering::Relaxed) >= fault.times {
                continue;
            }
            rule.met += 1;
            if rule.met <= fault.skip || (fault.chance < 1.0 && draw(random) >= fault.chance) {
                continue;
            }
            rule.hits.fetch_add(1, Ordering::Relaxed);
            return Some(fault.kind.clone());
        }
        None
    }

    fn forget_connection(&self, connection: u64) {
        let mut inner = self.inner.lock();
        inner.swapped.remove(&connection);
        inner.answers.retain(|(known, _), _| *known != connection);
    }

    fn note_active(&self, inner: &Inner) {
        let is_active = !inner.rules.is_empty() || !inner.answers.is_empty() || !inner.swapped.is_empty();
        self.active.store(is_active, Ordering::Relaxed);
    }
}

/// A number from 0 to below 1 (SplitMix64).
fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Who is gone needs nothing, and its close event tells the rest.
fn send(connection: &ConnectionHandle, command: RemotingCommand) {
    if let Err(error) = connection.send(command) {
        log::debug!("embedded cluster: {} is gone: {error}", connection.peer_addr());
    }
}

/// A server whose requests and answers meet the faults of its cluster.
#[derive(Debug)]
pub(crate) struct Faulty<P> {
    pub(crate) inner: Arc<P>,
    pub(crate) place: Place,
    pub(crate) faults: Arc<FaultTable>,
}

impl<P: RequestProcessor> RequestProcessor for Faulty<P> {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        if !self.faults.active.load(Ordering::Relaxed) {
            return self.inner.process(connection, request);
        }
        match self.faults.decide(&self.place, &request) {
            Some(Kind::Lose) => None,
            Some(Kind::Close) => {
                connection.close();
                None
            }
            Some(Kind::Refuse(code, remark)) => Some(RemotingCommand::response(code, Some(remark))),
            Some(Kind::Delay(by)) => {
                let (inner, faults) = (self.inner.clone(), self.faults.clone());
                let (place, connection) = (self.place.clone(), connection.clone());
                let job = move || {
                    // Nobody would ever tell the server again that this connection is gone.
                    if !connection.is_open() {
                        return;
                    }
                    let (opaque, is_oneway) = (request.opaque, request.is_oneway());
                    if let Some(answer) = inner.process(&connection, request).filter(|_| !is_oneway) {
                        faults.deliver(&place, &connection, RemotingCommand { opaque, ..answer });
                    }
                };
                self.faults.later.add(&self.faults, by, Box::new(job));
                None
            }
            Some(Kind::Answer(fault)) => {
                if !request.is_oneway() {
                    self.faults.inner.lock().answers.insert((connection.id(), request.opaque), fault);
                }
                self.handle(connection, request)
            }
            None => self.handle(connection, request),
        }
    }

    fn accepts(&self, code: RequestCode) -> bool {
        self.inner.accepts(code)
    }

    fn connected(&self, connection: &ConnectionHandle) {
        self.inner.connected(connection);
    }

    fn disconnected(&self, connection: &ConnectionHandle) {
        self.faults.forget_connection(connection.id());
        self.inner.disconnected(connection);
    }
}

impl<P: RequestProcessor> Faulty<P> {
    /// Handles a request while there are faults: its answer goes the way on which they are applied.
    fn handle(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let (opaque, is_oneway) = (request.opaque, request.is_oneway());
        let answer = self.inner.process(connection, request)?;
        if !is_oneway {
            self.faults.deliver(&self.place, connection, RemotingCommand { opaque, ..answer });
        }
        None
    }
}
