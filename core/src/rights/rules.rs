//! The rules of one identity, compiled: the most specific first, and a tree of their segments, so that a publish looks at the places
//! that its subject's segments lead to, however many rules there are. Shared by all connections that were granted the same.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use super::{Action, Rule, Verdict, strictness};
use crate::codes::Code;
use crate::command::Refusal;
use crate::subject::{is_own, segments};

/// Fewer rules are looked through one by one.
const INDEXED_MIN: usize = 8;
/// No rule; also greater than the place of any.
const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;
/// Places that one subject may lead to. Rules that combine names and `*` in k segments lead to 2^k.
const LOOKS_MAX: u32 = 1_024;

/// See the module.
#[derive(Debug, Default)]
pub struct Rules {
    /// The most specific first, of equally specific ones the strictest: the first that holds a subject decides.
    all: Vec<Rule>,
    tree: Vec<Branch>,
}

/// Where the patterns that begin with the same segments part.
#[derive(Debug)]
struct Branch {
    names: BTreeMap<Box<str>, u32>,
    /// Behind `*`.
    any: u32,
    /// For each action the first rule in `all` that ends here, and the first that ends here with `**`.
    ends: [u32; 2],
    rest: [u32; 2],
}

impl Branch {
    const fn new() -> Self {
        Self { names: BTreeMap::new(), any: NONE, ends: [NONE; 2], rest: [NONE; 2] }
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Rules {
    /// Refuses rules that make a subject lead to too many places: each publish would look at all of them.
    pub(super) fn new(mut all: Vec<Rule>) -> Result<Self, Refusal> {
        all.sort_by(|a, b| {
            let specificity = b.pattern.compare_specificity(&a.pattern);
            specificity.then(strictness(b.verdict).cmp(&strictness(a.verdict)))
        });
        let mut rules = Self { all, tree: Vec::new() };
        if rules.all.len() >= INDEXED_MIN {
            rules.tree.push(Branch::new());
            for place in 0..rules.all.len() {
                rules.plant(place);
            }
        }
        if rules.looks_max() > LOOKS_MAX {
            let reason = format!("rules whose wildcards combine in more than {LOOKS_MAX} ways for one subject");
            return Err(Refusal::new(Code::FieldInvalid, reason));
        }
        Ok(rules)
    }

    /// The most places that any subject leads to, or more.
    fn looks_max(&self) -> u32 {
        let mut most = vec![0_u32; self.tree.len()];
        // whatever lies behind a branch was made after it
        for (place, branch) in self.tree.iter().enumerate().rev() {
            let of = |behind: u32| most.get(behind as usize).copied().unwrap_or_default();
            let by_name = branch.names.values().map(|&behind| of(behind)).max().unwrap_or_default();
            let looks = by_name.saturating_add(of(branch.any)).saturating_add(1);
            if let Some(most) = most.get_mut(place) {
                *most = looks;
            }
        }
        most.first().copied().unwrap_or_default()
    }

    fn plant(&mut self, place: usize) {
        let Some(rule) = self.all.get(place) else { return };
        let (mut here, mut is_rest) = (ROOT, false);
        for segment in segments(rule.pattern.text()) {
            if segment == "**" {
                is_rest = true;
                break;
            }
            let next = self.tree.len() as u32;
            let Some(branch) = self.tree.get_mut(here as usize) else { return };
            let known = if segment == "*" {
                if branch.any == NONE {
                    branch.any = next;
                }
                branch.any
            } else {
                *branch.names.entry(segment.into()).or_insert(next)
            };
            if known == next {
                self.tree.push(Branch::new());
            }
            here = known;
        }
        let Some(branch) = self.tree.get_mut(here as usize) else { return };
        let firsts = if is_rest { &mut branch.rest } else { &mut branch.ends };
        for action in [Action::Subscribe, Action::Publish].into_iter().filter(|&action| rule.concerns(action)) {
            let first = &mut firsts[action as usize];
            *first = (*first).min(place as u32);
        }
    }

    pub(super) fn of(&self, action: Action) -> impl Iterator<Item = &Rule> {
        self.all.iter().filter(move |rule| rule.concerns(action))
    }

    /// What the most specific rule that holds a subject says.
    pub(super) fn judge(&self, action: Action, subject: &str) -> Verdict {
        let first = if self.tree.is_empty() {
            self.of(action).find(|rule| rule.pattern.matches(subject))
        } else {
            self.all.get(self.find(action, subject).0 as usize)
        };
        first.map_or(Verdict::Deny, |rule| rule.verdict)
    }

    /// The place of the first rule that holds a subject, and how many branches were looked at.
    fn find(&self, action: Action, subject: &str) -> (u32, usize) {
        let action = action as usize;
        let (mut found, mut looks) = (NONE, 0);
        // No leading wildcard holds the server's own subjects.
        let (mut level, mut next, mut holds_wildcards) = (vec![ROOT], Vec::new(), !is_own(subject));
        for segment in segments(subject) {
            for branch in level.drain(..).filter_map(|place| self.tree.get(place as usize)) {
                looks += 1;
                next.extend(branch.names.get(segment).copied());
                if holds_wildcards {
                    found = found.min(branch.rest[action]);
                    next.extend(Some(branch.any).filter(|&any| any != NONE));
                }
            }
            holds_wildcards = true;
            std::mem::swap(&mut level, &mut next);
        }
        for branch in level.into_iter().filter_map(|place| self.tree.get(place as usize)) {
            looks += 1;
            found = found.min(branch.ends[action]).min(branch.rest[action]);
        }
        (found, looks)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RuleSettings;

    fn compile(patterns: impl Iterator<Item = String>) -> Result<Rules, Refusal> {
        let rule = |pattern| RuleSettings { pattern, actions: "both".into(), verdict: "allow".into() };
        Rules::new(patterns.map(|pattern| Rule::compile(&rule(pattern)).expect("a rule")).collect())
    }

    fn rules(patterns: impl Iterator<Item = String>) -> Rules {
        compile(patterns).unwrap_or_else(|refusal| panic!("{}", refusal.reason))
    }

    /// All ways to write `*` or a name in each of k segments.
    fn combine(segments: u32) -> impl Iterator<Item = String> {
        let word = move |bits: u32| (0..segments).map(move |at| if bits >> at & 1 == 1 { "/*" } else { "/a" });
        (0..1_u32 << segments).map(move |bits| word(bits).collect())
    }

    #[test]
    fn rules_that_combine_wildcards_without_end_are_refused_and_others_cost_what_was_counted() {
        assert!(compile(combine(13)).is_err() && compile(combine(10)).is_err());
        for most in [rules(combine(8)), rules((0..10_000).map(|number| format!("/*/{number}/*")))] {
            for subject in ["/a/a/a/a/a/a/a/a", "/b/a/b/a/b/a/b/a", "/x/7/y"] {
                assert!(most.find(Action::Publish, subject).1 <= most.looks_max() as usize);
            }
        }
    }

    #[test]
    fn a_publish_looks_at_as_many_places_as_its_subject_leads_to_whatever_the_rules_are() {
        for shape in ["/rooms/N/**", "/*/N/state", "/rooms/*/N/*", "/N", "/a/b/c/N/d/**"] {
            let many = rules((0..10_000).map(|number| shape.replace('N', &number.to_string())));
            let subject = shape.replace('N', "7777").replace("/**", "/x/y").replace('*', "any");
            let (found, looks) = many.find(Action::Publish, &subject);
            assert!(many.all[found as usize].pattern.matches(&subject), "{shape}");
            assert!(looks <= 2 * segments(&subject).count() + 1, "{shape}: {looks}");
        }
    }
}
