//! Keeps the brokers' locks: asks for those of queues that are wanted, renews those that are held, gives back the others.
//!
//! One job for the consumer looks which questions are due and sends them, one request a broker; it waits for no answer.
//! What an answer means is decided by the seat (`consumer/order/seat.rs`).

use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::member::{Kind, Member};
use crate::consumer::order::seat::{GiveBack, LockAnswer, LockNews, Seat};
use crate::consumer::push::core::Core;
use crate::consumer::rebalance::start_offset::locate;
use crate::error::Result;
use crate::instance::ClientInstance;
use crate::instance::scheduled::{Job, ScheduledExecutor};
use crate::message::MessageQueue;
use crate::thread::contain;
use crate::time::Deadline;
use crossbeam::channel::unbounded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Two looks are at least this far apart, and at most the other.
const LEAST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// The job that asks.
pub(in crate::consumer::push) struct LockKeeper {
    job: Arc<Job>,
}

impl LockKeeper {
    pub(in crate::consumer::push) fn new(executor: &Arc<ScheduledExecutor>, core: Weak<Core>) -> Self {
        let look = move || core.upgrade().map_or(LONGEST_PAUSE, |core| core.ask_for_locks());
        Self { job: Job::new(executor, look) }
    }

    pub(in crate::consumer::push) fn look_now(&self) {
        self.job.run_now();
    }

    pub(in crate::consumer::push) fn stop(&self) {
        self.job.stop();
    }
}

/// An ownership that was asked for, with the number of the question.
type Asked = (Arc<HeldQueue>, u64);

impl Core {
    /// Sends the questions that are due; returns when to look again.
    fn ask_for_locks(&self) -> Duration {
        let now = Instant::now();
        let mut next = now + LONGEST_PAUSE;
        let mut due: BTreeMap<Arc<str>, Vec<Asked>> = BTreeMap::new();
        for held in self.member.held.all() {
            let Some(order) = held.order() else { continue };
            match order.seat.ask(held.epoch, now) {
                Ok(number) => due.entry(held.queue.shared_broker_name().clone()).or_default().push((held, number)),
                Err(Some(at)) => next = next.min(at),
                Err(None) => {}
            }
        }
        for (broker, asked) in due {
            let queues = asked.iter().map(|(held, _)| held.queue.clone()).collect();
            let master = match self.member.instance.master(&broker) {
                Ok(master) => master,
                Err(error) => {
                    self.lock_answered(asked, Err(error), now);
                    next = now; // the pause of these is not known yet
                    continue;
                }
            };
            let core = self.me.clone();
            let (client_id, timeout) = (self.member.instance.client_id(), self.member.request_timeout());
            self.member.instance.api().lock_queues(
                &master,
                &self.member.group,
                client_id,
                queues,
                timeout,
                move |answer| {
                    if let Some(core) = core.upgrade() {
                        core.lock_answered(asked, answer, now);
                        core.look_for_locks();
                    }
                },
            );
        }
        next.saturating_duration_since(Instant::now()).max(LEAST_PAUSE)
    }

    fn lock_answered(&self, asked: Vec<Asked>, answer: Result<Vec<MessageQueue>>, sent: Instant) {
        let granted = answer.map(|queues| queues.into_iter().collect::<BTreeSet<_>>());
        let mut returned = Vec::new();
        for (held, number) in asked {
            let Some(order) = held.order() else { continue };
            let answer = match &granted {
                Ok(queues) if queues.contains(&held.queue) => LockAnswer::Granted,
                Ok(_) => LockAnswer::Refused,
                Err(_) => LockAnswer::Failed,
            };
            let news = order.seat.answer(number, answer, sent, Instant::now());
            if let Err(error) = &granted {
                log::debug!("group '{}' has no answer about the lock of {}: {error}", self.member.group, held.queue);
                held.with_progress(|progress| progress.lock_failure = Some(error.to_string()));
            } else {
                held.with_progress(|progress| progress.lock_failure = None);
            }
            match news {
                LockNews::Granted => self.lock_granted(&held),
                LockNews::Lost => self.lock_lost(&held),
                LockNews::Refused => self.lock_refused(&held),
                LockNews::Nothing => {}
                LockNews::GiveBack => returned.push((held.queue.clone(), order.seat.clone())),
            }
        }
        self.lock_returns.send(returned, None);
    }

    /// Another member has the queue. A start by policy is decided now all the same: messages that come while the lock is
    /// waited for must not be skipped if that member leaves nothing stored (field report 19).
    fn lock_refused(&self, held: &Arc<HeldQueue>) {
        let is_first = held.with_progress(|progress| !std::mem::replace(&mut progress.is_policy_asked, true));
        if !is_first || held.phase() != QueuePhase::Wanted {
            return;
        }
        let asked = held.clone();
        let timeout = self.member.request_timeout();
        let Member { instance, store, config, .. } = &self.member;
        locate(instance, store, &held.queue, config.consume_from, timeout, move |start| {
            if let Ok(start) = start {
                asked.with_progress(|progress| progress.reached = progress.reached.or(Some(start.offset)));
            }
        });
    }

    fn lock_granted(&self, held: &Arc<HeldQueue>) {
        if held.phase() == QueuePhase::Wanted {
            self.member.locate_after(held.clone(), Duration::ZERO);
        } else {
            self.service.go_on(held);
        }
    }

    /// Another member has the queue, or had it: what is cached may be handled already, and the offset is another one.
    fn lock_lost(&self, held: &Arc<HeldQueue>) {
        // One that has not begun passes on what it was to begin from.
        let reached = held.commit_offset().or_else(|| held.with_progress(|progress| progress.reached));
        let Some(next) = self.member.held.renew(held) else {
            // It is being given up; its offset must not overwrite that of the member that has it now.
            if held.phase() == QueuePhase::Draining {
                held.release();
            }
            return;
        };
        self.member.tell(&ConsumerEvent::LockLost { queue: held.queue.clone() });
        self.forget(held);
        next.with_progress(|progress| progress.reached = reached);
        if next.order().is_some_and(|order| order.seat.is_valid(Instant::now())) {
            self.member.locate_after(next, Duration::ZERO);
        }
    }

    /// The broker of the queue is or was out of reach. One that restarts has forgotten its locks, and the first member that
    /// reaches it again gets the queues of all: nothing is handed out until it confirms.
    pub(in crate::consumer::push) fn doubt_lock(&self, held: &HeldQueue) {
        if let Some(order) = held.order() {
            order.seat.doubt(Instant::now());
            self.look_for_locks();
        }
    }

    /// Gives back the locks of ownerships that are over and stored; with a deadline it waits for the answers.
    pub(in crate::consumer::push) fn give_back_locks(&self, gone: &[Arc<HeldQueue>], wait: Option<Deadline>) {
        let mut returned = Vec::new();
        for held in gone {
            let Some(order) = held.order() else { continue };
            match order.seat.give_back() {
                GiveBack::Now => returned.push((held.queue.clone(), order.seat.clone())),
                GiveBack::WhenLeft => log::warn!(
                    "group '{}' gave up {} while a listener runs on it; its lock is kept until that ends, 60 s at the most",
                    self.member.group,
                    held.queue
                ),
                GiveBack::Nothing => {}
            }
        }
        self.lock_returns.send(returned, wait);
    }

    /// Looks soon whether a lock is to be asked for.
    pub(in crate::consumer::push) fn look_for_locks(&self) {
        if let Some(keeper) = &self.locks {
            keeper.look_now();
        }
    }
}

/// Tells brokers that locks are given back.
#[derive(Clone)]
pub(crate) struct LockReturns {
    instance: Arc<ClientInstance>,
    group: Arc<str>,
    timeout: Duration,
    /// Hears that a lock was given back, since the queue may be wanted again.
    looks: Arc<dyn Fn() + Send + Sync>,
}

impl LockReturns {
    pub(in crate::consumer::push) fn new(
        instance: Arc<ClientInstance>,
        group: Arc<str>,
        timeout: Duration,
        looks: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { instance, group, timeout, looks: Arc::new(looks) }
    }

    /// One request a broker. A lock whose return fails is freed by the broker after 60 s.
    pub(crate) fn send(&self, returned: impl IntoIterator<Item = (MessageQueue, Arc<Seat>)>, wait: Option<Deadline>) {
        let mut by_broker: BTreeMap<Arc<str>, Vec<(MessageQueue, Arc<Seat>)>> = BTreeMap::new();
        for (queue, seat) in returned {
            by_broker.entry(queue.shared_broker_name().clone()).or_default().push((queue, seat));
        }
        let (done, answers) = unbounded::<()>();
        for (broker, returned) in by_broker {
            let (group, looks, done) = (self.group.clone(), self.looks.clone(), done.clone());
            let queues = returned.iter().map(|(queue, _)| queue.clone()).collect();
            let answered = move |answer: Result<()>| {
                if let Err(error) = answer {
                    log::warn!("locks of group '{group}' were not given back and last up to 60 s: {error}");
                }
                for (_, seat) in &returned {
                    seat.given_back(Instant::now());
                }
                let _ = contain(|| looks());
                drop(done);
            };
            let timeout = wait.map_or(self.timeout, |wait| wait.capped(self.timeout).remaining());
            match self.instance.master(&broker) {
                Ok(master) => {
                    let client_id = self.instance.client_id();
                    self.instance.api().unlock_queues(&master, &self.group, client_id, queues, timeout, answered);
                }
                Err(error) => answered(Err(error)),
            }
        }
        drop(done);
        if wait.is_some() {
            // Each request has its time-out, so this ends: when the last sender is gone.
            let _ = answers.recv();
        }
    }
}
