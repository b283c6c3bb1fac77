//! Queues come and go: taking over, losing politely, and the check that none stands still unnoticed.

use super::core::Core;
use crate::consumer::event::RebalanceEvent;
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
/// Storing the offsets of queues that are given up; the next owner waits less.
const STORE_TIME: Duration = Duration::from_secs(3);

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
        // First nothing new is handed out of what goes; while that drains, what comes is on its way.
        let Exchange { going, coming } = self.held.exchange(&changes.drop, &changes.add);
        if !coming.is_empty() {
            let queues = coming.iter().map(|held| held.queue.clone()).collect();
            self.notify(|listener, event| listener.assigned(event), queues);
            if self.held.needs_locks() {
                // A grant tells that the previous owner is done; then its offset is stored too.
                self.look_for_locks();
            } else {
                let delay = if alone { Duration::ZERO } else { self.config.takeover_delay };
                for held in coming {
                    self.locate_after(held, delay, 0);
                }
            }
        }
        self.give_up(&going);
    }
}

impl Core {
    /// Loses queues politely: running listeners get their time, the offset is stored, then the ownership ends.
    fn give_up(&self, going: &[Arc<HeldQueue>]) {
        if going.is_empty() {
            return;
        }
        let deadline = Deadline::after(self.config.revoke_grace);
        let (mut revoked, mut lost): (Vec<_>, Vec<_>) =
            going.iter().cloned().partition(|held| held.wait_drained(deadline));
        self.service.settle_finished();
        let stored = {
            let _one_at_a_time = self.storing.lock();
            let stored = self.store_offsets(going, Deadline::after(STORE_TIME));
            // Before anybody else may store: an offset of an ownership that is over could overtake the next owner's.
            for held in going {
                self.held.remove(held);
            }
            stored
        };
        for held in going {
            self.abandon(held);
        }
        self.give_back_locks(going, None);
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

    fn notify(
        &self,
        tell: impl Fn(&dyn crate::consumer::event::RebalanceListener, &RebalanceEvent),
        queues: Vec<MessageQueue>,
    ) {
        if let Some(listener) = &self.config.rebalance_listener {
            let event = RebalanceEvent::new(queues, self.held.owned());
            if let Err(panic) = contain(|| tell(&**listener, &event)) {
                log::error!("the rebalance listener of group '{}' panicked: {panic}", self.group);
            }
        }
    }

    pub(super) fn locate_now(&self, held: &Arc<HeldQueue>) {
        self.locate_after(held.clone(), Duration::ZERO, 0);
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
            held.with_progress(|progress| progress.last_asked = Some(Instant::now()));
            locate(&core.instance, &core.store, &held.queue, core.config.consume_from, timeout, move |start| {
                let Some(core) = done.upgrade() else { return };
                if let Err(panic) = contain(|| core.located(&asked, start, failures)) {
                    log::error!("beginning {} panicked; its start is asked for again: {panic}", asked.queue);
                    core.locate_after(asked, LONGEST_LOCATE_PAUSE, failures.saturating_add(1));
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
                self.locate_after(held.clone(), pause, failures + 1);
            }
        }
    }

    /// A queue that is ours has a pull in flight, a ticket under way, or a reason to wait. One that has been silent
    /// for longer than any of them can last lost its ticket to a defect: it gets a new ownership, and the log says so.
    /// The same for one whose start is not asked for any more.
    pub(super) fn check_queues(&self) {
        let longest = self.config.pull_suspend * 2 + Duration::from_secs(60);
        let longest_question = self.config.client.request_timeout * 2 + LONGEST_SILENCE;
        let now = Instant::now();
        for held in self.held.all() {
            let asked = held.with_progress(|progress| progress.last_asked).unwrap_or(held.since());
            if held.phase() == QueuePhase::Locating && now.duration_since(asked) > longest_question {
                log::error!("{} of group '{}' waits for a start that nobody asks for", held.queue, self.group);
                self.locate_after(held, Duration::ZERO, 0);
                continue;
            }
            let Some(process) = held.process().filter(|_| held.is_pulling()) else { continue };
            let last = held.with_progress(|progress| progress.last_pull).unwrap_or(held.since());
            if process.cached().is_parked || now.duration_since(last) <= longest {
                continue;
            }
            log::error!("{} of group '{}' had no pull for {longest:?}; it is started again", held.queue, self.group);
            let at = process.commit_offset();
            self.restart_at(&held, at);
        }
    }
}
