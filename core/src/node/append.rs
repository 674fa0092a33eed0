//! Accepting messages: checked, numbered, kept, and told to the shards that have listeners. What is refused is never numbered.
mod state;

use std::sync::Arc;

use super::Node;
use super::keys::{Keys, Known};
use super::log::Log;
use super::mqtt::NOBODY;
use super::names::Owner;
use crate::account::{Bucket, Rate};
use crate::codes::Code;
use crate::command::Ack;
use crate::journal::MessageRow;
use crate::limits::{KEY_BYTES_MAX, KEY_BYTES_MIN_ANONYMOUS};
use crate::message::{Batch, Draft, LogId, Message};
use crate::mqtt::Qos;
use crate::position::{Now, Position};
use crate::subject::{check_publish_subject, check_subject, is_dispatch, is_own};

/// Drafts of the node itself name no connection; only they may publish on `/$…`.
const NODE: u32 = u32::MAX;
/// Rates that subjects without a log share.
const STRANGERS: usize = 4_096;

/// What became of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `at` is none for a standard message.
    Published {
        at: Option<Position>,
        is_duplicate: bool,
    },
    /// The same, but its publisher asked for the disk: to be told once the journal has synced this arrival.
    Awaits {
        at: Option<Position>,
        is_duplicate: bool,
        arrival: u64,
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
        self.accepted_us = batch.accepted_us;
        let Batch { names, drafts, .. } = batch;
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
        if is_own(subject) && draft.connection != NODE && !is_dispatch(subject) {
            return Err(Code::SubjectInvalid);
        }
        if let (Some(true), Some(journal)) = (draft.mqtt.map(|mqtt| mqtt.qos != Qos::AtMostOnce), &self.journal) {
            // Nobody can be told that a will is refused, and nobody waits for it.
            let is_promised = draft.connection != NOBODY || !journal.is_failing();
            let policy = self.policy(subject);
            let is_from_disk = is_promised && policy.acks_mqtt_from_disk && policy.journals;
            draft.ack = if is_from_disk { Ack::Disk } else { Ack::Cached };
        }
        self.check_ack(draft)?;
        if draft.is_removal && self.waits_for_disk(subject, draft) {
            draft.ack = Ack::Disk;
        }
        if draft.ack == Ack::Disk && self.policies.has_unjournaled() && !self.policy(subject).journals {
            return Err(Code::AckUnavailable);
        }
        if draft.mqtt.is_some()
            && !draft.is_removal
            && self.policies.retains_mqtt()
            && self.policy(subject).retains_mqtt
        {
            // Without content it takes the retained message away, as one that asks to be retained.
            (draft.is_retained, draft.is_removal) = (Some(true), draft.content().is_empty());
        }
        let is_open = draft.merge.is_none();
        if is_open && self.policies.has_merge() {
            draft.merge = Some(self.policy(subject).merges);
        }
        let keyed = match &draft.key {
            None => self.check_number(subject, draft, is_open, now)?,
            Some(key) => self.check_key(subject, draft, (key, is_open), now)?,
        };
        if let Some(Keyed::Repeat(known)) = keyed {
            self.counts.repeats += 1;
            return Ok((self.settle(draft, known.at, known.arrival, true), 0));
        }
        let (at, arrival, mask) = if draft.is_guaranteed {
            let (at, arrival, mask) = self.accept_guaranteed(subject, draft, now)?;
            (Some(at), arrival, mask)
        } else {
            (None, 0, self.pass(subject, draft, now)?)
        };
        let now_ms = now.mono_ms as i64;
        match keyed {
            Some(Keyed::New { scope, content }) => {
                let owner = self.owner_of_draft(draft);
                self.keys.insert(owner, scope, Known { content, at, arrival }, now_ms);
            }
            Some(Keyed::Numbered { scope, content, number }) => {
                let (known, bounds) = (Known { content, at, arrival }, self.publisher_bounds());
                self.publishers.insert(scope, number, known, now_ms, bounds);
            }
            Some(Keyed::Repeat(_)) | None => {}
        }
        Ok((self.settle(draft, at, arrival, false), mask))
    }

    /// What its publisher is told now, or later, of a message that has a position.
    fn settle(&self, draft: &Draft, at: Option<Position>, arrival: u64, is_duplicate: bool) -> Outcome {
        let is_there =
            draft.ack != Ack::Disk || self.journal.as_ref().is_some_and(|journal| journal.has_synced(arrival));
        if is_there { Outcome::Published { at, is_duplicate } } else { Outcome::Awaits { at, is_duplicate, arrival } }
    }

    /// Whether the draft's key is known, and with the same content. `is_open`: it did not say whether it is a patch, and the pattern that
    /// says so may have said otherwise when it was first sent.
    fn check_key(
        &self,
        subject: &str,
        draft: &Draft,
        (key, is_open): (&[u8], bool),
        now: Now,
    ) -> Result<Option<Keyed>, Code> {
        let bytes_min = if draft.holder.is_anonymous() { KEY_BYTES_MIN_ANONYMOUS } else { 1 };
        if key.len() < bytes_min || key.len() > KEY_BYTES_MAX {
            return Err(Code::KeyInvalid);
        }
        let scope = self.keys.scope(&draft.holder, subject, key);
        let digest = |is_patch| {
            let shape = [draft.kind as u8, traits_of(draft.is_guaranteed, is_patch, draft.is_removal)];
            self.keys.digest(&[&shape, &draft.content_bytes.to_le_bytes(), &draft.bytes])
        };
        let content = digest(draft.is_patch());
        let is_same = |known: u128| known == content || is_open && known == digest(!draft.is_patch());
        match self.keys.find(scope, now.mono_ms) {
            None => Ok(Some(Keyed::New { scope, content })),
            Some(known) if is_same(known.content) => Ok(Some(Keyed::Repeat(known))),
            Some(_) => Err(Code::KeyConflict),
        }
    }

    /// What is known of a publish by its number; none, it has none.
    fn check_number(&mut self, subject: &str, draft: &Draft, is_open: bool, now: Now) -> Result<Option<Keyed>, Code> {
        // An MQTT client's packet identifiers come again: its session knows which are in use.
        let Some((publisher, numbered)) = draft.numbered.as_ref().filter(|_| draft.mqtt.is_none()) else {
            return Ok(None);
        };
        let scope = self.keys.scope_of_publisher(&draft.holder, publisher);
        let digest = |keys: &Keys, is_patch| {
            let shape = [draft.kind as u8, traits_of(draft.is_guaranteed, is_patch, draft.is_removal)];
            keys.digest_of_numbered(shape, subject, draft.content_bytes, &draft.bytes)
        };
        let content = digest(&self.keys, draft.is_patch());
        let is_same = |known: u128| known == content || is_open && known == digest(&self.keys, !draft.is_patch());
        if let Some(known) = self.publishers.find(scope, *numbered, is_same)? {
            return Ok(Some(Keyed::Repeat(known)));
        }
        let (owner, bounds) = (self.owner_of_draft(draft), self.publisher_bounds());
        self.publishers.add(scope, owner, now.mono_ms as i64, bounds)?;
        self.publishers.settle(scope, numbered.floor);
        Ok(Some(Keyed::Numbered { scope, content, number: numbered.number }))
    }

    /// A guaranteed message: numbered in its log, and written down where there is a journal.
    fn accept_guaranteed(&mut self, subject: &str, draft: &mut Draft, now: Now) -> Result<(Position, u64, u64), Code> {
        let known = self.names.find(subject);
        if known.is_none() {
            if draft.is_removal && draft.mqtt.is_none() && draft.connection != NODE {
                return Err(Code::SnapshotMissing);
            }
            check_subject_of(subject, draft)?;
        }
        let cost = size_of::<Message>() + 2 * size_of::<usize>() + draft.bytes.len();
        if !self.make_room(cost) {
            return Err(Code::NodeBusy);
        }
        let id = match known {
            Some(id) => id,
            None => self.create_for(subject, self.owner_of_draft(draft))?,
        };
        self.note_reply(draft);
        self.remove_fields(id, draft);
        self.check_state(id, draft, now)?;
        let arrival = self.numbered() + 1;
        let unseen = self.unseen.number(id.slot);
        let Some(log) = self.names.get(id) else { return Err(Code::CommandInternalError) };
        let mut place = log.next();
        place.sequence = unseen.map_or(place.sequence, |last| last + 1);
        place.accepted_us = self.accepted_us;
        let is_retained = draft.is_removal || draft.is_retained.unwrap_or(!log.is_reply);
        let policy = self.policies.get(log.policy);
        let journals = policy.journals;
        let has_journal = journals && self.journal.as_ref().is_some_and(|journal| !journal.is_failing());
        let needs_disk = policy.shows_journaled && has_journal;
        let subject = Arc::clone(&log.subject);
        let mut message = draft.number(subject, id, Some(place), arrival, now.wall_ms, is_retained);
        message.is_on_disk = policy.acks_mqtt_from_disk && journals && self.journal.is_some();
        let message = Arc::new(message);
        self.counts.accepted += 1;
        let at = message.at().ok_or(Code::CommandInternalError)?;
        if let Some(tap) = &mut self.tap {
            tap.hear(&message, &draft.holder);
        }
        if let Some(journal) = self.journal.as_mut().filter(|_| journals) {
            journal.push(MessageRow {
                message: Arc::clone(&message),
                holder: Arc::clone(&draft.holder),
                key: draft.key.take(),
                numbered: draft.take_number(),
                is_mqtt: draft.mqtt.is_some(),
                needs_disk: needs_disk || draft.ack == Ack::Disk,
            });
        }
        Ok((at, arrival, self.offer(message, needs_disk)))
    }

    /// A standard message: into the feed alone, and into the snapshot if it asks for that.
    fn pass(&mut self, subject: &str, draft: &mut Draft, now: Now) -> Result<u64, Code> {
        let asks_state = draft.is_retained == Some(true);
        if asks_state {
            self.make_state_room(subject, draft)?;
        }
        let known = self.names.find(subject).and_then(|id| Some((id, self.names.get(id)?)));
        let mut is_state = false;
        let (id, name, mask) = match known {
            Some((id, log)) => {
                let policy = self.policies.get(log.policy);
                take(&log.published, policy.publishes, draft, now)?;
                is_state = asks_state && policy.keeps_snapshot;
                if is_state || draft.is_removal {
                    self.remove_fields(id, draft);
                }
                if is_state {
                    self.check_patch(id, log, draft)?;
                }
                (id, Arc::clone(&log.subject), log.listeners.mask())
            }
            None => {
                check_subject_of(subject, draft)?;
                self.take_of_stranger(subject, draft, now)?;
                (LogId::unkept(self.names.hash(subject)), subject.into(), 0)
            }
        };
        self.note_reply(draft);
        self.counts.accepted += 1;
        let mask = mask | self.directory.mask(subject);
        if mask == 0 && self.tap.is_none() && !is_state {
            return Ok(0);
        }
        let arrival = self.numbered() + 1;
        let message = Arc::new(draft.number(name, id, None, arrival, now.wall_ms, is_state));
        if let Some(tap) = &mut self.tap {
            tap.hear(&message, &draft.holder);
        }
        Ok(self.offer(message, false))
    }

    /// A log for a standard message that is to be the state, and room for it.
    fn make_state_room(&mut self, subject: &str, draft: &Draft) -> Result<(), Code> {
        if !self.make_room(size_of::<Message>() + 2 * size_of::<usize>() + draft.bytes.len()) {
            return Err(Code::NodeBusy);
        }
        if self.names.find(subject).is_none() {
            check_subject_of(subject, draft)?;
            self.create_for(subject, self.owner_of_draft(draft))?;
        }
        Ok(())
    }

    /// Takes one publish from the rate of a subject that has no log.
    fn take_of_stranger(&mut self, subject: &str, draft: &Draft, now: Now) -> Result<(), Code> {
        let rate = self.policies.rate_of(subject);
        if rate.is_off() {
            return Ok(());
        }
        if self.strangers.is_empty() {
            self.strangers.resize_with(STRANGERS, Bucket::default);
        }
        let place = self.names.hash(subject) as usize % STRANGERS;
        self.strangers.get(place).map_or(Ok(()), |bucket| take(bucket, rate, draft, now))
    }

    /// The node's own publishes are nobody's.
    fn owner_of_draft(&self, draft: &Draft) -> Owner {
        if draft.connection == NODE { Owner::default() } else { self.owner_of(&draft.holder, draft.origin) }
    }

    /// A log for a new subject, within the share of its holder. A subject that was forgotten goes on from where it ended, so that what is
    /// gone can be counted.
    pub(super) fn create_for(&mut self, subject: &str, owner: Owner) -> Result<LogId, Code> {
        let (epoch, arrival) = (self.epoch, self.index.head());
        let ended = self.forgotten.head(subject).filter(|(_, at)| at.epoch < epoch);
        let id = self.create_new(subject, owner)?;
        if let (Some((last, at)), Some(log)) = (ended, self.names.get_mut(id)) {
            log.resume(at, last, arrival);
        }
        Ok(id)
    }

    /// A log of which nothing is known.
    pub(super) fn create_new(&mut self, subject: &str, owner: Owner) -> Result<LogId, Code> {
        if self.names.len() >= self.limits.subjects_max {
            return Err(Code::SubjectsTooMany);
        }
        self.names.check_share(owner, self.limits.subjects_max)?;
        let is_reply = self.replies.take(self.names.hash(subject));
        let policy = self.policies.resolve(subject, is_reply, &mut self.ages);
        let mut log = Log::new(subject.into(), self.epoch, self.index.head(), policy);
        (log.is_reply, log.began_as_reply, log.owner) = (is_reply, is_reply, owner);
        Ok(self.names.insert(log))
    }

    /// Remembers that replies are awaited on a subject: what is published there is not retained unless asked for.
    fn note_reply(&mut self, draft: &Draft) {
        let Ok(name) = std::str::from_utf8(draft.reply_to()) else { return };
        if name.is_empty() {
            return;
        }
        match self.names.find(name).and_then(|id| self.names.get_mut(id)) {
            // Who may only listen there changes nothing for those who publish there already.
            Some(log) => log.is_reply |= draft.owns_reply,
            None => self.replies.insert(self.names.hash(name)),
        }
    }
}

/// Takes one publish from a subject's rate; the node's own are free.
fn take(bucket: &Bucket, rate: Rate, draft: &Draft, now: Now) -> Result<(), Code> {
    let is_there = draft.connection == NODE || bucket.try_take(rate, now.mono_ms.saturating_mul(1_000_000), 1);
    if is_there { Ok(()) } else { Err(Code::RateExceeded) }
}

enum Keyed {
    Repeat(Known),
    New { scope: u128, content: u128 },
    Numbered { scope: u128, content: u128, number: u64 },
}

/// What of a publish, beside kind and content, must be the same under one key.
pub(super) fn traits_of(is_guaranteed: bool, is_patch: bool, is_removal: bool) -> u8 {
    u8::from(is_guaranteed) | u8::from(is_patch) << 1 | u8::from(is_removal) << 2
}

fn check_subject_of(subject: &str, draft: &Draft) -> Result<(), Code> {
    if draft.mqtt.is_some() {
        return check_subject(subject).map_err(|refusal| refusal.code);
    }
    if draft.connection == NODE && is_own(subject) {
        return crate::subject::Pattern::parse(subject)
            .ok()
            .filter(|pattern| !pattern.has_wildcard())
            .map(drop)
            .ok_or(Code::SubjectInvalid);
    }
    if crate::subject::has_empty_segment(subject) {
        return Err(Code::SubjectInvalid);
    }
    check_publish_subject(subject).map_err(|refusal| refusal.code)
}
