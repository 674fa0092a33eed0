//! Keeps: what a node accepted and delivered, row by row, in files that everything reads (Arrow IPC). One thread writes, in groups, so that a
//! sync serves all who wait for it; another seals. Owns files and their truth: what is said to be on the disk is there, what is damaged
//! is never served, an offset is given once. What is in a row is `protocol/events.toml`'s; which rows there are, the core's.
//!
//! Start with [`Journal::open`]; put rows into its [`Queue`], wait for its [`Progress`], read with its [`Reader`].
#![forbid(unsafe_code)]

mod background;
mod boot;
mod catalog;
mod check;
mod decode;
pub mod disk;
mod encode;
mod index;
mod journal;
mod progress;
mod queue;
mod reader;
mod recover;
mod run_history;
mod runs;
mod schema;
mod segment;
mod segment_writer;
mod settings;
mod writer;

pub use background::seal::Keep;
pub use catalog::{Manifest, Sealed};
pub use check::{Checked, check};
pub use encode::table::schema_of;
pub use journal::{Journal, OpenError, Past};
pub use progress::Progress;
pub use queue::Queue;
pub use reader::{Budget, Found, Loaded, Page, PageLimits, Reader};
pub use recover::SKIPPED;
pub use runs::{Follows, RunRecord};
pub use schema::{Field, Stream, Type};
pub use segment::FileName;
pub use settings::{Retention, Settings};

/// Rows that were dropped because there was no room for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) stream: Stream,
    pub(crate) count: u64,
    /// Of messages: the first and the last arrival that may be missing.
    pub(crate) arrivals: Option<(u64, u64)>,
}

impl Lost {
    /// Adds a loss to those that are not told yet; one stream's become one.
    pub(crate) fn add(all: &mut Vec<Self>, lost: Self) {
        match all.iter_mut().find(|other| other.stream == lost.stream) {
            None => all.push(lost),
            Some(known) => {
                known.count += lost.count;
                known.arrivals = match (known.arrivals, lost.arrivals) {
                    (Some((first, _)), Some((_, last))) => Some((first, last)),
                    (known, other) => known.or(other),
                };
            }
        }
    }
}
