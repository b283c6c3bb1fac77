//! One call, from the caller's thread through the tables of the reactor to its outcome.

use super::completion::{Completion, Outcome, Permit, Slot, refuse};
use super::dispatcher::Dispatcher;
use super::handle::ReactorHandle;
use super::op::ConnectionId;
use super::timers::TimerKey;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{RemotingCommand, new_opaque};
use crate::time::Deadline;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Call {
    /// Kept until the answer is there: a peer that goes away wants it sent again elsewhere.
    pub(crate) command: RemotingCommand,
    /// The encoded head, until it is queued on a connection.
    pub(crate) head: Option<Vec<u8>>,
    pub(crate) completion: Completion,
    pub(crate) deadline: Deadline,
    /// What the caller allowed, for the texts of errors.
    pub(crate) timeout: Duration,
    /// The address, unless the call belongs to one given connection.
    pub(crate) address: Option<Arc<str>>,
    pub(crate) place: Place,
    /// Whether it was sent a second time because the first peer goes away.
    pub(crate) moved: bool,
    pub(crate) timer: Option<TimerKey>,
}

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Waits for a connection to its address.
    Waiting,
    /// Waits until the hooks of this connection have run.
    Held(ConnectionId),
    /// Queued or written on this connection, since then.
    Sent(ConnectionId, Instant),
}

impl Place {
    pub(crate) fn connection(self) -> Option<ConnectionId> {
        match self {
            Self::Waiting => None,
            Self::Held(connection) | Self::Sent(connection, _) => Some(connection),
        }
    }
}

impl Call {
    /// A call whose outcome wakes a thread that waits at the slot returned.
    pub(crate) fn blocking(
        reactor: &ReactorHandle,
        address: &Arc<str>,
        command: RemotingCommand,
        timeout: Duration,
    ) -> Result<(Box<Self>, Arc<Slot>)> {
        let (command, head, permit) = prepare(reactor, command)?;
        let slot = Slot::new();
        let completion = Completion::to_thread(Arc::clone(&slot), permit);
        Ok((Self::new(command, head, completion, timeout, Some(Arc::clone(address))), slot))
    }

    /// A call whose outcome goes to a callback, also when it is an error found here; then there is no call.
    pub(crate) fn with_callback(
        reactor: &ReactorHandle,
        dispatcher: &Dispatcher,
        address: Option<&Arc<str>>,
        command: RemotingCommand,
        timeout: Duration,
        callback: Box<dyn FnOnce(Outcome) + Send>,
    ) -> Option<Box<Self>> {
        match prepare(reactor, command) {
            Ok((command, head, permit)) => {
                let completion = Completion::to_callback(callback, permit);
                Some(Self::new(command, head, completion, timeout, address.map(Arc::clone)))
            }
            Err(error) => {
                let error = match address {
                    Some(address) => error.with_address(&**address),
                    None => error,
                };
                refuse(callback, error, dispatcher);
                None
            }
        }
    }

    fn new(
        command: RemotingCommand,
        head: Vec<u8>,
        completion: Completion,
        timeout: Duration,
        address: Option<Arc<str>>,
    ) -> Box<Self> {
        Box::new(Self {
            command,
            head: Some(head),
            completion,
            deadline: Deadline::after(timeout),
            timeout,
            address,
            place: Place::Waiting,
            moved: false,
            timer: None,
        })
    }
}

/// Encodes a call's head, under an opaque that no other call has, and takes a permit for it.
fn prepare(reactor: &ReactorHandle, mut command: RemotingCommand) -> Result<(RemotingCommand, Vec<u8>, Permit)> {
    if command.is_response() || command.is_oneway() {
        return Err(Error::new(ErrorKind::State, "a call that waits for an answer is neither a response nor one-way"));
    }
    if reactor.is_closed() {
        return Err(closed());
    }
    command.opaque = new_opaque();
    let head = encode(&command, reactor.config.max_frame)?;
    let permit = Permit::take(&reactor.counters, reactor.config.max_pending)?;
    Ok((command, head, permit))
}

/// Encodes a frame up to its body.
///
/// # Errors
/// [`ErrorKind::MessageIllegal`] when the frame would be larger than peers take.
pub(crate) fn encode(command: &RemotingCommand, max_frame: usize) -> Result<Vec<u8>> {
    let mut head = Vec::with_capacity(512);
    command.encode_head(&mut head);
    let size = head.len() + command.body.len();
    if size > max_frame {
        return Err(Error::new(
            ErrorKind::MessageIllegal,
            format!("{} makes a frame of {size} bytes, over the limit of {max_frame}", describe(command)),
        ));
    }
    Ok(head)
}

/// The name of what is sent, for texts.
pub(crate) fn describe(command: &RemotingCommand) -> String {
    if command.is_response() {
        format!("the answer {:?}", command.response_code())
    } else {
        format!("{:?}", command.request_code())
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::State, "the client or server was shut down")
}
