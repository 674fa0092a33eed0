//! The journal's file of snapshots: those that no row of the journal holds, or soon none will. Owns the order that loses none: what the rows of a
//! segment made is in the file, and on the disk, before the segment goes.

use crate::lines::{Found, LinesFile};
use crate::queue::lock;
use godwit_core::journal::SavedState;
use godwit_core::node::Node;
use godwit_core::position::{Now, Position};
use godwit_journal::disk::Disk;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Snapshots that are asked for under one lock of the node, and their bytes.
const EACH: usize = 256;
const EACH_BYTES: usize = 4 << 20;
/// The file is written anew once it is so many times as large as what counts.
const FACTOR: u64 = 2;

#[derive(Debug)]
pub(crate) struct Snapshots {
    file: Mutex<LinesFile>,
    /// Held while waiting for `file`, so that whoever writes batch after batch lets others in between two of them.
    turn: Mutex<()>,
    /// Subjects that changed and that the disk has refused so far.
    refused: Mutex<Vec<Arc<str>>>,
    /// None until the file has been read.
    node: OnceLock<Arc<Mutex<Node>>>,
    trouble: Trouble,
}

/// Whether the disk takes what is to be written. Reported when that changes.
#[derive(Default)]
struct Trouble {
    is_failing: AtomicBool,
    failures: AtomicU64,
    report: OnceLock<Box<ReportTrouble>>,
}

type ReportTrouble = dyn Fn(Option<String>) + Send + Sync;

impl std::fmt::Debug for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trouble({})", self.failures.load(Ordering::Relaxed))
    }
}

impl Trouble {
    fn note(&self, written: io::Result<()>) -> io::Result<()> {
        let reason = written.as_ref().err().map(ToString::to_string);
        self.failures.fetch_add(u64::from(reason.is_some()), Ordering::Relaxed);
        let was_failing = self.is_failing.swap(reason.is_some(), Ordering::AcqRel);
        if was_failing != reason.is_some()
            && let Some(report) = self.report.get()
        {
            report(reason);
        }
        written
    }
}

impl Snapshots {
    /// The file of a journal, of which nothing is read yet.
    pub(crate) fn new(disk: Arc<dyn Disk>, directory: &Path) -> Self {
        let file = LinesFile::new(disk, &directory.join("snapshots"), FACTOR);
        Self {
            file: Mutex::new(file),
            turn: Mutex::default(),
            refused: Mutex::default(),
            node: OnceLock::new(),
            trouble: Trouble::default(),
        }
    }

    /// Looks what the file holds, once the journal's folder is this process's: another one would go on writing behind what was found.
    pub(crate) fn find(&self) -> io::Result<Found> {
        lock(&self.file).find()
    }

    /// Gives the node the fields that the file holds, before the rows of the journal come: those are put over them.
    pub(crate) fn announce(&self, found: &Found, node: &Mutex<Node>) -> io::Result<()> {
        lock(&self.file).each(found, |subject, text| {
            if text.contains(r#""fields":{"#)
                && let Some((kept, ..)) = SavedState::parse(subject, text)
            {
                lock(node).restore_fields(&kept);
            }
        })
    }

    /// Gives the node the snapshots that it holds, when the rows of the journal have come back. `newest` are the last positions that rows further
    /// back have. From then on the journal may let rows go.
    pub(crate) fn begin(
        &self,
        found: Found,
        node: &Arc<Mutex<Node>>,
        newest: &HashMap<String, Position>,
        now: Now,
    ) -> io::Result<()> {
        lock(&self.file).begin(found, |subject, text| {
            if SavedState::is_lost(text) {
                return lock(node).restore_lost_state(subject);
            }
            let Some((kept, at, log_arrival)) = SavedState::parse(subject, text) else { return false };
            let newest = newest.get(subject).copied().unwrap_or(at);
            lock(node).restore_state(kept, (newest, log_arrival), now)
        })?;
        let _ = self.node.set(Arc::clone(node)); // it is set once, here
        Ok(())
    }

    /// Writes some of what changed since the last time; true where there may be more. Who publishes faster than the disk writes keeps nobody who
    /// calls this.
    pub(crate) fn write(&self) -> io::Result<bool> {
        let Some(node) = self.node.get() else { return Ok(false) };
        let mut refused = lock(&self.refused);
        if lock(node).take_forgotten_states() {
            let rewritten = self.hold_file().rewrite(&mut |subject| lock(node).has_state(subject));
            if rewritten.is_err() {
                lock(node).put_back_forgotten_states(); // the next call writes the file anew
            }
            self.trouble.note(rewritten)?;
        }
        if refused.is_empty() {
            *refused = lock(node).take_changed_states(EACH);
        }
        self.save(node, refused.iter().map(|subject| &**subject), 0)?;
        let has_more = !refused.is_empty();
        refused.clear();
        Ok(has_more)
    }

    /// Whom to tell that the file cannot be written, with the reason, or that it can again.
    pub(crate) fn report_to(&self, report: impl Fn(Option<String>) + Send + Sync + 'static) {
        let _ = self.trouble.report.set(Box::new(report)); // it is set once, at the start
    }

    /// How often the file could not be written.
    pub(crate) fn failures(&self) -> u64 {
        self.trouble.failures.load(Ordering::Relaxed)
    }

    /// How often `write` is called until all is written that has changed by now.
    pub(crate) fn writes(&self) -> usize {
        let changed = self.node.get().map_or(0, |node| lock(node).changed_states());
        changed.div_ceil(EACH) + usize::from(!lock(&self.refused).is_empty())
    }

    /// Writes the snapshots of these subjects that rows up to an arrival made, and that no later row makes anew.
    pub(crate) fn keep(&self, subjects: &[String], until: u64) -> io::Result<()> {
        let Some(node) = self.node.get() else { return Err(io::ErrorKind::WouldBlock.into()) };
        self.save(node, subjects.iter().map(String::as_str), until)
    }

    fn hold_file(&self) -> MutexGuard<'_, LinesFile> {
        let _turn = lock(&self.turn);
        lock(&self.file)
    }

    /// For each batch the file is held from the look at the node on, so that nobody writes an older state behind a newer one. Between two
    /// batches others may write: a whole segment's snapshots delay nobody for longer than one batch takes.
    fn save<'a>(&self, node: &Mutex<Node>, mut subjects: impl Iterator<Item = &'a str>, until: u64) -> io::Result<()> {
        loop {
            let mut file = self.hold_file();
            let (mut lines, mut looked, mut bytes) = (Vec::new(), 0, 0);
            while looked < EACH
                && bytes < EACH_BYTES
                && let Some(subject) = subjects.next()
            {
                let state = lock(node).state_to_save(subject, until);
                let text = state.as_ref().map(SavedState::text);
                bytes += text.as_ref().map_or(0, String::len);
                looked += 1;
                if text.is_some() || file.has(subject) {
                    lines.push((subject, text));
                }
            }
            if looked == 0 {
                return Ok(());
            }
            let lines = lines.iter().map(|(subject, text)| (*subject, text.as_deref()));
            if lines.len() > 0 {
                self.trouble.note(file.append(lines, &mut |subject| lock(node).has_state(subject)))?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EACH, Snapshots};
    use crate::lines::LinesFile;
    use crate::notes::Notes;
    use godwit_core::holder::Holder;
    use godwit_core::message::{Batch, Draft, Kind};
    use godwit_core::node::Node;
    use godwit_core::position::Now;
    use godwit_core::settings::{JournalSettings, Settings};
    use godwit_journal::disk::RealDisk;
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    fn begin(name: &str) -> (PathBuf, Arc<Mutex<Node>>, Snapshots) {
        let path = std::env::temp_dir().join(format!("godwit-snapshots-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let settings = Settings { journal: Some(JournalSettings::default()), ..Settings::default() };
        let node = Arc::new(Mutex::new(Node::new(&settings)));
        let snapshots = Snapshots::new(Arc::new(RealDisk), &path);
        let found = snapshots.find().unwrap();
        snapshots.begin(found, &node, &HashMap::new(), Now::default()).unwrap();
        (path, node, snapshots)
    }

    #[test]
    fn others_get_the_file_between_two_batches() {
        let (path, node, snapshots) = begin("batches");
        let is_let_in = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let subjects = (0..=EACH).map(|number| {
                if number == 0 {
                    scope.spawn(|| {
                        let _file = snapshots.hold_file();
                        is_let_in.store(true, Ordering::SeqCst);
                    });
                    while snapshots.turn.try_lock().is_ok() {
                        std::thread::yield_now();
                    }
                }
                assert_eq!(is_let_in.load(Ordering::SeqCst), number == EACH, "before subject {number}");
                "/s"
            });
            snapshots.save(&node, subjects, 0).unwrap();
        });
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_file_that_could_not_be_written_anew_is_tried_again() {
        let (path, node, snapshots) = begin("anew");
        node.lock().unwrap().put_back_forgotten_states();
        let reports: Arc<Mutex<Vec<bool>>> = Arc::default();
        snapshots.report_to({
            let reports = Arc::clone(&reports);
            move |reason| reports.lock().unwrap().push(reason.is_some())
        });
        std::fs::remove_dir_all(&path).unwrap();
        (0..2).for_each(|_| assert!(snapshots.write().is_err()));
        std::fs::create_dir_all(&path).unwrap();
        snapshots.write().unwrap();
        assert_eq!((snapshots.failures(), &**reports.lock().unwrap()), (2, &[true, false][..]));
        assert!(path.join("snapshots").exists(), "the next call writes it");
        assert!(!node.lock().unwrap().take_forgotten_states(), "once");
        std::fs::remove_dir_all(path).unwrap();
    }

    /// Publishers faster than the disk: each look of the thread finds more snapshots.
    #[test]
    fn snapshots_without_end_keep_neither_notes_nor_the_end_waiting() {
        let (path, node, snapshots) = begin("endless");
        let more = |node: &Mutex<Node>, count: usize| {
            for number in 0..count {
                let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
                let mut draft = Draft::new(Kind::Json, b"1", "", Holder::nobody(), 1);
                (draft.is_guaranteed, draft.is_retained) = (false, Some(true));
                batch.push(&format!("/s/{number}"), draft);
                node.lock().unwrap().append(&mut batch, &mut outcomes, Now::default());
            }
        };
        more(&node, 1_000);
        assert!(snapshots.write().unwrap());
        assert!(node.lock().unwrap().changed_states() > 500, "one call writes some");
        let stop = Arc::new(AtomicBool::new(false));
        let publisher = {
            let (node, stop) = (Arc::clone(&node), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    more(&node, 1_000);
                }
            })
        };
        let mut file = LinesFile::new(Arc::new(RealDisk), &path.join("notes"), 4);
        let held = file.find().unwrap();
        file.begin(held, |_, _| true).unwrap();
        let notes = Notes::begin(file, Arc::new(snapshots), Arc::clone(&node), |_| ()).unwrap();
        assert!(notes.flush() && notes.flush());
        notes.close();
        stop.store(true, Ordering::Relaxed);
        publisher.join().unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }
}
