//! Decides: given bytes and the time, what happens. No sockets, clocks, threads, files, randomness, environment or
//! logging live here, so that everything hard to get right can be tested with nothing but values.
#![forbid(unsafe_code)]

pub mod codes;
pub mod command;
pub mod limits;
pub mod message;
pub mod position;
pub mod report;
pub mod rights;
pub mod settings;
pub mod subject;
