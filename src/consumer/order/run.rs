//! One worker's run through a lane: what goes to the listener next, and what follows from its answer. Pure.
//!
//! ```text
//!    0 ........ committed ........ at ........ end
//!      finished            handed out,    waiting
//!                          not committed
//! ```
//!
//! A call gets messages from `at` on. Success moves `at` behind them and, with automatic commit, `committed` too; a
//! commit moves `committed` to `at`; a rollback moves `at` back to `committed`; a suspension moves nothing. So messages
//! come again in the order they came in, and none is finished before those in front of it (field reports 46, 47). Source
//! of the rules: `ConsumeMessageOrderlyService.processConsumeResult` (02-consumer 10.4).

use std::ops::Range;

/// A message, as lanes see it.
pub(crate) trait Item {
    fn offset(&self) -> i64;
    /// What it is ordered by, if lanes are by key.
    fn key(&self) -> Option<&str>;
    /// How often a listener failed it.
    fn tries(&self) -> i32;
    fn set_tries(&mut self, tries: i32);
}

/// What the listener's answer means for the messages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Handled, and with them everything before them in the lane.
    Commit,
    /// Handled, but they count only with a later commit.
    Keep,
    /// These and all since the last commit come again.
    RollBack,
    /// These come again.
    Suspend,
}

/// The messages of a lane while a worker is in it.
#[derive(Debug)]
pub(crate) struct Run<T> {
    messages: Vec<T>,
    committed: usize,
    at: usize,
}

impl<T: Item> Run<T> {
    pub(super) fn new(messages: Vec<T>, uncommitted: usize) -> Self {
        Self { messages, committed: 0, at: uncommitted }
    }

    /// The messages of the next call, at most `size`; none when the run is through.
    pub(crate) fn next(&self, size: usize) -> &[T] {
        &self.messages[self.at..self.messages.len().min(self.at + size)]
    }

    /// The answer to a call with `count` messages. Returns those that are finished now.
    pub(crate) fn answer(&mut self, count: usize, verdict: Verdict) -> &[T] {
        let before = self.committed;
        match verdict {
            Verdict::Commit => {
                self.at += count;
                self.committed = self.at;
            }
            Verdict::Keep => self.at += count,
            Verdict::RollBack => self.at = self.committed,
            Verdict::Suspend => {}
        }
        &self.messages[before..self.committed]
    }

    /// Those of the call's `count` messages that were failed as often as they may be.
    pub(crate) fn exhausted(&self, count: usize, limit: i32) -> Vec<usize> {
        self.call(count).filter(|index| self.messages[*index].tries() >= limit).collect()
    }

    /// The call's messages were failed once more.
    pub(crate) fn count_tries(&mut self, count: usize) {
        for index in self.call(count) {
            let message = &mut self.messages[index];
            message.set_tries(message.tries().saturating_add(1));
        }
    }

    fn call(&self, count: usize) -> Range<usize> {
        self.at..self.messages.len().min(self.at + count)
    }

    pub(crate) fn message(&self, index: usize) -> &T {
        &self.messages[index]
    }

    /// The index of the next message to hand out.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// A message at or behind the position is stored elsewhere and no longer in the way.
    pub(crate) fn take_out(&mut self, index: usize) -> T {
        debug_assert!(index >= self.at, "what was handed out is taken out");
        self.messages.remove(index)
    }

    /// What is not finished, and how many of them were handed out.
    pub(super) fn rest(mut self) -> (Vec<T>, usize) {
        if self.committed == self.messages.len() {
            return (Vec::new(), 0);
        }
        self.messages.drain(..self.committed);
        (self.messages, self.at - self.committed)
    }
}
