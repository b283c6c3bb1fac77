//! What the scenarios need to run against any cluster: the cluster itself, producers, and consumers as separate processes.

pub mod crew;
pub mod event;
pub mod load;
pub mod mqcat;
pub mod produce;
pub mod troupe;

use event::Sent;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// A running cluster of one name server and one broker. A scenario may stop either, and starts it again before it ends.
pub trait Target {
    fn name_servers(&self) -> String;

    fn broker_address(&self) -> String;

    /// Returns when the topic has a route.
    fn create_topic(&self, name: &str, queues: u32);

    fn stop_broker(&self);

    fn start_broker(&self);

    fn stop_name_server(&self);

    fn start_name_server(&self);

    /// How many messages each producer sends in the scenario that is about volume.
    fn volume(&self) -> usize;

    /// Sends messages with another implementation of the client. Empty where there is none.
    fn produce_elsewhere(&self, _topic: &str, _count: usize) -> Vec<Sent> {
        Vec::new()
    }

    /// Per queue of the topic the offset that the broker has stored for the group and the end of the queue, as another
    /// implementation reads them. `None` where there is none.
    fn stored_offsets(&self, _group: &str, _topic: &str) -> Option<BTreeMap<String, (i64, i64)>> {
        None
    }
}

/// A name that no other scenario and no earlier run uses, since a real cluster keeps topics and offsets.
pub fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
