//! A subscription: where it stands. Owns the states a cursor can be in; how it gets from one to the next is the
//! shard's (join, deliver, catch_up). Its invariant: everything of its selector before where it stands has been sent.
use std::collections::HashMap;
use std::sync::Arc;

use crate::journal::PageStart;
use crate::message::LogId;
use crate::position::Position;

/// No slot.
pub const NONE: u32 = u32::MAX;

/// Where a cursor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CursorState {
    /// At the head of a stream that keeps no window: what comes next is sent in the turn it comes.
    Current,
    /// At a byte place of its stream's window.
    Live(u64),
    /// Everything up to this arrival has been sent; the rest comes from the logs, in chunks.
    Behind(u64),
    /// Everything up to this arrival has been sent; the rest is read back from the journal, a page at a time, until memory goes on
    /// from there. 0: a subject's cursor of which only the position is known.
    Reading(u64),
    /// A pattern's join is under way; its job knows how far it came.
    Joining,
}

/// In this order: what a delivery looks at comes first and lies together.
#[derive(Debug)]
#[repr(C)]
pub struct Cursor {
    pub stand: CursorState,
    pub stream: u32,
    pub connection: u32,
    /// Standard messages of the stream that were sent or are known to be lost, modulo 2³².
    pub standard: u32,
    /// The next cursor of the same connection that has something to send this turn.
    pub next_ready: u32,
    /// The next cursor of the same connection.
    pub next: u32,
    /// Its index among the stream's cursors, so that leaving is not linear.
    pub seat: u32,
    /// Behind in a subject's stream: the last sequence that was sent; 0 not known. Reading: the same, of the position.
    pub sequence: u64,
    pub is_ready: bool,
    /// Scratch of a short write: its first unsent frame has been found.
    pub is_unsent: bool,
    /// An event stream's: it stands among those that may not have passed all that was delivered.
    pub is_late: bool,
    /// It waits in the shard's list of cursors to catch up.
    pub is_queued: bool,
    /// It named the place it goes on from, and has not come to the head yet: what memory has let go of is read back.
    pub reads_back: bool,
    /// After a gap it continues from the oldest kept message.
    pub gap_from_oldest: bool,
    /// The client named no position of a subject: it needs the order of epochs to drop what it has.
    pub tells_epochs: bool,
    /// A pattern's: its first resume token is still to be told.
    pub owes_resume_token: bool,
    /// Binary wire: which version of the subject's announcement has been told; 0 none.
    pub announced: u16,
    /// MQTT: what the subscription wants (as in SUBSCRIBE), and its identifier; 0 none.
    pub options: u8,
    pub subscription_id: u32,
    pub job: Option<Box<Job>>,
}

/// Where a subject was placed further on, and what became of its messages up to there.
#[derive(Clone, Copy, Debug)]
pub struct Skip {
    pub sequence: u64,
    /// Those up to here were reported missing. Later ones the client has: it said so, or was sent a snapshot or a merged frame with them.
    pub missing: u64,
    /// Those up to here were counted where they are no longer kept.
    pub passed: u64,
}

impl Skip {
    pub fn new(sequence: u64, is_gap: bool) -> Self {
        Self { sequence, missing: if is_gap { sequence } else { 0 }, passed: 0 }
    }
}

/// What a cursor must remember while it is not at the head.
#[derive(Debug, Default)]
pub struct Job {
    /// Subjects that a gap or snapshot placed further on: what is not after the position there has been sent.
    pub skips: HashMap<LogId, Skip>,
    /// The skips can be forgotten once the cursor stands here.
    pub skips_until: u64,
    /// MQTT: up to this arrival it is known that something is gone which nobody can count.
    pub lost: u64,
    pub join: Option<Join>,
    pub reading: Option<HistoryRead>,
}

/// How a cursor reads back.
#[derive(Clone, Copy, Debug)]
pub struct HistoryRead {
    /// The epoch of a subject's cursor; 0 not known.
    pub epoch: u64,
    /// The position that the epoch's first message follows, if no gap reports the change of epoch: a client that was not sent
    /// that message yet is still there.
    pub follows: Option<Position>,
    /// Where the page under way, or the last one, began.
    pub place: PageStart,
    /// Where the next one begins for who was sent all of the last, which ended with this arrival.
    pub next: Option<(u64, PageStart)>,
    /// The page under way; 0 none.
    pub serial: u64,
    /// Everything that was accepted up to here when it was asked for is in the journal, if that says so.
    pub head: u64,
    /// Of the last page: nothing followed it, and nothing is missing in it.
    pub is_last: bool,
    pub is_whole: bool,
    /// It asked for so many messages, not for all after a place: what is gone before them is not told.
    pub is_history: bool,
}

impl HistoryRead {
    /// The position up to which the client was sent everything; `sequence` is the cursor's.
    pub fn position(&self, sequence: u64) -> Option<Position> {
        let own = (self.epoch > 0).then_some(Position { epoch: self.epoch, sequence });
        if sequence == 0 { self.follows.or(own) } else { own }
    }
}

/// The join of a pattern: subjects in name order, what is sent of each, and the arrival at which the feed takes over.
#[derive(Debug)]
pub struct Join {
    pub bound: u64,
    pub plan: Plan,
    /// A gap of the whole pattern was told before it: the rest may be left out, or sent in another order.
    pub follows_gap: bool,
    /// Subjects up to this one are done.
    pub done: Option<Arc<str>>,
    /// The subject under way and the arrival up to which it has been sent.
    pub inner: Option<(Arc<str>, LogId, u64)>,
}

/// What a joiner gets of each subject.
#[derive(Debug)]
pub enum Plan {
    Snapshots,
    /// The last n kept messages.
    Last(u32),
    /// Everything after a position; of a subject without one, its snapshot.
    After(HashMap<Box<str>, Position>),
    /// Everything after an arrival with which a run began; of a subject without that, its snapshot.
    Since(u64),
    /// What is left of that when all subjects there are have had their turn: places in subjects that are not there.
    Unknown(Vec<(Box<str>, Position)>),
}

impl Plan {
    /// The place the joiner has in a subject, once.
    pub fn take(&mut self, subject: &str) -> Option<Position> {
        match self {
            Self::After(positions) => positions.remove(subject),
            Self::Unknown(places) => {
                let index = places.iter().position(|(name, _)| **name == *subject)?;
                Some(places.swap_remove(index).1)
            }
            Self::Snapshots | Self::Last(_) | Self::Since(_) => None,
        }
    }

    /// One place that no subject was found for.
    pub fn take_unknown(&mut self) -> Option<(Box<str>, Position)> {
        if let Self::After(positions) = self {
            *self = Self::Unknown(std::mem::take(positions).into_iter().collect());
        }
        match self {
            Self::Unknown(places) => places.pop(),
            _ => None,
        }
    }
}

impl Cursor {
    pub fn new(stream: u32, connection: u32, next: u32, stand: CursorState) -> Self {
        Self {
            stream,
            connection,
            next,
            next_ready: NONE,
            seat: NONE,
            standard: 0,
            stand,
            sequence: 0,
            is_ready: false,
            is_unsent: false,
            is_late: false,
            is_queued: false,
            reads_back: false,
            gap_from_oldest: false,
            tells_epochs: false,
            owes_resume_token: false,
            announced: 0,
            options: 0,
            subscription_id: 0,
            job: None,
        }
    }

    /// Whether a message of `log` with this sequence has already been covered by a gap or snapshot.
    pub fn skips(&self, log: LogId, sequence: u64) -> bool {
        self.skip(log).is_some_and(|at| sequence > 0 && sequence <= at)
    }

    /// The sequence at which a gap or snapshot placed `log`.
    pub fn skip(&self, log: LogId) -> Option<u64> {
        Some(self.job.as_ref()?.skips.get(&log)?.sequence)
    }

    /// Whether it was not told to be missing but is in what the client has.
    pub fn merges(&self, log: LogId, sequence: u64) -> bool {
        let skip = self.job.as_ref().and_then(|job| job.skips.get(&log));
        skip.is_some_and(|skip| sequence > skip.missing && sequence <= skip.sequence)
    }

    /// How many messages of a missing range from `from` up to `number` the client has; each is counted once.
    pub fn pass(&mut self, log: LogId, from: u64, number: u64) -> u64 {
        let Some(skip) = self.job.as_mut().and_then(|job| job.skips.get_mut(&log)) else { return 0 };
        let (from, to) = (from.max(skip.passed).max(skip.missing), number.min(skip.sequence));
        skip.passed = skip.passed.max(to);
        to.saturating_sub(from)
    }

    /// Remembers that `log` has been placed at a sequence, which the feed reaches at `arrival`.
    pub fn skip_to(&mut self, log: LogId, skip: Skip, arrival: u64) {
        let job = self.job.get_or_insert_default();
        job.skips.insert(log, skip);
        job.skips_until = job.skips_until.max(arrival);
    }

    /// Remembers that a merged frame brought the client of a pattern to a sequence of `log`, though the cursor itself stands earlier.
    pub fn skip_sent(&mut self, log: LogId, sequence: u64, arrival: u64) {
        let job = self.job.get_or_insert_default();
        let skip = job.skips.entry(log).or_insert(Skip::new(sequence, false));
        skip.sequence = skip.sequence.max(sequence);
        job.skips_until = job.skips_until.max(arrival);
    }

    pub fn reading(&self) -> Option<&HistoryRead> {
        self.job.as_ref()?.reading.as_ref()
    }

    pub fn reading_mut(&mut self) -> Option<&mut HistoryRead> {
        self.job.as_mut()?.reading.as_mut()
    }

    /// Standard messages lost by a cursor that goes on where the stream counts `standard`. A resumed cursor may go on before
    /// the place where it was seated: it loses none.
    pub fn lost_to(&self, standard: u32) -> u32 {
        (standard.wrapping_sub(self.standard) as i32).max(0) as u32
    }

    /// Forgets what is no longer needed by a cursor that stands at `arrival` with no join under way.
    pub fn settle(&mut self, arrival: u64) {
        if self
            .job
            .as_ref()
            .is_some_and(|job| job.join.is_none() && job.reading.is_none() && arrival >= job.skips_until)
        {
            self.job = None;
        }
    }
}
