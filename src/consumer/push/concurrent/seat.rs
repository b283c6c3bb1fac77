//! What one worker is at, readable by others without stopping it: the listener call it is in, and since when.
//!
//! A call is taken back from a worker by one exchange on `began`: either the worker ends it, or the watch over the
//! consume time-out does, and only the one that did settles its messages. `began` is another for each call, so whatever
//! else is read here belongs to one call if `began` is the same before and after.

use super::Batch;
use crate::consumer::push::crew::Place;
use crate::consumer::push::service::SETTLE_AT;
use crate::sync::{Mutex, Rank};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// No call runs.
const NONE: u64 = 0;
/// Set in `began` when the call was timed out.
const LATE: u64 = 1 << 63;
/// A worker never has more finished messages unsettled when it calls the listener.
pub(super) const MOST_PENDING: usize = SETTLE_AT;

pub(super) struct Seat {
    pub(super) place: Place,
    /// Where `began` counts from.
    base: Instant,
    /// When the call began, in nanoseconds; different for each call of this worker.
    began: AtomicU64,
    from: AtomicUsize,
    to: AtomicUsize,
    batch: Mutex<Option<Arc<Batch>>>,
    last: AtomicU64,
    /// The call that was told to take too long and was not taken back.
    told: AtomicU64,
    /// Offsets of the batch that the worker has finished and not settled.
    pending: [AtomicI64; MOST_PENDING],
    pending_len: AtomicUsize,
}

/// A call that runs.
pub(super) struct Running {
    pub(super) batch: Arc<Batch>,
    pub(super) range: Range<usize>,
    pub(super) took: Duration,
}

impl From<Place> for Seat {
    fn from(place: Place) -> Self {
        Self::new(place)
    }
}

impl AsRef<Place> for Seat {
    fn as_ref(&self) -> &Place {
        &self.place
    }
}

impl Seat {
    fn new(place: Place) -> Self {
        Self {
            place,
            base: Instant::now(),
            began: AtomicU64::new(NONE),
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(0),
            batch: Mutex::new(Rank::Leaf, None),
            last: AtomicU64::new(0),
            told: AtomicU64::new(NONE),
            pending: [const { AtomicI64::new(0) }; MOST_PENDING],
            pending_len: AtomicUsize::new(0),
        }
    }

    pub(super) fn take(&self, batch: Option<Arc<Batch>>) {
        *self.batch.lock() = batch;
    }

    pub(super) fn is_busy(&self) -> bool {
        self.batch.lock().is_some()
    }

    fn nanos(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.base).as_nanos()).unwrap_or(LATE - 1).min(LATE - 1)
    }

    /// The worker begins a call with these messages of its batch.
    pub(super) fn begin(&self, range: &Range<usize>, now: Instant) {
        // Only the worker writes these, between calls. Whoever reads them of a later call finds another `began` then.
        let began = self.nanos(now).max(self.last.load(Ordering::Relaxed) + 1);
        self.last.store(began, Ordering::Relaxed);
        self.from.store(range.start, Ordering::Release);
        self.to.store(range.end, Ordering::Release);
        self.began.store(began, Ordering::Release);
    }

    /// The call has returned; `false` when it was timed out, so that its messages are not the worker's to settle.
    pub(super) fn end(&self) -> bool {
        self.began.swap(NONE, Ordering::AcqRel) & LATE == 0
    }

    /// Shows what the worker has finished and not settled; outside of calls only, as is [`clear`](Self::clear). What does
    /// not fit is settled before the next call.
    pub(super) fn show(&self, finished: &[i64]) {
        let shown = self.pending_len.load(Ordering::Relaxed);
        let end = finished.len().min(MOST_PENDING);
        for (slot, offset) in self.pending.iter().zip(finished).skip(shown) {
            slot.store(*offset, Ordering::Release);
        }
        self.pending_len.store(end, Ordering::Release);
    }

    /// All that was shown is settled.
    pub(super) fn clear(&self) {
        self.pending_len.store(0, Ordering::Release);
    }

    /// What a worker that is in a call, timed out or not, finished before it and has not settled.
    pub(super) fn pending(&self) -> Option<(Arc<Batch>, Vec<i64>)> {
        let began = self.began.load(Ordering::Acquire);
        let batch = self.batch.lock().clone()?;
        let len = self.pending_len.load(Ordering::Acquire);
        let offsets: Vec<_> = self.pending.iter().take(len).map(|offset| offset.load(Ordering::Acquire)).collect();
        let is_same = began != NONE && self.began.load(Ordering::Acquire) & !LATE == began & !LATE;
        (is_same && !offsets.is_empty()).then_some((batch, offsets))
    }

    /// The call that runs, if it was not timed out.
    pub(super) fn running(&self, now: Instant) -> Option<(u64, Running)> {
        let began = self.began.load(Ordering::Acquire);
        if began == NONE || began & LATE != 0 {
            return None;
        }
        let batch = self.batch.lock().clone()?;
        let range = self.from.load(Ordering::Acquire)..self.to.load(Ordering::Acquire);
        let took = Duration::from_nanos(self.nanos(now).saturating_sub(began));
        // A worker that went on meanwhile has another `began`; then the range may be of either call.
        (self.began.load(Ordering::Acquire) == began).then_some((began, Running { batch, range, took }))
    }

    /// Takes the call back if it runs for longer than `timeout`.
    pub(super) fn time_out(&self, now: Instant, timeout: Duration) -> Option<Running> {
        let (began, running) = self.running(now)?;
        if running.took < timeout {
            return None;
        }
        self.began.compare_exchange(began, began | LATE, Ordering::AcqRel, Ordering::Acquire).is_ok().then_some(running)
    }

    /// The call that runs for longer than `timeout`, once for each; it stays the worker's.
    pub(super) fn too_long(&self, now: Instant, timeout: Duration) -> Option<Running> {
        let (began, running) = self.running(now)?;
        (running.took >= timeout && self.told.swap(began, Ordering::Relaxed) != began).then_some(running)
    }
}
