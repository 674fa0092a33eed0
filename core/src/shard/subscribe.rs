//! `subscribe` and its end: rights, limits, the stream, and where the new cursor stands. Owns the promise that the answer's
//! `at` parts what was before from what comes live: the log is read while the streams stand exactly at its head.
use std::collections::HashMap;
use std::sync::Arc;

use super::join::placed;
use super::{Shard, lock};
use crate::command::{GapReason, Id, Outcome, Refusal, Reply, Subscribe};
use crate::cursor::{Cursor, CursorState, NONE, Plan, Skip};
use crate::journal::Range;
use crate::node::{Node, PositionState};
use crate::position::Position;
use crate::report::Report;
use crate::stream::{Source, Variant};
use crate::subject::{Pattern, Selector};

impl Shard {
    /// Executes a subscribe that rights allow.
    pub(super) fn subscribe(
        &mut self,
        socket: u32,
        id: &Id,
        command: &Subscribe<'_>,
        selector: &Selector,
    ) -> Result<(), Refusal> {
        self.commit();
        let node = Arc::clone(&self.node);
        if self.cursor_of(socket, selector.text()).is_some() {
            self.may_change_subscription(socket)?;
            // What can fail comes first: a refusal leaves the subscription that is there.
            let Some(variant) = self.variant(socket, command) else { return Ok(()) };
            let mut node = lock(&node);
            self.ask_as(socket, &mut node);
            match selector {
                Selector::Subject(subject) => self.open_subject_stream(subject, variant, &mut node).map(|_| ()),
                Selector::Pattern(pattern) => self.open_pattern_stream(pattern, variant, &mut node).map(|_| ()),
            }?;
            drop(node);
            self.unsubscribe(socket, selector.text());
        } else {
            self.may_subscribe(socket)?;
        }
        let mut node = lock(&node);
        self.absorb_all(&mut node);
        self.ask_as(socket, &mut node);
        node.set_reading(self.is_reading(socket));
        let joined = match selector {
            Selector::Subject(subject) => self.join_subject_stream(socket, id, command, subject, &mut node),
            Selector::Pattern(pattern) => self.join_pattern_stream(socket, id, command, pattern, &mut node),
        };
        node.set_reading(false);
        joined?;
        self.wakes |= node.take_wakes();
        Ok(())
    }

    fn conflate_ms(&self, asked_ms: u32) -> u32 {
        let limits = &self.settings.limits;
        let step = limits.conflate_ms_min.max(1) as u32;
        (asked_ms / step * step).min(limits.conflate_ms_max as u32)
    }

    /// What the frames are that a connection gets of a subscription.
    fn variant(&self, socket: u32, command: &Subscribe<'_>) -> Option<Variant> {
        let connection = self.connections.get(socket)?;
        let conflate_ms = self.conflate_ms(command.conflate_ms);
        let frame_bytes_max = connection.frame_bytes_max();
        Some(Variant { wire: connection.wire, conflate_ms, window_bits: connection.window_bits, frame_bytes_max })
    }

    fn join_subject_stream(
        &mut self,
        socket: u32,
        id: &Id,
        command: &Subscribe<'_>,
        subject: &str,
        node: &mut Node,
    ) -> Result<(), Refusal> {
        let Some(variant) = self.variant(socket, command) else { return Ok(()) };
        let (stream, log) = self.open_subject_stream(subject, variant, node)?;
        let cursor = self.seat_cursor(socket, stream, command.gap_from_oldest);
        self.tell_epochs(cursor, command.after.is_none());
        self.start_subject(socket, id, command, cursor, log, node);
        Ok(())
    }

    fn join_pattern_stream(
        &mut self,
        socket: u32,
        id: &Id,
        command: &Subscribe<'_>,
        pattern: &Pattern,
        node: &mut Node,
    ) -> Result<(), Refusal> {
        let Some(variant) = self.variant(socket, command) else { return Ok(()) };
        let stream = self.open_pattern_stream(pattern, variant, node)?;
        let cursor = self.seat_cursor(socket, stream, command.gap_from_oldest);
        self.start_pattern(socket, id, command, cursor, pattern, node);
        Ok(())
    }

    /// Answers, and places the cursor of a pattern.
    fn start_pattern(
        &mut self,
        socket: u32,
        id: &Id,
        command: &Subscribe<'_>,
        cursor: u32,
        pattern: &Pattern,
        node: &mut Node,
    ) {
        let resume_token = command.since.map(|resume_token| self.place_pattern(cursor, resume_token, pattern, node));
        let (outcome, plan, gap) = match resume_token {
            Some(Ok(_)) => (Outcome::Recovered, None, None),
            // The map may hold only what came after the resume token: what else the client had is unknown here, so all of it is told.
            Some(Err(reason)) => (Outcome::Resync, Some(plan_behind_gap(command, reason, node)), Some(reason)),
            None if !command.after_each.is_empty() => {
                let positions: HashMap<Box<str>, Position> =
                    command.after_each.iter().map(|(subject, at)| (Box::from(&**subject), *at)).collect();
                (Outcome::Recovered, Some(Plan::After(positions)), None)
            }
            None => match command.last {
                Some(last) => (Outcome::History, Some(Plan::Last(last)), None),
                None if command.wants_snapshot => (Outcome::Snapshot, Some(Plan::Snapshots), None),
                None => (Outcome::Live, None, None),
            },
        };
        self.count_outcome(socket, outcome);
        let text = pattern.text();
        self.reply(socket, id, &Reply::Subscribed { selector: text, at: None, outcome, count: None });
        self.report_subscribed(socket, text, outcome, None, place_of(command));
        // What is told below belongs to the range.
        if let (Some(resume_token), Some(Ok(arrival)), Some(name)) =
            (command.since, resume_token, self.stream_name(cursor))
        {
            self.begin_pattern_range(cursor, arrival);
            self.confirm(socket, &name, Range::Pattern { run: resume_token.run, from: None, to: resume_token.arrival });
        } else {
            self.begin_pattern_range(cursor, self.arrived);
        }
        self.tell_since_gap(cursor, gap);
        if gap.is_none() {
            self.tell_unjournaled(cursor, command, pattern, node);
        }
        self.tell_epochs(cursor, gap.is_none()); // after a gap of the whole pattern the client has no position to compare
        if outcome == Outcome::Recovered && plan.is_none() {
            self.skip_known(cursor, command, pattern, node);
        }
        if let Some(cursor) = self.cursors.get_mut(cursor) {
            cursor.owes_resume_token = true;
        }
        match plan {
            Some(plan) => self.begin_join(cursor, plan, gap.is_some()),
            None if outcome == Outcome::Recovered => self.queue_behind(cursor),
            None => self.stand_at_end(cursor, 0),
        }
        if gap.is_some() {
            self.note_pattern_gap(cursor);
        }
    }

    /// Beside a resume token that is served, positions say which subjects the client knows further than that.
    fn skip_known(&mut self, cursor: u32, command: &Subscribe<'_>, pattern: &Pattern, node: &mut Node) {
        let mut told = Vec::new();
        for (subject, at) in &command.after_each {
            let Some(log) = node.find(subject).filter(|_| pattern.matches(subject)) else { continue };
            let place = node.place(log, *at, self.now);
            if node.is_beyond(log, *at)
                && let Err(missing) = placed(place, *at)
            {
                self.tell_pattern_missing(cursor, log, &Arc::from(&**subject), &missing, node, &mut told);
                continue;
            }
            let arrival = match place {
                PositionState::Served { arrival, .. } => arrival,
                PositionState::Gap { oldest_arrival, reason: GapReason::Expired | GapReason::Overrun, .. } => {
                    oldest_arrival
                }
                // Another run's: the resume token alone says what is owed.
                PositionState::Gap { .. } => continue,
            };
            if let (Some(cursor), Some(number)) = (self.cursors.get_mut(cursor), node.number(log, *at)) {
                cursor.skip_to(log, Skip::new(number, false), arrival);
            }
        }
        self.tell(cursor, &told);
    }

    fn tell_since_gap(&mut self, cursor: u32, gap: Option<GapReason>) {
        if let Some(reason) = gap {
            self.tell_pattern_gap(cursor, reason);
        }
    }

    /// Of a pattern that resumes over a restart, the parts that no journal keeps: nobody knows what was published there.
    fn tell_unjournaled(&mut self, cursor: u32, command: &Subscribe<'_>, pattern: &Pattern, node: &Node) {
        let parts = command.since.map_or_else(Vec::new, |resume_token| node.unjournaled_since(resume_token, pattern));
        for part in parts {
            self.tell_part_gap(cursor, part, GapReason::Epoch);
            self.note_pattern_gap(cursor);
        }
    }

    pub(super) fn stream_name(&self, cursor: u32) -> Option<Arc<str>> {
        let cursor = self.cursors.get(cursor)?;
        Some(Arc::clone(&self.streams.get(cursor.stream)?.name))
    }

    pub(super) fn count_outcome(&mut self, socket: u32, outcome: Outcome) {
        let Some(connection) = self.connections.get(socket) else { return };
        match outcome {
            Outcome::Recovered => {
                self.counters.recovered += 1;
                self.counters.of(connection).recovered += 1;
            }
            Outcome::Resync => {
                self.counters.resynced += 1;
                self.counters.of(connection).resynced += 1;
            }
            _ => {}
        }
    }

    /// Seats a new cursor of a connection; a stream with company has a window.
    pub(super) fn seat_cursor(&mut self, socket: u32, stream_id: u32, gap_from_oldest: bool) -> u32 {
        if self.streams.get(stream_id).is_some_and(|stream| !stream.cursors.is_empty()) {
            self.open_window(stream_id);
        }
        let next = self.connections.get(socket).map_or(NONE, |c| c.first_cursor);
        let mut cursor = Cursor::new(stream_id, socket, next, CursorState::Behind(self.arrived));
        cursor.gap_from_oldest = gap_from_oldest;
        let id = self.cursors.insert(cursor);
        if let (Some(stream), Some(cursor)) = (self.streams.get_mut(stream_id), self.cursors.get_mut(id)) {
            cursor.seat = stream.seat(id);
            cursor.standard = stream.standard;
        }
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.first_cursor = id;
            connection.cursors += 1;
            Self::count_subscription(connection);
            self.counters.of(connection).subscriptions += 1;
        }
        self.counters.subscriptions += 1;
        self.note_late(id);
        id
    }

    pub(super) fn report_subscribed(
        &mut self,
        socket: u32,
        selector: &str,
        outcome: Outcome,
        at: Option<Position>,
        place: Option<Box<str>>,
    ) {
        self.note_subscribed(socket, selector, outcome, place);
        if self.settings.reports_sessions {
            let connection = self.connection_id(socket);
            self.report(Report::Subscribed { connection, selector: selector.to_owned(), outcome, at });
        }
    }

    /// Ends a connection's subscription to `selector`; false if it has none.
    pub(super) fn unsubscribe(&mut self, socket: u32, selector: &str) -> bool {
        let Some(connection) = self.connections.get(socket) else { return false };
        let (mut previous, mut id) = (NONE, connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            if self.streams.get(cursor.stream).is_some_and(|stream| &*stream.name == selector) {
                let next = cursor.next;
                match self.cursors.get_mut(previous) {
                    Some(before) => before.next = next,
                    None => {
                        if let Some(connection) = self.connections.get_mut(socket) {
                            connection.first_cursor = next;
                        }
                    }
                }
                self.remove_cursor(id);
                return true;
            }
            (previous, id) = (id, cursor.next);
        }
        false
    }

    /// Removes a cursor that its connection's list no longer holds.
    pub(super) fn remove_cursor(&mut self, id: u32) {
        self.drop_range(id);
        if let Some(stream) = self.cursors.get(id).map(|cursor| cursor.stream) {
            self.note_dealt(stream);
        }
        self.unlink(id);
        let Some(cursor) = self.cursors.remove(id) else { return };
        self.counters.subscriptions -= 1;
        if let Some(connection) = self.connections.get_mut(cursor.connection) {
            connection.cursors -= 1;
            Self::uncount_subscription(connection);
            self.counters.of(connection).subscriptions -= 1;
        }
        self.singles.retain(|single| single.cursor != id);
        self.leave_shared(cursor.stream);
        let Some(stream) = self.streams.get_mut(cursor.stream) else { return };
        if let Some(moved) = stream.unseat(cursor.seat)
            && let Some(moved) = self.cursors.get_mut(moved)
        {
            moved.seat = cursor.seat;
        }
        if stream.cursors.is_empty() {
            stream.empty_since_ms = Some(self.now.mono_ms);
            // A stream of answers to requests has no window: it lingers for nobody, and its interest ends.
            if stream.window.as_ref().is_none_or(|w| w.bytes() == 0) {
                self.remove_stream(cursor.stream);
            }
        }
    }

    /// Takes a cursor out of its connection's list of those with something to send.
    fn unlink(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get(id).filter(|cursor| cursor.is_ready) else { return };
        let (socket, next) = (cursor.connection, cursor.next_ready);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.first_ready == id {
            connection.first_ready = next;
            return;
        }
        let mut at = connection.first_ready;
        while let Some(cursor) = self.cursors.get_mut(at) {
            if cursor.next_ready == id {
                cursor.next_ready = next;
                return;
            }
            at = cursor.next_ready;
        }
    }

    /// Forgets a stream that nobody listens to any more.
    pub(super) fn remove_stream(&mut self, id: u32) {
        let Some(stream) = self.streams.remove(id) else { return };
        if let Some(ledger) = &mut self.written.ledger {
            ledger.end_latency(id, &stream.name, &self.settings, self.now); // another stream takes its place
        }
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        match stream.source {
            Source::Subject(log) => {
                node.recount(self.index, log, stream.counted, 0);
                node.close(self.index, log, self.now);
            }
            Source::Pattern(pattern) => node.close_pattern(self.index, &pattern, self.now),
        }
        self.wakes |= node.take_wakes();
        self.counters.streams = self.streams.len() as u64;
    }
}

/// What follows the gap of a whole pattern: all since the run of its resume token ended, where that is known; else snapshots.
fn plan_behind_gap(command: &Subscribe<'_>, reason: GapReason, node: &Node) -> Plan {
    let began = command.since.and_then(|resume_token| node.run_ended(resume_token.run));
    let began = began.filter(|_| reason == GapReason::Epoch && command.conflate_ms == 0);
    began.map_or(Plan::Snapshots, Plan::Since)
}

/// Where a client says that it stands, as text; of a map only that there is one.
pub(super) fn place_of(command: &Subscribe<'_>) -> Option<Box<str>> {
    let after = command.after.map(|at| at.to_string());
    after.or_else(|| command.since.map(|resume_token| resume_token.to_string())).map(String::into_boxed_str)
}
