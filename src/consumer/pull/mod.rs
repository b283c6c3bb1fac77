//! The parts of a pull that every kind of consumer has: the request, what an answer holds, what a failure asks for, and
//! the pure decisions. When to pull, and where messages go, is the consumer's.

mod answer;
mod failure;
pub(crate) mod flow_control;
mod request;

pub(crate) use answer::{answered, found, keep_matching, nothing_found, pause_after, pause_after_corrections};
pub(crate) use failure::failed;
pub(crate) use request::{Terms, send};
