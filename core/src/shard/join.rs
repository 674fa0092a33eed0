//! The join of a pattern: subjects in name order, what the plan says of each, then the feed takes over at the bound. Owns
//! the steps between; each leaves at most a reply buffer of private bytes, and one resumable key is all that is kept.
use std::sync::Arc;

use super::Shard;
use super::encode::{self, Item, Told};
use super::gap::{Gone, Missing};
use super::mqtt;
use crate::codec;
use crate::command::{GapReason, Push};
use crate::cursor::{CursorState, Job, Join, Plan, Skip};
use crate::message::LogId;
use crate::node::{Node, PositionState};
use crate::position::Position;
use crate::subject::Pattern;

impl Shard {
    /// Begins a join at the head of the stream.
    pub(super) fn begin_join(&mut self, id: u32, plan: Plan, follows_gap: bool) {
        let bound = self.arrived;
        if let Some(cursor) = self.cursors.get_mut(id) {
            let join = Join { bound, plan, follows_gap, done: None, inner: None };
            cursor.job = Some(Box::new(Job { join: Some(join), ..Job::default() }));
            cursor.stand = CursorState::Joining;
            cursor.owes_resume_token = true;
        }
        self.begin_pattern_range(id, bound);
        self.queue_behind(id);
    }

    /// The feed's index no longer reaches back to where a pattern's cursor stands: a gap for all of it, then snapshots.
    pub(super) fn restart_join(&mut self, id: u32) {
        self.end_range(id);
        self.tell_pattern_gap(id, GapReason::Overrun);
        self.begin_join(id, Plan::Snapshots, true);
        self.note_pattern_gap(id);
    }

    /// Somewhere in a pattern something is gone that a client was owed: it goes on with what is left.
    pub(super) fn tell_pattern_gone(&mut self, id: u32, known: u64, node: &mut Node) {
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let job = cursor.job.get_or_insert_default();
        (job.lost, job.skips_until) = (known, job.skips_until.max(known));
        let Some(name) = self.streams.get(cursor.stream).map(|stream| Arc::clone(&stream.name)) else { return };
        let ends_session = node.policy(&name).ends_session;
        self.note_missed(id, &name, Gone { missed: None, reason: GapReason::Overrun, ends_session });
        self.tell_pattern_gap(id, GapReason::Overrun);
    }

    pub(super) fn tell_pattern_gap(&mut self, id: u32, reason: GapReason) {
        if let Some(name) = self.stream_name(id) {
            self.tell_part_gap(id, &name, reason);
        }
    }

    /// A gap of a part of a pattern.
    pub(super) fn tell_part_gap(&mut self, id: u32, part: &str, reason: GapReason) {
        let Some(stream) = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream)) else { return };
        let mut bytes = Vec::new();
        let gap = Push::PatternGap { part, pattern: &stream.name, reason };
        codec::push(stream.wire, &mut bytes, &gap);
        let connection = self.cursors.get(id).and_then(|cursor| self.connections.get(cursor.connection));
        mqtt::put_gap(connection, &gap, &mut bytes);
        self.counters.count_gap(connection, reason);
        self.tell(id, &bytes);
    }

    /// One step: fills the connection's private bytes up to the reply buffer's limit.
    pub(super) fn continue_join(&mut self, id: u32, pattern: &Pattern, node: &mut Node) {
        let bytes_max = self.settings.limits.reply_buffer_bytes_max;
        let mut bytes = Vec::new();
        let mut names = Vec::new();
        while bytes.len() < bytes_max {
            let Some(join) = self.join(id) else { break };
            if let Some((_, log, from)) = join.inner {
                self.join_messages(id, log, from, node, &mut bytes);
                continue;
            }
            let done = join.done.clone();
            names.clear();
            let next = node.names(pattern, done.as_deref(), 1, &mut names);
            match (names.pop(), next) {
                (Some((subject, log)), _) => self.join_subject(id, &subject, log, node, &mut bytes),
                (None, None) if self.join_unknown(id, pattern, node, &mut bytes) => {}
                (None, None) => {
                    self.tell(id, &bytes);
                    self.finish_join(id);
                    return;
                }
                (None, next) => {
                    // Many names in a row did not match: the rest is for another step.
                    join_of(self, id, |join| join.done = next);
                    break;
                }
            }
        }
        self.tell(id, &bytes);
        self.queue_behind(id);
    }

    fn join(&mut self, id: u32) -> Option<&mut Join> {
        self.cursors.get_mut(id)?.job.as_mut()?.join.as_mut()
    }

    /// Ends a join that follows a gap of the whole pattern: the rest of its snapshots is left out, and its messages are read again in the
    /// order of arrivals, which can stop anywhere. False if there was no gap.
    pub(super) fn cut_join(&mut self, id: u32) -> bool {
        let Some(join) = self.join(id).filter(|join| join.follows_gap) else { return false };
        if let Plan::Since(began) = join.plan {
            join.bound = began;
        }
        self.finish_join(id);
        true
    }

    pub(super) fn is_joining(&self, id: u32) -> bool {
        self.cursors.get(id).is_some_and(|cursor| cursor.stand == CursorState::Joining)
    }

    fn finish_join(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let Some(join) = cursor.job.as_mut().and_then(|job| job.join.take()) else { return };
        cursor.stand = CursorState::Behind(join.bound);
        cursor.settle(join.bound);
        self.queue_behind(id);
    }

    /// What the plan says of one subject.
    fn join_subject(&mut self, id: u32, subject: &Arc<str>, log: LogId, node: &mut Node, out: &mut Vec<u8>) {
        let now = self.now;
        let Some(join) = self.join(id) else { return };
        let bound = join.bound;
        let start = match &mut join.plan {
            Plan::Last(count) => Some(Ok(node.place_last(log, *count as usize).0)),
            Plan::Since(began) => Some(Ok(*began)).filter(|_| node.has_after(log, *began)),
            plan => plan.take(subject).map(|after| placed(node.place(log, after, now), after)),
        };
        match start {
            Some(Ok(arrival)) => join.inner = Some((Arc::clone(subject), log, arrival)),
            Some(Err(missing)) => {
                join.done = Some(Arc::clone(subject));
                match self.write_gap(id, log, subject, &missing, node, out) {
                    Some(arrival) => {
                        self.skip_to_oldest(id, log, bound, &missing);
                        if let Some(join) = self.join(id) {
                            join.inner = Some((Arc::clone(subject), log, arrival));
                        }
                    }
                    None => self.skip_to_head(id, log, bound, true, node),
                }
            }
            None => {
                join.done = Some(Arc::clone(subject));
                self.write_snapshot(id, log, subject, node, out);
                self.skip_to_head(id, log, bound, false, node);
            }
        }
    }

    /// A place in a subject that is not there, or that came after its name had had its turn: it is told, for what was published
    /// between is gone, and the client stands before the first message there will be. False when there is none left.
    fn join_unknown(&mut self, id: u32, pattern: &Pattern, node: &Node, out: &mut Vec<u8>) -> bool {
        let Some((subject, after)) = self.join(id).and_then(|join| join.plan.take_unknown()) else { return false };
        let epoch = node.find(&subject).map_or(node.epoch(), |log| node.head(log).at.epoch);
        let at = Position { epoch, sequence: 0 };
        if after == at || !pattern.matches(&subject) {
            return true;
        }
        let reason = if after.epoch == epoch { GapReason::Ahead } else { GapReason::Epoch };
        let Some(stream) = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream)) else { return true };
        let gap =
            Push::Gap { subject: &subject, after: Some(after), at, reason, missed: None, pattern: stream.pattern() };
        codec::push(stream.wire, out, &gap);
        let connection = self.cursors.get(id).and_then(|cursor| self.connections.get(cursor.connection));
        self.counters.count_gap(connection, reason);
        true
    }

    /// The subject has been placed at its log's head: what the feed brings of it up to there has been sent.
    fn skip_to_head(&mut self, id: u32, log: LogId, bound: u64, is_gap: bool, node: &Node) {
        let head = node.head(log);
        if head.arrival > bound
            && let Some(cursor) = self.cursors.get_mut(id)
        {
            cursor.skip_to(log, Skip::new(head.number, is_gap), head.arrival);
        }
    }

    /// The subject goes on from its oldest kept message: if the feed has yet to bring what was missing, it is passed over.
    fn skip_to_oldest(&mut self, id: u32, log: LogId, bound: u64, missing: &Missing) {
        if missing.oldest_arrival > bound
            && let Some(cursor) = self.cursors.get_mut(id)
        {
            let skip = Skip::new(missing.oldest_number, true);
            cursor.skip_to(log, skip, missing.oldest_arrival);
        }
    }

    /// The next messages of the subject under way, up to the bound.
    fn join_messages(&mut self, id: u32, log: LogId, from: u64, node: &mut Node, out: &mut Vec<u8>) {
        let bytes_max = self.settings.limits.reply_buffer_bytes_max;
        let Some(join) = self.join(id) else { return };
        let (bound, subject) = (join.bound, join.inner.as_ref().map(|(subject, _, _)| Arc::clone(subject)));
        let Some(subject) = subject else { return };
        let mut messages = Vec::new();
        let read = node.read(log, from, bound, &mut messages, bytes_max);
        if let Some(range) = &read.missing {
            let missing = Missing::range(range, read.reached);
            let next = self.write_gap(id, log, &subject, &missing, node, out);
            if next.is_none() {
                self.skip_to_head(id, log, bound, true, node);
            } else {
                self.skip_to_oldest(id, log, bound, &missing);
            }
            if let Some(join) = self.join(id) {
                advance(join, next.filter(|&arrival| arrival < bound));
            }
            return;
        }
        self.put_epochs(id, messages.iter().map(|message| message.in_epoch()), node, out);
        let Some(cursor) = self.cursors.get(id) else { return };
        let mut told = Told::version(cursor.announced);
        let mut too_large = 0;
        if let Some((stream, next_number)) = self.streams.get_with_number(cursor.stream) {
            for message in &messages {
                let framed = encode::private_frame(stream, next_number, &Item::message(message), &mut told, out);
                too_large += usize::from(framed.is_too_large);
            }
        }
        self.count_told(id, messages.len() - too_large, too_large);
        let is_done = read.reached >= bound;
        if let Some(join) = self.join(id) {
            advance(join, (!is_done).then_some(read.reached));
        }
    }
}

fn join_of(shard: &mut Shard, id: u32, change: impl FnOnce(&mut Join)) {
    if let Some(join) = shard.join(id) {
        change(join);
    }
}

/// The subject under way goes on at `arrival`, or is done.
fn advance(join: &mut Join, arrival: Option<u64>) {
    if let Some((subject, log, _)) = join.inner.take() {
        match arrival {
            Some(arrival) => join.inner = Some((subject, log, arrival)),
            None => join.done = Some(subject),
        }
    }
}

/// Where a position leads: the arrival to go on from, or what is missing.
pub(super) fn placed(place: PositionState, after: Position) -> Result<u64, Missing> {
    match place {
        PositionState::Served { arrival, .. } => Ok(arrival),
        PositionState::Gap { reason, missed, oldest, oldest_number, oldest_arrival } => {
            let from = missed.and_then(|missed| oldest_number.checked_sub(missed));
            Err(Missing { after: Some(after), from, reason, oldest, oldest_number, oldest_arrival })
        }
    }
}
