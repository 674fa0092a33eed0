//! The journal's notes: a file of lines beside its streams, of which the last of each name counts. Owns the file: appended to in batches,
//! written anew (and put in its place by rename) at the start, when most of it is past, and once a disk takes bytes again that refused
//! some. A line that is torn or bent is left out.

use crate::queue::lock;
use godwit_core::node::Node;
use godwit_journal::disk::{Append, Disk, read_range, write_all};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often what is new is written.
const INTERVAL: Duration = Duration::from_millis(200);
/// A file is not written anew before it has so many bytes.
const REWRITE_BYTES_MIN: u64 = 1 << 20;

/// How long a disk is waited for by who must know that the notes are on it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is written down of the node's notes, by a thread of its own.
#[derive(Debug)]
pub(crate) struct Notes {
    shared: Arc<(Mutex<State>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread is asked for, and how far it came: numbers of asks.
#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    asked: u64,
    answered: u64,
    /// Everything that was noted before this ask is on the disk.
    kept: u64,
}

impl Notes {
    /// Begins writing what `file` is to hold of the node's notes from now on.
    pub(crate) fn begin(mut file: NotesFile, node: Arc<Mutex<Node>>) -> io::Result<Self> {
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let thread = {
            let shared = Arc::clone(&shared);
            let run = move || {
                let (state, news) = &*shared;
                let mut waiting = BTreeMap::new();
                loop {
                    let (is_last, asked) = {
                        let is_idle = |state: &mut State| !state.is_closed && state.asked == state.answered;
                        let held = news.wait_timeout_while(lock(state), INTERVAL, is_idle);
                        let held = held.unwrap_or_else(PoisonError::into_inner).0;
                        (held.is_closed, held.asked)
                    };
                    waiting.append(&mut lock(&node).take_notes());
                    // What the disk refuses is tried again; the journal's own alarm tells of it.
                    let is_kept = waiting.is_empty() || file.append(&waiting).is_ok();
                    {
                        let mut state = lock(state);
                        state.answered = asked;
                        state.kept = if is_kept { asked } else { state.kept };
                    }
                    news.notify_all();
                    if is_kept {
                        waiting.clear();
                    }
                    if is_last {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name("journal-notes".to_owned()).spawn(run)?
        };
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Waits until everything that the node noted so far is on the disk; false when the disk does not take it.
    pub(crate) fn flush(&self) -> bool {
        let (state, news) = &*self.shared;
        let mut held = lock(state);
        held.asked += 1;
        let mine = held.asked;
        news.notify_all();
        let is_open = |state: &mut State| state.answered < mine && !state.is_closed;
        let held = news.wait_timeout_while(held, PATIENCE, is_open).unwrap_or_else(PoisonError::into_inner).0;
        held.kept >= mine
    }

    /// Writes what waits, and ends.
    pub(crate) fn close(&self) {
        lock(&self.shared.0).is_closed = true;
        self.shared.1.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join(); // a panic there has been printed
        }
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        lock(&self.shared.0).is_closed = true;
        self.shared.1.notify_all();
    }
}

/// The file. `places` says where the last line of each name is, by a hash of the name.
#[derive(Debug)]
pub(crate) struct NotesFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// None: the disk refused, and the file is to be written anew.
    file: Option<Box<dyn Append>>,
    bytes: u64,
    live_bytes: u64,
    places: HashMap<u64, (u64, u32)>,
    /// Lines that no file of this run holds yet.
    unwritten: BTreeMap<String, String>,
    hashes: RandomState,
}

impl NotesFile {
    /// Reads the notes of a journal and writes those anew that `keep` wants; a disk that refuses is tried again with the next.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        mut keep: impl FnMut(&str, &str) -> bool,
    ) -> io::Result<Self> {
        let path = directory.join("notes");
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        match disk.open(&path).and_then(|file| read_range(&*file, 0, usize::MAX)) {
            Ok(bytes) => bytes.split_inclusive(|byte| *byte == b'\n').for_each(|line| {
                match std::str::from_utf8(line).ok().and_then(parse_line) {
                    Some((name, Some(text))) => found.insert(name.to_owned(), text.to_owned()),
                    Some((name, None)) => found.remove(name),
                    None => None,
                };
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        found.retain(|name, text| keep(name, text));
        let (bytes, live_bytes, places, hashes) = (0, 0, HashMap::new(), RandomState::new());
        let mut notes = Self { disk, path, file: None, bytes, live_bytes, places, unwritten: found, hashes };
        let _ = notes.rewrite(); // as said above
        Ok(notes)
    }

    fn append(&mut self, notes: &BTreeMap<String, Option<String>>) -> io::Result<()> {
        if self.file.is_none() || self.bytes > REWRITE_BYTES_MIN.max(4 * self.live_bytes) {
            self.rewrite()?;
        }
        let mut out = String::new();
        let mut placed = Vec::with_capacity(notes.len());
        for (name, text) in notes {
            let line = make_line(name, text.as_deref());
            let place = text.is_some().then_some((self.bytes + out.len() as u64, line.len() as u32));
            placed.push((self.hashes.hash_one(name.as_str()), place));
            out.push_str(&line);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = write_all(&mut **file, out.as_bytes()).and_then(|()| file.sync()) {
            self.file = None;
            return Err(error);
        }
        self.bytes += out.len() as u64;
        for (hash, place) in placed {
            let before = match place {
                Some(place) => self.places.insert(hash, place),
                None => self.places.remove(&hash),
            };
            self.live_bytes += place.map_or(0, |(_, length)| u64::from(length));
            self.live_bytes -= before.map_or(0, |(_, length)| u64::from(length));
        }
        Ok(())
    }

    /// Puts a file with the last lines alone in its place.
    fn rewrite(&mut self) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        match self.disk.remove(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (mut out, mut places) = (Vec::new(), HashMap::new());
        let mut put = |hash: u64, line: &[u8]| {
            places.insert(hash, (out.len() as u64, line.len() as u32));
            out.extend_from_slice(line);
        };
        if !self.places.is_empty() {
            let held = self.disk.open(&self.path)?;
            for (hash, (at, length)) in &self.places {
                put(*hash, &read_range(&*held, *at, *length as usize)?);
            }
        }
        for (name, text) in &self.unwritten {
            put(self.hashes.hash_one(name.as_str()), make_line(name, Some(text)).as_bytes());
        }
        let mut file = self.disk.create(&fresh)?;
        write_all(&mut *file, &out)?;
        file.sync()?;
        self.disk.rename(&fresh, &self.path)?;
        (self.bytes, self.live_bytes) = (out.len() as u64, out.len() as u64);
        (self.file, self.places) = (Some(file), places);
        self.unwritten.clear();
        self.path.parent().map_or(Ok(()), |folder| self.disk.sync_folder(folder))
    }
}

/// CHECKSUM, a tab, the name, a tab and the text; without a text the name is over.
fn make_line(name: &str, text: Option<&str>) -> String {
    let body = text.map_or_else(|| name.to_owned(), |text| format!("{name}\t{text}"));
    format!("{:08x}\t{body}\n", crc32c::crc32c(body.as_bytes()))
}

fn parse_line(line: &str) -> Option<(&str, Option<&str>)> {
    let (sum, body) = line.strip_suffix('\n')?.split_once('\t')?;
    if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(body.as_bytes()) {
        return None;
    }
    Some(body.split_once('\t').map_or((body, None), |(name, text)| (name, Some(text))))
}

#[cfg(test)]
mod tests {
    use super::{Notes, NotesFile, REWRITE_BYTES_MIN};
    use godwit_core::node::Node;
    use godwit_core::settings::{JournalSettings, Settings};
    use godwit_journal::disk::RealDisk;
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("godwit-notes-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn notes(pairs: &[(&str, Option<&str>)]) -> BTreeMap<String, Option<String>> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), text.map(str::to_owned))).collect()
    }

    fn read(path: &std::path::Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        NotesFile::open(Arc::new(RealDisk), path, |name, text| {
            found.push((name.to_owned(), text.to_owned()));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn the_last_word_of_each_name_counts_and_a_torn_or_bent_line_is_left_out() {
        let path = folder("last");
        let mut file = NotesFile::open(Arc::new(RealDisk), &path, |_, _| true).unwrap();
        file.append(&notes(&[("a", Some("1")), ("b", Some("x"))])).unwrap();
        file.append(&notes(&[("a", Some("2")), ("b", None), ("c", Some("3"))])).unwrap();
        drop(file);
        let mut raw = std::fs::OpenOptions::new().append(true).open(path.join("notes")).unwrap();
        raw.write_all(b"00000000\ta\tbent\nabc\td\ttorn").unwrap();
        assert_eq!(read(&path), [("a".into(), "2".into()), ("c".into(), "3".into())]);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_flush_returns_once_what_was_noted_is_on_the_disk() {
        let path = folder("flush");
        let settings = Settings { journal: Some(JournalSettings::default()), ..Settings::default() };
        let node = Arc::new(Mutex::new(Node::new(&settings)));
        let file = NotesFile::open(Arc::new(RealDisk), &path, |_, _| true).unwrap();
        let notes = Notes::begin(file, Arc::clone(&node)).unwrap();
        for count in 1..=3 {
            node.lock().unwrap().purge(&format!("/a/{count}"), None);
            assert!(notes.flush());
            // As after a kill: nobody has closed the file.
            let copy = folder("flush-copy");
            std::fs::copy(path.join("notes"), copy.join("notes")).unwrap();
            assert_eq!(read(&copy).len(), count);
            std::fs::remove_dir_all(copy).unwrap();
        }
        notes.close();
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_flush_says_when_the_disk_does_not_take_the_notes() {
        let path = folder("flush-refused");
        std::fs::create_dir(path.join("notes.new")).unwrap();
        let settings = Settings { journal: Some(JournalSettings::default()), ..Settings::default() };
        let node = Arc::new(Mutex::new(Node::new(&settings)));
        let file = NotesFile::open(Arc::new(RealDisk), &path, |_, _| true).unwrap();
        let notes = Notes::begin(file, Arc::clone(&node)).unwrap();
        node.lock().unwrap().purge("/a", None);
        assert!(!notes.flush());
        std::fs::remove_dir(path.join("notes.new")).unwrap();
        assert!(notes.flush(), "tried again");
        notes.close();
        assert_eq!(read(&path).len(), 1);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_a_disk_refused_is_written_once_it_takes_it() {
        let path = folder("refused");
        let mut file = NotesFile::open(Arc::new(RealDisk), &path, |_, _| true).unwrap();
        file.append(&notes(&[("a", Some("1")), ("b", Some("x"))])).unwrap();
        drop(file);
        // In the way of the fresh file: as good as a disk that takes nothing.
        std::fs::create_dir(path.join("notes.new")).unwrap();
        let mut file = NotesFile::open(Arc::new(RealDisk), &path, |_, _| true).unwrap();
        let news = notes(&[("a", Some("2"))]);
        assert!(file.append(&news).is_err());
        std::fs::remove_dir(path.join("notes.new")).unwrap();
        file.append(&news).unwrap();
        drop(file);
        assert_eq!(read(&path), [("a".into(), "2".into()), ("b".into(), "x".into())]);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_file_that_is_mostly_past_is_written_anew() {
        let path = folder("anew");
        let mut file = NotesFile::open(Arc::new(RealDisk), &path, |_, _| true).unwrap();
        let text = "x".repeat(10_000);
        for number in 0..300 {
            file.append(&notes(&[("a", Some(&format!("{text}{number}"))), ("b", Some("kept"))])).unwrap();
        }
        assert!(std::fs::metadata(path.join("notes")).unwrap().len() < 2 * REWRITE_BYTES_MIN);
        drop(file);
        assert_eq!(read(&path), [("a".into(), format!("{text}299")), ("b".into(), "kept".into())]);
        std::fs::remove_dir_all(path).unwrap();
    }
}
