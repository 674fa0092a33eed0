//! The parts of core that need no node: parsers under any input, rights against the rule, the protocol's vectors.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod parsers;
mod rights;
mod vectors;
