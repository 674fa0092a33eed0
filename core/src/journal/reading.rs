//! Reading further back than memory: what a shard asks of the journal for one cursor, and the page that it is answered with. Owns the
//! shapes alone; who may ask how much at once is the node's, how a page is found the crate `godwit-journal`'s, what a client is
//! told of it the shard's.
use crate::journal::KeptMessage;
use crate::position::Position;
use crate::subject::Selector;

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// With the subject's first message after a position.
    After(Position),
    /// With the first message that was accepted after an arrival.
    Arrival(u64),
    /// With the last messages of the subject before what memory has of it.
    Last(Last),
    /// With a row of the journal.
    Offset(u64),
}

/// So many messages, the last that were accepted after one arrival and up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    pub count: u64,
    pub after: u64,
    pub until: u64,
}

/// What one cursor wants next.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The shard that asks, its cursor, and the number of this ask among the shard's: an answer to an earlier one is nobody's.
    pub shard: u8,
    pub cursor: u32,
    pub serial: u64,
    pub selector: Selector,
    pub place: PageStart,
    /// Everything up to this arrival has been handed to the journal: what of it is not written yet is waited for.
    pub until: u64,
    pub messages_max: usize,
    /// Of content; the last message may pass it.
    pub bytes_max: usize,
}

/// The answer: some messages of the selector, in the order in which they were accepted.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub cursor: u32,
    pub serial: u64,
    pub messages: Vec<KeptMessage>,
    /// The offset that it was read from, and the one to go on from.
    pub begin: u64,
    pub next: u64,
    /// The arrival of the last row that was looked at; 0 none.
    pub reached: u64,
    /// The journal holds the place asked for, and everything from there to `next`.
    pub is_whole: bool,
    /// Of the last messages that were asked for there is none, and all that was to be waited for is there.
    pub is_beginning: bool,
    /// Nothing follows in the journal, which has everything up to the arrival that was to be waited for.
    pub is_last: bool,
    /// It could not be read, or not in time.
    pub has_failed: bool,
}

impl Page {
    /// Leaves out what was accepted after an arrival: it is in the journal, and not to be seen yet. Memory brings it when it is.
    pub fn end_at(&mut self, arrival: u64) {
        self.reached = self.reached.min(arrival);
        let later = self.messages.iter().enumerate().find(|(_, kept)| kept.arrival > arrival);
        if let Some((count, next)) = later.map(|(count, kept)| (count, kept.offset)) {
            self.messages.truncate(count);
            (self.next, self.is_last) = (next, true);
        }
    }
}
