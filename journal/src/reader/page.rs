//! Pages of messages from further back than memory: of one subject, or of those that a pattern holds, a bounded number at a time.
//! Owns finding where a client's place is in the journal and what comes after it.
use std::io;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use godwit_core::journal::KeptMessage;
use godwit_core::position::Position;

use super::{Reader, Source};
use crate::Stream;
use crate::decode::batch::offsets;
use crate::decode::kept::Messages;

/// Rows that one page is made of at most: who wants few of very many comes again.
const ROWS_MAX: u64 = 262_144;

/// How much a page may hold.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    pub messages: usize,
    /// Of content; the last message may pass it.
    pub bytes: usize,
}

/// Some messages, in the order in which they were accepted.
#[derive(Clone, Debug)]
pub struct Page {
    pub messages: Vec<KeptMessage>,
    /// The offset to go on from: everything before it that was asked for is in this page or an earlier one.
    pub next: u64,
    /// There is nothing more in the journal now.
    pub is_last: bool,
    /// Rows that are said to be journaled could not be read: the disk fails, and they are written again.
    pub is_behind: bool,
    /// The arrival of the last row before `next`; 0 where no row was looked at.
    pub reached: u64,
    /// Rows that were looked at. Where no segment was passed over they are all there are before `next`, or some are gone.
    pub rows: u64,
}

/// Where a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub offset: u64,
    /// The journal still has everything from that place on, as far as its end tells.
    pub is_whole: bool,
}

impl Reader {
    /// From which offset on to read what a subject got after a position; sequence 0 stands before the first message of its epoch.
    /// None: the journal does not have the position (any more), so that what came after it cannot be told.
    pub fn find_after(&self, subject: &str, at: Position) -> io::Result<Option<u64>> {
        for source in self.sources(Stream::Messages).iter().rev() {
            if let Some(offset) = self.find_after_in(source, subject, at)? {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    fn find_after_in(&self, source: &Source, subject: &str, at: Position) -> io::Result<Option<u64>> {
        let sequence = at.sequence.max(1);
        let mut from = 0;
        if let Some(entries) = self.entries_of(source, subject) {
            let Some(entry) = entries.iter().find(|entry| entry.epoch == at.epoch) else { return Ok(None) };
            if sequence < entry.first_sequence || sequence > entry.last_sequence {
                return Ok(None);
            }
            from = entry.first_offset;
        }
        let wanted = Position { epoch: at.epoch, sequence };
        let mut found = None;
        let _ = self.read_source(source, from, u64::MAX, &mut |batch| {
            let Some(messages) = Messages::new(&batch) else { return ControlFlow::Continue(()) };
            let row =
                (0..batch.num_rows()).find(|row| messages.at(*row) == wanted && messages.subject(*row) == subject);
            found = row.map(|row| messages.offset(row) + u64::from(at.sequence > 0));
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// The first row whose arrival is later, whatever the run: arrivals go on from run to run.
    pub fn find_later(&self, arrival: u64) -> io::Result<Found> {
        let first = self.first(Stream::Messages);
        for source in self.sources(Stream::Messages) {
            if source.arrivals.is_some_and(|(_, max)| max <= arrival) {
                continue;
            }
            let (mut found, mut last) = (None, source.first);
            let _ = self.read_source(&source, 0, u64::MAX, &mut |batch| {
                let Some(messages) = Messages::new(&batch) else { return ControlFlow::Continue(()) };
                let row = (0..batch.num_rows()).find(|row| messages.arrival(*row) > arrival);
                last = batch.num_rows().checked_sub(1).map_or(last, |row| messages.offset(row) + 1);
                found = row.map(|row| messages.offset(row));
                if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if let Some(offset) = found {
                return Ok(Found { offset, is_whole: first == 0 || offset > first });
            }
            if !source.is_sealed && source.next == u64::MAX {
                return Ok(Found { offset: last, is_whole: first == 0 || last > first });
            }
        }
        let (first, next) = self.span(Stream::Messages);
        Ok(Found { offset: next, is_whole: first == 0 || next > first })
    }

    /// A subject's messages from an offset on.
    pub fn read_subject(&self, subject: &str, from: u64, limits: PageLimits) -> io::Result<Page> {
        let skips = |source: &Source| {
            let entries = self.entries_of(source, subject);
            entries.is_some_and(|entries| entries.iter().all(|entry| entry.last_offset < from))
        };
        self.read_messages(from, limits, &skips, &mut |name| name == subject)
    }

    /// The messages whose subject is wanted, from an offset on.
    pub fn read_matching(
        &self,
        from: u64,
        limits: PageLimits,
        wants: &mut dyn FnMut(&str) -> bool,
    ) -> io::Result<Page> {
        self.read_messages(from, limits, &|_| false, wants)
    }

    fn read_messages(
        &self,
        from: u64,
        limits: PageLimits,
        skips: &dyn Fn(&Source) -> bool,
        wants: &mut dyn FnMut(&str) -> bool,
    ) -> io::Result<Page> {
        let mut page = Page { messages: Vec::new(), next: from, is_last: true, is_behind: false, reached: 0, rows: 0 };
        let mut bytes = 0;
        let before = self.setbacks();
        for source in self.sources(Stream::Messages) {
            if source.next <= from {
                continue;
            }
            if skips(&source) {
                page.next = source.next;
                page.reached = source.arrivals.map_or(page.reached, |(_, max)| max);
                continue;
            }
            let flow = self.read_source(&source, from, u64::MAX, &mut |batch| {
                let Some(mut messages) = Messages::new(&batch) else { return ControlFlow::Continue(()) };
                for row in 0..batch.num_rows() {
                    let is_wanted = wants(messages.subject(row));
                    let is_full = page.messages.len() >= limits.messages || (bytes >= limits.bytes && bytes > 0);
                    if is_wanted && is_full || page.rows >= ROWS_MAX {
                        page.is_last = false;
                        return ControlFlow::Break(());
                    }
                    page.next = messages.offset(row) + 1;
                    page.reached = messages.arrival(row);
                    page.rows += 1;
                    if is_wanted {
                        bytes += messages.content_bytes(row);
                        page.messages.push(messages.message(row));
                    }
                }
                ControlFlow::Continue(())
            })?;
            if flow.is_break() {
                break;
            }
        }
        let after = self.setbacks();
        page.is_behind = before.0 || after.0;
        page.is_last &= before.1 == after.1; // else a file that was written again may have been passed over
        Ok(page)
    }

    /// Whether written rows are to be written again, and how often that began.
    fn setbacks(&self) -> (bool, u64) {
        let segments = self.catalog.lock(Stream::Messages);
        (segments.is_behind, segments.setbacks)
    }
}

/// The rows of a batch whose offsets are from `first` up to `next`; none where there are none. Offsets rise.
pub(super) fn cut(batch: RecordBatch, first: u64, next: u64) -> Option<RecordBatch> {
    let offsets = offsets(&batch)?;
    let begin = offsets.partition_point(|offset| (*offset as u64) < first);
    let end = offsets.partition_point(|offset| (*offset as u64) < next);
    if begin == 0 && end == offsets.len() {
        return Some(batch);
    }
    (begin < end).then(|| batch.slice(begin, end - begin))
}
