//! Limits and times of one client or server.

use crate::base::net::{Resolver, SystemResolver};
use crate::protocol::frame::MAX_FRAME;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Limits and times of a [`RemotingClient`](super::RemotingClient) or [`RemotingServer`](super::RemotingServer).
#[derive(Clone)]
pub struct RemotingConfig {
    /// Longest time for a dial, over all addresses of a host name together. Default 3 s.
    pub connect_timeout: Duration,
    /// Largest frame in either direction, its length bytes included. Default 16 MiB.
    pub max_frame: usize,
    /// Most calls that may wait for an answer; more are refused as busy. Default 65,536.
    pub max_pending: usize,
    /// Most requests of peers that may wait for a thread of the pool; more are answered as busy. Default 1,024.
    pub max_requests: usize,
    /// Most connections, and for a client most addresses it remembers. Default 10,000.
    pub max_connections: usize,
    /// Most bytes that may wait to be written to one connection; one frame is always taken. Default 32 MiB.
    pub write_queue_bytes: usize,
    /// Size of the system's send buffer; 0 leaves it to the system, the default.
    pub send_buffer: usize,
    /// Size of the system's receive buffer; 0 leaves it to the system, the default.
    pub receive_buffer: usize,
    /// A connection without traffic in both directions and without open calls is closed after this. Default 120 s.
    pub idle: Duration,
    /// A connection whose peer takes no byte although some wait is closed after this. Default 30 s.
    pub write_stall: Duration,
    /// A connection is retired when a call on it got no answer in time and no byte at all came within this time after
    /// the call was sent. Default 10 s.
    pub silence: Duration,
    /// Pause before an address that failed is dialled again; doubled with each failure in a row. Default 100 ms.
    pub backoff_min: Duration,
    /// The pause never grows beyond this. Default 10 s.
    pub backoff_max: Duration,
    /// A host name is resolved again when it is dialled and the last time is longer ago than this. Default 60 s.
    pub resolve_again: Duration,
    /// Threads for callbacks and requests of peers. Default 2.
    pub call_threads: usize,
    /// Turns host names into addresses, on a thread of its own. Default: the system's.
    pub resolver: Arc<dyn Resolver>,
}

impl Default for RemotingConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            max_frame: MAX_FRAME,
            max_pending: 65_536,
            max_requests: 1_024,
            max_connections: 10_000,
            write_queue_bytes: 32 << 20,
            send_buffer: 0,
            receive_buffer: 0,
            idle: Duration::from_secs(120),
            write_stall: Duration::from_secs(30),
            silence: Duration::from_secs(10),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            resolve_again: Duration::from_secs(60),
            call_threads: 2,
            resolver: Arc::new(SystemResolver),
        }
    }
}

impl fmt::Debug for RemotingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemotingConfig")
            .field("connect_timeout", &self.connect_timeout)
            .field("max_frame", &self.max_frame)
            .field("max_pending", &self.max_pending)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}
