//! Requests and responses over TCP connections: the client's side and the server's, on one reactor.
//!
//! Threads of a client or server named `rmq`:
//!
//! - `rmq-io`: the reactor (`reactor`), which owns all sockets, the table of open calls and their deadlines. No lock,
//!   no user code (but for servers with [`Dispatch::Inline`]), nothing that blocks.
//! - `rmq-call-N`: a small pool for callbacks, requests of peers and hooks. Started when there is something to run.
//! - `rmq-dns-N`: resolve host names; exist only while there are some to resolve.
//!
//! A caller encodes its frame, pushes an operation and wakes the reactor if it sleeps (`handle`); the reactor writes
//! many frames with one system call. An answer completes its waiter on the reactor's thread: a blocked caller is woken
//! directly and never depends on the pool.
//!
//! What callers can rely on:
//!
//! - Every call comes to exactly one outcome (`completion`), by its deadline at the latest.
//! - A call that times out fails alone. Its connection is retired only when the peer is silent altogether.
//! - When a connection ends, all calls on it fail at once, each with the cause.
//! - One connection an address; an address that is slow, dead or unresolvable holds up nobody but its own callers.
//! - Everything that can wait is bounded, and the sizes can be looked at ([`RemotingStats`]).
//!
//! Source: `NettyRemotingClient`, `NettyRemotingServer`, `NettyRemotingAbstract` of Apache RocketMQ, for what happens
//! on the wire; the structure is not theirs.

mod backoff;
mod call;
mod client;
mod completion;
mod config;
mod connection;
mod dispatcher;
mod handle;
mod op;
mod processor;
mod reactor;
mod server;
mod stats;
mod timers;
mod wire;

pub use client::RemotingClient;
pub use config::RemotingConfig;
pub use connection::ConnectionHandle;
pub use processor::{NoRequests, RequestProcessor, unsupported};
pub use server::{Dispatch, RemotingServer};
pub use stats::RemotingStats;
