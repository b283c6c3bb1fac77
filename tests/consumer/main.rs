//! The push consumer on the embedded cluster.

mod broadcast;
mod concurrent;
mod delivery;
mod direct;
mod endings;
mod failover;
mod filters;
mod hooks;
mod membership;
mod offsets;
mod ordered;
mod ordered_locks;
mod placements;
mod problems;
mod recovery;
mod stopping;
mod subscriptions;
mod support;
mod suspend;
mod tool;
