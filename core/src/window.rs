//! A stream's window: its latest frames back to back, in segments that never move once written.
//! Owns where each frame lies and which arrival it brings the reader to; cursors point into it by byte place, counted
//! from the stream's beginning. A frame never straddles two segments. Trimming forgets whole segments from the front.
mod count;
mod settle;

pub use count::{Handed, Missing};
use settle::Beyond;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::message::LogId;

const SEGMENT_BYTES_MIN: usize = 256;
const SEGMENT_BYTES_MAX: usize = 64 * 1024;
/// From this size on a frame has a segment of its own that can be shared.
const LARGE_FRAME_BYTES: usize = 32 * 1024;

/// Where a frame ends, and what has been sent once it is.
#[derive(Clone, Copy, Debug)]
struct FrameEnd {
    end: u32,
    /// Standard messages in the stream up to and with this frame, modulo 2³².
    standard: u32,
    arrival: u64,
    sequence: u64,
}

#[derive(Debug)]
struct Segment {
    start: u64,
    /// Never grows past its capacity: readers of earlier bytes may be in the kernel.
    data: Vec<u8>,
    /// A large frame, alone in its segment: whoever was cut within it holds on to it, and nobody copies it.
    large: Option<Arc<Vec<u8>>>,
    frames: Vec<FrameEnd>,
    /// Which frames are no messages but resume tokens; seldom any.
    asides: Vec<u32>,
    /// Which frames are standard messages, without a place of their own.
    standards: Vec<u32>,
    /// Which frames are several messages, and how many more than one.
    merged: Vec<(u32, u32)>,
    /// Which frames say that messages are missing, and how many; seldom any.
    missing: Vec<(u32, u32)>,
    /// Of a conflated pattern's window: which frames are of which log.
    logs: Vec<(u32, LogId)>,
}

impl Segment {
    fn bytes(&self) -> &[u8] {
        self.large.as_ref().map_or(&self.data, |frame| frame)
    }

    fn end(&self) -> u64 {
        self.start + self.bytes().len() as u64
    }

    /// Allocated bytes.
    fn cost(&self) -> usize {
        self.data.capacity() + self.large.as_ref().map_or(0, |frame| frame.len())
    }
}

/// A frame boundary: the byte place, and what a reader that stands there has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    pub place: u64,
    pub arrival: u64,
    pub standard: u32,
    /// Of a subject's stream: the last sequence that has been sent; 0 not known.
    pub sequence: u64,
}

#[derive(Debug)]
pub struct Window {
    segments: VecDeque<Segment>,
    /// The front: everything up to here is no longer (or never was) in the window.
    front: Boundary,
    /// What a reader at the front has surely been sent: less than the front's arrival where later frames share that.
    front_settled: u64,
    /// What a reader at the front was sent beyond that; none where it was sent nothing more.
    front_beyond: Option<Box<Beyond>>,
    head: Boundary,
    bytes: usize,
    /// How many segments were ever begun: the number of the current one.
    begun: u64,
    is_sealed: bool,
}

impl Window {
    /// An empty window whose readers have been sent everything up to `arrival`.
    pub fn new(arrival: u64, standard: u32) -> Self {
        let here = Boundary { place: 0, arrival, standard, sequence: 0 };
        Self {
            segments: VecDeque::new(),
            front: here,
            front_settled: arrival,
            front_beyond: None,
            head: here,
            bytes: 0,
            begun: 0,
            is_sealed: false,
        }
    }

    /// The last sequence that readers at the head have been sent; 0 not known.
    pub fn sequence(&self) -> u64 {
        self.head.sequence
    }

    pub fn head(&self) -> u64 {
        self.head.place
    }

    /// Allocated bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of the segment that a frame of `frame_bytes` would go to: a change means a new segment.
    pub fn segment_for(&self, frame_bytes: usize) -> u64 {
        if self.fits(frame_bytes) { self.begun } else { self.begun + 1 }
    }

    fn fits(&self, frame_bytes: usize) -> bool {
        let room = self.segments.back().map_or(0, |segment| segment.data.capacity() - segment.data.len());
        !self.is_sealed && frame_bytes < LARGE_FRAME_BYTES && room >= frame_bytes
    }

    /// The number of the newest segment.
    pub fn newest(&self) -> u64 {
        self.begun
    }

    /// The next frame begins a segment of its own.
    pub fn seal(&mut self) {
        self.is_sealed = true;
    }

    /// Appends one frame that brings its readers to `arrival`.
    pub fn append(&mut self, frame: &[u8], arrival: u64, standard: u32, sequence: u64) {
        if !self.fits(frame.len()) {
            self.begin_segment(frame.len());
        }
        if let Some(segment) = self.segments.back_mut() {
            if frame.len() >= LARGE_FRAME_BYTES {
                segment.large = Some(Arc::new(frame.to_vec()));
            } else {
                segment.data.extend_from_slice(frame);
            }
            let end = segment.bytes().len();
            segment.frames.push(FrameEnd { end: end as u32, standard, arrival, sequence });
            self.head = Boundary { place: segment.start + end as u64, arrival, standard, sequence };
        }
    }

    /// Appends a frame that is no message.
    pub fn append_resume_token(&mut self, frame: &[u8], arrival: u64, standard: u32) {
        self.append(frame, arrival, standard, 0);
        if let Some(segment) = self.segments.back_mut() {
            segment.asides.push(segment.frames.len() as u32 - 1);
        }
    }

    fn begin_segment(&mut self, frame_bytes: usize) {
        let grown = self.segments.back().map_or(SEGMENT_BYTES_MIN, |s| (s.data.capacity() * 2).min(SEGMENT_BYTES_MAX));
        let is_large = frame_bytes >= LARGE_FRAME_BYTES;
        let data = Vec::with_capacity(if is_large { 0 } else { grown.max(frame_bytes) });
        self.bytes += if is_large { frame_bytes } else { data.capacity() };
        self.begun += 1;
        self.is_sealed = false;
        self.segments.push_back(Segment {
            start: self.head.place,
            data,
            large: None,
            frames: Vec::new(),
            asides: Vec::new(),
            standards: Vec::new(),
            merged: Vec::new(),
            missing: Vec::new(),
            logs: Vec::new(),
        });
    }

    /// The bytes from `place` to its segment's end, empty at the head; none if the window has moved past `place`.
    #[inline]
    pub fn slice(&self, place: u64) -> Option<&[u8]> {
        if place < self.front.place {
            return None;
        }
        for segment in self.segments.iter().rev() {
            if place >= segment.start {
                return segment.bytes().get((place - segment.start) as usize..);
            }
        }
        Some(&[])
    }

    /// Where a reader stands that has been sent everything up to `arrival`; none if that lies before the window.
    pub fn place_after(&self, arrival: u64) -> Option<Boundary> {
        if arrival < self.front.arrival {
            return None;
        }
        for segment in self.segments.iter().rev() {
            let count = segment.frames.partition_point(|f| f.arrival <= arrival);
            if let Some(frame) = count.checked_sub(1).and_then(|i| segment.frames.get(i)) {
                return Some(boundary(segment, frame));
            }
        }
        Some(self.front)
    }

    /// The last frame boundary at or before `place`, and the end of the frame that `place` lies in (the same place when
    /// it is a boundary). None if the window has moved past it.
    pub fn around(&self, place: u64) -> Option<(Boundary, Boundary)> {
        if place < self.front.place {
            return None;
        }
        let at = self.segments.iter().rposition(|s| s.start < place);
        let Some((index, segment)) = at.and_then(|i| Some((i, self.segments.get(i)?))) else {
            return Some((self.front, self.front));
        };
        let count = segment.frames.partition_point(|f| segment.start + u64::from(f.end) <= place);
        let before = match count.checked_sub(1).and_then(|i| segment.frames.get(i)) {
            Some(frame) => boundary(segment, frame),
            None => self.end_before(index),
        };
        if before.place == place {
            return Some((before, before));
        }
        segment.frames.get(count).map(|frame| (before, boundary(segment, frame)))
    }

    /// The boundary at or after `here` behind which frames begin that bring a subject's readers further than `sequence`.
    pub fn place_behind(&self, mut here: Boundary, sequence: u64) -> Boundary {
        while let Some((_, next)) = self.around(here.place + 1).filter(|(_, next)| next.sequence <= sequence) {
            here = next;
        }
        here
    }

    fn end_before(&self, index: usize) -> Boundary {
        let previous = index.checked_sub(1).and_then(|i| self.segments.get(i));
        previous.and_then(|s| Some(boundary(s, s.frames.last()?))).unwrap_or(self.front)
    }

    /// The large frame that `place` lies in, to hold on to, and where in it that is; none if it is no large one.
    pub fn large(&self, place: u64) -> Option<(Arc<Vec<u8>>, usize)> {
        let segment = self.segments.iter().rev().find(|segment| place >= segment.start)?;
        Some((Arc::clone(segment.large.as_ref()?), (place - segment.start) as usize))
    }

    /// The bytes between two places of one segment (a frame's rest).
    pub fn between(&self, from: u64, to: u64) -> &[u8] {
        let bytes = self.slice(from).unwrap_or(&[]);
        bytes.get(..(to.saturating_sub(from)) as usize).unwrap_or(bytes)
    }

    /// Whether `place` lies in the newest segment's frames or at the head.
    pub fn is_in_newest(&self, place: u64) -> bool {
        self.segments.back().is_none_or(|s| place >= s.start && (!self.is_sealed || place >= self.head()))
    }

    /// Whole frames from `place` on, each with the boundary before it, while `take` says so.
    pub fn each_frame(&self, place: u64, mut take: impl FnMut(&[u8], Boundary) -> bool) {
        let Some((mut before, _)) = self.around(place) else { return };
        let first = self.segments.iter().rposition(|s| s.start <= place).unwrap_or(0);
        for segment in self.segments.iter().skip(first) {
            let from = segment.frames.partition_point(|f| segment.start + u64::from(f.end) <= before.place);
            for frame in segment.frames.iter().skip(from) {
                let start = (before.place - segment.start) as usize;
                let bytes = segment.bytes().get(start..frame.end as usize).unwrap_or(&[]);
                if !take(bytes, before) {
                    return;
                }
                before = boundary(segment, frame);
            }
        }
    }

    /// Where the window would begin after a trim to `bytes_max`.
    pub fn front_within(&self, bytes_max: usize) -> u64 {
        let (mut bytes, mut front) = (self.bytes, self.front.place);
        for segment in self.segments.iter().take(self.segments.len().saturating_sub(1)) {
            if bytes <= bytes_max {
                break;
            }
            bytes -= segment.cost();
            front = segment.end();
        }
        front
    }

    /// Forgets the oldest segments until at most `bytes_max` are allocated or one is left. Returns bytes freed.
    pub fn trim(&mut self, bytes_max: usize) -> usize {
        let before = self.bytes;
        while self.bytes > bytes_max && self.segments.len() > 1 {
            let end = self.segments.front().map_or(0, Segment::end);
            let settled = self.settled(end).map_or(self.front_settled, |here| here.arrival);
            let beyond = self.beyond(end);
            if let Some(segment) = self.segments.pop_front() {
                (self.front_settled, self.front_beyond) = (settled, beyond);
                self.bytes -= segment.cost();
                if let Some(last) = segment.frames.last() {
                    self.front = boundary(&segment, last);
                }
            }
        }
        before - self.bytes
    }

    /// Forgets all frames: whoever is not at the head is caught up from the logs. Returns bytes freed.
    pub fn clear(&mut self, arrival: u64) -> usize {
        let freed = self.bytes;
        self.segments.clear();
        self.head.arrival = self.head.arrival.max(arrival);
        self.front = self.head;
        self.front_settled = self.head.arrival;
        self.front_beyond = None;
        self.bytes = 0;
        freed
    }
}

fn boundary(segment: &Segment, frame: &FrameEnd) -> Boundary {
    Boundary {
        place: segment.start + u64::from(frame.end),
        arrival: frame.arrival,
        standard: frame.standard,
        sequence: frame.sequence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(place: u64, arrival: u64) -> Boundary {
        Boundary { place, arrival, standard: 0, sequence: 0 }
    }

    #[test]
    fn an_empty_window_places_everybody_at_its_front() {
        let window = Window::new(5, 0);
        assert_eq!(window.place_after(4), None);
        assert_eq!(window.place_after(9), Some(at(0, 5)));
        assert_eq!(window.slice(0), Some(&[][..]));
    }

    proptest! {
        /// Whatever was appended and trimmed, a place after an arrival yields exactly the later frames.
        #[test]
        fn places_yield_exactly_the_later_frames(
            sizes in proptest::collection::vec(prop_oneof![9 => 1usize..700, 1 => 30_000usize..35_000], 1..120), limit in 256usize..90_000, seed in 0u64..1000,
        ) {
            let mut window = Window::new(0, 0);
            let mut frames: Vec<(u64, Vec<u8>)> = Vec::new();
            for (i, size) in sizes.iter().enumerate() {
                let arrival = (i as u64 + 1) * 3;
                let frame = vec![i as u8; *size];
                window.append(&frame, arrival, 0, 0);
                window.trim(limit);
                frames.push((arrival, frame));
            }
            let asked = seed % (frames.len() as u64 * 3 + 2);
            let Some(from) = window.place_after(asked) else {
                prop_assert!(asked < window.front.arrival);
                return Ok(());
            };
            let expected: Vec<u8> = frames.iter().filter(|f| f.0 > asked).flat_map(|f| f.1.clone()).collect();
            let mut got = Vec::new();
            let mut place = from.place;
            while place < window.head() {
                let slice = window.slice(place).unwrap();
                prop_assert!(!slice.is_empty());
                got.extend_from_slice(slice);
                place += slice.len() as u64;
            }
            prop_assert_eq!(got, expected);
        }

        /// Every byte place lies in the frame that `around` names.
        #[test]
        fn around_finds_the_frame_of_any_place(sizes in proptest::collection::vec(1usize..300, 1..60)) {
            let mut window = Window::new(0, 0);
            let mut ends = vec![at(0, 0)];
            for (i, size) in sizes.iter().enumerate() {
                window.append(&vec![0; *size], i as u64 + 1, 0, 0);
                ends.push(at(ends[i].place + *size as u64, i as u64 + 1));
            }
            for place in 0..=window.head() {
                let before = *ends.iter().rfind(|b| b.place <= place).unwrap();
                let after = *ends.iter().find(|b| b.place >= place).unwrap();
                prop_assert_eq!(window.around(place), Some((before, after)));
            }
        }
    }
}
