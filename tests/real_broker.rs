//! The scenarios on a real name server and broker, beside the official Java client. `tests/real_broker/run.sh` starts both and
//! runs this; without it every test says that it is skipped.

#[path = "real_broker/java_peer.rs"]
mod java_peer;
#[path = "scenarios/mixed.rs"]
mod mixed;
#[path = "scenarios/mixed_retry.rs"]
mod mixed_retry;
#[path = "scenarios/offset_file.rs"]
mod offset_file;
#[path = "scenarios/ordered_real.rs"]
mod ordered_real;
#[path = "real_broker/real_target.rs"]
mod real_target;
#[path = "scenarios/reset.rs"]
mod reset;
mod scenarios;
#[path = "scenarios/strategies.rs"]
mod strategies;
mod support;
#[path = "real_broker/tools.rs"]
mod tools;

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
fn a_failed_message_passes_from_ours_to_java_and_back() {
    if let Some(target) = RealTarget::from_environment() {
        mixed_retry::there_and_back(&target);
    }
}

#[test]
fn java_and_ours_read_each_other_s_dead_letters() {
    if let Some(target) = RealTarget::from_environment() {
        mixed_retry::dead_letters(&target);
    }
}

#[test]
fn a_java_lite_pull_consumer_and_ours_go_on_at_each_other_s_offsets() {
    if let Some(target) = RealTarget::from_environment() {
        mixed::lite_pull_takes_turns(&target);
    }
}

#[test]
fn java_members_and_ours_share_queues_by_each_of_the_six_strategies() {
    if let Some(target) = RealTarget::from_environment() {
        strategies::all(&target);
    }
}

#[test]
fn java_members_and_ours_hold_the_order_of_queues_together() {
    if let Some(target) = RealTarget::from_environment() {
        ordered_real::beside_java(&target);
    }
}

/// Takes over a minute, which is how long brokers keep the locks of a member that was killed; so with `run.sh --churn` only.
#[test]
fn the_order_of_queues_is_held_when_processes_are_killed() {
    let Some(target) = RealTarget::from_environment() else { return };
    if std::env::var_os("ROCKETMQ_TEST_CHURN").is_some() {
        ordered_real::killed(&target);
    }
}

#[test]
fn java_and_ours_go_on_from_each_other_s_broadcasting_offset_file() {
    if let Some(target) = RealTarget::from_environment() {
        offset_file::java_reads_our_file_and_we_read_java_s(&target, || target.java());
    }
}

#[test]
fn the_official_tool_resets_a_running_consumer_at_once_and_once() {
    if let Some(target) = RealTarget::from_environment() {
        reset::by_time(&target, |words| target.admin(words));
    }
}

#[test]
fn the_official_admin_tools_look_into_a_consumer_and_have_a_message_consumed() {
    if let Some(target) = RealTarget::from_environment() {
        tools::look_at_a_consumer(&target);
    }
}

/// `run.sh --churn` asks for all fifty changes, and for the same run with the Java client, which take minutes; otherwise the
/// beginning of that run is enough.
#[test]
fn twenty_members_come_and_go_under_load_and_nothing_is_lost() {
    let Some(target) = RealTarget::from_environment() else { return };
    let whole = std::env::var_os("ROCKETMQ_TEST_CHURN").is_some();
    let (changes, pace) = (if whole { 50 } else { 10 }, Duration::from_millis(1_500));
    let plan = churn::Plan { processes: 5, members: 4, queues: 32, changes, every: Duration::from_millis(5), pace };
    let ours = churn::run(&target, "ours", &plan, mqcat::members);
    if whole {
        let java = churn::run(&target, "java", &plan, || target.java_members());
        churn::print(&format!("churn on {}", RealTarget::version()), &plan, &[("ours", &ours), ("Java", &java)]);
    }
    ours.check();
}
