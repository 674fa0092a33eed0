//! Windows opened, trimmed and let go. Owns what that means for the cursors in them: none points before its window's front.
mod conflate;

use super::{Shard, encode};
use crate::codec::Wire;
use crate::cursor::{Cursor, CursorState};
use crate::node::{Entry, Lost};
use crate::stream::Stream;
use crate::window::Window;

impl Shard {
    /// Gives a stream a window from here on. Frames that were noted for its only cursor this turn become its first.
    pub(super) fn open_window(&mut self, id: u32) {
        let arrived = self.arrived;
        let Some((stream, next_number)) = self.streams.get_with_number(id) else { return };
        // Requests that wait read from the logs alone.
        if stream.window.is_some() || stream.wire == Wire::Poll {
            return;
        }
        stream.numbers.values_mut().for_each(|number| number.segment = 0);
        let alone = stream.cursors.first().copied();
        let is_noted = |single: &super::absorb::Single| Some(single.cursor) == alone;
        let noted: Vec<u32> =
            self.singles.iter().filter(|single| is_noted(single)).map(|single| single.entry).collect();
        self.singles.retain(|single| !is_noted(single));
        let messages: Vec<_> = noted
            .iter()
            .filter_map(|&entry| match self.entries.get(entry as usize) {
                Some(Entry::Message(message)) => Some(message),
                _ => None,
            })
            .collect();
        let begins = messages.first().map_or(arrived, |message| message.arrival - 1);
        stream.window = Some(Box::new(Window::new(begins, stream.standard)));
        for message in messages {
            let item = encode::Item::message(message);
            encode::append(stream, next_number, &item, message.arrival, &mut self.press);
        }
        for &cursor in &stream.cursors {
            if let Some(cursor) = self.cursors.get_mut(cursor)
                && cursor.stand == CursorState::Current
            {
                cursor.stand = CursorState::Live(0);
            }
        }
        if !noted.is_empty() {
            self.appended(id);
        } else {
            self.account_window(id);
        }
    }

    /// Trims a stream's window; a cursor that it moves past is caught up from the logs.
    pub(super) fn trim_window(&mut self, id: u32, bytes_max: usize) {
        let window = self.streams.get(id).and_then(|stream| stream.window.as_ref());
        let Some(front) = window.map(|window| window.front_within(bytes_max)) else { return };
        self.leave_windows(id, front);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(mut window) = stream.window.take() else { return };
        let is_conflated = stream.conflate_ms > 0;
        let mut moved = Vec::new();
        for &cursor_id in &stream.cursors {
            let Some(cursor) = self.cursors.get_mut(cursor_id) else { continue };
            if let CursorState::Live(place) = cursor.stand
                && place < front
                && fall(cursor, &window, place, is_conflated)
            {
                moved.push(cursor_id);
            }
        }
        window.trim(bytes_max);
        stream.window = Some(window);
        self.counters.window_misses += moved.len() as u64;
        for cursor in moved {
            self.queue_behind(cursor);
        }
        self.account_window(id);
    }

    /// Lets go of a stream's window. Cursors at its head stay there, the others are caught up from the logs.
    pub(super) fn close_window(&mut self, id: u32) {
        self.keep_reached(id);
        self.leave_windows(id, u64::MAX);
        let reach = self.reach(id);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(window) = stream.window.take() else { return };
        let is_conflated = stream.conflate_ms > 0;
        let mut moved = Vec::new();
        for &cursor_id in &stream.cursors {
            let Some(cursor) = self.cursors.get_mut(cursor_id) else { continue };
            let CursorState::Live(place) = cursor.stand else { continue };
            if place >= window.head() {
                cursor.stand = CursorState::Current;
            } else if fall(cursor, &window, place, is_conflated) {
                moved.push(cursor_id);
            }
        }
        if stream.wire != Wire::Poll && stream.cursors.len() > 1 || Self::keeps_window(stream) {
            stream.window = Some(Box::new(Window::new(reach, stream.standard)));
            self.seat_current(id);
        }
        for cursor in moved {
            self.queue_behind(cursor);
        }
        self.account_window(id);
    }

    /// Whether a stream needs a window even for one cursor: what it sends is nobody's single message.
    pub(super) fn keeps_window(stream: &Stream) -> bool {
        stream.wire != Wire::Poll && (stream.conflate_ms > 0 || stream.batch_ms > 0)
    }

    fn seat_current(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.numbers.values_mut().for_each(|number| number.segment = 0);
        let head = stream.window.as_ref().map_or(0, |w| w.head());
        for &cursor in &stream.cursors {
            if let Some(cursor) = self.cursors.get_mut(cursor)
                && cursor.stand == CursorState::Current
            {
                cursor.stand = CursorState::Live(head);
            }
        }
    }

    fn account_window(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let bytes = stream.window.as_ref().map_or(0, |w| w.bytes());
        let before = std::mem::replace(&mut stream.window_bytes, bytes);
        self.streams.window_bytes = self.streams.window_bytes + bytes - before;
    }

    /// The feed has moved past this shard: every cursor is caught up from the logs, from where the streams ended. Standard
    /// messages are in no log: what was lost of them is told.
    pub(super) fn fall_off_feed(&mut self, lost: &[Lost]) {
        self.restate_watches();
        // Their cursors will be caught up before this turn delivers: what it has noted for them would come behind what is later.
        for single in std::mem::take(&mut self.singles) {
            self.postpone(&single);
        }
        let mut concerned = Vec::new();
        for Lost { subject, log, count } in lost {
            self.streams.concerned(*log, subject, &mut concerned);
            for &id in &concerned {
                if let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.conflate_ms == 0) {
                    stream.standard = stream.standard.wrapping_add(*count);
                }
            }
        }
        let ids: Vec<u32> = self.streams.indices_from(0).collect();
        for id in ids {
            let reach = self.reach(id);
            self.close_window(id);
            let Some(stream) = self.streams.get_mut(id) else { continue };
            // What a conflation window would have gathered is not whole any more.
            stream.conflation.iter_mut().for_each(|conflation| conflation.clear());
            for cursor_id in stream.cursors.clone() {
                let Some(cursor) = self.cursors.get_mut(cursor_id) else { continue };
                if matches!(cursor.stand, CursorState::Current | CursorState::Live(_)) {
                    cursor.stand = CursorState::Behind(reach);
                    cursor.sequence = 0;
                    self.queue_behind(cursor_id);
                }
            }
            self.release_waiting(id);
        }
    }
}

/// Places a cursor of a window that goes behind it, into the logs: before what it was not sent. Of a conflation window it may have been
/// sent some frames beyond that, which it is not sent again.
fn fall(cursor: &mut Cursor, window: &Window, place: u64, is_conflated: bool) -> bool {
    let Some((before, end)) = window.around(place) else { return false };
    let here = if is_conflated { window.settled(place).unwrap_or(before) } else { end };
    if is_conflated {
        for (log, sequence) in window.sent_beyond(place) {
            cursor.skip_sent(log, sequence, before.arrival);
        }
    }
    cursor.stand = CursorState::Behind(here.arrival);
    cursor.sequence = here.sequence;
    cursor.standard = here.standard;
    true
}
