//! What the journal knows of the node's runs: when each began, what it follows and how it ended, so that a client of an earlier
//! run can be told exactly what it missed. Owns the chain; what a client is told of it is the core's.

/// A run that another follows, as far as the journal knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follows {
    pub run: u64,
    /// The last arrival of it that the journal holds; 0 none.
    pub arrival: u64,
    /// It ended in order: there was nothing after that arrival.
    pub is_clean: bool,
}

/// One run in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    pub run: u64,
    /// The epoch that it began with.
    pub epoch: u64,
    pub began_ms: u64,
    /// None: the first that the journal knows.
    pub follows: Option<Follows>,
    /// It ended in order, after this arrival.
    pub ended: Option<u64>,
    /// Arrivals that it lost while the disk failed, both ends included, oldest first.
    pub holes: Vec<(u64, u64)>,
}

/// One row of the stream `runs`.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) time_ms: u64,
    pub(crate) kind: &'static str,
    pub(crate) epoch: u64,
    pub(crate) follows: Option<Follows>,
    pub(crate) stream: Option<&'static str>,
    pub(crate) from_arrival: Option<u64>,
    pub(crate) to_arrival: Option<u64>,
    pub(crate) count: Option<u64>,
    pub(crate) reason: Option<String>,
}

impl RunRow {
    pub(crate) fn new(kind: &'static str, epoch: u64, time_ms: u64) -> Self {
        let (stream, from_arrival, to_arrival, count, reason) = (None, None, None, None, None);
        Self { time_ms, kind, epoch, follows: None, stream, from_arrival, to_arrival, count, reason }
    }
}
