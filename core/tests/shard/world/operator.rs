//! What an operator does to a node of values, and sees of it.

use std::sync::Arc;

use godwit_core::node::Purged;
use godwit_core::report::Order;
use godwit_core::settings::Settings;
use godwit_core::subject::Pattern;

use super::World;

impl World {
    pub(crate) fn order(&mut self, shard: usize, order: Order) {
        let now = self.now;
        let (state, net) = &mut self.shards[shard];
        state.begin(now);
        state.order(order, net);
    }

    /// Gives the node and all shards other settings.
    pub(crate) fn configure(&mut self, settings: &Settings) {
        let mut node = self.node.lock().expect("unpoisoned");
        node.configure(settings);
        let mut from = Some(0);
        while let Some(slot) = from {
            from = node.resolve_again(slot);
        }
        drop(node);
        let settings = Arc::new(settings.clone());
        for shard in 0..self.shard_count() {
            self.order(shard, Order::Configure(Arc::clone(&settings)));
        }
    }

    /// Takes back what a subject keeps, as an operator does; shards hear of it with their next turn.
    pub(crate) fn purge(&mut self, subject: &str) {
        let purged = self.node.lock().expect("unpoisoned").purge(subject, None);
        let Some(Purged { log, has_more, .. }) = purged else { return };
        assert!(!has_more);
        for shard in 0..self.shard_count() {
            self.order(shard, Order::Purge { subject: subject.into(), log });
        }
    }

    /// Whether the node still knows a subject.
    pub(crate) fn is_known(&self, subject: &str) -> bool {
        self.node.lock().expect("unpoisoned").find(subject).is_some()
    }

    /// How many subscribers an operator is told that a subject has.
    pub(crate) fn subscribers(&self, subject: &str) -> u32 {
        let pattern = Pattern::parse(subject).expect("a subject");
        let (rows, _) = self.node.lock().expect("unpoisoned").subjects("", 1, Some(&pattern));
        rows.first().map_or(0, |row| row.subscribers)
    }
}
