//! The streams of a shard: found by what they are of, and by the subjects whose messages concern them.
//! Owns the look-up, and how a new one is shaped; what is appended to a stream, and who sits in it, is decided elsewhere.
use std::collections::HashMap;
use std::sync::Arc;

use super::Shard;
use crate::codes::Code;
use crate::command::Refusal;
use crate::message::LogId;
use crate::node::{Node, Owner, Shares};
use crate::slab::Slab;
use crate::stream::{Source, Stream, Variant};
use crate::subject::Pattern;

#[derive(Debug, Default)]
pub(super) struct Streams {
    slab: Slab<Stream>,
    by_log: HashMap<LogId, Seats>,
    patterns: Patterns,
    /// Streams with a clock of their own: conflated ones, and those that hold frames back.
    pub timed: Vec<u32>,
    /// The last number given to a subject on the binary wire.
    pub next_number: u32,
    pub window_bytes: usize,
    /// Who opens the next one, and how many each holder has opened.
    pub opener: Owner,
    shares: Shares,
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

/// Pattern streams by what their patterns begin with, so that neither a subject nor a join looks at all of them.
#[derive(Debug, Default)]
struct Patterns {
    /// By the text up to the slash before the first wildcard.
    by_prefix: HashMap<Box<str>, Vec<u32>>,
}

impl Patterns {
    fn prefix(text: &str) -> &str {
        let wildcard = text.match_indices('/').find(|(at, _)| {
            let segment = text.get(at + 1..).unwrap_or("").split('/').next();
            matches!(segment, Some("*" | "**"))
        });
        wildcard.map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
    }

    /// The streams whose patterns begin like `text`.
    fn starting(&self, text: &str) -> &[u32] {
        self.by_prefix.get(Self::prefix(text)).map_or(&[], Vec::as_slice)
    }

    fn insert(&mut self, pattern: &Pattern, id: u32) {
        self.by_prefix.entry(Self::prefix(pattern.text()).into()).or_default().push(id);
    }

    fn remove(&mut self, pattern: &Pattern, id: u32) {
        let prefix = Self::prefix(pattern.text());
        if let Some(ids) = self.by_prefix.get_mut(prefix) {
            ids.retain(|&other| other != id);
            if ids.is_empty() {
                self.by_prefix.remove(prefix);
            }
        }
    }

    /// Streams whose patterns may hold `subject`: those that begin with any of its beginnings.
    fn matching(&self, subject: &str, mut each: impl FnMut(u32)) {
        if self.by_prefix.is_empty() {
            return;
        }
        let ends = subject.match_indices('/').map(|(at, _)| at).chain([subject.len()]);
        for ids in ends.filter_map(|end| self.by_prefix.get(subject.get(..end)?)) {
            ids.iter().for_each(|&id| each(id));
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
    /// Above all indices.
    pub(super) fn end(&self) -> u32 {
        self.slab.end()
    }

    pub(super) fn indices_from(&self, start: u32) -> impl Iterator<Item = u32> + '_ {
        self.slab.indices_from(start)
    }

    pub(super) fn find_subject(&self, log: LogId, variant: Variant) -> Option<u32> {
        let ids = self.by_log.get(&log)?.as_slice();
        ids.iter().copied().find(|&id| self.is(id, variant))
    }

    pub(super) fn find_pattern(&self, text: &str, variant: Variant) -> Option<u32> {
        self.patterns
            .starting(text)
            .iter()
            .copied()
            .find(|&id| self.is(id, variant) && self.slab.get(id).is_some_and(|stream| &*stream.name == text))
    }

    fn is(&self, id: u32, variant: Variant) -> bool {
        self.slab.get(id).is_some_and(|stream| stream.variant() == variant)
    }

    pub(super) fn insert(&mut self, stream: Stream) -> u32 {
        let source = stream.source.clone();
        self.shares.add(stream.opener);
        let id = self.slab.insert(stream);
        match source {
            Source::Subject(log) => match self.by_log.remove(&log) {
                None => drop(self.by_log.insert(log, Seats::One(id))),
                Some(seats) => {
                    let ids = seats.as_slice().iter().copied().chain([id]).collect();
                    self.by_log.insert(log, Seats::Many(ids));
                }
            },
            Source::Pattern(pattern) => self.patterns.insert(&pattern, id),
        }
        id
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        let stream = self.slab.remove(id)?;
        self.shares.remove(stream.opener);
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
            Source::Pattern(pattern) => self.patterns.remove(pattern, id),
        }
        self.timed.retain(|&other| other != id);
        self.window_bytes -= stream.window_bytes;
        Some(stream)
    }

    /// All streams that a message of `log`, named `subject`, belongs to.
    pub(super) fn concerned(&self, log: LogId, subject: &str, into: &mut Vec<u32>) {
        into.clear();
        if let Some(seats) = self.by_log.get(&log) {
            into.extend_from_slice(seats.as_slice());
        }
        self.patterns.matching(subject, |id| {
            let source = self.slab.get(id).map(|stream| &stream.source);
            if matches!(source, Some(Source::Pattern(pattern)) if pattern.matches(subject)) {
                into.push(id);
            }
        });
    }

    /// When the first timed stream wants a turn (monotonic ms).
    pub(super) fn deadline_ms(&self) -> u64 {
        let deadlines = self.timed.iter().filter_map(|&id| self.slab.get(id)).filter_map(deadline);
        deadlines.min().unwrap_or(u64::MAX)
    }
}

impl Shard {
    /// The stream of a subject, made at need; the caller seats a cursor in it.
    pub(super) fn open_subject_stream(
        &mut self,
        subject: &str,
        variant: Variant,
        node: &mut Node,
    ) -> Result<(u32, LogId), Refusal> {
        let log = node.open(self.index, subject, self.now)?;
        let stream = match self.streams.find_subject(log, variant) {
            Some(stream) => {
                node.close(self.index, log, self.now);
                stream
            }
            None => {
                let mut stream = Stream::new(Arc::from(subject), Source::Subject(log), variant);
                let policy = node.policy(subject);
                stream.conflates_slow = policy.conflates_when_slow && !variant.wire.is_mqtt();
                (stream.batch_ms, stream.batch_bytes_max) = (policy.batch_ms, policy.batch_bytes_max);
                match self.add_stream(stream) {
                    Ok(stream) => stream,
                    Err(refusal) => {
                        node.close(self.index, log, self.now);
                        return Err(refusal);
                    }
                }
            }
        };
        self.count_subscribers(stream, 1, node);
        Ok((stream, log))
    }

    /// Tells the log of a stream of one subject how many it serves, if that is news: its cursors, and so many that are about to
    /// be seated.
    pub(super) fn count_subscribers(&mut self, id: u32, joining: u32, node: &mut Node) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Source::Subject(log) = stream.source else { return };
        let now = stream.cursors.len() as u32 + joining;
        let before = std::mem::replace(&mut stream.counted, now);
        if before != now {
            node.recount(self.index, log, before, now);
        }
    }

    /// The stream of a pattern, made at need; the caller seats a cursor in it.
    pub(super) fn open_pattern_stream(
        &mut self,
        pattern: &Pattern,
        variant: Variant,
        node: &mut Node,
    ) -> Result<u32, Refusal> {
        let stream = match self.streams.find_pattern(pattern.text(), variant) {
            Some(stream) => {
                node.announce_pattern(pattern);
                stream
            }
            None => {
                node.open_pattern(self.index, pattern, self.now)?;
                let source = Source::Pattern(Arc::new(pattern.clone()));
                let mut stream = Stream::new(Arc::from(pattern.text()), source, variant);
                self.settings.shape(&mut stream, pattern);
                stream.conflates_slow &= !variant.wire.is_mqtt();
                match self.add_stream(stream) {
                    Ok(stream) => stream,
                    Err(refusal) => {
                        node.close_pattern(self.index, pattern, self.now);
                        return Err(refusal);
                    }
                }
            }
        };
        // The feed may hold entries from before this shard listened; what they say is in the logs.
        self.absorb_all(node);
        Ok(stream)
    }

    pub(super) fn add_stream(&mut self, mut stream: Stream) -> Result<u32, Refusal> {
        let (len, max) = (self.streams.len(), self.settings.limits.streams_per_shard_max);
        if len >= max {
            return Err(Refusal::new(Code::StreamsTooMany, "this shard has as many streams as it may have"));
        }
        stream.opener = std::mem::take(&mut self.streams.opener);
        let may_add = self.streams.shares.check(stream.opener, len, max);
        may_add.map_err(Refusal::from)?;
        let is_timed = Self::keeps_window(&stream);
        let id = self.streams.insert(stream);
        if is_timed {
            self.streams.timed.push(id);
            self.open_window(id);
        }
        self.counters.streams = self.streams.len() as u64;
        Ok(id)
    }
}

fn deadline(stream: &Stream) -> Option<u64> {
    let closes = stream.conflation.as_ref().filter(|c| !c.is_empty()).map(|c| c.closes_ms);
    let held = stream.held.map(|(since, _)| since + u64::from(stream.batch_ms));
    closes.into_iter().chain(held).min()
}

#[cfg(test)]
mod tests {
    use super::Patterns;
    use crate::subject::Pattern;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_ends_before_the_slash_of_the_first_wildcard() {
        let cases = [("/a/b/*", "/a/b"), ("/**", ""), ("/*/a", ""), ("/a*/**", "/a*"), ("/a/*/b/**", "/a")];
        for (text, prefix) in cases {
            assert_eq!(Patterns::prefix(text), prefix);
        }
    }

    fn segment() -> impl Strategy<Value = &'static str> {
        prop_oneof![Just("a"), Just("b"), Just("a*"), Just("*")]
    }

    proptest! {
        /// Every pattern that holds a subject is among those looked at.
        #[test]
        fn no_matching_pattern_is_passed_over(
            patterns in proptest::collection::vec((proptest::collection::vec(segment(), 0..4), any::<bool>()), 1..20),
            subject in proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("a*")], 1..5),
        ) {
            let mut index = Patterns::default();
            let subject = format!("/{}", subject.join("/"));
            let mut known = Vec::new();
            for (segments, has_rest) in patterns {
                let rest = if has_rest || segments.is_empty() { "/**" } else { "" };
                let start = if segments.is_empty() { "" } else { "/" };
                let Ok(pattern) = Pattern::parse(&format!("{start}{}{rest}", segments.join("/"))) else { continue };
                index.insert(&pattern, known.len() as u32);
                known.push(pattern);
            }
            let mut looked = Vec::new();
            index.matching(&subject, |id| looked.push(id));
            for (id, pattern) in known.iter().enumerate() {
                prop_assert!(!pattern.matches(&subject) || looked.contains(&(id as u32)), "{} {subject}", pattern.text());
                index.remove(pattern, id as u32);
            }
            prop_assert!(index.by_prefix.is_empty());
        }
    }
}
