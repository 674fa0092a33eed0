//! One answer with the messages there are, or with the first that come: a GET that may wait. Its cursors read from the logs
//! alone, so that nothing is encoded for a request that has not the time to take it. Owns when such an answer is complete.
use super::produce::array;
use crate::codec::Wire;
use crate::codes::Code;
use crate::cursor::{CursorState, NONE};
use crate::http::{self, Answer};
use crate::message::Message;
use crate::node::MISSING_MAX;
use crate::position::Position;
use crate::shard::connection::Phase;
use crate::shard::encode::{self, Item, Told};
use crate::shard::outbound::{Frames, GATHER_BYTES};
use crate::shard::{Shard, SocketOutput, lock};
use crate::stream::Source;
use std::sync::Arc;

/// An answer that cannot be cut is refused beyond this: the snapshots of a very wide pattern.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Gaps with their snapshots that an answer takes at a time: as many of the largest fit.
const POLL_MISSING_MAX: usize = 8;

/// An answer under way.
#[derive(Debug)]
pub(in crate::shard) struct Poll {
    /// Elements so far, each with a comma before it.
    body: Vec<u8>,
    /// Messages among them that count against the limit.
    count: usize,
    limit: usize,
    /// Up to which arrival its place said that everything was sent; none while a join was under way.
    began: Option<u64>,
    /// When it is given with what there is (monotonic ms).
    deadline_ms: u64,
    /// The longest element there may be, beyond what one answer holds.
    frame_bytes_max: usize,
}

impl Poll {
    pub(super) fn new(limit: usize, deadline_ms: u64, frame_bytes_max: usize) -> Self {
        Self { body: Vec::new(), count: 0, limit, began: None, deadline_ms, frame_bytes_max }
    }
}

impl Shard {
    fn poll_mut(&mut self, socket: u32) -> Option<&mut Poll> {
        self.connections.get_mut(socket)?.details.as_mut()?.exchange.as_mut()?.poll.as_deref_mut()
    }

    /// Whether a connection reads what there is, without waiting for more.
    pub(in crate::shard) fn is_reading(&mut self, socket: u32) -> bool {
        let now_ms = self.now.mono_ms;
        self.poll_mut(socket).is_some_and(|poll| poll.deadline_ms <= now_ms)
    }

    /// The subscriptions of an answer have begun.
    pub(super) fn begin_poll(&mut self, socket: u32) {
        let began = self.passed(socket);
        if let Some(poll) = self.poll_mut(socket) {
            poll.began = began;
        }
    }

    /// An answer holds as much of what follows a pattern's gap as fits: if it were refused, each repeat would be refused, too. Returns
    /// whether it is too large even so: another pattern's join cannot be cut, or one message of many subscriptions is too much.
    fn cut_joins(&mut self, socket: u32) -> bool {
        let Some(poll) = self.poll(socket).filter(|poll| poll.body.len() > BODY_BYTES_MAX) else { return false };
        let is_too_large = poll.body.len() > BODY_BYTES_MAX + poll.frame_bytes_max;
        let is_beyond_all = poll.body.len() > 2 * BODY_BYTES_MAX + poll.frame_bytes_max;
        let mut is_fixed = false;
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            let next = cursor.next;
            is_fixed |= !self.cut_join(id) && self.is_joining(id);
            id = next;
        }
        is_beyond_all || is_too_large && is_fixed
    }

    fn poll(&self, socket: u32) -> Option<&Poll> {
        let connection = self.connections.get(socket).filter(|connection| connection.wire == Wire::Poll)?;
        connection.details.as_ref()?.exchange.as_ref()?.poll.as_deref()
    }

    /// Whether an answer's place is after the one where it began. An answer without that would be given again and again.
    fn has_moved(&self, socket: u32) -> bool {
        let began = self.poll(socket).and_then(|poll| poll.began);
        self.passed(socket).is_some_and(|passed| began.is_none_or(|began| passed > began))
    }

    /// Messages that a cursor's connection still takes in this answer. A full answer takes more of its hindmost
    /// subscription, one at a time, until its place moves.
    pub(in crate::shard) fn messages_left(&self, cursor: u32) -> usize {
        let Some(socket) = self.cursors.get(cursor).map(|cursor| cursor.connection) else { return usize::MAX };
        if self.connections.get(socket).is_none_or(|connection| connection.wire != Wire::Poll) {
            return usize::MAX;
        }
        let left = self.room(socket);
        let is_kept_open = left == 0 && self.poll(socket).is_some() && !self.has_moved(socket);
        if is_kept_open && self.is_hindmost(cursor) { 1 } else { left }
    }

    /// Where the hindmost of the other subscriptions of an answer stands.
    fn least_of_others(&self, id: u32, socket: u32) -> u64 {
        let mut other = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        let mut least = u64::MAX;
        while let Some(cursor) = self.cursors.get(other) {
            match cursor.stand {
                CursorState::Behind(at) | CursorState::Reading(at) if other != id => least = least.min(at),
                _ => {}
            }
            other = cursor.next;
        }
        least
    }

    fn has_joining(&self, socket: u32) -> bool {
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            if cursor.stand == CursorState::Joining {
                return true;
            }
            id = cursor.next;
        }
        false
    }

    /// Whether an answer's place moves only with this cursor: no other subscription is before it, and none joins.
    fn is_hindmost(&self, id: u32) -> bool {
        let Some(cursor) = self.cursors.get(id) else { return false };
        let (CursorState::Behind(at) | CursorState::Reading(at)) = cursor.stand else { return false };
        at <= self.least_of_others(id, cursor.connection) && !self.has_joining(cursor.connection)
    }

    /// The subscriptions of an answer that had to wait for another one look again whether they may read.
    pub(in crate::shard) fn wake_readers(&mut self, socket: u32) {
        let mut id = self.poll(socket).and_then(|_| self.connections.get(socket)).map_or(NONE, |c| c.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            let next = cursor.next;
            if matches!(cursor.stand, CursorState::Behind(_) | CursorState::Reading(_)) && !self.awaits_window(id) {
                self.queue_behind(id);
            }
            id = next;
        }
    }

    /// How many subjects with a gap one step of a cursor tells of: an answer ends once its place has moved, and cannot hold all snapshots.
    pub(in crate::shard) fn missing_max(&self, cursor: u32) -> usize {
        let connection = self.cursors.get(cursor).and_then(|cursor| self.connections.get(cursor.connection));
        if connection.is_some_and(|connection| connection.wire == Wire::Poll) { POLL_MISSING_MAX } else { MISSING_MAX }
    }

    fn room(&self, socket: u32) -> usize {
        let poll = self.poll(socket).filter(|poll| poll.body.len() < GATHER_BYTES);
        poll.map_or(0, |poll| poll.limit.saturating_sub(poll.count))
    }

    /// Up to which arrival a cursor behind may read now, so that the subscriptions of one answer advance together, in the order of arrivals.
    /// None: another one comes first, from memory or the journal; once that has read, `wake_readers` queues this one.
    pub(in crate::shard) fn reads_until(&self, id: u32, from: u64) -> Option<u64> {
        let Some(socket) = self.cursors.get(id).map(|cursor| cursor.connection) else { return Some(u64::MAX) };
        if self.connections.get(socket).is_none_or(|connection| connection.wire != Wire::Poll) {
            return Some(u64::MAX);
        }
        if self.room(socket) == 0 && self.has_joining(socket) {
            return None;
        }
        let least = self.least_of_others(id, socket);
        (from <= least).then_some(least.saturating_add(1))
    }

    /// Takes frames that were made for an answer under way.
    pub(in crate::shard) fn collect(&mut self, socket: u32, frames: &Frames) {
        if let Some(ledger) = &mut self.written.ledger {
            ledger.frames(frames, frames.bytes.len());
        }
        if let Some(connection) = self.connections.get(socket) {
            let (gaps, dropped) = frames.too_large_within(frames.bytes.len());
            self.counters.count_too_large(connection, gaps, dropped);
        }
        if let Some(poll) = self.poll_mut(socket) {
            poll.body.extend_from_slice(&frames.bytes);
            poll.count += frames.notes.len();
        }
        self.make_ready(socket);
    }

    /// A message came to a stream of such requests: each that is at the head reads it from the log. One that is in no log is
    /// put in its answer at once.
    pub(in crate::shard) fn wake_polls(&mut self, stream_id: u32, message: &Message) {
        let Some(cursors) = self.streams.get(stream_id).map(|stream| stream.cursors.clone()) else { return };
        for id in cursors {
            let Some(cursor) = self.cursors.get_mut(id).filter(|cursor| cursor.stand == CursorState::Current) else {
                continue;
            };
            if message.sequence > 0 {
                cursor.stand = CursorState::Behind(message.arrival - 1);
                cursor.sequence = message.sequence - 1;
                self.queue_behind(id);
                continue;
            }
            let socket = cursor.connection;
            if self.room(socket) == 0 {
                self.tell_dropped(id, 1); // the answer is full, and goes with this turn
                continue;
            }
            let mut frames = Frames::default();
            if let Some((stream, next_number)) = self.streams.get_with_number(stream_id) {
                let standard = stream.standard;
                let (item, told) = (Item::message(message), &mut Told::default());
                let framed = encode::private_frame(stream, next_number, &item, told, &mut frames.bytes);
                if let Some(cursor) = self.cursors.get_mut(id) {
                    cursor.standard = standard;
                }
                if let Some(connection) = self.connections.get(socket).filter(|_| framed.is_too_large) {
                    self.counters.count_too_large(connection, 0, 1);
                }
            }
            self.collect(socket, &frames);
            if let Some(poll) = self.poll_mut(socket) {
                poll.count += 1;
            }
        }
    }

    /// Requests that have waited long enough.
    pub(in crate::shard) fn look_at_polls(&mut self) {
        while let Some((deadline_ms, socket)) = self.polls.first().copied()
            && deadline_ms <= self.now.mono_ms
        {
            self.polls.pop_first();
            self.make_ready(socket);
        }
    }

    /// Completes an answer if it is time to.
    pub(in crate::shard) fn serve_poll<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let private = std::mem::take(&mut connection.private);
        let Some(poll) = self.poll_mut(socket) else { return };
        poll.body.extend_from_slice(&private);
        let is_too_large = self.cut_joins(socket);
        let is_behind = self.is_behind(socket);
        let is_joining = self.passed(socket).is_none();
        let has_moved = self.has_moved(socket);
        let now_ms = self.now.mono_ms;
        let Some(poll) = self.poll(socket) else { return };
        let is_full = poll.count >= poll.limit || poll.body.len() >= GATHER_BYTES;
        let is_over = now_ms >= poll.deadline_ms || !poll.body.is_empty();
        if is_too_large {
            let refused = http::refuse(Code::BodyTooBig, "this is too much for one answer: take /v1/stream");
            self.leave_poll(socket);
            self.answer_refusal(socket, &refused);
        } else if !is_joining && (is_full && has_moved || (is_full || is_over) && !is_behind) {
            self.end_poll(socket);
        } else {
            return self.wake_readers(socket);
        }
        self.after_answer(socket);
        self.read_ahead(socket, out);
    }

    fn end_poll(&mut self, socket: u32) {
        let place = self.place_of(socket);
        let Some(poll) = self.leave_poll(socket) else { return };
        let body = array(poll.body);
        let mut lines = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n".to_owned();
        if let Some(place) = place {
            lines.push_str(&format!("Godwit-Position: {place}\r\n"));
        }
        self.answer(socket, &Answer { status: 200, media: "application/json", lines: &lines, body: &body });
    }

    /// Gives up the subscriptions of an answer; the connection takes requests again.
    fn leave_poll(&mut self, socket: u32) -> Option<Box<Poll>> {
        self.leave_all(socket);
        let connection = self.connections.get_mut(socket)?;
        connection.phase = Phase::Http;
        let exchange = connection.exchange();
        exchange.event_ids = None;
        let poll = exchange.poll.take()?;
        self.polls.remove(&(poll.deadline_ms, socket));
        Some(poll)
    }

    /// Where a request goes on that has been given this answer: one subject's position, or a resume token of all its subjects.
    fn place_of(&mut self, socket: u32) -> Option<String> {
        let only = self.connections.get(socket)?.first_cursor;
        let cursor = self.cursors.get(only)?;
        let stream = self.streams.get(cursor.stream)?;
        let (Source::Subject(log), true) = (&stream.source, cursor.next == NONE) else {
            return self.resume_token_text(socket);
        };
        let log = *log;
        if let Some(at) = self.reading_place(only) {
            return Some(at.to_string());
        }
        let passed = self.passed(socket)?;
        let node = Arc::clone(&self.node);
        let at: Position = lock(&node).position_at(log, passed);
        Some(at.to_string())
    }
}
