//! The order of epochs: a client that resumes by a token has no position to be served from, and cannot tell an earlier epoch from a later
//! one. Before the first message or gap of an earlier epoch than the present it is sent that subject's epochs in their order (2.7).
use std::collections::{BTreeMap, BTreeSet};

use crate::codec;
use crate::command::Push;
use crate::message::LogId;
use crate::node::Node;
use crate::shard::Shard;

/// A subject that a chunk has something of: its log, its name, and the epoch.
pub(in crate::shard) type InEpoch<'a> = (LogId, &'a str, u64);

impl Shard {
    /// Says whether a subscription is sent the order of epochs: not where the client named its position.
    pub(in crate::shard) fn tell_epochs(&mut self, id: u32, is_told: bool) {
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.tells_epochs = is_told;
        }
    }

    /// The same before a gap of one subject's stream.
    pub(in crate::shard) fn tell_order(&mut self, id: u32, (log, epoch): (LogId, u64), node: &Node) {
        let Some(name) = self.stream_name(id) else { return };
        let mut bytes = Vec::new();
        self.put_epochs(id, std::iter::once((log, &*name, epoch)), node, &mut bytes);
        self.tell(id, &bytes);
    }

    /// Writes the order of epochs for each subject that has something of an earlier one than its present.
    pub(in crate::shard) fn put_epochs<'a>(
        &self,
        id: u32,
        found: impl Iterator<Item = InEpoch<'a>>,
        node: &Node,
        out: &mut Vec<u8>,
    ) {
        let Some(cursor) = self.cursors.get(id).filter(|cursor| cursor.tells_epochs) else { return };
        let Some(stream) = self.streams.get(cursor.stream).filter(|stream| !stream.wire.is_mqtt()) else { return };
        if !node.has_past() {
            return;
        }
        let mut earlier: BTreeMap<LogId, (&str, BTreeSet<u64>)> = BTreeMap::new();
        for (log, subject, epoch) in found {
            if epoch < node.epoch_of(log) {
                earlier.entry(log).or_insert_with(|| (subject, BTreeSet::new())).1.insert(epoch);
            }
        }
        for (log, (subject, epochs)) in earlier {
            let order = node.order_epochs(log, epochs);
            codec::push(stream.wire, out, &Push::Epochs { subject, epochs: &order, pattern: stream.pattern() });
        }
    }
}
