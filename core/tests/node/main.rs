//! The node's shared state against naive models, and by example.
#![allow(clippy::expect_used)] // a test that expects in vain has failed
mod examples;
mod history;
mod interest;
mod keys;
mod restart;
mod snapshot;
mod steps;
mod support;
