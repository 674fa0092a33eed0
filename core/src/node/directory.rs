//! Who listens to what, as far as patterns go: a tree of segments, in which one walk finds all patterns that hold a subject.
//! The walk visits a node at most once, so that its cost is bounded by the patterns, not by what a subject could mean.
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::Hasher;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use super::listeners::Listeners;
use crate::subject::{Pattern, is_own, segments};

const ROOT: u32 = 0;
/// Branches that one walk visits at most: past them every shard with a listener is woken, and judges by its own patterns.
const VISITS_MAX: usize = 4096;
/// What a segment takes that no other pattern shares: a branch, and an edge in a table that is half empty at worst.
const SEGMENT_BYTES: usize = size_of::<Branch>() + 2 * size_of::<Edge>();

impl Borrow<str> for Pattern {
    fn borrow(&self) -> &str {
        self.text()
    }
}

#[derive(Debug, Default)]
struct Branch {
    /// Patterns that end here.
    listeners: Listeners,
    /// Patterns that pass or end here.
    uses: u32,
    /// Where `*` leads; 0 nowhere.
    any: u32,
    /// Where `**` leads; 0 nowhere.
    rest: u32,
}

#[derive(Debug)]
struct Edge {
    hash: u64,
    parent: u32,
    child: u32,
    segment: Box<str>,
}

#[derive(Debug)]
pub(super) struct Directory {
    secret: (u64, u64),
    branches: Vec<Branch>,
    free: Vec<u32>,
    edges: HashTable<Edge>,
    /// Every pattern with a listener, and the branch where it ends.
    patterns: BTreeMap<Pattern, u32>,
    /// Listeners of all patterns by shard.
    listeners: Listeners,
    /// At most what the patterns and their branches take.
    bytes: usize,
    /// Changes whenever what `mask` says may change; 0 never.
    version: u32,
}

impl Directory {
    pub(super) fn new(secret: (u64, u64)) -> Self {
        let (edges, patterns) = (HashTable::new(), BTreeMap::new());
        let (branches, listeners) = (vec![Branch::default()], Listeners::default());
        Self { secret, branches, free: Vec::new(), edges, patterns, listeners, bytes: 0, version: 1 }
    }

    pub(super) fn version(&self) -> u32 {
        self.version
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(super) fn contains(&self, pattern: &Pattern) -> bool {
        self.patterns.contains_key(pattern)
    }

    pub(super) fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether a pattern has room: it is here already, or takes no more than what is left of `bytes_max`.
    pub(super) fn has_room(&self, pattern: &Pattern, bytes_max: usize) -> bool {
        self.contains(pattern) || self.bytes + measure(pattern) <= bytes_max
    }

    /// One more listener. True when the pattern had none on any shard.
    pub(super) fn add(&mut self, shard: u8, pattern: &Pattern) -> bool {
        let known = self.patterns.get(pattern).copied();
        let end = known.unwrap_or_else(|| self.grow(pattern));
        if known.is_none() {
            self.patterns.insert(pattern.clone(), end);
            self.bytes += measure(pattern);
        }
        self.listeners.add(shard);
        if self.branches.get_mut(end as usize).is_some_and(|branch| branch.listeners.add(shard)) {
            self.turn();
        }
        known.is_none()
    }

    /// One listener less. True when it was the last on all shards.
    pub(super) fn remove(&mut self, shard: u8, pattern: &Pattern) -> bool {
        let Some(&end) = self.patterns.get(pattern) else { return false };
        let Some(branch) = self.branches.get_mut(end as usize) else { return false };
        if !branch.listeners.has(shard) {
            return false;
        }
        self.listeners.remove(shard);
        if !branch.listeners.remove(shard) {
            return false;
        }
        let is_last = branch.listeners.is_empty();
        self.turn();
        if is_last {
            self.forget(pattern);
        }
        is_last
    }

    /// No listener any more on any of these shards; returns the patterns that lost their last.
    pub(super) fn clear(&mut self, mask: u64) -> Vec<Pattern> {
        let mut emptied = Vec::new();
        for (pattern, end) in &self.patterns {
            let Some(branch) = self.branches.get_mut(*end as usize) else { continue };
            branch.listeners.clear(mask);
            if branch.listeners.is_empty() {
                emptied.push(pattern.clone());
            }
        }
        for pattern in &emptied {
            self.forget(pattern);
        }
        self.listeners.clear(mask);
        self.turn();
        emptied
    }

    /// The shards with a listener to a pattern that holds `subject`; where that takes too long, all with a listener.
    pub(super) fn mask(&self, subject: &str) -> u64 {
        if self.patterns.is_empty() {
            return 0;
        }
        let mut visits = VISITS_MAX;
        let mask = self.collect(ROOT, subject.get(1..), is_own(subject), &mut visits);
        if visits == 0 { self.listeners.mask() } else { mask }
    }

    /// The shards with a listener to a pattern that overlaps `pattern`.
    pub(super) fn overlapping_mask(&self, pattern: &Pattern) -> u64 {
        self.patterns
            .iter()
            .filter(|(known, _)| known.overlaps(pattern))
            .filter_map(|(_, end)| self.branches.get(*end as usize))
            .fold(0, |mask, branch| mask | branch.listeners.mask())
    }

    fn forget(&mut self, pattern: &Pattern) {
        self.patterns.remove(pattern);
        self.bytes -= measure(pattern);
        self.prune(pattern);
    }

    fn turn(&mut self) {
        self.version = self.version.wrapping_add(1).max(1);
    }

    /// `rest` is what follows the branch's slash; none at a subject's end.
    fn collect(&self, at: u32, rest: Option<&str>, skips_wildcards: bool, visits: &mut usize) -> u64 {
        *visits = visits.saturating_sub(1);
        if *visits == 0 {
            return 0;
        }
        let Some(branch) = self.branches.get(at as usize) else { return 0 };
        let mut mask = 0;
        if branch.rest != 0 && !skips_wildcards {
            mask |= self.branches.get(branch.rest as usize).map_or(0, |rest| rest.listeners.mask());
        }
        let Some(rest) = rest else { return mask | branch.listeners.mask() };
        let (segment, rest) = match rest.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (rest, None),
        };
        if branch.any != 0 && !skips_wildcards {
            mask |= self.collect(branch.any, rest, false, visits);
        }
        if let Some(child) = self.child(at, segment) {
            mask |= self.collect(child, rest, false, visits);
        }
        mask
    }

    /// Where a segment that is no wildcard leads.
    fn child(&self, parent: u32, segment: &str) -> Option<u32> {
        let hash = self.hash(parent, segment);
        let edge = self.edges.find(hash, |edge| edge.parent == parent && &*edge.segment == segment)?;
        Some(edge.child)
    }

    fn next(&self, parent: u32, segment: &str) -> Option<u32> {
        let branch = self.branches.get(parent as usize)?;
        match segment {
            "*" => (branch.any != 0).then_some(branch.any),
            "**" => (branch.rest != 0).then_some(branch.rest),
            _ => self.child(parent, segment),
        }
    }

    fn grow(&mut self, pattern: &Pattern) -> u32 {
        let mut at = ROOT;
        for segment in segments(pattern.text()) {
            at = self.next(at, segment).unwrap_or_else(|| self.sprout(at, segment));
            if let Some(branch) = self.branches.get_mut(at as usize) {
                branch.uses += 1;
            }
        }
        at
    }

    fn sprout(&mut self, parent: u32, segment: &str) -> u32 {
        let child = self.free.pop().unwrap_or_else(|| {
            self.branches.push(Branch::default());
            (self.branches.len() - 1) as u32
        });
        self.lead(parent, segment, child);
        child
    }

    fn lead(&mut self, parent: u32, segment: &str, child: u32) {
        let hash = self.hash(parent, segment);
        match (segment, self.branches.get_mut(parent as usize)) {
            ("*", Some(branch)) => branch.any = child,
            ("**", Some(branch)) => branch.rest = child,
            _ => {
                let edge = Edge { hash, parent, child, segment: segment.into() };
                self.edges.insert_unique(hash, edge, |edge| edge.hash);
            }
        }
    }

    fn prune(&mut self, pattern: &Pattern) {
        let mut at = ROOT;
        for segment in segments(pattern.text()) {
            let Some(child) = self.next(at, segment) else { return };
            let Some(branch) = self.branches.get_mut(child as usize) else { return };
            branch.uses -= 1;
            if branch.uses == 0 {
                self.cut(at, segment);
                self.free.push(child);
            }
            at = child;
        }
    }

    fn cut(&mut self, parent: u32, segment: &str) {
        let hash = self.hash(parent, segment);
        match (segment, self.branches.get_mut(parent as usize)) {
            ("*", Some(branch)) => branch.any = 0,
            ("**", Some(branch)) => branch.rest = 0,
            _ => {
                let is_it = |edge: &Edge| edge.parent == parent && &*edge.segment == segment;
                if let Ok(found) = self.edges.find_entry(hash, is_it) {
                    found.remove();
                }
            }
        }
    }

    fn hash(&self, parent: u32, segment: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1 ^ u64::from(parent));
        hasher.write(segment.as_bytes());
        hasher.finish()
    }
}

/// Bytes of a pattern: its text in the list and again in edges, and a branch for each segment.
fn measure(pattern: &Pattern) -> usize {
    2 * pattern.text().len() + segments(pattern.text()).count() * SEGMENT_BYTES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Directory, Pattern};
    use crate::node::listeners::bit;

    fn any_name(segments: &'static [&'static str]) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(segments), 1..5).prop_map(|names| format!("/{}", names.join("/")))
    }

    #[test]
    fn a_walk_ends_however_the_patterns_branch() {
        let mut directory = Directory::new((1, 2));
        for which in 0..1_u32 << 13 {
            let names: Vec<_> = (0..13).map(|bit| if which >> bit & 1 == 0 { "*" } else { "a" }).collect();
            directory.add(1, &Pattern::parse(&format!("/{}/b", names.join("/"))).unwrap());
        }
        directory.add(2, &Pattern::parse("/b/*").unwrap());
        let mut visits = super::VISITS_MAX;
        let deep = format!("/{}", ["a"; 14].join("/"));
        directory.collect(super::ROOT, deep.get(1..), false, &mut visits);
        assert_eq!(visits, 0);
        // Nothing holds this subject. As the walk would visit 16,383 branches to see that, both shards are woken.
        assert_eq!(directory.mask(&deep), bit(1) | bit(2));
        assert_eq!(directory.mask("/b/c"), bit(2));
    }

    proptest! {
        #[test]
        fn the_tree_finds_what_a_list_of_patterns_finds(
            steps in prop::collection::vec((0..3_u8, any_name(&["a", "b", "$s", "*", "**"]), any::<usize>()), 1..60),
            subjects in prop::collection::vec(any_name(&["a", "b", "c", "$s"]), 20),
        ) {
            let mut directory = Directory::new((1, 2));
            let mut list: Vec<(u8, Pattern)> = Vec::new();
            for (shard, text, which) in steps {
                let version = directory.version();
                let before: Vec<u64> = subjects.iter().map(|subject| directory.mask(subject)).collect();
                if let (0, Some(at)) = (which % 3, which.checked_rem(list.len())) {
                    let (shard, pattern) = list.swap_remove(at);
                    let is_last = !list.iter().any(|(_, other)| *other == pattern);
                    prop_assert_eq!(directory.remove(shard, &pattern), is_last);
                } else if let Ok(pattern) = Pattern::parse(&text) {
                    let is_first = !list.iter().any(|(_, other)| *other == pattern);
                    prop_assert_eq!(directory.add(shard, &pattern), is_first);
                    list.push((shard, pattern));
                }
                for (subject, before) in subjects.iter().zip(before) {
                    let held = list.iter().filter(|(_, pattern)| pattern.matches(subject));
                    let mask = held.fold(0, |mask, (shard, _)| mask | bit(*shard));
                    prop_assert_eq!(directory.mask(subject), mask, "{}", subject);
                    prop_assert!(mask == before || directory.version() != version);
                }
                for (_, pattern) in &list {
                    let others = list.iter().filter(|(_, other)| other.overlaps(pattern));
                    let mask = others.fold(0, |mask, (shard, _)| mask | bit(*shard));
                    prop_assert_eq!(directory.overlapping_mask(pattern), mask);
                }
            }
            for (shard, pattern) in list {
                directory.remove(shard, &pattern);
            }
            // Everything was pruned: the root alone is in use.
            prop_assert_eq!(directory.free.len() + 1, directory.branches.len());
            prop_assert!(directory.is_empty() && directory.edges.is_empty());
            prop_assert!(directory.bytes == 0 && directory.listeners.is_empty());
        }
    }
}
