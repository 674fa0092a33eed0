//! Streams with a clock: conflation windows that close, frames held back for company. Owns when; merging is `conflation`'s. Owns
//! also that nobody is sent again what a window gathered before he stood there: who has a part of the window under way already
//! waits for its end, and is then sent the rest of it from the logs.
use crate::conflation::Part;
use crate::cursor::CursorState;
use crate::settings::Settings;
use crate::shard::{Shard, encode};
use crate::stream::Stream;
use crate::subject::Pattern;

impl Shard {
    /// Closes the windows that are due and lets held frames go.
    pub(in crate::shard) fn close_windows(&mut self) {
        if self.streams.timed.is_empty() {
            return;
        }
        for id in self.streams.timed.clone() {
            let now_ms = self.now.mono_ms;
            let arrived = self.arrived;
            let Some(stream) = self.streams.get_mut(id) else { continue };
            if stream.held.is_some() && self.is_release_due(id) {
                self.note_dirty(id);
                continue;
            }
            let Some(stream) = self.streams.get_mut(id) else { continue };
            let due = stream.conflation.as_mut().filter(|c| !c.is_empty() && c.closes_ms <= now_ms);
            let Some(conflation) = due else { continue };
            let parts = conflation.close(arrived);
            self.append_parts(id, &parts, arrived);
        }
    }

    /// Appends a closed window: whoever was sent all its frames has been sent everything up to its end.
    fn append_parts(&mut self, id: u32, parts: &[Part], arrived: u64) {
        let Some((stream, next_number)) = self.streams.get_with_number(id) else { return };
        for part in parts {
            encode::append(stream, next_number, &encode::Item::part(part), arrived, &mut self.press);
        }
        self.appended(id);
        self.release_waiting(id);
    }

    /// Whether a cursor waits for the end of its stream's window: some of what that has gathered its client has already.
    pub(in crate::shard) fn awaits_window(&self, id: u32) -> bool {
        let Some(cursor) = self.cursors.get(id) else { return false };
        let CursorState::Behind(from) = cursor.stand else { return false };
        let conflation = self.streams.get(cursor.stream).and_then(|stream| stream.conflation.as_ref());
        let Some(conflation) = conflation.filter(|conflation| !conflation.is_empty()) else { return false };
        let known = cursor.job.as_ref().map_or(from, |job| job.skips_until.max(from));
        from >= conflation.closed && known > conflation.closed
    }

    /// It is told what ends its join, and called again when the window has ended.
    pub(in crate::shard) fn await_window(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let CursorState::Behind(from) = cursor.stand else { return };
        let (socket, owes_resume_token) = (cursor.connection, std::mem::take(&mut cursor.owes_resume_token));
        let stream = self.streams.get_mut(cursor.stream);
        if let Some(conflation) = stream.and_then(|stream| stream.conflation.as_mut()) {
            conflation.is_awaited = true;
        }
        if owes_resume_token {
            self.tell_resume_token(id, from);
        }
        self.make_ready(socket);
    }

    /// A window has ended: who waited for it goes on from the logs.
    pub(in crate::shard) fn release_waiting(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(conflation) = stream.conflation.as_mut() else { return };
        if !std::mem::take(&mut conflation.is_awaited) {
            return;
        }
        let cursors = std::mem::take(&mut stream.cursors);
        for &cursor in &cursors {
            if self.cursors.get(cursor).is_some_and(|cursor| matches!(cursor.stand, CursorState::Behind(_))) {
                self.queue_behind(cursor);
            }
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.cursors = cursors;
        }
    }

    pub(in crate::shard) fn note_dirty(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(id)
            && !stream.is_dirty
        {
            stream.is_dirty = true;
            self.dirty.push(id);
        }
    }
}

impl Settings {
    /// Gives a pattern's stream what the most specific pattern that covers it says.
    pub(crate) fn shape(&self, stream: &mut Stream, pattern: &Pattern) {
        let covering =
            self.patterns.iter().filter_map(|settings| Some((Pattern::parse(&settings.pattern).ok()?, settings)));
        let best = covering.filter(|(other, _)| other.covers(pattern)).max_by(|a, b| a.0.compare_specificity(&b.0));
        if let Some((_, settings)) = best {
            stream.conflates_slow = settings.conflate_when_slow.unwrap_or(false);
            stream.batch_ms = settings.batch_ms.unwrap_or(0);
            stream.batch_bytes_max = settings.batch_bytes_max.unwrap_or(0);
        }
    }
}
