//! A journal of values: the rows that the node handed over, as far as they are written and not let go again, and the answers to who asks.
use godwit_core::journal::{Ask, KeptMessage, MessageRow, Page, PageStart};
use godwit_core::report::Order;
use godwit_core::subject::Selector;

use super::World;

#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The run whose rows come; 0: that of a test with one.
    pub run: u64,
    pub rows: Vec<KeptMessage>,
    /// Rows before this offset are no longer kept.
    pub first: usize,
    /// Rows from this offset on are not written yet.
    pub written: usize,
    /// Offsets of rows that are damaged.
    pub damaged: Vec<usize>,
    /// How many messages a page has at most.
    pub page_max: usize,
    pub has_failed: bool,
    pub asked: usize,
}

impl Past {
    /// Takes over what the node has handed out.
    pub(crate) fn note(&mut self, world: &World) {
        let mut rows = Vec::new();
        world.node.lock().expect("unpoisoned").take_rows(&mut rows);
        for row in &rows {
            let kept = keep(row, self.run, self.rows.len() as u64);
            self.rows.push(kept);
        }
    }

    pub(crate) fn write_all(&mut self) {
        self.written = self.rows.len();
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Answers all that is asked, until nothing is.
    pub(crate) fn serve(&mut self, world: &mut World) {
        loop {
            world.settle();
            self.note(world);
            self.write_all();
            let asks = world.take_asks();
            if asks.is_empty() {
                return;
            }
            for ask in asks {
                self.asked += 1;
                let page = self.answer(&ask);
                world.order(usize::from(ask.shard), Order::Page(Box::new(page)));
            }
            world.turn_all();
        }
    }

    /// Answers what is asked now, without what follows from it; returns how many those were.
    pub(crate) fn serve_once(&mut self, world: &mut World) -> usize {
        let asks = world.take_asks();
        for ask in &asks {
            let page = self.answer(ask);
            world.order(usize::from(ask.shard), Order::Page(Box::new(page)));
        }
        world.turn_all();
        asks.len()
    }

    pub(crate) fn answer(&self, ask: &Ask) -> Page {
        let mut is_beginning = false;
        let begin = match &ask.place {
            PageStart::Offset(offset) => Some(*offset as usize),
            PageStart::Arrival(arrival) => {
                let later = self.rows.iter().position(|row| row.arrival > *arrival).unwrap_or(self.rows.len());
                (self.first == 0 || later > self.first).then_some(later)
            }
            PageStart::Last(last) => {
                let is_its = |row: &&KeptMessage| *row.subject == *ask.selector.text();
                let is_then = |row: &&KeptMessage| row.arrival > last.after && row.arrival <= last.until;
                let there = self.rows.get(self.first..self.written).unwrap_or_default().iter();
                let there: Vec<u64> = there.filter(is_its).filter(is_then).map(|row| row.offset).collect();
                is_beginning = there.is_empty();
                let later = self.rows.iter().position(|row| row.arrival > last.until).unwrap_or(self.rows.len());
                let oldest = there.len().saturating_sub(last.count as usize);
                Some(there.get(oldest).map_or(later, |offset| *offset as usize))
            }
            PageStart::After(at) => {
                let is_it = |row: &KeptMessage| *row.subject == *ask.selector.text() && row.epoch == at.epoch;
                let found = self.rows.iter().position(|row| is_it(row) && row.sequence == at.sequence.max(1));
                let found = found.filter(|offset| *offset >= self.first && !self.damaged.contains(offset));
                found.map(|offset| offset + usize::from(at.sequence > 0))
            }
        };
        let mut page = Page { cursor: ask.cursor, serial: ask.serial, is_beginning, ..Page::default() };
        let from = begin.unwrap_or(self.first);
        let messages_max = ask.messages_max.min(self.page_max.max(1));
        page.is_whole = begin.is_some() && from >= self.first;
        (page.begin, page.next, page.is_last) = (from as u64, from as u64, true);
        for (offset, row) in self.rows.iter().enumerate().take(self.written).skip(from.max(self.first)) {
            if self.damaged.contains(&offset) {
                page.is_whole = false;
                continue;
            }
            let is_wanted = match &ask.selector {
                Selector::Subject(subject) => row.subject == Box::clone(subject).into(),
                Selector::Pattern(pattern) => pattern.matches(&row.subject),
            };
            if is_wanted && page.messages.len() >= messages_max {
                page.is_last = false;
                break;
            }
            (page.next, page.reached) = (offset as u64 + 1, row.arrival);
            if is_wanted {
                page.messages.push(row.clone());
            }
        }
        let is_written = self.rows.get(..self.written).unwrap_or(&[]).last().map_or(0, |row| row.arrival) >= ask.until;
        page.is_beginning &= is_written && !self.has_failed;
        page.has_failed = self.has_failed || page.is_last && !is_written;
        page
    }
}

impl World {
    /// What somebody waits for is on the disk at once, unless the test says when; the shards to wake.
    pub(super) fn write_notes(&mut self) -> u64 {
        let mut node = self.node.lock().expect("unpoisoned");
        if self.holds_notes || !node.wants_notes() {
            return 0;
        }
        self.notes.append(&mut node.take_notes());
        node.notes_synced()
    }

    /// What was noted since the last call.
    pub(crate) fn take_notes(&mut self) -> std::collections::BTreeMap<String, Option<String>> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.append(&mut self.node.lock().expect("unpoisoned").take_notes());
        notes
    }
}

fn keep(row: &MessageRow, run: u64, offset: u64) -> KeptMessage {
    let message = &row.message;
    let at = message.at().expect("only guaranteed messages are written down");
    let mut kept = KeptMessage::new(if run > 0 { run } else { 0xa1 }, offset, message.subject.clone(), at);
    (kept.arrival, kept.time_ms, kept.kind) = (message.arrival, message.time_ms, message.kind);
    (kept.is_retained, kept.qos, kept.is_mqtt, kept.expiry_s) =
        (message.is_retained, message.qos, row.is_mqtt, message.expiry_s);
    (kept.holder, kept.numbered) = (row.holder.clone(), row.numbered.clone());
    (kept.is_patch, kept.is_removal) = (message.is_patch, message.is_removal);
    kept.carry(message.content(), message.reply_to().unwrap_or(""), message.carried())
}
