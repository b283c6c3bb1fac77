//! The stop of a consumer, and what it reports.
//!
//! Order (field report 34): take no new work; wait for what was handed out; store the offsets; leave the group; end the
//! threads. What has not finished by the deadline comes again elsewhere, so it is not sent back either.

use super::Kind;
use crate::consumer::report::ShutdownReport;
use crate::instance;
use crate::sync::{Mutex, Rank};
use crate::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::ThreadId;
use std::time::Duration;

/// Time for storing offsets and for leaving, also when listeners used up the deadline: both save duplicates.
const LAST_REQUESTS: Duration = Duration::from_secs(3);
/// Time for the threads to end once their listeners have returned.
const LAST_STEPS: Duration = Duration::from_millis(500);

pub(crate) struct Stop {
    consumer: Arc<dyn Kind>,
    /// Held while a stop runs, so that a second caller waits for the first one's report.
    report: Mutex<Option<ShutdownReport>>,
    /// The thread that stops: an event listener that it calls may ask for the stop again.
    runs_on: Mutex<Option<ThreadId>>,
}

impl Stop {
    pub(crate) fn new(consumer: Arc<dyn Kind>) -> Self {
        Self { consumer, report: Mutex::new(Rank::Round, None), runs_on: Mutex::new(Rank::Leaf, None) }
    }

    /// Stops once and returns that report each time. On a thread of this crate, which the stop may wait for, it only
    /// begins.
    pub(crate) fn shutdown(self: &Arc<Self>, timeout: Duration) -> ShutdownReport {
        let deadline = Deadline::after(timeout);
        let is_again = *self.runs_on.lock() == Some(std::thread::current().id());
        if !is_again && !crate::thread::is_service_thread() {
            return self.run(deadline);
        }
        if !is_again {
            let stop = self.clone();
            if let Err(error) = crate::thread::spawn_named("rmq-stop", move || drop(stop.run(deadline))) {
                log::error!("the stop of group '{}' could not begin: {error}", self.consumer.member().group);
            }
        }
        ShutdownReport { consumed: self.consumer.consumed(), unfinished: 1, ..Default::default() }
    }

    fn run(&self, deadline: Deadline) -> ShutdownReport {
        let mut report = self.report.lock();
        report
            .get_or_insert_with(|| {
                *self.runs_on.lock() = Some(std::thread::current().id());
                let report = self.stop(deadline);
                *self.runs_on.lock() = None;
                report
            })
            .clone()
    }

    fn stop(&self, deadline: Deadline) -> ShutdownReport {
        let consumer = &self.consumer;
        let member = consumer.member();
        member.stopping.store(true, Ordering::SeqCst);
        member.watch.stop();
        consumer.end_jobs();
        let held = member.held.stop_handing_out();
        let mut report = ShutdownReport { unfinished: consumer.finish(&held, deadline), ..Default::default() };
        let stored = member.store(&held, Deadline::after(LAST_REQUESTS));
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
        let held = member.held.all();
        for held in &held {
            member.held.remove(held);
            consumer.forget(held);
        }
        consumer.gave_up(&held, Some(Deadline::after(LAST_REQUESTS)));
        member.instance.remove_consumer(&member.group, Deadline::after(LAST_REQUESTS));
        report.consumed = consumer.consumed();
        report.threads_ended = consumer.join(deadline.max(Deadline::after(LAST_STEPS)));
        if let Some(file) = member.store.file() {
            file.close();
        }
        instance::release(&member.instance);
        if !report.is_clean() {
            log::warn!("group '{}' stopped and left something behind: {report:?}", member.group);
        }
        report
    }
}
