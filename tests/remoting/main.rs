//! The remoting layer against peers whose every byte the test decides.

mod calls;
mod dialling;
mod going_away;
mod hostile;
mod peer_requests;
mod server;
mod shutdown;
mod support;
