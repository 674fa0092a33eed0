//! Merging of objects: the snapshot's and conflation's union of latest fields. Top-level fields only.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Members, unescape};

/// Up to this many fields a linear search is faster than a hash map.
const LINEAR_FIELDS_MAX: usize = 24;

struct Fields<'a> {
    /// Key without escapes, key as written, value as written.
    rows: Vec<(Cow<'a, str>, &'a str, &'a str)>,
    index: HashMap<Cow<'a, str>, usize>,
}

impl<'a> Fields<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut fields = Self { rows: Vec::with_capacity(8), index: HashMap::new() };
        for member in Members::new(text, usize::MAX) {
            let (raw, value) = member.ok()?;
            fields.put(raw, value);
        }
        Some(fields)
    }

    fn place(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() { self.rows.iter().position(|row| row.0 == key) } else { self.index.get(key).copied() }
    }

    fn put(&mut self, raw: &'a str, value: &'a str) {
        let key = unescape(raw);
        if let Some(place) = self.place(&key) {
            if let Some(row) = self.rows.get_mut(place) {
                row.2 = value;
            }
            return;
        }
        if !self.index.is_empty() {
            self.index.insert(key.clone(), self.rows.len());
        }
        self.rows.push((key, raw, value));
        if self.index.is_empty() && self.rows.len() > LINEAR_FIELDS_MAX {
            self.index = self.rows.iter().enumerate().map(|(place, row)| (row.0.clone(), place)).collect();
        }
    }
}

/// The union of the latest fields of two JSON texts: `old`'s fields in their order, with `new`'s values where it has them,
/// then `new`'s other fields. None when it is `new` itself: either is no object, or `new` has every field of `old`.
#[must_use]
pub fn merge(old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    if !old.trim_ascii_start().starts_with(b"{") || !new.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let mut union = Fields::read(old)?;
    let latest = Fields::read(new)?;
    if union.rows.iter().all(|row| latest.place(&row.0).is_some()) {
        return None;
    }
    for (_, raw, value) in &latest.rows {
        union.put(raw, value);
    }
    let mut out = Vec::with_capacity(old.len() + new.len());
    for (place, (_, raw, value)) in union.rows.iter().enumerate() {
        out.extend_from_slice(if place == 0 { b"{\"" } else { b",\"" });
        out.extend_from_slice(raw.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
    Some(out)
}
