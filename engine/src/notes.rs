//! The journal's notes: a file of lines beside its streams, of which the last of each name counts. Owns the file: appended to in batches,
//! written anew (and put in its place by rename) at the start and when most of it is past. A line that is torn or bent is left out.

use crate::queue::lock;
use godwit_core::node::Node;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often what is new is written.
const INTERVAL: Duration = Duration::from_millis(200);
/// A file is not written anew before it has so many bytes.
const REWRITE_BYTES_MIN: u64 = 1 << 20;
/// No line is longer; what is longer is none.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// What is written down of the node's notes, by a thread of its own.
#[derive(Debug)]
pub(crate) struct Notes {
    shared: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Notes {
    /// Begins writing what `file` is to hold of the node's notes from now on.
    pub(crate) fn begin(mut file: NotesFile, node: Arc<Mutex<Node>>) -> io::Result<Self> {
        let shared: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let thread = {
            let shared = Arc::clone(&shared);
            let run = move || {
                let (is_closed, news) = &*shared;
                let mut waiting = BTreeMap::new();
                loop {
                    let held = lock(is_closed);
                    let is_last = *news
                        .wait_timeout_while(held, INTERVAL, |is_closed| !*is_closed)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                    waiting.append(&mut lock(&node).take_notes());
                    // What the disk refuses is tried again; the journal's own alarm tells of it.
                    if !waiting.is_empty() && file.append(&waiting).is_ok() {
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

    /// Writes what waits, and ends.
    pub(crate) fn close(&self) {
        *lock(&self.shared.0) = true;
        self.shared.1.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join(); // a panic there has been printed
        }
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        *lock(&self.shared.0) = true;
        self.shared.1.notify_all();
    }
}

/// The file. `places` says where the last line of each name is, by a hash of the name.
#[derive(Debug)]
pub(crate) struct NotesFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    live_bytes: u64,
    places: HashMap<u64, (u64, u32)>,
    hashes: RandomState,
}

impl NotesFile {
    /// Reads the notes of a journal and writes those anew that `keep` wants.
    pub(crate) fn open(directory: &Path, mut keep: impl FnMut(&str, &str) -> bool) -> io::Result<Self> {
        let path = directory.join("notes");
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        match File::open(&path) {
            Ok(file) => read_lines(file, |name, text| {
                match text {
                    Some(text) => found.insert(name.to_owned(), text.to_owned()),
                    None => found.remove(name),
                };
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        found.retain(|name, text| keep(name, text));
        let lines = found.iter().map(|(name, text)| (name.as_str(), make_line(name, Some(text))));
        Self::write(path, lines)
    }

    fn write<'a>(path: PathBuf, lines: impl Iterator<Item = (&'a str, String)>) -> io::Result<Self> {
        let fresh = path.with_extension("new");
        let hashes = RandomState::new();
        let (mut bytes, mut places) = (0, HashMap::new());
        let mut out = BufWriter::new(File::create(&fresh)?);
        for (name, line) in lines {
            out.write_all(line.as_bytes())?;
            places.insert(hashes.hash_one(name), (bytes, line.len() as u32));
            bytes += line.len() as u64;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&fresh, &path)?;
        let file = OpenOptions::new().read(true).append(true).open(&path)?;
        Ok(Self { path, file, bytes, live_bytes: bytes, places, hashes })
    }

    fn append(&mut self, notes: &BTreeMap<String, Option<String>>) -> io::Result<()> {
        let mut out = String::new();
        let mut placed = Vec::with_capacity(notes.len());
        for (name, text) in notes {
            let line = make_line(name, text.as_deref());
            let place = text.is_some().then_some((self.bytes + out.len() as u64, line.len() as u32));
            placed.push((self.hashes.hash_one(name.as_str()), place));
            out.push_str(&line);
        }
        if let Err(error) = self.file.write_all(out.as_bytes()).and_then(|()| self.file.sync_data()) {
            // Half of a line may be there: what follows begins on a line of its own, and is found.
            let _ = self.file.write_all(b"\n");
            self.bytes = self.file.metadata()?.len();
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
        if self.bytes > REWRITE_BYTES_MIN.max(4 * self.live_bytes) { self.rewrite() } else { Ok(()) }
    }

    /// Puts a file with the last lines alone in its place.
    fn rewrite(&mut self) -> io::Result<()> {
        let mut places: Vec<(u64, u32)> = self.places.values().copied().collect();
        places.sort_unstable();
        let mut lines = Vec::with_capacity(places.len());
        for (at, length) in places {
            let mut line = vec![0; length as usize];
            self.file.seek(SeekFrom::Start(at))?;
            self.file.read_exact(&mut line)?;
            lines.push(String::from_utf8(line).map_err(io::Error::other)?);
        }
        let named = lines.iter().filter_map(|line| Some((parse_line(line)?.0, line.clone())));
        *self = Self::write(self.path.clone(), named)?;
        Ok(())
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

fn read_lines(file: File, mut each: impl FnMut(&str, Option<&str>)) -> io::Result<()> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Some((name, text)) = std::str::from_utf8(&line).ok().and_then(parse_line) {
            each(name, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NotesFile, REWRITE_BYTES_MIN};
    use std::collections::BTreeMap;
    use std::io::Write;

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
        NotesFile::open(path, |name, text| {
            found.push((name.to_owned(), text.to_owned()));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn the_last_word_of_each_name_counts_and_a_torn_or_bent_line_is_left_out() {
        let path = folder("last");
        let mut file = NotesFile::open(&path, |_, _| true).unwrap();
        file.append(&notes(&[("a", Some("1")), ("b", Some("x"))])).unwrap();
        file.append(&notes(&[("a", Some("2")), ("b", None), ("c", Some("3"))])).unwrap();
        drop(file);
        let mut raw = std::fs::OpenOptions::new().append(true).open(path.join("notes")).unwrap();
        raw.write_all(b"00000000\ta\tbent\nabc\td\ttorn").unwrap();
        assert_eq!(read(&path), [("a".into(), "2".into()), ("c".into(), "3".into())]);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_file_that_is_mostly_past_is_written_anew() {
        let path = folder("anew");
        let mut file = NotesFile::open(&path, |_, _| true).unwrap();
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
