//! What answers the requests of peers.

use super::connection::ConnectionHandle;
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};

/// Answers requests that come in on a connection: a broker's to its clients, a client's to a server.
///
/// It runs on the pool of the client or server, or on the I/O thread itself when a server was started with
/// [`Dispatch::Inline`](super::Dispatch::Inline); then it must not block. A panic is contained and answered with code 1.
pub trait RequestProcessor: Send + Sync + 'static {
    /// Handles one request. `Some` is the answer, whose opaque and flag are set on the way out; it is dropped when the
    /// request was one-way. `None` means that the answer comes later through [`ConnectionHandle::send`], or never.
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand>;

    /// Whether requests of this code are served at all. Others are answered with code 3 and never reach
    /// [`process`](Self::process). By default all are.
    fn accepts(&self, code: RequestCode) -> bool {
        let _ = code;
        true
    }

    /// A connection is open. Comes before its first request is processed when the processor runs on the I/O thread.
    fn connected(&self, connection: &ConnectionHandle) {
        let _ = connection;
    }

    /// A connection that was open is gone. Comes once for each [`connected`](Self::connected).
    fn disconnected(&self, connection: &ConnectionHandle) {
        let _ = connection;
    }
}

/// Serves nothing: every request is answered with code 3.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRequests;

impl RequestProcessor for NoRequests {
    fn process(&self, _: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        Some(unsupported(request.request_code()))
    }

    fn accepts(&self, _: RequestCode) -> bool {
        false
    }
}

/// The answer to a request whose code is not served.
pub fn unsupported(code: RequestCode) -> RemotingCommand {
    let remark = format!(" request type {} not supported", code.value());
    RemotingCommand::response(ResponseCode::REQUEST_CODE_NOT_SUPPORTED, Some(remark))
}

/// The answer to a request whose processor panicked.
pub(crate) fn failed(panic: &str) -> RemotingCommand {
    RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(format!("the request processor failed: {panic}")))
}

/// The answer to a request that found the queue of the pool full.
pub(crate) fn overloaded() -> RemotingCommand {
    let remark = "[OVERLOAD]the queue of requests is full, try again later".to_owned();
    RemotingCommand::response(ResponseCode::SYSTEM_BUSY, Some(remark))
}
