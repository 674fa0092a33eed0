//! Walking the feed's index for a pattern: everything that matches between two arrivals, in the order in which it was accepted.
//! Each arrival that is no longer kept is counted in a hole once, however many calls a walk takes and whatever goes meanwhile.
use std::sync::Arc;

use super::Node;
use super::read::Hole;
use crate::message::{LogId, Message};
use crate::position::Position;
use crate::subject::Pattern;

/// How far one call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Everything of the pattern up to this arrival is accounted for: put out, or in a hole.
    pub reached: u64,
    /// The way is gone, from `after` on: a log was forgotten, or the index does not reach back. A gap for the pattern.
    pub is_lost: bool,
}

/// How much one call may do.
#[derive(Clone, Copy, Debug)]
pub struct Stride {
    /// Arrivals looked at.
    pub entries_max: usize,
    /// Bytes put out; at least one message is.
    pub bytes_max: usize,
}

impl Node {
    /// Messages that `pattern` holds with an arrival in `(after, until]`, oldest first. Holes come before all messages of this
    /// call: within a log, what is gone was older.
    pub fn walk(
        &self,
        pattern: &Pattern,
        after_arrival: u64,
        until_arrival: u64,
        out: &mut Vec<Arc<Message>>,
        holes: &mut Vec<(LogId, Arc<str>, Hole)>,
        stride: Stride,
    ) -> Walk {
        if after_arrival < self.forgotten_arrival || after_arrival < self.index.gone() {
            return Walk { reached: after_arrival, is_lost: true };
        }
        let (mut left, mut reached) = (stride.bytes_max, after_arrival);
        let (out_before, holes_before) = (out.len(), holes.len());
        let until = until_arrival.min(self.index.head());
        while reached < until && reached - after_arrival < stride.entries_max.max(1) as u64 {
            let arrival = reached + 1;
            let place = self.index.get(arrival);
            let log = place.and_then(|place| Some((self.names.log_at(place.slot)?, place)));
            if let Some((log, place)) = log.filter(|(log, _)| pattern.matches(&log.subject)) {
                let sequence = log.widen(place.sequence_low);
                match log.get(sequence) {
                    Some(message) => {
                        let cost = message.cost_bytes();
                        if cost > left && out.len() > out_before {
                            break;
                        }
                        left = left.saturating_sub(cost);
                        out.push(Arc::clone(message));
                    }
                    None => {
                        let id = self.names.id_at(place.slot).unwrap_or(LogId { slot: place.slot, generation: 0 });
                        let told = holes.get_mut(holes_before..).unwrap_or_default();
                        let at = Position { epoch: log.epoch, sequence };
                        match told.iter_mut().find(|(other, _, _)| *other == id) {
                            Some((_, _, hole)) => {
                                hole.at = at;
                                hole.missed = hole.missed.map(|missed| missed + 1);
                            }
                            None => {
                                let after = Position { epoch: log.epoch, sequence: sequence.saturating_sub(1) };
                                let reason = log.gap_reason(after.sequence);
                                let hole = Hole { missed: Some(1), after: Some(after), at, reason };
                                holes.push((id, Arc::clone(&log.subject), hole));
                            }
                        }
                    }
                }
            }
            reached = arrival;
        }
        if reached == until {
            reached = until_arrival.max(after_arrival);
        }
        Walk { reached, is_lost: false }
    }
}
