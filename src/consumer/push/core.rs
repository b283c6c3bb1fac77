//! The running push consumer: what it is made of.

use super::config::PushConsumerConfig;
use super::direct::DirectThreads;
use super::hooks::Observer;
use super::orderly::keeper::{LockKeeper, LockReturns};
use super::service::ConsumeService;
use crate::consumer::member::Member;
use std::sync::{Arc, Weak};

pub(super) struct Core {
    pub(super) me: Weak<Core>,
    pub(super) member: Member,
    pub(super) config: PushConsumerConfig,
    pub(super) retry_topic: Arc<str>,
    pub(super) service: Box<dyn ConsumeService>,
    pub(super) observer: Arc<Observer>,
    pub(super) direct: DirectThreads,
    /// Present when queues are consumed only with their broker's lock.
    pub(super) locks: Option<LockKeeper>,
    pub(super) lock_returns: LockReturns,
}
