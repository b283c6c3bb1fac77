//! How other threads reach the reactor: a queue of operations, and a wake-up when it may sleep.
//!
//! A wake-up is a system call, so it is made once for each sleep and not once for each operation. The argument why none
//! is lost: the reactor sets `sleeping`, then looks into the queue once more, then sleeps. A caller pushes, then looks at
//! `sleeping`. Both have a sequentially consistent fence between the two steps. So either the caller's push comes before
//! the reactor's look, and the reactor does not sleep; or the caller sees `sleeping`, takes the flag and wakes it.
//!
//! The end works alike: the reactor sets `closed`, then empties the queue; a caller pushes, then looks at `closed` and
//! empties the queue itself when it is set. So no operation stays behind, and dropping one tells its waiter.

use super::config::RemotingConfig;
use super::op::Op;
use super::stats::Counters;
use crate::error::Result;
use crate::sync::{Mutex, Rank};
use crossbeam::queue::SegQueue;
use mio::{Registry, Token, Waker};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Shared by the reactor and all who talk to it.
pub(crate) struct ReactorHandle {
    /// Unbounded by type; bounded by the permits of calls, the write-queue bytes of connections, and the count of
    /// one-way requests in [`super::client`].
    ops: SegQueue<Op>,
    /// Set by the reactor before it sleeps, taken by whoever wakes it.
    sleeping: AtomicBool,
    /// Set by the reactor at its end.
    closed: AtomicBool,
    waker: Waker,
    pub(crate) config: RemotingConfig,
    pub(crate) counters: Arc<Counters>,
    /// Addresses with an open connection that takes new calls. Written by the reactor when that changes.
    pub(crate) connected: Mutex<HashSet<Arc<str>>>,
}

impl ReactorHandle {
    pub(crate) fn new(
        registry: &Registry,
        token: Token,
        config: RemotingConfig,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        Ok(Self {
            ops: SegQueue::new(),
            sleeping: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waker: Waker::new(registry, token)?,
            config,
            counters,
            connected: Mutex::new(Rank::Thread, HashSet::new()),
        })
    }

    /// Hands an operation to the reactor. After its end the operation is dropped, which completes a call in it.
    pub(crate) fn push(&self, op: Op) {
        self.counters.queued_operations.fetch_add(1, Ordering::Relaxed);
        self.ops.push(op);
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed)
            && self.sleeping.swap(false, Ordering::Relaxed)
            && let Err(error) = self.waker.wake()
        {
            log::error!("the I/O thread cannot be woken: {error}");
        }
        if self.closed.load(Ordering::Relaxed) {
            while let Some(op) = self.pop() {
                drop(op);
            }
        }
    }

    pub(crate) fn pop(&self) -> Option<Op> {
        let op = self.ops.pop()?;
        self.counters.queued_operations.fetch_sub(1, Ordering::Relaxed);
        Some(op)
    }

    /// For the reactor: announces that it is going to sleep. False when there is an operation to be done first.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.ops.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// For the reactor: it is awake and needs no wake-up.
    pub(crate) fn awake(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
    }

    /// For the reactor: no operation is taken any more; drops those that are left.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while let Some(op) = self.pop() {
            drop(op);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}
