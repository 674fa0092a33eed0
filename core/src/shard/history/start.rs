//! Where a subscription begins that names a place: in memory, or further back in the journal. Owns the promise that the answer's `at`
//! parts what was before from what comes live: the log is read while the streams stand exactly at its head.

use crate::command::{GapReason, Id, Outcome, Reply, Subscribe};
use crate::cursor::CursorState;
use crate::journal::{Last, PageStart, Range};
use crate::message::LogId;
use crate::node::{Node, PositionState};
use crate::position::{Position, ResumeToken};
use crate::shard::Shard;
use crate::shard::gap::Missing;
use crate::shard::join::placed;
use crate::shard::subscribe::place_of;
use crate::subject::Pattern;

/// What a place came to.
#[derive(Debug)]
struct Start {
    outcome: Outcome,
    /// Messages up to the head; none where only the journal can tell.
    count: Option<u64>,
    /// After which arrival memory goes on.
    from: Option<u64>,
    missing: Option<Missing>,
    is_reading: bool,
}

impl Start {
    fn behind(outcome: Outcome, count: u64, from: Option<u64>) -> Self {
        Self { outcome, count: Some(count), from, missing: None, is_reading: false }
    }

    /// Only the journal can tell how many there are.
    fn reading(outcome: Outcome) -> Self {
        Self { outcome, count: None, from: None, missing: None, is_reading: true }
    }

    fn missing(missing: Missing) -> Self {
        Self { outcome: Outcome::Resync, count: Some(0), from: None, missing: Some(missing), is_reading: false }
    }
}

impl Shard {
    /// Answers, and places the cursor of one subject.
    pub(in crate::shard) fn start_subject(
        &mut self,
        socket: u32,
        id: &Id,
        command: &Subscribe<'_>,
        cursor: u32,
        log: LogId,
        node: &mut Node,
    ) {
        let head = node.head(log).at;
        let Some(name) = self.stream_name(cursor) else { return };
        let mut bytes = Vec::new();
        let mut start = if let Some(after) = command.after {
            self.start_after(cursor, log, after, node)
        } else if let Some(resume_token) = command.since {
            self.start_since(cursor, log, resume_token, node)
        } else if let Some(last) = command.last {
            self.start_last(cursor, log, last, node)
        } else if command.wants_snapshot && self.write_snapshot(cursor, log, &name, node, &mut bytes) {
            Start::behind(Outcome::Snapshot, 1, None)
        } else {
            Start::behind(Outcome::Live, 0, None)
        };
        if let Some(missing) = &start.missing {
            start.from = self.write_gap(cursor, log, &name, missing, node, &mut bytes);
        }
        let Start { outcome, count, from, missing, is_reading } = start;
        let count = count.filter(|count| *count == 0 || outcome == Outcome::Snapshot || !self.merges(cursor));
        self.count_outcome(socket, outcome);
        self.reply(socket, id, &Reply::Subscribed { selector: &name, at: Some(head), outcome, count });
        self.tell(cursor, &bytes);
        self.report_subscribed(socket, &name, outcome, Some(head), place_of(command));
        let known = if missing.is_none() { command.after } else { None };
        match from {
            Some(arrival) => {
                self.stand(cursor, CursorState::Behind(arrival));
                if let Some(cursor) = self.cursors.get_mut(cursor) {
                    cursor.sequence = known.and_then(|after| node.number(log, after)).unwrap_or(0);
                }
                self.queue_behind(cursor);
            }
            None if is_reading => {}
            None => self.stand_at_end(cursor, node.head(log).number),
        }
        if !is_reading {
            self.settle_range(cursor, log, node);
        }
        if let Some(after) = known {
            let span = Range::Subject { epoch: after.epoch, from: None, to: after.sequence };
            self.confirm(socket, &name, span);
        }
    }

    fn start_after(&mut self, cursor: u32, log: LogId, after: Position, node: &Node) -> Start {
        let place = node.place(log, after, self.now);
        let found = match (placed(place, after), place) {
            (Ok(arrival), PositionState::Served { count, .. }) => {
                self.note_place(cursor);
                return Start::behind(Outcome::Recovered, count, (count > 0).then_some(arrival));
            }
            (Ok(_), PositionState::Gap { .. }) => return Start::behind(Outcome::Recovered, 0, None),
            (Err(found), _) => found,
        };
        let is_gone = matches!(found.reason, GapReason::Expired | GapReason::Overrun);
        if !self.can_read_back(cursor) || !is_gone && !node.is_forgotten(log, after) {
            return Start::missing(found);
        }
        if self.stream_name(cursor).is_some_and(|name| node.has_purged(log, &name)) {
            return Start::missing(found); // the journal gives nothing of it to anybody
        }
        let number = node.number(log, after);
        // The beginning of an epoch without messages is where the one before it ended, or where its run began.
        let began = if number.is_none() && after.sequence == 0 { node.sure_of(after) } else { 0 };
        let origin = match number {
            Some(number) => PageStart::After(node.position(log, number)),
            None if began > 0 => PageStart::Arrival(began),
            None => PageStart::After(after),
        };
        self.read_back(cursor, began, Some(after), origin, false);
        Start::reading(Outcome::Recovered)
    }

    fn start_since(&mut self, cursor: u32, log: LogId, resume_token: ResumeToken, node: &Node) -> Start {
        let reason = match node.place_subject_resume_token(resume_token, log) {
            Ok((arrival, behind)) => {
                self.note_place(cursor);
                let head = node.head(log);
                let has_more = head.arrival > arrival;
                let mut start = Start::behind(Outcome::Recovered, behind, has_more.then_some(arrival));
                if self.can_read_back(cursor) && node.number_at(log, arrival) + behind < head.number {
                    start.count = None; // the journal may have those that memory has let go of
                }
                return start;
            }
            Err(reason) => reason,
        };
        if self.has_in_journal(cursor, resume_token, reason, node) {
            self.read_back(cursor, resume_token.arrival, None, PageStart::Arrival(resume_token.arrival), false);
            return Start::reading(Outcome::Recovered);
        }
        let nowhere = Position { epoch: 0, sequence: 0 };
        let after_run = node.place_after_run(log, resume_token.run).filter(|_| reason == GapReason::Epoch);
        match placed(after_run.unwrap_or_else(|| node.place(log, nowhere, self.now)), nowhere) {
            Err(found) => Start::missing(Missing { after: None, from: None, reason, ..found }),
            Ok(_) => Start { outcome: Outcome::Resync, ..Start::behind(Outcome::Resync, 0, None) },
        }
    }

    fn start_last(&mut self, cursor: u32, log: LogId, last: u32, node: &Node) -> Start {
        let (arrival, kept) = node.place_last(log, last as usize);
        let count = u64::from(last).saturating_sub(kept);
        let name = self.stream_name(cursor).filter(|_| count > 0 && !node.has_all(log) && self.can_read_back(cursor));
        let Some(name) = name else {
            return Start::behind(Outcome::History, kept, (kept > 0).then_some(arrival));
        };
        let place = Last { count, after: node.purged_until(&name), until: node.before_kept(log) };
        self.read_back(cursor, 0, None, PageStart::Last(place), true);
        Start::reading(Outcome::History)
    }

    /// Whether several messages may come as one, so that nobody knows how many will.
    fn merges(&self, cursor: u32) -> bool {
        let stream = self.cursors.get(cursor).and_then(|cursor| self.streams.get(cursor.stream));
        stream.is_some_and(|stream| stream.conflate_ms > 0 || stream.conflates_slow)
    }

    /// Where a pattern's cursor goes on from a resume token; the reason if that cannot be told.
    pub(in crate::shard) fn place_pattern(
        &mut self,
        cursor: u32,
        resume_token: ResumeToken,
        pattern: &Pattern,
        node: &Node,
    ) -> Result<u64, GapReason> {
        match node.place_resume_token(resume_token, pattern) {
            Ok(arrival) => {
                self.stand(cursor, CursorState::Behind(arrival));
                self.note_place(cursor);
                Ok(arrival)
            }
            Err(reason) if self.has_in_journal(cursor, resume_token, reason, node) => {
                self.read_back(cursor, resume_token.arrival, None, PageStart::Arrival(resume_token.arrival), false);
                Ok(resume_token.arrival)
            }
            Err(reason) => Err(reason),
        }
    }

    /// Whether the journal may have what came after a resume token that memory cannot serve.
    fn has_in_journal(&self, cursor: u32, resume_token: ResumeToken, reason: GapReason, node: &Node) -> bool {
        let is_gone = matches!(reason, GapReason::Expired | GapReason::Overrun);
        is_gone && self.can_read_back(cursor) && node.lost_until() <= resume_token.arrival
    }

    /// What memory lets go of before the cursor is at the head is read back.
    fn note_place(&mut self, cursor: u32) {
        let reads_back = self.can_read_back(cursor);
        if let Some(cursor) = self.cursors.get_mut(cursor) {
            cursor.reads_back = reads_back;
        }
    }
}
