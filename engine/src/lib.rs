//! Moves bytes: sockets, threads, timers. It decides nothing; what happens to the bytes is said by the core.

pub mod driver;
