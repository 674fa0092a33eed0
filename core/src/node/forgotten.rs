//! Which subjects were forgotten, and up to which arrival they had messages: a resume token before that is lost for the patterns that
//! hold the subject, and for no others. Bounded: where the oldest no longer stand here, a resume token before them is lost for all.
use std::collections::VecDeque;
use std::sync::Arc;

use crate::subject::Pattern;

const NAMES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Forgotten {
    names: VecDeque<(u64, Arc<str>)>,
    /// The highest arrival here.
    newest: u64,
    /// A resume token before it is lost whatever the pattern.
    base: u64,
}

impl Forgotten {
    pub(super) fn add(&mut self, last_arrival: u64, subject: Arc<str>) {
        if self.names.len() >= NAMES_MAX
            && let Some((arrival, _)) = self.names.pop_front()
        {
            self.base = self.base.max(arrival);
        }
        self.newest = self.newest.max(last_arrival);
        self.names.push_back((last_arrival, subject));
    }

    /// Nobody knows what there was up to this arrival: a resume token before it is lost whatever the pattern.
    pub(super) fn raise(&mut self, arrival: u64) {
        self.base = self.base.max(arrival);
        self.newest = self.newest.max(arrival);
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
    use super::{Forgotten, NAMES_MAX, Pattern};

    #[test]
    fn what_no_longer_stands_here_is_lost_for_all_patterns() {
        let pattern = |text: &str| Pattern::parse(text).unwrap();
        let mut forgotten = Forgotten::default();
        forgotten.add(10, "/a/1".into());
        forgotten.add(5, "/b/1".into());
        assert!(forgotten.concerns(&pattern("/a/*"), 9) && !forgotten.concerns(&pattern("/a/*"), 10));
        assert!(forgotten.concerns(&pattern("/b/*"), 4) && !forgotten.concerns(&pattern("/b/*"), 5));
        for more in 0..NAMES_MAX as u64 {
            forgotten.add(20 + more, "/c".into());
        }
        assert_eq!(forgotten.base(), 10);
        assert!(forgotten.concerns(&pattern("/d"), 9) && !forgotten.concerns(&pattern("/d"), 10));
    }
}
