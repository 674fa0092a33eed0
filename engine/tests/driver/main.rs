//! Both drivers against the same real sockets: every test of `cases` runs once on io_uring and once on readiness.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails here has found its fault")]

mod cases;
mod limits;
mod rig;

macro_rules! on_both_drivers {
    ($($module:ident :: $case:ident),* $(,)?) => {
        mod uring {
            use godwit_engine::driver::Preference;
            $(#[test] fn $case() { crate::$module::$case(Preference::Uring); })*
        }
        mod readiness {
            use godwit_engine::driver::Preference;
            $(#[test] fn $case() { crate::$module::$case(Preference::Readiness); })*
        }
    };
}

on_both_drivers! {
    cases::a_client_is_accepted_with_its_address_and_answered,
    cases::a_connection_made_here_is_connected_and_answered,
    cases::a_refused_connection_says_so_and_can_be_closed,
    cases::what_does_not_fit_is_blocked_and_one_writable_follows,
    cases::a_reset_during_sends_is_gone_once,
    cases::a_paused_socket_that_a_send_finds_broken_is_gone,
    cases::a_used_number_hears_nothing_of_its_predecessor,
    cases::a_paused_socket_is_read_again_without_loss,
    cases::an_orderly_end_comes_after_the_last_bytes,
    cases::finishing_ends_the_sending_half_alone,
    cases::thousands_of_clients_are_served_at_once,
    cases::a_large_stream_arrives_whole_through_few_buffers,
    cases::wakes_are_one_event_and_none_is_lost,
    cases::a_stopped_listener_accepts_no_more,
    limits::clients_beyond_the_limit_are_refused_and_the_others_stay,
    limits::a_process_out_of_descriptors_does_not_spin,
}
