//! What groups have been dealt, as rows of the journal: whichever shard of a group looks first writes what it was dealt on all of them. Owns
//! that what no member was handed is counted, and stands in the row.
use std::sync::Arc;

use crate::codec::Wire;
use crate::command::GapReason;
use crate::holder::{ANONYMOUS, Holder};
use crate::journal::{DeliveryRow, Peer, Range};
use crate::report::ConnectionId;
use crate::shard::{Shard, lock};

impl Shard {
    /// What a stream's group has been dealt since somebody looked becomes a row.
    pub(in crate::shard) fn note_dealt(&mut self, stream: u32) {
        let Some(stream) = self.streams.get(stream) else { return };
        let Wire::MqttShared(number) = stream.wire else { return };
        let Some(dealt) = lock(&self.node).take_dealt(number) else { return };
        for _ in 0..dealt.gaps {
            self.counters.count_gap(None, GapReason::Overrun);
        }
        let nobody: Arc<str> = Arc::from("");
        let member = stream.cursors.first().and_then(|&cursor| self.cursors.get(cursor));
        let access = member.and_then(|cursor| self.connections.get(cursor.connection)?.access.as_ref());
        let tenant = access.map_or("", |access| &*access.holder.tenant);
        let holder = Holder::new(tenant, ANONYMOUS, "");
        // No connection has such a number, and no other group of this run.
        let connection = ConnectionId(u64::from(number).wrapping_neg());
        let peer = Peer { connection, holder, client: nobody };
        let (selector, run) = (Arc::clone(&stream.name), self.settings.run);
        let Some(time_us) = self.delivery_time_us() else { return };
        self.put_delivery(DeliveryRow {
            time_us,
            peer,
            selector,
            range: Range::Pattern { run, from: Some(dealt.from), to: dealt.to },
            count: dealt.count,
            bytes: dealt.bytes,
            conflated: dealt.passed,
            gaps: dealt.gaps,
            gap_count: dealt.gap_count,
            is_confirmed: false,
        });
    }
}
