//! The lite pull consumer on the embedded cluster.

mod committing;
mod polling;
mod problems;
mod recovery;
mod seeking;
mod sharing;
mod stopping;
mod support;
