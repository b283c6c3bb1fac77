//! The scenarios on the embedded cluster, one of its own for each.

mod scenarios;
mod support;

use rocketmq_sync::EmbeddedCluster;
use scenarios::churn;
use std::time::Duration;
use support::{Target, mqcat};

/// Short, as in tests/real_broker/run.sh: the scenarios about retries know levels 3 and 4.
const DELAY_LEVELS: &str = "1s 1s 1s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s";
const BROKER: &str = "broker-a";

struct EmbeddedTarget {
    cluster: EmbeddedCluster,
}

impl EmbeddedTarget {
    fn start() -> Option<Self> {
        let builder = EmbeddedCluster::builder().broker_names([BROKER]).delay_levels(DELAY_LEVELS);
        let cluster = builder.start().unwrap_or_else(|error| panic!("the embedded cluster does not start: {error}"));
        Some(Self { cluster })
    }
}

impl Target for EmbeddedTarget {
    fn name_servers(&self) -> String {
        self.cluster.name_servers()
    }

    fn broker_address(&self) -> String {
        self.cluster.broker_address(BROKER).expect("the broker is known by this name").to_string()
    }

    fn create_topic(&self, name: &str, queues: u32) {
        self.cluster.create_topic(name, queues).unwrap_or_else(|error| panic!("{error}"));
    }

    fn stop_broker(&self) {
        self.cluster.stop_broker(BROKER).unwrap_or_else(|error| panic!("{error}"));
    }

    fn start_broker(&self) {
        self.cluster.restart_broker(BROKER).unwrap_or_else(|error| panic!("{error}"));
    }

    fn stop_name_server(&self) {
        self.cluster.stop_name_server();
    }

    fn start_name_server(&self) {
        self.cluster.restart_name_server().unwrap_or_else(|error| panic!("{error}"));
    }

    /// The scenario is the same with fewer; the full number is for brokers that write to a disk.
    fn volume(&self) -> usize {
        5_000
    }
}

scenarios::scenarios!(EmbeddedTarget::start());

#[test]
fn members_come_and_go_under_load_and_nothing_is_lost() {
    // The run with large numbers is in tests/real_broker.rs.
    const PLAN: churn::Plan = churn::Plan {
        processes: 3,
        members: 2,
        queues: 8,
        changes: 6,
        every: Duration::from_millis(5),
        pace: Duration::ZERO,
    };
    if let Some(target) = EmbeddedTarget::start() {
        churn::run(&target, "ours", &PLAN, mqcat::members).check();
    }
}
