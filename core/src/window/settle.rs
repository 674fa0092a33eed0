//! Frames of one conflation window share an arrival: its end. Owns what a reader between two of them has surely been sent, and which
//! frames of that window it has beyond it.
use super::{Boundary, Window};
use crate::message::LogId;

impl Window {
    /// The frame appended last holds messages of `log`.
    pub fn set_last_log(&mut self, log: LogId) {
        if let Some(segment) = self.segments.back_mut() {
            segment.logs.push((segment.frames.len() as u32 - 1, log));
        }
    }

    /// Where a reader at `place` surely stands: the last boundary at or before it whose arrival no later message with a place shares.
    /// Those of one conflation window share theirs.
    pub fn settled(&self, place: u64) -> Option<Boundary> {
        let (before, _) = self.around(place)?;
        let mut is_shared = false;
        self.each_frame(before.place, |bytes, here| {
            let end = here.place + bytes.len() as u64;
            let shares = self.around(end).is_some_and(|(_, end)| end.arrival == before.arrival);
            is_shared = shares && self.placed(here.place, end) > 0;
            shares && !is_shared
        });
        if !is_shared {
            return Some(before);
        }
        let earlier =
            self.place_after(before.arrival.saturating_sub(1)).map_or(self.front_settled, |found| found.arrival);
        Some(Boundary { arrival: earlier, ..before })
    }

    /// What a reader at the boundary `place` was sent beyond its settled boundary: the logs, and the sequence it has of each.
    pub fn sent_beyond(&self, place: u64) -> Vec<(LogId, u64)> {
        let Some((here, _)) = self.around(place) else { return Vec::new() };
        if self.settled(place).is_none_or(|settled| settled.arrival >= here.arrival) {
            return Vec::new();
        }
        let mut sent = if self.front.arrival == here.arrival { self.front_sent.clone() } else { Vec::new() };
        for segment in &self.segments {
            for &(index, log) in &segment.logs {
                let frame = segment.frames.get(index as usize);
                let frame = frame.filter(|frame| segment.start + u64::from(frame.end) <= here.place);
                sent.extend(frame.filter(|frame| frame.arrival == here.arrival).map(|frame| (log, frame.sequence)));
            }
        }
        sent
    }
}
