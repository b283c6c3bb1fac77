//! Heartbeats: composed of what all clients of the instance subscribe to, sent to every broker at once.
//!
//! Brokers know a consumer only by its heartbeats, and keep it by connection: a new connection needs one at once.
//! Source: 02-consumer section 4. Requests go out together, so a dead broker delays none of the others.

use super::registry::Registry;
use super::route_table::RouteTable;
use crate::api::Api;
use crate::protocol::body::{HeartbeatData, ProducerData};
use crate::sync::{Mutex, Rank};
use crossbeam::channel::bounded;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Heartbeats {
    client_id: Arc<str>,
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_flight: BTreeSet<Arc<str>>,
    failing: BTreeSet<Arc<str>>,
}

/// What a round of heartbeats came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) accepted: usize,
    pub(crate) failed: usize,
}

impl Heartbeats {
    pub(crate) fn new(client_id: Arc<str>, timeout: Duration) -> Self {
        Self { client_id, timeout, state: Mutex::new(Rank::Leaf, State::default()) }
    }

    /// Whether a heartbeat to the address is on its way; it will be the first request of a connection just opened.
    pub(crate) fn is_in_flight(&self, address: &str) -> bool {
        self.state.lock().in_flight.contains(address)
    }

    /// Sends one to every broker and waits for the answers.
    pub(crate) fn send(&self, api: &Api, registry: &Registry, routes: &RouteTable) -> Beat {
        let consumers = registry.consumers();
        let data = HeartbeatData {
            client_id: self.client_id.to_string(),
            producer_data_set: registry
                .producers()
                .iter()
                .map(|producer| ProducerData { group_name: producer.group().clone() })
                .collect(),
            consumer_data_set: consumers.iter().map(|consumer| consumer.heartbeat_data()).collect(),
            ..Default::default()
        };
        if data.producer_data_set.is_empty() && data.consumer_data_set.is_empty() {
            return Beat { accepted: 0, failed: 0 };
        }
        // Replicas list consumers too, since they may be asked while the master is away.
        let targets = routes.brokers().addresses(consumers.is_empty());
        let body = data.encode();
        let (done, answers) = bounded(targets.len());
        self.state.lock().in_flight.extend(targets.iter().cloned());
        for address in &targets {
            let done = done.clone();
            let target = address.clone();
            api.heartbeat(address, body.clone(), self.timeout, move |result| {
                let _ = done.send((target, result));
            });
        }
        drop(done);
        let mut beat = Beat { accepted: 0, failed: 0 };
        // The channel closes when every callback has run, and each call has its own time-out.
        for (address, result) in answers {
            let mut state = self.state.lock();
            state.in_flight.remove(&address);
            match result {
                Ok(()) => {
                    beat.accepted += 1;
                    if state.failing.remove(&address) {
                        log::info!("broker {address} accepts heartbeats again");
                    }
                }
                Err(error) => {
                    beat.failed += 1;
                    if state.failing.insert(address.clone()) {
                        log::warn!("a heartbeat to broker {address} failed; it is sent again: {error}");
                    }
                }
            }
        }
        self.state.lock().failing.retain(|address| targets.contains(address));
        beat
    }
}
