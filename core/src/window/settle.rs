//! Frames of one conflation window share an arrival: its end. Owns what a reader between two of them has surely been sent, and which
//! frames of that window it has beyond it.
use super::{Boundary, Handed, Window};
use crate::message::LogId;

/// What a reader between two frames of one conflation window was sent beyond where it surely stands, kept when those frames go.
#[derive(Debug)]
pub(super) struct Beyond {
    /// Each frame's log, and the sequence that it brought its readers to.
    sent: Vec<(LogId, u64)>,
    handed: Handed,
}

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
        let kept = self.front_beyond.as_ref().filter(|_| self.front.arrival == here.arrival);
        let mut sent = kept.map_or_else(Vec::new, |beyond| beyond.sent.clone());
        for segment in &self.segments {
            for &(index, log) in &segment.logs {
                let frame = segment.frames.get(index as usize);
                let frame = frame.filter(|frame| segment.start + u64::from(frame.end) <= here.place);
                sent.extend(frame.filter(|frame| frame.arrival == here.arrival).map(|frame| (log, frame.sequence)));
            }
        }
        sent
    }

    /// The same of what it was handed, to be taken from its range where it leaves.
    pub fn unsettled(&self, place: u64) -> Handed {
        let (Some((before, _)), Some(settled)) = (self.around(place), self.settled(place)) else {
            return Handed::default();
        };
        let kept = self.front_beyond.as_ref().filter(|_| settled.arrival < self.front.arrival);
        let mut all = kept.map(|beyond| beyond.handed).unwrap_or_default();
        let begin = self.place_after(settled.arrival).map_or(self.front.place, |found| found.place);
        self.each_frame(begin, |bytes, here| {
            let end = here.place + bytes.len() as u64;
            if end > before.place {
                return false;
            }
            all.add(&self.handed(here.place, end));
            true
        });
        all
    }

    /// Both, of a reader at the end of a segment that goes.
    pub(super) fn beyond(&self, place: u64) -> Option<Box<Beyond>> {
        let beyond = Beyond { sent: self.sent_beyond(place), handed: self.unsettled(place) };
        (!beyond.sent.is_empty() || beyond.handed.messages > 0).then(|| Box::new(beyond))
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn a_reader_passes_as_many_frames_as_there_are() {
        let mut window = Window::new(0, 0);
        for sequence in 1..=50_000 {
            window.append(b"x", sequence, 0, sequence);
        }
        let first = window.place_after(0).expect("the front");
        let thread = std::thread::Builder::new().stack_size(128 * 1024);
        let passed = thread.spawn(move || window.place_behind(first, 49_999).sequence);
        assert_eq!(passed.expect("a thread").join().expect("room on its stack"), 49_999);
    }
}
