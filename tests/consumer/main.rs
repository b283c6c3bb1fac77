//! The push consumer on the embedded cluster.

mod delivery;
mod membership;
mod problems;
mod recovery;
mod stopping;
mod support;
