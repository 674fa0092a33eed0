//! Listeners and watchers: opening and closing subjects and patterns, and the interest that follows from it.
use std::sync::Arc;

use super::Node;
use super::directory::Directory;
use super::feed::Entry;
use super::interest::Leaving;
use super::listeners::bit;
use crate::codes::Code;
use crate::command::Refusal;
use crate::message::LogId;
use crate::position::Now;
use crate::subject::{Pattern, segments};

/// Names looked at in one section, for each one that is asked for and at least.
const LOOKS_EACH: usize = 16;
const LOOKS_MIN: usize = 256;

impl Node {
    /// One more listener of `shard` on a subject. Its log begins here if need be, and stays at least as long as the listener.
    pub fn open(&mut self, shard: u8, subject: &str, _now: Now) -> Result<LogId, Refusal> {
        let id = match self.names.find(subject) {
            Some(id) => id,
            None => {
                if Pattern::parse(subject)?.has_wildcard() || bit(shard) == 0 {
                    return Err(Refusal::new(Code::SubjectInvalid, "a pattern is no subject"));
                }
                let owner = std::mem::take(&mut self.asking);
                self.create_for(subject, owner).map_err(Refusal::from)?
            }
        };
        if let Some(log) = self.names.get_mut(id) {
            log.listeners.add(shard);
            if !log.is_announced && !self.is_reading {
                log.is_announced = true;
                let name = Arc::clone(&log.subject);
                let mask = self.interest.watchers.mask(&name);
                self.tell_interest(mask, name, true);
            }
        }
        Ok(id)
    }

    /// A stream of `shard` on a subject has `now` subscribers, where it had `before`.
    pub fn recount(&mut self, shard: u8, log: LogId, before: u32, now: u32) {
        if let Some(log) = self.names.get_mut(log) {
            log.listeners.recount(shard, before, now);
        }
    }

    /// One listener of `shard` less.
    pub fn close(&mut self, shard: u8, log: LogId, now: Now) {
        let Some(found) = self.names.get_mut(log) else { return };
        found.listeners.remove(shard);
        if found.listeners.is_empty() {
            self.quiet(log, now);
        }
    }

    /// A log has lost its last listener.
    fn quiet(&mut self, log: LogId, now: Now) {
        let Some(found) = self.names.get_mut(log) else { return };
        if self.interest.watchers.is_empty() {
            found.is_announced = false;
        } else if found.is_announced && !found.is_leaving {
            found.is_leaving = true;
            self.interest.leave(Leaving::Log(log), now.mono_ms);
        }
        if found.is_idle() && found.number() == 0 && !self.unseen.concerns(log.slot) {
            self.names.remove(log.slot);
        }
    }

    /// One more listener of `shard` on a pattern.
    pub fn open_pattern(&mut self, shard: u8, pattern: &Pattern, _now: Now) -> Result<(), Refusal> {
        if bit(shard) == 0 {
            return Err(Refusal::new(Code::CommandInternalError, "no such shard"));
        }
        self.check_size(pattern, &self.directory)?;
        self.directory.add(shard, pattern);
        self.announce_pattern(pattern);
        Ok(())
    }

    /// Somebody listens to a pattern, which has a listener: watchers hear of it where that is news.
    pub fn announce_pattern(&mut self, pattern: &Pattern) {
        if !self.is_reading && self.interest.begin(pattern) {
            let mask = self.interest.watchers.overlapping_mask(pattern);
            self.tell_interest(mask, pattern.text().into(), true);
        }
    }

    /// The next cursor only reads what exists and then ends: it does not count as interest.
    pub fn set_reading(&mut self, is_reading: bool) {
        self.is_reading = is_reading;
    }

    /// One listener of `shard` on a pattern less.
    pub fn close_pattern(&mut self, shard: u8, pattern: &Pattern, now: Now) {
        if self.directory.remove(shard, pattern) {
            self.end_pattern(pattern, now);
        }
    }

    /// A pattern has lost its last listener.
    fn end_pattern(&mut self, pattern: &Pattern, now: Now) {
        if self.interest.watchers.is_empty() {
            self.interest.settle(pattern, false);
        } else {
            self.interest.end(pattern, now.mono_ms);
        }
    }

    /// A shard that gave up is told nothing more, and nobody waits for it. The sweep closes what it listened to.
    pub fn abandon(&mut self, shard: u8) {
        self.feed.abandon(shard);
        self.connection_count.leave_all(shard);
        if let Some(journal) = &mut self.journal {
            self.wakes |= journal.abandon(shard);
        }
    }

    /// Closes the patterns of shards that gave up, and lets go of their publishers' and their clients' places.
    pub(super) fn sweep_patterns(&mut self, now: Now) {
        let fresh = self.feed.abandoned & !self.closed;
        if fresh == 0 {
            return;
        }
        self.closed |= fresh;
        self.interest.watchers.clear(fresh);
        self.publishers.abandon(fresh, now.mono_ms as i64);
        self.abandon_clients(fresh, now);
        for pattern in self.directory.clear(fresh) {
            self.end_pattern(&pattern, now);
        }
    }

    /// Closes a log's listeners on shards that gave up.
    pub(super) fn sweep_listeners(&mut self, slot: u32, now: Now) {
        let abandoned = self.feed.abandoned;
        let Some(log) = self.names.log_at_mut(slot).filter(|log| log.listeners.mask() & abandoned != 0) else { return };
        log.listeners.clear(abandoned);
        if log.listeners.is_empty()
            && let Some(id) = self.names.id_at(slot)
        {
            self.quiet(id, now);
        }
    }

    /// Tells `shard` of interest in whatever overlaps `pattern`, from now on; counted.
    pub fn watch(&mut self, shard: u8, pattern: &Pattern) -> Result<(), Refusal> {
        if bit(shard) != 0 {
            self.check_size(pattern, &self.interest.watchers)?;
            self.interest.watchers.add(shard, pattern);
        }
        Ok(())
    }

    /// Refuses a pattern that is too deep.
    pub fn check_depth(&self, pattern: &Pattern) -> Result<(), Refusal> {
        let most = self.limits.pattern_segments_max;
        if pattern.has_wildcard() && segments(pattern.text()).count() > most {
            let why = format!("the pattern has more than {most} segments (limits.pattern_segments_max)");
            return Err(Refusal::new(Code::PatternInvalid, why));
        }
        Ok(())
    }

    /// Refuses a pattern that is too deep, or for which `directory` has no room.
    fn check_size(&self, pattern: &Pattern, directory: &Directory) -> Result<(), Refusal> {
        self.check_depth(pattern)?;
        if !directory.has_room(pattern, self.limits.patterns_bytes_max) {
            let why = "the patterns of all clients have reached limits.patterns_bytes_max";
            return Err(Refusal::new(Code::StreamsTooMany, why));
        }
        Ok(())
    }

    pub fn unwatch(&mut self, shard: u8, pattern: &Pattern) {
        self.interest.watchers.remove(shard, pattern);
    }

    /// Selectors after `after`, in name order, that overlap `pattern` and that somebody listens to. Returns where to go on
    /// when not all were looked at; a call looks at a bounded number of names, and may find none among them.
    pub fn interest_state(
        &self,
        pattern: &Pattern,
        after: Option<&str>,
        limit: usize,
        out: &mut Vec<Arc<str>>,
    ) -> Option<Arc<str>> {
        let mut subjects = self.names.range(pattern, after).peekable();
        let mut patterns = self.interest.patterns(after).peekable();
        let (mut looks, mut found) = (looks_for(limit), 0);
        loop {
            let takes_pattern = match (subjects.peek(), patterns.peek()) {
                (None, None) => return None,
                (Some((name, _)), Some(other)) => other.text() < &***name,
                (subject, _) => subject.is_none(),
            };
            let (name, is_wanted): (Arc<str>, bool) = if takes_pattern {
                let other = patterns.next()?;
                (other.text().into(), other.overlaps(pattern))
            } else {
                let (name, slot) = subjects.next()?;
                let has_listeners = self.names.log_at(slot).is_some_and(|log| log.is_announced);
                (Arc::clone(name), has_listeners && pattern.matches(name))
            };
            if is_wanted {
                out.push(Arc::clone(&name));
                found += 1;
            }
            looks -= 1;
            if found == limit || looks == 0 {
                return Some(name);
            }
        }
    }

    /// Subjects after `after`, in name order, that `pattern` holds. Returns where to go on when not all were looked at; a call
    /// looks at a bounded number of names, and may find none among them.
    pub fn names(
        &self,
        pattern: &Pattern,
        after: Option<&str>,
        limit: usize,
        out: &mut Vec<(Arc<str>, LogId)>,
    ) -> Option<Arc<str>> {
        let (mut looks, mut found) = (looks_for(limit), 0);
        for (name, slot) in self.names.range(pattern, after) {
            if pattern.matches(name)
                && let Some(id) = self.names.id_at(slot)
            {
                out.push((Arc::clone(name), id));
                found += 1;
            }
            looks -= 1;
            if found == limit || looks == 0 {
                return Some(Arc::clone(name));
            }
        }
        None
    }

    /// Shards that were told something since this was last asked, beside those that `append` returned: wake them.
    pub fn take_wakes(&mut self) -> u64 {
        std::mem::take(&mut self.wakes)
    }

    /// Settles, one by one, what lost its listeners a moment ago. At most `count`; true when more may be due.
    pub(super) fn sweep_interest(&mut self, mono_ms: u64, count: usize) -> bool {
        for _ in 0..count {
            match self.interest.take_due(mono_ms) {
                None => return false,
                Some(Leaving::Log(id)) => {
                    let Some(log) = self.names.get_mut(id) else { continue };
                    log.is_leaving = false;
                    if !log.listeners.is_empty() || !std::mem::take(&mut log.is_announced) {
                        continue;
                    }
                    let name = Arc::clone(&log.subject);
                    let mask = self.interest.watchers.mask(&name);
                    self.tell_interest(mask, name, false);
                }
                Some(Leaving::Pattern(pattern)) => {
                    if self.interest.settle(&pattern, self.directory.contains(&pattern)) {
                        let mask = self.interest.watchers.overlapping_mask(&pattern);
                        self.tell_interest(mask, pattern.text().into(), false);
                    }
                }
            }
        }
        true
    }

    fn tell_interest(&mut self, mask: u64, selector: Arc<str>, has_subscribers: bool) {
        if mask != 0 {
            let arrival = self.index.head();
            self.wakes |= self.feed.push(mask, &Entry::Interest { selector, has_subscribers, arrival });
        }
    }
}

pub(super) fn looks_for(limit: usize) -> usize {
    limit.saturating_mul(LOOKS_EACH).max(LOOKS_MIN)
}
