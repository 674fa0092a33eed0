//! The runs that this one follows, as the journal tells them: which arrivals and which epochs were whose. Resume tokens and empty positions
//! of an earlier run are understood through them. Arrivals go on from run to run, so that a resume token of an earlier one is a place
//! in the same feed; one that saw more than the disk did lies beyond what the journal holds of that run, and is unknown.

/// Runs remembered; resume tokens of older ones are unknown.
const RUNS_MAX: usize = 1_024;

/// Epochs of a subject that a client is told the order of (2.7).
pub(in crate::node) const EPOCHS_MAX: usize = 64;

/// A run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastRun {
    pub run: u64,
    /// The epoch it began with, and the first above it that it did not give: at most the one that its successor began with.
    pub epoch: u64,
    pub epoch_end: u64,
    /// The arrival it began with, which is no message's.
    pub began: u64,
    /// The last arrival that the journal holds of it.
    pub last: u64,
}

/// What this run follows, oldest first.
#[derive(Debug, Default)]
pub(in crate::node) struct Runs {
    known: Vec<PastRun>,
    /// The epoch and the arrival with which the present run began; 0 where it follows none.
    present: (u64, u64),
}

impl Runs {
    pub(in crate::node) fn push(&mut self, run: PastRun) {
        if self.known.len() >= RUNS_MAX {
            self.known.remove(0);
        }
        self.known.push(run);
    }

    /// The present run begins, behind the ones that were pushed.
    pub(in crate::node) fn begin(&mut self, epoch: u64, arrival: u64) {
        self.present = (epoch, arrival);
    }

    /// Whether this run follows another.
    pub(in crate::node) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The epochs that the earlier runs began with.
    pub(in crate::node) fn epochs(&self) -> impl Iterator<Item = u64> + '_ {
        self.known.iter().map(|run| run.epoch)
    }

    /// The arrival with which the run began that followed one.
    pub(in crate::node) fn ended(&self, run: u64) -> Option<u64> {
        let index = self.known.iter().rposition(|known| known.run == run)?;
        Some(self.known.get(index + 1).map_or(self.present.1, |next| next.began))
    }

    /// Whether an epoch may be one of this node's, as far as it remembers.
    pub(in crate::node) fn has_given(&self, epoch: u64) -> bool {
        epoch >= self.present.0 || self.known.len() >= RUNS_MAX || self.begin_of(epoch).is_some()
    }

    /// Whether the epochs since a run are few enough to be told in their order.
    pub(in crate::node) fn is_near(&self, run: u64) -> bool {
        self.known.iter().rev().take(EPOCHS_MAX - 1).any(|known| known.run == run)
    }

    /// The last arrival of a run that the journal holds.
    pub(in crate::node) fn last_of(&self, run: u64) -> Option<u64> {
        self.known.iter().rev().find(|known| known.run == run).map(|run| run.last)
    }

    /// The arrival with which the earlier run began that gave this epoch.
    pub(in crate::node) fn begin_of(&self, epoch: u64) -> Option<u64> {
        let run = self.known.iter().rev().find(|run| (run.epoch..run.epoch_end).contains(&epoch))?;
        Some(run.began)
    }

    /// An arrival before which nothing has this epoch: its run, an earlier one or the present, began with it. 0 where that is not known.
    pub(in crate::node) fn sure_of(&self, epoch: u64) -> u64 {
        let (present, began) = self.present;
        if epoch >= present { began } else { self.begin_of(epoch).unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::{PastRun, Runs};

    #[test]
    fn nothing_of_an_epoch_is_before_its_run() {
        let mut runs = Runs::default();
        assert_eq!(runs.sure_of(7), 0);
        runs.push(PastRun { run: 1, epoch: 7, epoch_end: 10, began: 1, last: 20 });
        runs.push(PastRun { run: 2, epoch: 10, epoch_end: 12, began: 21, last: 30 });
        runs.begin(12, 31);
        // A subject that is forgotten and comes back raises the epoch within a run.
        let known = [6, 7, 9, 10, 11, 12, 13].map(|epoch| runs.sure_of(epoch));
        assert_eq!(known, [0, 1, 1, 21, 21, 31, 31]);
    }
}
