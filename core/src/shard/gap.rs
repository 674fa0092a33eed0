//! What is missing, said exactly: gaps with the snapshot that mends them, standard messages lost, resume tokens. Owns the pushes
//! that are one client's own and where its cursor stands after them.
use std::sync::Arc;

use super::Shard;
use super::encode::{self, Framed, Item, Told};
use super::mqtt;
use crate::codec::{self, Wire, sse};
use crate::command::{GapReason, Push};
use crate::cursor::{CursorState, Skip};
use crate::message::LogId;
use crate::node::{MissingRange, Node};
use crate::position::{Position, ResumeToken};
use crate::stream::Source;

/// A gap of one subject as a client is told it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    pub after: Option<Position>,
    /// The log's number of `after`, where it is known how many are missing.
    pub from: Option<u64>,
    pub reason: GapReason,
    /// Who stands here continues with the oldest kept message.
    pub oldest: Position,
    pub oldest_number: u64,
    pub oldest_arrival: u64,
}

/// What a session at QoS 1 or 2 is short of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    /// None: nobody can count it.
    pub missed: Option<u64>,
    pub reason: GapReason,
    pub ends_session: bool,
}

impl Missing {
    /// A missing range that a read found; the read itself went on to `reached`.
    pub(super) fn range(range: &MissingRange, reached: u64) -> Self {
        Self {
            after: range.after,
            from: range.missed.and_then(|missed| range.number.checked_sub(missed)),
            reason: range.reason,
            oldest: range.at,
            oldest_number: range.number,
            oldest_arrival: reached,
        }
    }

    /// The same for a client that has been placed at `number` meanwhile.
    pub(super) fn from(self, number: u64, log: LogId, node: &Node) -> Self {
        if self.from.is_none_or(|from| from >= number) {
            return self;
        }
        Self { after: Some(node.position(log, number)), from: Some(number), ..self }
    }

    /// The same for a client that is known to have been sent `number`, where the index no longer reaches back to it.
    pub(super) fn known(self, number: u64, log: LogId, node: &Node) -> Self {
        if self.after.is_some() || number == 0 || number > self.oldest_number {
            return self;
        }
        Self { after: Some(node.position(log, number)), from: Some(number), ..self }
    }

    /// How many are missing up to a number of the log.
    fn missed_to(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.from?)
    }

    /// Nothing is missing before what is kept, so that no gap is sent (6.1). Where the epoch changed, the first message of the new one says what
    /// it follows (6.7).
    fn is_whole(&self) -> bool {
        self.from == Some(self.oldest_number)
    }
}

impl Shard {
    /// A subject's cursor cannot go on from where it stands: it is told, and stands further on.
    pub(super) fn tell_missing(&mut self, id: u32, log: LogId, missing: &Missing, node: &mut Node) {
        let mut bytes = Vec::new();
        let name = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream)).map(|s| Arc::clone(&s.name));
        let Some(name) = name else { return };
        let oldest = self.write_gap(id, log, &name, missing, node, &mut bytes);
        self.tell(id, &bytes);
        match oldest {
            Some(arrival) => {
                self.stand(id, CursorState::Behind(arrival));
                if let Some(cursor) = self.cursors.get_mut(id) {
                    cursor.sequence = missing.oldest_number;
                }
                self.queue_behind(id);
            }
            None => self.stand_at_end(id, node.head(log).number),
        }
    }

    /// The same within a pattern: the subject is skipped up to where the gap placed it.
    pub(super) fn tell_pattern_missing(
        &mut self,
        id: u32,
        log: LogId,
        subject: &Arc<str>,
        missing: &Missing,
        node: &mut Node,
        out: &mut Vec<u8>,
    ) {
        let is_oldest = self.write_gap(id, log, subject, missing, node, out).is_some();
        let head = node.head(log);
        if let Some(cursor) = self.cursors.get_mut(id) {
            if is_oldest {
                cursor.skip_to(log, Skip::new(missing.oldest_number, true), missing.oldest_arrival);
            } else {
                cursor.skip_to(log, Skip::new(head.number, true), head.arrival);
            }
        }
    }

    /// Writes the gap and what follows it: neither when nothing was missed, else the snapshot, made together with it. Some:
    /// the client wants to continue from the oldest kept message, after this arrival.
    pub(super) fn write_gap(
        &mut self,
        id: u32,
        log: LogId,
        subject: &Arc<str>,
        missing: &Missing,
        node: &mut Node,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        self.note_gone(id, log, subject, missing, node);
        let cursor = self.cursors.get(id)?;
        let stream_id = cursor.stream;
        let head = node.head(log);
        let from_oldest = cursor.gap_from_oldest || missing.is_whole() || self.continues(stream_id, log, missing, node);
        let (at, number) = if from_oldest { (missing.oldest, missing.oldest_number) } else { (head.at, head.number) };
        let missed = missing.missed_to(number);
        if missing.is_whole() {
            self.note_gap(id, missing.from, missing.after, number, at);
            return Some(missing.oldest_arrival);
        }
        let (mut healed, mut snapshot) = (None, Vec::new());
        if !from_oldest {
            healed = self.put_snapshot(id, log, subject, node, &mut snapshot);
        }
        if let Some(framed) = healed.take_if(|framed| framed.is_too_large) {
            // The gap alone says it: the client stands where the snapshot would have brought it. What was announced stays announced.
            snapshot.truncate(framed.begin);
        }
        let cursor = self.cursors.get(id)?;
        let stream = self.streams.get(stream_id)?;
        let gap =
            Push::Gap { subject, after: missing.after, at, reason: missing.reason, missed, pattern: stream.pattern() };
        if stream.wire == Wire::Sse && healed.is_none() {
            // With the snapshot behind it, the client stands there only once it has that.
            sse::put_id(out, at);
        }
        codec::push(stream.wire, out, &gap);
        mqtt::put_gap(self.connections.get(cursor.connection), &gap, out);
        self.counters.count_gap(self.connections.get(cursor.connection), missing.reason);
        self.note_gap(id, missing.from, missing.after, number, at);
        if from_oldest {
            return Some(missing.oldest_arrival);
        }
        self.count_told(id, usize::from(healed.is_some()), 0);
        out.append(&mut snapshot);
        None
    }

    /// Whether the kept messages of a new epoch follow its gap, whatever the client asked for: all of them are news to it. Where there are
    /// none, or the client wants only the newest, the snapshot follows.
    fn continues(&self, stream_id: u32, log: LogId, missing: &Missing, node: &Node) -> bool {
        let is_conflated = self.streams.get(stream_id).is_some_and(|stream| stream.conflate_ms > 0);
        missing.reason == GapReason::Epoch
            && missing.oldest_number < node.head(log).number
            && !(is_conflated && node.snapshot(log, self.now).is_some())
    }

    /// A client that is owed every message is short of some.
    fn note_gone(&mut self, id: u32, log: LogId, subject: &str, missing: &Missing, node: &Node) {
        if !missing.is_whole() && self.is_owed(id) {
            let (missed, reason) = (missing.missed_to(missing.oldest_number), missing.reason);
            self.note_missed(id, subject, Gone { missed, reason, ends_session: node.ends_session(log) });
        }
    }

    /// Writes a subject's snapshot, if it has one, or the gap in its place; true when it had.
    pub(super) fn write_snapshot(
        &mut self,
        id: u32,
        log: LogId,
        subject: &Arc<str>,
        node: &mut Node,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(framed) = self.put_snapshot(id, log, subject, node, out) else { return false };
        self.count_told(id, usize::from(!framed.is_too_large), usize::from(framed.is_too_large));
        true
    }

    /// Appends a subject's snapshot, if it has one.
    fn put_snapshot(
        &mut self,
        id: u32,
        log: LogId,
        subject: &Arc<str>,
        node: &mut Node,
        out: &mut Vec<u8>,
    ) -> Option<Framed> {
        let snapshot = node.snapshot(log, self.now)?;
        let cursor = self.cursors.get_mut(id)?;
        let (stream, next_number) = self.streams.get_with_number(cursor.stream)?;
        let item = Item {
            subject,
            log,
            epoch: snapshot.at.epoch,
            at: Some(snapshot.at),
            after: None,
            time_ms: snapshot.time_ms(),
            kind: snapshot.kind(),
            content: snapshot.content(),
            fields: snapshot.fields(),
            reply_to: snapshot.reply_to(),
            conflated: 0,
            is_snapshot: true,
            is_patch: false,
            source: &snapshot.last,
        };
        let mut told = Told::version(cursor.announced);
        let framed = encode::private_frame(stream, next_number, &item, &mut told, out);
        if let Source::Subject(_) = stream.source {
            cursor.announced = told.version;
        }
        Some(framed)
    }

    /// Standard messages that a slow consumer lost.
    pub(super) fn tell_dropped(&mut self, id: u32, lost: u32) {
        if lost == 0 {
            return;
        }
        self.counters.dropped += u64::from(lost);
        let Some(cursor) = self.cursors.get(id) else { return };
        if let Some(connection) = self.connections.get(cursor.connection) {
            self.counters.of(connection).dropped += u64::from(lost);
        }
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        let mut bytes = Vec::new();
        let dropped = Push::Dropped { selector: &stream.name, count: u64::from(lost) };
        codec::push(stream.wire, &mut bytes, &dropped);
        mqtt::put_gap(self.connections.get(cursor.connection), &dropped, &mut bytes);
        self.tell(id, &bytes);
    }

    /// A wildcard subscription has been sent everything up to `arrival`.
    pub(super) fn tell_resume_token(&mut self, id: u32, arrival: u64) {
        let resume_token = ResumeToken {
            run: self.settings.run,
            arrival: arrival.min(self.token_bound),
            time_ms: self.resume_token_ms,
        };
        let Some(cursor) = self.cursors.get(id) else { return };
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        let mut bytes = Vec::new();
        codec::push(stream.wire, &mut bytes, &Push::ResumeToken { resume_token, pattern: &stream.name });
        self.tell(id, &bytes);
    }

    /// Counts messages written among a connection's private bytes, and gaps in the place of those that are longer than it takes.
    pub(super) fn count_told(&mut self, id: u32, messages: usize, too_large: usize) {
        let connection = self.cursors.get(id).and_then(|cursor| self.connections.get(cursor.connection));
        if let Some(connection) = connection {
            self.counters.of(connection).messages_out += messages as u64;
            self.counters.count_too_large(connection, too_large as u64, 0);
        }
    }

    /// Appends to a cursor's connection what is that client's alone.
    pub(super) fn tell(&mut self, id: u32, bytes: &[u8]) {
        let Some(socket) = self.cursors.get(id).map(|cursor| cursor.connection) else { return };
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.private.extend_from_slice(bytes);
        }
        self.make_ready(socket);
    }

    pub(super) fn stand(&mut self, id: u32, stand: CursorState) {
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.stand = stand;
        }
    }
}
