//! The node's journal: opened and read back before anybody is served, fed by whoever accepts, and told to all who wait for it. Owns the
//! way between the core's rows and the journal's threads: rows are taken from the node and put into the queue by one at a
//! time, so that they stay in order, and what the journal says reaches the node before any shard is woken for it.

use crate::engine::Engine;
use crate::history::HistoryReaders;
use crate::lines::{Found, LinesFile};
use crate::node_shared::NodeShared;
use crate::notes::{self, Notes};
use crate::queue::lock;
use crate::snapshots::Snapshots;
use godwit_core::journal::{Ask, MessageRow, Rows, StatsRow};
use godwit_core::node::{Node, PastRun, Progress, Restored};
use godwit_core::position::Now;
use godwit_core::report::Report;
use godwit_core::settings::{JournalSettings, Settings};
use godwit_journal::disk::{Disk, RealDisk};
use godwit_journal::{Budget, Checked, Journal, Keep, Past, Queue, Stream};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

/// What came back from the journal at the start, for the log.
#[derive(Clone, Debug)]
pub struct Resumed {
    pub restored: Restored,
    pub took_ms: u64,
    /// Whether the run before ended in order; none: there was none.
    pub was_clean: Option<bool>,
    pub damaged: u64,
    /// What was found wrong and what was done about it, a sentence each.
    pub said: Vec<String>,
}

/// The journal's figures.
#[derive(Clone, Debug, Default)]
pub struct JournalFigures {
    pub is_failing: bool,
    /// What the disk says while it fails.
    pub reason: Option<String>,
    pub failures: u64,
    pub journaled_arrival: u64,
    pub synced_arrival: u64,
    /// By stream: rows written, and rows lost because there was no room.
    pub rows: BTreeMap<&'static str, (u64, u64)>,
    pub damaged: u64,
    pub bytes: u64,
    pub syncs: u64,
    pub sync_us: u64,
    pub waiting_bytes: usize,
    /// How often the file of snapshots could not be written.
    pub snapshot_failures: u64,
}

/// A node does not begin without the journal that it was told to keep.
#[derive(Debug)]
pub struct JournalUnusable(String);

impl std::fmt::Display for JournalUnusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JournalUnusable {}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journaling {
    node: Arc<Mutex<Node>>,
    queue: Queue,
    progress: godwit_journal::Progress,
    /// Rows on their way. Held from the taking to the putting.
    rows: Mutex<Vec<MessageRow>>,
    /// As of the last report: writing, and sealing.
    was_failing: Mutex<(bool, bool)>,
    journal: Mutex<Option<Journal>>,
    history_readers: HistoryReaders,
    notes: Notes,
    snapshots: Arc<Snapshots>,
}

/// Opens the journal of the settings, gives the node back what it holds, and begins. None where there is none.
pub(crate) fn begin(
    settings: &Settings,
    disk: Arc<dyn Disk>,
    node: &Arc<Mutex<Node>>,
    node_shared: &Arc<NodeShared>,
    now: impl Fn() -> Now,
) -> io::Result<Option<Resumed>> {
    match &settings.journal {
        None => Ok(None),
        Some(asked) => begin_with(settings, asked, disk, node, node_shared, now)
            .map(Some)
            .map_err(|error| io::Error::other(JournalUnusable(error.to_string()))),
    }
}

fn begin_with(
    settings: &Settings,
    asked: &JournalSettings,
    disk: Arc<dyn Disk>,
    node: &Arc<Mutex<Node>>,
    node_shared: &Arc<NodeShared>,
    now: impl Fn() -> Now,
) -> io::Result<Resumed> {
    let began = Instant::now();
    // `NodeShared` owns the journal: the journal's thread must not own `NodeShared`.
    let teller: Weak<NodeShared> = Arc::downgrade(node_shared);
    let is_ready = Arc::new(OnceLock::new());
    let notify = {
        let is_ready = Arc::clone(&is_ready);
        move || {
            if is_ready.get().is_some()
                && let Some(node_shared) = teller.upgrade()
            {
                tell(&node_shared);
            }
        }
    };
    let directory = Path::new(&asked.directory);
    disk.create_folder(directory)?;
    let snapshots = Arc::new(Snapshots::new(Arc::clone(&disk), directory));
    let keep = {
        let snapshots = Arc::clone(&snapshots);
        Keep(Arc::new(move |subjects, until| snapshots.keep(subjects, until)))
    };
    let settings_of_journal = translate(settings, asked);
    let (journal, mut past) = Journal::open_keeping(&settings_of_journal, Arc::clone(&disk), notify, Some(keep))
        .map_err(|error| io::Error::other(error.to_string()))?;
    let saved = snapshots.find()?;
    lock(node).begin_epoch(past.epoch);
    lock(node).begin_restore(chain(&past, now().wall_ms));
    let kept_from = journal.reader().first_arrival();
    let keep = |name: &str, text: &str| lock(node).restore_note(name, text, kept_from, now());
    let mut notes = LinesFile::new(disk, &directory.join("notes"), notes::FACTOR);
    let noted = notes.find()?;
    notes.begin(noted, keep)?;
    let (restored, damaged) = give_back(settings, node, (&journal, &past), (&snapshots, saved), &now)?;
    past.said.extend(restored.loss());
    snapshots.report_to(reporter(node_shared));
    node_shared.begin_journal(Journaling {
        node: Arc::clone(node),
        queue: journal.queue().clone(),
        progress: journal.progress().clone(),
        rows: Mutex::default(),
        was_failing: Mutex::default(),
        history_readers: HistoryReaders::open(journal.reader(), journal.progress(), &Arc::downgrade(node_shared))?,
        notes: Notes::begin(notes, Arc::clone(&snapshots), Arc::clone(node), waker(node_shared))?,
        snapshots,
        journal: Mutex::new(Some(journal)),
    });
    let _ = is_ready.set(()); // it is set once, here
    tell(node_shared);
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let was_clean = past.follows.map(|follows| follows.is_clean);
    Ok(Resumed { restored, took_ms, was_clean, damaged, said: past.said })
}

fn waker(node_shared: &Arc<NodeShared>) -> impl Fn(u64) + Send + 'static {
    let node_shared = Arc::downgrade(node_shared);
    move |shards| node_shared.upgrade().into_iter().for_each(|node_shared| node_shared.wake(shards))
}

/// Tells the server whether the file of snapshots can be written.
fn reporter(node_shared: &Arc<NodeShared>) -> impl Fn(Option<String>) + Send + Sync + 'static {
    let node_shared = Arc::downgrade(node_shared);
    move |reason| {
        if let Some(node_shared) = node_shared.upgrade() {
            node_shared.reports.push(&mut vec![Report::SnapshotsFile { reason }]);
        }
    }
}

/// Of other settings a running journal takes over what is kept, and nothing else.
pub(crate) fn take_over(start: &Settings, asked: Option<JournalSettings>) -> Option<JournalSettings> {
    let both = start.journal.clone().zip(asked);
    both.map(|(start, asked)| JournalSettings { retention: asked.retention, ..start })
}

/// What is in each file of a journal, every row read against its checksum.
///
/// # Errors
/// When a file cannot be read.
pub fn check_journal(directory: &Path) -> io::Result<Vec<Checked>> {
    godwit_journal::check(&RealDisk, directory)
}

/// The journal has come further, or fails: the node is told, and then those who wait.
fn tell(node_shared: &NodeShared) {
    let Some(journaling) = node_shared.journaling() else { return };
    journaling.history_readers.tell();
    let progress = journaling.progress();
    let woken = lock(&journaling.node).journaled(progress);
    node_shared.wake(woken);
    let mut was_failing = lock(&journaling.was_failing);
    if std::mem::replace(&mut was_failing.0, progress.is_failing) != progress.is_failing {
        let reason = progress.is_failing.then(|| journaling.progress.reason().unwrap_or_default());
        node_shared.reports.push(&mut vec![Report::Journal { reason }]);
    }
    let reason = journaling.progress.sealing_reason();
    if std::mem::replace(&mut was_failing.1, reason.is_some()) != reason.is_some() {
        node_shared.reports.push(&mut vec![Report::Sealing { reason }]);
    }
}

fn translate(settings: &Settings, asked: &JournalSettings) -> godwit_journal::Settings {
    let bounds = godwit_journal::Settings::from(asked);
    godwit_journal::Settings { node: settings.node.clone(), run: settings.run, epoch: settings.epoch, ..bounds }
}

/// Gives the node back what the journal holds and its limits let it keep.
fn give_back(
    settings: &Settings,
    node: &Arc<Mutex<Node>>,
    (journal, past): (&Journal, &Past),
    (snapshots, saved): (&Snapshots, Found),
    now: &impl Fn() -> Now,
) -> io::Result<(Restored, u64)> {
    let limits = &settings.limits;
    let ages = settings.patterns.iter().filter_map(|pattern| pattern.log_age_ms_max);
    let age_ms = ages.chain([limits.log_age_ms_max, limits.idempotency_keys_age_ms_max]).max().unwrap_or(0);
    let budget = Budget {
        messages: limits.index_entries_max as u64,
        bytes: limits.logs_bytes_max as u64,
        // What a session is owed stays, however old it is.
        oldest_ms: if lock(node).owes() { 0 } else { now().wall_ms.saturating_sub(age_ms) },
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let reader = journal.reader();
    for run in &past.runs {
        run.missing.iter().for_each(|(_, last)| lock(node).restore_missing(run.run, *last));
    }
    if let Some(follows) = past.follows.filter(|_| past.is_end_damaged) {
        lock(node).restore_missing(follows.run, follows.arrival + 1);
    }
    snapshots.announce(&saved, node)?;
    let loaded = reader.load(budget, threads, &mut |messages| {
        let (mut node, now) = (lock(node), now());
        messages.into_iter().for_each(|message| node.restore(message, now));
    })?;
    if loaded.first > 0 {
        lock(node).restore_part();
    }
    let is_known = |subject: &str| !lock(node).needs_snapshot(subject);
    let newest = reader.load_snapshots(loaded.first, &is_known, &mut |message, newest| {
        lock(node).restore_snapshot(message, newest, now());
    })?;
    // Rows are gone, and what they made may be lost.
    let is_lost = saved.damaged > 0 || saved.is_missing && reader.first(Stream::Messages) > 0;
    snapshots.begin(saved, node, &newest, now())?;
    if is_lost {
        lock(node).restore_without_bases();
    }
    Ok((lock(node).finish_restore(now()), loaded.damaged))
}

/// The runs in the core's words: each began with the arrival after what it follows. Between the epochs of two runs are many that neither
/// gave: a run of a copy of this journal may have.
fn chain(past: &Past, now_ms: u64) -> Vec<PastRun> {
    let mut runs: Vec<PastRun> = Vec::with_capacity(past.runs.len());
    let ends = past.runs.iter().skip(1).map(|next| next.follows).chain([past.follows]);
    let begins = past.runs.iter().skip(1).map(|next| next.began_ms).chain([now_ms]);
    for ((run, end), next_ms) in past.runs.iter().zip(ends).zip(begins) {
        let began = runs.last().map_or(1, |before| before.last + 1);
        let last = end.filter(|end| end.run == run.run).map_or(0, |end| end.arrival).max(began);
        runs.push(PastRun { run: run.run, epoch: run.epoch, epoch_end: run.epoch_end(next_ms), began, last });
    }
    runs
}

impl Engine {
    /// Writes statistics down, where there is a journal; true when there is.
    pub fn write_stats(&self, rows: Vec<StatsRow>) -> bool {
        let journaling = self.node_shared.journaling();
        if let Some(journaling) = journaling {
            journaling.push(Rows::Stats(rows));
        }
        journaling.is_some()
    }
}

impl Journaling {
    /// Hands what has been accepted to the journal. Never waits for the disk.
    pub(crate) fn pump(&self) {
        let mut rows = lock(&self.rows);
        let (is_urgent, wants_notes) = {
            let mut node = lock(&self.node);
            (node.take_rows(&mut rows), node.wants_notes())
        };
        if wants_notes {
            self.notes.hurry();
        }
        if rows.is_empty() {
            return;
        }
        self.queue.push_messages(&mut rows, is_urgent);
        if self.queue.holds_publishers() {
            lock(&self.node).hold_publishers();
            // The writer may have caught up in between, and said so before we did.
            let progress = self.progress();
            if !progress.is_full {
                lock(&self.node).journaled(progress);
            }
        }
    }

    /// Rows of the other streams.
    pub(crate) fn push(&self, rows: Rows) {
        self.queue.push(rows);
    }

    /// Reads a page of the journal for a shard, which gets it as an order.
    pub(crate) fn read_back(&self, ask: Ask) {
        self.history_readers.ask(ask);
    }

    fn progress(&self) -> Progress {
        // In this order: what was lost is told before what is behind it is said to be there.
        let synced = self.progress.synced_arrival();
        let lost = self.progress.lost_arrival();
        Progress { synced, lost, is_failing: self.progress.is_failing(), is_full: self.queue.holds_publishers() }
    }

    /// Waits until everything that was noted so far is on the disk; false when the disk does not take it.
    pub(crate) fn keep_notes(&self) -> bool {
        self.notes.flush()
    }

    pub(crate) fn set_retention(&self, settings: &Settings) {
        if let (Some(journal), Some(asked)) = (&*lock(&self.journal), &settings.journal) {
            journal.set_retention(&translate(settings, asked));
        }
    }

    /// Ends the run in order: what waits is written, and that nothing came after it.
    pub(crate) fn close(&self) {
        self.history_readers.close();
        self.notes.close();
        self.pump();
        let last = lock(&self.node).arrival();
        if let Some(journal) = lock(&self.journal).take() {
            // What is not on the disk now the next start says.
            let _ = journal.close(last);
        }
    }

    pub(crate) fn show(&self) -> JournalFigures {
        let progress = &self.progress;
        let (syncs, sync_us) = progress.syncs();
        let streams = Stream::ALL.into_iter().filter(|stream| *stream != Stream::Feedback);
        JournalFigures {
            is_failing: progress.is_failing(),
            reason: progress.reason().filter(|_| progress.is_failing()),
            failures: progress.failures(),
            journaled_arrival: progress.journaled_arrival(),
            synced_arrival: progress.synced_arrival(),
            rows: streams.map(|stream| (stream.name(), (progress.rows(stream), progress.lost(stream)))).collect(),
            damaged: progress.damaged(),
            bytes: progress.bytes(),
            syncs,
            sync_us,
            waiting_bytes: self.queue.bytes(),
            snapshot_failures: self.snapshots.failures(),
        }
    }
}
