//! The embedded cluster over the wire, by a client that sends raw requests. The codes, fields and properties expected
//! here are those that brokers 5.5.0 (and 4.9.7, where it says so) gave to the same requests.

mod admin;
mod control;
mod fault;
mod group;
mod hostile;
mod lock;
mod offset;
mod pull;
mod registration;
mod relay;
mod retry;
mod route;
mod send;
mod slave;
mod sql;
mod stress;
mod support;
mod timer;
mod transaction;
