//! Frames for cursors that are alone in their stream: encoded for this turn only, all of one connection in one send.
//! What is not taken waits in the log.
use super::{Frames, GATHER_BYTES, Note};
use crate::cursor::CursorState;
use crate::node::Entry;
use crate::shard::absorb::Single;
use crate::shard::encode::{self, Item, Told};
use crate::shard::{Shard, SocketOutput};
use crate::stream::Source;

impl Shard {
    pub(in crate::shard) fn deliver_singles<O: SocketOutput>(&mut self, out: &mut O) {
        let mut singles = std::mem::take(&mut self.singles);
        self.delivered = self.arrived;
        singles.sort_unstable_by_key(|single| (single.connection, single.entry, single.cursor));
        for run in singles.chunk_by(|a, b| a.connection == b.connection) {
            self.send_singles(run, out);
        }
        singles.clear();
        self.singles = singles;
    }

    fn send_singles<O: SocketOutput>(&mut self, run: &[Single], out: &mut O) {
        let Some(socket) = run.first().map(|single| single.connection) else { return };
        let mut frames = self.buffer();
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_free = !connection.is_blocked() && !connection.is_sending && !connection.has_rest;
        let is_free = is_free && !self.is_put_off(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if is_free {
            std::mem::swap(&mut frames.bytes, &mut connection.private);
            frames.private = frames.bytes.len();
        }
        let (mut told, mut told_cursor) = (Told::default(), u32::MAX);
        for single in run {
            if single.cursor != told_cursor {
                told = Told::version(self.cursors.get(single.cursor).map_or(0, |c| c.announced));
                told_cursor = single.cursor;
            }
            if !is_free || frames.bytes.len() > GATHER_BYTES * 4 {
                self.postpone(single);
            } else {
                self.encode_single(single, &mut told, &mut frames);
            }
        }
        if is_free {
            self.send_frames(socket, frames, out);
            self.make_ready(socket);
        }
    }

    fn encode_single(&mut self, single: &Single, told: &mut Told, frames: &mut Frames) {
        if self.cursors.get(single.cursor).is_some_and(|cursor| self.has_parts(cursor.stream)) {
            return self.put_single(single, frames);
        }
        let Some(Entry::Message(message)) = self.entries.get(single.entry as usize) else { return };
        let Some(cursor) = self.cursors.get_mut(single.cursor) else { return };
        if cursor.stand != CursorState::Current {
            return;
        }
        let Some((stream, next_number)) = self.streams.get_with_number(cursor.stream) else { return };
        let framed = encode::private_frame(stream, next_number, &Item::message(message), told, &mut frames.bytes);
        self.press.squeeze(stream.window_bits, &mut frames.bytes, framed.begin);
        if let Source::Subject(_) = stream.source {
            cursor.announced = told.version;
        }
        frames.notes.push(Note {
            end: frames.bytes.len(),
            cursor: single.cursor,
            before: CursorState::Behind(message.arrival - 1),
            sequence: message.sequence.saturating_sub(1),
            is_standard: message.sequence == 0,
            is_too_large: framed.is_too_large,
            is_tracked: false,
            messages: u32::from(message.sequence > 0),
        });
    }

    /// The frame cannot be made now: its cursor gets it, and what comes after, from the log.
    pub(in crate::shard) fn postpone(&mut self, single: &Single) {
        let Some(Entry::Message(message)) = self.entries.get(single.entry as usize) else { return };
        let Some(cursor) = self.cursors.get_mut(single.cursor) else { return };
        if message.sequence == 0 {
            cursor.standard = cursor.standard.wrapping_sub(1);
        }
        if cursor.stand == CursorState::Current {
            cursor.stand = CursorState::Behind(message.arrival - 1);
            cursor.sequence = message.sequence.saturating_sub(1);
            self.queue_behind(single.cursor);
        }
    }
}
