//! How far the journal is, for those who wait for it: written by its thread, read by anybody without a lock.
//! Invariant: what is said to be synced is on the disk; numbers only grow.
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Stream;

const STREAMS: usize = Stream::ALL.len();

/// A view of the journal's progress; cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    journaled_arrival: AtomicU64,
    synced_arrival: AtomicU64,
    feedback_synced: AtomicU64,
    lost_arrival: AtomicU64,
    is_failing: AtomicBool,
    failures: AtomicU64,
    reason: Mutex<Option<String>>,
    sealing: Mutex<Option<String>>,
    rows: [AtomicU64; STREAMS],
    lost: [AtomicU64; STREAMS],
    damaged: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
    sync_us: AtomicU64,
    unsynced_bytes: AtomicUsize,
}

impl Progress {
    /// The messages up to this arrival are written to their segment (a killed process leaves them there, a power cut may not).
    pub fn journaled_arrival(&self) -> u64 {
        self.0.journaled_arrival.load(Ordering::Acquire)
    }

    /// The messages up to this arrival are on the disk, but for those at or before `lost_arrival` that were dropped.
    pub fn synced_arrival(&self) -> u64 {
        self.0.synced_arrival.load(Ordering::Acquire)
    }

    /// Rows of the stream `feedback` that are on the disk, since start.
    pub fn feedback_synced(&self) -> u64 {
        self.0.feedback_synced.load(Ordering::Acquire)
    }

    /// How far each of those is that somebody may wait for.
    pub(crate) fn reached(&self) -> (u64, u64, u64) {
        (self.journaled_arrival(), self.synced_arrival(), self.feedback_synced())
    }

    /// The last arrival that was dropped because the disk failed and the queue was full; 0 none. Who waits for an
    /// arrival at or before it must not believe `synced_arrival`. It is set before `synced_arrival` passes it.
    pub fn lost_arrival(&self) -> u64 {
        self.0.lost_arrival.load(Ordering::Acquire)
    }

    /// The disk refuses rows: publishes that need it are to be refused, those that wait are to be told what they reached.
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Acquire)
    }

    /// How many times the disk began to fail; who sees another number than before has missed a failure.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Acquire)
    }

    /// What the disk says while it fails.
    pub fn reason(&self) -> Option<String> {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why segments cannot be sealed, or old ones removed, while that fails. Nothing that was written is lost by it.
    pub fn sealing_reason(&self) -> Option<String> {
        self.0.sealing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Rows of a stream that were written since start.
    pub fn rows(&self, stream: Stream) -> u64 {
        self.0.rows[stream as usize].load(Ordering::Relaxed)
    }

    /// Rows of a stream that were dropped since start because there was no room for them; after the end, with those that are not known
    /// to be on the disk.
    pub fn lost(&self, stream: Stream) -> u64 {
        self.0.lost[stream as usize].load(Ordering::Relaxed)
    }

    /// Rows that were found damaged since start, at recovery, sealing or reading.
    pub fn damaged(&self) -> u64 {
        self.0.damaged.load(Ordering::Relaxed)
    }

    /// Bytes written to segments since start.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Syncs since start, and the microseconds that they took together.
    pub fn syncs(&self) -> (u64, u64) {
        (self.0.syncs.load(Ordering::Relaxed), self.0.sync_us.load(Ordering::Relaxed))
    }

    /// Bytes in memory that are not known to be on the disk, those that still wait to be written left out.
    pub fn unsynced_bytes(&self) -> usize {
        self.0.unsynced_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_journaled(&self, arrival: u64) {
        self.0.journaled_arrival.fetch_max(arrival, Ordering::Release);
    }

    pub(crate) fn set_synced(&self, arrival: u64) {
        self.0.synced_arrival.fetch_max(arrival, Ordering::Release);
    }

    pub(crate) fn set_feedback_synced(&self, rows: u64) {
        self.0.feedback_synced.fetch_max(rows, Ordering::Release);
    }

    pub(crate) fn add_lost_arrival(&self, arrival: u64) {
        self.0.lost_arrival.fetch_max(arrival, Ordering::Release);
    }

    /// Whether that is news.
    pub(crate) fn set_failing(&self, reason: Option<&str>) -> bool {
        *self.0.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason.map(str::to_owned);
        let was = self.0.is_failing.load(Ordering::Relaxed);
        if reason.is_some() && !was {
            self.0.failures.fetch_add(1, Ordering::Release);
        }
        self.0.is_failing.store(reason.is_some(), Ordering::Release);
        was != reason.is_some()
    }

    /// Whether it begins to fail with this, or is well again.
    pub(crate) fn set_sealing(&self, reason: Option<String>) -> bool {
        let mut held = self.0.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = held.is_some() != reason.is_some();
        *held = reason;
        is_news
    }

    pub(crate) fn add_rows(&self, stream: Stream, rows: u64, bytes: u64) {
        self.0.rows[stream as usize].fetch_add(rows, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_lost(&self, stream: Stream, rows: u64) {
        self.0.lost[stream as usize].fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn add_damaged(&self, rows: u64) {
        self.0.damaged.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn add_sync(&self, took_us: u64) {
        self.0.syncs.fetch_add(1, Ordering::Relaxed);
        self.0.sync_us.fetch_add(took_us, Ordering::Relaxed);
    }

    pub(crate) fn set_unsynced_bytes(&self, bytes: usize) {
        self.0.unsynced_bytes.store(bytes, Ordering::Relaxed);
    }
}
