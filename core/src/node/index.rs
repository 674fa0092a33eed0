//! The feed's index: which log each arrival went to, and as which sequence. Eight bytes an arrival, in pages, so that it grows
//! without copying. A standard message takes an arrival and stands here as nobody's.
use std::collections::VecDeque;

const PAGE: usize = 4_096;
const NOBODY: u32 = u32::MAX;

/// The slot of a log and the low half of a sequence: a log never keeps 2³² messages, so its head tells the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) slot: u32,
    pub(super) sequence_low: u32,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pages: VecDeque<Vec<Place>>,
    /// Arrivals begin at 1; this many are no longer in the index.
    gone: u64,
    /// Places of the first page that are gone.
    skipped: usize,
    len: usize,
}

impl Index {
    pub(super) fn push(&mut self, slot: u32, sequence: u64) {
        if self.pages.back().is_none_or(|page| page.len() == PAGE) {
            self.pages.push_back(Vec::with_capacity(PAGE));
        }
        if let Some(page) = self.pages.back_mut() {
            page.push(Place { slot, sequence_low: sequence as u32 });
        }
        self.len += 1;
    }

    pub(super) fn push_nobody(&mut self) {
        self.push(NOBODY, 0);
    }

    /// The last arrival.
    pub(super) fn head(&self) -> u64 {
        self.gone + self.len as u64
    }

    /// Everything up to this arrival is gone from the index.
    pub(super) fn gone(&self) -> u64 {
        self.gone
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where an arrival went; none for a standard message's, or one that is gone or to come.
    pub(super) fn get(&self, arrival: u64) -> Option<Place> {
        let offset = usize::try_from(arrival.checked_sub(self.gone + 1)?).ok()? + self.skipped;
        let place = self.pages.get(offset / PAGE)?.get(offset % PAGE)?;
        (place.slot != NOBODY).then_some(*place)
    }

    /// How many arrivals in `(after, until]` went to `slot`, and the sequence (low half) of the first; none when some of
    /// the range is gone.
    pub(super) fn count(&self, slot: u32, after: u64, until: u64) -> Option<(u64, u32)> {
        if after < self.gone {
            return None;
        }
        let (mut count, mut first) = (0, 0);
        let mut offset = (after - self.gone) as usize + self.skipped;
        let mut left = until.min(self.head()).saturating_sub(after) as usize;
        while left > 0 {
            let page = self.pages.get(offset / PAGE)?;
            let from = offset % PAGE;
            let taken = left.min(page.len().saturating_sub(from)).max(1);
            for place in page.get(from..from + taken)?.iter().filter(|place| place.slot == slot) {
                if count == 0 {
                    first = place.sequence_low;
                }
                count += 1;
            }
            offset += taken;
            left -= taken;
        }
        Some((count, first))
    }

    /// Lets the oldest arrival go.
    pub(super) fn pop(&mut self) {
        if self.len == 0 {
            return;
        }
        self.gone += 1;
        self.len -= 1;
        self.skipped += 1;
        if self.skipped == PAGE {
            self.pages.pop_front();
            self.skipped = 0;
        }
    }
}
