//! The push consumer on the embedded cluster.

mod delivery;
mod direct;
mod hooks;
mod membership;
mod problems;
mod recovery;
mod stopping;
mod support;
mod tool;
