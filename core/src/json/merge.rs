//! Merging of objects: the snapshot's and conflation's union of latest fields. Top-level fields only.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Members, unescape};

/// Up to this many fields a linear search is faster than a hash map.
const LINEAR_FIELDS_MAX: usize = 24;

/// The fields of one or two objects: key and value as written.
struct Fields<'a> {
    rows: Vec<(&'a str, &'a str)>,
    /// Key without escapes to place, once there are many.
    index: HashMap<Cow<'a, str>, usize>,
    /// A key is written with escapes, so that keys are not simply their bytes.
    has_escapes: bool,
}

impl<'a> Fields<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut fields = Self { rows: Vec::with_capacity(16), index: HashMap::new(), has_escapes: false };
        for member in Members::new(text, usize::MAX) {
            let (key, value) = member.ok()?;
            fields.put(key, value);
        }
        Some(fields)
    }

    fn place(&self, key: &str) -> Option<usize> {
        if !self.index.is_empty() {
            return self.index.get(&unescape(key)).copied();
        }
        if !self.has_escapes && !key.contains('\\') {
            return self.rows.iter().position(|row| row.0 == key);
        }
        let key = unescape(key);
        self.rows.iter().position(|row| unescape(row.0) == key)
    }

    fn put(&mut self, key: &'a str, value: &'a str) {
        if let Some(row) = self.place(key).and_then(|place| self.rows.get_mut(place)) {
            row.1 = value;
            return;
        }
        self.has_escapes |= key.contains('\\');
        if !self.index.is_empty() {
            self.index.insert(unescape(key), self.rows.len());
        }
        self.rows.push((key, value));
        if self.index.is_empty() && self.rows.len() > LINEAR_FIELDS_MAX {
            self.index = self.rows.iter().enumerate().map(|(place, row)| (unescape(row.0), place)).collect();
        }
    }
}

/// What becomes of members whose value is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// They stay: the result is a patch, and they are yet to remove something.
    Keep,
    /// They are left out: the result is a whole state.
    Remove,
}

/// Whether `new` is the union already: it has the same keys as `old` in the same order, and no null that is to be removed.
fn is_union(old: &str, new: &str, nulls: Nulls) -> bool {
    let (mut olds, mut news) = (Members::new(old, usize::MAX), Members::new(new, usize::MAX));
    loop {
        match (olds.next(), news.next()) {
            (None, None) => return true,
            (Some(Ok(old)), Some(Ok(new))) if old.0 == new.0 && (nulls == Nulls::Keep || new.1 != "null") => {}
            _ => return false,
        }
    }
}

/// The union of the latest members of two JSON texts: `old`'s members in their order, with `new`'s values where it has them,
/// then `new`'s other members. An `old` that is no object counts as one without members. None when it is `new` itself: `new` is no object, or has
/// every member of `old` and none to be removed.
#[must_use]
pub fn merge(old: &[u8], new: &[u8], nulls: Nulls) -> Option<Vec<u8>> {
    let is_object = |bytes: &[u8]| bytes.trim_ascii_start().starts_with(b"{");
    if !is_object(new) {
        return None;
    }
    let (old, new) =
        (std::str::from_utf8(if is_object(old) { old } else { b"{}" }).ok()?, std::str::from_utf8(new).ok()?);
    if is_union(old, new, nulls) {
        return None;
    }
    let mut union = Fields::read(old)?;
    let latest = Fields::read(new)?;
    let is_kept = |value: &str| nulls == Nulls::Keep || value != "null";
    let has_all = union.rows.iter().all(|row| latest.place(row.0).is_some());
    if has_all && latest.rows.iter().all(|row| is_kept(row.1)) {
        return None;
    }
    for (key, value) in &latest.rows {
        union.put(key, value);
    }
    let mut out = Vec::with_capacity(old.len() + new.len());
    for (key, value) in union.rows.iter().filter(|row| is_kept(row.1)) {
        out.extend_from_slice(if out.is_empty() { b"{\"" } else { b",\"" });
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(if out.is_empty() { b"{}" } else { b"}" });
    Some(out)
}
