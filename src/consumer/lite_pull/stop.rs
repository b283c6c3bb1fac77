//! The stop of a lite pull consumer.
//!
//! Order: hand out nothing more; let polling threads come back; store the offsets; leave the group.

use super::core::Core;
use crate::consumer::report::ShutdownReport;
use crate::instance;
use crate::sync::{Mutex, Rank};
use crate::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
        ShutdownReport { consumed: self.core.buffer.counts().handled, unfinished: 1, ..Default::default() }
    }

    pub(super) fn run(&self, deadline: Deadline) -> ShutdownReport {
        let mut report = self.report.lock();
        report.get_or_insert_with(|| self.stop(deadline)).clone()
    }

    fn stop(&self, deadline: Deadline) -> ShutdownReport {
        let core = &self.core;
        core.stopping.store(true, Ordering::SeqCst);
        core.commit_job.stop();
        core.topics.stop();
        let held = core.held.stop_handing_out();
        core.buffer.close();
        if core.config.auto_commit {
            // A caller that unwinds did not get to the end of what it polled.
            if !std::thread::panicking() {
                core.buffer.settle_mine();
            }
            core.buffer.wait_settled(deadline);
            core.buffer.commit(&held);
        }
        let stored = core.store_committed(&held, Deadline::after(super::STORE_TIME));
        let mut report =
            ShutdownReport { unfinished: core.buffer.in_hand(&held), threads_ended: true, ..Default::default() };
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
        for held in core.held.all() {
            core.held.remove(&held);
            core.buffer.forget(&held);
        }
        core.instance.remove_consumer(&core.group, Deadline::after(super::STORE_TIME));
        instance::release(&core.instance);
        report.consumed = core.buffer.counts().handled;
        if !report.is_clean() {
            log::warn!("group '{}' stopped and left something behind: {report:?}", core.group);
        }
        report
    }
}
