//! What one worker is at, readable by others: what it has finished and not settled, and the call it is in.

use crate::consumer::held::HeldQueue;
use crate::consumer::push::crew::Place;
use crate::consumer::push::service::Settling;
use crate::sync::{Mutex, Rank};
use std::sync::Arc;
use std::time::Instant;

pub(super) struct Desk {
    pub(super) place: Place,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    held: Option<Arc<HeldQueue>>,
    /// The first offset of the latest call, and when it began.
    call: Option<(i64, Instant)>,
    finished: Vec<i64>,
}

impl From<Place> for Desk {
    fn from(place: Place) -> Self {
        Self { place, shown: Mutex::new(Rank::Leaf, Shown::default()) }
    }
}

impl AsRef<Place> for Desk {
    fn as_ref(&self) -> &Place {
        &self.place
    }
}

impl Desk {
    /// A call begins; what was finished before it can be settled by others from now on.
    pub(super) fn begin(&self, held: &Arc<HeldQueue>, offset: i64, now: Instant, settling: &Settling) {
        let mut shown = self.shown.lock();
        if shown.held.as_ref().is_none_or(|of| !Arc::ptr_eq(of, held)) {
            shown.held = Some(held.clone());
        }
        shown.call = Some((offset, now));
        shown.finished.clear();
        shown.finished.extend_from_slice(settling.finished());
    }

    /// The worker has left the queue, and settled all.
    pub(super) fn clear(&self) {
        *self.shown.lock() = Shown::default();
    }

    pub(super) fn finished(&self) -> Option<(Arc<HeldQueue>, Settling)> {
        let shown = self.shown.lock();
        let held = shown.held.clone().filter(|_| !shown.finished.is_empty())?;
        Some((held, Settling::of(shown.finished.clone())))
    }

    pub(super) fn activity(&self, now: Instant) -> Option<String> {
        let shown = self.shown.lock();
        let ((offset, began), held) = (shown.call?, shown.held.as_ref()?);
        let took = now.saturating_duration_since(began).as_millis();
        Some(format!("rmq-use-{} offset {offset} of {} for {took} ms", self.place.number, held.queue))
    }
}
