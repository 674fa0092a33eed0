//! What the shards of a node and Python's thread share, besides the node itself: each shard's waker, its orders and the counters
//! that it publishes once a turn, and the reports of all.

use crate::clock::ThreadClock;
use crate::driver::{self, Waker};
use crate::journal::{JournalFigures, Journaling};
use crate::queue::{Orders, Reports, lock};
use crate::tls::Certificates;
use godwit_core::report::Counters;
use godwit_core::report::{ConnectionId, ConnectionRow, Order, Report};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A shard's counters, all from the end of the same turn.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub shard: Counters,
    pub driver: driver::Counters,
    pub turns: u64,
    /// CPU time of the thread; none where the system does not report it.
    pub cpu: Option<Duration>,
    /// The shard failed; its other counters are the last that it published.
    pub has_failed: bool,
}

#[derive(Default)]
pub(crate) struct ShardSlot {
    pub(crate) orders: Orders,
    pub(crate) waker: OnceLock<Waker>,
    pub(crate) figures: Mutex<Figures>,
    pub(crate) cpu: OnceLock<ThreadClock>,
}

impl ShardSlot {
    /// The counters as of the end of the shard's last turn, and its thread's CPU time as of now.
    pub(crate) fn show(&self) -> Figures {
        let mut figures = lock(&self.figures).clone();
        figures.cpu = self.cpu.get().and_then(ThreadClock::read);
        figures
    }
}

/// How long an order waits for space in the queue, and a caller for its execution; a shard does both within a turn.
const PATIENCE: Duration = Duration::from_secs(2);

/// Rows, and the connection to continue with if not every connection was looked at.
pub(crate) type Listed = (Vec<ConnectionRow>, Option<ConnectionId>);

pub(crate) struct NodeShared {
    pub(crate) slots: Vec<ShardSlot>,
    pub(crate) reports: Reports,
    /// Shards that are drained, or have failed.
    drained: AtomicU64,
    /// Answers to `ListConnections` and `ShowConnection`, by ask; an entry exists only while a thread waits for it.
    lists: Mutex<HashMap<u64, Option<Listed>>>,
    listed: Condvar,
    certificates: Mutex<Option<Certificates>>,
    /// The journal; set before the shards begin, or never.
    journaling: OnceLock<Journaling>,
}

impl NodeShared {
    /// Sets the certificates of TLS listeners; established connections keep theirs.
    pub(crate) fn certify(&self, certificates: Option<Certificates>) {
        *lock(&self.certificates) = certificates;
    }

    pub(crate) fn certificates(&self) -> Option<Certificates> {
        lock(&self.certificates).clone()
    }

    pub(crate) fn new(shards: usize) -> io::Result<Self> {
        Ok(Self {
            slots: (0..shards).map(|_| ShardSlot::default()).collect(),
            reports: Reports::open()?,
            drained: AtomicU64::new(0),
            lists: Mutex::default(),
            listed: Condvar::new(),
            certificates: Mutex::default(),
            journaling: OnceLock::new(),
        })
    }

    /// Sets the journal, once.
    pub(crate) fn begin_journal(&self, journaling: Journaling) -> &Journaling {
        self.journaling.get_or_init(|| journaling)
    }

    pub(crate) fn journaling(&self) -> Option<&Journaling> {
        self.journaling.get()
    }

    pub(crate) fn show_journal(&self) -> Option<JournalFigures> {
        self.journaling.get().map(Journaling::show)
    }

    /// Tells the journal that messages wait for it.
    pub(crate) fn journal(&self) {
        if let Some(journaling) = self.journaling.get() {
            journaling.pump();
        }
    }

    /// Wakes the shards of a mask.
    pub(crate) fn wake(&self, mut mask: u64) {
        while mask != 0 {
            let shard = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            if let Some(waker) = self.slots.get(shard).and_then(|slot| slot.waker.get()) {
                waker.wake();
            }
        }
    }

    /// Gives an order to a shard and wakes it.
    /// False if the queue stayed full: the shard takes no orders.
    pub(crate) fn order(&self, shard: usize, order: Order) -> bool {
        let is_given = self.slots.get(shard).is_none_or(|slot| slot.orders.push(order, PATIENCE));
        self.wake(1u64.checked_shl(shard as u32).unwrap_or(0));
        is_given
    }

    /// Gives an order to all shards, even if the queue of one is full.
    pub(crate) fn order_all(&self, order: &Order) -> bool {
        (0..self.slots.len()).map(|shard| self.order(shard, order.clone())).filter(|is_given| !is_given).count() == 0
    }

    /// Waits until the shards have executed their orders, but not longer than `PATIENCE` for each.
    pub(crate) fn settle(&self) {
        for slot in &self.slots {
            let _ = slot.orders.settle(PATIENCE);
        }
    }

    /// Takes a shard's reports: lists go to the waiting thread, others to Python; the last shard's `Drained` stands for all.
    /// True when Python's thread has to be woken.
    pub(crate) fn report(&self, reports: &mut Vec<Report>) -> bool {
        if reports.iter().any(|report| matches!(report, Report::Connections { .. } | Report::Drained { .. })) {
            for report in std::mem::take(reports) {
                match report {
                    Report::Connections { ask, rows, next, .. } => self.answer(ask, (rows, next)),
                    Report::Drained { shard } => reports.extend(self.drained(shard)),
                    other => reports.push(other),
                }
            }
        }
        self.reports.push(reports)
    }

    /// Counts a shard as drained; returns the report that all are, if it is the last.
    pub(crate) fn drained(&self, shard: u8) -> Option<Report> {
        let before = self.drained.fetch_or(1 << shard, Ordering::AcqRel);
        let all = u64::MAX >> (64 - self.slots.len());
        (before != all && before | 1 << shard == all).then_some(Report::Drained { shard })
    }

    fn answer(&self, ask: u64, listed: Listed) {
        if let Some(place) = lock(&self.lists).get_mut(&ask) {
            *place = Some(listed);
            self.listed.notify_all();
        }
    }

    /// Orders a list from a shard and waits for it; returns no rows if the shard does not answer in time.
    pub(crate) fn list(&self, shard: usize, ask: u64, order: Order, patience: Duration) -> Listed {
        lock(&self.lists).insert(ask, None);
        self.order(shard, order);
        let end = Instant::now() + patience;
        let mut lists = lock(&self.lists);
        while lists.get(&ask).is_some_and(Option::is_none) {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            lists = self.listed.wait_timeout(lists, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        lists.remove(&ask).flatten().unwrap_or_default()
    }
}
