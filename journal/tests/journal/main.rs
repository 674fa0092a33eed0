//! The journal as a whole: on a real disk, and on one that lies.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test that expects in vain has failed
mod check;
mod crashes;
mod cuts;
mod faults;
mod life;
mod meanwhile;
mod preallocate;
mod retention;
mod snapshots;
mod world;
