//! A connection that sends whatever a case says.

use bytes::Bytes;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode};
use rocketmq_sync::remoting::{ConnectionHandle, RemotingClient, RemotingConfig, RequestProcessor};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Requests of the broker, notices of members mostly, get no answer.
struct Deaf;

impl RequestProcessor for Deaf {
    fn process(&self, _: &ConnectionHandle, _: RemotingCommand) -> Option<RemotingCommand> {
        None
    }
}

pub struct Peer(RemotingClient);

impl Peer {
    pub fn new() -> Self {
        Self(RemotingClient::start("conformance", RemotingConfig::default(), Arc::new(Deaf)).unwrap())
    }

    pub fn ask(
        &self,
        address: &str,
        code: i32,
        fields: &[(&str, &str)],
        body: &str,
    ) -> rocketmq_sync::Result<RemotingCommand> {
        let mut command = RemotingCommand::request_without_header(RequestCode(code));
        for (name, value) in fields {
            command.ext_fields.put(name, value);
        }
        let command = command.with_body(Bytes::copy_from_slice(body.as_bytes()));
        self.0.invoke(&address.into(), command, PATIENCE)
    }
}

impl Peer {
    /// Asks until the body of the answer has this text in it.
    pub fn wait_for(&self, address: &str, code: RequestCode, fields: &[(&str, &str)], text: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = self.ask(address, code.0, fields, "");
            if answer.as_ref().is_ok_and(|answer| String::from_utf8_lossy(&answer.body).contains(text)) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "request {} at {address} does not answer with {text}: {answer:?}",
                code.0
            );
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
}

/// The address of the one broker that a name server knows.
pub fn broker_of(name_server: &str) -> String {
    let answer = Peer::new().ask(name_server, RequestCode::GET_BROKER_CLUSTER_INFO.0, &[], "").unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let at = text.find("127.0.0.1:").expect("an address in the answer");
    text[at..].chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect()
}
