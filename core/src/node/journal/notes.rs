//! Notes: what is no event but the last word on something, to be known again after a restart: an MQTT client's session, its will, a purge. Owns
//! what waits to be written of them, by name: only the last counts. Bounded by what there is to note.
use std::collections::BTreeMap;

use super::super::Node;
use super::super::mqtt::{SESSION, WILL};
use crate::position::Now;

/// Before a subject in the name of its purge.
const PURGE: &str = "purge ";

/// What waits to be written, by name; none: it is over.
#[derive(Debug, Default)]
pub(in crate::node) struct Notes(BTreeMap<String, Option<String>>);

impl Notes {
    pub(in crate::node) fn put(&mut self, name: String, text: Option<String>) {
        self.0.insert(name, text);
    }

    pub(in crate::node) fn put_purge(&mut self, subject: &str, arrival: u64) {
        self.put(format!("{PURGE}{subject}"), Some(arrival.to_string()));
    }
}

impl Node {
    /// Notes since the last call: a name, and what is to be known of it; none: nothing any more. Neither has a line's end.
    pub fn take_notes(&mut self) -> BTreeMap<String, Option<String>> {
        self.journal.as_mut().map(|journal| std::mem::take(&mut journal.notes.0)).unwrap_or_default()
    }

    /// A note of an earlier run, before its messages come back; false where it is over, or says nothing.
    pub fn restore_note(&mut self, name: &str, text: &str, now: Now) -> bool {
        if let Some(subject) = name.strip_prefix(PURGE) {
            let (Ok(arrival), Some(journal)) = (text.parse(), &mut self.journal) else { return false };
            journal.restore_purge(subject, arrival);
            return true;
        }
        if let Some(id) = name.strip_prefix(WILL) {
            let pending = Self::restore_will(id, text);
            let is_back = pending.is_some();
            if let Some(restoring) = &mut self.restoring {
                restoring.wills.extend(pending);
            }
            return is_back;
        }
        let Some(id) = name.strip_prefix(SESSION) else { return false };
        let pending = self.restore_session(id, text, now);
        let is_back = pending.is_some();
        if let Some(restoring) = &mut self.restoring {
            restoring.sessions.extend(pending);
        }
        is_back
    }

    /// Whether somebody who is away is owed messages, however old they are.
    pub fn owes(&self) -> bool {
        !self.owed.is_empty()
    }
}
