//! The reigns of one log: what numbered its messages before the present epoch, as far as the journal tells. Owns the way from a
//! client's position to the log's number and back: `E.0` of a reign stands for what it follows, and where two reigns meet the
//! log has an arrival that is no message's, so that who reads over it can be told.
use std::sync::Arc;

use super::Log;
use crate::message::Follows;
use crate::position::Position;

/// Reigns remembered of one log whatever it keeps of them; of older ones those whose messages it still has. Positions of others
/// are unknown.
const REIGNS_MAX: usize = 16;

/// A reign that has ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::node) struct Reign {
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

impl Reign {
    fn end(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.last - self.before }
    }
}

#[derive(Debug)]
pub(super) struct Past {
    reigns: Vec<Reign>,
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
    /// It has been sent everything up to this number, and was told of the reigns that ended with this arrival; 0 of none.
    Number { number: u64, told: u64 },
    /// It stands beyond what this epoch has numbered.
    Ahead,
    /// As far as the journal holds this epoch, of which it lost something, or further: it ended at this number, with this arrival, and that
    /// much has been sent.
    Beyond { number: u64, ended: u64 },
    /// An epoch of which nothing is known.
    Other,
}

/// Where a reading meets the end of a reign.
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
    fn reigns(&self) -> &[Reign] {
        self.past.as_ref().map_or(&[], |past| &past.reigns)
    }

    /// The log's last number before the present epoch.
    fn before(&self) -> u64 {
        self.past.as_ref().map_or(0, |past| past.follows.number)
    }

    /// The head as clients see it.
    pub(in crate::node) fn at(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.sequence - self.before() }
    }

    /// The present reign ends with an arrival that is no message's; another begins. Messages of any log may be lost up to `lost`.
    pub(in crate::node) fn end_reign(&mut self, arrival: u64, epoch: u64, lost: u64) {
        let is_torn = lost > self.last_arrival.max(self.evicted_arrival);
        let reign = Reign { epoch: self.epoch, before: self.before(), last: self.sequence, ended: arrival, is_torn };
        let mut reigns = self.past.take().map_or_else(Vec::new, |past| past.reigns);
        reigns.push(reign);
        let (old, base, mut index) = (reigns.len().saturating_sub(REIGNS_MAX), self.base(), 0);
        reigns.retain(|reign| {
            index += 1;
            index > old || reign.last >= base && reign.last > reign.before
        });
        let at = place_in(&reigns, self.sequence).unwrap_or(reign.end());
        self.past = Some(Box::new(Past { reigns, follows: Arc::new(Follows { number: self.sequence, at }) }));
        self.epoch = epoch;
    }

    /// The position of a number: of the message that has it, where there is one.
    pub(in crate::node) fn position(&self, number: u64) -> Position {
        if number > self.before() {
            return Position { epoch: self.epoch, sequence: number - self.before() };
        }
        let before_all = self.reigns().first().map_or(self.epoch, |reign| reign.epoch);
        place_in(self.reigns(), number).unwrap_or(Position { epoch: before_all, sequence: 0 })
    }

    /// What a client's position means here.
    pub(in crate::node) fn find(&self, at: Position) -> Known {
        if at.epoch == self.epoch {
            let number = self.before().saturating_add(at.sequence);
            let told = self.reigns().last().map_or(0, |reign| reign.ended);
            return if number > self.sequence { Known::Ahead } else { Known::Number { number, told } };
        }
        let reigns = self.reigns();
        let Some(index) = reigns.iter().rposition(|reign| reign.epoch == at.epoch) else { return Known::Other };
        let told = index.checked_sub(1).and_then(|before| reigns.get(before)).map_or(0, |reign| reign.ended);
        match reigns.get(index) {
            Some(reign) if at.sequence < reign.last - reign.before + u64::from(!reign.is_torn) => {
                Known::Number { number: reign.before + at.sequence, told }
            }
            Some(reign) => Known::Beyond { number: reign.last, ended: reign.ended },
            None => Known::Other,
        }
    }

    /// Where somebody stands who was sent everything up to an arrival at which this log had no message of its own.
    pub(in crate::node) fn number_at(&self, arrival: u64) -> u64 {
        self.reigns().iter().rev().find(|reign| reign.ended <= arrival).map_or(0, |reign| reign.last)
    }

    /// The first end of a reign that is met after one arrival up to another.
    pub(in crate::node) fn change_in(&self, after: u64, until: u64) -> Option<Change> {
        let reigns = self.reigns();
        let index = reigns.iter().position(|reign| reign.ended > after)?;
        let reign = reigns.get(index).filter(|reign| reign.ended <= until)?;
        let epoch = reigns.get(index + 1).map_or(self.epoch, |next| next.epoch);
        let at = Position { epoch, sequence: 0 };
        Some(Change { arrival: reign.ended, number: reign.last, after: reign.end(), at, is_torn: reign.is_torn })
    }
}

fn place_in(reigns: &[Reign], number: u64) -> Option<Position> {
    let reign = reigns.iter().find(|reign| number <= reign.last && (number > reign.before || reign.before == 0))?;
    Some(Position { epoch: reign.epoch, sequence: number.saturating_sub(reign.before) })
}
