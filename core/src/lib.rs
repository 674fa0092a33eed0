//! Decides: given bytes and the time, what happens. No sockets, clocks, threads, files, randomness, environment or
//! logging live here, so that everything hard to get right can be tested with nothing but values.
#![forbid(unsafe_code)]

pub mod account;
pub mod address;
pub mod codec;
pub mod codes;
pub mod command;
pub mod conflation;
pub mod cursor;
pub mod http;
pub mod journal;
pub mod json;
pub mod limits;
pub mod message;
pub mod mqtt;
pub mod node;
pub mod position;
pub mod report;
pub mod rights;
pub mod settings;
pub mod shard;
pub mod slab;
pub mod stream;
pub mod subject;
pub mod websocket;
pub mod window;

pub use rights::holder;
