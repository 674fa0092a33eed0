//! Notes: what is no event but the last word on something, to be known again after a restart: an MQTT client's session, its will, a purge. Owns
//! what waits to be written of them, by name: only the last counts. Bounded by what there is to note.
use std::collections::BTreeMap;

use super::super::Node;
use super::super::mqtt::{GROUP, SESSION, WILL};
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

    /// A note of an earlier run, before its messages come back; false where it is over, or says nothing: that of a purge once the journal keeps
    /// nothing from before `kept_from`, of which it spoke.
    pub fn restore_note(&mut self, name: &str, text: &str, kept_from: u64, now: Now) -> bool {
        if let Some(subject) = name.strip_prefix(PURGE) {
            let (Ok(arrival), Some(journal)) = (text.parse(), &mut self.journal) else { return false };
            if arrival >= kept_from {
                journal.restore_purge(subject, arrival);
            }
            return arrival >= kept_from;
        }
        if let Some(group) = name.strip_prefix(GROUP) {
            return self.restore_group(group, text);
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

#[cfg(test)]
mod tests {
    use super::Node;
    use crate::position::Now;
    use crate::settings::{JournalSettings, Settings};

    #[test]
    fn a_purge_is_over_once_the_journal_keeps_nothing_that_it_took() {
        let settings = Settings { journal: Some(JournalSettings::default()), ..Settings::default() };
        let mut node = Node::new(&settings);
        assert!(!node.restore_note("purge /a", "5", 6, Now::default()));
        assert!(node.restore_note("purge /b", "6", 6, Now::default()));
        assert_eq!((node.purged_until("/a"), node.purged_until("/b")), (0, 6));
    }
}
