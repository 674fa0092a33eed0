//! Accepting messages: checked, numbered, kept, and told to the shards that have listeners. What is refused is never numbered.
use std::sync::Arc;

use super::Node;
use super::feed::Entry;
use super::keys::Known;
use super::log::Log;
use super::room::{Bounds, drop_snapshot, is_expired, owed_cutoff, trim};
use super::snapshot::Room;
use crate::codes::Code;
use crate::limits::{KEY_BYTES_MAX, KEY_BYTES_MIN_ANONYMOUS};
use crate::message::{Batch, Draft, LogId, Message};
use crate::position::{Now, Position};
use crate::subject::{check_subject, check_topic, is_own};

/// Drafts of the node itself name no connection; only they may publish on `/$…`.
const NODE: u32 = u32::MAX;
/// Messages that one append lets go where they are too many or too old; the sweep goes on.
const TRIM_EACH: usize = 16;

/// What became of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `at` is none for a standard message.
    Published {
        at: Option<Position>,
        is_repeat: bool,
    },
    Refused(Code),
}

impl Node {
    /// Accepts every draft of the batch, in order, and says of each what became of it; the batch keeps the drafts, but their
    /// bytes are gone. Returns the shards to wake.
    pub fn append(&mut self, batch: &mut Batch, outcomes: &mut Vec<Outcome>, now: Now) -> u64 {
        self.time_ms = self.time_ms.max(now.wall_ms);
        self.ages.tick(now.mono_ms, self.index.head());
        outcomes.reserve(batch.drafts.len());
        let mut wakes = 0;
        let Batch { names, drafts } = batch;
        for draft in drafts {
            let subject = names.get(draft.subject.start as usize..draft.subject.end as usize).unwrap_or("");
            let outcome = match self.accept(subject, draft, now) {
                Ok((outcome, mask)) => {
                    wakes |= mask;
                    outcome
                }
                Err(code) => {
                    self.counts.refused += 1;
                    Outcome::Refused(code)
                }
            };
            outcomes.push(outcome);
        }
        wakes
    }

    fn accept(&mut self, subject: &str, draft: &mut Draft, now: Now) -> Result<(Outcome, u64), Code> {
        let scope = match &draft.key {
            None => None,
            Some(key) => match self.check_key(subject, draft, key, now)? {
                Keyed::Repeat(at) => {
                    self.counts.repeats += 1;
                    return Ok((Outcome::Published { at, is_repeat: true }, 0));
                }
                Keyed::New { scope, content } => Some((scope, content)),
            },
        };
        if is_own(subject) && draft.connection != NODE {
            return Err(Code::SubjectInvalid);
        }
        let (at, mask) = if draft.is_guaranteed {
            let (at, mask) = self.keep(subject, draft, now)?;
            (Some(at), mask)
        } else {
            (None, self.pass(subject, draft, now)?)
        };
        if let Some((scope, content)) = scope {
            self.keys.insert(scope, Known { content, at }, now.mono_ms);
        }
        Ok((Outcome::Published { at, is_repeat: false }, mask))
    }

    /// Whether the draft's key is known, and with the same content.
    fn check_key(&self, subject: &str, draft: &Draft, key: &[u8], now: Now) -> Result<Keyed, Code> {
        let bytes_min = if draft.identity.is_empty() { KEY_BYTES_MIN_ANONYMOUS } else { 1 };
        if key.len() < bytes_min || key.len() > KEY_BYTES_MAX {
            return Err(Code::KeyInvalid);
        }
        let scope = self.keys.digest(&[draft.identity.as_bytes(), subject.as_bytes(), key]);
        let shape = [draft.kind as u8, u8::from(draft.is_guaranteed)];
        let content = self.keys.digest(&[&shape, &draft.content_bytes.to_le_bytes(), &draft.bytes]);
        match self.keys.find(scope, now.mono_ms) {
            None => Ok(Keyed::New { scope, content }),
            Some(known) if known.content == content => Ok(Keyed::Repeat(known.at)),
            Some(_) => Err(Code::KeyConflict),
        }
    }

    /// A guaranteed message: into its log, the index, the snapshot and the feed.
    fn keep(&mut self, subject: &str, draft: &mut Draft, now: Now) -> Result<(Position, u64), Code> {
        let known = self.names.find(subject);
        if known.is_none() {
            check_subject_of(subject, draft)?;
        }
        let cost = size_of::<Message>() + 2 * size_of::<usize>() + draft.bytes.len();
        if !self.make_room(cost) {
            return Err(Code::NodeBusy);
        }
        let id = match known {
            Some(id) => id,
            None => self.create(subject)?,
        };
        self.note_reply(draft);
        let arrival = self.index.head() + 1;
        let Some(log) = self.names.get_mut(id) else { return Err(Code::CommandFault) };
        let at = Position { epoch: log.epoch, sequence: log.at().sequence + 1 };
        let is_retained = draft.is_retained.unwrap_or(!log.is_reply);
        let message = Arc::new(draft.number(Arc::clone(&log.subject), id, Some(at), arrival, now.wall_ms, is_retained));
        if let Some(tap) = &mut self.tap {
            tap.hear(&message, &draft.identity);
        }
        self.index.push(id.slot, at.sequence);
        self.counts.bytes += cost;
        self.counts.messages += 1;
        self.counts.accepted += 1;
        log.push(Arc::clone(&message));
        let policy = self.policies.get(log.policy);
        if message.is_retained && draft.mqtt.is_some() && message.content().is_empty() {
            drop_snapshot(log, &mut self.counts);
        } else if message.is_retained && policy.keeps_snapshot {
            if is_expired(log, self.ages.cutoff(policy.snapshot_age)) {
                drop_snapshot(log, &mut self.counts);
            }
            self.counts.bytes -= log.lonely_bytes();
            self.counts.snapshots += usize::from(log.latest.is_none());
            let room =
                Room { bytes_max: self.limits.snapshot_bytes_max, all_bytes_max: self.limits.snapshots_bytes_max };
            log.latest.update(&message, room, &mut self.counts.snapshot_bytes);
        }
        let cutoff = owed_cutoff(&self.owed, log, self.ages.cutoff(policy.log_age));
        let bounds = Bounds { messages_max: policy.log_messages_max, cutoff };
        trim(log, bounds, TRIM_EACH, &mut self.counts);
        if log.pattern_version != self.directory.version() {
            log.pattern_version = self.directory.version();
            log.pattern_mask = self.directory.mask(subject);
        }
        let mask = log.listeners.mask() | log.pattern_mask;
        let told = if mask == 0 { 0 } else { self.feed.push(mask, &Entry::Message(message)) };
        self.trim_index();
        Ok((at, told))
    }

    /// A standard message: into the feed alone.
    fn pass(&mut self, subject: &str, draft: &mut Draft, now: Now) -> Result<u64, Code> {
        let known = self.names.find(subject).and_then(|id| Some((id, self.names.get(id)?)));
        let (id, name, mask) = match known {
            Some((id, log)) => (id, Arc::clone(&log.subject), log.listeners.mask()),
            None => {
                check_subject_of(subject, draft)?;
                (LogId::unkept(self.names.hash(subject)), subject.into(), 0)
            }
        };
        self.note_reply(draft);
        self.counts.accepted += 1;
        let mask = mask | self.directory.mask(subject);
        if mask == 0 && self.tap.is_none() {
            return Ok(0);
        }
        self.index.push_nobody();
        let message = Arc::new(draft.number(name, id, None, self.index.head(), now.wall_ms, false));
        if let Some(tap) = &mut self.tap {
            tap.hear(&message, &draft.identity);
        }
        let told = if mask == 0 { 0 } else { self.feed.push(mask, &Entry::Message(message)) };
        self.trim_index();
        Ok(told)
    }

    /// A new log, in the present epoch, if there is room for one more.
    pub(super) fn create(&mut self, subject: &str) -> Result<LogId, Code> {
        if self.names.len() >= self.limits.subjects_max {
            return Err(Code::SubjectsTooMany);
        }
        let policy = self.policies.resolve(subject, &mut self.ages);
        let mut log = Log::new(subject.into(), self.epoch, self.index.head(), policy);
        log.is_reply = self.replies.take(self.names.hash(subject));
        Ok(self.names.insert(log))
    }

    /// Remembers that replies are awaited on a subject: what is published there is not retained unless asked for.
    fn note_reply(&mut self, draft: &Draft) {
        let Ok(name) = std::str::from_utf8(draft.reply_to()) else { return };
        if name.is_empty() {
            return;
        }
        match self.names.find(name).and_then(|id| self.names.get_mut(id)) {
            Some(log) => log.is_reply = true,
            None => self.replies.insert(self.names.hash(name)),
        }
    }
}

enum Keyed {
    Repeat(Option<Position>),
    New { scope: u128, content: u128 },
}

fn check_subject_of(subject: &str, draft: &Draft) -> Result<(), Code> {
    if draft.mqtt.is_some() {
        return check_topic(subject).map_err(|refusal| refusal.code);
    }
    if draft.connection == NODE && is_own(subject) {
        return crate::subject::Pattern::parse(subject)
            .ok()
            .filter(|pattern| !pattern.has_wildcard())
            .map(drop)
            .ok_or(Code::SubjectInvalid);
    }
    check_subject(subject).map_err(|refusal| refusal.code)
}
