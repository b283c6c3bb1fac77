//! What other threads may ask of the reactor.

use super::call::Call;
use super::dispatcher::Resolved;
use super::wire::Frame;
use crate::time::Deadline;
use std::sync::Arc;

/// Identifies a connection of one reactor; never used twice.
pub(crate) type ConnectionId = usize;

pub(crate) enum Op {
    /// A call to its address, over the connection there is or one to be dialled.
    Call { call: Box<Call> },
    /// A call over one given connection.
    CallOn { connection: ConnectionId, call: Box<Call> },
    /// A one-way request to an address.
    SendTo { address: Arc<str>, frame: Frame },
    /// A frame for one given connection, its bytes already counted in the connection's queue.
    Send { connection: ConnectionId, frame: Frame },
    /// As `Send`, then write what the socket takes at once, and close.
    SendLast { connection: ConnectionId, frame: Frame },
    /// Close a connection, for this reason.
    Close { connection: ConnectionId, reason: &'static str },
    /// Close the connection to an address and forget the address.
    CloseAddress { address: Arc<str> },
    /// The addresses of a host name, or why there are none.
    Resolved { address: Arc<str>, outcome: Resolved },
    /// The hooks for a new connection have run.
    Greeted { connection: ConnectionId },
    /// Fail all calls, write what is queued until the deadline at most, end.
    Shutdown { deadline: Deadline },
}
