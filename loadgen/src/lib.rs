//! The load generator: very many clients on the same drivers as the node, to measure any server by one yardstick.
//!
//! `plan` says what happens · `loadgen` takes the steps and reads the server's accounts (`meter`) · `worker` is one thread of
//! connections (`client`), which speak a `dialect` and publish at a `pace` · `tally` and `histogram` count ·
//! `silent` are the clients that never read.
mod client;
mod content;
mod dialect;
mod histogram;
mod loadgen;
mod meter;
mod pace;
mod plan;
mod silent;
mod source;
mod tally;
mod tls;
mod websocket;
mod worker;

pub use loadgen::LoadGenerator;
