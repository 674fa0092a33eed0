//! What the journal knows of the node's runs: when each began, what it follows and how it ended, so that a client of an earlier
//! run can be told exactly what it missed. Owns the chain, and that its epochs rise; what a client is told of it is the core's.

/// A run numbers subjects in fewer epochs than this: it raises its epoch at most once a second, and lasts at most three years.
const EPOCHS_OF_A_RUN: u64 = 100_000_000;
/// How far an epoch may be above the lowest that is free.
const JUMP: u64 = 1 << 33;
/// Epochs that a run may have raised its own by although the clock says that it lasted no time: somebody set it back.
const EPOCHS_RAISED: u64 = 3_600;

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
    pub missing: Vec<(u64, u64)>,
}

impl RunRecord {
    /// The first epoch that is certainly not this run's, where the next one began at `next_ms`.
    pub fn epoch_end(&self, next_ms: u64) -> u64 {
        let lasted_s = next_ms.saturating_sub(self.began_ms) / 1_000;
        self.epoch.saturating_add(lasted_s.saturating_add(EPOCHS_RAISED).min(EPOCHS_OF_A_RUN))
    }
}

/// The epoch that a run begins with: the one asked for, unless an earlier run began with it or a later one. That is so where the
/// journal was put into another data directory, or the file with the highest epoch was removed. Two runs that follow the same one,
/// in two copies of the journal, must not get the same epoch, so that a part of it is the run's own random number.
pub(crate) fn choose_epoch(asked: u64, run: u64, past: &[RunRecord]) -> u64 {
    match past.iter().map(|run| run.epoch).max() {
        Some(highest) if asked <= highest => highest.saturating_add(EPOCHS_OF_A_RUN + 1 + run % JUMP),
        _ => asked,
    }
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

#[cfg(test)]
mod tests {
    use super::{EPOCHS_OF_A_RUN, EPOCHS_RAISED, RunRecord, choose_epoch};

    fn run(epoch: u64) -> RunRecord {
        RunRecord { run: 1, epoch, began_ms: 50_000, follows: None, ended: None, missing: Vec::new() }
    }

    #[test]
    fn an_epoch_is_above_those_of_all_runs_and_of_two_that_follow_the_same_each_has_its_own() {
        assert_eq!(choose_epoch(7, 1, &[]), 7);
        assert_eq!(choose_epoch(8, 1, &[run(7)]), 8);
        let [one, other] = [5, 6].map(|random| choose_epoch(8, random, &[run(9), run(8)]));
        assert!(one > 9 + EPOCHS_OF_A_RUN && other > 9 + EPOCHS_OF_A_RUN && one != other, "{one} {other}");
    }

    #[test]
    fn epochs_behind_what_a_run_can_have_raised_are_not_its_own() {
        assert_eq!(run(7).epoch_end(150_999), 7 + 100 + EPOCHS_RAISED);
        assert_eq!(run(7).epoch_end(0), 7 + EPOCHS_RAISED);
        assert_eq!(run(7).epoch_end(u64::MAX), 7 + EPOCHS_OF_A_RUN);
    }
}
