//! Queues come and go: taking over, losing politely, and the check that none stands still unnoticed.

use super::{Kind, Member, STORE_TIME};
use crate::consumer::event::{RebalanceEvent, RebalanceListener};
use crate::consumer::held::{Exchange, HeldQueue, QueuePhase};
use crate::consumer::pull::flow_control::back_off;
use crate::consumer::rebalance::diff::Diff;
use crate::consumer::rebalance::start_offset::{Start, locate};
use crate::consumer::rebalance::{GroupView, QueueOwner, list_of_one};
use crate::error::Result;
use crate::message::MessageQueue;
use crate::thread::contain;
use crate::time::Deadline;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LOCATE_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_LOCATE_PAUSE: Duration = Duration::from_secs(5);
/// Beyond what a question takes, and the pause between two.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

impl GroupView for Member {
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
        self.instance.api().consumer_list(broker, &self.group, self.request_timeout())
    }

    fn not_listed(&self) {
        self.instance.heartbeat_soon();
    }
}

impl QueueOwner for Member {
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

impl Member {
    /// What an exchange brings with it: nothing new is handed out of what goes; while that drains, what comes is on its way.
    pub(crate) fn follow(&self, exchange: Exchange, delay: Duration, grace: Duration) {
        let Some(kind) = self.kind() else { return };
        let Exchange { going, coming } = exchange;
        if !coming.is_empty() {
            let queues = coming.iter().map(|held| held.queue.clone()).collect();
            self.notify(|listener, event| listener.assigned(event), queues);
            kind.take_over(coming, delay);
        }
        self.give_up(&*kind, &going, grace);
    }

    /// Loses queues politely: what is handed out gets its time, the offset is stored, then the ownership ends.
    fn give_up(&self, kind: &dyn Kind, going: &[Arc<HeldQueue>], grace: Duration) {
        if going.is_empty() {
            return;
        }
        let deadline = Deadline::after(grace);
        let (mut revoked, mut lost): (Vec<_>, Vec<_>) =
            going.iter().cloned().partition(|held| held.wait_drained(deadline));
        kind.settle(going);
        let stored = self.store_and_remove(going, Deadline::after(STORE_TIME));
        for held in going {
            kind.forget(held);
        }
        kind.gave_up(going, None);
        revoked.retain(|held| {
            let failed = stored.failed.iter().any(|failed| Arc::ptr_eq(failed, held));
            if failed {
                lost.push(held.clone());
            }
            !failed
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
                "group '{}' gave up {lost:?} with work unfinished or its offset not stored; messages may come twice",
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
    pub(crate) fn locate_after(&self, held: Arc<HeldQueue>, delay: Duration) {
        self.ask_for_start(held, delay, 0);
    }

    fn ask_for_start(&self, held: Arc<HeldQueue>, delay: Duration, failures: u32) {
        let kind = self.kind.clone();
        let ask = move || {
            let Some(asking) = kind.upgrade() else { return };
            let member = asking.member();
            let is_first = held.advance(QueuePhase::Wanted, QueuePhase::Locating);
            if member.is_stopping() || !(is_first || held.phase() == QueuePhase::Locating) {
                return;
            }
            held.with_progress(|progress| progress.last_asked = Some(Instant::now()));
            let queue = held.queue.clone();
            let (consume_from, timeout) = (member.config.consume_from, member.request_timeout());
            locate(&member.instance, &member.store, &queue, consume_from, timeout, move |start| {
                let Some(asking) = kind.upgrade() else { return };
                let member = asking.member();
                if let Err(panic) = contain(|| member.located(&held, start, failures)) {
                    log::error!("beginning {} panicked; its start is asked for again: {panic}", held.queue);
                    member.ask_for_start(held, LONGEST_LOCATE_PAUSE, failures.saturating_add(1));
                }
            });
        };
        if delay.is_zero() { ask() } else { self.instance.executor().hand_over_after(delay, ask) }
    }

    fn located(&self, held: &Arc<HeldQueue>, start: Result<Start>, failures: u32) {
        match start {
            Ok(mut start) => {
                // The policy is for queues that nobody has begun; this one was ours before (field report 19).
                let reached = held.with_progress(|progress| progress.reached);
                if let Some(reached) = reached.filter(|_| !start.is_stored) {
                    start.offset = reached;
                }
                let origin = if start.is_stored { "the stored offset" } else { "the start policy" };
                // A start by policy is stored with the next round, so that a restart does not choose anew.
                if held.begin(start.offset, start.is_stored.then_some(start.offset)) {
                    log::debug!("group '{}' begins {} at {} by {origin}", self.group, held.queue, start.offset);
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
                self.ask_for_start(held.clone(), pause, failures + 1);
            }
        }
    }

    /// A queue that is ours has a pull in flight, a ticket under way, or a reason to wait. One that has been silent
    /// for longer than any of them can last lost its ticket to a defect: it gets a new ownership, and the log says so.
    /// The same for one whose start is not asked for any more.
    pub(super) fn check_queues(&self) {
        let Some(kind) = self.kind() else { return };
        let longest = self.config.pull_suspend * 2 + Duration::from_secs(60);
        let longest_question = self.request_timeout() * 2 + LONGEST_SILENCE;
        let now = Instant::now();
        for held in self.held.all() {
            let asked = held.with_progress(|progress| progress.last_asked).unwrap_or(held.since());
            if held.phase() == QueuePhase::Locating && now.duration_since(asked) > longest_question {
                log::error!("{} of group '{}' waits for a start that nobody asks for", held.queue, self.group);
                self.locate_after(held, Duration::ZERO);
                continue;
            }
            let last = held.with_progress(|progress| progress.last_pull).unwrap_or(held.since());
            if !held.is_pulling() || kind.is_resting(&held) || now.duration_since(last) <= longest {
                continue;
            }
            log::error!("{} of group '{}' had no pull for {longest:?}; it is started again", held.queue, self.group);
            if let Some(at) = kind.unfinished_from(&held) {
                kind.restart_at(&held, at);
            }
        }
    }
}
