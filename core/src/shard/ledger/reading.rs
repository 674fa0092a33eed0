//! Ranges of cursors that read back from the journal: their numbers are those of positions, of one epoch after the other.
use crate::position::Position;
use crate::shard::Shard;

impl Shard {
    /// Where the range of a subject's cursor begins that reads back.
    pub(in crate::shard) fn begin_reading_range(&mut self, id: u32, at: Position) {
        self.begin_range_in(id, at.sequence, at.epoch, 0);
    }

    /// A gap was told to a cursor that reads back.
    pub(in crate::shard) fn note_reading_gap(
        &mut self,
        id: u32,
        after: Option<Position>,
        at: Position,
        missed: Option<u64>,
    ) {
        if after.is_none_or(|after| after.epoch != at.epoch) {
            self.end_range(id);
            self.begin_reading_range(id, at);
            if missed == Some(0) {
                return;
            }
        }
        let Some(ledger) = &mut self.written.ledger else { return };
        let range = ledger.grow(id, 0, 0);
        range.gaps += 1;
        match missed {
            Some(missed) => range.gap_count += missed,
            None => range.is_uncounted = true,
        }
        range.to = range.to.max(at.sequence);
    }
}
