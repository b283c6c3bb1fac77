//! The custom headers of requests and responses, one file a family.
//!
//! Structs and fields are named as in Java, the fields in snake case. A field that may be absent is an `Option`.
//! `bname` is the name of the broker the request is for: 5.x brokers want it, older ones ignore it.

mod admin;
mod group;
mod offset;
mod pull_message;
mod register;
mod route;
mod send_back;
mod send_message;
mod to_client;
mod topic;
mod transaction;
mod view;

pub use admin::*;
pub use group::*;
pub use offset::*;
pub use pull_message::*;
pub use register::*;
pub use route::*;
pub use send_back::*;
pub use send_message::*;
pub use to_client::*;
pub use topic::*;
pub use transaction::*;
pub use view::*;

#[cfg(test)]
mod names_tests;
#[cfg(test)]
mod reading_tests;
