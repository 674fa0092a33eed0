//! The bound of all snapshots together: at it the largest of those that are looked at goes, and never one that is smaller than the newcomer.
use std::collections::BinaryHeap;

use super::super::Node;
use super::evict_snapshot;

/// Logs that are looked at in one search for what nothing else found, from where the last one ended.
pub(super) const LOOK_MAX: u32 = 4_096;
/// Logs that are looked at for one snapshot that came: nodes at the bound pay this for each publish.
const LOOKS: u32 = 256;
/// Of those, the ones among which the largest goes.
const LOOKS_EACH: u32 = 32;

impl Node {
    /// Evicts snapshots until all are within their bound, each the largest of a few; the newcomer, which is in this slot, where none that is looked
    /// at is larger.
    pub(in crate::node) fn make_snapshot_room(&mut self, newcomer: u32) {
        for _ in 0..LOOKS / LOOKS_EACH {
            if self.counts.snapshot_bytes <= self.limits.snapshots_bytes_max {
                return;
            }
            let own = self.snapshot_bytes(newcomer);
            let largest = self.find_among(LOOKS_EACH, Self::snapshot_bytes).filter(|(bytes, _)| *bytes > own);
            if let Some((_, slot)) = largest {
                self.evict_snapshot_at(slot);
            }
        }
        if self.counts.snapshot_bytes > self.limits.snapshots_bytes_max {
            self.evict_snapshot_at(newcomer);
        }
    }

    fn evict_snapshot_at(&mut self, slot: u32) {
        if let Some(log) = self.names.log_at_mut(slot).filter(|log| !log.latest.is_none()) {
            evict_snapshot(log, &mut self.counts, &mut self.states);
        }
    }

    fn snapshot_bytes(&self, slot: u32) -> usize {
        self.names.log_at(slot).map_or(0, |log| log.latest.held_bytes())
    }

    /// The log that has most of what is measured, of so many; the next search continues with others.
    fn find_among(&mut self, looks: u32, measure: impl Fn(&Self, u32) -> usize) -> Option<(usize, u32)> {
        let mut best = None;
        self.look_at(looks, measure, |found| best = best.max(Some(found)));
        best
    }

    /// Of so many logs those that have something of what is measured, the one with most first.
    pub(super) fn list_among(&mut self, looks: u32, measure: impl Fn(&Self, u32) -> usize) -> BinaryHeap<(usize, u32)> {
        let mut all = Vec::new();
        self.look_at(looks, measure, |found| all.push(found));
        BinaryHeap::from(all)
    }

    fn look_at(&mut self, looks: u32, measure: impl Fn(&Self, u32) -> usize, mut note: impl FnMut((usize, u32))) {
        let slots = self.names.slots();
        for _ in 0..slots.min(looks) {
            self.looked = if self.looked + 1 < slots { self.looked + 1 } else { 0 };
            self.looks += 1;
            let bytes = measure(self, self.looked);
            if bytes > 0 {
                note((bytes, self.looked));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOK_MAX, LOOKS, Node};
    use crate::holder::Holder;
    use crate::message::{Batch, Draft, Kind};
    use crate::position::Now;
    use crate::settings::Settings;

    fn publish(node: &mut Node, subject: &str) {
        let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
        batch.push(subject, Draft::new(Kind::Json, b"12345678", "", Holder::nobody(), 1));
        node.append(&mut batch, &mut outcomes, Now::default());
    }

    #[test]
    fn at_the_bound_of_snapshots_a_publish_looks_at_few_logs() {
        let mut settings = Settings::default();
        settings.limits.snapshots_bytes_max = 100_000;
        let mut node = Node::new(&settings);
        (0..5_000).for_each(|number| publish(&mut node, &format!("/s/{number}")));
        for number in 5_000..5_020 {
            let before = node.looks;
            publish(&mut node, &format!("/s/{number}"));
            assert!(node.counts.snapshot_bytes <= 100_000);
            let looks = node.looks - before;
            assert!((1..=u64::from(LOOKS)).contains(&looks), "{looks}");
        }
    }

    #[test]
    fn at_the_bound_of_logs_a_publish_looks_at_so_many_logs_however_many_snapshots_go() {
        let mut settings = Settings::default();
        settings.limits.logs_bytes_max = 2_000_000;
        let mut node = Node::new(&settings);
        let send = |node: &mut Node, subject: &str, content: &[u8]| {
            let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
            let mut draft = Draft::new(Kind::Bytes, content, "", Holder::nobody(), 1);
            (draft.is_guaranteed, draft.is_retained) = (false, Some(true));
            batch.push(subject, draft);
            node.append(&mut batch, &mut outcomes, Now::default());
        };
        for number in 0..6_000 {
            send(&mut node, &format!("/s/{number}"), &[1; 200]);
        }
        let (looks, evicted) = (node.looks, node.counts.evicted_snapshots);
        send(&mut node, "/s/large", &[1; 60_000]);
        let (looks, evicted) = (node.looks - looks, node.counts.evicted_snapshots - evicted);
        assert!(evicted >= 32 && looks <= 3 * u64::from(LOOK_MAX), "{looks} for {evicted} snapshots");
    }
}
