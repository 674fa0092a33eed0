//! The node's shared state against naive models, and by example.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod bases;
mod examples;
mod history;
mod interest;
mod keys;
mod publishers;
mod restart;
mod snapshot;
mod states;
mod steps;
mod support;
mod waiting;
