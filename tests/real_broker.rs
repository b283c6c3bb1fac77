//! The scenarios on a real name server and broker, beside the official Java client. `tests/real_broker/run.sh` starts both and
//! runs this; without it every test says that it is skipped.

#[path = "real_broker/java_peer.rs"]
mod java_peer;
#[path = "scenarios/mixed.rs"]
mod mixed;
#[path = "real_broker/real_target.rs"]
mod real_target;
mod scenarios;
mod support;

use real_target::RealTarget;

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
