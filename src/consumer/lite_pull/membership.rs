//! Queues come and go: by rebalance, or as the user assigns them.

use super::STORE_TIME;
use super::core::{Core, Mode};
use crate::consumer::event::{RebalanceEvent, RebalanceListener};
use crate::consumer::held::{Exchange, HeldQueue, QueuePhase};
use crate::consumer::pull::flow_control::back_off;
use crate::consumer::rebalance::diff::{Diff, diff};
use crate::consumer::rebalance::start_offset::{Start, locate};
use crate::consumer::rebalance::{GroupView, QueueOwner, list_of_one};
use crate::consumer::selector::{self, MessageSelector};
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use crate::protocol::SubscriptionData;
use crate::thread::contain;
use crate::time::{Clock, Deadline};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LOCATE_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_LOCATE_PAUSE: Duration = Duration::from_secs(5);

impl GroupView for Core {
    fn readable(&self, topic: &str) -> Option<Arc<[MessageQueue]>> {
        self.instance.known_route(topic).map(|route| route.readable.clone())
    }

    fn brokers_of(&self, topic: &str) -> Vec<Arc<str>> {
        self.instance.brokers_of(topic)
    }

    fn member_list(&self, broker: &Arc<str>) -> Result<Bytes> {
        if self.is_broadcasting() {
            return Ok(list_of_one(self.instance.client_id()));
        }
        self.instance.api().consumer_list(broker, &self.group, self.config.client.request_timeout)
    }

    fn not_listed(&self) {
        self.instance.heartbeat_soon();
    }
}

impl QueueOwner for Core {
    fn held(&self, topic: &str) -> Vec<MessageQueue> {
        self.held.owned_of(topic)
    }

    fn held_topics(&self) -> Vec<Arc<str>> {
        self.held.topics()
    }

    fn apply(&self, changes: Diff, alone: bool) {
        let delay = if alone { Duration::ZERO } else { self.config.takeover_delay };
        let exchange = self.held.exchange(&changes.drop, &changes.add);
        self.follow(exchange, delay, self.config.revoke_grace);
    }
}

impl Core {
    /// Decides on the way to queues, once.
    pub(super) fn enter_mode(&self, mode: Mode) -> Result<()> {
        if *self.mode.get_or_init(|| mode) == mode { Ok(()) } else { Err(super::modes_exclude_each_other()) }
    }

    pub(super) fn subscribe(&self, topic: &str, selector: &MessageSelector) -> Result<()> {
        let mut data = selector.subscription(topic, Clock::system().wall_millis())?;
        self.enter_mode(Mode::Subscribe)?;
        let known = self.subscription(topic);
        let is_same = |known: &SubscriptionData| {
            known.expression_type == data.expression_type && known.sub_string == data.sub_string
        };
        if known.as_deref().is_some_and(is_same) {
            return Ok(());
        }
        selector::check(&self.instance, &self.group, self.config.client.request_timeout, [&data])?;
        // Brokers take over only what has a higher version, also when the clock was set back (field report 11).
        let mut subscriptions = self.subscriptions.write();
        let highest = subscriptions.values().map(|data| data.sub_version).max().unwrap_or(0);
        data.sub_version = data.sub_version.max(highest.saturating_add(1));
        subscriptions.insert(Arc::from(topic), Arc::new(data));
        Ok(())
    }

    /// Holds just these queues from now on. Those that go do not wait for what was polled of them.
    pub(super) fn assign(&self, queues: Vec<MessageQueue>) -> Result<()> {
        self.enter_mode(Mode::Assign)?;
        let topics: BTreeSet<Arc<str>> = queues.iter().map(|queue| queue.shared_topic().clone()).collect();
        let mut subscriptions = std::collections::BTreeMap::new();
        for topic in &topics {
            let given = self.config.assigned_selectors.iter().rev().find(|(name, _)| **name == **topic);
            let selector = given.map_or_else(MessageSelector::all, |(_, selector)| selector.clone());
            let data = selector.subscription(topic, 0)?;
            selector::check(&self.instance, &self.group, self.config.client.request_timeout, [&data])?;
            subscriptions.insert(topic.clone(), Arc::new(data));
        }
        // The first question for a start offset goes to a broker that a route names.
        for topic in &topics {
            if let Err(error) = self.instance.route(topic) {
                log::warn!("group '{}' waits for a route of assigned topic '{topic}': {error}", self.group);
            }
        }
        // The listener is called behind the lock, since it may assign and stop.
        let exchange = {
            let _one_at_a_time = self.rebalancer.lock();
            if self.is_stopping() {
                return Err(super::is_stopped(&self.group));
            }
            *self.subscriptions.write() = subscriptions;
            let held: Vec<_> = self.held.all().iter().map(|held| held.queue.clone()).collect();
            let changes = diff(&held, &queues);
            self.held.exchange(&changes.drop, &changes.add)
        };
        self.follow(exchange, Duration::ZERO, Duration::ZERO);
        Ok(())
    }

    /// What an exchange brings with it: nothing new is handed out of what goes; while that drains, what comes is on its way.
    fn follow(&self, exchange: Exchange, delay: Duration, grace: Duration) {
        let Exchange { going, coming } = exchange;
        if !coming.is_empty() {
            let queues = coming.iter().map(|held| held.queue.clone()).collect();
            self.notify(|listener, event| listener.assigned(event), queues);
            for held in coming {
                self.submit(self.buffer.open(held.clone()));
                self.locate_after(held, delay, 0);
            }
        }
        self.give_up(&going, grace);
    }

    /// Loses queues politely: what was polled gets its time to be handled, the offset is stored, the ownership ends.
    fn give_up(&self, going: &[Arc<HeldQueue>], grace: Duration) {
        if going.is_empty() {
            return;
        }
        let deadline = Deadline::after(grace);
        let (mut revoked, mut lost): (Vec<_>, Vec<_>) =
            going.iter().cloned().partition(|held| held.wait_drained(deadline));
        if self.config.auto_commit {
            self.buffer.commit(going);
        }
        let failed = {
            let _one_at_a_time = self.storing.lock();
            let stored = self.store_locked(going, Deadline::after(STORE_TIME));
            // Before anybody else may store: an offset of an ownership that is over could overtake the next owner's.
            for held in going {
                self.held.remove(held);
            }
            stored.failed
        };
        for held in going {
            self.submit(self.buffer.forget(held));
        }
        revoked.retain(|held| {
            let is_lost = failed.iter().any(|failed| Arc::ptr_eq(failed, held));
            if is_lost {
                lost.push(held.clone());
            }
            !is_lost
        });
        let names = |queues: &[Arc<HeldQueue>]| {
            let mut names: Vec<_> = queues.iter().map(|held| held.queue.clone()).collect();
            names.sort();
            names
        };
        if !revoked.is_empty() {
            self.notify(|listener, event| listener.revoked(event), names(&revoked));
        }
        if !lost.is_empty() {
            let lost = names(&lost);
            log::warn!(
                "group '{}' gave up {lost:?} with messages not handled or its offset not stored; they may come twice",
                self.group
            );
            self.notify(|listener, event| listener.lost(event), lost);
        }
    }

    fn notify(&self, tell: impl Fn(&dyn RebalanceListener, &RebalanceEvent), queues: Vec<MessageQueue>) {
        if let Some(listener) = &self.config.rebalance_listener {
            let event = RebalanceEvent::new(queues, self.held.owned());
            if let Err(panic) = contain(|| tell(&**listener, &event)) {
                log::error!("the rebalance listener of group '{}' panicked: {panic}", self.group);
            }
        }
    }

    /// Asks where to start, some time from now; nothing waits for it.
    fn locate_after(&self, held: Arc<HeldQueue>, delay: Duration, failures: u32) {
        let core = self.me.clone();
        let ask = move || {
            let Some(core) = core.upgrade() else { return };
            let is_first = held.advance(QueuePhase::Wanted, QueuePhase::Locating);
            if core.is_stopping() || !(is_first || held.phase() == QueuePhase::Locating) {
                return;
            }
            let (done, asked) = (core.me.clone(), held.clone());
            let timeout = core.config.client.request_timeout;
            locate(&core.instance, &core.store, &held.queue, core.config.consume_from, timeout, move |start| {
                if let Some(core) = done.upgrade() {
                    core.located(&asked, start, failures);
                }
            });
        };
        if delay.is_zero() { ask() } else { self.instance.executor().hand_over_after(delay, ask) }
    }

    fn located(&self, held: &Arc<HeldQueue>, start: Result<Start>, failures: u32) {
        match start {
            Ok(start) => {
                if held.begin(start.offset, start.is_stored.then_some(start.offset)) {
                    log::debug!("group '{}' begins {} at {}", self.group, held.queue, start.offset);
                    self.instance.submit_pull(held.ticket());
                }
            }
            Err(error) => {
                let level = if failures == 0 { log::Level::Warn } else { log::Level::Debug };
                log::log!(
                    level,
                    "group '{}' cannot find where to start {}, it asks again: {error}",
                    self.group,
                    held.queue
                );
                held.with_progress(|progress| progress.standing = Some(format!("no start offset: {error}")));
                let pause = back_off(failures + 1, LOCATE_PAUSE, LONGEST_LOCATE_PAUSE);
                self.locate_after(held.clone(), pause, failures + 1);
            }
        }
    }

    /// As for a push consumer: a queue that has been silent for longer than any of its reasons can last lost its ticket
    /// to a defect; it gets a new ownership, and the log says so.
    pub(super) fn check_queues(&self) {
        let longest = self.config.pull_suspend * 2 + Duration::from_secs(60);
        let now = Instant::now();
        for held in self.held.all().into_iter().filter(|held| held.is_pulling()) {
            let last = held.with_progress(|progress| progress.last_pull).unwrap_or(held.since());
            let (_, _, is_resting) = self.buffer.cached(&held);
            if is_resting || now.duration_since(last) <= longest {
                continue;
            }
            log::error!("{} of group '{}' had no pull for {longest:?}; it is started again", held.queue, self.group);
            if let Some(at) = self.buffer.handled(&held) {
                self.restart_at(&held, at);
            }
        }
    }

    /// The ownership of a queue that is held and not being given up.
    pub(super) fn owned(&self, queue: &MessageQueue) -> Result<Arc<HeldQueue>> {
        let held = self.held.of_topic(queue.topic()).into_iter().find(|held| held.queue == *queue);
        held.filter(|held| held.phase() < QueuePhase::Draining).ok_or_else(|| {
            Error::new(ErrorKind::State, format!("group '{}' does not hold {queue} here at the moment", self.group))
        })
    }
}
