//! `ConcurrentConsumeService`: the worker pool that hands pulled messages to the listener.
//!
//! A pulled list is one unit of work with a cursor. A worker that takes it passes it on to the next idle worker before
//! it starts, so that slow listeners soon have all workers busy on it, while a fast one is done before the second
//! wakes; nothing is queued or locked for each message. Results are settled for many messages at a time.
//! Source of the rules: `ConsumeMessageConcurrentlyService` (02-consumer section 9).

use super::hooks::{ConsumeOutcome, ConsumeReturn, Observer};
use super::send_back::{KEPT_FOR, Named, SendBack, Settled};
use super::service::{Budget, ConsumeService, Ledger, Settling};
use crate::consumer::event::EventListener;
use crate::consumer::held::HeldQueue;
use crate::consumer::listener::{ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, MessageListenerConcurrently};
use crate::consumer::process_queue::Limits;
use crate::error::Result;
use crate::instance::ClientInstance;
use crate::message::MessageExt;
use crate::protocol::body::{ConsumeMessageDirectlyResult, ConsumeResult};
use crate::thread::{JoinGuard, contain};
use crate::time::Deadline;
use crossbeam::channel::{Receiver, Sender, unbounded};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A pulled list on its way through the workers.
struct Batch {
    held: Arc<HeldQueue>,
    messages: Vec<MessageExt>,
    cursor: AtomicUsize,
}

enum Work {
    Batch(Arc<Batch>),
    Stop,
}

pub(crate) struct ConcurrentConsumeService {
    shared: Arc<Shared>,
    workers: Vec<JoinGuard>,
}

struct Shared {
    listener: Arc<dyn MessageListenerConcurrently>,
    batch_size: usize,
    ledger: Ledger,
    instance: Arc<ClientInstance>,
    send_back: SendBack,
    events: Option<EventListener>,
    /// Unbounded by type; flow control bounds what is cached, and so what is queued.
    sender: Sender<Work>,
    receiver: Receiver<Work>,
}

/// What the service is built from.
pub(crate) struct Parts {
    pub(crate) instance: Arc<ClientInstance>,
    pub(crate) listener: Arc<dyn MessageListenerConcurrently>,
    pub(crate) send_back: SendBack,
    pub(crate) observer: Arc<Observer>,
    pub(crate) events: Option<EventListener>,
    pub(crate) threads: usize,
    pub(crate) batch_size: usize,
    pub(crate) limits: Limits,
    pub(crate) total_bytes: u64,
}

impl ConcurrentConsumeService {
    pub(crate) fn start(parts: Parts) -> Result<Self> {
        let (sender, receiver) = unbounded();
        let shared = Arc::new(Shared {
            listener: parts.listener,
            batch_size: parts.batch_size,
            ledger: Ledger {
                instance: parts.instance.clone(),
                limits: parts.limits,
                budget: Budget::new(parts.total_bytes),
                observer: parts.observer,
            },
            instance: parts.instance,
            send_back: parts.send_back,
            events: parts.events,
            sender,
            receiver,
        });
        let mut workers = Vec::with_capacity(parts.threads);
        for number in 0..parts.threads {
            let shared = shared.clone();
            workers.push(JoinGuard::spawn(&format!("rmq-use-{number}"), move || shared.work())?);
        }
        Ok(Self { shared, workers })
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

    fn forget(&self, _: &HeldQueue, bytes: u64) {
        self.shared.ledger.budget.give_back(bytes);
    }

    fn is_orderly(&self) -> bool {
        false
    }

    fn threads(&self) -> usize {
        self.workers.len()
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
        for _ in &self.workers {
            let _ = self.shared.sender.send(Work::Stop);
        }
        // Each one is waited for, also behind one that is late.
        self.workers.iter().filter(|worker| !worker.join(deadline)).count() == 0
    }
}

impl Shared {
    fn submit(&self, held: Arc<HeldQueue>, messages: Vec<MessageExt>) {
        if messages.is_empty() {
            return;
        }
        let batch = Batch { held, messages, cursor: AtomicUsize::new(0) };
        let _ = self.sender.send(Work::Batch(Arc::new(batch)));
    }

    fn work(&self) {
        let mut settling = Settling::default();
        while let Ok(Work::Batch(batch)) = self.receiver.recv() {
            if batch.held.enter() {
                self.consume(&batch, &mut settling);
                self.ledger.settle(&batch.held, &mut settling);
                batch.held.leave();
            }
        }
    }

    /// Works on a list until it is used up.
    fn consume(&self, batch: &Arc<Batch>, settling: &mut Settling) {
        let mut context = ConsumeConcurrentlyContext::new(batch.held.queue.clone());
        let mut passed_on = false;
        while let Some(range) = batch.next(self.batch_size) {
            let messages = &batch.messages[range.clone()];
            let (first, last) = (messages[0].queue_offset(), messages[messages.len() - 1].queue_offset());
            if !batch.held.may_hand_out(first, last) {
                return;
            }
            if !passed_on && range.end < batch.messages.len() {
                let _ = self.sender.send(Work::Batch(batch.clone()));
                passed_on = true;
            }
            self.consume_chunk(&batch.held, messages, &mut context, settling);
            if settling.is_due() {
                self.ledger.settle(&batch.held, settling);
            }
        }
    }

    /// One call of the listener, and what follows from its answer.
    fn consume_chunk(
        &self,
        held: &Arc<HeldQueue>,
        messages: &[MessageExt],
        context: &mut ConsumeConcurrentlyContext,
        settling: &mut Settling,
    ) {
        // Bodies that do not inflate are never shown to a listener; they part the chunk.
        if let Some(bad) = messages.iter().position(|message| message.body_error().is_some()) {
            self.consume_chunk(held, &messages[..bad], context, settling);
            self.dead_letter(held, &messages[bad], settling);
            return self.consume_chunk(held, &messages[bad + 1..], context, settling);
        }
        if messages.is_empty() {
            return;
        }
        context.reset();
        let observer = &self.ledger.observer;
        observer.before(&held.queue, messages);
        let began = Instant::now();
        let answer = contain(|| self.listener.consume(messages, context));
        let took = began.elapsed();
        let has_panicked = answer.is_err();
        let status = answer.unwrap_or_else(|panic| {
            log::error!("the listener panicked at {}; it counts as failed: {panic}", Named(&messages[0]));
            context.reset();
            ConsumeConcurrentlyStatus::ReconsumeLater
        });
        let failed = (0..messages.len()).filter(|index| context.is_failed(status, *index)).count();
        let returned = match failed {
            _ if has_panicked => ConsumeReturn::Panicked,
            0 => ConsumeReturn::Success,
            _ => ConsumeReturn::Failed,
        };
        let outcome = ConsumeOutcome { returned, failed, took };
        observer.after(&held.queue, messages, &outcome);
        settling.count(messages.len(), &outcome);
        let mut kept = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            if !context.is_failed(status, index) {
                settling.add(message);
                continue;
            }
            match self.send_back.settle(held, message, context.delay_level(index)) {
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
    }

    fn dead_letter(&self, held: &Arc<HeldQueue>, message: &MessageExt, settling: &mut Settling) {
        match self.send_back.bury_unreadable(held, message, self.events.as_ref()) {
            Settled::Elsewhere => settling.add(message),
            Settled::Kept => self.offer_again(held, vec![message.clone()]),
            Settled::Abandoned => {}
        }
    }

    /// Messages that could be stored nowhere come to the listener again. They are still unfinished in the process
    /// queue, so the offset cannot pass them.
    fn offer_again(&self, held: &Arc<HeldQueue>, messages: Vec<MessageExt>) {
        if messages.is_empty() {
            return;
        }
        let batch = Arc::new(Batch { held: held.clone(), messages, cursor: AtomicUsize::new(0) });
        let sender = self.sender.clone();
        self.instance.executor().hand_over_after(KEPT_FOR, move || {
            let _ = sender.send(Work::Batch(batch));
        });
    }
}

impl Batch {
    fn next(&self, size: usize) -> Option<Range<usize>> {
        let start = self.cursor.fetch_add(size, Ordering::Relaxed);
        (start < self.messages.len()).then(|| start..(start + size).min(self.messages.len()))
    }
}
