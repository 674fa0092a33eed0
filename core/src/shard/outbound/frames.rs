//! Frames made for one connection, and what is to be known of each should it not be sent.
use crate::conflation::Part;
use crate::cursor::CursorState;

/// Frames made for one connection: its private bytes first, then frames of its cursors.
#[derive(Debug, Default)]
pub(in crate::shard) struct Frames {
    pub bytes: Vec<u8>,
    /// How many of the bytes are private.
    pub private: usize,
    pub notes: Vec<Note>,
    /// Messages that cursors pass over with these frames: their clients have them, or do not want them.
    pub passed: Vec<Passed>,
    /// What the noted frames were merged from, one for each; empty where they are single messages.
    pub merged: Vec<Part>,
}

/// One message that a cursor passes over.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct Passed {
    pub cursor: u32,
    pub arrival: u64,
    /// Of a subject's stream: its number in the log; else 0.
    pub sequence: u64,
}

impl Frames {
    /// Where the cursor of merged frames stands that were cut at `count` bytes: before the first message that was not sent, and in the midst
    /// of no frame's messages. None where all were sent, or they were not merged.
    pub(in crate::shard) fn merged_before(&self, count: usize) -> Option<u64> {
        let begins = std::iter::once(self.private).chain(self.notes.iter().map(|note| note.end));
        let unsent =
            begins.zip(&self.merged).filter(|(start, _)| *start >= count).map(|(_, part)| part.first - 1).min()?;
        // In order of their last message.
        let straddles =
            |before: u64, part: &Part| if part.message.arrival > before { before.min(part.first - 1) } else { before };
        Some(self.merged.iter().rev().fold(unsent, straddles))
    }

    /// Messages of which the first `count` bytes hold something; what is private has been counted where it was written.
    pub(in crate::shard) fn messages_within(&self, count: usize) -> u64 {
        self.begun(count).iter().filter(|note| !note.is_too_large).count() as u64
    }

    /// The notes of frames of which the first `count` bytes hold something.
    fn begun(&self, count: usize) -> &[Note] {
        let begun = if count <= self.private { 0 } else { self.notes.partition_point(|note| note.end < count) + 1 };
        self.notes.get(..begun.min(self.notes.len())).unwrap_or(&[])
    }

    /// Of those the ones that say that a message is too long: with a place of its own, and standard ones.
    pub(in crate::shard) fn too_large_within(&self, count: usize) -> (u64, u64) {
        let too_large = self.begun(count).iter().filter(|note| note.is_too_large);
        let (standard, placed): (Vec<&Note>, Vec<&Note>) = too_large.partition(|note| note.messages == 0);
        (placed.len() as u64, standard.len() as u64)
    }
}

/// One frame of a buffer, and where its cursor stands if the frame is not sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct Note {
    pub end: usize,
    pub cursor: u32,
    pub before: CursorState,
    /// Of a subject's stream: the last sequence before the frame; 0 not known.
    pub sequence: u64,
    pub is_standard: bool,
    /// It says in a message's place that this is longer than the client takes.
    pub is_too_large: bool,
    /// MQTT: the client has yet to settle it.
    pub is_tracked: bool,
    /// How many messages with a place of their own the frame is; 0 of a standard one, and of a resume token.
    pub messages: u32,
}
