//! Whatever is published, evicted, expired, forgotten and begun again: what a client reads after an arrival, together with the
//! missing ranges, is exactly what was published, once each and in order. The model is the whole history.
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use godwit_core::command::GapReason;
use godwit_core::holder::Holder;
use godwit_core::message::{Draft, Kind, LogId};
use godwit_core::node::{Entry, Found, Node, Outcome, PositionState as State, ScanBudget, ScanRange};
use godwit_core::position::Position;
use godwit_core::subject::Pattern;
use proptest::prelude::*;

use crate::steps::{PATTERNS, SUBJECTS, Step, any_step};
use crate::support::{at_ms, new_node, pattern, position, publish};

const AGE_MS: u64 = 10_000;
const COUNT_MAX: usize = 8;

/// One message that was ever accepted with a position.
#[derive(Clone, Debug)]
struct Past {
    subject: usize,
    at: Position,
    arrival: u64,
    accepted_ms: u64,
    content: String,
}

struct Finder {
    pattern: Pattern,
    after: u64,
    until: u64,
    reached: u64,
    /// Positions by subject, in the order in which they were accounted for.
    found: BTreeMap<String, Vec<Position>>,
}

struct Reader {
    subject: usize,
    log: LogId,
    after: u64,
    until: u64,
    reached: u64,
    found: Vec<Position>,
}

struct World {
    node: Node,
    ms: u64,
    past: Vec<Past>,
    positions: HashSet<(usize, u64, u64)>,
    open: Vec<(u8, usize, LogId)>,
    open_patterns: Vec<(u8, usize)>,
    /// Arrivals each shard has still to be told.
    owed: [VecDeque<u64>; 3],
    finders: Vec<Finder>,
    readers: Vec<Reader>,
    arrivals: u64,
}

impl World {
    fn new(index_max: usize, bytes_max: usize) -> Self {
        let node = new_node(|settings| {
            settings.limits.log_messages_max = COUNT_MAX;
            settings.limits.log_age_ms_max = AGE_MS;
            settings.limits.snapshot_age_ms_max = AGE_MS;
            settings.limits.index_entries_max = index_max;
            settings.limits.logs_bytes_max = bytes_max;
        });
        Self {
            node,
            ms: 1,
            past: Vec::new(),
            positions: HashSet::new(),
            open: Vec::new(),
            open_patterns: Vec::new(),
            owed: Default::default(),
            finders: Vec::new(),
            readers: Vec::new(),
            arrivals: 0,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish { subject, times, is_guaranteed } => {
                (0..times).for_each(|_| self.publish(subject, is_guaranteed));
            }
            Step::Open { shard, subject } => {
                let log = self.node.open(shard, SUBJECTS[subject], at_ms(self.ms)).expect("opens");
                self.open.push((shard, subject, log));
            }
            Step::Close { which } if !self.open.is_empty() => {
                let (shard, _, log) = self.open.swap_remove(which % self.open.len());
                // A reader has a listener; without one its log may go.
                if !self.open.iter().any(|(_, _, other)| *other == log) {
                    self.readers.retain(|reader| reader.log != log);
                }
                self.node.close(shard, log, at_ms(self.ms));
            }
            Step::OpenPattern { shard, pattern: which } => {
                self.node.open_pattern(shard, &pattern(PATTERNS[which]), at_ms(self.ms)).expect("opens");
                self.open_patterns.push((shard, which));
            }
            Step::ClosePattern { which } if !self.open_patterns.is_empty() => {
                let (shard, which) = self.open_patterns.swap_remove(which % self.open_patterns.len());
                self.node.close_pattern(shard, &pattern(PATTERNS[which]), at_ms(self.ms));
            }
            Step::Close { .. } | Step::ClosePattern { .. } => {}
            Step::Drain { shard, max } => self.drain(shard, max),
            Step::Pass { ms } => self.ms += ms,
            Step::Sweep => while self.node.sweep(at_ms(self.ms)) {},
            Step::Scan { pattern: which, share } => {
                let after = (self.arrivals as f64 * share) as u64;
                let pattern = pattern(PATTERNS[which]);
                if self.node.place_resume_token(self.node.resume_token(after), &pattern).is_err() {
                    assert!(self.is_lost(&pattern, after));
                } else {
                    let until = self.node.arrival();
                    self.finders.push(Finder { pattern, after, until, reached: after, found: BTreeMap::new() });
                }
            }
            Step::Read { subject, share } => {
                if let Some((_, _, log)) = self.open.iter().find(|(_, other, _)| *other == subject) {
                    let after = (self.arrivals as f64 * share) as u64;
                    let until = self.node.arrival();
                    self.readers.push(Reader { subject, log: *log, after, until, reached: after, found: Vec::new() });
                }
            }
            Step::Advance { entries_max, bytes_max } => self.advance(entries_max, bytes_max, 9),
            Step::Place { subject, back } => self.place(subject, back),
        }
    }

    fn publish(&mut self, subject: usize, is_guaranteed: bool) {
        let content = format!("{{\"n\":{}}}", self.past.len());
        let mut draft = Draft::new(Kind::Json, content.as_bytes(), "", Holder::new("", "basic", "me"), 1);
        draft.is_guaranteed = is_guaranteed;
        let before = self.node.arrival();
        let Outcome::Published { at, is_duplicate: false } =
            publish(&mut self.node, SUBJECTS[subject], draft, at_ms(self.ms))
        else {
            return;
        };
        let arrival = self.node.arrival();
        self.arrivals = arrival;
        let mut shards: BTreeSet<u8> = BTreeSet::new();
        shards.extend(self.open.iter().filter(|(_, other, _)| *other == subject).map(|(shard, _, _)| shard));
        let holds = |which: usize| pattern(PATTERNS[which]).matches(SUBJECTS[subject]);
        shards.extend(self.open_patterns.iter().filter(|(_, which)| holds(*which)).map(|(shard, _)| shard));
        if is_guaranteed || !shards.is_empty() {
            assert_eq!(arrival, before + 1);
        }
        for shard in shards {
            self.owed[usize::from(shard)].push_back(arrival);
        }
        assert_eq!(at.is_some(), is_guaranteed);
        if let Some(at) = at {
            let is_new = self.positions.insert((subject, at.epoch, at.sequence));
            assert!(is_new, "the position {at} was given twice");
            let earlier = self.past.iter().rev().find(|past| past.subject == subject);
            let is_next = earlier.is_none_or(|past| {
                past.at.epoch == at.epoch && past.at.sequence + 1 == at.sequence
                    || past.at.epoch < at.epoch && at.sequence == 1
            });
            assert!(is_next, "{at} follows {earlier:?}");
            self.past.push(Past { subject, at, arrival, accepted_ms: self.ms, content });
        }
    }

    fn drain(&mut self, shard: u8, max: usize) {
        let mut entries = Vec::new();
        let has_more = self.node.drain(shard, &mut entries, max);
        let owed = &mut self.owed[usize::from(shard)];
        for entry in &entries {
            let Entry::Message(message) = entry else { panic!("nobody watches") };
            assert_eq!(Some(message.arrival), owed.pop_front());
        }
        assert_eq!(has_more, !owed.is_empty());
        let drained_to = self.node.drained_to(shard);
        assert_eq!(drained_to, owed.front().map_or(self.node.arrival(), |next| next - 1));
    }

    fn advance(&mut self, entries_max: usize, bytes_max: usize, missing_max: usize) {
        for mut finder in std::mem::take(&mut self.finders) {
            if self.scan(&mut finder, ScanBudget { entries_max, bytes_max, missing_max }) {
                self.finders.push(finder);
            }
        }
        for mut reader in std::mem::take(&mut self.readers) {
            if self.read(&mut reader, bytes_max) {
                self.readers.push(reader);
            }
        }
    }

    /// One call; false when the scan is over, and then it was exact.
    fn scan(&self, finder: &mut Finder, budget: ScanBudget) -> bool {
        let mut found = Found::default();
        let way = ScanRange { after: finder.reached, until: finder.until, budget };
        let scan = self.node.scan_pattern(&finder.pattern, way, &mut found);
        if scan.is_lost {
            assert!(self.is_lost(&finder.pattern, finder.reached), "lost for no reason");
            return false;
        }
        for (_, subject, range) in found.missing {
            let (missed, after) = (range.missed.expect("a scan knows"), range.after.expect("a scan knows"));
            let after = if after.epoch == range.at.epoch { after.sequence } else { 0 };
            assert_eq!(after + missed, range.at.sequence);
            let found = finder.found.entry(subject.to_string()).or_default();
            found.extend((after + 1..=range.at.sequence).map(|sequence| position(range.at.epoch, sequence)));
        }
        let mut last = finder.reached;
        for message in found.messages {
            assert!(message.arrival > last && message.arrival <= scan.reached);
            last = message.arrival;
            self.check_content(&message);
            let at = message.at().expect("a scan finds no standard message");
            finder.found.entry(message.subject.to_string()).or_default().push(at);
        }
        assert!(scan.reached > finder.reached || scan.reached >= finder.until);
        finder.reached = scan.reached;
        if finder.reached < finder.until {
            return true;
        }
        for (subject, name) in SUBJECTS.iter().enumerate() {
            let wanted =
                if finder.pattern.matches(name) { self.between(subject, finder.after, finder.until) } else { vec![] };
            let found = finder.found.remove(*name).unwrap_or_default();
            assert_eq!(found, wanted, "{name} between {} and {}", finder.after, finder.until);
        }
        false
    }

    /// Whether what a pattern holds after an arrival cannot all be known any more.
    fn is_lost(&self, pattern: &Pattern, after: u64) -> bool {
        let totals = self.node.totals();
        let is_present = |past: &Past| {
            let log = self.node.find(SUBJECTS[past.subject]);
            log.is_some_and(|log| self.node.head(log).at.epoch == past.at.epoch)
        };
        let wanted = self.past.iter().filter(|past| past.arrival > after && pattern.matches(SUBJECTS[past.subject]));
        totals.arrival - totals.index_entries > after || wanted.into_iter().any(|past| !is_present(past))
    }

    fn read(&self, reader: &mut Reader, bytes_max: usize) -> bool {
        let mut out = Vec::new();
        let read = self.node.read(reader.log, reader.reached, reader.until, &mut out, bytes_max);
        if let Some(range) = read.missing {
            assert!(out.is_empty());
            let Some(after) = range.after else {
                let totals = self.node.totals();
                assert!(totals.arrival - totals.index_entries > reader.reached, "unknown for no reason");
                return false;
            };
            if after.epoch == range.at.epoch || range.missed != Some(0) {
                let after = if after.epoch == range.at.epoch { after.sequence } else { 0 };
                assert_eq!(after + range.missed.unwrap_or(0), range.at.sequence);
                let missed = after + 1..=range.at.sequence;
                reader.found.extend(missed.map(|sequence| position(range.at.epoch, sequence)));
            } else {
                // A subject that was forgotten came back: nothing is missing between its epochs.
                assert_eq!((range.missed, range.at.sequence), (Some(0), 0));
            }
        }
        for message in out {
            self.check_content(&message);
            reader.found.extend(message.at());
        }
        assert!(read.reached > reader.reached || read.is_done);
        reader.reached = read.reached;
        assert_eq!(read.is_done, read.reached >= reader.until);
        if !read.is_done {
            return true;
        }
        // What was forgotten before the reader opened the log is not this log's to tell.
        let epoch = self.node.head(reader.log).at.epoch;
        let mut wanted = self.between(reader.subject, reader.after, reader.until);
        wanted.retain(|at| at.epoch == epoch);
        assert_eq!(reader.found, wanted);
        false
    }

    fn place(&self, subject: usize, back: u64) {
        let Some(log) = self.node.find(SUBJECTS[subject]) else { return };
        let head = self.node.head(log);
        let (before, kept) = self.node.place_last(log, usize::MAX);
        let of_log: Vec<&Past> =
            self.past.iter().filter(|past| past.subject == subject && past.at.epoch == head.at.epoch).collect();
        assert_eq!(of_log.len() as u64, head.at.sequence);
        assert!(kept <= COUNT_MAX as u64);
        let base = head.at.sequence - kept;
        // Nothing goes before its time: too many, too old, or the node too full.
        if self.node.totals().messages_evicted_by_bytes == 0 {
            let is_due = |past: &&&Past| past.accepted_ms + AGE_MS <= self.ms;
            let old = of_log.iter().take_while(is_due).count();
            assert!(base as usize <= old.max(of_log.len().saturating_sub(COUNT_MAX)));
        }
        let stands_at = |sequence: u64| {
            of_log.iter().rev().find(|past| past.at.sequence <= sequence).map_or(0, |past| past.arrival)
        };
        // Where it came back, its beginning is where it ended before, or where the new epoch began.
        let first = of_log.first().map_or(u64::MAX, |past| past.arrival);
        let is_there = |arrival: u64, sequence| arrival == stands_at(sequence) || sequence == 0 && arrival < first;
        assert!(is_there(before, base));
        let after = position(head.at.epoch, (head.at.sequence + 2).saturating_sub(back));
        match self.node.place(log, after, at_ms(self.ms)) {
            State::Served { arrival, count } => {
                assert!(after.sequence >= base && after.sequence <= head.at.sequence);
                assert!(is_there(arrival, after.sequence));
                assert_eq!(count, head.at.sequence - after.sequence);
            }
            State::Gap { reason, missed, oldest, oldest_arrival, .. } => {
                assert!(
                    oldest.sequence == base && is_there(oldest_arrival, base)
                        || base == 0 && oldest.epoch < head.at.epoch
                );
                if after.sequence > head.at.sequence {
                    assert_eq!((reason, missed), (GapReason::Ahead, None));
                } else {
                    assert!(after.sequence < base);
                    assert_eq!(missed, Some(base - after.sequence));
                }
            }
        }
        if let Some(former) = self.past.iter().find(|past| past.subject == subject && past.at.epoch != head.at.epoch) {
            let place = self.node.place(log, former.at, at_ms(self.ms));
            let others = self.past.iter().filter(|past| past.subject == subject && past.at.epoch != head.at.epoch);
            let last = others.clone().next_back().map_or(0, |past| past.at.epoch);
            let gone =
                others.filter(|past| past.at.epoch == last && past.at.sequence > former.at.sequence).count() as u64;
            match place {
                State::Served { count, .. } => {
                    assert_eq!((last, gone, count), (former.at.epoch, 0, head.at.sequence));
                }
                State::Gap { reason: GapReason::Epoch, missed, .. } => assert_eq!(missed, None),
                State::Gap { missed, .. } => assert_eq!((last, missed), (former.at.epoch, Some(gone + base))),
            }
        }
    }

    fn between(&self, subject: usize, after: u64, until: u64) -> Vec<Position> {
        let past = self.past.iter().filter(|past| past.subject == subject);
        past.filter(|past| past.arrival > after && past.arrival <= until).map(|past| past.at).collect()
    }

    fn check_content(&self, message: &godwit_core::message::Message) {
        let at = self.past.binary_search_by_key(&message.arrival, |past| past.arrival).expect("was published");
        assert_eq!(message.content(), self.past[at].content.as_bytes());
        assert_eq!(message.at(), Some(self.past[at].at));
    }

    fn finish(&mut self) {
        while !self.finders.is_empty() || !self.readers.is_empty() {
            self.advance(3, 700, 2);
        }
        for shard in 0..3 {
            self.drain(shard, usize::MAX);
        }
        let mut counted = 0;
        let (rows, _) = self.node.subjects("", 100, None);
        for row in &rows {
            counted += row.messages;
        }
        assert_eq!(self.node.totals().messages, counted);
        // Once everything is closed and old, nothing is left of it.
        for (shard, _, log) in std::mem::take(&mut self.open) {
            self.node.close(shard, log, at_ms(self.ms));
        }
        for _ in 0..4 {
            self.ms += 2 * AGE_MS;
            while self.node.sweep(at_ms(self.ms)) {}
        }
        let totals = self.node.totals();
        assert_eq!((totals.subjects, totals.messages, totals.message_bytes), (0, 0, 0));
        assert_eq!((totals.snapshots, totals.snapshot_bytes), (0, 0));
    }
}

proptest! {
    #![proptest_config(crate::support::cases(1_000))]

    #[test]
    fn nothing_is_lost_or_repeated_and_every_hole_is_exact(steps in prop::collection::vec(any_step(), 1..120)) {
        let mut world = World::new(1 << 20, 1 << 20);
        steps.into_iter().for_each(|step| world.step(step));
        world.finish();
    }

    #[test]
    fn with_a_short_index_and_little_room_no_hole_is_silent(
        steps in prop::collection::vec(any_step(), 1..120),
        index_max in 1..40_usize,
        bytes_max in 400..4_000_usize,
    ) {
        let mut world = World::new(index_max, bytes_max);
        steps.into_iter().for_each(|step| world.step(step));
        world.finish();
    }
}
