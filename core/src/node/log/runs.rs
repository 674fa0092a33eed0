//! The runs of one log: what numbered its messages before the present epoch, as far as the journal tells. Owns the way from a
//! client's position to the log's number and back: `E.0` of a run stands for what it follows, and where two runs meet the
//! log has an arrival that is no message's, so that who reads over it can be told.
use std::sync::Arc;

use super::Log;
use crate::message::Follows;
use crate::position::Position;

/// Runs remembered of one log whatever it keeps of them; of older ones those whose messages it still has. Positions of others
/// are unknown.
const RUNS_MAX: usize = 16;

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::node) struct EpochSpan {
    epoch: u64,
    /// The log's last number before it.
    before: u64,
    /// The log's last number at its end.
    last: u64,
    /// Its messages arrived before this, those of its successor after.
    ended: u64,
    /// Messages may have followed its last that the journal lost.
    is_torn: bool,
}

impl EpochSpan {
    fn end(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.last - self.before }
    }
}

#[derive(Debug)]
pub(super) struct Past {
    runs: Vec<EpochSpan>,
    follows: Arc<Follows>,
}

impl Past {
    pub(super) fn follows(&self) -> Arc<Follows> {
        Arc::clone(&self.follows)
    }
}

/// What a log makes of a client's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum Known {
    /// It has been sent everything up to this number, and was told of the runs that ended with this arrival; 0 of none.
    Number { number: u64, told: u64 },
    /// It stands beyond what this epoch has numbered.
    Ahead,
    /// As far as the journal holds this epoch, of which it lost something, or further: it ended at this number, with this arrival, and that
    /// much has been sent.
    Beyond { number: u64, ended: u64 },
    /// An epoch of which nothing is known.
    Other,
}

/// Where a reading meets the end of a run.
#[derive(Clone, Copy, Debug)]
pub(in crate::node) struct Change {
    pub(in crate::node) arrival: u64,
    pub(in crate::node) number: u64,
    pub(in crate::node) after: Position,
    pub(in crate::node) at: Position,
    /// It is not known whether there was more before it.
    pub(in crate::node) is_torn: bool,
}

impl Log {
    fn runs(&self) -> &[EpochSpan] {
        self.past.as_ref().map_or(&[], |past| &past.runs)
    }

    /// The epochs that are remembered, in their order, the present one last.
    pub(in crate::node) fn epochs(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs().iter().map(|run| run.epoch).chain([self.epoch])
    }

    /// The arrival with which the present epoch began; 0 where it is the first.
    pub(in crate::node) fn present_began(&self) -> u64 {
        self.runs().last().map_or(0, |run| run.ended)
    }

    /// The log's last number before the present epoch.
    fn before(&self) -> u64 {
        self.past.as_ref().map_or(0, |past| past.follows.number)
    }

    /// The head as clients see it.
    pub(in crate::node) fn at(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.sequence - self.before() }
    }

    /// The present run ends with an arrival that is no message's; another begins. Messages of any log may be lost up to `lost`.
    pub(in crate::node) fn end_run(&mut self, arrival: u64, epoch: u64, lost: u64) {
        let is_torn = lost > self.last_arrival.max(self.evicted_arrival);
        let run = EpochSpan { epoch: self.epoch, before: self.before(), last: self.sequence, ended: arrival, is_torn };
        let mut runs = self.past.take().map_or_else(Vec::new, |past| past.runs);
        runs.push(run);
        let (old, base, mut index) = (runs.len().saturating_sub(RUNS_MAX), self.base(), 0);
        runs.retain(|run| {
            index += 1;
            index > old || run.last >= base && run.last > run.before
        });
        let at = place_in(&runs, self.sequence).unwrap_or(run.end());
        self.past = Some(Box::new(Past { runs, follows: Arc::new(Follows { number: self.sequence, at }) }));
        self.epoch = epoch;
    }

    /// A subject that was forgotten comes back: it goes on from where it ended, in an epoch that begins with this arrival.
    pub(in crate::node) fn resume(&mut self, at: Position, last_arrival: u64, arrival: u64) {
        let epoch = std::mem::replace(&mut self.epoch, at.epoch);
        self.jump(at.sequence, last_arrival);
        self.end_run(arrival, epoch, 0);
    }

    /// The position of a number: of the message that has it, where there is one.
    pub(in crate::node) fn position(&self, number: u64) -> Position {
        if number > self.before() {
            return Position { epoch: self.epoch, sequence: number - self.before() };
        }
        let before_all = self.runs().first().map_or(self.epoch, |run| run.epoch);
        place_in(self.runs(), number).unwrap_or(Position { epoch: before_all, sequence: 0 })
    }

    /// What a client's position means here.
    pub(in crate::node) fn find(&self, at: Position) -> Known {
        if at.epoch == self.epoch {
            let number = self.before().saturating_add(at.sequence);
            let told = self.runs().last().map_or(0, |run| run.ended);
            return if number > self.sequence { Known::Ahead } else { Known::Number { number, told } };
        }
        let runs = self.runs();
        let Some(index) = runs.iter().rposition(|run| run.epoch == at.epoch) else { return Known::Other };
        let told = index.checked_sub(1).and_then(|before| runs.get(before)).map_or(0, |run| run.ended);
        match runs.get(index) {
            Some(run) if at.sequence < run.last - run.before + u64::from(!run.is_torn) => {
                Known::Number { number: run.before + at.sequence, told }
            }
            Some(run) => Known::Beyond { number: run.last, ended: run.ended },
            None => Known::Other,
        }
    }

    /// Where somebody stands who was sent everything up to an arrival at which this log had no message of its own.
    pub(in crate::node) fn number_at(&self, arrival: u64) -> u64 {
        self.runs().iter().rev().find(|run| run.ended <= arrival).map_or(0, |run| run.last)
    }

    /// The first end of a run that is met after one arrival up to another.
    pub(in crate::node) fn change_in(&self, after: u64, until: u64) -> Option<Change> {
        let runs = self.runs();
        let index = runs.iter().position(|run| run.ended > after)?;
        let run = runs.get(index).filter(|run| run.ended <= until)?;
        let epoch = runs.get(index + 1).map_or(self.epoch, |next| next.epoch);
        let at = Position { epoch, sequence: 0 };
        Some(Change { arrival: run.ended, number: run.last, after: run.end(), at, is_torn: run.is_torn })
    }
}

fn place_in(runs: &[EpochSpan], number: u64) -> Option<Position> {
    let run = runs.iter().find(|run| number <= run.last && (number > run.before || run.before == 0))?;
    Some(Position { epoch: run.epoch, sequence: number.saturating_sub(run.before) })
}
