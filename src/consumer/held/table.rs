//! The table of the queues that a consumer holds, and what their ownerships share: limits, suspensions, seats.

use super::{HeldQueue, QueuePhase};
use crate::consumer::order::seat::{LockTimes, Seat};
use crate::consumer::order::{Order, OrderMode};
use crate::consumer::process_queue::{LimitPlan, Limits};
use crate::consumer::suspension::{Scope, Suspensions};
use crate::message::MessageQueue;
use crate::sync::{Mutex, Rank};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// What [`HeldTable::exchange`] changed.
#[derive(Debug)]
pub struct Exchange {
    /// To be drained, stored and removed by the caller.
    pub going: Vec<Arc<HeldQueue>>,
    /// To be located by the caller.
    pub coming: Vec<Arc<HeldQueue>>,
}

/// The queues a consumer holds.
pub struct HeldTable {
    queues: Mutex<BTreeMap<MessageQueue, Arc<HeldQueue>>>,
    epochs: AtomicU64,
    group: Arc<str>,
    order: Option<OrderOfAll>,
    plan: LimitPlan,
    /// Changed only while the queues are locked.
    suspensions: Mutex<Suspensions>,
}

/// What the ownerships of a consumer that consumes in order share.
struct OrderOfAll {
    mode: OrderMode,
    /// The times of the broker's lock, where one is needed.
    times: Option<LockTimes>,
    /// The seats of the queues held, and of others on which a listener or a request of ours still is.
    seats: Mutex<BTreeMap<MessageQueue, Weak<Seat>>>,
}

impl OrderOfAll {
    /// The seat of a queue: that of a former ownership, if anything of it is still under way.
    fn seat(&self, queue: &MessageQueue, epoch: u64) -> Arc<Seat> {
        let now = Instant::now();
        let seat = {
            let mut seats = self.seats.lock();
            seats.retain(|_, seat| seat.strong_count() > 0);
            let known = seats.get(queue).and_then(Weak::upgrade);
            let seat = known.unwrap_or_else(|| Arc::new(Seat::new(self.times, now)));
            seats.insert(queue.clone(), Arc::downgrade(&seat));
            seat
        };
        seat.claim(epoch, now);
        seat
    }
}

impl HeldTable {
    /// An empty one of this group, without limits.
    pub fn new(group: Arc<str>) -> Self {
        Self {
            queues: Mutex::new(Rank::HeldQueues, BTreeMap::new()),
            epochs: AtomicU64::new(1),
            group,
            order: None,
            plan: LimitPlan::of_queues(Limits::NONE),
            suspensions: Mutex::new(Rank::Leaf, Suspensions::default()),
        }
    }

    /// The limits of its queues.
    pub(crate) fn with_limits(self, plan: LimitPlan) -> Self {
        Self { plan, ..self }
    }

    /// A table of ownerships that are consumed in order.
    pub(crate) fn in_order(group: Arc<str>, mode: OrderMode, times: Option<LockTimes>) -> Self {
        let order = OrderOfAll { mode, times, seats: Mutex::new(Rank::QueueGate, BTreeMap::new()) };
        Self { order: Some(order), ..Self::new(group) }
    }

    /// Suspends or resumes; the queues that were suspended and now are not.
    pub(crate) fn set_suspended(&self, scope: Scope<'_>, is_suspended: bool) -> Vec<Arc<HeldQueue>> {
        let queues = self.queues.lock();
        let mut suspensions = self.suspensions.lock();
        suspensions.set(scope, is_suspended);
        let is_resumed = |held: &&Arc<HeldQueue>| {
            let stands = suspensions.cover(&held.queue);
            held.suspended.swap(stands, Ordering::SeqCst) && !stands
        };
        queues.values().filter(is_resumed).cloned().collect()
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspensions.lock().of_consumer()
    }

    /// Shares the limits of topics among the queues held of each.
    fn share_limits(&self) {
        if !self.plan.is_shared() {
            return;
        }
        let queues = self.queues.lock();
        let owned = || queues.values().filter(|held| held.phase() < QueuePhase::Draining);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for held in owned() {
            *counts.entry(held.queue.topic()).or_default() += 1;
        }
        for held in owned() {
            *held.limits.lock() = self.plan.share(counts[held.queue.topic()]);
        }
    }

    /// Begins an ownership; `None` when the queue is held already.
    pub(crate) fn acquire(&self, queue: &MessageQueue) -> Option<Arc<HeldQueue>> {
        let mut queues = self.queues.lock();
        if queues.contains_key(queue) {
            return None;
        }
        let held = self.fresh(queue, None);
        queues.insert(queue.clone(), held.clone());
        Some(held)
    }

    /// What a rebalance changes, in one step: nothing new is handed out of the queues in `drop` from now on, and an
    /// ownership begins for each in `add` that is not held. Returns those going and those coming.
    pub fn exchange(&self, drop: &[MessageQueue], add: &[MessageQueue]) -> Exchange {
        // Under the table's lock: no ownership can be renewed between being found and being stopped.
        let going = {
            let queues = self.queues.lock();
            let going: Vec<_> = drop.iter().filter_map(|queue| queues.get(queue).cloned()).collect();
            for held in &going {
                held.stop_handing_out();
            }
            going
        };
        let coming = add.iter().filter_map(|queue| self.acquire(queue)).collect();
        self.share_limits();
        Exchange { going, coming }
    }

    /// Hands out nothing new of any queue from now on, and returns all.
    pub(crate) fn stop_handing_out(&self) -> Vec<Arc<HeldQueue>> {
        let queues = self.queues.lock();
        for held in queues.values() {
            held.stop_handing_out();
        }
        queues.values().cloned().collect()
    }

    /// As [`renew`](Self::renew); the new ownership begins to pull at `offset` without asking for it.
    pub(crate) fn restart(&self, old: &Arc<HeldQueue>, offset: i64) -> Option<Arc<HeldQueue>> {
        let next = self.renew(old)?;
        next.advance(QueuePhase::Wanted, QueuePhase::Locating);
        next.begin(offset, None);
        Some(next)
    }

    /// Ends one ownership and begins the next of the same queue in one step; `None` when the first one is over already,
    /// or is being given up: a renewed one would stay here, and the queue would have two owners.
    pub(crate) fn renew(&self, old: &Arc<HeldQueue>) -> Option<Arc<HeldQueue>> {
        let mut queues = self.queues.lock();
        let is_ours = old.phase() < QueuePhase::Draining;
        let slot = queues.get_mut(&old.queue).filter(|held| is_ours && held.epoch == old.epoch)?;
        old.release();
        *slot = self.fresh(&old.queue, Some(old));
        *slot.limits.lock() = old.limits();
        Some(slot.clone())
    }

    fn fresh(&self, queue: &MessageQueue, before: Option<&HeldQueue>) -> Arc<HeldQueue> {
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed);
        let order = self.order.as_ref().map(|of_all| {
            let seat = match before.and_then(HeldQueue::order) {
                Some(order) => {
                    order.seat.pass_on(epoch);
                    order.seat.clone()
                }
                None => of_all.seat(queue, epoch),
            };
            Order::new(of_all.mode, seat)
        });
        let is_suspended = self.suspensions.lock().cover(queue);
        let (queue, group) = (queue.clone(), self.group.clone());
        Arc::new(HeldQueue::new(queue, epoch, group, order, self.plan.queue, is_suspended))
    }

    /// The ownership that a ticket was made for, unless it is over.
    pub(crate) fn get(&self, queue: &MessageQueue, epoch: u64) -> Option<Arc<HeldQueue>> {
        self.queues.lock().get(queue).filter(|held| held.epoch == epoch).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<HeldQueue>> {
        self.queues.lock().values().cloned().collect()
    }

    pub(crate) fn of_topic(&self, topic: &str) -> Vec<Arc<HeldQueue>> {
        self.queues.lock().values().filter(|held| held.queue.topic() == topic).cloned().collect()
    }

    /// The queues of a topic that are held and not being given up.
    pub fn owned_of(&self, topic: &str) -> Vec<MessageQueue> {
        let held = self.of_topic(topic);
        held.iter().filter(|held| held.phase() < QueuePhase::Draining).map(|held| held.queue.clone()).collect()
    }

    /// The topics of all queues in the table, in order.
    pub fn topics(&self) -> Vec<Arc<str>> {
        let topics: BTreeSet<_> = self.queues.lock().keys().map(|queue| queue.shared_topic().clone()).collect();
        topics.into_iter().collect()
    }

    /// These topics and those of all queues in the table: a queue that is given up needs its route until its offset is
    /// stored.
    pub(crate) fn with_topics_of(&self, mut topics: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let held = self.topics();
        topics.extend(held);
        topics.sort();
        topics.dedup();
        topics
    }

    /// How many are held; those being given up do not count.
    pub(crate) fn owned(&self) -> usize {
        self.queues.lock().values().filter(|held| held.phase() < QueuePhase::Draining).count()
    }

    /// Whether queues are consumed only with their broker's lock.
    pub(crate) fn needs_locks(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.times.is_some())
    }

    /// Takes an ownership out of the table and ends it.
    pub fn remove(&self, held: &Arc<HeldQueue>) {
        held.release();
        if let Some(order) = held.order() {
            order.seat.release(held.epoch);
        }
        let mut queues = self.queues.lock();
        if queues.get(&held.queue).is_some_and(|current| current.epoch == held.epoch) {
            queues.remove(&held.queue);
        }
    }
}

impl fmt::Debug for HeldTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}
