//! What a consumer has done, by topic: totals, and rates over a window. Source: `ConsumerStatsManager` (02-consumer 15.5).
//!
//! The counters are totals that workers add to once for many messages. Rates come from samples of the totals, which the
//! periodic storing of offsets takes and every reader: no timer is spent on them.

use crate::protocol::body::ConsumeStatus;
use crate::sync::{Mutex, Rank, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// Samples of a window are at least this far apart: a sixth of it.
const SHARE: u32 = 6;

/// What a consumer did since its start, by topic. A plain copy; reading it asks nobody.
///
/// Messages that came again count under the group's retry topic, as in the Java client.
#[non_exhaustive]
#[derive(Debug, Clone, Default)]
pub struct ConsumerStats {
    /// Time since the start.
    pub uptime: Duration,
    /// Worker threads of the listener now.
    pub consume_threads: usize,
    /// Messages that are pulled and not finished.
    pub cached_messages: usize,
    /// The size of their bodies, in bytes, as `pull_threshold_size_total` counts them.
    pub cached_bytes: u64,
    /// Topic to its figures; topics of which nothing was pulled yet may be missing.
    pub topics: BTreeMap<String, TopicStats>,
}

/// What a consumer did with one topic.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TopicStats {
    /// Pulls that brought messages.
    pub pulls: u64,
    /// Messages they brought, after filtering.
    pub pulled: u64,
    /// How long these pulls took, all together. A pull that the broker held until a message came includes that time.
    pub pull_time: Duration,
    /// Calls of the listener that have ended.
    pub calls: u64,
    /// How long they took, all together.
    pub consume_time: Duration,
    /// Messages handled successfully.
    pub consumed: u64,
    /// Messages that failed, each time counted; those that timed out are among them.
    pub failed: u64,
    /// Messages that were sent back because the listener took longer than `consume_timeout`.
    pub timed_out: u64,
    /// Rates over the last minute; over the time since the start while that is shorter.
    pub last_minute: Rates,
    /// Messages that failed in the last hour.
    pub failed_last_hour: u64,
}

/// Rates and mean times over a window. All 0 when nothing happened in it.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Messages pulled, in a second.
    pub pulled_per_second: f64,
    /// Messages handled successfully, in a second.
    pub consumed_per_second: f64,
    /// Messages that failed, in a second.
    pub failed_per_second: f64,
    /// Mean time of a pull that brought messages.
    pub pull_time: Duration,
    /// Mean time of a call of the listener.
    pub consume_time: Duration,
}

impl ConsumerStats {
    /// Messages handled successfully, of all topics.
    pub fn consumed(&self) -> u64 {
        self.topics.values().map(|topic| topic.consumed).sum()
    }

    /// Messages that failed, of all topics, each time counted.
    pub fn failed(&self) -> u64 {
        self.topics.values().map(|topic| topic.failed).sum()
    }
}

/// What a worker did since it last told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) took: Duration,
    pub(crate) consumed: u64,
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
}

/// The counters of one topic; a worker holds them with its batch.
pub(crate) struct TopicCounters {
    pulls: AtomicU64,
    pulled: AtomicU64,
    pull_nanos: AtomicU64,
    calls: AtomicU64,
    consume_nanos: AtomicU64,
    consumed: AtomicU64,
    failed: AtomicU64,
    timed_out: AtomicU64,
    samples: Mutex<Samples>,
}

struct Samples {
    minute: Window,
    hour: Window,
}

/// Totals at some moments: one that is as old as the window or the oldest there is, and younger ones.
struct Window {
    length: Duration,
    samples: VecDeque<(Instant, Totals)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    pulls: u64,
    pulled: u64,
    pull_nanos: u64,
    calls: u64,
    consume_nanos: u64,
    consumed: u64,
    failed: u64,
    timed_out: u64,
}

impl Window {
    fn new(length: Duration, now: Instant) -> Self {
        Self { length, samples: VecDeque::from([(now, Totals::default())]) }
    }

    fn sample(&mut self, now: Instant, totals: Totals) {
        let is_due =
            self.samples.back().is_none_or(|(last, _)| now.saturating_duration_since(*last) >= self.length / SHARE);
        if is_due {
            self.samples.push_back((now, totals));
        }
        while self.samples.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= self.length) {
            self.samples.pop_front();
        }
    }

    /// What was added since the beginning of the window, and how long ago that was.
    fn since(&self, now: Instant, totals: &Totals) -> (Totals, Duration) {
        let Some((at, before)) = self.samples.front() else { return Default::default() };
        (totals.minus(before), now.saturating_duration_since(*at))
    }
}

impl Totals {
    fn minus(&self, before: &Self) -> Self {
        Self {
            pulls: self.pulls.saturating_sub(before.pulls),
            pulled: self.pulled.saturating_sub(before.pulled),
            pull_nanos: self.pull_nanos.saturating_sub(before.pull_nanos),
            calls: self.calls.saturating_sub(before.calls),
            consume_nanos: self.consume_nanos.saturating_sub(before.consume_nanos),
            consumed: self.consumed.saturating_sub(before.consumed),
            failed: self.failed.saturating_sub(before.failed),
            timed_out: self.timed_out.saturating_sub(before.timed_out),
        }
    }

    fn rates(&self, over: Duration) -> Rates {
        let per_second = |count: u64| if over.is_zero() { 0.0 } else { count as f64 / over.as_secs_f64() };
        let mean = |nanos: u64, count: u64| nanos.checked_div(count).map_or(Duration::ZERO, Duration::from_nanos);
        Rates {
            pulled_per_second: per_second(self.pulled),
            consumed_per_second: per_second(self.consumed),
            failed_per_second: per_second(self.failed),
            pull_time: mean(self.pull_nanos, self.pulls),
            consume_time: mean(self.consume_nanos, self.calls),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl TopicCounters {
    fn new(now: Instant) -> Self {
        let samples = Samples { minute: Window::new(MINUTE, now), hour: Window::new(HOUR, now) };
        Self {
            pulls: AtomicU64::new(0),
            pulled: AtomicU64::new(0),
            pull_nanos: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            consume_nanos: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            samples: Mutex::new(Rank::Leaf, samples),
        }
    }

    /// A pull brought `messages`.
    pub(crate) fn pulled(&self, messages: usize, took: Duration) {
        self.pulls.fetch_add(1, Ordering::Relaxed);
        self.pulled.fetch_add(messages as u64, Ordering::Relaxed);
        self.pull_nanos.fetch_add(nanos(took), Ordering::Relaxed);
    }

    /// Adds what a worker did, and clears its tally.
    pub(crate) fn add(&self, tally: &mut Tally) {
        let tally = std::mem::take(tally);
        for (counter, more) in [
            (&self.calls, tally.calls),
            (&self.consume_nanos, nanos(tally.took)),
            (&self.consumed, tally.consumed),
            (&self.failed, tally.failed),
            (&self.timed_out, tally.timed_out),
        ] {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            pulls: read(&self.pulls),
            pulled: read(&self.pulled),
            pull_nanos: read(&self.pull_nanos),
            calls: read(&self.calls),
            consume_nanos: read(&self.consume_nanos),
            consumed: read(&self.consumed),
            failed: read(&self.failed),
            timed_out: read(&self.timed_out),
        }
    }

    fn sample(&self, now: Instant) {
        let totals = self.totals();
        let mut samples = self.samples.lock();
        samples.minute.sample(now, totals);
        samples.hour.sample(now, totals);
    }

    fn read(&self, now: Instant) -> (TopicStats, ConsumeStatus) {
        self.sample(now);
        let all = self.totals();
        let samples = self.samples.lock();
        let (minute, minute_took) = samples.minute.since(now, &all);
        let (hour, hour_took) = samples.hour.since(now, &all);
        drop(samples);
        let last_minute = minute.rates(minute_took);
        let stats = TopicStats {
            pulls: all.pulls,
            pulled: all.pulled,
            pull_time: Duration::from_nanos(all.pull_nanos),
            calls: all.calls,
            consume_time: Duration::from_nanos(all.consume_nanos),
            consumed: all.consumed,
            failed: all.failed,
            timed_out: all.timed_out,
            last_minute,
            failed_last_hour: hour.failed,
        };
        // Tools see the mean of the hour when nothing was consumed in the last minute.
        let consume_time = if minute.calls > 0 { minute } else { hour }.rates(hour_took).consume_time;
        let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let status = ConsumeStatus {
            pull_rt: millis(last_minute.pull_time),
            pull_tps: last_minute.pulled_per_second,
            consume_rt: millis(consume_time),
            consume_ok_tps: last_minute.consumed_per_second,
            consume_failed_tps: last_minute.failed_per_second,
            consume_failed_msgs: i64::try_from(hour.failed).unwrap_or(i64::MAX),
        };
        (stats, status)
    }
}

/// The counters of all topics of a consumer.
pub(crate) struct StatsTable {
    started: Instant,
    topics: RwLock<BTreeMap<Arc<str>, Arc<TopicCounters>>>,
}

impl StatsTable {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), topics: RwLock::new(Rank::Leaf, BTreeMap::new()) }
    }

    /// The counters of a topic; to be kept by whoever counts more than once.
    pub(crate) fn of(&self, topic: &Arc<str>) -> Arc<TopicCounters> {
        if let Some(known) = self.topics.read().get(topic) {
            return known.clone();
        }
        let fresh = || Arc::new(TopicCounters::new(Instant::now()));
        self.topics.write().entry(topic.clone()).or_insert_with(fresh).clone()
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<TopicCounters>)> {
        self.topics.read().iter().map(|(topic, counters)| (topic.clone(), counters.clone())).collect()
    }

    /// Takes samples; cheap, and without effect when the last ones are young.
    pub(crate) fn sample(&self) {
        let now = Instant::now();
        self.all().iter().for_each(|(_, counters)| counters.sample(now));
    }

    /// (consumed, failed) of all topics since the start.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let totals = self.all().into_iter().map(|(_, counters)| counters.totals());
        totals.fold((0, 0), |(consumed, failed), topic| (consumed + topic.consumed, failed + topic.failed))
    }

    /// The figures by topic; the rest of the snapshot is the caller's to fill in.
    pub(crate) fn snapshot(&self) -> ConsumerStats {
        let now = Instant::now();
        let topics = self.all().into_iter().map(|(topic, counters)| (topic.to_string(), counters.read(now).0));
        ConsumerStats { uptime: self.started.elapsed(), topics: topics.collect(), ..Default::default() }
    }

    /// What tools see, by topic.
    pub(crate) fn statuses(&self) -> BTreeMap<String, ConsumeStatus> {
        let now = Instant::now();
        self.all().into_iter().map(|(topic, counters)| (topic.to_string(), counters.read(now).1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn consumed(count: u64) -> Tally {
        Tally { calls: count, took: Duration::from_millis(2 * count), consumed: count, ..Tally::default() }
    }

    #[test]
    fn a_rate_is_that_of_the_last_minute_and_totals_go_on() {
        let start = Instant::now();
        let counters = TopicCounters::new(start);
        for second in (0..600).step_by(5) {
            counters.add(&mut consumed(50));
            counters.sample(later(start, second));
        }
        let (stats, status) = counters.read(later(start, 600));
        assert_eq!(stats.consumed, 6000);
        assert!((9.0..11.0).contains(&stats.last_minute.consumed_per_second), "{stats:?}");
        assert_eq!(stats.last_minute.consume_time, Duration::from_millis(2));
        assert_eq!(status.consume_rt, 2.0);
        // Ten silent minutes later.
        for second in (600..1200).step_by(5) {
            counters.sample(later(start, second));
        }
        let (stats, status) = counters.read(later(start, 1200));
        assert_eq!(stats.last_minute, Rates::default());
        assert_eq!((stats.consumed, status.consume_ok_tps, status.consume_rt), (6000, 0.0, 2.0));
        let samples = counters.samples.lock();
        assert!(samples.minute.samples.len() <= 8 && samples.hour.samples.len() <= 8);
    }

    #[test]
    fn without_samples_a_rate_is_that_since_the_start() {
        let start = Instant::now();
        let counters = TopicCounters::new(start);
        counters.pulled(32, Duration::from_millis(4));
        counters.add(&mut Tally { failed: 8, timed_out: 1, ..Tally::default() });
        let (stats, status) = counters.read(later(start, 4));
        assert_eq!((stats.last_minute.pulled_per_second, stats.last_minute.failed_per_second), (8.0, 2.0));
        assert_eq!((stats.failed, stats.timed_out, stats.failed_last_hour), (8, 1, 8));
        assert_eq!((status.pull_rt, status.pull_tps, status.consume_failed_msgs), (4.0, 8.0, 8));
    }
}
