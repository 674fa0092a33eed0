//! Cursors that are not at the head, brought there from the logs in bounded chunks: live traffic goes first, and one that
//! is far behind holds nobody up. Owns the way from `Behind` to the head; what is missing is told by `gap`.
use std::sync::Arc;

use super::encode::{self, Framed, Item, Told};
use super::gap::Missing;
use super::outbound::{Frames, GATHER_BYTES, Note, Passed};
use super::{Shard, SocketOutput, lock};
use crate::codec::Wire;
use crate::conflation::{Conflation, Part};
use crate::cursor::CursorState;
use crate::journal::PageStart;
use crate::message::{LogId, Message};
use crate::node::{Found, MISSING_MAX, Node, ScanBudget, ScanRange};
use crate::stream::Source;
use crate::subject::Pattern;

/// What one step of a pattern's catch-up looks at.
const SCAN_BUDGET: ScanBudget = ScanBudget { entries_max: 4096, bytes_max: GATHER_BYTES, missing_max: MISSING_MAX };

/// What a step found: private bytes already written, and messages to be encoded once the node is let go.
type Step = (Frames, Vec<Arc<Message>>);

impl Shard {
    /// Puts a cursor on the list of those that want to catch up.
    pub(super) fn queue_behind(&mut self, id: u32) {
        self.note_late(id);
        if let Some(cursor) = self.cursors.get_mut(id)
            && !cursor.is_queued
        {
            cursor.is_queued = true;
            self.behind.push_back(id);
        }
    }

    /// One step for each that waits, until the turn's bytes are spent.
    pub(super) fn catch_up_some<O: SocketOutput>(&mut self, out: &mut O) {
        let mut bytes_left = self.settings.limits.catch_up_bytes_max;
        for _ in 0..self.behind.len() {
            if bytes_left == 0 {
                break;
            }
            let Some(id) = self.behind.pop_front() else { break };
            let Some(cursor) = self.cursors.get_mut(id) else { continue };
            cursor.is_queued = false;
            if self.is_stalled(id) {
                continue;
            }
            let Some(cursor) = self.cursors.get(id) else { continue };
            let Some(connection) = self.connections.get(cursor.connection) else { continue };
            let socket = cursor.connection;
            if connection.takes_frames() && !self.is_put_off(socket) {
                bytes_left = bytes_left.saturating_sub(self.catch_up(id, out).max(1));
            } else if self.connections.get(socket).is_some_and(|connection| !connection.is_blocked()) {
                self.queue_behind(id);
            }
        }
    }

    /// One step of one cursor; returns the bytes it made.
    fn catch_up<O: SocketOutput>(&mut self, id: u32, out: &mut O) -> usize {
        let Some(cursor) = self.cursors.get(id) else { return 0 };
        let (stand, socket, stream_id) = (cursor.stand, cursor.connection, cursor.stream);
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        self.absorb_all(&mut node);
        let Some(source) = self.streams.get(stream_id).map(|stream| stream.source.clone()) else { return 0 };
        let stand = self.cursors.get(id).map_or(stand, |cursor| cursor.stand);
        match (stand, source) {
            (CursorState::Joining, source) if self.is_client(socket) => {
                self.continue_retained(id, &source, &mut node);
                self.make_ready(socket);
                self.settings.limits.reply_buffer_bytes_max
            }
            (CursorState::Reading(_), source) => {
                self.read_on(id, &source, &mut node);
                0
            }
            (CursorState::Joining, Source::Pattern(pattern)) => {
                self.continue_join(id, &pattern, &mut node);
                self.make_ready(socket);
                self.settings.limits.reply_buffer_bytes_max
            }
            (CursorState::Behind(from), source) => {
                if self.awaits_window(id) {
                    self.await_window(id);
                    return 0;
                }
                if self.enter_window(id, from, true) {
                    self.wake_readers(socket);
                    return 0;
                }
                let Some(until) = self.reads_until(id, from) else { return 0 };
                let (frames, messages) = match &source {
                    Source::Subject(log) => self.step_subject(id, *log, (from, until), &mut node),
                    Source::Pattern(pattern) => self.step_pattern(id, pattern, (from, until), &mut node),
                };
                drop(node);
                let frames = self.encode_chunk(id, &messages, frames);
                let bytes = frames.bytes.len();
                if frames.notes.is_empty() {
                    self.arrive(id);
                }
                self.send_frames(socket, frames, out);
                self.queue_unless_at_head(id);
                bytes
            }
            _ => 0,
        }
    }

    fn queue_unless_at_head(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get(id) else { return };
        let is_blocked = self.connections.get(cursor.connection).is_none_or(|c| c.is_blocked());
        if matches!(cursor.stand, CursorState::Behind(_) | CursorState::Joining)
            && !is_blocked
            && !self.awaits_window(id)
        {
            self.queue_behind(id);
        }
    }

    /// How far a stream's frames reach: what a conflated one has gathered is not closed yet.
    pub(super) fn reach(&self, stream_id: u32) -> u64 {
        let conflation = self.streams.get(stream_id).and_then(|stream| stream.conflation.as_ref());
        conflation.filter(|c| !c.is_empty()).map_or(self.arrived, |c| c.closed)
    }

    /// Moves a cursor that has been sent everything up to `from` into its stream's window, if the window reaches that far. Unless
    /// it `is_apart`, a merged frame may hold some of that too.
    fn enter_window(&mut self, id: u32, from: u64, is_apart: bool) -> bool {
        let Some(cursor) = self.cursors.get_mut(id) else { return true };
        cursor.settle(from);
        let Some(stream) = self.streams.get(cursor.stream) else { return true };
        let place = stream.window.as_ref().and_then(|w| Some((w, w.place_after(from)?)));
        let Some((window, mut here)) = place else { return false };
        let is_merged = stream.conflate_ms > 0 && here.arrival != from && here.place < window.head();
        if let (true, Source::Subject(_)) = (is_merged, &stream.source) {
            here = window.place_behind(here, cursor.sequence);
        }
        let is_known = stream.wire != Wire::Binary || window.is_in_newest(here.place);
        if cursor.job.is_some() || cursor.owes_resume_token || !is_known || is_merged && is_apart {
            return false;
        }
        cursor.stand = CursorState::Live(here.place);
        cursor.reads_back = false;
        let lost = cursor.lost_to(here.standard);
        cursor.standard = here.standard;
        let socket = cursor.connection;
        let is_behind = here.place < window.head();
        if let Some(connection) = self.connections.get_mut(socket) {
            encode::announce_newest(stream, &mut connection.private);
        }
        self.tell_dropped(id, lost);
        if is_behind {
            self.link_ready(id);
        }
        self.make_ready(socket);
        true
    }

    /// What the logs have let go of, a conflated stream's window may still have, merged with some of what its reader has.
    fn enter_merged(&mut self, id: u32, from: u64) -> bool {
        let stream = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream));
        stream.is_some_and(|stream| stream.conflate_ms > 0) && self.enter_window(id, from, false)
    }

    /// A cursor to which everything handed out has been sent: if that is all there is, it is at the head from now on.
    pub(super) fn arrive(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get(id) else { return };
        let CursorState::Behind(from) = cursor.stand else { return };
        if from >= self.reach(cursor.stream) && self.connections.get(cursor.connection).is_some_and(|c| !c.is_blocked())
        {
            if self.awaits_window(id) { self.await_window(id) } else { self.enter_head(id) }
        }
    }

    /// Places a cursor where all that there is ends: its client has it, was told that it is missing, or did not want it. `number`
    /// is its subject's last; 0 of a pattern.
    pub(super) fn stand_at_end(&mut self, id: u32, number: u64) {
        let arrived = self.arrived;
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let conflation = self.streams.get(cursor.stream).and_then(|stream| stream.conflation.as_ref());
        if conflation.is_none_or(|conflation| conflation.is_empty()) {
            return self.enter_head(id);
        }
        (cursor.stand, cursor.sequence) = (CursorState::Behind(arrived), number);
        self.arrive(id);
    }

    /// Places a cursor at the head of its stream: nothing before it is owed but what is told here.
    pub(super) fn enter_head(&mut self, id: u32) {
        let Some(reach) = self.cursors.get(id).map(|cursor| self.reach(cursor.stream)) else { return };
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        cursor.job = None;
        cursor.reads_back = false;
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        let lost = cursor.lost_to(stream.standard);
        cursor.standard = stream.standard;
        cursor.stand = stream.window.as_ref().map_or(CursorState::Current, |window| CursorState::Live(window.head()));
        let (socket, owes_resume_token) = (cursor.connection, std::mem::take(&mut cursor.owes_resume_token));
        if stream.window.is_some()
            && let Some(connection) = self.connections.get_mut(socket)
        {
            encode::announce_newest(stream, &mut connection.private);
        }
        self.tell_dropped(id, lost);
        if owes_resume_token {
            self.tell_resume_token(id, reach);
        }
        self.make_ready(socket);
    }

    /// The next chunk of one subject's messages.
    fn step_subject(&mut self, id: u32, log: LogId, (from, until): (u64, u64), node: &mut Node) -> Step {
        let mut messages = Vec::new();
        let Some(stream_id) = self.cursors.get(id).map(|cursor| cursor.stream) else { return Step::default() };
        let read = node.read(log, from, self.reach(stream_id), &mut messages, GATHER_BYTES);
        if let Some(range) = read.missing {
            let known = self.cursors.get(id).map_or(0, |cursor| cursor.sequence);
            if range.missed != Some(0) && self.enter_merged(id, from) {
                return Step::default();
            }
            if range.missed != Some(0) && self.cursors.get(id).is_some_and(|cursor| cursor.reads_back) {
                let at = if known > 0 { Some(node.position(log, known)) } else { range.after };
                self.read_back(id, from, at, PageStart::Arrival(from), false);
                return Step::default();
            }
            self.tell_order(id, (log, range.at.epoch), node);
            self.tell_missing(id, log, &Missing::range(&range, read.reached).known(known, log, node), node);
            return (self.buffer(), messages);
        }
        let reached = cut(&mut messages, self.messages_left(id), until).unwrap_or(read.reached);
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.stand = CursorState::Behind(reached);
            cursor.sequence = messages.last().map_or(cursor.sequence, |message| message.sequence);
        }
        let mut frames = self.buffer();
        self.put_epochs(id, messages.iter().map(|message| message.in_epoch()), node, &mut frames.bytes);
        frames.private = frames.bytes.len();
        (frames, messages)
    }

    /// What of a pattern's feed the next chunk is made of. Merged frames that were sent beyond `from` are all of one chunk: that is ended
    /// first, so that little has to be remembered.
    fn way(&self, id: u32, stream_id: u32, from: u64) -> ScanRange {
        let is_merging =
            self.streams.get(stream_id).is_some_and(|stream| stream.conflate_ms > 0 || stream.conflates_slow);
        let job = self.cursors.get(id).and_then(|cursor| cursor.job.as_ref());
        let chunk = job.map(|job| job.skips_until).filter(|&until| is_merging && until > from);
        let missing_max = self.missing_max(id);
        ScanRange {
            after: from,
            until: self.reach(stream_id).min(chunk.unwrap_or(u64::MAX)),
            budget: ScanBudget { missing_max, ..SCAN_BUDGET },
        }
    }

    /// The next chunk of a pattern's messages, in feed order.
    fn step_pattern(&mut self, id: u32, pattern: &Pattern, (from, until): (u64, u64), node: &mut Node) -> Step {
        let mut frames = self.buffer();
        let Some(stream_id) = self.cursors.get(id).map(|cursor| cursor.stream) else { return Step::default() };
        let mut found = Found::default();
        let way = self.way(id, stream_id, from);
        let scan = if self.is_owed(id) {
            let known = self.cursors.get(id).and_then(|cursor| cursor.job.as_ref()).map_or(0, |job| job.lost);
            let (scan, lost) = node.scan_pattern_past(pattern, way, known, &mut found);
            if let Some(lost) = lost {
                self.tell_pattern_gone(id, lost, node);
            }
            scan
        } else {
            node.scan_pattern(pattern, way, &mut found)
        };
        let Found { mut messages, missing: ranges } = found;
        let has_missing = scan.is_lost || ranges.iter().any(|(_, _, range)| range.missed != Some(0));
        if has_missing && self.cursors.get(id).is_some_and(|cursor| cursor.reads_back) {
            self.read_back(id, from, None, PageStart::Arrival(from), false);
            return (frames, Vec::new());
        }
        if has_missing && self.enter_merged(id, from) {
            return (frames, Vec::new());
        }
        if scan.is_lost {
            self.restart_join(id);
            return (frames, Vec::new());
        }
        let missing = ranges.iter().map(|(log, subject, range)| (*log, &**subject, range.at.epoch));
        self.put_epochs(id, missing.chain(messages.iter().map(|m| m.in_epoch())), node, &mut frames.bytes);
        for (log, subject, range) in &ranges {
            let told = self.cursors.get(id).and_then(|cursor| cursor.skip(*log)).unwrap_or(0);
            if let (Some(missed), Some(cursor)) = (range.missed, self.cursors.get_mut(id)) {
                let merged = cursor.pass(*log, range.number.saturating_sub(missed), range.number);
                self.note_merged(id, merged);
            }
            if told < range.number {
                let missing = Missing::range(range, scan.reached).from(told, *log, node);
                self.tell_pattern_missing(id, *log, subject, &missing, node, &mut frames.bytes);
            }
            if frames.bytes.len() > GATHER_BYTES {
                // The other missing ranges are found again by the next step.
                frames.private = frames.bytes.len();
                return (frames, Vec::new());
            }
        }
        frames.private = frames.bytes.len();
        let reached = cut(&mut messages, self.messages_left(id), until).unwrap_or(scan.reached);
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.stand = CursorState::Behind(reached);
            messages.retain(|message| {
                if cursor.merges(message.log, message.sequence) {
                    frames.passed.push(Passed { cursor: id, arrival: message.arrival, sequence: 0 });
                }
                !cursor.skips(message.log, message.sequence)
            });
        }
        (frames, messages)
    }

    /// Encodes messages for one cursor, merged where its stream conflates.
    fn encode_chunk(&mut self, id: u32, messages: &[Arc<Message>], mut frames: Frames) -> Frames {
        if self.cursors.get(id).is_some_and(|cursor| self.has_parts(cursor.stream)) {
            return self.put_chunk(id, messages, frames);
        }
        let Some(cursor) = self.cursors.get_mut(id) else { return frames };
        let Some((stream, next_number)) = self.streams.get_with_number(cursor.stream) else { return frames };
        self.counters.catch_up_messages += messages.len() as u64;
        let mut told = Told::version(cursor.announced);
        let mut note = |end: usize, framed: Framed, arrival: u64, sequence: u64, messages: u32| {
            let before = CursorState::Behind(arrival.saturating_sub(1));
            let sequence = sequence.saturating_sub(1);
            frames.notes.push(Note {
                end,
                cursor: id,
                before,
                sequence,
                is_standard: false,
                is_too_large: framed.is_too_large,
                is_tracked: false,
                messages,
            });
        };
        if stream.conflate_ms > 0 || stream.conflates_slow {
            let mut merged = Conflation::default();
            messages.iter().for_each(|message| merged.add(message));
            let sequence = messages.first().map_or(0, |message| message.sequence);
            frames.merged = merged.close(0);
            for (part, before) in frames.merged.iter().zip(starts(&frames.merged)) {
                let item = Item::part(part);
                let framed = encode::private_frame(stream, next_number, &item, &mut told, &mut frames.bytes);
                note(frames.bytes.len(), framed, before, sequence, part.count);
            }
        } else {
            for message in messages {
                let item = Item::message(message);
                let framed = encode::private_frame(stream, next_number, &item, &mut told, &mut frames.bytes);
                note(frames.bytes.len(), framed, message.arrival, message.sequence, 1);
            }
        }
        if let Source::Subject(_) = stream.source {
            cursor.announced = told.version;
        }
        frames
    }
}

/// For each merged frame of a chunk: the arrival of the first message that it or a later one holds.
fn starts(parts: &[Part]) -> Vec<u64> {
    let earliest = parts.iter().rev().scan(u64::MAX, |first, part| {
        *first = part.first.min(*first);
        Some(*first)
    });
    let mut starts: Vec<u64> = earliest.collect();
    starts.reverse();
    starts
}

/// Cuts messages to the first few, up to an arrival; returns the arrival before the next one, when some are not left.
fn cut(messages: &mut Vec<Arc<Message>>, count: usize, until: u64) -> Option<u64> {
    let count = messages.iter().take(count).take_while(|message| message.arrival <= until).count();
    let next = messages.get(count).map(|message| message.arrival - 1);
    messages.truncate(count);
    next
}
