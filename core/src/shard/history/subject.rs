//! A page of one subject's messages, and what follows from it: consecutive sequences are sent, missing ones are a gap of exactly so many, and
//! where memory goes on from the last position the cursor is caught up from there.
use std::sync::{Arc, MutexGuard};

use super::{Page, revive};
use crate::codec::{self, Wire, sse};
use crate::command::{GapReason, Push};
use crate::cursor::CursorState;
use crate::journal::{KeptMessage, PageStart};
use crate::message::LogId;
use crate::node::Node;
use crate::position::Position;
use crate::shard::gap::Missing;
use crate::shard::join::placed;
use crate::shard::{Shard, SocketOutput, mqtt};

/// What of a page comes next for who stands at a position.
#[derive(Debug, Default)]
struct Cut {
    gap: Option<Gap>,
    messages: Vec<KeptMessage>,
    /// The offset to go on from.
    next: u64,
    /// Nothing that follows the messages is in the page.
    is_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    at: Position,
    reason: GapReason,
    missed: Option<u64>,
}

impl Gap {
    /// Only the epoch changed: the first message of the new one says what it follows, and no gap is sent (6.7).
    fn is_silent(self) -> bool {
        self.reason == GapReason::Epoch && self.missed == Some(0)
    }
}

/// What a row must be after.
struct After {
    at: Option<Position>,
    arrival: u64,
    /// What was accepted up to here is given to nobody.
    purged: u64,
    /// What was accepted up to here may be missing.
    lost: u64,
    /// Nothing that was accepted up to here follows it.
    sure: u64,
}

impl Shard {
    pub(super) fn use_subject_page<O: SocketOutput>(
        &mut self,
        id: u32,
        log: LogId,
        page: Page,
        mut node: MutexGuard<'_, Node>,
        out: &mut O,
    ) {
        let Some((reading, arrival)) = self.reading_of(id) else { return };
        let Some(cursor) = self.cursors.get(id) else { return };
        let Some(name) = self.streams.get(cursor.stream).map(|stream| Arc::clone(&stream.name)) else { return };
        let goes_on = cursor.gap_from_oldest || reading.is_history;
        let stand = reading.position(cursor.sequence);
        let is_lost = !page.is_whole && !matches!(reading.place, PageStart::Offset(_));
        if page.has_failed || is_lost && !goes_on {
            return self.leave_journal(id, log, stand, false, &mut node);
        }
        let after = After {
            at: stand,
            arrival,
            purged: node.purged_until(&name),
            lost: node.lost_until(),
            sure: stand.map_or(0, |at| node.sure_of(at)),
        };
        let (is_last, is_whole, begin) = (page.is_last, page.is_whole, page.begin);
        let cut = cut(page, &after, self.messages_left(id));
        if !goes_on && cut.gap.is_some_and(|gap| gap.reason != GapReason::Epoch) {
            return self.leave_journal(id, log, stand, false, &mut node);
        }
        let mut frames = self.buffer();
        let found = cut.messages.iter().map(|kept| (log, &*name, kept.epoch));
        self.put_epochs(id, found, &node, &mut frames.bytes);
        if let Some(gap) = cut.gap.filter(|gap| !reading.is_history || gap.missed == Some(0)) {
            self.put_reading_gap(id, &name, stand, gap, &mut frames.bytes);
        } else if let (Some(first), true) = (cut.messages.first(), cut.gap.is_some() || stand.is_none()) {
            self.begin_reading_range(id, Position { epoch: first.epoch, sequence: first.sequence - 1 });
        }
        frames.private = frames.bytes.len();
        let last = cut.messages.last().map(|last| (last.at(), last.arrival));
        let messages: Vec<_> = cut.messages.into_iter().map(|kept| revive(kept, log, stand)).collect();
        self.encode_pages(id, &messages, &mut frames);
        let end = last.map_or(arrival, |(_, arrival)| arrival);
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.stand = CursorState::Reading(end);
            let placed = last.map(|(at, _)| at).or(cut.gap.map(|gap| gap.at));
            cursor.sequence = placed.map_or(cursor.sequence, |at| at.sequence);
            if let Some(reading) = cursor.reading_mut() {
                reading.epoch = placed.map_or(reading.epoch, |at| at.epoch);
                reading.follows = stand.filter(|_| cut.gap.is_some_and(|gap| gap.is_silent()));
                reading.place = PageStart::Offset(begin);
                reading.next = Some((end, PageStart::Offset(cut.next)));
                (reading.is_last, reading.is_whole) = (is_last && cut.is_all, is_whole);
                reading.is_history &= last.is_none();
            }
        }
        drop(node);
        let Some(socket) = self.cursors.get(id).map(|cursor| cursor.connection) else { return };
        self.send_frames(socket, frames, out);
        self.queue_behind(id);
    }

    /// Whether a cursor that was sent all of its page reads no more: memory goes on from there, or there is no more.
    pub(super) fn leave_subject(&mut self, id: u32, log: LogId, node: &mut Node) -> bool {
        let Some((reading, _)) = self.reading_of(id) else { return true };
        let Some(cursor) = self.cursors.get(id) else { return true };
        let stand = reading.position(cursor.sequence);
        let is_served = stand.is_some_and(|at| placed(node.place(log, at, self.now), at).is_ok());
        if is_served || reading.is_last {
            self.leave_journal(id, log, stand, reading.is_last && reading.is_whole, node);
        }
        is_served || reading.is_last
    }

    /// The journal has nothing more for the cursor: memory goes on, or what is missing is told. `has_all`: up to here the
    /// journal had all there was.
    fn leave_journal(&mut self, id: u32, log: LogId, stand: Option<Position>, has_all: bool, node: &mut Node) {
        let Some((reading, arrival)) = self.reading_of(id) else { return };
        let nowhere = Position { epoch: 0, sequence: 0 };
        let found = placed(node.place(log, stand.unwrap_or(nowhere), self.now), stand.unwrap_or(nowhere));
        let number = stand.and_then(|at| node.number(log, at));
        if let Some(number) = number {
            self.end_range(id);
            self.begin_range(id, log, number, node);
        }
        self.end_reading(id);
        let missing = match (found, stand) {
            (Ok(arrival), _) => return self.stand_behind(id, arrival, number.unwrap_or(0)),
            (Err(_), stand) if reading.is_history || has_all && stand.is_none() => {
                return self.stand_on_oldest(id, log, arrival, node);
            }
            (Err(missing), None) => Missing { after: None, from: None, reason: GapReason::Overrun, ..missing },
            (Err(missing), Some(at)) => {
                // It had been forgotten with nothing behind the stand, and has begun anew.
                let is_epoch = missing.reason == GapReason::Epoch;
                let is_whole = is_epoch
                    && has_all
                    && missing.oldest.sequence == 0
                    && node.is_forgotten(log, at)
                    && !node.may_have_lost(at);
                let from = if is_whole { Some(missing.oldest_number) } else { missing.from };
                Missing { from, ..missing }
            }
        };
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.reads_back = false;
        }
        self.tell_missing(id, log, &missing, node);
    }

    /// What memory keeps comes next; what is gone before it is told to nobody.
    fn stand_on_oldest(&mut self, id: u32, log: LogId, arrival: u64, node: &Node) {
        let arrival = node.place_last(log, usize::MAX).0.max(arrival);
        self.begin_range(id, log, node.number_at(log, arrival), node);
        self.stand_behind(id, arrival, 0);
    }

    fn stand_behind(&mut self, id: u32, arrival: u64, number: u64) {
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.stand = CursorState::Behind(arrival);
            cursor.sequence = number;
        }
        self.queue_behind(id);
    }

    fn put_reading_gap(&mut self, id: u32, subject: &Arc<str>, after: Option<Position>, gap: Gap, out: &mut Vec<u8>) {
        let Some(cursor) = self.cursors.get(id) else { return };
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        let Gap { at, reason, missed } = gap;
        if gap.is_silent() {
            return self.note_reading_gap(id, after, at, missed); // the first message says what it follows
        }
        let push = Push::Gap { subject, after, at, reason, missed, pattern: None };
        if stream.wire == Wire::Sse {
            sse::put_id(out, at);
        }
        codec::push(stream.wire, out, &push);
        mqtt::put_gap(self.connections.get(cursor.connection), &push, out);
        self.counters.count_gap(self.connections.get(cursor.connection), reason);
        self.note_reading_gap(id, after, at, missed);
    }

    /// Where a request goes on whose only cursor reads back.
    pub(in crate::shard) fn reading_place(&self, id: u32) -> Option<Position> {
        let (reading, _) = self.reading_of(id)?;
        reading.position(self.cursors.get(id)?.sequence)
    }
}

/// The next run of a page: consecutive sequences of one epoch.
fn cut(page: Page, after: &After, count_max: usize) -> Cut {
    let mut cut = Cut { next: page.next, is_all: true, ..Cut::default() };
    let is_before = |kept: &KeptMessage| {
        let is_known = after.at.is_some_and(|at| (kept.epoch, kept.sequence) <= (at.epoch, at.sequence));
        kept.arrival <= after.arrival.max(after.purged) || is_known
    };
    let (mut stand, mut sure) = (after.at, after.sure.max(after.arrival));
    for kept in page.messages {
        if cut.messages.is_empty() && cut.gap.is_none() && is_before(&kept) {
            continue;
        }
        let begins = Position { epoch: kept.epoch, sequence: kept.sequence.saturating_sub(1) };
        if stand.is_some_and(|at| at != begins) || cut.messages.len() >= count_max {
            if !cut.messages.is_empty() || cut.messages.len() >= count_max {
                (cut.next, cut.is_all) = (kept.offset, false);
                break;
            }
            cut.gap = stand.map(|at| {
                let is_run = at.epoch != kept.epoch;
                let is_whole = kept.sequence == 1 && page.is_whole && after.lost.max(after.purged) <= sure;
                let missed = if is_run { is_whole.then_some(0) } else { begins.sequence.checked_sub(at.sequence) };
                let reason = if is_run { GapReason::Epoch } else { GapReason::Expired };
                Gap { at: begins, reason, missed }
            });
        }
        (stand, sure) = (Some(kept.at()), kept.arrival);
        cut.messages.push(kept);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[(u64, u64)], is_whole: bool) -> Page {
        let messages = rows.iter().enumerate().map(|(row, (epoch, sequence))| {
            let at = Position { epoch: *epoch, sequence: *sequence };
            let mut kept = KeptMessage::new(1, row as u64, "/a".into(), at);
            kept.arrival = 10 * (row as u64 + 1);
            kept
        });
        Page { messages: messages.collect(), next: rows.len() as u64, is_whole, ..Page::default() }
    }

    fn after(at: (u64, u64)) -> After {
        After { at: Some(Position { epoch: at.0, sequence: at.1 }), arrival: 0, purged: 0, lost: 0, sure: 0 }
    }

    /// The gap's place and number, the sequences, and where to go on.
    type Shown = (Option<(u64, u64, Option<u64>)>, Vec<u64>, u64);

    fn show(cut: &Cut) -> Shown {
        let gap = cut.gap.map(|gap| (gap.at.epoch, gap.at.sequence, gap.missed));
        (gap, cut.messages.iter().map(|kept| kept.sequence).collect(), cut.next)
    }

    #[test]
    fn a_run_ends_where_a_sequence_is_missing_and_the_missing_are_counted() {
        let rows = [(7, 1), (7, 2), (7, 5), (7, 6)];
        assert_eq!(show(&cut(page(&rows, true), &after((7, 0)), 9)), (None, vec![1, 2], 2));
        assert_eq!(show(&cut(page(&rows, true), &after((7, 2)), 9)), (Some((7, 4, Some(2))), vec![5, 6], 4));
        assert_eq!(show(&cut(page(&rows, true), &after((7, 2)), 1)), (Some((7, 4, Some(2))), vec![5], 3));
    }

    #[test]
    fn an_epoch_that_ends_misses_nothing_only_where_all_between_is_there() {
        let rows = [(7, 3), (9, 1), (9, 2)];
        assert_eq!(show(&cut(page(&rows, true), &after((7, 2)), 9)), (None, vec![3], 1));
        assert_eq!(show(&cut(page(&rows, true), &after((7, 3)), 9)), (Some((9, 0, Some(0))), vec![1, 2], 3));
        assert_eq!(show(&cut(page(&rows, false), &after((7, 3)), 9)).0, Some((9, 0, None)));
        // What was lost up to an arrival may have followed the last of the epoch, …
        let lost = |lost, sure| cut(page(&rows, true), &After { lost, sure, ..after((7, 3)) }, 9);
        assert_eq!(show(&lost(25, 0)).0, Some((9, 0, None)));
        assert_eq!(show(&lost(15, 0)).0, Some((9, 0, None)));
        // … unless that began later.
        assert_eq!(show(&lost(15, 15)).0, Some((9, 0, Some(0))));
    }

    #[test]
    fn what_was_taken_back_is_missing() {
        let taken = After { purged: 20, ..after((7, 0)) };
        let found = cut(page(&[(7, 1), (7, 2), (7, 3)], true), &taken, 9);
        assert_eq!(show(&found), (Some((7, 2, Some(2))), vec![3], 3));
    }
}
