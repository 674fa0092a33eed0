//! Whole nodes against real sockets: every test runs once on io_uring and once on readiness.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails here has found its fault")]

mod client;
#[allow(dead_code, reason = "the journal's own tests use more of it")]
#[path = "../../../journal/tests/journal/world/disk.rs"]
mod disk;
mod faults;
mod journal;
mod life;
mod refusal;
mod snapshots;

macro_rules! on_both_drivers {
    ($($module:ident :: $case:ident),* $(,)?) => {
        mod uring { $(#[test] fn $case() { crate::$module::$case("io_uring"); })* }
        mod readiness { $(#[test] fn $case() { crate::$module::$case("readiness"); })* }
    };
}

on_both_drivers! {
    life::a_message_reaches_the_subscribers_of_every_shard,
    life::every_shard_goes_by_other_limits_once_they_are_taken_over,
    life::the_node_itself_publishes_and_says_what_it_refuses,
    life::connections_and_subjects_are_listed_across_shards,
    life::a_connection_is_shown_with_where_it_stands,
    life::subjects_are_searched_and_sorted_as_they_were_a_moment_ago,
    life::a_taken_port_is_an_error_and_leaves_nothing,
    life::starting_and_stopping_leaves_no_thread_and_no_descriptor,
    life::a_drain_tells_everybody_and_is_reported_once,
    faults::a_client_that_never_reads_costs_the_others_nothing,
    faults::half_a_handshake_is_ended_by_its_deadline,
    faults::a_node_stops_under_load,
    faults::a_broken_connection_is_given_up_and_its_number_used_again,
    faults::a_flood_of_publishes_is_answered_in_order_by_two_shards,
    journal::nothing_acknowledged_from_the_disk_is_lost_when_the_power_goes,
    journal::a_failing_disk_refuses_who_needs_it_and_holds_nobody_else,
    journal::what_cannot_be_sealed_is_reported_until_it_is,
    journal::a_flipped_bit_is_reported_and_its_message_told_as_missing,
    snapshots::a_snapshot_outlives_its_rows_and_a_kill,
    snapshots::rows_stay_on_a_full_disk_as_long_as_their_snapshots_have_no_room,
    snapshots::fields_of_several_messages_outlive_their_rows,
    snapshots::patches_whose_base_is_lost_are_not_shown_as_the_whole,
    refusal::a_node_out_of_descriptors_serves_those_it_has,
}
