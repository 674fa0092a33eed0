//! The rules of one identity, compiled: the most specific first, and an index by the text before a pattern's first wildcard, so that a
//! publish looks at as many places as its subject has segments, however many rules there are. Shared by all connections that were
//! granted the same.
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::{Action, Rule, Verdict, strictness};

/// Fewer rules are looked through one by one.
const INDEXED_MIN: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub struct Rules {
    /// The most specific first, of equally specific ones the strictest: the first that holds a subject decides.
    all: Vec<Rule>,
    /// By the pattern's text up to its first wildcard: places in `all`, rising.
    by_prefix: HashMap<Box<str>, Vec<u32>>,
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Rules {
    pub(super) fn new(mut all: Vec<Rule>) -> Self {
        all.sort_by(|a, b| {
            let specificity = b.pattern.compare_specificity(&a.pattern);
            specificity.then(strictness(b.verdict).cmp(&strictness(a.verdict)))
        });
        let mut by_prefix: HashMap<Box<str>, Vec<u32>> = HashMap::new();
        if all.len() >= INDEXED_MIN {
            for (place, rule) in all.iter().enumerate() {
                by_prefix.entry(Box::from(rule.pattern.prefix())).or_default().push(place as u32);
            }
        }
        Self { all, by_prefix }
    }

    pub(super) fn of(&self, action: Action) -> impl Iterator<Item = &Rule> {
        self.all.iter().filter(move |rule| rule.concerns(action))
    }

    /// What the most specific rule that holds a subject says.
    pub(super) fn judge(&self, action: Action, subject: &str) -> Verdict {
        let first = if self.by_prefix.is_empty() {
            self.of(action).find(|rule| rule.pattern.matches(subject))
        } else {
            self.first_indexed(action, subject).and_then(|place| self.all.get(place as usize))
        };
        first.map_or(Verdict::Deny, |rule| rule.verdict)
    }

    fn first_indexed(&self, action: Action, subject: &str) -> Option<u32> {
        let holds = |place: u32| {
            self.all.get(place as usize).is_some_and(|rule| rule.concerns(action) && rule.pattern.matches(subject))
        };
        let first_of = |prefix: &str| self.by_prefix.get(prefix)?.iter().copied().find(|&place| holds(place));
        let ends = subject.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at + 1);
        let prefixes = ends.filter_map(|end| subject.get(..end)).chain(std::iter::once(subject));
        // `/a/**` holds `/a`, too.
        let whole = format!("{subject}/");
        prefixes.chain(std::iter::once(&*whole)).filter_map(first_of).min()
    }
}

/// Rules that are in use, so that who is granted the same as somebody else holds them once.
#[derive(Debug, Default)]
pub struct SharedRules {
    by_shape: HashMap<(usize, u64), Vec<Weak<Rules>>>,
    /// Entries that were made since those that are in use no longer were let go of.
    made: usize,
}

impl SharedRules {
    /// The same rules, where they are in use already.
    pub fn share(&mut self, rules: Arc<Rules>) -> Arc<Rules> {
        let bytes: usize = rules.all.iter().map(|rule| rule.pattern.text().len()).sum();
        let shape = (rules.all.len(), bytes as u64);
        let alike = self.by_shape.entry(shape).or_default();
        if let Some(known) = alike.iter().filter_map(Weak::upgrade).find(|known| *known == rules) {
            return known;
        }
        alike.retain(|known| known.strong_count() > 0);
        alike.push(Arc::downgrade(&rules));
        self.made += 1;
        if self.made > 1_000 + self.by_shape.len() {
            self.made = 0;
            self.by_shape.retain(|_, alike| {
                alike.retain(|known| known.strong_count() > 0);
                !alike.is_empty()
            });
        }
        rules
    }
}
