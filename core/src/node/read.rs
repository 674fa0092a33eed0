//! What a subject can still serve: where a position or a count stands, the messages after an arrival, the snapshot. Where
//! something is missing the answer says so, with how much where that is known; it never guesses.
use std::collections::BTreeSet;
use std::sync::Arc;

use super::Node;
use super::journal::EPOCHS_MAX;
use super::log::{Change, Known, Log};
use super::room::is_expired;
use super::snapshot::Snapshot;
use crate::command::GapReason;
use crate::message::{LogId, Message};
use crate::position::{Now, Position, ResumeToken};
use crate::subject::Pattern;

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub at: Position,
    /// The log's number of it.
    pub number: u64,
    /// Arrival of the last message; 0 none.
    pub arrival: u64,
}

/// Where a client's position stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionState {
    /// Everything after it is kept: `count` messages, those with a later arrival than `arrival`.
    Served { arrival: u64, count: u64 },
    /// Something after it is missing.
    Gap {
        reason: GapReason,
        /// How many are missing before the oldest kept; none when that cannot be known.
        missed: Option<u64>,
        /// Who stands here continues from the oldest kept message.
        oldest: Position,
        oldest_number: u64,
        oldest_arrival: u64,
    },
}

/// Messages that should have been read but are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingRange {
    /// None when the feed's index does not reach back far enough to count them.
    pub missed: Option<u64>,
    /// The position before the first of them; none where nobody remembers it.
    pub after: Option<Position>,
    /// The last of them: the position of whoever was sent this range.
    pub at: Position,
    /// The log's number of it.
    pub number: u64,
    pub reason: GapReason,
}

/// What one reading of a log came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Everything of the log up to this arrival is accounted for: put out, or in `missing`.
    pub reached: u64,
    /// If there is one, no messages were put out with it.
    pub missing: Option<MissingRange>,
    /// Everything up to the arrival asked for has been accounted for.
    pub is_done: bool,
}

impl MissingRange {
    /// Another run numbers what follows; nothing is missing, as far as the journal lost nothing.
    fn run(change: &Change) -> Self {
        let (reason, missed) = (GapReason::Epoch, (!change.is_torn).then_some(0));
        Self { missed, after: Some(change.after), at: change.at, number: change.number, reason }
    }
}

impl Node {
    /// The end of a log; `0.0` where the log is no more.
    pub fn head(&self, log: LogId) -> Head {
        let none = Head { at: Position { epoch: 0, sequence: 0 }, number: 0, arrival: 0 };
        self.names.get(log).map_or(none, |log| Head { at: log.at(), number: log.number(), arrival: log.last_arrival() })
    }

    /// The position of a log's number.
    pub fn position(&self, log: LogId, number: u64) -> Position {
        self.names.get(log).map_or(Position { epoch: 0, sequence: 0 }, |log| log.position(number))
    }

    /// The log's number up to which somebody has been sent everything who was sent everything up to an arrival; where nobody remembers what
    /// the log let go of since, that before the oldest kept.
    pub fn number_at(&self, log: LogId, arrival: u64) -> u64 {
        let Some(found) = self.names.get(log) else { return 0 };
        let kept = found.base() + found.count_until(arrival) as u64;
        if arrival >= found.evicted_arrival() {
            return kept;
        }
        let gone = self.find_missing(log.slot, arrival, u64::MAX);
        gone.and_then(|(range, _)| Some(range.number.saturating_sub(range.missed?))).unwrap_or(kept)
    }

    /// The log's number of a position that it knows.
    pub fn number(&self, log: LogId, at: Position) -> Option<u64> {
        match self.know(self.names.get(log)?, at) {
            Known::Number { number, .. } => Some(number),
            Known::Ahead | Known::Beyond { .. } | Known::Other => None,
        }
    }

    /// What a position means in a log; `E.0` of any run that the journal knows is what the log had when it began, unless the subject may
    /// have had messages since that only the journal has.
    pub(super) fn know(&self, log: &Log, at: Position) -> Known {
        let known = log.find(at);
        if known != Known::Other || at.sequence > 0 {
            return known;
        }
        let told = self.runs.begin_of(at.epoch).filter(|told| *told >= self.unread);
        let told = told.filter(|told| !self.forgotten.has(&log.subject, *told));
        told.map_or(known, |told| Known::Number { number: log.number_at(told), told })
    }

    /// Whether messages may have been lost after a position's epoch began.
    pub fn may_have_lost(&self, at: Position) -> bool {
        self.lost_until() > self.sure_of(at)
    }

    /// An arrival before which nothing follows a position: its run began with it.
    pub fn sure_of(&self, at: Position) -> u64 {
        self.runs.sure_of(at.epoch)
    }

    /// Whether a position lies beyond what the journal holds of its epoch: what it saw there nobody else ever will.
    pub fn is_beyond(&self, log: LogId, at: Position) -> bool {
        self.names.get(log).is_some_and(|log| matches!(self.know(log, at), Known::Beyond { .. }))
    }

    /// The run in which a subject that is not there yet would begin now.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether there are earlier runs, and so earlier epochs.
    pub fn has_past(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The epoch in which a log numbers now, or would.
    pub fn epoch_of(&self, log: LogId) -> u64 {
        self.names.get(log).map_or(self.epoch, |log| log.epoch)
    }

    /// A log's epochs in their order, from the earliest of these on; epochs of one node only rise. Those that runs began with are named
    /// too, as far as there is room: the client may be in one of which memory has nothing.
    pub fn order_epochs(&self, log: LogId, mut epochs: BTreeSet<u64>) -> Vec<u64> {
        let first = epochs.first().copied().unwrap_or(0);
        epochs.insert(self.epoch_of(log));
        epochs.extend(self.names.get(log).iter().flat_map(|log| log.epochs()).filter(|epoch| *epoch > first));
        let runs: Vec<u64> = self.runs.epochs().filter(|epoch| *epoch > first && !epochs.contains(epoch)).collect();
        let room = EPOCHS_MAX.saturating_sub(epochs.len());
        epochs.extend(runs.into_iter().rev().take(room));
        epochs.into_iter().collect()
    }

    /// A subject's log, if there is one.
    pub fn find(&self, subject: &str) -> Option<LogId> {
        self.names.find(subject)
    }

    /// Whether anything was published on a subject that is known: one that is only listened to has had nothing.
    pub fn has_had(&self, subject: &str) -> bool {
        let log = self.find(subject).and_then(|id| self.names.get(id));
        log.is_some_and(|log| log.number() > 0 || !log.latest.is_none())
    }

    pub fn snapshot(&self, log: LogId, now: Now) -> Option<Snapshot> {
        let log = self.names.get(log)?;
        let cutoff = self.ages.cutoff(self.policies.get(log.policy).snapshot_age);
        if is_expired(log, cutoff) {
            return None;
        }
        if log.latest.last()?.expires_in_s(now.wall_ms) == Some(0) {
            return None;
        }
        log.latest.show(log.at())
    }

    /// Where to continue for a client that was sent everything of the subject up to `after`.
    pub fn place(&self, log: LogId, after: Position, _now: Now) -> PositionState {
        let Some(log) = self.names.get(log) else {
            let oldest = Position { epoch: 0, sequence: 0 };
            let (reason, missed) = (GapReason::Unknown, None);
            return PositionState::Gap { reason, missed, oldest, oldest_number: 0, oldest_arrival: 0 };
        };
        let base = log.base();
        let gap = |reason, missed| PositionState::Gap {
            reason,
            missed,
            oldest: log.position(base),
            oldest_number: base,
            oldest_arrival: log.evicted_arrival(),
        };
        match self.know(log, after) {
            // Of an epoch from before all that are known everything that is kept follows, of any other the present one's.
            Known::Other if log.epochs().next().is_some_and(|first| after.epoch < first) => gap(GapReason::Epoch, None),
            Known::Other => self.place_at_end(log, log.present_began()),
            Known::Ahead => gap(GapReason::Ahead, None),
            Known::Beyond { ended, .. } => self.place_at_end(log, ended),
            Known::Number { number, .. } if number < base => gap(log.gap_reason(number), Some(base - number)),
            Known::Number { number, told } => {
                let arrival = log.get(number).map_or(log.evicted_arrival(), |message| message.arrival);
                PositionState::Served { arrival: arrival.max(told), count: log.number() - number }
            }
        }
    }

    /// After a gap of a run that ended with this arrival: at the beginning of the next one, or before the oldest kept.
    fn place_at_end(&self, log: &Log, ended: u64) -> PositionState {
        let (number, base) = (log.number_at(ended), log.base());
        let (oldest, oldest_number, oldest_arrival) = if number >= base && ended > 0 {
            let next = log.change_in(ended - 1, ended);
            (next.map_or(log.position(number), |change| change.at), number, ended)
        } else {
            (log.position(base), base, log.evicted_arrival())
        };
        PositionState::Gap { reason: GapReason::Epoch, missed: None, oldest, oldest_number, oldest_arrival }
    }

    /// The arrival with which the run began that followed one; none where that is not known.
    pub fn run_ended(&self, run: u64) -> Option<u64> {
        self.runs.ended(run)
    }

    /// Where a client continues that saw more of an earlier run than the journal holds.
    pub fn place_after_run(&self, log: LogId, run: u64) -> Option<PositionState> {
        Some(self.place_at_end(self.names.get(log)?, self.runs.ended(run)?))
    }

    /// Whether a log has messages that arrived after one.
    pub fn has_after(&self, log: LogId, arrival: u64) -> bool {
        self.names.get(log).is_some_and(|log| log.last_arrival() > arrival)
    }

    /// Where to stand to be sent the last `n` kept messages, and how many there are.
    pub fn place_last(&self, log: LogId, n: usize) -> (u64, u64) {
        let Some(log) = self.names.get(log) else { return (0, 0) };
        let count = log.len().min(n);
        let before = (log.len() - count).checked_sub(1).and_then(|index| log.nth(index));
        (before.map_or(log.evicted_arrival(), |message| message.arrival), count as u64)
    }

    /// The last arrival before the oldest message that memory has of a log; of one that keeps none, the feed's last.
    pub fn before_kept(&self, log: LogId) -> u64 {
        let oldest = self.names.get(log).and_then(|log| log.nth(0));
        oldest.map_or(self.index.head(), |oldest| oldest.arrival.saturating_sub(1))
    }

    /// Whether memory has all that there ever was of a log.
    pub fn has_all(&self, log: LogId) -> bool {
        let Some(log) = self.names.get(log).filter(|log| log.base() == 0) else { return false };
        log.is_all || self.unread == 0 && !self.forgotten.has(&log.subject, 0)
    }

    /// The journal has nothing of a subject from before its log began.
    pub fn note_beginning(&mut self, log: LogId) {
        if let Some(log) = self.names.get_mut(log) {
            log.is_all = true;
        }
    }

    /// The messages of a log with an arrival in `(after, until]`, oldest first, as many as fit in `bytes_max` but at least one.
    pub fn read(
        &self,
        id: LogId,
        after_arrival: u64,
        until_arrival: u64,
        out: &mut Vec<Arc<Message>>,
        bytes_max: usize,
    ) -> Read {
        let Some(log) = self.names.get(id) else {
            return Read { reached: until_arrival, missing: None, is_done: true };
        };
        let change = log.change_in(after_arrival, until_arrival);
        let (whole, until_arrival) = (until_arrival, change.map_or(until_arrival, |change| change.arrival - 1));
        if log.evicted_arrival() > after_arrival
            && let Some((range, reached)) = self.find_missing(id.slot, after_arrival, until_arrival)
        {
            return Read { reached, missing: Some(range), is_done: reached >= whole };
        }
        let out_before = out.len();
        let mut left = bytes_max;
        let first = log.count_until(after_arrival);
        for index in first.. {
            let Some(message) = log.nth(index).filter(|message| message.arrival <= until_arrival) else { break };
            let cost = message.cost_bytes();
            if cost > left && index > first {
                let reached = log.nth(index - 1).map_or(after_arrival, |message| message.arrival);
                return Read { reached, missing: None, is_done: false };
            }
            left = left.saturating_sub(cost);
            out.push(Arc::clone(message));
        }
        match change {
            None => Read { reached: until_arrival.max(after_arrival), missing: None, is_done: true },
            Some(change) if out.len() == out_before => Read {
                reached: change.arrival,
                missing: Some(MissingRange::run(&change)),
                is_done: change.arrival >= whole,
            },
            // The change of run is told alone, by the next reading.
            Some(_) => Read { reached: until_arrival.max(after_arrival), missing: None, is_done: false },
        }
    }

    /// What of a log's arrivals in `(after, until]` is no longer kept, and up to which arrival that reaches. A log's sequences
    /// are consecutive, so that the first and the last of them tell how many they are.
    pub(super) fn find_missing(&self, slot: u32, after: u64, until: u64) -> Option<(MissingRange, u64)> {
        let log = self.names.log_at(slot)?;
        if after < self.index.gone() {
            // Nobody remembers how many: the range reaches to the oldest kept.
            let number = log.base();
            let reason = log.gap_reason(number.saturating_sub(1));
            let range = MissingRange { missed: None, after: None, at: log.position(number), number, reason };
            return Some((range, log.evicted_arrival()));
        }
        let end = log.evicted_arrival().min(until);
        let before = log.widen(self.index.first_of(slot, after.max(log.since_arrival), end)?).saturating_sub(1);
        let is_all = until >= log.evicted_arrival();
        let last = if is_all { log.base() } else { log.widen(self.index.last_of(slot, after, end)?) };
        let missed = Some(last.saturating_sub(before));
        let reason = log.gap_reason(before);
        let (after, at) = (Some(log.position(before)), log.position(last));
        Some((MissingRange { missed, after, at, number: last, reason }, end))
    }

    /// Which parts of a pattern may have had messages after a resume token that ended with an earlier run: no journal keeps them.
    pub fn unjournaled_since(&self, resume_token: ResumeToken, pattern: &Pattern) -> Vec<&str> {
        if resume_token.run == self.run {
            return Vec::new();
        }
        self.policies.unjournaled_within(pattern).map(Pattern::text).collect()
    }

    /// The arrival that a resume token of `pattern` stands for, if everything after it is still known: kept, or missing and told; or in a part
    /// of it that no journal keeps.
    pub fn place_resume_token(&self, resume_token: ResumeToken, pattern: &Pattern) -> Result<u64, GapReason> {
        if resume_token.run != self.run {
            if self.policies.unjournaled_within(pattern).any(|part| part.covers(pattern)) {
                return Err(GapReason::Epoch);
            }
            // Of an earlier run the journal holds everything up to some arrival, or knows nothing.
            let last = self.runs.last_of(resume_token.run).filter(|_| self.runs.is_near(resume_token.run));
            if last.is_none_or(|last| resume_token.arrival > last) {
                return Err(GapReason::Epoch);
            }
        } else if resume_token.arrival > self.index.head() {
            return Err(GapReason::Ahead);
        }
        if self.forgotten.concerns(pattern, resume_token.arrival) {
            return Err(GapReason::Expired);
        }
        if resume_token.arrival < self.index.gone() {
            return Err(GapReason::Overrun);
        }
        Ok(resume_token.arrival)
    }

    /// The same for one subject that is being listened to, and how many of its kept messages are behind it. What is no longer
    /// kept is found when the log is read.
    pub fn place_subject_resume_token(&self, resume_token: ResumeToken, log: LogId) -> Result<(u64, u64), GapReason> {
        let Some(found) = self.names.get(log) else { return Err(GapReason::Unknown) };
        let subject = Pattern::parse(&found.subject).map_err(|_| GapReason::Unknown)?;
        let arrival = self.place_resume_token(resume_token, &subject)?;
        let behind = found.number().saturating_sub(found.base() + found.count_until(arrival) as u64);
        Ok((arrival, behind))
    }

    /// Where a client stands in a log that was sent everything up to `arrival`.
    pub fn position_at(&self, log: LogId, arrival: u64) -> Position {
        let Some(found) = self.names.get(log) else { return Position { epoch: 0, sequence: 0 } };
        let number = found.base() + found.count_until(arrival) as u64;
        if number >= found.number() { found.at() } else { found.position(number) }
    }

    /// The resume token of who has been sent everything up to `arrival`.
    pub fn resume_token(&self, arrival: u64) -> ResumeToken {
        ResumeToken { run: self.run, arrival, time_ms: self.time_ms }
    }
}
