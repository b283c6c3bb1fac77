//! What a handler wants sent, done after it has given the broker's lock up.

use super::filter::READ_BUDGET;
use crate::embedded::fault::{FaultTable, Place};
use crate::error::Result;
use crate::protocol::RemotingCommand;
use crate::remoting::ConnectionHandle;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

type Callback = Box<dyn FnOnce(Result<RemotingCommand>) + Send>;

enum Effect {
    Send(ConnectionHandle, RemotingCommand),
    Invoke(ConnectionHandle, RemotingCommand, Duration, Callback),
    Close(ConnectionHandle),
}

/// Things to send, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    effects: Vec<Effect>,
    /// Work done so far for others than who asked, such as pulls that wait, in comparisons; see
    /// [`is_spent`](Self::is_spent).
    pub(super) spent: usize,
}

impl Outbox {
    /// Whether so much was done, or is to be sent, under one hold of the lock that the rest is the clock's.
    pub(super) fn is_spent(&self) -> bool {
        self.spent > READ_BUDGET
    }

    /// Sends a one-way request or an answer.
    pub(crate) fn send(&mut self, to: &ConnectionHandle, command: RemotingCommand) {
        self.effects.push(Effect::Send(to.clone(), command));
    }

    /// Asks a client; `done` gets its answer on another thread and must not take the broker's lock for long.
    pub(crate) fn invoke(
        &mut self,
        to: &ConnectionHandle,
        command: RemotingCommand,
        timeout: Duration,
        done: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        self.effects.push(Effect::Invoke(to.clone(), command, timeout, Box::new(done)));
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, connection: &ConnectionHandle) {
        self.effects.push(Effect::Close(connection.clone()));
    }

    /// Does it all, through the faults of the cluster. No lock may be held.
    pub(crate) fn flush(self, faults: &Arc<FaultTable>, place: &Place) {
        for effect in self.effects {
            match effect {
                Effect::Send(to, command) => faults.deliver(place, &to, command),
                Effect::Invoke(to, command, timeout, done) => to.invoke_async(command, timeout, done),
                Effect::Close(connection) => connection.close(),
            }
        }
    }
}

/// Sends without caring whether the peer is still there: who is gone needs nothing, and its close event tells the rest.
pub(crate) fn deliver(to: &ConnectionHandle, command: RemotingCommand) {
    if let Err(error) = to.send(command) {
        log::debug!("embedded broker: {} is gone: {error}", to.peer_addr());
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbox({} effects)", self.effects.len())
    }
}
