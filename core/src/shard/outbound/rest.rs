//! What is left of a frame that a full socket cut. A small rest is copied to the connection; of a large frame the connection
//! holds the window's own memory, shared by all who were cut in it, and of a large answer the buffer it was written to. Owns the shard's count of rests and what happens at
//! its limit: past it a connection is closed and told to come back, rather than that memory grows with slow consumers.
use std::sync::Arc;

use super::{Flight, Frames, Load};
use crate::codes::Code;
use crate::shard::{Shard, SocketOutput};

/// A large frame's rest, to be sent before anything else.
#[derive(Debug)]
pub(in crate::shard) struct Rest {
    pub bytes: Arc<Vec<u8>>,
    pub from: usize,
}

/// Rests smaller than this are not counted: a connection that is cut costs at most so much.
const COUNTED_BYTES_MIN: usize = 4096;
/// From this size on a buffer's rest is not copied: the buffer is kept. It may be cut as often as it likes.
const KEPT_BYTES_MIN: usize = 32 * 1024;

impl Shard {
    /// Keeps a large frame's rest.
    pub(in crate::shard) fn share_rest(&mut self, socket: u32, bytes: Arc<Vec<u8>>, from: usize) {
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.has_rest = true;
            connection.details().rest = Some(Rest { bytes, from });
        }
    }

    /// Keeps what a full socket left of a buffer, from one place of it up to another.
    pub(super) fn keep_bytes(&mut self, socket: u32, frames: &mut Frames, from: usize, to: usize) {
        if to.saturating_sub(from) >= KEPT_BYTES_MIN {
            let mut bytes = std::mem::take(&mut frames.bytes);
            bytes.truncate(to);
            let kept = bytes.capacity();
            self.share_rest(socket, Arc::new(bytes), from);
            return self.count_rest(socket, kept);
        }
        if let Some(connection) = self.connections.get_mut(socket) {
            let rest = frames.bytes.get(from..to).unwrap_or(&[]);
            connection.private.splice(0..0, rest.iter().copied());
        }
        self.count_rest(socket, to.saturating_sub(from));
    }

    /// Sends what is left of a large frame, or of a large buffer.
    pub(in crate::shard) fn send_rest<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        connection.has_rest = false;
        let Some(rest) = connection.details.as_mut().and_then(|details| details.rest.take()) else { return };
        let Some(slice) = rest.bytes.get(rest.from..).filter(|slice| !slice.is_empty()) else { return };
        let sending = out.send(socket, slice, self.flights.len() as u32);
        let flight = Flight { connection: socket, bytes: slice.len(), load: Load::Rest(rest) };
        self.launch(flight, sending, out);
    }

    pub(in crate::shard) fn land_rest(&mut self, socket: u32, rest: Rest, bytes: usize, count: usize) {
        if count < bytes {
            self.share_rest(socket, rest.bytes, rest.from + count);
        }
    }

    /// Counts a rest that is the connection's alone, which takes the place of the one before: what is cut again is the same bytes. Past the shard's share
    /// of the limit its connection is to go.
    pub(in crate::shard) fn count_rest(&mut self, socket: u32, bytes: usize) {
        self.uncount_rest(socket);
        if bytes < COUNTED_BYTES_MIN {
            return;
        }
        let share = self.settings.limits.partial_bytes_max / usize::from(self.settings.shards.max(1));
        self.counters.held_bytes += bytes as u64;
        let is_over = self.counters.held_bytes as usize > share;
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.details().rest_bytes = bytes;
        }
        if is_over {
            self.doomed.push((socket, Code::PartialBytesExceeded));
        }
    }

    /// The private bytes of a connection have left, or the connection has.
    pub(in crate::shard) fn uncount_rest(&mut self, socket: u32) {
        let details = self.connections.get_mut(socket).and_then(|connection| connection.details.as_mut());
        let bytes = details.map_or(0, |details| std::mem::take(&mut details.rest_bytes));
        self.counters.held_bytes = self.counters.held_bytes.saturating_sub(bytes as u64);
    }

    /// Lets go of connections whose rests were too much, or of which a send failed: to those nothing can be sent, whatever state they are
    /// in. Only while nothing is in flight.
    pub(in crate::shard) fn close_doomed<O: SocketOutput>(&mut self, out: &mut O) {
        for (socket, code) in std::mem::take(&mut self.doomed) {
            if self.connections.get(socket).is_some() {
                self.forget(socket, code as u16, out);
            }
        }
    }
}
