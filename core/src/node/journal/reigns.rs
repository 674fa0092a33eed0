//! The runs that this one follows, as the journal tells them: which arrivals and which epochs were whose. Marks and empty positions
//! of an earlier run are understood through them. Arrivals go on from run to run, so that a mark of an earlier one is a place
//! in the same feed; one that saw more than the disk did lies beyond what the journal holds of that run, and is unknown.

/// Runs remembered; marks of older ones are unknown.
const REIGNS_MAX: usize = 1_024;

/// A run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reign {
    pub run: u64,
    /// The epoch it began with, and the one that its successor began with.
    pub epoch: u64,
    pub epoch_end: u64,
    /// The arrival it began with, which is no message's.
    pub began: u64,
    /// The last arrival that the journal holds of it.
    pub last: u64,
}

/// What this run follows, oldest first.
#[derive(Debug, Default)]
pub(in crate::node) struct Reigns {
    known: Vec<Reign>,
}

impl Reigns {
    pub(in crate::node) fn push(&mut self, reign: Reign) {
        if self.known.len() >= REIGNS_MAX {
            self.known.remove(0);
        }
        self.known.push(reign);
    }

    /// The last arrival of a run that the journal holds.
    pub(in crate::node) fn last_of(&self, run: u64) -> Option<u64> {
        self.known.iter().rev().find(|reign| reign.run == run).map(|reign| reign.last)
    }

    /// The arrival with which the run began that gave this epoch.
    pub(in crate::node) fn begin_of(&self, epoch: u64) -> Option<u64> {
        let reign = self.known.iter().rev().find(|reign| (reign.epoch..reign.epoch_end).contains(&epoch))?;
        Some(reign.began)
    }
}
