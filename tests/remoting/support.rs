//! Scripted peers over the standard library's blocking sockets, and waiting with a deadline.

use bytes::Bytes;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::{NoRequests, RemotingClient, RemotingConfig};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that works never waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A listener that the test accepts and answers from.
pub(crate) struct Peer {
    listener: TcpListener,
}

impl Peer {
    pub(crate) fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").expect("a free port") }
    }

    pub(crate) fn address(&self) -> Arc<str> {
        self.listener.local_addr().expect("an address").to_string().into()
    }

    /// The next connection.
    #[track_caller]
    pub(crate) fn accept(&self) -> Wire {
        self.listener.set_nonblocking(true).expect("a socket option");
        let mut accepted = None;
        wait_for("a connection", || {
            accepted = self.listener.accept().ok();
            accepted.is_some()
        });
        let (stream, _) = accepted.expect("just seen");
        stream.set_nonblocking(false).expect("a socket option");
        Wire::over(stream)
    }

    /// Whether nobody waits to be accepted.
    pub(crate) fn has_no_more_connections(&self) -> bool {
        self.listener.set_nonblocking(true).expect("a socket option");
        self.listener.accept().is_err()
    }
}

/// One connection seen from the peer's side.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
}

impl Wire {
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream }
    }

    pub(crate) fn connect(address: impl std::net::ToSocketAddrs) -> Self {
        Self::over(TcpStream::connect(address).expect("a connection"))
    }

    /// The next command, or none at the end of the stream.
    #[track_caller]
    pub(crate) fn try_read(&mut self) -> Option<RemotingCommand> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the peer waited in vain"),
            Err(_) => return None,
        }
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).expect("the rest of a frame");
        Some(RemotingCommand::decode(Bytes::from(frame)).expect("a good frame"))
    }

    #[track_caller]
    pub(crate) fn read(&mut self) -> RemotingCommand {
        self.try_read().expect("a command and not the end")
    }

    #[track_caller]
    pub(crate) fn write(&mut self, command: &RemotingCommand) {
        let mut bytes = Vec::new();
        command.encode_head(&mut bytes);
        bytes.extend_from_slice(&command.body);
        self.stream.write_all(&bytes).expect("the connection takes it");
    }

    /// Answers with success and the request's own body.
    #[track_caller]
    pub(crate) fn answer(&mut self, request: &RemotingCommand) {
        self.answer_with(request, ResponseCode::SUCCESS);
    }

    #[track_caller]
    pub(crate) fn answer_with(&mut self, request: &RemotingCommand, code: ResponseCode) {
        let mut response = RemotingCommand::response(code, None).with_body(request.body.clone());
        response.opaque = request.opaque;
        self.write(&response);
    }

    /// Waits for the end of the stream, and drops what comes before.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) {
        while self.try_read().is_some() {}
    }
}

pub(crate) fn client(config: RemotingConfig) -> RemotingClient {
    RemotingClient::start("test", config, Arc::new(NoRequests)).expect("a client")
}

pub(crate) fn request(body: &str) -> RemotingCommand {
    RemotingCommand::request_without_header(RequestCode::HEART_BEAT).with_body(Bytes::copy_from_slice(body.as_bytes()))
}

#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never came true: {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// Runs `f` beside the test and gives its result back.
pub(crate) fn beside<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::spawn(f)
}
