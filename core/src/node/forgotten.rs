//! Which subjects were forgotten, and up to which arrival they had messages: a resume token before that is lost for the patterns that
//! hold the subject, and for no others. Bounded: where the oldest no longer stand here, a resume token before them is lost for all.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::position::Position;
use crate::subject::Pattern;

const NAMES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Forgotten {
    names: VecDeque<(u64, Arc<str>)>,
    /// Of each of them: the arrival and the position of its last message.
    heads: HashMap<Arc<str>, (u64, Position)>,
    /// The highest arrival here.
    newest: u64,
    /// A resume token before it is lost whatever the pattern.
    base: u64,
}

impl Forgotten {
    pub(super) fn add(&mut self, last_arrival: u64, subject: Arc<str>, at: Position) {
        if self.names.len() >= NAMES_MAX
            && let Some((arrival, name)) = self.names.pop_front()
        {
            self.base = self.base.max(arrival);
            if self.heads.get(&name).is_some_and(|(last, _)| *last == arrival) {
                self.heads.remove(&name);
            }
        }
        self.newest = self.newest.max(last_arrival);
        self.heads.insert(Arc::clone(&subject), (last_arrival, at));
        self.names.push_back((last_arrival, subject));
    }

    /// Where a subject ended that comes back: the arrival and the position of its last message.
    pub(super) fn head(&self, subject: &str) -> Option<(u64, Position)> {
        self.heads.get(subject).copied()
    }

    /// Nobody knows what there was up to this arrival: a resume token before it is lost whatever the pattern.
    pub(super) fn raise(&mut self, arrival: u64) {
        self.base = self.base.max(arrival);
        self.newest = self.newest.max(arrival);
    }

    /// How many names it takes to answer a question about what came after `arrival`.
    pub(super) fn looks(&self, arrival: u64) -> usize {
        if arrival < self.newest { self.names.len() } else { 0 }
    }

    /// Whether a subject that `pattern` holds had messages after `arrival` and was forgotten.
    pub(super) fn concerns(&self, pattern: &Pattern, arrival: u64) -> bool {
        self.any_after(arrival, |name| pattern.matches(name))
    }

    /// The same of one subject.
    pub(super) fn has(&self, subject: &str, arrival: u64) -> bool {
        self.any_after(arrival, |name| name == subject)
    }

    /// The last arrival after this one that a subject of `pattern` had that was forgotten; `with_base`: of whichever subject, where nobody knows.
    pub(super) fn last_of(&self, pattern: &Pattern, arrival: u64, with_base: bool) -> Option<u64> {
        if arrival >= self.newest {
            return None;
        }
        let named = self.names.iter().filter(|(last, name)| *last > arrival && pattern.matches(name));
        let base = Some(self.base).filter(|base| with_base && *base > arrival);
        named.map(|(last, _)| *last).max().max(base)
    }

    fn any_after(&self, arrival: u64, is_one: impl Fn(&str) -> bool) -> bool {
        let has_name = || self.names.iter().any(|(last, name)| *last > arrival && is_one(name));
        arrival < self.newest && (arrival < self.base || has_name())
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }
}

#[cfg(test)]
mod tests {
    use super::{Forgotten, NAMES_MAX, Pattern, Position};

    #[test]
    fn what_no_longer_stands_here_is_lost_for_all_patterns() {
        let pattern = |text: &str| Pattern::parse(text).unwrap();
        let mut forgotten = Forgotten::default();
        let at = Position { epoch: 7, sequence: 3 };
        forgotten.add(10, "/a/1".into(), at);
        forgotten.add(5, "/b/1".into(), at);
        assert!(forgotten.concerns(&pattern("/a/*"), 9) && !forgotten.concerns(&pattern("/a/*"), 10));
        assert!(forgotten.concerns(&pattern("/b/*"), 4) && !forgotten.concerns(&pattern("/b/*"), 5));
        for more in 0..NAMES_MAX as u64 {
            forgotten.add(20 + more, "/c".into(), at);
        }
        assert_eq!(forgotten.base(), 10);
        assert_eq!((forgotten.head("/a/1"), forgotten.head("/c").map(|head| head.1)), (None, Some(at)));
        assert!(forgotten.concerns(&pattern("/d"), 9) && !forgotten.concerns(&pattern("/d"), 10));
    }
}
