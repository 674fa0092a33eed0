//! From streams to sockets: walks the cursors of the streams that grew and hands the kernel one slice for each connection.
//! Owns what is in flight, and that a connection has at most one send in flight; what became of a send is `land`'s.
mod frames;
mod land;
mod rest;
mod singles;

pub(super) use frames::{Frames, Note, Passed};
pub(super) use rest::Rest;

use super::connection::{Blocked, Phase};
use super::{Sending, Shard, SocketOutput};
use crate::codec::Wire;
use crate::codes::Code;
use crate::cursor::{CursorState, NONE};
use crate::window::Missing;

/// Most bytes gathered for one connection at a time.
pub(super) const GATHER_BYTES: usize = 64 * 1024;

/// Cursors of a stream that are looked at before the first of them is served.
const LOOKED_AT_TOGETHER: usize = 16;

/// Buffers kept for another turn; larger ones are given back, so that a rush of slow consumers leaves nothing behind.
const POOLED_MAX: usize = 1024;
const POOLED_BYTES_MAX: usize = 4096;

/// A send that was handed out.
#[derive(Debug)]
pub(super) struct Flight {
    pub connection: u32,
    pub bytes: usize,
    pub load: Load,
}

#[derive(Debug)]
pub(super) enum Load {
    /// A slice of the window of this cursor's stream, from this place.
    Window {
        cursor: u32,
        from: u64,
    },
    /// A buffer of frames made for this connection.
    Frames(Frames),
    /// What is left of a large frame.
    Rest(Rest),
    Answered,
}

impl Shard {
    /// Sends what this turn brought: first the single frames, then the streams that grew.
    pub(in crate::shard) fn deliver<O: SocketOutput>(&mut self, out: &mut O) {
        self.note_growth();
        self.deliver_singles(out);
        self.entries.clear();
        let mut dirty = std::mem::take(&mut self.dirty);
        let is_alone = dirty.len() == 1;
        for &id in &dirty {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.is_dirty = false;
                if stream.held.is_some() && !self.is_release_due(id) {
                    continue;
                }
            }
            self.walk(id, is_alone, out);
        }
        dirty.clear();
        self.dirty = dirty;
    }

    /// Whether a stream that holds frames back has held them long enough, or holds enough of them.
    pub(in crate::shard) fn is_release_due(&self, id: u32) -> bool {
        let Some(stream) = self.streams.get(id) else { return false };
        let Some((since, from)) = stream.held else { return true };
        let waiting = stream.window.as_ref().map_or(0, |w| w.head() - from);
        self.now.mono_ms >= since + u64::from(stream.batch_ms)
            || (stream.batch_bytes_max > 0 && waiting >= u64::from(stream.batch_bytes_max))
    }

    /// Hands each cursor of a stream its slice, or notes that its connection has something to send.
    pub(in crate::shard) fn walk<O: SocketOutput>(&mut self, id: u32, is_alone: bool, out: &mut O) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.held = None;
        let has_parts = stream.wire == Wire::MqttParts;
        let cursors = std::mem::take(&mut stream.cursors);
        for part in cursors.chunks(LOOKED_AT_TOGETHER) {
            // Their memory is seldom in a cache: what several are looked at for first comes at once, not one by one between sends.
            let mut sockets = [None; LOOKED_AT_TOGETHER];
            for (socket, &cursor_id) in sockets.iter_mut().zip(part) {
                *socket = self.awaits(cursor_id);
            }
            for (socket, &cursor_id) in sockets.iter().zip(part) {
                let Some(socket) = *socket else { continue };
                let Some(connection) = self.connections.get(socket) else { continue };
                let is_whole = (is_alone || connection.cursors == 1) && connection.wire != Wire::SseMany && !has_parts;
                if is_whole && connection.takes_frames() {
                    self.send_slice(id, cursor_id, socket, out);
                } else {
                    self.link_ready(cursor_id);
                }
            }
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.cursors = cursors;
        }
    }

    /// The socket that a stream's frames are for, if the cursor stands in its window and the socket may take something.
    fn awaits(&self, cursor_id: u32) -> Option<u32> {
        let cursor = self.cursors.get(cursor_id)?;
        let CursorState::Live(_) = cursor.stand else { return None };
        (!self.connections.get(cursor.connection)?.is_blocked()).then_some(cursor.connection)
    }

    /// Sends the window's bytes from where a cursor stands to its segment's end.
    fn send_slice<O: SocketOutput>(&mut self, id: u32, cursor_id: u32, socket: u32, out: &mut O) {
        let Some(window) = self.streams.get(id).and_then(|s| s.window.as_ref()) else { return };
        let Some(cursor) = self.cursors.get_mut(cursor_id) else { return };
        let CursorState::Live(from) = cursor.stand else { return };
        let slice = window.slice(from).unwrap_or(&[]);
        if slice.is_empty() {
            return;
        }
        let (bytes, head) = (slice.len(), window.head());
        cursor.stand = CursorState::Live(from + bytes as u64);
        let sending = out.send(socket, slice, self.flights.len() as u32);
        if from + (bytes as u64) < head {
            self.link_ready(cursor_id);
        }
        self.launch(Flight { connection: socket, bytes, load: Load::Window { cursor: cursor_id, from } }, sending, out);
    }

    /// Sends a buffer of frames.
    pub(in crate::shard) fn send_frames<O: SocketOutput>(&mut self, socket: u32, mut frames: Frames, out: &mut O) {
        match self.connections.get(socket).map(|connection| (connection.wire, connection.phase)) {
            Some((Wire::SseMany, _)) => self.put_resume_token(socket, &mut frames),
            Some((Wire::Poll, Phase::Open)) => {
                self.collect(socket, &frames); // of an answer whose head is not written yet, whatever they hold
                return self.recycle(frames);
            }
            _ => {}
        }
        let bytes = frames.bytes.len();
        if bytes == 0 {
            self.recycle(frames);
            return;
        }
        if self.is_ahead_of_disk(socket) {
            return self.hold_frames(socket, frames, out);
        }
        let sending = out.send(socket, &frames.bytes, self.flights.len() as u32);
        self.launch(Flight { connection: socket, bytes, load: Load::Frames(frames) }, sending, out);
    }

    pub(in crate::shard) fn launch<O: SocketOutput>(&mut self, flight: Flight, sending: Sending, out: &mut O) {
        self.counters.sends += 1;
        match sending {
            Sending::Pending => {
                if let Some(connection) = self.connections.get_mut(flight.connection) {
                    connection.is_sending = true;
                }
                self.flights.push(flight);
            }
            Sending::Done(count) => self.land(flight, count, out),
            Sending::Blocked => self.land(flight, 0, out),
            Sending::Gone => {
                self.doomed.push((flight.connection, Code::GoingAway));
                self.land(flight, 0, out);
            }
        }
    }

    /// A buffer for frames, out of the pool.
    pub(in crate::shard) fn buffer(&mut self) -> Frames {
        self.buffers.pop().unwrap_or_default()
    }

    pub(in crate::shard) fn recycle(&mut self, mut frames: Frames) {
        self.note_passed(&frames.passed);
        if self.buffers.len() < POOLED_MAX && frames.bytes.capacity() <= POOLED_BYTES_MAX {
            frames.bytes.clear();
            frames.notes.clear();
            frames.passed.clear();
            frames.merged.clear();
            frames.private = 0;
            self.buffers.push(frames);
        }
    }

    /// Notes that a cursor has something to send and that its connection has to be looked at in this turn.
    pub(in crate::shard) fn link_ready(&mut self, cursor_id: u32) {
        let Some(cursor) = self.cursors.get_mut(cursor_id) else { return };
        let socket = cursor.connection;
        if !cursor.is_ready
            && let Some(connection) = self.connections.get_mut(socket)
        {
            cursor.is_ready = true;
            cursor.next_ready = connection.first_ready;
            connection.first_ready = cursor_id;
        }
        self.make_ready(socket);
    }

    /// Notes that a connection has to be looked at in this turn.
    pub(in crate::shard) fn make_ready(&mut self, socket: u32) {
        if let Some(connection) = self.connections.get_mut(socket)
            && !connection.is_ready
        {
            connection.is_ready = true;
            self.ready.push(socket);
        }
    }

    /// Sends what is left to send this turn; to be called whenever pending sends were answered, until nothing is pending.
    pub fn more<O: SocketOutput>(&mut self, out: &mut O) {
        let is_answered = self.flights.iter().all(|flight| matches!(flight.load, Load::Answered));
        if is_answered {
            self.flights.clear();
        }
        let ready = std::mem::take(&mut self.ready);
        for socket in ready {
            self.choke(socket, out);
            let Some(connection) = self.connections.get_mut(socket) else { continue };
            if connection.is_sending {
                self.ready.push(socket);
                continue;
            }
            connection.is_ready = false;
            if !connection.is_blocked() {
                self.serve(socket, out);
            }
        }
        self.ask_for_disk(out);
        if self.flights.is_empty() {
            self.close_doomed(out);
            self.close_finished(out);
        }
    }

    /// Whether a send waits for its answer.
    pub fn is_pending(&self) -> bool {
        !self.flights.is_empty()
    }

    /// Sends a connection's private bytes, or else what its cursors have.
    fn serve<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.has_rest {
            self.send_rest(socket, out);
            self.make_ready(socket);
            return;
        }
        if connection.wire == Wire::Poll && connection.phase == Phase::Open {
            return self.serve_poll(socket, out);
        }
        if !connection.private.is_empty() {
            let mut frames = self.buffers.pop().unwrap_or_default();
            std::mem::swap(&mut frames.bytes, &mut connection.private);
            frames.private = frames.bytes.len();
            self.send_frames(socket, frames, out);
            self.make_ready(socket);
            return;
        }
        self.private_left(socket, out);
        let Some(connection) = self.connections.get(socket) else { return };
        let (first, is_marked) = (connection.first_ready, connection.wire == Wire::SseMany);
        let Some(cursor) = self.cursors.get(first) else {
            if is_marked {
                self.tell_joined(socket);
            }
            return;
        };
        if cursor.next_ready == NONE && !is_marked && !self.has_parts(cursor.stream) {
            let (stream, id) = (cursor.stream, first);
            self.unlink_first(socket);
            self.send_slice(stream, id, socket, out);
        } else if !self.is_put_off(socket) {
            self.gather(socket, out);
        }
    }

    fn unlink_first(&mut self, socket: u32) -> Option<u32> {
        let connection = self.connections.get_mut(socket)?;
        let id = connection.first_ready;
        let cursor = self.cursors.get_mut(id)?;
        connection.first_ready = cursor.next_ready;
        cursor.next_ready = NONE;
        cursor.is_ready = false;
        Some(id)
    }

    /// Copies the frames of several cursors of one connection together, so that they leave in one send.
    fn gather<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let mut frames = self.buffer();
        while frames.bytes.len() < GATHER_BYTES
            && let Some(id) = self.unlink_first(socket)
        {
            if self.cursors.get(id).is_some_and(|cursor| self.has_parts(cursor.stream)) {
                self.gather_parts(id, socket, &mut frames);
                continue;
            }
            let Some(cursor) = self.cursors.get_mut(id) else { break };
            let CursorState::Live(from) = cursor.stand else { continue };
            let Some(window) = self.streams.get(cursor.stream).and_then(|s| s.window.as_ref()) else { continue };
            let mut place = from;
            window.each_frame(from, |bytes, before| {
                frames.bytes.extend_from_slice(bytes);
                place = before.place + bytes.len() as u64;
                let note = Note {
                    end: frames.bytes.len(),
                    cursor: id,
                    before: CursorState::Live(before.place),
                    sequence: 0,
                    is_standard: false,
                    is_too_large: window.missing(before.place, place) != Missing::default(),
                    is_tracked: false,
                    messages: window.placed(before.place, place) as u32,
                };
                frames.notes.push(note);
                frames.bytes.len() < GATHER_BYTES
            });
            cursor.stand = CursorState::Live(place);
            cursor.standard = window.around(place).map_or(cursor.standard, |(_, end)| end.standard);
            if place < window.head() {
                self.link_ready(id);
            }
        }
        self.send_frames(socket, frames, out);
        if self.connections.get(socket).is_some_and(|c| c.first_ready != NONE) {
            self.make_ready(socket);
        }
    }

    /// The socket takes bytes again.
    pub fn writable(&mut self, socket: u32) {
        if self.is_waiting_for_disk(socket) {
            self.end_block(socket, Blocked::Disk);
        } else {
            self.unblock(socket);
        }
    }

    fn end_block(&mut self, socket: u32, left: Blocked) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        self.counters.of(connection).slow_consumers -= u64::from(connection.is_slow());
        connection.blocked = left;
    }

    /// Nothing holds a connection's frames back any more.
    pub(in crate::shard) fn unblock(&mut self, socket: u32) {
        self.end_block(socket, Blocked::Free);
        self.stir(socket);
    }
}
