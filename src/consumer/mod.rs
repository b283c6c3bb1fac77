//! Consumers: membership, pulling, handing messages to listeners, progress.

pub(crate) mod allocate;
pub(crate) mod event;
pub(crate) mod health;
pub(crate) mod held;
pub(crate) mod listener;
pub(crate) mod listener_orderly;
pub(crate) mod lite_pull;
pub(crate) mod member;
pub(crate) mod message_model;
pub(crate) mod offset;
pub(crate) mod order;
pub(crate) mod process_queue;
pub(crate) mod pull;
pub(crate) mod push;
pub(crate) mod queue_state;
pub(crate) mod rebalance;
pub(crate) mod report;
pub(crate) mod selector;
pub(crate) mod suspension;

#[cfg(test)]
mod simulation_tests;
