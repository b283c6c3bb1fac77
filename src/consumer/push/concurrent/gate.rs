//! Concurrency of a topic: so many workers at most are in its messages, and those that find it full go on with others.

use super::Batch;
use crate::sync::{Mutex, Rank};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) struct Gate {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    inside: usize,
    /// Batches that found it full; not empty only while somebody is inside, who takes the first along on leaving.
    waiting: VecDeque<Arc<Batch>>,
}

impl Gate {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::new(Rank::Leaf, State::default()) }
    }

    /// Whether the worker may go in with the batch; else the batch waits here.
    pub(super) fn enter(&self, batch: &Arc<Batch>) -> bool {
        let mut state = self.state.lock();
        let has_room = state.inside < self.limit;
        if has_room {
            state.inside += 1;
        } else {
            state.waiting.push_back(batch.clone());
        }
        has_room
    }

    /// The worker goes out; the batch that may be worked on instead, to be queued again.
    pub(super) fn leave(&self) -> Option<Arc<Batch>> {
        let mut state = self.state.lock();
        state.inside -= 1;
        state.waiting.pop_front()
    }
}
