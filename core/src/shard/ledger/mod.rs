//! What a shard has to write down of its connections: who came and went, and what was handed to the kernel for whom, as ranges. Owns
//! that a delivery costs a few additions and never a row: a range is some integers beside its cursor, and becomes a row when the
//! subscription ends, its epoch changes, or it is time. There is no ledger where there is no journal.
mod access;
mod acks;
mod count;
mod flush;
mod reading;

pub(in crate::shard) use access::{brief, is_refusal};
use acks::Acks;

use std::collections::VecDeque;
use std::sync::Arc;

use super::Shard;
use crate::cursor::{Cursor, CursorState};
use crate::journal::{AccessRow, DeliveryRow, LATENCY_BUCKETS, LatencyRow, Range as Span};
use crate::message::LogId;
use crate::node::Node;
use crate::position::Position;
use crate::settings::{JournalSettings, Settings};
use crate::stream::Source;

/// Ranges that become rows in one sweep, and the share of all that have grown where that is more.
const LOOKS_MIN: usize = 1_024;
const SHARE: usize = 8;
/// Slices timed with one look at the clock.
const SLICES_EACH: u32 = 16;
/// Rows are never as far ahead of the clock; where they seem to be it was set back, and rows go back with it.
const SET_BACK_US: u64 = 1_000_000;
/// Rows of connections that wait for the end of the turn; what comes beyond is counted by the journal's own limit.
const ROWS_MAX: usize = 65_536;

/// What one cursor was handed since its last row. Of a subject `from` and `to` are numbers of its log, of a pattern arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    /// Everything up to here stands in an earlier row, or was never owed.
    from: u64,
    /// The last that is known to have been handed over, where the cursor itself does not tell.
    to: u64,
    epoch: u64,
    /// The log's number before the epoch's first.
    before: u64,
    count: u64,
    bytes: u64,
    /// Of a pattern; a subject's follows from the rest.
    conflated: u64,
    gaps: u64,
    gap_count: u64,
    is_uncounted: bool,
    /// It has begun: the cursor's place is known.
    is_begun: bool,
    /// It stands among those that have grown.
    is_noted: bool,
}

#[derive(Debug)]
pub(in crate::shard) struct Ledger {
    keeps_access: bool,
    keeps_deliveries: bool,
    interval_ms: u64,
    /// By cursor.
    ranges: Vec<Range>,
    /// Cursors whose ranges have grown, and since when (monotonic ms), oldest first.
    grown: VecDeque<(u64, u32)>,
    now_ms: u64,
    access: Vec<AccessRow>,
    deliveries: Vec<DeliveryRow>,
    latencies: Vec<LatencyRow>,
    /// By stream.
    latency: Vec<Option<Box<[u64; LATENCY_BUCKETS]>>>,
    /// Since when they are counted (monotonic ms).
    timed_ms: u64,
    clock_us: u32,
    slices: u32,
    /// The time of the last row of access or deliveries (wall clock, µs).
    written_us: u64,
}

/// What a shard owes to the journal, and what it waits for.
#[derive(Debug)]
pub(in crate::shard) struct Written {
    /// Whose publishers wait for the disk.
    acks: Acks,
    /// None where there is no journal.
    pub(in crate::shard) ledger: Option<Box<Ledger>>,
    /// Messages may wait to be written down.
    pub(in crate::shard) has_rows: bool,
    pub(in crate::shard) turns: u32,
}

impl Written {
    pub(in crate::shard) fn new(settings: &Settings) -> Self {
        let ledger = settings.journal.as_ref().map(|settings| Box::new(Ledger::new(settings)));
        Self { acks: Acks::default(), ledger, has_rows: false, turns: 0 }
    }
}

impl Ledger {
    pub(in crate::shard) fn new(settings: &JournalSettings) -> Self {
        Self {
            keeps_access: settings.keeps_access,
            keeps_deliveries: settings.keeps_deliveries,
            interval_ms: settings.flush_interval_ms,
            ranges: Vec::new(),
            grown: VecDeque::new(),
            now_ms: 0,
            access: Vec::new(),
            deliveries: Vec::new(),
            latencies: Vec::new(),
            latency: Vec::new(),
            timed_ms: 0,
            clock_us: 0,
            slices: 0,
            written_us: 0,
        }
    }

    /// The time of a row, never before that of the last, unless the clock was set back by more than a moment.
    fn time_us(&mut self, now_ms: u64) -> u64 {
        let now_us = now_ms.saturating_mul(1_000);
        if now_us > self.written_us || self.written_us - now_us > SET_BACK_US {
            self.written_us = now_us;
        }
        self.written_us
    }

    /// That of a row which begins a subscription: later than all before it. It is never a whole millisecond, by which readers know it from
    /// those of nodes that gave no such order.
    fn begin_us(&mut self, now_ms: u64) -> u64 {
        self.written_us = self.time_us(now_ms) + 1;
        if self.written_us.is_multiple_of(1_000) {
            self.written_us += 1;
        }
        self.written_us
    }

    fn at(&mut self, cursor: u32) -> &mut Range {
        let slot = cursor as usize;
        if self.ranges.len() <= slot {
            self.ranges.resize(slot + 1, Range::default());
        }
        #[expect(clippy::indexing_slicing, reason = "the list was made long enough above")]
        &mut self.ranges[slot]
    }

    fn grow(&mut self, cursor: u32, count: u64, bytes: u64) -> &mut Range {
        let range = self.at(cursor);
        range.count += count;
        range.bytes += bytes;
        if !std::mem::replace(&mut range.is_noted, true) {
            self.grown.push_back((self.now_ms, cursor));
        }
        self.at(cursor)
    }
}

impl Shard {
    /// Where a cursor's range begins: at a number of its subject's log.
    pub(in crate::shard) fn begin_range(&mut self, id: u32, log: LogId, number: u64, node: &Node) {
        if self.written.ledger.is_none() {
            return;
        }
        let head = node.head(log);
        let next = if number >= head.number { head.at } else { node.position(log, number + 1) };
        let sequence = if number >= head.number { next.sequence } else { next.sequence.saturating_sub(1) };
        self.begin_range_in(id, number, next.epoch, number.saturating_sub(sequence));
    }

    fn begin_range_in(&mut self, id: u32, number: u64, epoch: u64, before: u64) {
        if let Some(ledger) = &mut self.written.ledger {
            let range = ledger.at(id);
            *range = Range {
                from: number,
                to: number,
                epoch,
                before,
                is_begun: true,
                is_noted: range.is_noted,
                ..Range::default()
            };
        }
    }

    /// The same of a pattern: after an arrival.
    pub(in crate::shard) fn begin_pattern_range(&mut self, id: u32, arrival: u64) {
        self.begin_range_in(id, arrival, 0, 0);
    }

    /// Where a subject's cursor stands now that its subscription was answered.
    pub(in crate::shard) fn settle_range(&mut self, id: u32, log: LogId, node: &Node) {
        let is_open = self.written.ledger.as_mut().is_some_and(|ledger| !ledger.at(id).is_begun);
        let Some(cursor) = self.cursors.get(id).filter(|_| is_open) else { return };
        let number = match cursor.stand {
            CursorState::Behind(_) if cursor.sequence > 0 => cursor.sequence,
            CursorState::Behind(arrival) => node.number_at(log, arrival),
            _ => node.head(log).number,
        };
        self.begin_range(id, log, number, node);
    }

    /// The same of an MQTT client's cursor, which begins or goes on after an arrival.
    pub(in crate::shard) fn settle_client_range(&mut self, id: u32, arrival: u64, node: &Node) {
        if self.written.ledger.is_none() {
            return;
        }
        let Some(cursor) = self.cursors.get(id) else { return };
        match self.streams.get(cursor.stream).map(|stream| stream.source.clone()) {
            Some(Source::Subject(log)) => self.begin_range(id, log, node.number_at(log, arrival), node),
            Some(Source::Pattern(_)) => self.begin_pattern_range(id, arrival),
            None => {}
        }
    }

    /// A gap was told to a cursor: of a subject up to `number`, whose position is `at`.
    pub(in crate::shard) fn note_gap(
        &mut self,
        id: u32,
        from: Option<u64>,
        after: Option<Position>,
        number: u64,
        at: Position,
    ) {
        let Some(cursor) = self.cursors.get(id) else { return };
        let is_subject = self.streams.get(cursor.stream).is_some_and(|s| matches!(s.source, Source::Subject(_)));
        let changes = is_subject && after.is_none_or(|after| after.epoch != at.epoch);
        if let (true, Some(from), Some(ledger)) = (changes, from, &mut self.written.ledger) {
            let range = ledger.at(id);
            range.to = range.to.max(from);
        }
        let Some(ledger) = &mut self.written.ledger else { return };
        let missed = from.and_then(|from| number.checked_sub(from));
        let range = ledger.grow(id, 0, 0);
        if changes {
            let to = range.to;
            self.end_range_at(id, to);
            self.begin_range_in(id, number, at.epoch, number.saturating_sub(at.sequence));
            if missed == Some(0) {
                return;
            }
        } else if is_subject && !range.is_begun {
            let first = from.unwrap_or(number);
            self.begin_range_in(id, first, at.epoch, number.saturating_sub(at.sequence));
        }
        let Some(ledger) = &mut self.written.ledger else { return };
        let range = ledger.grow(id, 0, 0);
        range.gaps += 1;
        match missed.filter(|_| !changes) {
            Some(missed) => range.gap_count += missed,
            None => range.is_uncounted = true,
        }
        if is_subject {
            range.to = range.to.max(number);
        }
    }

    /// A gap of a whole pattern: nothing is known of what lies before where it goes on.
    pub(in crate::shard) fn note_pattern_gap(&mut self, id: u32) {
        if let Some(ledger) = &mut self.written.ledger {
            let range = ledger.grow(id, 0, 0);
            range.gaps += 1;
            range.is_uncounted = true;
        }
    }

    /// Up to which number or arrival a cursor has been handed everything; none where only the node can tell.
    fn reached(&self, cursor: &Cursor, range: &Range) -> Option<u64> {
        let stream = self.streams.get(cursor.stream)?;
        if let Source::Pattern(_) = stream.source {
            return match cursor.stand {
                CursorState::Behind(arrival) | CursorState::Reading(arrival) => Some(arrival),
                CursorState::Current => Some(self.reach(cursor.stream).min(self.delivered)),
                CursorState::Live(place) => {
                    let window = stream.window.as_ref()?;
                    let is_head = place >= window.head();
                    if is_head { Some(self.reach(cursor.stream)) } else { Some(window.settled(place)?.arrival) }
                }
                CursorState::Joining => None,
            };
        }
        match cursor.stand {
            CursorState::Live(place) => {
                let sequence = stream.window.as_ref()?.around(place)?.0.sequence;
                (sequence > 0).then_some(sequence)
            }
            CursorState::Behind(_) | CursorState::Reading(_) if cursor.sequence > 0 => Some(cursor.sequence),
            CursorState::Current | CursorState::Behind(_) | CursorState::Reading(_) | CursorState::Joining => {
                (range.to > range.from).then_some(range.to)
            }
        }
    }

    /// Writes what a cursor was handed since its last row.
    pub(in crate::shard) fn end_range(&mut self, id: u32) {
        if self.written.ledger.is_none() {
            return;
        }
        self.leave_window(id);
        let Some(ledger) = &mut self.written.ledger else { return };
        let range = *ledger.at(id);
        let Some(cursor) = self.cursors.get(id) else { return };
        let to = self.reached(cursor, &range).unwrap_or(range.to).max(range.to);
        self.end_range_at(id, to);
    }

    fn end_range_at(&mut self, id: u32, to: u64) {
        let Some(ledger) = &mut self.written.ledger else { return };
        let range = *ledger.at(id);
        let is_silent = range.count == 0 && range.gaps == 0 && range.conflated == 0;
        *ledger.at(id) = Range {
            from: to.max(range.from),
            to: to.max(range.from),
            epoch: range.epoch,
            before: range.before,
            is_begun: range.is_begun,
            is_noted: range.is_noted,
            ..Range::default()
        };
        if is_silent || !range.is_begun {
            return;
        }
        let Some(time_us) = self.delivery_time_us() else { return };
        let Some(cursor) = self.cursors.get(id) else { return };
        let (socket, stream_id) = (cursor.connection, cursor.stream);
        let Some(stream) = self.streams.get(stream_id) else { return };
        let (first, to) = (range.from + 1, to.max(range.from));
        let is_merging = stream.conflate_ms > 0 || stream.conflates_slow;
        let span = match stream.source {
            Source::Pattern(_) => Span::Pattern { run: self.settings.run, from: Some(first), to },
            Source::Subject(_) => {
                let sequence = |number: u64| number.saturating_sub(range.before);
                Span::Subject { epoch: range.epoch, from: Some(sequence(first)), to: sequence(to) }
            }
        };
        let told = range.count + range.gap_count;
        let conflated = match span {
            Span::Subject { .. } if is_merging => (to - range.from).saturating_sub(told),
            _ => range.conflated,
        };
        let selector = Arc::clone(&stream.name);
        let row = DeliveryRow {
            time_us,
            peer: self.peer(socket),
            selector,
            range: span,
            count: range.count,
            bytes: range.bytes,
            conflated,
            gaps: range.gaps,
            gap_count: (!range.is_uncounted).then_some(range.gap_count),
            is_confirmed: false,
        };
        self.put_delivery(row);
    }

    /// The time of a row of deliveries that is written now; none where they are not kept, or too many wait.
    pub(in crate::shard) fn delivery_time_us(&mut self) -> Option<u64> {
        let ledger = self.written.ledger.as_mut()?;
        let is_kept = ledger.keeps_deliveries && ledger.deliveries.len() < ROWS_MAX;
        is_kept.then(|| ledger.time_us(self.now.wall_ms))
    }

    pub(in crate::shard) fn put_delivery(&mut self, row: DeliveryRow) {
        if !self.settings.journals(&row.selector) {
            return;
        }
        if let Some(ledger) = &mut self.written.ledger {
            ledger.deliveries.push(row);
        }
    }

    /// A cursor's slot is free for another.
    pub(in crate::shard) fn drop_range(&mut self, id: u32) {
        self.end_range(id);
        if let Some(ledger) = &mut self.written.ledger {
            let range = ledger.at(id);
            *range = Range { is_noted: range.is_noted, ..Range::default() };
        }
    }

    /// A client said itself where it stood when it subscribed.
    pub(in crate::shard) fn confirm(&mut self, socket: u32, selector: &Arc<str>, span: Span) {
        if let Some(time_us) = self.delivery_time_us() {
            let (peer, selector) = (self.peer(socket), Arc::clone(selector));
            self.put_delivery(DeliveryRow {
                time_us,
                peer,
                selector,
                range: span,
                count: 0,
                bytes: 0,
                conflated: 0,
                gaps: 0,
                gap_count: Some(0),
                is_confirmed: true,
            });
        }
    }
}
