//! The stop of a push consumer, and what it reports.
//!
//! Order (field report 34): take no new work; wait for what was handed out; store the offsets; leave the group; end the
//! threads. What has not finished by the deadline comes again elsewhere, so it is not sent back either.

use super::core::Core;
use crate::consumer::report::ShutdownReport;
use crate::instance;
use crate::sync::{Mutex, Rank};
use crate::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time for storing offsets and for leaving, also when listeners used up the deadline: both save duplicates.
const LAST_REQUESTS: Duration = Duration::from_secs(3);
/// Time for the workers to end once their listeners have returned.
const LAST_STEPS: Duration = Duration::from_millis(500);

pub(super) struct Stop {
    core: Arc<Core>,
    /// Held while a stop runs, so that a second caller waits for the first one's report.
    report: Mutex<Option<ShutdownReport>>,
}

impl Stop {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, report: Mutex::new(Rank::Round, None) }
    }

    pub(super) fn under_way(&self) -> ShutdownReport {
        ShutdownReport { consumed: self.core.observer.stats.counts().0, unfinished: 1, ..Default::default() }
    }

    pub(super) fn run(&self, timeout: Duration) -> ShutdownReport {
        let mut report = self.report.lock();
        report.get_or_insert_with(|| self.stop(Deadline::after(timeout))).clone()
    }

    fn stop(&self, deadline: Deadline) -> ShutdownReport {
        let core = &self.core;
        core.stopping.store(true, Ordering::SeqCst);
        core.watch.stop();
        let held = core.held.stop_handing_out();
        let mut report = ShutdownReport::default();
        let late: Vec<_> = held.iter().filter(|held| !held.wait_drained(deadline)).collect();
        core.service.settle_finished();
        report.unfinished = late.iter().map(|held| held.running_messages()).sum();
        let stored = {
            let _one_at_a_time = core.storing.lock();
            core.store_offsets(&held, Deadline::after(LAST_REQUESTS))
        };
        for held in &held {
            report.uncommitted += held.process().map_or(0, |process| process.cached().finished_ahead);
        }
        for failed in &stored.failed {
            let behind = failed.with_progress(|progress| progress.stored).zip(failed.commit_offset());
            report.uncommitted += behind.map_or(0, |(at, to)| usize::try_from(to - at).unwrap_or(0));
            report.not_stored.push(failed.queue.clone());
        }
        report.committed = held
            .iter()
            .filter_map(|held| Some((held.queue.clone(), held.with_progress(|progress| progress.stored)?)))
            .collect();
        // A round that began before the stop may have taken more.
        let held = core.held.all();
        for held in &held {
            core.held.remove(held);
            core.abandon(held);
        }
        if let Some(locks) = &core.locks {
            locks.stop();
        }
        core.give_back_locks(&held, Some(Deadline::after(LAST_REQUESTS)));
        core.instance.remove_consumer(&core.group, Deadline::after(LAST_REQUESTS));
        report.consumed = core.observer.stats.counts().0;
        let deadline = deadline.max(Deadline::after(LAST_STEPS));
        let workers_ended = core.service.join(deadline);
        report.threads_ended = core.direct.join(deadline) && workers_ended;
        if let Some(file) = core.store.file() {
            file.close();
        }
        instance::release(&core.instance);
        if !report.is_clean() {
            log::warn!("group '{}' stopped and left something behind: {report:?}", core.group);
        }
        report
    }
}
