//! The resume tokens of a connection that listens to several subjects or to a pattern: its events' ids. Owns which resume token the next event may
//! carry: one that all its cursors have passed once that event is written. Cursors at the head of all that was delivered are
//! not looked at: only those that are late, each of which was noted when it became so.
use crate::codec::{Wire, sse};
use crate::cursor::{Cursor, CursorState, NONE};
use crate::position::ResumeToken;
use crate::shard::Shard;
use crate::shard::outbound::Frames;

/// What a connection remembers whose events carry resume tokens.
#[derive(Debug)]
pub(in crate::shard) struct EventIds {
    /// What its subscriptions are, as ids say it.
    digest: String,
    /// The joins are complete, and a resume token has said so.
    is_joined: bool,
    /// Cursors that may not have passed all that was delivered; `is_late` says which of them stand here.
    late: Vec<u32>,
}

impl EventIds {
    pub(super) fn new(selectors: &[&str], tells_joined: bool) -> Self {
        Self { digest: sse::digest(selectors), is_joined: !tells_joined, late: Vec::new() }
    }
}

impl Shard {
    /// Up to which arrival everything has been sent that a connection listens to; none while a join is under way. Frames noted
    /// for this turn only have not been sent before the turn's deliveries begin.
    pub(super) fn passed(&self, socket: u32) -> Option<u64> {
        let mut id = self.connections.get(socket)?.first_cursor;
        let mut passed = self.arrived;
        while id != NONE {
            let cursor = self.cursors.get(id)?;
            passed = passed.min(self.passed_by(cursor)?);
            id = cursor.next;
        }
        Some(passed)
    }

    /// The same of one cursor.
    fn passed_by(&self, cursor: &Cursor) -> Option<u64> {
        let reach = self.reach(cursor.stream);
        match cursor.stand {
            CursorState::Current => Some(reach.min(self.delivered)),
            CursorState::Live(place) => {
                let window = self.streams.get(cursor.stream)?.window.as_ref()?;
                if place >= window.head() { Some(reach) } else { Some(window.settled(place)?.arrival) }
            }
            CursorState::Behind(from) => Some(from),
            CursorState::Reading(from) => (from > 0).then_some(from),
            CursorState::Joining => None,
        }
    }

    /// The same of a stream whose events carry resume tokens, looking only at cursors that are late. What has not been delivered is not
    /// passed: a stream that grew since then has not told its cursors yet.
    fn passed_by_all(&mut self, socket: u32) -> Option<u64> {
        let mut late = std::mem::take(&mut self.event_ids_mut(socket)?.late);
        let (mut passed, mut is_joining) = (self.delivered, false);
        late.retain(|&id| {
            let Some(cursor) = self.cursors.get(id).filter(|cursor| cursor.connection == socket && cursor.is_late)
            else {
                return false;
            };
            let arrival = self.passed_by(cursor);
            is_joining |= arrival.is_none();
            passed = passed.min(arrival.unwrap_or(u64::MAX));
            let is_late = !self.is_at_head(cursor);
            if !is_late && let Some(cursor) = self.cursors.get_mut(id) {
                cursor.is_late = false;
            }
            is_late
        });
        self.event_ids_mut(socket)?.late = late;
        let passed = (!is_joining).then_some(passed);
        debug_assert!(passed.is_none_or(|passed| self.passed(socket).is_some_and(|all| passed <= all)));
        debug_assert!(passed == self.passed(socket) || self.delivered < self.arrived);
        passed
    }

    /// Whether a cursor is late only when its stream grows. A conflated stream is late without growing: what it merges is not sent.
    fn is_at_head(&self, cursor: &Cursor) -> bool {
        let Some(stream) = self.streams.get(cursor.stream).filter(|stream| stream.conflate_ms == 0) else {
            return false;
        };
        match cursor.stand {
            CursorState::Current => true,
            CursorState::Live(place) => stream.window.as_ref().is_some_and(|window| place >= window.head()),
            CursorState::Behind(_) | CursorState::Reading(_) | CursorState::Joining => false,
        }
    }

    /// A cursor may have less behind it than all that was delivered.
    pub(in crate::shard) fn note_late(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get_mut(id).filter(|cursor| !cursor.is_late) else { return };
        let Some(connection) = self.connections.get_mut(cursor.connection) else { return };
        if connection.wire == Wire::SseMany
            && let Some(event_ids) = connection.exchange().event_ids.as_mut()
        {
            cursor.is_late = true;
            event_ids.late.push(id);
        }
    }

    /// The streams that grew are about to be delivered: their cursors are late until that is sent.
    pub(in crate::shard) fn note_growth(&mut self) {
        for index in 0..self.dirty.len() {
            let stream = self.dirty.get(index).and_then(|&id| self.streams.get_mut(id));
            let Some(stream) = stream.filter(|stream| stream.wire == Wire::SseMany) else { continue };
            let cursors = std::mem::take(&mut stream.cursors);
            cursors.iter().for_each(|&cursor| self.note_late(cursor));
            if let Some(stream) = self.dirty.get(index).and_then(|&id| self.streams.get_mut(id)) {
                stream.cursors = cursors;
            }
        }
    }

    /// The resume token that the connection's next event may carry.
    fn resume_token_of(&mut self, socket: u32) -> Option<ResumeToken> {
        let arrival = match self.connections.get(socket)?.wire {
            Wire::SseMany => self.passed_by_all(socket)?,
            _ => self.passed(socket)?,
        };
        Some(ResumeToken {
            run: self.settings.run,
            arrival: arrival.min(self.token_bound),
            time_ms: self.resume_token_ms,
        })
    }

    /// Puts the connection's resume token in front of the last of its frames.
    pub(in crate::shard) fn put_resume_token(&mut self, socket: u32, frames: &mut Frames) {
        let Some(resume_token) = self.resume_token_of(socket).filter(|_| !frames.notes.is_empty()) else { return };
        let begin = frames.notes.iter().rev().nth(1).map_or(frames.private, |note| note.end);
        let Some(event_ids) = self.event_ids(socket).filter(|event_ids| event_ids.is_joined) else { return };
        let mut line = Vec::new();
        sse::put_event_id(&mut line, resume_token, &event_ids.digest);
        let bytes = line.len();
        frames.bytes.splice(begin..begin, line);
        if let Some(last) = frames.notes.last_mut() {
            last.end += bytes;
        }
    }

    fn event_ids(&self, socket: u32) -> Option<&EventIds> {
        self.connections.get(socket)?.details.as_ref()?.exchange.as_ref()?.event_ids.as_deref()
    }

    fn event_ids_mut(&mut self, socket: u32) -> Option<&mut EventIds> {
        self.connections.get_mut(socket)?.details.as_mut()?.exchange.as_mut()?.event_ids.as_deref_mut()
    }

    /// What a position field says of a connection that listens to several subjects, or to a pattern.
    pub(super) fn resume_token_text(&mut self, socket: u32) -> Option<String> {
        let resume_token = self.resume_token_of(socket)?;
        Some(format!("{resume_token}.{}", self.event_ids(socket)?.digest))
    }

    /// All joins of a connection are complete: an event of its own says how far it is.
    pub(in crate::shard) fn tell_joined(&mut self, socket: u32) {
        if self.event_ids(socket).is_some_and(|event_ids| !event_ids.is_joined) && !self.is_behind(socket) {
            self.tell_stand(socket, true);
        }
    }

    /// Keeps a silent stream open: with its resume token, where it has one.
    pub(in crate::shard) fn keep_alive(&mut self, socket: u32) {
        self.tell_stand(socket, false);
    }

    fn tell_stand(&mut self, socket: u32, is_joining: bool) {
        let resume_token = self.resume_token_of(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_many = connection.wire == Wire::SseMany;
        let details = connection.details.get_or_insert_default();
        let event_ids = details.exchange.as_mut().and_then(|exchange| exchange.event_ids.as_mut());
        match (event_ids, resume_token) {
            (Some(event_ids), Some(resume_token)) if is_many && (is_joining || event_ids.is_joined) => {
                event_ids.is_joined = true;
                sse::put_resume_token_event(&mut connection.private, resume_token, &event_ids.digest);
            }
            _ if is_joining => return,
            _ => sse::put_comment(&mut connection.private),
        }
        self.make_ready(socket);
    }

    /// Whether a cursor of the connection has yet to come to its stream's head. Who waits for a window's end has all before it.
    pub(super) fn is_behind(&self, socket: u32) -> bool {
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            let is_behind =
                matches!(cursor.stand, CursorState::Behind(_) | CursorState::Reading(_) | CursorState::Joining);
            if is_behind && !self.awaits_window(id) {
                return true;
            }
            id = cursor.next;
        }
        false
    }
}
