//! The streams of a shard: found by what they are of, and by the subjects whose messages concern them.
//! Owns the look-up; what is appended to a stream, and who sits in it, is decided elsewhere.
use std::collections::HashMap;
use std::sync::Arc;

use crate::message::LogId;
use crate::slab::Slab;
use crate::stream::{Source, Stream};
use crate::wire::Wire;

/// Subjects whose matching patterns are remembered before the memory begins anew.
const MATCHED_MAX: usize = 262_144;

#[derive(Debug, Default)]
pub(super) struct Streams {
    slab: Slab<Stream>,
    by_log: HashMap<LogId, Seats>,
    patterns: Vec<u32>,
    /// Which pattern streams match a subject; forgotten whenever the patterns change.
    matched: HashMap<LogId, Box<[u32]>>,
    /// Streams with a clock of their own: conflated ones, and those that hold frames back.
    pub timed: Vec<u32>,
    /// The last number given to a subject on the binary wire.
    pub next_number: u32,
    pub window_bytes: usize,
}

/// Nearly every subject has one stream.
#[derive(Debug)]
enum Seats {
    One(u32),
    Many(Vec<u32>),
}

impl Seats {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&Stream> {
        self.slab.get(id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.slab.get_mut(id)
    }

    /// The stream and the number counter, for encoding.
    #[inline]
    pub(super) fn get_with_number(&mut self, id: u32) -> Option<(&mut Stream, &mut u32)> {
        Some((self.slab.get_mut(id)?, &mut self.next_number))
    }

    /// Identifiers from `start` on, ascending.
    pub(super) fn indices_from(&self, start: u32) -> impl Iterator<Item = u32> + '_ {
        self.slab.indices_from(start)
    }

    pub(super) fn find_subject(&self, log: LogId, wire: Wire, conflate_ms: u32) -> Option<u32> {
        let ids = self.by_log.get(&log)?.as_slice();
        ids.iter().copied().find(|&id| self.is(id, wire, conflate_ms))
    }

    pub(super) fn find_pattern(&self, text: &str, wire: Wire, conflate_ms: u32) -> Option<u32> {
        self.patterns
            .iter()
            .copied()
            .find(|&id| self.is(id, wire, conflate_ms) && self.slab.get(id).is_some_and(|stream| &*stream.name == text))
    }

    fn is(&self, id: u32, wire: Wire, conflate_ms: u32) -> bool {
        self.slab.get(id).is_some_and(|s| s.wire == wire && s.conflate_ms == conflate_ms)
    }

    pub(super) fn insert(&mut self, stream: Stream) -> u32 {
        let source = stream.source.clone();
        let id = self.slab.insert(stream);
        match source {
            Source::Subject(log) => match self.by_log.remove(&log) {
                None => drop(self.by_log.insert(log, Seats::One(id))),
                Some(seats) => {
                    let ids = seats.as_slice().iter().copied().chain([id]).collect();
                    self.by_log.insert(log, Seats::Many(ids));
                }
            },
            Source::Pattern(_) => {
                self.patterns.push(id);
                self.matched.clear();
            }
        }
        id
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        let stream = self.slab.remove(id)?;
        match &stream.source {
            Source::Subject(log) => {
                if let Some(Seats::Many(ids)) = self.by_log.get_mut(log) {
                    ids.retain(|&other| other != id);
                    if ids.is_empty() {
                        self.by_log.remove(log);
                    }
                } else {
                    self.by_log.remove(log);
                }
            }
            Source::Pattern(_) => {
                self.patterns.retain(|&other| other != id);
                self.matched.clear();
            }
        }
        self.timed.retain(|&other| other != id);
        self.window_bytes -= stream.window_bytes;
        Some(stream)
    }

    /// All streams that a message of `log`, named `subject`, belongs to.
    pub(super) fn concerned(&mut self, log: LogId, subject: &Arc<str>, into: &mut Vec<u32>) {
        into.clear();
        if let Some(seats) = self.by_log.get(&log) {
            into.extend_from_slice(seats.as_slice());
        }
        if self.patterns.is_empty() {
            return;
        }
        if let Some(ids) = self.matched.get(&log) {
            into.extend_from_slice(ids);
            return;
        }
        if self.matched.len() >= MATCHED_MAX {
            self.matched.clear();
        }
        let ids: Box<[u32]> = self.patterns.iter().copied().filter(|&id| self.is_matched(id, subject)).collect();
        into.extend_from_slice(&ids);
        self.matched.insert(log, ids);
    }

    fn is_matched(&self, id: u32, subject: &str) -> bool {
        match self.slab.get(id).map(|s| &s.source) {
            Some(Source::Pattern(pattern)) => pattern.matches(subject),
            _ => false,
        }
    }

    pub(super) fn pattern_ids(&self) -> Vec<u32> {
        self.patterns.clone()
    }

    /// When the first timed stream wants a turn (monotonic ms).
    pub(super) fn deadline_ms(&self) -> u64 {
        let deadlines = self.timed.iter().filter_map(|&id| self.slab.get(id)).filter_map(deadline);
        deadlines.min().unwrap_or(u64::MAX)
    }
}

fn deadline(stream: &Stream) -> Option<u64> {
    let closes = stream.conflation.as_ref().filter(|c| !c.is_empty()).map(|c| c.closes_ms);
    let held = stream.held.map(|(since, _)| since + u64::from(stream.hold_ms));
    closes.into_iter().chain(held).min()
}
