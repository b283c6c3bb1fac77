//! `mqcat consume`: joins a group and prints each message.

use crate::common::stop_signals;
use crate::consume_options::{self, ConsumeOptions, Mode};
use crate::events::{Started, Stopped};
use crate::failure::Failure;
use crate::printer::{Printer, QueueLines, Wish};
use crossbeam::channel::{Receiver, Sender, after, bounded, never, select};
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeOrderlyContext, ConsumerEvent, MessageExt, PushConsumer, PushConsumerBuilder,
    QueuePhase, ShutdownReport,
};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a stop waits for listener calls that are under way.
const DRAIN: Duration = Duration::from_secs(30);

pub fn run(parser: &mut lexopt::Parser) -> Result<(), Failure> {
    let Some(options) = consume_options::parse(parser)? else {
        print!("{}", consume_options::HELP);
        return Ok(());
    };
    let signals = stop_signals().map_err(|error| Failure::Failed(format!("signals: {error}")))?;
    let (wish, wishes) = bounded(1);
    let member = Running::start(&options, None, wish)?;
    let reason = wait(&options, &signals, &wishes);
    let report = member.stop(&reason);
    match reason {
        Reason::Wish(Wish::OutputFailed(error)) => Err(Failure::Failed(format!("standard output: {error}"))),
        _ if !report.is_clean() => Err(Failure::Failed(format!(
            "the stop left {} messages unfinished and {} uncommitted, which come again",
            report.unfinished(),
            report.uncommitted()
        ))),
        _ => Ok(()),
    }
}

/// A member of a group at work.
pub struct Running {
    consumer: PushConsumer,
    printer: Arc<Printer>,
}

impl Running {
    /// Joins the group; `member` names it where the process has several.
    pub fn start(options: &ConsumeOptions, member: Option<&str>, wish: Sender<Wish>) -> Result<Self, Failure> {
        let printer = Arc::new(Printer::new(options, member, wish));
        let consumer = builder(options, &printer)?.start().map_err(|error| {
            Failure::refused(error, options.items.iter().map(|(option, item, _)| (*option, item.as_str())))
        })?;
        let started = Started { event: "started", group: &options.group, client_id: consumer.client_id() };
        printer.note(&started, |event| format!("started as {} in group {}", event.client_id, event.group));
        printer.open();
        Ok(Self { consumer, printer })
    }

    /// Leaves the group and reports it.
    pub fn stop(&self, reason: &Reason) -> ShutdownReport {
        let report = self.leave();
        let stopped = Stopped {
            event: "stopped",
            reason: reason.name(),
            consumed: report.consumed(),
            uncommitted: report.uncommitted(),
            unfinished: report.unfinished(),
            committed: report.committed(),
        };
        self.printer.note(&stopped, |event| {
            format!("stopped ({}): consumed {}, left uncommitted {}", event.reason, event.consumed, event.uncommitted)
        });
        report
    }

    /// Stops the consumer, and lets listener calls that wait for the stop go on as soon as no others follow them.
    fn leave(&self) -> ShutdownReport {
        let consumer = &self.consumer;
        thread::scope(|scope| {
            let stop = scope.spawn(|| consumer.shutdown(DRAIN));
            while !stop.is_finished() && consumer.assignment().iter().any(|queue| queue.phase() < QueuePhase::Draining)
            {
                thread::sleep(Duration::from_millis(1));
            }
            self.printer.stopping();
            stop.join().unwrap_or_default()
        })
    }
}

/// Why it stops.
pub enum Reason {
    Signal,
    /// Standard input says so.
    Command,
    Duration,
    Wish(Wish),
}

impl Reason {
    fn name(&self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Command => "command",
            Self::Duration => "duration",
            Self::Wish(Wish::CountReached) => "count",
            Self::Wish(Wish::OutputFailed(_)) => "error",
        }
    }
}

fn wait(options: &ConsumeOptions, signals: &Receiver<i32>, wishes: &Receiver<Wish>) -> Reason {
    let time_is_up = options.duration.map_or_else(never, after);
    select! {
        recv(signals) -> _ => Reason::Signal,
        recv(time_is_up) -> _ => Reason::Duration,
        recv(wishes) -> wish => wish.map_or(Reason::Signal, Reason::Wish),
    }
}

fn builder(options: &ConsumeOptions, printer: &Arc<Printer>) -> Result<PushConsumerBuilder, Failure> {
    let mut builder = PushConsumer::builder(&options.group).name_servers(options.name_servers.as_str());
    for (topic, selector) in &options.subscriptions {
        builder = builder.subscribe(topic.as_str(), selector.clone());
    }
    for (option, key, value) in &options.items {
        builder = builder.set(key, value).map_err(|error| Failure::option(option, error))?;
    }
    let (of_messages, of_problems) = (Arc::clone(printer), Arc::clone(printer));
    builder = match options.mode {
        Mode::Concurrent => {
            builder.listener(move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                of_messages.consume(messages, context)
            })
        }
        mode => builder.order_by_key(mode == Mode::ByKey).listener_orderly(
            move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| of_messages.consume_in_order(messages),
        ),
    };
    Ok(builder
        .consume_from(options.from)
        .allocate_strategy(options.settings.strategy(&options.strategy)?)
        .rebalance_listener(QueueLines(Arc::clone(printer)))
        .event_listener(move |event: &ConsumerEvent| of_problems.problem(event)))
}
