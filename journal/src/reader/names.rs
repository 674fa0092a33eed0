//! Which subjects a sealed segment may have, in memory: a Bloom filter (Bloom, 1970) of each, made when its index is first read, so that who
//! looks for few messages in a long past opens few files. Owns its bound. It never denies what is there; of a segment without a filter the
//! index is read.
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One in some thousand of the others is taken for one that is there: (1 - e^(-6/16))^6.
const BITS_A_NAME: u64 = 16;
const PROBES: u64 = 6;
/// All filters together. 7 days of segments of a minute have 830 subjects each in so much.
const BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Names {
    bytes_max: usize,
    filters: Mutex<Filters>,
}

#[derive(Debug, Default)]
struct Filters {
    /// By the first offset of the segment.
    of: BTreeMap<u64, Box<[u64]>>,
    bytes: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self { bytes_max: BYTES_MAX, filters: Mutex::default() }
    }
}

impl Names {
    /// Whether a segment surely has nothing of a subject.
    pub(super) fn lacks(&self, first: u64, subject: &str) -> bool {
        self.lock().of.get(&first).is_some_and(|filter| {
            let mut places = places(subject, filter.len());
            places.any(|(word, bit)| filter.get(word).is_some_and(|word| word & bit == 0))
        })
    }

    /// Remembers the subjects of a segment, if there is room. `kept_from`: segments that began before it are gone.
    pub(super) fn add<'a>(&self, first: u64, count: usize, subjects: impl Iterator<Item = &'a str>, kept_from: u64) {
        let words = (count as u64 * BITS_A_NAME).div_ceil(64).max(1) as usize;
        let bytes = words * size_of::<u64>();
        let mut filters = self.lock();
        if filters.of.contains_key(&first) || !filters.make_room(bytes, kept_from, self.bytes_max) {
            return;
        }
        let mut filter = vec![0; words].into_boxed_slice();
        for subject in subjects {
            for (word, bit) in places(subject, words) {
                filter.get_mut(word).into_iter().for_each(|word| *word |= bit);
            }
        }
        filters.bytes += bytes;
        filters.of.insert(first, filter);
    }

    fn lock(&self) -> MutexGuard<'_, Filters> {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filters {
    fn make_room(&mut self, bytes: usize, kept_from: u64, bytes_max: usize) -> bool {
        if self.bytes + bytes > bytes_max {
            self.of = self.of.split_off(&kept_from);
            self.bytes = self.of.values().map(|filter| size_of_val(&**filter)).sum();
        }
        self.bytes + bytes <= bytes_max
    }
}

/// The bits of a subject, as word and mask (Kirsch and Mitzenmacher, 2006: two hashes do for any number).
fn places(subject: &str, words: usize) -> impl Iterator<Item = (usize, u64)> {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    let hash = hasher.finish();
    let (begin, step) = (hash, hash.rotate_left(32) | 1);
    (0..PROBES).map(move |probe| {
        let bit = begin.wrapping_add(step.wrapping_mul(probe)) % (words as u64 * 64);
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::Names;

    fn add(names: &Names, first: u64, subjects: &[String], kept_from: u64) {
        names.add(first, subjects.len(), subjects.iter().map(String::as_str), kept_from);
    }

    #[test]
    fn what_is_there_is_never_denied_and_nearly_all_else_is() {
        let names = Names::default();
        for count in [0, 1, 2, 1000] {
            let there: Vec<String> = (0..count).map(|n| format!("/room/{n}")).collect();
            add(&names, count, &there, 0);
            assert!(!there.iter().any(|subject| names.lacks(count, subject)));
            let denied = (0..10_000).filter(|n| names.lacks(count, &format!("/other/{n}"))).count();
            assert!(denied > 9_950, "{denied} of 10,000 with {count}");
        }
        assert!(!names.lacks(7, "/room/1"), "of that segment nothing is known");
    }

    #[test]
    fn filters_are_bounded_and_those_of_segments_that_are_gone_make_room() {
        let names = Names { bytes_max: 24, ..Names::default() };
        let one = ["/a".to_owned()];
        for first in 0..5 {
            add(&names, first, &one, 0);
        }
        assert_eq!([0, 2, 3].map(|first| names.lacks(first, "/b")), [true, true, false]);
        add(&names, 5, &one, 2);
        assert_eq!([0, 2, 5].map(|first| names.lacks(first, "/b")), [false, true, true]);
    }
}
