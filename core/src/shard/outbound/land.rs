//! What became of a send. Owns what a short write means: of the frame it cut, the rest is kept for the connection; all later
//! frames wait where they are, in a window or in a log, and their cursors stand before them.
use super::{Flight, Frames, Load};
use crate::codes::Code;
use crate::cursor::CursorState;
use crate::position::Moment;
use crate::shard::connection::Blocked;
use crate::shard::{Sending, Shard, SocketOutput};

impl Shard {
    /// Answers a pending send.
    pub fn sent<O: SocketOutput>(&mut self, token: u32, outcome: Sending, out: &mut O) {
        let Some(slot) = self.flights.get_mut(token as usize) else { return };
        let flight = Flight {
            connection: slot.connection,
            bytes: slot.bytes,
            load: std::mem::replace(&mut slot.load, Load::Answered),
        };
        if outcome == Sending::Gone {
            self.doomed.push((flight.connection, Code::GoingAway));
        }
        let count = if let Sending::Done(count) = outcome { count } else { 0 };
        self.land(flight, count, out);
    }

    pub(in crate::shard) fn land<O: SocketOutput>(&mut self, flight: Flight, count: usize, out: &mut O) {
        self.counters.bytes_out += count as u64;
        let now = Moment::at(self.now.mono_ms);
        let has_frames = !matches!(&flight.load, Load::Frames(frames) if frames.notes.is_empty());
        if let Some(connection) = self.connections.get_mut(flight.connection) {
            self.counters.of(connection).bytes_out += count as u64;
            connection.is_sending = false;
            if count > 0 && (has_frames || !connection.is_pinged) {
                // Bytes that a socket takes are a sign of life, but for a ping: a very slow consumer lives to hear of its gap.
                connection.heard = now;
            }
            if count < flight.bytes {
                let was_slow = connection.is_slow();
                connection.blocked = Blocked::Socket;
                self.counters.of(connection).slow_consumers += u64::from(!was_slow);
                let counter = if count > 0 { &mut self.counters.short_sends } else { &mut self.counters.blocked_sends };
                *counter += 1;
                out.want_write(flight.connection);
            }
        }
        match flight.load {
            Load::Window { cursor, from } => self.land_slice(cursor, from, flight.bytes, count, out),
            Load::Frames(frames) => self.land_frames(flight.connection, frames, count, out),
            Load::Rest(rest) => self.land_rest(flight.connection, rest, flight.bytes, count),
            Load::Answered => {}
        }
    }

    fn land_slice<O: SocketOutput>(&mut self, cursor_id: u32, from: u64, bytes: usize, count: usize, out: &mut O) {
        let Some(cursor) = self.cursors.get_mut(cursor_id) else { return };
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        if let Some(window) = &stream.window
            && let Some(connection) = self.connections.get(cursor.connection)
        {
            let to = from + count as u64;
            let missing = window.missing(from, to);
            let too_large = missing.frames + missing.standard_frames;
            self.counters.of(connection).messages_out += window.messages(from, to) - too_large;
            if too_large > 0 {
                self.counters.count_too_large(connection, missing.frames, missing.standards);
            }
            if let Some(ledger) = &mut self.written.ledger {
                ledger.slice(cursor_id, &window.handed(from, to));
                if count == bytes {
                    ledger.time(cursor.stream, stream.fresh_us, out);
                }
            }
        }
        if count == bytes && stream.standard == cursor.standard {
            return;
        }
        let reached = from + count as u64;
        let around = stream.window.as_ref().and_then(|w| Some((w, w.around(reached)?)));
        let Some((window, (_, end))) = around else { return };
        cursor.stand = CursorState::Live(end.place);
        cursor.standard = end.standard;
        let socket = cursor.connection;
        if end.place == reached {
            return;
        }
        if let Some((large, from)) = window.large(reached) {
            self.share_rest(socket, large, from);
            return;
        }
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.private.extend_from_slice(window.between(reached, end.place));
        }
        self.count_rest(socket, (end.place - reached) as usize);
    }

    fn land_frames<O: SocketOutput>(&mut self, socket: u32, mut frames: Frames, count: usize, out: &mut O) {
        self.count_frames(socket, &frames, count, out);
        if count < frames.bytes.len() {
            self.keep_rest(socket, &mut frames, count);
        } else if let Some(note) = frames.notes.last() {
            self.arrive(note.cursor);
        }
        self.recycle(frames);
    }

    /// Counts what a connection's socket took of its frames, or will take.
    pub(in crate::shard) fn count_frames<O: SocketOutput>(
        &mut self,
        socket: u32,
        frames: &Frames,
        count: usize,
        out: &mut O,
    ) {
        self.note_frames(frames, count, out);
        if let Some(connection) = self.connections.get(socket) {
            self.counters.of(connection).messages_out += frames.messages_within(count);
            let (gaps, dropped) = frames.too_large_within(count);
            self.counters.count_too_large(connection, gaps, dropped);
        }
    }

    fn note_frames<O: SocketOutput>(&mut self, frames: &Frames, count: usize, out: &mut O) {
        let Some(ledger) = &mut self.written.ledger else { return };
        ledger.frames(frames, count);
        let cursor = frames.notes.first().and_then(|note| self.cursors.get(note.cursor));
        if let Some(stream) = cursor.and_then(|cursor| self.streams.get(cursor.stream))
            && stream.fresh_turn == self.written.turns
            && let Some(id) = cursor.map(|cursor| cursor.stream)
        {
            ledger.time(id, stream.fresh_us, out);
        }
    }

    /// After a short write of a buffer: private bytes are kept, the cut frame's rest becomes private (or, where it is large, the
    /// buffer itself is kept for it), and the cursors of the frames behind it stand before the first that was not sent.
    fn keep_rest(&mut self, socket: u32, frames: &mut Frames, count: usize) {
        let mut unsettled = 0;
        let mut kept = frames.private.max(count);
        let mut start = frames.private;
        for note in &frames.notes {
            if start < count {
                kept = kept.max(note.end);
            } else if let Some(cursor) = self.cursors.get_mut(note.cursor) {
                unsettled += usize::from(note.is_tracked);
                if note.is_standard {
                    cursor.standard = cursor.standard.wrapping_sub(1);
                }
                if !cursor.is_unsent {
                    cursor.is_unsent = true;
                    cursor.stand = note.before;
                    cursor.sequence = note.sequence;
                    // What announced the subject's number may be among what was not sent: it is announced again.
                    cursor.announced = 0;
                    if let CursorState::Live(place) = note.before {
                        let window = self.streams.get(cursor.stream).and_then(|s| s.window.as_ref());
                        let around = window.and_then(|w| w.around(place));
                        cursor.standard = around.map_or(cursor.standard, |(_, end)| end.standard);
                    }
                }
            }
            start = note.end;
        }
        self.skip_merged(frames, count);
        for note in &frames.notes {
            if let Some(cursor) = self.cursors.get_mut(note.cursor) {
                cursor.is_unsent = false;
            }
            self.note_late(note.cursor);
        }
        if let Some(mqtt) = self.connections.get_mut(socket).and_then(|connection| connection.mqtt.as_mut()) {
            mqtt.take_back(unsettled);
        }
        self.keep_bytes(socket, frames, count, kept);
    }

    /// Merged frames hold messages from all over a chunk: the cursor of a pattern stands before the first message that was not sent, and
    /// remembers which of the later ones were.
    fn skip_merged(&mut self, frames: &Frames, count: usize) {
        let Some(before) = frames.merged_before(count) else { return };
        let mut start = frames.private;
        for (note, part) in frames.notes.iter().zip(&frames.merged) {
            let is_sent = start < count;
            start = note.end;
            let Some(cursor) = self.cursors.get_mut(note.cursor) else { continue };
            if self.streams.get(cursor.stream).is_none_or(|stream| stream.pattern().is_none()) {
                continue;
            }
            cursor.stand = CursorState::Behind(before);
            if is_sent && part.message.arrival > before {
                cursor.skip_sent(part.message.log, part.message.sequence, part.message.arrival);
            }
        }
    }
}
