//! What a group has been dealt, for the journal: a range of arrivals in which each message was handed to one member, or is told missing. Owns
//! that it ends before the first message that is still to be dealt, and that one which a lost member gave back counts once.
use std::collections::VecDeque;

/// A range that is accounted for. It belongs to no member: which of them got what is not written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dealt {
    pub from: u64,
    pub to: u64,
    pub count: u64,
    /// Messages that their member is not to have: its own, expired, too large for it.
    pub passed: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    pub gaps: u64,
    /// None: one of the gaps could not count.
    pub gap_count: Option<u64>,
}

/// What one look at the feed brought, and what became of it.
#[derive(Debug)]
struct Look {
    reached: u64,
    left: usize,
    range: Dealt,
}

#[derive(Debug)]
pub(in crate::node) struct Dealings {
    /// Everything up to here stands in earlier ranges.
    told: u64,
    looks: VecDeque<Look>,
    /// So many looks before these are over.
    over: u64,
    /// Of looks that are over, since the last range.
    sum: Dealt,
}

impl Dealings {
    pub(in crate::node) fn new(arrival: u64) -> Self {
        Self { told: arrival, looks: VecDeque::new(), over: 0, sum: Dealt::begin(arrival) }
    }

    /// A look at the feed up to an arrival, `gone` are the counts of its missing ranges; returns the look's number.
    pub(in crate::node) fn look(&mut self, reached: u64, messages: usize, gone: &[Option<u64>]) -> u64 {
        let mut range = Dealt::begin(0);
        for missed in gone.iter().filter(|missed| **missed != Some(0)) {
            range.miss(*missed);
        }
        self.looks.push_back(Look { reached, left: messages, range });
        let number = self.over + self.looks.len() as u64 - 1;
        self.settle();
        number
    }

    /// A message of a look, or one that had been dealt before, is dealt, with so many bytes; or is no more.
    pub(in crate::node) fn deal(&mut self, look: Option<u64>, bytes: Option<usize>) {
        let Some(number) = look else {
            if bytes.is_none() {
                self.sum.miss(Some(1));
            }
            return;
        };
        if let Some(look) = self.index(number).and_then(|index| self.looks.get_mut(index)) {
            look.left = look.left.saturating_sub(1);
            match bytes {
                Some(bytes) => {
                    (look.range.count, look.range.bytes) = (look.range.count + 1, look.range.bytes + bytes as u64)
                }
                None => look.range.miss(Some(1)),
            }
        }
        self.settle();
    }

    /// A message that was dealt is not for the member that it was dealt to.
    pub(in crate::node) fn pass(&mut self, look: Option<u64>) {
        let Some(number) = look else { return };
        let index = self.index(number);
        let range = match index.and_then(|index| self.looks.get_mut(index)) {
            Some(look) => &mut look.range,
            None => &mut self.sum,
        };
        if range.count > 0 {
            (range.count, range.passed) = (range.count - 1, range.passed + 1);
        }
    }

    /// What is accounted for since the last call; none where that is nothing.
    pub(in crate::node) fn take(&mut self) -> Option<Dealt> {
        let range = Dealt { to: self.told, ..std::mem::replace(&mut self.sum, Dealt::begin(self.told)) };
        Some(range).filter(|range| range.count > 0 || range.passed > 0 || range.gaps > 0)
    }

    /// Looks of which nothing is left to be dealt are over.
    fn settle(&mut self) {
        while let Some(look) = self.looks.pop_front_if(|look| look.left == 0) {
            self.over += 1;
            self.told = look.reached;
            self.sum = self.sum.and(look.range);
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.over)?).ok()
    }
}

impl Dealt {
    /// Nothing yet, after an arrival.
    fn begin(told: u64) -> Self {
        Self { from: told.saturating_add(1), gap_count: Some(0), ..Self::default() }
    }

    fn miss(&mut self, missed: Option<u64>) {
        self.gaps += 1;
        self.gap_count = self.gap_count.zip(missed).map(|(all, missed)| all + missed);
    }

    fn and(self, next: Self) -> Self {
        let gap_count = self.gap_count.zip(next.gap_count).map(|(all, more)| all + more);
        Self {
            count: self.count + next.count,
            passed: self.passed + next.passed,
            bytes: self.bytes + next.bytes,
            gaps: self.gaps + next.gaps,
            gap_count,
            ..self
        }
    }
}
