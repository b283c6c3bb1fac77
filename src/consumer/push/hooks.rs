//! Hooks around each call of a listener, for tracing and metrics. Source: `ConsumeMessageHook` (02-consumer 15.6).

use super::stats::StatsTable;
use crate::message::{MessageExt, MessageQueue};
use crate::thread::contain;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Hears of each call of a listener, before and after it, on the worker's thread. A slow hook slows the consumer down. A
/// panic of a hook is caught and logged and changes nothing else. A message that a tool has the consumer handle directly
/// passes no hook.
#[doc(alias = "ConsumeMessageHook")]
pub trait ConsumeHook: Send + Sync + 'static {
    /// The listener is about to be called.
    fn before(&self, call: &ConsumeCall<'_>) {
        let _ = call;
    }

    /// The listener has returned, or panicked.
    fn after(&self, call: &ConsumeCall<'_>, outcome: &ConsumeOutcome) {
        let _ = (call, outcome);
    }
}

/// One call of a listener.
#[derive(Clone, Copy)]
pub struct ConsumeCall<'a> {
    pub(crate) group: &'a str,
    pub(crate) queue: &'a MessageQueue,
    pub(crate) messages: &'a [MessageExt],
}

impl ConsumeCall<'_> {
    /// The consumer group.
    pub fn group(&self) -> &str {
        self.group
    }

    /// The queue the messages were pulled from; for messages that came again, one of the group's retry topic.
    pub fn message_queue(&self) -> &MessageQueue {
        self.queue
    }

    /// What the listener gets; at least one.
    pub fn messages(&self) -> &[MessageExt] {
        self.messages
    }
}

impl fmt::Debug for ConsumeCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages of {} for group '{}'", self.messages.len(), self.queue, self.group)
    }
}

/// How a call of a listener ended. Source: `ConsumeReturnType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeReturn {
    /// It answered in time, and all messages are handled.
    Success,
    /// It answered in time, and some messages or all of them come again.
    Failed,
    /// Its messages were sent back when it had taken longer than `consume_timeout`; what it answered changes nothing.
    TimedOut,
    /// It panicked; all messages come again.
    Panicked,
}

/// What a call of a listener came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumeOutcome {
    pub(crate) returned: ConsumeReturn,
    pub(crate) failed: usize,
    pub(crate) took: Duration,
}

impl ConsumeOutcome {
    /// How it ended.
    pub fn returned(&self) -> ConsumeReturn {
        self.returned
    }

    /// How many of the messages come again.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// How long the listener ran.
    pub fn took(&self) -> Duration {
        self.took
    }
}

/// The hooks of a consumer, in the order in which they were given.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Vec<Arc<dyn ConsumeHook>>);

impl Hooks {
    pub(crate) fn add(&mut self, hook: impl ConsumeHook) {
        self.0.push(Arc::new(hook));
    }

    pub(crate) fn before(&self, call: &ConsumeCall<'_>) {
        self.each(|hook| hook.before(call));
    }

    pub(crate) fn after(&self, call: &ConsumeCall<'_>, outcome: &ConsumeOutcome) {
        self.each(|hook| hook.after(call, outcome));
    }

    fn each(&self, tell: impl Fn(&dyn ConsumeHook)) {
        for hook in &self.0 {
            if let Err(panic) = contain(|| tell(&**hook)) {
                log::error!("a consume hook panicked: {panic}");
            }
        }
    }
}

/// What sees each call of the listener: the hooks and the statistics of a consumer.
pub(crate) struct Observer {
    pub(crate) stats: StatsTable,
    group: Arc<str>,
    hooks: Hooks,
}

impl Observer {
    pub(crate) fn new(group: Arc<str>, hooks: Hooks) -> Self {
        Self { stats: StatsTable::new(), group, hooks }
    }

    /// Whether there are hooks, which have been told.
    pub(crate) fn before(&self, queue: &MessageQueue, messages: &[MessageExt]) -> bool {
        self.hooks.before(&ConsumeCall { group: &self.group, queue, messages });
        !self.hooks.0.is_empty()
    }

    pub(crate) fn after(&self, queue: &MessageQueue, messages: &[MessageExt], outcome: &ConsumeOutcome) {
        self.hooks.after(&ConsumeCall { group: &self.group, queue, messages }, outcome);
    }
}
