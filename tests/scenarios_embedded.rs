//! The scenarios on the embedded cluster, one of its own for each.

mod scenarios;
mod support;

use rocketmq_sync::EmbeddedCluster;
use support::Target;

/// Short, as in tests/real_broker/run.sh: the scenarios about retries know levels 3 and 4.
const DELAY_LEVELS: &str = "1s 1s 1s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s";
const BROKER: &str = "broker-a";

struct EmbeddedTarget {
    cluster: EmbeddedCluster,
}

impl EmbeddedTarget {
    fn start() -> Option<Self> {
        let builder = EmbeddedCluster::builder().broker_names([BROKER]).delay_levels(DELAY_LEVELS);
        Some(Self { cluster: builder.start().unwrap_or_else(|error| panic!("the embedded cluster does not start: {error}")) })
    }
}

scenarios::scenarios!(EmbeddedTarget::start());
