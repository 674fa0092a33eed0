//! A page of a pattern's messages: in the order in which they were accepted, until memory's index reaches back to where the cursor stands.
use std::sync::MutexGuard;

use super::{Page, revive};
use crate::codec;
use crate::command::{GapReason, Push};
use crate::cursor::CursorState;
use crate::journal::{KeptMessage, PageStart};
use crate::node::Node;
use crate::position::Position;
use crate::shard::outbound::Passed;
use crate::shard::{Shard, SocketOutput};
use crate::subject::Pattern;

impl Shard {
    pub(super) fn use_pattern_page<O: SocketOutput>(
        &mut self,
        id: u32,
        page: Page,
        node: MutexGuard<'_, Node>,
        out: &mut O,
    ) {
        let Some((reading, arrival)) = self.reading_of(id) else { return };
        if page.has_failed || !page.is_whole || node.lost_until() > arrival {
            drop(node);
            return self.give_up_pattern(id);
        }
        let mut rows: Vec<_> = page.messages.into_iter().filter(|kept| kept.arrival > arrival).collect();
        let left = self.messages_left(id);
        let next = rows.get(left).map(|kept| kept.offset);
        rows.truncate(left);
        let last = rows.last().map_or(arrival, |kept| kept.arrival);
        let end = match next {
            Some(_) => last,
            None if page.is_last => reading.head.max(page.reached).max(last),
            None => page.reached.max(last),
        };
        let (rows, taken): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|kept| kept.arrival > node.purged_until(&kept.subject));
        let mut frames = self.buffer();
        let mut messages = Vec::with_capacity(rows.len());
        for kept in rows {
            let log = node.log_for(&kept.subject);
            // Beside its resume token a client may have said that it knows a subject further than that.
            let number = node.number(log, kept.at()).unwrap_or(0);
            if let Some(cursor) = self.cursors.get(id).filter(|cursor| cursor.skips(log, number)) {
                if cursor.merges(log, number) {
                    frames.passed.push(Passed { cursor: id, arrival: kept.arrival, sequence: 0 });
                }
                continue;
            }
            let follows = if kept.sequence == 1 { node.followed(&kept.subject, kept.epoch) } else { None };
            messages.push(revive(kept, log, follows));
        }
        let gone = taken.iter().map(|kept| (node.log_for(&kept.subject), &*kept.subject, kept.epoch));
        let found = messages.iter().map(|message| message.in_epoch()).chain(gone);
        self.put_epochs(id, found, &node, &mut frames.bytes);
        drop(node);
        self.put_taken(id, &taken, &mut frames.bytes);
        frames.private = frames.bytes.len();
        self.encode_pages(id, &messages, &mut frames);
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.stand = CursorState::Reading(end);
            if let Some(reading) = cursor.reading_mut() {
                reading.place = PageStart::Offset(page.begin);
                reading.next = Some((end, PageStart::Offset(next.unwrap_or(page.next))));
            }
        }
        let Some(socket) = self.cursors.get(id).map(|cursor| cursor.connection) else { return };
        self.send_frames(socket, frames, out);
        self.queue_behind(id);
    }

    /// Tells of messages that an operator took back: a gap for each run of a subject's.
    fn put_taken(&mut self, id: u32, taken: &[KeptMessage], out: &mut Vec<u8>) {
        let mut runs: Vec<(&str, Position, u64)> = Vec::new();
        for kept in taken {
            let last = runs.iter_mut().rev().find(|(subject, _, _)| *subject == &*kept.subject);
            match last {
                Some((_, at, count)) if at.epoch == kept.epoch && at.sequence + 1 == kept.sequence => {
                    (*at, *count) = (kept.at(), *count + 1);
                }
                _ => runs.push((&kept.subject, kept.at(), 1)),
            }
        }
        for (subject, at, count) in runs {
            self.note_pattern_gap(id);
            let Some(cursor) = self.cursors.get(id) else { return };
            let Some(stream) = self.streams.get(cursor.stream) else { return };
            let after = Some(Position { epoch: at.epoch, sequence: at.sequence - count });
            let (reason, missed) = (GapReason::Expired, Some(count));
            codec::push(stream.wire, out, &Push::Gap { subject, after, at, reason, missed, pattern: stream.pattern() });
            self.counters.count_gap(self.connections.get(cursor.connection), reason);
        }
    }

    /// Whether a cursor that was sent all of its page reads no more: memory goes on from there.
    pub(super) fn leave_pattern(&mut self, id: u32, pattern: &Pattern, node: &Node) -> bool {
        let Some((_, arrival)) = self.reading_of(id) else { return true };
        let until = self.cursors.get(id).map_or(arrival, |cursor| self.reach(cursor.stream));
        let remembers = node.remembers(pattern, arrival, until);
        if remembers {
            self.end_reading(id);
            self.stand(id, CursorState::Behind(arrival));
            self.queue_behind(id);
        }
        remembers
    }

    /// The journal cannot tell either: the pattern has a gap.
    fn give_up_pattern(&mut self, id: u32) {
        self.end_reading(id);
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.reads_back = false;
        }
        self.restart_join(id);
    }
}
