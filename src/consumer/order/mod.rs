//! What consuming in order adds to an ownership: lanes, and the seat of its queue.
//!
//! `lanes` says which messages must wait for which, `run` what follows from a listener's answer; both are plain state
//! machines without threads or clocks. `seat` keeps two ownerships of a queue apart, here and at its broker.

pub(crate) mod lanes;
pub(crate) mod run;
pub(crate) mod seat;

use crate::message::{MessageExt, properties};
use crate::sync::{Mutex, Rank};
use lanes::Lanes;
use run::Item;
use seat::Seat;
use std::sync::Arc;

/// How a consumer orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderMode {
    /// Equal sharding keys in order and different ones at once, instead of the whole queue in order.
    pub(crate) by_key: bool,
}

/// The part of an ordered ownership. The seat outlives it, the lanes do not.
pub(crate) struct Order {
    pub(crate) seat: Arc<Seat>,
    pub(crate) lanes: Mutex<Lanes<MessageExt>>,
}

impl Order {
    pub(crate) fn new(mode: OrderMode, seat: Arc<Seat>) -> Self {
        Self { seat, lanes: Mutex::new(Rank::ConsumeGate, Lanes::new(mode.by_key)) }
    }
}

impl Item for MessageExt {
    fn offset(&self) -> i64 {
        self.queue_offset()
    }
    fn key(&self) -> Option<&str> {
        self.property(properties::SHARDING_KEY)
    }
    fn tries(&self) -> i32 {
        self.reconsume_times()
    }
    fn set_tries(&mut self, tries: i32) {
        self.set_reconsume_times(tries);
    }
}
