//! `ConcurrentConsumeService`: the worker pool that hands pulled messages to the listener.
//!
//! A pulled list is one unit of work with a cursor. A worker that takes it passes it on to the next idle worker before
//! it starts, so that slow listeners soon have all workers busy on it, while a fast one is done before the second
//! wakes; nothing is queued or locked for each message. Results are settled for many messages at a time.
//!
//! `seat` shows what each worker is at, `gate` limits a topic, `overdue` watches over the time-out.
//! Source of the rules: `ConsumeMessageConcurrentlyService` (02-consumer section 9).

mod gate;
mod overdue;
mod seat;

use super::crew::Crew;
use super::hooks::{ConsumeOutcome, ConsumeReturn, Observer};
use super::send_back::{KEPT_FOR, Named, SendBack, Settled};
use super::service::{Budget, ConsumeService, Ledger, Settling};
use crate::consumer::event::EventListener;
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::listener::{ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently};
use crate::error::Result;
use crate::instance::ClientInstance;
use crate::message::{MessageExt, topic};
use crate::protocol::body::{ConsumeMessageDirectlyResult, ConsumeResult};
use crate::sync::{Mutex, Rank};
use crate::thread::{JoinGuard, contain};
use crate::time::Deadline;
use crossbeam::channel::{Receiver, Sender, unbounded};
use gate::Gate;
use overdue::Overdue;
use seat::Seat;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A pulled list on its way through the workers.
struct Batch {
    held: Arc<HeldQueue>,
    messages: Vec<MessageExt>,
    cursor: AtomicUsize,
    gate: Option<Arc<Gate>>,
}

pub(crate) struct ConcurrentConsumeService {
    shared: Arc<Shared>,
}

struct Shared {
    listener: Arc<dyn MessageListenerConcurrently>,
    batch_size: usize,
    ledger: Ledger,
    instance: Arc<ClientInstance>,
    send_back: SendBack,
    events: Option<EventListener>,
    crew: Crew<Seat>,
    /// By topic; only those that are limited.
    gates: BTreeMap<String, Arc<Gate>>,
    overdue: Overdue,
    /// Unbounded by type; flow control bounds what is cached, and so what is queued.
    sender: Sender<Arc<Batch>>,
    receiver: Receiver<Arc<Batch>>,
    /// What came to a worker while its queue was suspended.
    set_aside: Mutex<Vec<Arc<Batch>>>,
}

/// What the service is built from.
pub(crate) struct Parts {
    pub(crate) instance: Arc<ClientInstance>,
    pub(crate) listener: Arc<dyn MessageListenerConcurrently>,
    pub(crate) send_back: SendBack,
    pub(crate) observer: Arc<Observer>,
    pub(crate) events: Option<EventListener>,
    pub(crate) threads: usize,
    pub(crate) topic_concurrency: BTreeMap<String, usize>,
    pub(crate) batch_size: usize,
    pub(crate) consume_timeout: Duration,
    pub(crate) total_bytes: u64,
}

impl ConcurrentConsumeService {
    pub(crate) fn start(parts: Parts) -> Result<Self> {
        let (sender, receiver) = unbounded();
        let gates = parts.topic_concurrency.into_iter().map(|(topic, limit)| (topic, Arc::new(Gate::new(limit))));
        let shared = Arc::new(Shared {
            listener: parts.listener,
            batch_size: parts.batch_size,
            ledger: Ledger {
                instance: parts.instance.clone(),
                budget: Budget::new(parts.total_bytes),
                observer: parts.observer,
            },
            instance: parts.instance,
            send_back: parts.send_back,
            events: parts.events,
            crew: Crew::new(),
            gates: gates.collect(),
            overdue: Overdue::new(parts.consume_timeout),
            sender,
            receiver,
            set_aside: Mutex::new(Rank::Leaf, Vec::new()),
        });
        let service = Self { shared };
        service.set_threads(parts.threads)?;
        Ok(service)
    }
}

impl Drop for ConcurrentConsumeService {
    /// A start that failed half-way leaves no worker behind.
    fn drop(&mut self) {
        self.shared.crew.join(Deadline::after(Duration::ZERO));
    }
}

impl ConsumeService for ConcurrentConsumeService {
    fn submit(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>) {
        self.shared.ledger.budget.take(&messages);
        self.shared.submit(held, messages);
    }

    fn has_room(&self) -> bool {
        self.shared.ledger.budget.has_room()
    }

    fn cached_bytes(&self) -> u64 {
        self.shared.ledger.budget.used()
    }

    fn go_on(&self, held: &Arc<HeldQueue>) {
        for batch in self.shared.take_aside(held) {
            let _ = self.shared.sender.send(batch);
        }
    }

    fn forget(&self, held: &HeldQueue, bytes: u64) {
        drop(self.shared.take_aside(held));
        self.shared.ledger.budget.give_back(bytes);
    }

    fn is_orderly(&self) -> bool {
        false
    }

    fn threads(&self) -> usize {
        self.shared.crew.wanted()
    }

    fn set_threads(&self, threads: usize) -> Result<()> {
        self.shared.crew.resize(threads, |seat| {
            let shared = self.shared.clone();
            JoinGuard::spawn(&format!("rmq-use-{}", seat.place.number), move || shared.work(&seat))
        })
    }

    fn settle_finished(&self) {
        self.shared.settle_finished();
    }

    fn activities(&self) -> Vec<String> {
        let now = Instant::now();
        let running = |seat: &Arc<Seat>| {
            let (_, call) = seat.running(now)?;
            let first = &call.batch.messages[call.range.start];
            Some(format!(
                "rmq-use-{} is in the listener for {:.1} s with {} messages from offset {} of {}",
                seat.place.number,
                call.took.as_secs_f64(),
                call.range.len(),
                first.queue_offset(),
                call.batch.held.queue
            ))
        };
        self.shared.crew.seats().iter().filter_map(running).collect()
    }

    fn consume_directly(&self, message: MessageExt) -> ConsumeMessageDirectlyResult {
        let mut context = ConsumeConcurrentlyContext::new(message.message_queue().clone());
        let began = Instant::now();
        let status = contain(|| self.shared.listener.consume(std::slice::from_ref(&message), &mut context));
        let (consume_result, remark) = match status {
            Ok(status) if !context.is_failed(status, 0) => (ConsumeResult::Success, None),
            Ok(_) => (ConsumeResult::Later, None),
            Err(panic) => (ConsumeResult::ThrowException, Some(panic)),
        };
        let spent_time_mills = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        ConsumeMessageDirectlyResult { order: false, auto_commit: true, consume_result, remark, spent_time_mills }
    }

    fn join(&self, deadline: Deadline) -> bool {
        self.shared.crew.join(deadline)
    }
}

impl Shared {
    fn submit(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>) {
        if messages.is_empty() {
            return;
        }
        if self.gates.is_empty() || !topic::is_retry(held.queue.topic()) {
            return self.queue(held, messages);
        }
        // Messages that came again count for the topic they were sent to, so each topic gets a list of its own.
        let mut by_topic: BTreeMap<Arc<str>, Vec<MessageExt>> = BTreeMap::new();
        for message in messages {
            by_topic.entry(message.shared_topic().clone()).or_default().push(message);
        }
        for messages in by_topic.into_values() {
            self.queue(held.clone(), messages);
        }
    }

    fn queue(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>) {
        let _ = self.sender.send(self.batch(held, messages));
    }

    /// Messages of one topic.
    fn batch(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>) -> Arc<Batch> {
        let gate = messages.first().and_then(|message| self.gates.get(message.topic())).cloned();
        Arc::new(Batch { held, messages, cursor: AtomicUsize::new(0), gate })
    }

    fn work(self: &Arc<Self>, seat: &Seat) {
        let mut settling = Settling::default();
        while self.crew.keeps(&seat.place) {
            let Some(batch) = seat.place.next(&self.receiver) else { continue };
            if batch.gate.as_ref().is_some_and(|gate| !gate.enter(&batch)) {
                continue;
            }
            if batch.held.enter() {
                seat.take(Some(batch.clone()));
                self.overdue.watch(self);
                self.consume(seat, &batch, &mut settling);
                self.settle(seat, &batch, &mut settling);
                seat.take(None);
                batch.held.leave();
            }
            if let Some(next) = batch.gate.as_ref().and_then(|gate| gate.leave()) {
                let _ = self.sender.send(next);
            }
        }
    }

    /// Works on a list until it is used up.
    fn consume(&self, seat: &Seat, batch: &Arc<Batch>, settling: &mut Settling) {
        let mut context = ConsumeConcurrentlyContext::new(batch.held.queue.clone());
        let mut passed_on = false;
        settling.begin(Instant::now());
        loop {
            if batch.held.is_suspended() && self.put_aside(batch) {
                return;
            }
            let Some(range) = batch.next(self.batch_size) else { return };
            let messages = &batch.messages[range.clone()];
            let (first, last) = (messages[0].queue_offset(), messages[messages.len() - 1].queue_offset());
            if !batch.held.may_hand_out(first, last) {
                return;
            }
            let has_more = range.end < batch.messages.len();
            if !passed_on && has_more {
                let _ = self.sender.send(batch.clone());
                passed_on = true;
            }
            self.consume_chunk(seat, batch, range, &mut context, settling);
            if settling.is_due() {
                self.settle(seat, batch, settling);
            } else {
                seat.show(settling.finished());
            }
            if !self.crew.wants(&seat.place) {
                // The worker that it was passed to may have left as well.
                if has_more {
                    let _ = self.sender.send(batch.clone());
                }
                return;
            }
        }
    }

    /// Keeps a list until its queue is resumed; `false` when it is by now. The question is asked under the lock of those
    /// kept, so that who resumes the queue, and then looks here, misses none.
    fn put_aside(&self, batch: &Arc<Batch>) -> bool {
        let mut set_aside = self.set_aside.lock();
        if !batch.held.is_suspended() {
            return false;
        }
        let is_over = batch.held.phase() == QueuePhase::Released;
        if !is_over && !set_aside.iter().any(|kept| Arc::ptr_eq(kept, batch)) {
            set_aside.push(batch.clone());
        }
        true
    }

    fn take_aside(&self, held: &HeldQueue) -> Vec<Arc<Batch>> {
        let mut set_aside = self.set_aside.lock();
        let (taken, kept) = set_aside.drain(..).partition(|batch| std::ptr::eq(&*batch.held, held));
        *set_aside = kept;
        taken
    }

    /// One call of the listener, and what follows from its answer.
    fn consume_chunk(
        &self,
        seat: &Seat,
        batch: &Arc<Batch>,
        range: Range<usize>,
        context: &mut ConsumeConcurrentlyContext,
        settling: &mut Settling,
    ) {
        let (held, messages) = (&batch.held, &batch.messages[range.clone()]);
        // Bodies that do not inflate are never shown to a listener; they part the chunk.
        if let Some(bad) = messages.iter().position(|message| message.body_error().is_some()) {
            let bad = range.start + bad;
            self.consume_chunk(seat, batch, range.start..bad, context, settling);
            self.dead_letter(held, &batch.messages[bad], settling);
            self.settle(seat, batch, settling);
            return self.consume_chunk(seat, batch, bad + 1..range.end, context, settling);
        }
        if messages.is_empty() {
            return;
        }
        context.reset();
        // The end of the last call is the beginning of this one, unless something took time in between.
        let has_hooks = self.ledger.observer.before(&held.queue, messages);
        let began = if has_hooks { Instant::now() } else { settling.now() };
        seat.begin(&range, began);
        let answer = contain(|| self.listener.consume(messages, context));
        let was_in_time = seat.end();
        let ended = Instant::now();
        settling.set_now(ended);
        let took = ended.saturating_duration_since(began);
        let has_panicked = answer.is_err();
        let status = answer.unwrap_or_else(|panic| {
            log::error!("the listener panicked at {}; it counts as failed: {panic}", Named(&messages[0]));
            context.reset();
            ConsumeConcurrentlyStatus::ReconsumeLater
        });
        let failed = match was_in_time {
            true => (0..messages.len()).filter(|index| context.is_failed(status, *index)).count(),
            false => messages.len(),
        };
        let returned = match failed {
            _ if !was_in_time => ConsumeReturn::TimedOut,
            _ if has_panicked => ConsumeReturn::Panicked,
            0 => ConsumeReturn::Success,
            _ => ConsumeReturn::Failed,
        };
        let outcome = ConsumeOutcome { returned, failed, took };
        self.ledger.observer.after(&held.queue, messages, &outcome);
        if !was_in_time {
            // Counted and settled when the time was up.
            log::warn!("the listener returned from {} after {took:?}; its answer is ignored", Named(&messages[0]));
            settling.count(0, &ConsumeOutcome { failed: 0, ..outcome });
            return;
        }
        settling.count(messages.len(), &outcome);
        if failed == 0 {
            return messages.iter().for_each(|message| settling.add(message));
        }
        self.settle_some(
            held,
            messages,
            |index| context.is_failed(status, index).then(|| context.delay_level(index)),
            settling,
        );
    }

    /// Settles messages of which some failed; `delay_level` is `None` for those that did not.
    fn settle_some(
        &self,
        held: &Arc<HeldQueue>,
        messages: &[MessageExt],
        delay_level: impl Fn(usize) -> Option<i32>,
        settling: &mut Settling,
    ) {
        let mut kept = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let Some(level) = delay_level(index) else {
                settling.add(message);
                continue;
            };
            match self.send_back.settle(held, message, level) {
                Settled::Elsewhere => settling.add(message),
                Settled::Kept => {
                    let mut again = message.clone();
                    again.set_reconsume_times(message.reconsume_times().saturating_add(1));
                    kept.push(again);
                }
                Settled::Abandoned => {}
            }
        }
        self.offer_again(held, kept);
        // Requests may have taken a while.
        settling.set_now(Instant::now());
    }

    fn settle_finished(&self) {
        for seat in self.crew.seats() {
            if let Some((batch, offsets)) = seat.pending() {
                self.ledger.settle(&batch.held, &mut Settling::of(offsets));
            }
        }
    }

    fn settle(&self, seat: &Seat, batch: &Batch, settling: &mut Settling) {
        self.ledger.settle(&batch.held, settling);
        seat.clear();
    }

    fn dead_letter(&self, held: &Arc<HeldQueue>, message: &MessageExt, settling: &mut Settling) {
        match self.send_back.bury_unreadable(held, message, self.events.as_ref()) {
            Settled::Elsewhere => settling.add(message),
            Settled::Kept => self.offer_again(held, vec![message.clone()]),
            Settled::Abandoned => {}
        }
        settling.set_now(Instant::now());
    }

    /// Messages that could be stored nowhere come to the listener again. They are still unfinished in the process
    /// queue, so the offset cannot pass them.
    fn offer_again(&self, held: &Arc<HeldQueue>, messages: Vec<MessageExt>) {
        if messages.is_empty() {
            return;
        }
        let batch = self.batch(held.clone(), messages);
        let sender = self.sender.clone();
        self.instance.executor().hand_over_after(KEPT_FOR, move || {
            let _ = sender.send(batch);
        });
    }
}

impl Batch {
    fn next(&self, size: usize) -> Option<Range<usize>> {
        let start = self.cursor.fetch_add(size, Ordering::Relaxed);
        (start < self.messages.len()).then(|| start..(start + size).min(self.messages.len()))
    }
}
