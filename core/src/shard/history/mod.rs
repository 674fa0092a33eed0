//! Reading back: a client names a place that memory has let go of and the journal still holds. Owns the way of its cursor from there
//! into memory; what is in the journal, and where, is the journal's to find, off this thread.
//!
//! The cursor stands at `CursorState::Reading`: everything up to an arrival has been sent, and of a subject everything up to a position.
//! It waits. A page of the journal is asked for (`Ask`), when its socket takes bytes and the node has room for one more reading; the
//! engine hands the ask to a thread of its own and the answer (`Page`) back in an order, so that no shard ever waits for a disk. The
//! page's messages are made into frames and sent in one go, as a chunk from a log would be; a page that finds the socket full is
//! dropped and asked for again, so that nothing of it is held for a slow client. What the socket took of a page moves the stand, so
//! that the next page may begin with the same row: what is not after the stand is passed over.
//!
//! After each page memory is asked whether it goes on from the stand. If it does, the cursor is `Behind` there, like any that
//! catches up, and live messages that came meanwhile wait in the log as they always do. If memory lets go of those too before
//! they were sent, the cursor reads on (`reads_back`); it ends with the head. So each message comes from exactly one of the two, in
//! order, and nothing is kept for the cursor but numbers.
//!
//! What is missing is seen, not guessed: a subject's sequences follow one another, so that a row that the journal lost, or let go
//! of while it was read, is a gap of exactly so many; a pattern's rows are whole where the journal says that it holds all offsets
//! between, else the pattern has a gap. Where an epoch ends, the next begins with its first message and nothing was lost in between,
//! nothing is missing and that is told. What an operator took back is passed over, like what is not there.
mod epochs;
mod pattern;
mod start;
mod subject;

use std::collections::VecDeque;
use std::sync::Arc;

use super::encode::{self, Item, Told};
use super::outbound::{Frames, GATHER_BYTES, Note};
use super::{Shard, SocketOutput, lock};
use crate::codec::Wire;
use crate::cursor::{CursorState, HistoryRead};
use crate::journal::{Ask, KeptMessage, Page, PageStart};
use crate::message::{Follows, LogId, Message};
use crate::node::Node;
use crate::position::Position;
use crate::stream::Source;
use crate::subject::{Pattern, Selector};

/// Messages of one page at most.
const PAGE_MESSAGES: usize = 1_024;
/// The serial of a reading that waits for room.
const WAITING: u64 = u64::MAX;

/// What a shard reads back.
#[derive(Debug, Default)]
pub(in crate::shard) struct History {
    /// For the engine to take.
    asks: Vec<Ask>,
    pages: Vec<Page>,
    /// Cursors that found no room.
    waiting: VecDeque<u32>,
    serial: u64,
}

impl Shard {
    /// What is to be read from the journal since the last call.
    pub fn take_asks(&mut self, each: impl FnMut(Ask)) {
        self.history.asks.drain(..).for_each(each);
    }

    pub(in crate::shard) fn has_pages(&self) -> bool {
        !self.history.pages.is_empty()
    }

    /// A page has come; it is used in the turn that follows.
    pub(in crate::shard) fn keep_page(&mut self, page: Page) {
        self.history.pages.push(page);
    }

    /// Whether a stream's cursors may read back: there is a journal, and each message is wanted, not what several came to.
    pub(in crate::shard) fn can_read_back(&self, cursor: u32) -> bool {
        let stream = self.cursors.get(cursor).and_then(|cursor| self.streams.get(cursor.stream));
        self.settings.journal.is_some()
            && self.settings.limits.journal_reads_max > 0
            && stream.is_some_and(|stream| {
                let is_client = matches!(stream.wire, Wire::Mqtt(_) | Wire::MqttParts | Wire::MqttShared(_));
                stream.conflate_ms == 0 && !is_client
            })
    }

    /// From here on the cursor reads back: it has been sent everything up to an arrival, and of a subject up to a position.
    pub(in crate::shard) fn read_back(
        &mut self,
        id: u32,
        arrival: u64,
        at: Option<Position>,
        place: PageStart,
        is_history: bool,
    ) {
        let stream = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream));
        if stream.is_some_and(|stream| stream.pattern().is_none()) {
            // Its numbers are positions from here on; a pattern's range goes on, with what was told in it.
            self.end_range(id);
        }
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let epoch = at.map_or(0, |at| at.epoch);
        cursor.stand = CursorState::Reading(arrival);
        cursor.sequence = at.map_or(0, |at| at.sequence);
        cursor.reads_back = true;
        let (is_last, is_whole) = (false, false);
        let reading =
            HistoryRead { epoch, follows: None, place, next: None, serial: 0, head: 0, is_last, is_whole, is_history };
        cursor.job.get_or_insert_default().reading = Some(reading);
        if let Some(at) = at {
            self.begin_reading_range(id, at);
        }
        self.queue_behind(id);
    }

    /// Goes on from what the socket took: into memory, or with the next page, unless one is on its way.
    pub(in crate::shard) fn read_on(&mut self, id: u32, source: &Source, node: &mut Node) {
        let Some((reading, arrival)) = self.reading_of(id) else { return };
        if reading.serial != 0 || self.messages_left(id) == 0 {
            return;
        }
        let is_sent = reading.next.is_some_and(|(end, _)| arrival >= end);
        let is_done = is_sent
            && match source {
                Source::Subject(log) => self.leave_subject(id, *log, node),
                Source::Pattern(pattern) => self.leave_pattern(id, pattern, node),
            };
        let Some(reading) = self.cursors.get_mut(id).and_then(|cursor| cursor.reading_mut()).filter(|_| !is_done)
        else {
            return;
        };
        if !node.begin_reading(self.index) {
            reading.serial = WAITING;
            return self.history.waiting.push_back(id);
        }
        self.put_ask(id, node);
    }

    /// Lets those who wait have the room that there is.
    pub(in crate::shard) fn admit_readers(&mut self) {
        if self.history.waiting.is_empty() {
            return;
        }
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        while let Some(&id) = self.history.waiting.front()
            && node.begin_reading(self.index)
        {
            self.history.waiting.pop_front();
            let reading = self.cursors.get(id).and_then(|cursor| cursor.reading());
            if reading.is_some_and(|reading| reading.serial == WAITING) {
                self.put_ask(id, &mut node);
            } else {
                node.end_reading(self.index);
            }
        }
        self.wakes |= node.take_wakes();
    }

    fn put_ask(&mut self, id: u32, node: &mut Node) {
        let left = self.messages_left(id);
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        let stand = cursor.stand;
        let Some(reading) = cursor.reading_mut() else { return };
        self.history.serial += 1;
        reading.serial = self.history.serial;
        reading.head = node.arrival();
        if let (Some((end, next)), CursorState::Reading(arrival)) = (reading.next, stand)
            && arrival >= end
        {
            (reading.place, reading.next) = (next, None);
        }
        let selector = match &stream.source {
            Source::Subject(_) => Selector::Subject(Box::from(&*stream.name)),
            Source::Pattern(pattern) => Selector::Pattern(Pattern::clone(pattern)),
        };
        self.history.asks.push(Ask {
            shard: self.index,
            cursor: id,
            serial: reading.serial,
            selector,
            place: reading.place,
            until: node.handed_over(),
            messages_max: left.clamp(1, PAGE_MESSAGES),
            bytes_max: self.settings.limits.journal_page_bytes_max.min(GATHER_BYTES.max(4096) * 4),
        });
    }

    /// Uses the pages that have come.
    pub(in crate::shard) fn take_pages<O: SocketOutput>(&mut self, out: &mut O) {
        for mut page in std::mem::take(&mut self.history.pages) {
            let node = Arc::clone(&self.node);
            let mut node = lock(&node);
            node.end_reading(self.index);
            self.wakes |= node.take_wakes();
            self.absorb_all(&mut node);
            page.end_at(node.arrival());
            let id = page.cursor;
            let Some(cursor) = self.cursors.get_mut(id) else { continue };
            let (socket, stream) = (cursor.connection, cursor.stream);
            let Some(reading) = cursor.reading_mut().filter(|reading| reading.serial == page.serial) else { continue };
            reading.serial = 0;
            if !self.connections.get(socket).is_some_and(|connection| connection.takes_frames()) {
                self.queue_behind(id);
                continue;
            }
            match self.streams.get(stream).map(|stream| stream.source.clone()) {
                Some(Source::Subject(log)) => {
                    if page.is_beginning {
                        node.note_beginning(log);
                    }
                    self.use_subject_page(id, log, page, node, out);
                }
                Some(Source::Pattern(_)) => self.use_pattern_page(id, page, node, out),
                None => {}
            }
        }
        self.admit_readers();
    }

    /// The reading of a cursor, copied; none where it does not read back.
    fn reading_of(&self, id: u32) -> Option<(HistoryRead, u64)> {
        let cursor = self.cursors.get(id)?;
        let CursorState::Reading(arrival) = cursor.stand else { return None };
        Some((*cursor.reading()?, arrival))
    }

    /// The cursor reads no more.
    fn end_reading(&mut self, id: u32) {
        if let Some(job) = self.cursors.get_mut(id).and_then(|cursor| cursor.job.as_mut()) {
            job.reading = None;
        }
        if let Some(socket) = self.cursors.get(id).map(|cursor| cursor.connection) {
            self.wake_readers(socket);
        }
    }

    /// Makes frames of messages that were read back; the stand of who is not sent one is before it.
    fn encode_pages(&mut self, id: u32, messages: &[Message], frames: &mut Frames) {
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let Some((stream, next_number)) = self.streams.get_with_number(cursor.stream) else { return };
        self.counters.catch_up_messages += messages.len() as u64;
        let mut told = Told::version(cursor.announced);
        for message in messages {
            let item = Item::message(message);
            let framed = encode::private_frame(stream, next_number, &item, &mut told, &mut frames.bytes);
            frames.notes.push(Note {
                end: frames.bytes.len(),
                cursor: id,
                before: CursorState::Reading(message.arrival.saturating_sub(1)),
                sequence: message.sequence.saturating_sub(1),
                is_standard: false,
                is_too_large: framed.is_too_large,
                is_tracked: false,
                messages: 1,
            });
        }
        if let Source::Subject(_) = stream.source {
            cursor.announced = told.version;
        }
    }
}

/// A row as a message to be sent, once.
fn revive(kept: KeptMessage, log: LogId, follows: Option<Position>) -> Message {
    let is_first = kept.sequence == 1;
    let mut message = kept.into_message(log);
    message.follows = follows.filter(|_| is_first).map(|at| Arc::new(Follows { number: 0, at }));
    message
}
