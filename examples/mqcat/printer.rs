//! The listeners of `mqcat consume`: they print, and decide what becomes of each message.

use crate::consume_options::{ConsumeOptions, Failing};
use crate::events::{Decision, OfMember, Problem, Rebalanced, Received};
use crate::output::Output;
use crossbeam::channel::Sender;
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, ConsumerEvent, MessageExt,
    MessageQueue, RebalanceEvent, RebalanceListener,
};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

/// Why a listener wants the program to stop.
pub enum Wish {
    /// As many messages as asked for were printed.
    CountReached,
    /// Standard output is gone.
    OutputFailed(io::Error),
}

/// One printer for all threads of the consumer.
pub struct Printer {
    output: Output,
    /// Named in each event where the process has several members.
    member: Option<String>,
    failing: Failing,
    work: Duration,
    count: u64,
    /// Messages that listener calls have begun with.
    delivered: AtomicU64,
    /// First deliveries so far, of which every Nth fails on purpose.
    first_deliveries: AtomicU64,
    wishes: Sender<Wish>,
    /// Set once `started` is written; until then the library's threads wait with what they have to print.
    open: OnceLock<()>,
    /// Set once the consumer hands out nothing more. A listener call that printed the last message asked for, came
    /// after it, or cannot print, waits for it, so that no call follows.
    stopping: OnceLock<()>,
}

impl Printer {
    pub fn new(options: &ConsumeOptions, member: Option<&str>, wishes: Sender<Wish>) -> Self {
        Self {
            output: options.output,
            member: member.map(str::to_owned),
            failing: options.failing,
            work: options.work,
            count: options.count.unwrap_or(u64::MAX),
            delivered: AtomicU64::new(0),
            first_deliveries: AtomicU64::new(0),
            wishes,
            open: OnceLock::new(),
            stopping: OnceLock::new(),
        }
    }

    /// Lets the library's threads print.
    pub fn open(&self) {
        self.open.get_or_init(|| ());
    }

    /// Lets listener calls go on that wait for the stop.
    pub fn stopping(&self) {
        self.stopping.get_or_init(|| ());
    }

    /// Writes an event, in text form to standard error, because it is no data.
    pub fn note<E: Serialize>(&self, event: &E, text: impl FnOnce(&E) -> String) {
        self.write(event, |event| {
            eprintln!("mqcat consume: {}", text(event));
            None
        });
    }

    /// Writes an event; whether that went well.
    fn write<E: Serialize>(&self, event: &E, text: impl FnOnce(&E) -> Option<String>) -> bool {
        let written = match &self.member {
            None => self.output.write(event, text),
            Some(member) => self.output.write(&OfMember { event, member }, |of| text(of.event)),
        };
        if let Err(error) = written {
            // The first wish counts, so a full channel is fine.
            let _ = self.wishes.try_send(Wish::OutputFailed(error));
            return false;
        }
        true
    }

    pub fn problem(&self, event: &ConsumerEvent) {
        self.open.wait();
        self.note(&Problem { event: "problem", kind: event.kind(), text: event.to_string() }, |event| {
            format!("{}: {}", event.kind, event.text)
        });
    }

    fn rebalanced(&self, name: &'static str, event: &RebalanceEvent) {
        self.open.wait();
        let event = Rebalanced { event: name, queues: event.queues(), owned: event.owned() };
        self.note(&event, |event| format!("{name} {}; now {} queues", list(event.queues), event.owned));
    }

    /// The listener: prints the messages and says which of them come again.
    pub fn consume(
        &self,
        messages: &[MessageExt],
        context: &mut ConsumeConcurrentlyContext,
    ) -> ConsumeConcurrentlyStatus {
        for (index, message) in messages.iter().enumerate() {
            if !self.handle(message) {
                context.retry(index);
            }
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    }

    /// The same in order: the messages of a call fail together.
    pub fn consume_in_order(&self, messages: &[MessageExt]) -> ConsumeOrderlyStatus {
        match messages.iter().all(|message| self.handle(message)) {
            true => ConsumeOrderlyStatus::Success,
            false => ConsumeOrderlyStatus::SuspendCurrentQueueAMoment,
        }
    }

    /// Prints a message; whether it is handled by that, and does not come again.
    fn handle(&self, message: &MessageExt) -> bool {
        self.open.wait();
        let turn = self.delivered.fetch_add(1, Ordering::Relaxed) + 1;
        if turn > self.count {
            // Another worker has printed the last one: this message is for whoever comes next in the group.
            self.stopping.wait();
            return false;
        }
        thread::sleep(self.work);
        let decision = self.decide(message);
        let msg_id = message.msg_id();
        let printed = self.write(&Received::new(message, &msg_id, decision), |event| Some(line(message, event)));
        if !printed {
            self.stopping.wait();
        }
        if turn == self.count {
            let _ = self.wishes.try_send(Wish::CountReached);
            self.stopping.wait();
        }
        decision == Decision::Ok && printed
    }

    fn decide(&self, message: &MessageExt) -> Decision {
        let fails = match self.failing {
            Failing::Never => false,
            Failing::Always => true,
            Failing::Every(every) => {
                message.reconsume_times() == 0
                    && (self.first_deliveries.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
            }
        };
        if fails { Decision::Retry } else { Decision::Ok }
    }
}

/// Prints which queues come and go.
pub struct QueueLines(pub Arc<Printer>);

impl RebalanceListener for QueueLines {
    fn assigned(&self, event: &RebalanceEvent) {
        self.0.rebalanced("assigned", event);
    }

    fn revoked(&self, event: &RebalanceEvent) {
        self.0.rebalanced("revoked", event);
    }

    fn lost(&self, event: &RebalanceEvent) {
        self.0.rebalanced("lost", event);
    }
}

fn list(queues: &[MessageQueue]) -> String {
    queues.iter().map(MessageQueue::to_string).collect::<Vec<_>>().join(" ")
}

/// The line for people: where the message lies, what is set of tags, keys and retries, and its body.
fn line(message: &MessageExt, event: &Received<'_>) -> String {
    let mut line = format!("{}/{}/{}@{}", event.topic, event.broker, event.queue, event.offset);
    for (name, value) in [("tags", event.tags), ("keys", event.keys)] {
        if let Some(value) = value {
            line += &format!(" {name}={value}");
        }
    }
    if event.reconsume_times > 0 {
        line += &format!(" retry={}", event.reconsume_times);
    }
    if event.result == Decision::Retry {
        line += " (asks for a retry)";
    }
    line + " " + &body_text(message.body())
}

/// A body as one line: text as it is, anything else as its size.
fn body_text(body: &[u8]) -> String {
    const MOST: usize = 200;
    match std::str::from_utf8(body) {
        Ok(text) if !text.chars().any(char::is_control) => match text.char_indices().nth(MOST) {
            None => text.to_owned(),
            Some((end, _)) => format!("{}... ({} bytes)", &text[..end], body.len()),
        },
        _ => format!("({} bytes)", body.len()),
    }
}
