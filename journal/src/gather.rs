//! Whether the next group is worth a moment's wait. Publishers that a sync has just answered come back within a fraction of its time; a group that
//! leaves before they are there makes them wait for a sync of their own, and two half groups then take turns for ever. Owns how many are expected
//! and how long they are waited for: at most half a sync, and not at all where they do not come.
use std::time::{Duration, Instant};

/// Nobody waits longer than this for others.
const PATIENCE_MAX: Duration = Duration::from_millis(2);
/// A group is as expected with this share of the rows, in quarters.
const ENOUGH: usize = 3;
/// So many groups in a row that were waited for in vain …
const MISSES_MAX: u32 = 2;
/// … and so many are not waited for.
const RESTS: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Gather {
    expected: usize,
    until: Option<Instant>,
    /// Of a sync, smoothed.
    sync: Duration,
    misses: u32,
    rests: u32,
}

/// What a group is waited for; without rows it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) rows: usize,
    pub(crate) until: Instant,
}

impl Gather {
    /// A sync took so long and answered so many rows, while so many others came.
    pub(crate) fn synced(&mut self, took: Duration, answered: usize, waiting: usize, now: Instant) {
        self.sync = if self.sync.is_zero() { took } else { (self.sync * 7 + took) / 8 };
        self.expected = answered + waiting;
        self.until = Some(now + (self.sync / 2).min(PATIENCE_MAX));
    }

    pub(crate) fn wait(&self) -> Option<Wait> {
        let until = self.until.filter(|_| self.rests == 0 && self.expected > 1)?;
        Some(Wait { rows: self.expected, until })
    }

    /// So many rows left as the next group.
    pub(crate) fn took(&mut self, rows: usize) {
        if self.wait().is_some() {
            self.misses = if 4 * rows < ENOUGH * self.expected { self.misses + 1 } else { 0 };
        }
        if self.misses == MISSES_MAX {
            (self.misses, self.rests) = (0, RESTS);
        }
        self.rests = self.rests.saturating_sub(1);
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(400);

    #[test]
    fn who_was_answered_is_waited_for_half_a_sync() {
        let (mut gather, now) = (Gather::default(), Instant::now());
        assert_eq!(gather.wait(), None);
        gather.synced(SYNC, 32, 32, now);
        assert_eq!(gather.wait(), Some(Wait { rows: 64, until: now + SYNC / 2 }));
        gather.took(64);
        assert_eq!(gather.wait(), None, "only right after a sync");
        gather.synced(SYNC, 1, 0, now);
        assert_eq!(gather.wait(), None, "who publishes alone is never held up");
    }

    #[test]
    fn who_does_not_come_back_is_not_waited_for_again_and_again() {
        let (mut gather, now) = (Gather::default(), Instant::now());
        let mut waits = 0;
        for _ in 0..10 * RESTS {
            gather.synced(SYNC, 10, 5, now);
            waits += u32::from(gather.wait().is_some());
            gather.took(5);
        }
        assert!(waits <= 10 * MISSES_MAX + 2, "{waits}");
    }
}
