//! What leaves, counted where it is known: frames, bytes, messages that became one, and how long they took. Owns that a delivery
//! costs a few additions.
use super::{Ledger, SLICES_EACH};
use crate::cursor::CursorState;
use crate::journal::{LATENCY_BUCKETS, latency_bucket};
use crate::shard::outbound::{Frames, Note, Passed};
use crate::shard::{Shard, SocketOutput};
use crate::stream::Source;
use crate::window::Handed;

impl Ledger {
    /// Frames of a stream's window left for a cursor.
    pub(in crate::shard) fn slice(&mut self, cursor: u32, handed: &Handed) {
        if self.keeps_deliveries {
            let range = self.grow(cursor, handed.messages, handed.bytes);
            range.conflated += handed.merged;
            range.gaps += handed.missing.frames;
            range.gap_count += handed.missing.messages;
        }
    }

    /// The first `count` bytes of some frames left.
    pub(in crate::shard) fn frames(&mut self, frames: &Frames, count: usize) {
        if !self.keeps_deliveries {
            return;
        }
        let begins = std::iter::once(frames.private).chain(frames.notes.iter().map(|note| note.end));
        let unsent = begins.zip(&frames.notes).find(|(start, _)| *start >= count).map(|(_, note)| note);
        let before = frames.merged_before(count);
        // What stands before the same place is sent again together and counted then. The messages of a merged frame beyond where its cursor
        // stands are counted as that passes them.
        let is_anew = |index: usize, note: &Note| match (before, frames.merged.get(index)) {
            (Some(before), Some(part)) => part.message.arrival > before,
            _ => {
                matches!(note.before, CursorState::Behind(_))
                    && unsent.is_some_and(|first| (first.cursor, first.before) == (note.cursor, note.before))
            }
        };
        let mut start = frames.private;
        for (index, note) in frames.notes.iter().enumerate() {
            if start >= count {
                return;
            }
            if is_anew(index, note) {
                start = note.end;
                continue;
            }
            let bytes = (note.end - start) as u64;
            if note.is_too_large {
                let range = self.grow(note.cursor, 0, bytes);
                range.gaps += u64::from(note.messages.min(1));
                range.gap_count += u64::from(note.messages);
            } else {
                let range = self.grow(note.cursor, u64::from(note.messages.min(1)), bytes);
                range.conflated += u64::from(note.messages.saturating_sub(1));
            }
            let range = self.at(note.cursor);
            if matches!(note.before, CursorState::Behind(_) | CursorState::Reading(_)) && note.messages > 0 {
                range.to = range.to.max(note.sequence + u64::from(note.messages));
            }
            start = note.end;
        }
    }

    /// A turn begins: the clock is read again for its first slice.
    pub(in crate::shard) fn begin(&mut self) {
        self.slices = 0;
    }

    /// Times a slice that holds messages which were accepted at `since_us`.
    pub(in crate::shard) fn time<O: SocketOutput>(&mut self, stream: u32, since_us: u32, out: &mut O) {
        if !self.keeps_deliveries {
            return;
        }
        // The last reading may be older than the message, which another shard accepted meanwhile.
        if self.slices.is_multiple_of(SLICES_EACH) || self.clock_us.wrapping_sub(since_us) > u32::MAX / 2 {
            self.clock_us = out.clock_us();
        }
        self.slices = self.slices.wrapping_add(1);
        let took_us = u64::from(self.clock_us.wrapping_sub(since_us));
        let slot = stream as usize;
        if self.latency.len() <= slot {
            self.latency.resize(slot + 1, None);
        }
        let buckets = self.latency.get_mut(slot).map(|of| of.get_or_insert_with(|| Box::new([0; LATENCY_BUCKETS])));
        if let Some(bucket) = buckets.and_then(|buckets| buckets.get_mut(latency_bucket(took_us))) {
            *bucket += 1;
        }
    }
}

impl Shard {
    /// Messages that cursors passed over with what was sent: each counts once its cursor has come as far as that. One that a short
    /// write set back is passed over again.
    pub(in crate::shard) fn note_passed(&mut self, passed: &[Passed]) {
        if self.written.ledger.is_none() {
            return;
        }
        for &Passed { cursor: id, arrival, sequence } in passed {
            let Some(cursor) = self.cursors.get(id) else { continue };
            let reached = match cursor.stand {
                CursorState::Behind(reached) | CursorState::Reading(reached) => reached,
                CursorState::Live(place) => {
                    let window = self.streams.get(cursor.stream).and_then(|stream| stream.window.as_ref());
                    window.and_then(|window| window.around(place)).map_or(arrival, |(before, _)| before.arrival)
                }
                CursorState::Current | CursorState::Joining => arrival,
            };
            if arrival > reached {
                continue;
            }
            self.note_merged(id, 1);
            if let Some(ledger) = &mut self.written.ledger {
                let range = ledger.at(id);
                range.to = range.to.max(sequence);
            }
        }
    }

    /// Messages of a range that a cursor passed over, for what its client has holds them.
    pub(in crate::shard) fn note_merged(&mut self, id: u32, count: u64) {
        if let Some(ledger) = self.written.ledger.as_mut().filter(|ledger| ledger.keeps_deliveries && count > 0) {
            ledger.grow(id, 0, 0).conflated += count;
        }
    }

    /// A stream's window goes, which alone tells how far the cursors at its head were handed their subject.
    pub(in crate::shard) fn keep_reached(&mut self, stream_id: u32) {
        let (Some(ledger), Some(stream)) = (&mut self.written.ledger, self.streams.get(stream_id)) else { return };
        let (Source::Subject(_), Some(window)) = (&stream.source, &stream.window) else { return };
        for &id in &stream.cursors {
            if self.cursors.get(id).is_some_and(|cursor| cursor.stand == CursorState::Live(window.head())) {
                let range = ledger.at(id);
                range.to = range.to.max(window.sequence());
            }
        }
    }

    /// A stream's window goes, up to a place: what those were sent who stand in the midst of what was merged together is counted as they pass it.
    pub(in crate::shard) fn leave_windows(&mut self, stream_id: u32, until: u64) {
        let stream = self.streams.get(stream_id).filter(|stream| stream.conflate_ms > 0);
        let Some(stream) = stream.filter(|_| self.written.ledger.is_some()) else { return };
        for id in stream.cursors.clone() {
            let stand = self.cursors.get(id).map(|cursor| cursor.stand);
            if matches!(stand, Some(CursorState::Live(place)) if place < until) {
                self.leave_window(id);
            }
        }
    }

    /// A pattern's cursor leaves in the midst of a conflation window: what it was handed of that lies beyond where the range
    /// ends, and is no row's.
    pub(super) fn leave_window(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get(id) else { return };
        let (CursorState::Live(place), Some(stream)) = (cursor.stand, self.streams.get(cursor.stream)) else { return };
        let Some(window) = stream.window.as_ref().filter(|window| place < window.head()) else { return };
        if stream.conflate_ms == 0 || !matches!(stream.source, Source::Pattern(_)) {
            return;
        }
        let handed = window.unsettled(place);
        if let Some(ledger) = &mut self.written.ledger {
            let range = ledger.at(id);
            range.count = range.count.saturating_sub(handed.messages);
            range.conflated = range.conflated.saturating_sub(handed.merged);
            range.gaps = range.gaps.saturating_sub(handed.missing.frames);
            range.gap_count = range.gap_count.saturating_sub(handed.missing.messages);
            range.bytes = range.bytes.saturating_sub(handed.bytes);
        }
    }

    /// Whether a cursor stands in the midst of what belongs into one row: a pattern's join, with what it placed further on, or the
    /// frames of one conflation window.
    pub(super) fn is_amid(&self, id: u32) -> bool {
        let Some(cursor) = self.cursors.get(id) else { return false };
        let Some(stream) = self.streams.get(cursor.stream) else { return false };
        if !matches!(stream.source, Source::Pattern(_)) {
            return false;
        }
        match (cursor.stand, &stream.window) {
            (CursorState::Joining, _) => true,
            (CursorState::Live(place), Some(window)) => {
                let here = window.around(place).map(|(before, _)| before.arrival);
                cursor.job.is_some() || here != window.settled(place).map(|settled| settled.arrival)
            }
            _ => cursor.job.is_some(),
        }
    }
}
