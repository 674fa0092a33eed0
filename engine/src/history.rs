//! Reading the journal back for clients: threads of their own take what shards ask for, one page each, and hand the answer back as an
//! order. Owns that no shard waits for a disk, and that what is not written yet is waited for, for a while. How many asks there are at once
//! the node bounds; what a page means the core decides.

use crate::node_shared::NodeShared;
use crate::queue::lock;
use godwit_core::journal::{Ask, Page, PageStart};
use godwit_core::report::Order;
use godwit_core::subject::Selector;
use godwit_journal::{Found, PageLimits, Progress, Reader, Stream};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// More would only share the disk.
const THREADS: usize = 2;

/// How long what is not written yet is waited for; the writer takes far less unless the disk fails.
const PATIENCE: Duration = Duration::from_secs(5);

/// The asks that wait, and the threads that take them.
#[derive(Debug)]
pub(crate) struct HistoryReaders {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// An ask has come, the journal has come further, or it is over.
    news: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    asks: VecDeque<Ask>,
    /// How many threads wait for the writer to come further.
    awaiting: usize,
    is_closed: bool,
}

impl HistoryReaders {
    /// Pages go to the node's shards, as long as the node exists.
    pub(crate) fn open(reader: &Reader, progress: &Progress, node_shared: &Weak<NodeShared>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::with_capacity(THREADS);
        for _ in 0..THREADS {
            let (shared, reader, progress, node_shared) =
                (Arc::clone(&shared), reader.clone(), progress.clone(), Weak::clone(node_shared));
            let run = move || {
                while let Some(ask) = shared.next() {
                    let page = shared.answer(&ask, &reader, &progress);
                    let Some(node_shared) = node_shared.upgrade() else { return };
                    // Never refused; a shard that has given up has no cursor that waits.
                    let _ = node_shared.order(usize::from(ask.shard), Order::Page(Box::new(page)));
                }
            };
            threads.push(std::thread::Builder::new().name("journal-read".to_owned()).spawn(run)?);
        }
        Ok(Self { shared, threads: Mutex::new(threads) })
    }

    pub(crate) fn ask(&self, ask: Ask) {
        lock(&self.shared.waiting).asks.push_back(ask);
        // Of who sleeps some wait for the writer.
        self.shared.news.notify_all();
    }

    /// The journal has come further. It does with every sync, and mostly nobody waits for that: then nobody is woken.
    pub(crate) fn tell(&self) {
        // Between a look at the progress and the wait for more of it nobody may be told.
        if lock(&self.shared.waiting).awaiting > 0 {
            self.shared.news.notify_all();
        }
    }

    /// Nobody is answered any more.
    pub(crate) fn close(&self) {
        lock(&self.shared.waiting).is_closed = true;
        self.shared.news.notify_all();
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join(); // a panic there has been printed
        }
    }
}

impl Drop for HistoryReaders {
    fn drop(&mut self) {
        // Not joined: one of these threads may be the last owner of `NodeShared`.
        lock(&self.shared.waiting).is_closed = true;
        self.shared.news.notify_all();
    }
}

impl Shared {
    fn next(&self) -> Option<Ask> {
        let mut waiting = lock(&self.waiting);
        loop {
            if waiting.is_closed {
                return None;
            }
            if let Some(ask) = waiting.asks.pop_front() {
                return Some(ask);
            }
            waiting = self.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn answer(&self, ask: &Ask, reader: &Reader, progress: &Progress) -> Page {
        let is_written = self.await_written(ask.until, progress);
        let failed = Page { cursor: ask.cursor, serial: ask.serial, has_failed: true, ..Page::default() };
        match read(ask, reader) {
            Ok(page) => Page {
                is_last: page.is_last && is_written,
                is_beginning: page.is_beginning && is_written,
                has_failed: page.has_failed || page.is_last && !is_written,
                ..page
            },
            Err(_) => failed,
        }
    }

    /// Waits until everything up to an arrival is written; false when it is not, in time or at all.
    fn await_written(&self, arrival: u64, progress: &Progress) -> bool {
        let end = Instant::now() + PATIENCE;
        let mut waiting = lock(&self.waiting);
        loop {
            if progress.journaled_arrival() >= arrival {
                return true;
            }
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() || waiting.is_closed || progress.is_failing() {
                return false;
            }
            waiting.awaiting += 1;
            waiting = self.news.wait_timeout(waiting, rest).unwrap_or_else(PoisonError::into_inner).0;
            waiting.awaiting -= 1;
        }
    }
}

/// One page.
fn read(ask: &Ask, reader: &Reader) -> io::Result<Page> {
    let first = reader.first(Stream::Messages);
    let mut is_beginning = false;
    let found = match (ask.place, &ask.selector) {
        (PageStart::Offset(offset), _) => Found { offset, is_whole: offset >= first },
        (PageStart::Arrival(arrival), _) => reader.find_later(arrival)?,
        (PageStart::After(at), Selector::Subject(subject)) => match reader.find_after(subject, at)? {
            Some(offset) => Found { offset, is_whole: true },
            None => Found { offset: first, is_whole: false },
        },
        (PageStart::Last(last), Selector::Subject(subject)) => {
            let found = reader.find_last(subject, last)?;
            is_beginning = found.is_none();
            let offset = found.map_or_else(|| reader.find_later(last.until).map(|later| later.offset), Ok)?;
            Found { offset, is_whole: true }
        }
        (PageStart::After(_) | PageStart::Last(_), Selector::Pattern(_)) => Found { offset: first, is_whole: false },
    };
    let limits = PageLimits { messages: ask.messages_max, bytes: ask.bytes_max };
    let (page, is_whole) = match &ask.selector {
        Selector::Subject(subject) => (reader.read_subject(subject, found.offset, limits)?, true),
        Selector::Pattern(pattern) => {
            let page = reader.read_matching(found.offset, limits, &mut |subject| pattern.matches(subject))?;
            let is_whole = page.rows == page.next - found.offset;
            (page, is_whole)
        }
    };
    let is_in = |range: &(u64, u64)| range.0 < page.next && range.1 > found.offset;
    let is_whole = is_whole
        && found.is_whole
        && reader.first(Stream::Messages) <= found.offset
        && !reader.missing(Stream::Messages).iter().any(is_in);
    Ok(Page {
        cursor: ask.cursor,
        serial: ask.serial,
        messages: page.messages,
        begin: found.offset,
        next: page.next,
        reached: page.reached,
        is_whole,
        is_beginning: is_beginning && !page.is_behind,
        is_last: page.is_last && !page.is_behind,
        has_failed: page.is_last && page.is_behind,
    })
}
