//! How many messages lie between two places: frames, but for resume tokens, and what frames were merged of.
use super::{Segment, Window};

/// Frames that say in a message's place that it is missing, and what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Those of messages with a place of their own, and how many messages.
    pub frames: u64,
    pub messages: u64,
    /// Those of standard messages, and how many of these.
    pub standard_frames: u64,
    pub standards: u64,
}

/// What a reader is given: messages with a place of their own, how many more they were made of, what is missing, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    pub messages: u64,
    pub merged: u64,
    pub missing: Missing,
    pub bytes: u64,
}

impl Handed {
    /// And what came behind it.
    pub(super) fn add(&mut self, next: &Self) {
        self.messages += next.messages;
        self.merged += next.merged;
        self.missing.frames += next.missing.frames;
        self.missing.messages += next.missing.messages;
        self.missing.standard_frames += next.missing.standard_frames;
        self.missing.standards += next.missing.standards;
        self.bytes += next.bytes;
    }
}

impl Window {
    /// Says of the frame that was appended last that it is `count` messages in one.
    pub fn merge_last(&mut self, count: u32) {
        if count > 1
            && let Some(segment) = self.segments.back_mut()
        {
            segment.merged.push((segment.frames.len() as u32 - 1, count - 1));
        }
    }

    /// Says of the frame that was appended last that it is a standard message, or several.
    pub fn set_last_standard(&mut self) {
        if let Some(segment) = self.segments.back_mut() {
            segment.standards.push(segment.frames.len() as u32 - 1);
        }
    }

    /// Says of the frame that was appended last that it stands for `count` messages which are missing.
    pub fn set_last_missing(&mut self, count: u32) {
        if let Some(segment) = self.segments.back_mut() {
            segment.missing.push((segment.frames.len() as u32 - 1, count));
        }
    }

    /// What frames that begin there say to be missing.
    #[inline]
    pub fn missing(&self, from: u64, to: u64) -> Missing {
        let mut found = Missing::default();
        if self.segments.iter().all(|segment| segment.missing.is_empty()) {
            return found;
        }
        let Some((segment, frames)) = self.between_places(from, to) else { return found };
        for (frame, count) in segment.missing.iter().filter(|(frame, _)| frames.contains(frame)) {
            let (of_frames, of_messages) = match segment.standards.binary_search(frame) {
                Ok(_) => (&mut found.standard_frames, &mut found.standards),
                Err(_) => (&mut found.frames, &mut found.messages),
            };
            *of_frames += 1;
            *of_messages += u64::from(*count);
        }
        found
    }

    /// How many frames that begin there are standard messages.
    #[inline]
    pub fn standards(&self, from: u64, to: u64) -> u64 {
        if self.segments.iter().all(|segment| segment.standards.is_empty()) {
            return 0;
        }
        let Some((segment, frames)) = self.between_places(from, to) else { return 0 };
        let before = |frame: u32| segment.standards.partition_point(|standard| *standard < frame);
        (before(frames.end) - before(frames.start)) as u64
    }

    /// How many messages begin between the boundary `from` and the place `to` of the same segment.
    #[inline]
    pub fn messages(&self, from: u64, to: u64) -> u64 {
        let Some((segment, frames)) = self.between_places(from, to) else { return 0 };
        let resume_tokens = segment.asides.iter().filter(|frame| frames.contains(frame)).count();
        (frames.len() - resume_tokens.min(frames.len())) as u64
    }

    /// How many messages more those frames were made of.
    #[inline]
    pub fn merged(&self, from: u64, to: u64) -> u64 {
        if self.segments.iter().all(|segment| segment.merged.is_empty()) {
            return 0;
        }
        let Some((segment, frames)) = self.between_places(from, to) else { return 0 };
        segment.merged.iter().filter(|(frame, _)| frames.contains(frame)).map(|(_, more)| u64::from(*more)).sum()
    }

    /// What a reader is given with the frames that begin there.
    #[inline]
    pub fn handed(&self, from: u64, to: u64) -> Handed {
        let missing = self.missing(from, to);
        let messages = self.messages(from, to) - self.standards(from, to) - missing.frames;
        let merged = self.merged(from, to) - (missing.messages - missing.frames);
        Handed { messages, merged, missing, bytes: to.saturating_sub(from) }
    }

    /// Messages with a place of their own that those frames were made of.
    pub fn placed(&self, from: u64, to: u64) -> u64 {
        self.messages(from, to) - self.standards(from, to) + self.merged(from, to)
    }

    /// Which frames of its segment begin between the boundary `from` and the place `to` of the same.
    #[inline]
    fn between_places(&self, from: u64, to: u64) -> Option<(&Segment, std::ops::Range<u32>)> {
        let segment = self.segments.iter().rev().find(|segment| from >= segment.start)?;
        let ends_by = |place: u64| segment.frames.partition_point(|f| segment.start + u64::from(f.end) <= place);
        // Most readers take what was appended last.
        let is_after =
            |frame: usize| segment.frames.get(frame).is_some_and(|frame| segment.start + u64::from(frame.end) <= from);
        let begins = match segment.frames.len().wrapping_sub(2) {
            before_last if is_after(before_last) && !is_after(before_last + 1) => before_last + 1,
            _ => ends_by(from),
        };
        let end = match to {
            to if to >= segment.end() => segment.frames.len(),
            to if to > from => ends_by(to - 1) + 1,
            _ => begins,
        };
        Some((segment, begins as u32..end as u32))
    }
}
