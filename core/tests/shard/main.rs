//! Shards of a whole node of values: joins, recovery, limits, rights, every wire. One program, so that its world is built once.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod conflation;
mod counters;
mod deflate;
mod ends;
mod frames;
mod history;
mod http;
mod joins;
mod ledger;
mod limits;
mod model;
mod mqtt;
mod polls;
mod quota;
mod recovery;
mod restart;
mod rights;
mod runs;
mod sessions;
mod standard;
mod state;
mod streams;
mod unread;
mod visible;
mod world;
