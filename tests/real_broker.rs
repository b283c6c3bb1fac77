//! The scenarios on a real name server and broker, beside the official Java client. `tests/real_broker/run.sh` starts both and
//! runs this; without it every test says that it is skipped.

#[path = "real_broker/java_peer.rs"]
mod java_peer;
#[path = "scenarios/mixed.rs"]
mod mixed;
#[path = "real_broker/real_target.rs"]
mod real_target;
mod scenarios;
#[path = "scenarios/strategies.rs"]
mod strategies;
mod support;

use real_target::RealTarget;
use scenarios::churn;
use std::time::Duration;
use support::mqcat;

scenarios::scenarios!(RealTarget::from_environment());

#[test]
fn a_java_member_joins_a_group_of_ours_and_leaves_it() {
    if let Some(target) = RealTarget::from_environment() {
        mixed::java_joins(&target);
    }
}

#[test]
fn one_of_ours_joins_a_group_of_java_members() {
    if let Some(target) = RealTarget::from_environment() {
        mixed::ours_joins(&target);
    }
}

#[test]
fn java_members_and_ours_share_queues_by_each_of_the_six_strategies() {
    if let Some(target) = RealTarget::from_environment() {
        strategies::all(&target);
    }
}

#[test]
fn twenty_members_come_and_go_fifty_times_under_load_and_nothing_is_lost() {
    const PLAN: churn::Plan =
        churn::Plan { processes: 5, members: 4, queues: 32, changes: 50, every: Duration::from_millis(5) };
    if let Some(target) = RealTarget::from_environment() {
        let ours = churn::run(&target, "ours", &PLAN, mqcat::members);
        let java = churn::run(&target, "java", &PLAN, || target.java_members());
        churn::print(&format!("churn on {}", RealTarget::version()), &PLAN, &[("ours", &ours), ("Java", &java)]);
        ours.check();
    }
}
