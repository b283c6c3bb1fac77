//! `OrderlyConsumeService`: workers that hand messages to the listener in order.
//!
//! What must wait for what is decided by the lanes of an ownership (`consumer/order`); here are the threads. A worker
//! takes a whole lane, calls the listener batch by batch, settles in bulk and brings back what is left. It leaves a lane
//! that it has been in for long when others wait. Before each call it looks whether the queue is still ours, here and at
//! the broker. Source of the rules: `ConsumeMessageOrderlyService` (02-consumer section 10).

mod desk;
pub(crate) mod keeper;

use super::crew::Crew;
use super::hooks::{ConsumeOutcome, ConsumeReturn};
use super::send_back::{KEPT_FOR, Named, SendBack, Settled, TO_DEAD_LETTERS};
use super::service::{ConsumeService, Ledger, Settling};
use crate::consumer::event::EventListener;
use crate::consumer::held::HeldQueue;
use crate::consumer::listener_orderly::{ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageListenerOrderly};
use crate::consumer::order::Order;
use crate::consumer::order::lanes::{LaneKey, RunEnd};
use crate::consumer::order::run::{Run, Verdict};
use crate::error::Result;
use crate::message::MessageExt;
use crate::protocol::body::{ConsumeMessageDirectlyResult, ConsumeResult};
use crate::thread::{JoinGuard, contain};
use crate::time::Deadline;
use crossbeam::channel::{Receiver, Sender, unbounded};
use desk::Desk;
use keeper::LockReturns;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A worker that has been in a lane for so long leaves it to serve others. The Java client's limit is 60 s; it does not
/// look whether anybody waits.
const LONGEST_RUN: Duration = Duration::from_secs(60);
/// Lanes of one ownership are worked on one after the other for so long, before others are looked at.
const SHORT_VISIT: Duration = Duration::from_millis(5);
const LONGEST_RUN_WHILE_OTHERS_WAIT: Duration = Duration::from_secs(1);

pub(crate) struct OrderlyConsumeService {
    shared: Arc<Shared>,
}

struct Shared {
    listener: Arc<dyn MessageListenerOrderly>,
    batch_size: usize,
    suspend: Duration,
    reconsume_limit: i32,
    ledger: Ledger,
    send_back: SendBack,
    events: Option<EventListener>,
    returns: LockReturns,
    crew: Crew<Desk>,
    /// Holds one token for each ownership, at the most: some of its lanes are ready.
    sender: Sender<Arc<HeldQueue>>,
    receiver: Receiver<Arc<HeldQueue>>,
}

/// What the service is built from.
pub(crate) struct Parts {
    pub(crate) listener: Arc<dyn MessageListenerOrderly>,
    pub(crate) ledger: Ledger,
    pub(crate) send_back: SendBack,
    pub(crate) events: Option<EventListener>,
    pub(crate) returns: LockReturns,
    pub(crate) threads: usize,
    pub(crate) batch_size: usize,
    pub(crate) suspend: Duration,
    pub(crate) reconsume_limit: i32,
}

impl OrderlyConsumeService {
    pub(crate) fn start(parts: Parts) -> Result<Self> {
        let (sender, receiver) = unbounded();
        let shared = Arc::new(Shared {
            listener: parts.listener,
            batch_size: parts.batch_size,
            suspend: parts.suspend,
            reconsume_limit: parts.reconsume_limit,
            ledger: parts.ledger,
            send_back: parts.send_back,
            events: parts.events,
            returns: parts.returns,
            crew: Crew::new(),
            sender,
            receiver,
        });
        let service = Self { shared };
        service.set_threads(parts.threads)?;
        Ok(service)
    }
}

impl Drop for OrderlyConsumeService {
    /// A start that failed half-way leaves no worker behind.
    fn drop(&mut self) {
        self.shared.crew.join(Deadline::after(Duration::ZERO));
    }
}

impl ConsumeService for OrderlyConsumeService {
    fn submit(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>) {
        let Some(order) = held.order() else { return };
        self.shared.ledger.budget.take(&messages);
        order.lanes.lock().put(messages);
        self.shared.offer(&held, order);
    }

    fn go_on(&self, held: &Arc<HeldQueue>) {
        if let Some(order) = held.order() {
            self.shared.offer(held, order);
        }
    }

    fn has_room(&self) -> bool {
        self.shared.ledger.budget.has_room()
    }

    fn cached_bytes(&self) -> u64 {
        self.shared.ledger.budget.used()
    }

    fn forget(&self, held: &HeldQueue, bytes: u64) {
        if let Some(order) = held.order() {
            order.lanes.lock().close();
        }
        self.shared.ledger.budget.give_back(bytes);
    }

    fn is_orderly(&self) -> bool {
        true
    }

    fn threads(&self) -> usize {
        self.shared.crew.wanted()
    }

    fn set_threads(&self, threads: usize) -> Result<()> {
        self.shared.crew.resize(threads, |desk| {
            let shared = self.shared.clone();
            JoinGuard::spawn(&format!("rmq-use-{}", desk.place.number), move || shared.work(&desk))
        })
    }

    fn settle_finished(&self) {
        for (held, mut settling) in self.shared.crew.seats().iter().filter_map(|desk| desk.finished()) {
            self.shared.ledger.settle(&held, &mut settling);
        }
    }

    fn activities(&self) -> Vec<String> {
        let now = Instant::now();
        self.shared.crew.seats().iter().filter_map(|desk| desk.activity(now)).collect()
    }

    /// Beside the order: a tool's message takes no lane and no lock, as in the Java client.
    fn consume_directly(&self, message: MessageExt) -> ConsumeMessageDirectlyResult {
        let mut context = ConsumeOrderlyContext::new(message.message_queue().clone());
        let began = Instant::now();
        let status = contain(|| self.shared.listener.consume(std::slice::from_ref(&message), &mut context));
        let (consume_result, remark) = match status {
            Ok(ConsumeOrderlyStatus::Success) => (ConsumeResult::Success, None),
            Ok(ConsumeOrderlyStatus::Commit) => (ConsumeResult::Commit, None),
            Ok(ConsumeOrderlyStatus::Rollback) => (ConsumeResult::Rollback, None),
            Ok(ConsumeOrderlyStatus::SuspendCurrentQueueAMoment) => (ConsumeResult::Later, None),
            Err(panic) => (ConsumeResult::ThrowException, Some(panic)),
        };
        let spent_time_mills = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let auto_commit = context.is_auto_commit();
        ConsumeMessageDirectlyResult { order: true, auto_commit, consume_result, remark, spent_time_mills }
    }

    fn join(&self, deadline: Deadline) -> bool {
        self.shared.crew.join(deadline)
    }
}

impl Shared {
    /// Sends the token of an ownership, if a lane is ready and nothing keeps it from being worked on.
    ///
    /// Whoever makes either true calls this afterwards, so that the later of the two sees both.
    fn offer(&self, held: &Arc<HeldQueue>, order: &Order) {
        if !held.is_suspended() && order.seat.is_valid(Instant::now()) && order.lanes.lock().offer() {
            let _ = self.sender.send(held.clone());
        }
    }

    fn work(self: &Arc<Self>, desk: &Desk) {
        while self.crew.keeps(&desk.place) {
            let Some(held) = desk.place.next(&self.receiver) else { continue };
            let Some(order) = held.order() else { continue };
            order.lanes.lock().accept();
            if !held.enter() {
                continue;
            }
            let wake = || -> Box<dyn FnOnce() + Send> {
                let (shared, held) = (self.clone(), held.clone());
                Box::new(move || shared.go_on(&held))
            };
            if order.seat.enter(held.epoch, wake) {
                self.serve(desk, &held, order);
                self.leave_seat(&held, order);
            }
            held.leave();
        }
    }

    fn go_on(&self, held: &Arc<HeldQueue>) {
        if let Some(order) = held.order() {
            self.offer(held, order);
        }
    }

    /// Works on the lanes of an ownership until none is ready, or others wait for a worker.
    fn serve(self: &Arc<Self>, desk: &Desk, held: &Arc<HeldQueue>, order: &Order) {
        let begun = Instant::now();
        let mut settling = Settling::default();
        while !held.is_suspended() && order.seat.is_valid(Instant::now()) {
            let taken = order.lanes.lock().take();
            let Some((key, mut run)) = taken else { break };
            // Before it begins: the next idle worker takes the next lane.
            self.offer(held, order);
            // A defect on the way must not leave the lane running for ever: what is left comes again.
            let end = contain(|| self.run(desk, held, order, &mut run, &mut settling)).unwrap_or_else(|panic| {
                log::error!("work on {} panicked; it goes on in a moment: {panic}", held.queue);
                RunEnd::Suspended(Instant::now() + self.suspend)
            });
            self.ledger.settle(held, &mut settling);
            let suspended = order.lanes.lock().put_back(&key, run, end);
            if let (Some(number), RunEnd::Suspended(until)) = (suspended, end) {
                self.wake_at(until, held.clone(), key, number);
            }
            // Short lanes follow each other without a way through the channel.
            let is_long = begun.elapsed() > SHORT_VISIT;
            if is_long && !self.receiver.is_empty() || !self.crew.wants(&desk.place) {
                break;
            }
        }
        desk.clear();
        self.offer(held, order);
    }

    fn leave_seat(&self, held: &Arc<HeldQueue>, order: &Order) {
        let left = order.seat.leave();
        if left.gives_back {
            self.returns.send([(held.queue.clone(), order.seat.clone())], None);
        }
        if let Some(wake) = left.waiting {
            wake();
        }
    }

    fn wake_at(self: &Arc<Self>, until: Instant, held: Arc<HeldQueue>, key: LaneKey, number: u64) {
        let shared = self.clone();
        let delay = until.saturating_duration_since(Instant::now());
        self.ledger.instance.executor().hand_over_after(delay, move || {
            let Some(order) = held.order() else { return };
            {
                let mut lanes = order.lanes.lock();
                // Read inside: a drain that found the lane suspended must not have it running later.
                if !held.is_pulling() {
                    return;
                }
                lanes.wake(&key, number);
            }
            shared.offer(&held, order);
        });
    }

    /// One run through a lane.
    fn run(
        &self,
        desk: &Desk,
        held: &Arc<HeldQueue>,
        order: &Order,
        run: &mut Run<MessageExt>,
        settling: &mut Settling,
    ) -> RunEnd {
        let begun = Instant::now();
        let mut context = ConsumeOrderlyContext::new(held.queue.clone());
        loop {
            let now = Instant::now();
            let took = now.duration_since(begun);
            let is_long = took > LONGEST_RUN || took > LONGEST_RUN_WHILE_OTHERS_WAIT && !self.receiver.is_empty();
            let batch = run.next(self.batch_size);
            // Bodies that do not inflate are never shown to a listener; they part the batch.
            let bad = batch.iter().position(|message| message.body_error().is_some());
            let batch = &batch[..bad.unwrap_or(batch.len())];
            let Some(first) = batch.first().or(run.next(1).first()) else { return RunEnd::More };
            if is_long {
                return RunEnd::More;
            }
            if held.is_suspended() || !order.seat.is_valid(now) {
                return RunEnd::Blocked;
            }
            let last = batch.last().unwrap_or(first);
            if !held.may_hand_out(first.queue_offset(), last.queue_offset()) {
                return RunEnd::Over;
            }
            let end = if batch.is_empty() {
                self.bury_unreadable(held, run, settling)
            } else {
                let count = batch.len();
                desk.begin(held, first.queue_offset(), now, settling);
                self.consume(held, run, count, &mut context, settling)
            };
            if let Some(end) = end {
                return end;
            }
            if settling.is_due() {
                self.ledger.settle(held, settling);
            }
        }
    }

    /// One call of the listener, and what follows from its answer; `Some` ends the run.
    fn consume(
        &self,
        held: &Arc<HeldQueue>,
        run: &mut Run<MessageExt>,
        count: usize,
        context: &mut ConsumeOrderlyContext,
        settling: &mut Settling,
    ) -> Option<RunEnd> {
        context.reset();
        let batch = run.next(count);
        let observer = &self.ledger.observer;
        observer.before(&held.queue, batch);
        let began = Instant::now();
        let answer = contain(|| self.listener.consume(batch, context));
        let took = began.elapsed();
        let has_panicked = answer.is_err();
        let status = answer.unwrap_or_else(|panic| {
            log::error!("the listener panicked at {}; it is suspended: {panic}", Named(&batch[0]));
            context.reset();
            ConsumeOrderlyStatus::SuspendCurrentQueueAMoment
        });
        let verdict = verdict(status, context.is_auto_commit());
        let suspend = context.suspend().unwrap_or(self.suspend);
        let is_handled = matches!(verdict, Verdict::Commit | Verdict::Keep);
        let returned = match is_handled {
            _ if has_panicked => ConsumeReturn::Panicked,
            true => ConsumeReturn::Success,
            false => ConsumeReturn::Failed,
        };
        let outcome = ConsumeOutcome { returned, failed: if is_handled { 0 } else { count }, took };
        observer.after(&held.queue, batch, &outcome);
        settling.count(count, &outcome);
        for message in run.answer(count, verdict) {
            settling.add(message);
        }
        if is_handled {
            return None;
        }
        if verdict == Verdict::Suspend {
            match self.give_up_exhausted(held, run, count, settling) {
                None => return Some(RunEnd::Over),
                Some(0) => return None,
                Some(left) => run.count_tries(left),
            }
        }
        Some(RunEnd::Suspended(Instant::now() + suspend))
    }

    /// Messages that were failed as often as they may be become dead letters, one by one. Returns how many of the call's
    /// messages stay, since they have tries left or could not be stored elsewhere; `None`: they are not ours any more.
    fn give_up_exhausted(
        &self,
        held: &Arc<HeldQueue>,
        run: &mut Run<MessageExt>,
        count: usize,
        settling: &mut Settling,
    ) -> Option<usize> {
        let mut left = count;
        // From behind: taking one out moves those behind it.
        for index in run.exhausted(count, self.reconsume_limit).into_iter().rev() {
            match self.send_back.settle(held, run.message(index), TO_DEAD_LETTERS) {
                Settled::Elsewhere => {
                    let message = run.take_out(index);
                    log::warn!(
                        "{} was failed {} times, it is a dead letter now",
                        Named(&message),
                        message.reconsume_times()
                    );
                    settling.add(&message);
                    left -= 1;
                }
                Settled::Kept => {}
                Settled::Abandoned => return None,
            }
        }
        Some(left)
    }

    /// The next message becomes a dead letter unseen. One that cannot be stored elsewhere stays, and is tried again.
    fn bury_unreadable(
        &self,
        held: &Arc<HeldQueue>,
        run: &mut Run<MessageExt>,
        settling: &mut Settling,
    ) -> Option<RunEnd> {
        let at = run.position();
        match self.send_back.bury_unreadable(held, run.message(at), self.events.as_ref()) {
            Settled::Elsewhere => {
                settling.add(&run.take_out(at));
                None
            }
            Settled::Kept => Some(RunEnd::Suspended(Instant::now() + KEPT_FOR)),
            Settled::Abandoned => Some(RunEnd::Over),
        }
    }
}

/// What an answer means. With automatic commit nothing is ever uncommitted, so a rollback is about the call's own
/// messages.
fn verdict(status: ConsumeOrderlyStatus, auto_commit: bool) -> Verdict {
    match status {
        ConsumeOrderlyStatus::Success if !auto_commit => Verdict::Keep,
        ConsumeOrderlyStatus::Success | ConsumeOrderlyStatus::Commit => Verdict::Commit,
        ConsumeOrderlyStatus::Rollback => Verdict::RollBack,
        ConsumeOrderlyStatus::SuspendCurrentQueueAMoment => Verdict::Suspend,
    }
}
