//! Decides: given bytes and the time, what happens. No sockets, clocks, threads, files, randomness, environment or
//! logging live here, so that everything hard to get right can be tested with nothing but values.
#![forbid(unsafe_code)]
