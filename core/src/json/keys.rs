//! The keys of the objects that are open while a text is scanned, so that none stands twice in one object: two readers would take
//! two values. Keys are compared as what they mean, without escapes; many by a table, so that work stays linear.

use std::borrow::Cow;
use std::collections::HashSet;

use super::unescape;

/// Up to this many keys each is compared with each.
const LINEAR_KEYS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Depth of its object, and where the key begins and ends between its quotes.
    rows: Vec<(usize, usize, usize)>,
}

impl Keys {
    #[inline(always)]
    pub(super) fn add(&mut self, depth: usize, begin: usize, end: usize) {
        if self.rows.capacity() == 0 {
            self.rows.reserve(LINEAR_KEYS_MAX);
        }
        self.rows.push((depth, begin, end));
    }

    /// Forgets the keys of an object that ends; true where one stood twice.
    #[inline]
    pub(super) fn close(&mut self, bytes: &[u8], depth: usize) -> bool {
        let count = self.rows.iter().rev().take_while(|row| row.0 == depth).count();
        let own = self.rows.get(self.rows.len() - count..).unwrap_or(&[]);
        let is_repeated = count > 1 && is_any_repeated(bytes, own);
        self.rows.truncate(self.rows.len() - count);
        is_repeated
    }
}

fn is_any_repeated(bytes: &[u8], rows: &[(usize, usize, usize)]) -> bool {
    let raw = |row: &(usize, usize, usize)| bytes.get(row.1..row.2).unwrap_or(&[]);
    if rows.len() <= LINEAR_KEYS_MAX && !rows.iter().any(|row| raw(row).contains(&b'\\')) {
        return rows.iter().enumerate().any(|(at, row)| rows.iter().take(at).any(|before| raw(before) == raw(row)));
    }
    let mut seen: HashSet<Cow<'_, str>> = HashSet::with_capacity(rows.len());
    !rows.iter().all(|row| seen.insert(unescape(std::str::from_utf8(raw(row)).unwrap_or(""))))
}
