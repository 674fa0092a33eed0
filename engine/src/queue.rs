//! Between the shards and Python's thread: reports up, orders down, both in batches.
//! Reports wait in one bounded list, and a descriptor is readable once Python is to take them: at once where one of them asks
//! something, else after a moment, so that it is not woken for every connection. Questions and endings are never dropped
//! (connections bound their number), news is at the limit, and counted. Orders wait per shard, which is woken once until it
//! has looked; at their limit who gives them waits, and after a while is told no.

use godwit_core::report::{Order, Report};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Reports that may wait before droppable ones are dropped.
const REPORTS_MAX: usize = 65_536;

/// Orders that may wait for one shard; it takes them all once a turn. Answers to questions are fewer: connections bound them.
const ORDERS_MAX: usize = 65_536;

/// What is locked is whole between any two statements, so a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Waiting {
    reports: Vec<Report>,
    dropped: u64,
    /// The pipe holds a byte.
    is_rung: bool,
}

pub(crate) struct Reports {
    waiting: Mutex<Waiting>,
    reader: PipeReader,
    writer: PipeWriter,
}

fn is_news(report: &Report) -> bool {
    use Report::{CommandRefused, Connected, Disconnected, Refused, Subscribed, Unsubscribed};
    matches!(
        report,
        Connected { .. }
            | Subscribed { .. }
            | Unsubscribed { .. }
            | Disconnected { .. }
            | Refused { .. }
            | CommandRefused { .. }
    )
}

impl Reports {
    pub(crate) fn open() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { waiting: Mutex::default(), reader, writer })
    }

    /// Adds what a turn brought, leaving `reports` empty. True when it is news that waits for `ring`.
    pub(crate) fn push(&self, reports: &mut Vec<Report>) -> bool {
        if reports.is_empty() {
            return false;
        }
        let mut waiting = lock(&self.waiting);
        let is_urgent = !reports.iter().all(is_news);
        for report in reports.drain(..) {
            if waiting.reports.len() >= REPORTS_MAX && is_news(&report) {
                waiting.dropped += 1;
            } else {
                waiting.reports.push(report);
            }
        }
        if is_urgent {
            self.ring_once(&mut waiting);
        }
        !waiting.is_rung
    }

    /// Makes the descriptor readable, if reports wait.
    pub(crate) fn ring(&self) {
        let mut waiting = lock(&self.waiting);
        if !waiting.reports.is_empty() {
            self.ring_once(&mut waiting);
        }
    }

    fn ring_once(&self, waiting: &mut Waiting) {
        if !waiting.is_rung {
            waiting.is_rung = true;
            // The pipe is empty and has both its ends here: one byte always fits.
            let _ = (&self.writer).write_all(&[1]);
        }
    }

    /// Takes all that wait.
    pub(crate) fn take(&self) -> Vec<Report> {
        let mut waiting = lock(&self.waiting);
        if std::mem::take(&mut waiting.is_rung) {
            let _ = (&self.reader).read(&mut [0]);
        }
        std::mem::take(&mut waiting.reports)
    }

    pub(crate) fn dropped(&self) -> u64 {
        lock(&self.waiting).dropped
    }

    /// Readable once the reports that wait are to be taken.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}

/// The orders that wait for one shard: who gives more than it takes waits for it, and is told when that takes too long.
#[derive(Default)]
pub(crate) struct Orders {
    waiting: Mutex<Given>,
    taken: Condvar,
}

#[derive(Default)]
struct Given {
    orders: Vec<Order>,
    /// Orders that were ever given, and those that the shard has carried out.
    count: u64,
    done: u64,
    /// The shard is gone: nobody takes them any more, and nobody needs to.
    is_closed: bool,
}

impl Orders {
    /// False: the shard has not taken its orders for so long that there is no room; this one was not given.
    pub(crate) fn push(&self, order: Order, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut given = lock(&self.waiting);
        // The word to stop is one, and must not wait behind what it ends; pages are no more than the node lets be read at once, and
        // a cursor waits for each.
        let must_wait = !matches!(order, Order::Stop | Order::Page(_));
        while must_wait && given.orders.len() >= ORDERS_MAX && !given.is_closed {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return false;
            }
            given = self.taken.wait_timeout(given, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        if !given.is_closed {
            given.orders.push(order);
            given.count += 1;
        }
        true
    }

    /// Takes all that wait into an empty list, whose memory is kept for the next ones.
    pub(crate) fn take(&self, into: &mut Vec<Order>) {
        std::mem::swap(&mut lock(&self.waiting).orders, into);
        self.taken.notify_all();
    }

    /// So many of those that were taken are carried out.
    pub(crate) fn finish(&self, count: usize) {
        lock(&self.waiting).done += count as u64;
        self.taken.notify_all();
    }

    /// Waits until what was given by now is carried out; false where that takes too long.
    pub(crate) fn settle(&self, patience: Duration) -> bool {
        let given = lock(&self.waiting);
        let count = given.count;
        let is_waiting = |given: &mut Given| given.done < count && !given.is_closed;
        let waited = self.taken.wait_timeout_while(given, patience, is_waiting).unwrap_or_else(PoisonError::into_inner);
        !waited.1.timed_out()
    }

    /// Drops what waits and all that comes: the shard has given up.
    pub(crate) fn close(&self) {
        let mut given = lock(&self.waiting);
        given.is_closed = true;
        given.orders = Vec::new();
        drop(given);
        self.taken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{ORDERS_MAX, Orders, REPORTS_MAX, Reports};
    use godwit_core::codes::Code;
    use godwit_core::report::{ConnectionId, Order, Report};
    use std::sync::Arc;
    use std::time::Duration;

    fn is_readable(reports: &Reports) -> bool {
        let mut poll = libc::pollfd { fd: reports.descriptor(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one valid pollfd of this frame.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    fn unsubscribed() -> Report {
        Report::Unsubscribed { connection: ConnectionId(1), selector: String::new() }
    }

    #[test]
    fn the_descriptor_is_readable_from_the_ring_to_the_taking() {
        let reports = Reports::open().unwrap();
        for _ in 0..3 {
            assert!(reports.push(&mut vec![unsubscribed()]), "news waits for the ring");
            assert!(!is_readable(&reports));
            reports.ring();
            reports.ring();
            assert!(!reports.push(&mut vec![unsubscribed()]));
            assert!(is_readable(&reports));
            assert_eq!(reports.take().len(), 2);
            assert!(!is_readable(&reports));
        }
        assert!(
            !reports.push(&mut vec![unsubscribed(), Report::Drained { shard: 0 }]),
            "what is urgent rings by itself"
        );
        assert!(is_readable(&reports) && reports.take().len() == 2 && !is_readable(&reports));
        reports.ring();
        assert!(!is_readable(&reports) && reports.take().is_empty());
    }

    fn close() -> Order {
        Order::Close { connection: ConnectionId(1), code: Code::ClosedByOperator, reason: String::new() }
    }

    #[test]
    fn at_the_limit_an_order_waits_until_the_shard_takes_or_its_patience_ends() {
        let orders = Arc::new(Orders::default());
        assert!((0..ORDERS_MAX).all(|_| orders.push(close(), Duration::ZERO)));
        assert!(!orders.push(close(), Duration::from_millis(1)), "nobody takes them");
        assert!(orders.push(Order::Stop, Duration::ZERO), "the end does not wait");
        assert!(orders.push(Order::Page(Box::default()), Duration::ZERO), "nor does what a cursor waits for");
        let giver = Arc::clone(&orders);
        let giving = std::thread::spawn(move || giver.push(close(), Duration::from_secs(60)));
        let mut taken = Vec::new();
        orders.take(&mut taken);
        assert!(giving.join().unwrap() && taken.len() > ORDERS_MAX);
    }

    #[test]
    fn orders_are_settled_once_all_that_were_given_before_are_carried_out() {
        let orders = Arc::new(Orders::default());
        assert!(orders.settle(Duration::ZERO), "none was given");
        assert!(orders.push(close(), Duration::ZERO) && orders.push(close(), Duration::ZERO));
        let mut taken = Vec::new();
        orders.take(&mut taken);
        orders.finish(1);
        assert!(!orders.settle(Duration::from_millis(1)), "one was taken, and no more is known of it");
        let waiter = Arc::clone(&orders);
        let waiting = std::thread::spawn(move || waiter.settle(Duration::from_secs(60)));
        orders.finish(1);
        assert!(waiting.join().unwrap());
        assert!(orders.push(close(), Duration::ZERO) && !orders.settle(Duration::from_millis(1)));
        orders.close();
        assert!(orders.settle(Duration::from_secs(60)), "a shard that gave up carries out none");
    }

    #[test]
    fn orders_to_a_shard_that_gave_up_are_dropped_and_nobody_waits() {
        let orders = Orders::default();
        (0..ORDERS_MAX).for_each(|_| assert!(orders.push(close(), Duration::ZERO)));
        orders.close();
        assert!(orders.push(close(), Duration::from_secs(60)));
        let mut taken = Vec::new();
        orders.take(&mut taken);
        assert!(taken.is_empty());
    }

    #[test]
    fn at_the_limit_news_is_dropped_and_counted_but_no_question() {
        let reports = Reports::open().unwrap();
        for _ in 0..REPORTS_MAX + 5 {
            reports.push(&mut vec![unsubscribed()]);
        }
        reports.push(&mut vec![Report::Drained { shard: 0 }]);
        assert_eq!(reports.dropped(), 5);
        let taken = reports.take();
        assert_eq!(taken.len(), REPORTS_MAX + 1);
        assert!(matches!(taken.last(), Some(Report::Drained { shard: 0 })));
    }
}
