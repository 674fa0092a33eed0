//! The journal of dispatch: one stream, written from outside of a node. Owns the wait until rows are on the disk, so that who writes them
//! may move its cursor; what stands in them is dispatch's.
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::queue::lock;
use godwit_core::journal::{FeedbackRow, Rows};
use godwit_journal::disk::RealDisk;
use godwit_journal::{Journal, Retention, Settings, Stream};

/// Rows are written and synced this often.
const SYNC_INTERVAL_MS: u64 = 50;
const WAIT_MAX: Duration = Duration::from_secs(30);

/// An open journal that takes rows of the stream `feedback`.
#[derive(Debug)]
pub struct FeedbackJournal {
    journal: Mutex<Option<Journal>>,
    /// Rows that were given to the journal, lost ones among them.
    pushed: Mutex<u64>,
    changed: Arc<(Mutex<()>, Condvar)>,
}

impl FeedbackJournal {
    /// Begins a run of `node`.
    ///
    /// # Errors
    /// When another process has the directory, or it cannot be used.
    pub fn open(directory: PathBuf, node: &str, run: u64, age_ms_max: u64, bytes_max: u64) -> io::Result<Self> {
        let retention = Retention { age_ms_max, bytes_max };
        let settings = Settings {
            directory,
            node: node.to_owned(),
            run,
            epoch: 1,
            sync_interval_ms: SYNC_INTERVAL_MS,
            retention: [(Stream::Feedback.name().to_owned(), retention)].into(),
            ..Settings::default()
        };
        let changed = Arc::new((Mutex::new(()), Condvar::new()));
        let notify = {
            let changed = Arc::clone(&changed);
            move || {
                let _held = lock(&changed.0);
                changed.1.notify_all();
            }
        };
        let (journal, _) = Journal::open(&settings, Arc::new(RealDisk), notify)
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { journal: Mutex::new(Some(journal)), pushed: Mutex::new(0), changed })
    }

    /// Returns when the rows are on the disk. After an error they may be, or may come there yet: write them again.
    ///
    /// # Errors
    /// When the disk does not take them, or the journal is closed.
    pub fn write(&self, rows: Vec<FeedbackRow>) -> io::Result<()> {
        let mut pushed = lock(&self.pushed);
        let (queue, progress) = match &*lock(&self.journal) {
            Some(journal) => (journal.queue().clone(), journal.progress().clone()),
            None => return Err(io::Error::other("the journal is closed")),
        };
        if progress.is_failing() {
            // The rows of an earlier call may wait for the disk: pushed again with each retry, they would be written as often.
            return Err(io::Error::other(progress.reason().unwrap_or_else(|| "the disk is failing".to_owned())));
        }
        let lost_before = progress.lost(Stream::Feedback);
        *pushed += rows.len() as u64;
        queue.push(Rows::Feedback(rows));
        let until = Instant::now() + WAIT_MAX;
        let mut held = lock(&self.changed.0);
        loop {
            if progress.is_failing() || progress.lost(Stream::Feedback) > lost_before {
                return Err(io::Error::other(progress.reason().unwrap_or_else(|| "the disk is too slow".to_owned())));
            }
            if progress.feedback_synced() + lost_before >= *pushed {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::other("the disk is too slow"));
            }
            held = self.changed.1.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the run; a second call does nothing.
    pub fn close(&self) {
        if let Some(journal) = lock(&self.journal).take() {
            let _ = journal.close(0); // what is not on the disk was not reported as written
        }
    }
}
