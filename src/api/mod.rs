//! One typed function for each remote call: build the request, tell a good answer from a bad one, read the answer.
//!
//! Nothing here decides where to send or whether to try again; [`retry`] says which failures deserve another try.

mod group;
mod lock;
mod name_server;
mod offset;
pub(crate) mod pull;
pub(crate) mod retry;
mod send;

pub(crate) use offset::StoredOffset;

use crate::config::ClientConfig;
use crate::error::{Error, Result};
use crate::protocol::{CommandHeader, LanguageCode, RemotingCommand, RequestCode, ResponseCode, SerializeType};
use crate::remoting::RemotingClient;
use crate::time::Deadline;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Api {
    remoting: RemotingClient,
    serialize_type: SerializeType,
    language: LanguageCode,
}

impl Api {
    pub(crate) fn new(remoting: RemotingClient, config: &ClientConfig) -> Self {
        Self { remoting, serialize_type: config.serialize_type(), language: LanguageCode(config.language) }
    }

    pub(crate) fn on_connected(&self, hook: impl Fn(&Arc<str>) + Send + Sync + 'static) {
        self.remoting.on_connected(hook);
    }

    pub(crate) fn shutdown(&self, deadline: Deadline) {
        self.remoting.shutdown(deadline);
    }

    fn request<'a, H: CommandHeader<'a>>(&self, code: RequestCode, header: &H) -> RemotingCommand {
        let mut request = RemotingCommand::request_in_form(self.serialize_type, code, header);
        request.language = self.language;
        request
    }

    fn bare_request(&self, code: RequestCode) -> RemotingCommand {
        let mut request = RemotingCommand::request_without_header(code);
        request.serialize_type = self.serialize_type;
        request.language = self.language;
        request
    }

    /// Sends and waits; an answer other than success is the error.
    fn call(&self, address: &Arc<str>, request: RemotingCommand, timeout: Duration) -> Result<RemotingCommand> {
        success(self.remoting.invoke(address, request, timeout)?, address)
    }

    /// Sends; the callback gets the answer, or the error, on a call thread.
    fn call_async(
        &self,
        address: &Arc<str>,
        request: RemotingCommand,
        timeout: Duration,
        done: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        let target = address.clone();
        self.remoting.invoke_async(address, request, timeout, move |answer| {
            done(answer.and_then(|answer| success(answer, &target)));
        });
    }
}

fn success(answer: RemotingCommand, address: &Arc<str>) -> Result<RemotingCommand> {
    if answer.response_code() == ResponseCode::SUCCESS { Ok(answer) } else { Err(refused(answer, address)) }
}

/// The error for an answer whose code is not a success of its call.
fn refused(answer: RemotingCommand, address: &Arc<str>) -> Error {
    Error::broker(answer.code, answer.remark.unwrap_or_default()).with_address(&**address)
}
