//! The node's shared state against naive models, and by example.
#![allow(clippy::expect_used)]
mod examples;
mod history;
mod interest;
mod keys;
mod snapshot;
mod support;
