//! What a consumer group owes its user, as scenarios that run on any cluster: `tests/scenarios_embedded.rs` runs them on the
//! embedded one, `tests/real_broker.rs` on real brokers.

pub mod broadcast;
pub mod churn;
pub mod filters;
pub mod lite_pull;
pub mod membership;
pub mod ordered;
pub mod placement;
pub mod recovery;
pub mod restart;
pub mod retry;
pub mod tags;
pub mod volume;

/// The tests of one kind of cluster; `$target` is an expression that gives a `Target`, evaluated in each test.
macro_rules! scenarios {
    ($target:expr) => {
        $crate::scenarios::scenarios! { $target;
            two_processes_see_every_message_of_all_producers_byte_exact => volume::two_processes_share_what_all_producers_send,
            a_joining_process_gets_its_share_without_waiting_for_the_periodic_round => membership::join,
            a_killed_process_is_replaced_and_nothing_is_lost => membership::kill,
            processes_killed_at_every_point_of_a_message_lose_nothing => placement::kills,
            a_retried_message_comes_back_after_its_delay_and_ends_in_the_dead_letter_topic => retry::until_dead,
            a_message_that_fails_once_comes_back_once => retry::once,
            a_restarted_process_continues_where_the_stopped_one_ended => restart::alone,
            a_process_that_stops_hands_over_without_duplicates => restart::hand_over,
            consumers_go_on_after_the_broker_was_restarted => recovery::broker_restarts,
            a_consumer_starts_while_the_name_server_is_away => recovery::name_server_away_at_start,
            a_name_server_that_goes_away_later_stops_nothing => recovery::name_server_away_later,
            a_topic_that_appears_later_is_picked_up => recovery::topic_appears_later,
            the_order_of_queues_is_held_while_processes_join_and_leave => ordered::by_queue,
            the_order_of_keys_is_held_while_processes_join_and_leave => ordered::by_key,
            a_tag_expression_delivers_just_those_tags => tags::expression,
            each_member_of_a_broadcasting_group_sees_everything_and_goes_on_where_it_stopped => broadcast::each_gets_all,
            tags_with_the_same_hash_do_not_leak_through => tags::collision,
            assigned_queues_are_polled_sought_and_committed => lite_pull::assigned,
            two_members_that_poll_share_and_hand_over => lite_pull::shared,
            an_sql92_condition_delivers_just_what_fulfils_it => filters::sql92,
            an_sql92_condition_that_does_not_parse_ends_the_start => filters::refused_condition,
        }
    };
    ($target:expr; $($name:ident => $module:ident :: $scenario:ident,)*) => {
        $(
            #[test]
            fn $name() {
                if let Some(target) = $target {
                    $crate::scenarios::$module::$scenario(&target);
                }
            }
        )*
    };
}
pub(crate) use scenarios;
