//! The feed's index: which log each arrival went to, and as which sequence. Eight bytes an arrival, in pages, so that it grows
//! without copying. A standard message takes an arrival and stands here as nobody's.
use std::collections::VecDeque;

const PAGE: usize = 4_096;
const NOBODY: u32 = u32::MAX;

/// The slot of a log and the low half of a sequence: a log never keeps 2³² messages, so its head tells the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotSequence {
    pub(super) slot: u32,
    pub(super) sequence_low: u32,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pages: VecDeque<Vec<SlotSequence>>,
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
            page.push(SlotSequence { slot, sequence_low: sequence as u32 });
        }
        self.len += 1;
    }

    pub(super) fn push_nobody(&mut self) {
        self.push(NOBODY, 0);
    }

    /// Goes on after `arrival`, as far back as `entries_max` nobody's on the way.
    pub(super) fn advance(&mut self, arrival: u64, entries_max: usize) {
        let way = arrival.saturating_sub(self.head());
        if way > entries_max as u64 || self.len == 0 {
            *self = Self { gone: self.gone.max(arrival).max(self.head()), ..Self::default() };
            return;
        }
        for _ in 0..way {
            self.push_nobody();
        }
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
    pub(super) fn get(&self, arrival: u64) -> Option<SlotSequence> {
        let (page, at) = self.find(arrival)?;
        let place = page.get(at)?;
        (place.slot != NOBODY).then_some(*place)
    }

    /// The sequence (low half) of the first arrival in `(after, until]` that went to `slot`. What is gone is not looked at.
    pub(super) fn first_of(&self, slot: u32, after: u64, until: u64) -> Option<u32> {
        let mut arrival = after.max(self.gone);
        let until = until.min(self.head());
        while arrival < until {
            let (page, from) = self.find(arrival + 1)?;
            let end = page.len().min(from + (until - arrival) as usize);
            let places = page.get(from..end)?;
            if let Some(place) = places.iter().find(|place| place.slot == slot) {
                return Some(place.sequence_low);
            }
            arrival += places.len() as u64;
        }
        None
    }

    /// The same of the last.
    pub(super) fn last_of(&self, slot: u32, after: u64, until: u64) -> Option<u32> {
        let after = after.max(self.gone);
        let mut arrival = until.min(self.head());
        while arrival > after {
            let (page, at) = self.find(arrival)?;
            let start = at.saturating_sub((arrival - after) as usize - 1);
            let places = page.get(start..=at)?;
            if let Some(place) = places.iter().rev().find(|place| place.slot == slot) {
                return Some(place.sequence_low);
            }
            arrival -= places.len() as u64;
        }
        None
    }

    fn find(&self, arrival: u64) -> Option<(&Vec<SlotSequence>, usize)> {
        let offset = usize::try_from(arrival.checked_sub(self.gone + 1)?).ok()? + self.skipped;
        Some((self.pages.get(offset / PAGE)?, offset % PAGE))
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{Index, PAGE};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pages_do_as_one_list_does(
            steps in prop::collection::vec((0..3 * PAGE, 0..3 * PAGE), 1..6),
            looks in prop::collection::vec((0..6_u32, any::<u16>(), any::<u16>()), 20),
        ) {
            let (mut index, mut list, mut gone) = (Index::default(), VecDeque::new(), 0_u64);
            let mut sequence = 0;
            for (pushes, pops) in steps {
                for _ in 0..pushes {
                    sequence += 1;
                    let slot = (sequence * 7919 % 1_009 % 5) as u32;
                    if slot == 4 {
                        index.push_nobody();
                    } else {
                        index.push(slot, sequence);
                    }
                    list.push_back((slot, sequence as u32));
                }
                for _ in 0..pops {
                    index.pop();
                    gone += u64::from(list.pop_front().is_some());
                }
                prop_assert_eq!((index.gone(), index.len()), (gone, list.len()));
                prop_assert_eq!(index.head(), gone + list.len() as u64);
                for &(slot, from, to) in &looks {
                    let (after, until) = (gone.saturating_sub(3) + u64::from(from) % 9_000, gone + u64::from(to) % 9_000);
                    let at = |arrival: u64| list.get(arrival.checked_sub(gone + 1)? as usize).copied();
                    let place = index.get(after).map(|place| (place.slot, place.sequence_low));
                    prop_assert_eq!(place, at(after).filter(|(slot, _)| *slot != 4));
                    let mut way = (after + 1..=until).filter_map(at).filter(|(other, _)| *other == slot);
                    if slot != 4 {
                        prop_assert_eq!(index.first_of(slot, after, until), way.clone().next().map(|(_, low)| low));
                        prop_assert_eq!(index.last_of(slot, after, until), way.next_back().map(|(_, low)| low));
                    }
                }
            }
        }
    }
}
