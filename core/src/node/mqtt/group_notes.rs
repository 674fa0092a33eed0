//! Where groups stand, as notes of the journal, and groups that continue after a restart. Owns that a group deals nothing again that a member
//! has settled at QoS 2, where the subject promises the disk: its note then says what is settled beyond the place where it stands.
use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::Node;
use super::dealt::Dealings;
use super::groups::{GROUP, Group};
use crate::mqtt::{shared_of, split_shared};
use crate::subject::Pattern;

/// What a group of an earlier run had dealt beyond the place where it stood.
#[derive(Debug)]
pub(super) struct DealtBefore {
    /// Everything up to here was dealt to a member and settled,
    until: u64,
    /// but for these.
    unsettled: BTreeSet<u64>,
}

impl DealtBefore {
    /// Whether a message was settled.
    pub(super) fn has(&self, arrival: u64) -> bool {
        arrival <= self.until && !self.unsettled.contains(&arrival)
    }

    /// Whether a group that has come so far knows by itself what is settled.
    pub(super) fn is_over(&self, arrival: u64) -> bool {
        arrival >= self.until
    }
}

impl Group {
    /// The name of its note.
    pub(super) fn note(&self) -> String {
        format!("{GROUP}{}", shared_of(&self.name.0, &self.name.1))
    }

    /// The text of its note: where it stands, the epoch, and what is settled beyond that if it is to say so.
    pub(super) fn note_text(&self, epoch: u64) -> String {
        if self.notes_settled { self.note_settled(epoch) } else { format!("{} {epoch}", self.stands()) }
    }

    fn note_settled(&self, epoch: u64) -> String {
        let before = self.dealt_before.as_ref().filter(|before| before.until > self.arrival);
        let until = self.pending.iter().map(|due| due.arrival).min().map_or(self.arrival, |first| first - 1);
        // Of what it had dealt in an earlier run it has not come past all: that stays settled, whoever is killed next.
        let until = before.map_or(until, |before| before.until);
        let mut text = format!("{} {epoch} {until}", self.stands());
        let ahead = before.into_iter().flat_map(|before| before.unsettled.range(self.arrival + 1..));
        for arrival in self.unsettled.range(..=until).chain(ahead) {
            let _ = write!(text, " {arrival}"); // a string takes it
        }
        text
    }
}

impl Node {
    /// The logs hold for each group what it has yet to settle, as of now; a journal notes where it stands.
    pub(in crate::node) fn sweep_groups(&mut self) {
        for group in self.groups.by_number.values_mut() {
            let stands = group.stands();
            if stands <= group.held {
                continue;
            }
            self.owed.add(group.pattern.text(), stands);
            self.owed.remove(group.pattern.text(), group.held);
            group.held = stands;
            if let Some(journal) = &mut self.journal {
                journal.note(group.note(), Some(group.note_text(self.epoch)));
            }
        }
    }

    /// A member settled something of a group that must not be dealt again, whenever the node is killed.
    pub(crate) fn note_group(&mut self, number: u32) {
        if let (Some(group), Some(journal)) = (self.groups.by_number.get_mut(&number), &mut self.journal) {
            group.notes_settled = true;
            journal.note(group.note(), Some(group.note_text(self.epoch)));
        }
    }

    /// Restores a group of an earlier run, before its messages and its members' sessions.
    pub(in crate::node) fn restore_group(&mut self, name: &str, text: &str) -> bool {
        let Some((group, selector)) = split_shared(name) else { return false };
        let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
        let (Ok(pattern), Some(arrival)) = (Pattern::parse(selector), numbers.next().flatten()) else {
            return false;
        };
        let key = (Box::from(group), Box::from(pattern.text()));
        if self.groups.numbers.contains_key(&key) {
            return true;
        }
        // Notes of older nodes have no epoch.
        let epoch = numbers.next().flatten().unwrap_or(0);
        let number = self.begin_group(key, &pattern, arrival.min(self.end_of_epoch(epoch)));
        if let Some(until) = numbers.next().flatten() {
            let until = until.min(self.last_of_epoch(epoch));
            let dealt = DealtBefore { until, unsettled: numbers.flatten().collect() };
            if let Some(group) = self.groups.by_number.get_mut(&number) {
                (group.dealt_before, group.notes_settled) = (Some(dealt), true);
            }
        }
        true
    }

    /// A session of an earlier run has this message of a group under way, and gets it again.
    pub(super) fn take_restored(&mut self, name: &str, arrival: u64) {
        let key = split_shared(name).map(|(group, selector)| (Box::from(group), Box::from(selector)));
        let number = key.and_then(|key| self.groups.numbers.get(&key));
        if let Some(group) = number.and_then(|number| self.groups.by_number.get_mut(number)) {
            group.taken.insert(arrival);
        }
    }

    /// The name of a group's note and filter; none where it is no more.
    pub(super) fn group_name(&self, number: u32) -> Option<String> {
        self.groups.by_number.get(&number).map(|group| shared_of(&group.name.0, &group.name.1))
    }

    /// After a restart: groups continue at their position, as far as the restored messages reach.
    pub(in crate::node) fn begin_groups(&mut self, head: u64) {
        let numbers: Vec<u32> = self.groups.by_number.keys().copied().collect();
        for number in numbers {
            if let Some(group) = self.groups.by_number.get_mut(&number).filter(|group| group.arrival > head) {
                self.owed.add(group.pattern.text(), head);
                self.owed.remove(group.pattern.text(), group.held);
                (group.arrival, group.held, group.dealings) = (head, head, Dealings::new(head));
                if let Some(journal) = &mut self.journal {
                    journal.note(group.note(), Some(group.note_text(self.epoch)));
                }
            }
            self.settle_group(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::node::{Node, PastRun};
    use crate::position::Now;
    use crate::settings::{JournalSettings, Settings};

    /// The note of a session with one subscription, which stands at 15.
    fn session(selector: &str, epoch: u64) -> String {
        format!(
            r#"{{"identity":"ann","session_ms":1000,"expires_ms":0,"subscriptions":[{{"selector":"{selector}","options":1,
                "subscription_id":0,"arrival":15,"began":3,"is_joining":false}}],"flight":[],"received":[],"epoch":{epoch},
                "last_packet_id":0,"gaps":null,"notices":null,"owed_after":0}}"#
        )
    }

    #[test]
    fn a_group_of_which_only_a_session_is_known_begins_where_the_run_does() {
        let settings = Settings { journal: Some(JournalSettings::default()), ..Settings::default() };
        let mut node = Node::new(&settings);
        node.begin_restore(Vec::new());
        assert!(node.restore_note("session c", &session("$share/g/a", 0), 0, Now::default()));
        node.finish_restore(Now::default());
        let (head, epoch) = (node.index.head(), node.epoch);
        let group = node.groups.by_number.values().next().expect("the group of the session");
        assert_eq!((group.arrival, group.held), (head, head));
        // The next run begins it there.
        let note = node.take_notes().remove("group $share/g/a").flatten();
        assert_eq!(note, Some(format!("{head} {epoch}")));
    }

    #[test]
    fn what_stood_beyond_the_rows_of_a_run_that_was_killed_is_owed_what_came_after() {
        let settings = Settings { journal: Some(JournalSettings::default()), epoch: 9, ..Settings::default() };
        for (epoch, expected) in [(7, 11), (8, 15)] {
            let mut node = Node::new(&settings);
            let run = |run, began, last| PastRun { run, epoch: run, epoch_end: run + 1, began, last };
            node.begin_restore(vec![run(7, 1, 10), run(8, 11, 20)]);
            assert!(node.restore_note("session c", &session("a", epoch), 0, Now::default()));
            assert!(node.restore_note("group $share/g/a", &format!("15 {epoch}"), 0, Now::default()));
            assert!(node.restore_note("session d", &session("$share/g/a", epoch), 0, Now::default()));
            node.finish_restore(Now::default());
            let group = node.groups.by_number.values().next().expect("a group");
            assert_eq!((group.arrival, group.held), (expected, expected));
            let kept = node.clients.by_id["c"].kept.as_ref().expect("a session");
            let place = &kept.subscriptions[0];
            assert_eq!((place.arrival, place.began), (expected, 3));
        }
    }

    #[test]
    fn a_group_that_has_not_come_past_an_earlier_run_notes_what_that_had_settled() {
        let settings = Settings { journal: Some(JournalSettings::default()), ..Settings::default() };
        for (arrival, unsettled, expected) in
            [(10, vec![], " 20 12 17"), (15, vec![14], " 20 14 17"), (20, vec![], " 20")]
        {
            let mut node = Node::new(&settings);
            assert!(node.restore_group("$share/g/a", "10 6 20 12 17"));
            let (number, group) = node.groups.by_number.iter_mut().next().expect("is back");
            let number = *number;
            (group.arrival, group.unsettled) = (arrival, unsettled.into_iter().collect());
            node.note_group(number);
            let note = node.take_notes().into_values().flatten().last().expect("a note");
            assert!(note.ends_with(expected), "{note} at {arrival}");
        }
    }
}
