//! What the threads of a load share: which step it is, what each has counted so far, and the first fault.
//! Counters are the threads' own and only stored, never added to from elsewhere; the sums are the coordinator's.
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::histogram::Histogram;

/// One thread's counts since the load began.
#[derive(Default)]
pub(crate) struct Counts {
    /// Connections that stand: subscribed subscribers, publishers that may publish.
    pub(crate) live: AtomicU64,
    pub(crate) delivered: AtomicU64,
    /// Numbers that were skipped without the server saying so.
    pub(crate) lost: AtomicU64,
    pub(crate) repeated: AtomicU64,
    /// Gaps the server told of; their messages count as missed, not as lost.
    pub(crate) gaps: AtomicU64,
    pub(crate) missed: AtomicU64,
    pub(crate) snapshots: AtomicU64,
    pub(crate) published: AtomicU64,
    pub(crate) acked: AtomicU64,
    /// Sends of publishers, for the mean of messages that reach the server at once.
    pub(crate) writes: AtomicU64,
    /// Receives, for the mean of messages a write.
    pub(crate) reads: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// The lowest number that any of the thread's subscribers expects next.
    pub(crate) slowest: AtomicU64,
}

/// Sums of `Counts` over all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Sums {
    pub(crate) live: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) gaps: u64,
    pub(crate) missed: u64,
    pub(crate) snapshots: u64,
    pub(crate) published: u64,
    pub(crate) acked: u64,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
}

impl Sums {
    /// What was counted since `before`; `live` is a state, not a count.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            live: self.live,
            delivered: self.delivered - before.delivered,
            lost: self.lost - before.lost,
            repeated: self.repeated - before.repeated,
            gaps: self.gaps - before.gaps,
            missed: self.missed - before.missed,
            snapshots: self.snapshots - before.snapshots,
            published: self.published - before.published,
            acked: self.acked - before.acked,
            writes: self.writes - before.writes,
            reads: self.reads - before.reads,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Everything shared.
pub(crate) struct Tally {
    /// The number of the step in force; threads look at it every turn.
    pub(crate) step: AtomicUsize,
    pub(crate) is_stopped: AtomicBool,
    pub(crate) counts: Vec<Counts>,
    fault: Mutex<Option<String>>,
    driver: Mutex<&'static str>,
    /// Latencies and times to join of the step that ended last, added by each thread when it sees the next.
    pub(crate) latency: Mutex<Histogram>,
    /// How many threads have handed in their latencies of steps before `step`.
    pub(crate) handed_in: AtomicUsize,
}

impl Tally {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            step: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            counts: (0..threads).map(|_| Counts::default()).collect(),
            fault: Mutex::new(None),
            driver: Mutex::default(),
            latency: Mutex::default(),
            handed_in: AtomicUsize::new(0),
        }
    }

    /// Notes what went wrong, if nothing has yet, and ends the load.
    pub(crate) fn fail(&self, fault: impl Into<String>) {
        if let Ok(mut place) = self.fault.lock() {
            place.get_or_insert_with(|| fault.into());
        }
        self.is_stopped.store(true, Ordering::Release);
    }

    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.lock().ok()?.clone()
    }

    /// Notes the driver a thread has opened.
    pub(crate) fn use_driver(&self, name: &'static str) {
        if let Ok(mut place) = self.driver.lock() {
            *place = name;
        }
    }

    pub(crate) fn driver(&self) -> String {
        self.driver.lock().map_or_else(|_| String::new(), |name| (*name).to_owned())
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub(crate) fn slowest(&self) -> u64 {
        self.counts.iter().map(|counts| counts.slowest.load(Ordering::Relaxed)).min().unwrap_or(0)
    }

    pub(crate) fn sums(&self) -> Sums {
        let sum = |of: fn(&Counts) -> &AtomicU64| self.counts.iter().map(|c| of(c).load(Ordering::Acquire)).sum();
        Sums {
            live: sum(|c| &c.live),
            delivered: sum(|c| &c.delivered),
            lost: sum(|c| &c.lost),
            repeated: sum(|c| &c.repeated),
            gaps: sum(|c| &c.gaps),
            missed: sum(|c| &c.missed),
            snapshots: sum(|c| &c.snapshots),
            published: sum(|c| &c.published),
            acked: sum(|c| &c.acked),
            writes: sum(|c| &c.writes),
            reads: sum(|c| &c.reads),
            bytes: sum(|c| &c.bytes),
        }
    }
}
