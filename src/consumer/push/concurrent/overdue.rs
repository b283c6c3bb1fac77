//! The consume time-out: a listener that does not return must not keep the offset of its queue for ever.
//!
//! The time counts from when the listener was called with the message, never from when it was pulled (field report 37),
//! and is looked at many times within the time-out (38). A message whose time is up is sent back, so that the offset can
//! pass it; the call goes on, its worker with it, and what it answers later changes nothing. One that cannot be sent
//! back stays unfinished and is tried again at the next look. Source: `cleanExpiredMsg` (02-consumer 8.3).

use super::Shared;
use super::seat::Running;
use crate::consumer::event::ConsumerEvent;
use crate::consumer::held::HeldQueue;
use crate::consumer::push::send_back::Settled;
use crate::consumer::push::service::Settling;
use crate::message::MessageExt;
use crate::sync::{Mutex, Rank};
use crate::thread::contain;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// As the Java client sends timed-out messages back.
const DELAY_LEVEL: i32 = 3;
/// Looks within one time-out.
const LOOKS: u32 = 8;
const LEAST_PERIOD: Duration = Duration::from_millis(10);
const LONGEST_PERIOD: Duration = Duration::from_secs(30);

pub(super) struct Overdue {
    timeout: Duration,
    /// A look is scheduled. None is while no worker is busy, so that an idle consumer is not woken.
    is_armed: AtomicBool,
    /// Messages whose time is up and that are stored nowhere yet.
    left: Mutex<VecDeque<(Arc<HeldQueue>, MessageExt)>>,
}

impl Overdue {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, is_armed: AtomicBool::new(false), left: Mutex::new(Rank::Leaf, VecDeque::new()) }
    }

    /// A worker has taken a batch; its seat shows it already.
    pub(super) fn watch(&self, shared: &Arc<Shared>) {
        if !self.is_armed.load(Ordering::SeqCst) && !self.is_armed.swap(true, Ordering::SeqCst) {
            self.schedule(shared);
        }
    }

    fn schedule(&self, shared: &Arc<Shared>) {
        let period = (self.timeout / LOOKS).clamp(LEAST_PERIOD, LONGEST_PERIOD);
        let executor = shared.instance.executor();
        let (weak, pool) = (Arc::downgrade(shared), Arc::downgrade(executor));
        executor.hand_over_after(period, move || {
            let Some(pool) = pool.upgrade() else { return };
            // It may wait for send-backs.
            pool.soon(move || {
                if let Some(shared) = weak.upgrade() {
                    shared.look();
                }
            });
        });
    }
}

impl Shared {
    fn look(self: &Arc<Self>) {
        let now = Instant::now();
        let seats = self.crew.seats();
        self.settle_finished();
        for seat in &seats {
            if !self.send_back.has_retry_topic() {
                // In broadcasting nothing can be sent back, so it is only told.
                if let Some(slow) = seat.too_long(now, self.overdue.timeout) {
                    self.tell_timeout(&slow);
                }
            } else if let Some(late) = seat.time_out(now, self.overdue.timeout) {
                self.time_is_up(&late);
            }
        }
        self.send_back_overdue();
        let is_needed = || seats.iter().any(|seat| seat.is_busy()) || !self.overdue.left.lock().is_empty();
        if is_needed() {
            return self.overdue.schedule(self);
        }
        // A worker that began between the question and this arms it; one that began before is seen by the second.
        self.overdue.is_armed.store(false, Ordering::SeqCst);
        if self.crew.seats().iter().any(|seat| seat.is_busy()) {
            self.overdue.watch(self);
        }
    }

    fn tell_timeout(&self, call: &Running) {
        let event = ConsumerEvent::ConsumeTimeout {
            queue: call.batch.held.queue.clone(),
            offset: call.batch.messages[call.range.start].queue_offset(),
            messages: call.range.len(),
            after: call.took,
        };
        log::warn!("{event}");
        if let Some(events) = &self.events
            && contain(|| events(&event)).is_err()
        {
            log::error!("the event listener panicked");
        }
    }

    fn time_is_up(&self, late: &Running) {
        self.tell_timeout(late);
        let messages = &late.batch.messages[late.range.clone()];
        let held = &late.batch.held;
        let mut settling = Settling::default();
        settling.count_timed_out(messages.len());
        self.ledger.settle(held, &mut settling);
        self.overdue.left.lock().extend(messages.iter().map(|message| (held.clone(), message.clone())));
    }

    /// Stops at the first that fails: a broker that is away would otherwise cost a time-out for each. The next look begins
    /// with another, so that one that nobody takes holds up no queue but its own.
    fn send_back_overdue(&self) {
        loop {
            let Some((held, message)) = self.overdue.left.lock().pop_front() else { return };
            match self.send_back.settle(&held, &message, DELAY_LEVEL) {
                Settled::Elsewhere => {
                    let mut settling = Settling::default();
                    settling.add(&message);
                    self.ledger.settle(&held, &mut settling);
                }
                Settled::Kept => return self.overdue.left.lock().push_back((held, message)),
                Settled::Abandoned => {}
            }
        }
    }
}
