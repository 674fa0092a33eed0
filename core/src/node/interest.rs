//! Interest: which selectors somebody listens to, told to the shards whose publishers watch. A state: first what is, then what
//! changes. That nobody listens any more is told a moment later, so that one who reconnects disturbs nobody.
use std::collections::{BTreeMap, VecDeque};

use super::directory::Directory;
use crate::message::LogId;
use crate::subject::Pattern;

/// Whose listeners left.
#[derive(Clone, Debug)]
pub(super) enum Leaving {
    Log(LogId),
    Pattern(Pattern),
}

#[derive(Debug)]
pub(super) struct Interest {
    pub(super) watchers: Directory,
    debounce_ms: u64,
    /// Patterns that watchers think somebody listens to; true while one waits in `leaving`.
    patterns: BTreeMap<Pattern, bool>,
    /// In the order in which they are due.
    leaving: VecDeque<(u64, Leaving)>,
}

impl Interest {
    pub(super) fn new(secret: (u64, u64), debounce_ms: u64) -> Self {
        let (patterns, leaving) = (BTreeMap::new(), VecDeque::new());
        Self { watchers: Directory::new(secret), debounce_ms, patterns, leaving }
    }

    /// A pattern has a first listener. True when watchers have to hear of it.
    pub(super) fn begin(&mut self, pattern: &Pattern) -> bool {
        if self.patterns.contains_key(pattern) {
            return false;
        }
        self.patterns.insert(pattern.clone(), false);
        true
    }

    /// A pattern's last listener left.
    pub(super) fn end(&mut self, pattern: &Pattern, mono_ms: u64) {
        match self.patterns.get_mut(pattern) {
            Some(is_leaving) if !*is_leaving => *is_leaving = true,
            _ => return,
        }
        self.leave(Leaving::Pattern(pattern.clone()), mono_ms);
    }

    /// A pattern's moment is over. True when watchers have to hear that nobody listens.
    pub(super) fn settle(&mut self, pattern: &Pattern, has_listeners: bool) -> bool {
        if has_listeners {
            self.patterns.insert(pattern.clone(), false);
            return false;
        }
        self.patterns.remove(pattern).is_some()
    }

    pub(super) fn leave(&mut self, who: Leaving, mono_ms: u64) {
        self.leaving.push_back((mono_ms.saturating_add(self.debounce_ms), who));
    }

    /// The next whose moment is over.
    pub(super) fn take_due(&mut self, mono_ms: u64) -> Option<Leaving> {
        if self.leaving.front().is_none_or(|(due_ms, _)| *due_ms > mono_ms) {
            return None;
        }
        self.leaving.pop_front().map(|(_, who)| who)
    }

    /// Patterns after `after`, in order, that somebody listens to.
    pub(super) fn patterns(&self, after: Option<&str>) -> impl Iterator<Item = &Pattern> {
        let start = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.patterns.range::<str, _>((start, std::ops::Bound::Unbounded)).map(|(pattern, _)| pattern)
    }
}
