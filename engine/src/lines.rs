//! A file of lines beside the journal's streams, each with a name, of which the last of each name counts. Owns the file: appended to in batches,
//! written anew (and put in its place by rename) at the start, when most of it is past, and once a disk takes bytes again that refused
//! some. A line that is torn or bent is left out.

use godwit_journal::disk::{Append, Disk, read_range, write_all};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file is not written anew before it has so many bytes.
pub(crate) const REWRITE_BYTES_MIN: u64 = 1 << 20;
/// Bytes that are read, or written, at once.
const PIECE_BYTES: usize = 1 << 20;

/// Where a line is: its place and its length.
type LineLocation = (u64, u32);

/// A file that was written, the lines in it, and its length.
type Written = (Box<dyn Append>, HashMap<u64, LineLocation>, u64);

/// What a file holds at the start, by name: where the last line of each is.
#[derive(Debug, Default)]
pub(crate) struct Found {
    last: BTreeMap<Box<str>, LineLocation>,
    /// Whole lines that do not fit their checksum.
    pub(crate) damaged: u64,
    pub(crate) is_missing: bool,
}

/// The file. `places` says where the last line of each name is, by a hash of the name.
#[derive(Debug)]
pub(crate) struct LinesFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// None: the disk refused, and the file is to be written anew.
    file: Option<Box<dyn Append>>,
    bytes: u64,
    live_bytes: u64,
    /// It is written anew once it is so many times as large as what counts.
    factor: u64,
    places: HashMap<u64, LineLocation>,
    /// Names of lines that the disk refused, of which it may have some.
    unsure: HashSet<u64>,
    hashes: RandomState,
}

impl LinesFile {
    pub(crate) fn new(disk: Arc<dyn Disk>, path: &Path, factor: u64) -> Self {
        let (path, hashes, places) = (path.to_owned(), RandomState::new(), HashMap::new());
        Self { disk, path, file: None, bytes: 0, live_bytes: 0, factor, places, unsure: HashSet::new(), hashes }
    }

    /// Looks what the file holds; nothing is changed before `begin`.
    pub(crate) fn find(&self) -> io::Result<Found> {
        let mut found = Found::default();
        match self.disk.open(&self.path) {
            Ok(file) => each_line(&*file, &mut |place, line| match parse_line(line) {
                Some((name, Some(_))) => {
                    found.last.insert(name.into(), (place, line.len() as u32));
                }
                Some((name, None)) => {
                    found.last.remove(name);
                }
                None => found.damaged += u64::from(line.ends_with(b"\n")),
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => found.is_missing = true,
            Err(error) => return Err(error),
        }
        Ok(found)
    }

    /// Hands over each name and its text, in the order of names.
    pub(crate) fn each(&self, found: &Found, mut each: impl FnMut(&str, &str)) -> io::Result<()> {
        if found.last.is_empty() {
            return Ok(());
        }
        let file = self.disk.open(&self.path)?;
        for (name, place) in &found.last {
            let line = read_range(&*file, place.0, place.1 as usize)?;
            if let Some((_, Some(text))) = parse_line(&line) {
                each(name, text);
            }
        }
        Ok(())
    }

    /// Does the same, and writes those anew that `keep` wants; a disk that refuses is tried again with
    /// the next lines.
    pub(crate) fn begin(&mut self, found: Found, mut keep: impl FnMut(&str, &str) -> bool) -> io::Result<()> {
        let mut places = HashMap::new();
        self.each(&found, |name, text| {
            if let Some(place) = found.last.get(name).filter(|_| keep(name, text)) {
                places.insert(self.hashes.hash_one(name), *place);
            }
        })?;
        self.places = places;
        let _ = self.rewrite(&mut |_| true); // as said above
        Ok(())
    }

    /// Whether a name has a line.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.places.contains_key(&self.hashes.hash_one(name))
    }

    /// Whether the file may have a line of a name, so that the end of what it says has to be written.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.has(name) || self.unsure.contains(&self.hashes.hash_one(name))
    }

    /// Appends lines, and makes sure of them. A name without a text is over.
    pub(crate) fn append<'a>(
        &mut self,
        lines: impl Iterator<Item = (&'a str, Option<&'a str>)>,
        is_wanted: &mut dyn FnMut(&str) -> bool,
    ) -> io::Result<()> {
        let mut lines = lines.peekable();
        if lines.peek().is_none() {
            return Ok(());
        }
        if self.file.is_none() || self.bytes > REWRITE_BYTES_MIN.max(self.factor * self.live_bytes) {
            self.rewrite(is_wanted)?;
        }
        let mut out = String::new();
        let mut placed = Vec::new();
        for (name, text) in lines {
            let line = make_line(name, text);
            let place = text.is_some().then_some((self.bytes + out.len() as u64, line.len() as u32));
            placed.push((self.hashes.hash_one(name), place));
            out.push_str(&line);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = write_all(&mut **file, out.as_bytes()).and_then(|()| file.sync()) {
            self.file = None;
            self.unsure.extend(placed.iter().map(|(hash, _)| *hash));
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

    /// Puts a file with the last lines alone in its place, of the names that are still wanted. Where that fails, nothing of it is left on a disk
    /// that may be full.
    pub(crate) fn rewrite(&mut self, is_wanted: &mut dyn FnMut(&str) -> bool) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        self.remove(&fresh)?;
        let written = self.write_to(&fresh, is_wanted);
        if written.is_err() {
            let _ = self.remove(&fresh); // else the next try does
        }
        let (file, places, bytes) = written?;
        (self.bytes, self.live_bytes) = (bytes, bytes);
        (self.file, self.places) = (Some(file), places);
        let synced = self.path.parent().map_or(Ok(()), |folder| self.disk.sync_folder(folder));
        if synced.is_err() {
            // A power cut could bring the file before this one back, without the lines that would be appended now.
            self.file = None;
        } else {
            self.unsure.clear();
        }
        synced
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn write_to(&self, fresh: &Path, is_wanted: &mut dyn FnMut(&str) -> bool) -> io::Result<Written> {
        let mut file = self.disk.create(fresh)?;
        let (mut out, mut places, mut bytes) = (Vec::new(), HashMap::new(), 0);
        let mut order: Vec<(&u64, &LineLocation)> = self.places.iter().collect();
        order.sort_by_key(|(_, place)| **place);
        let held = if order.is_empty() { None } else { Some(self.disk.open(&self.path)?) };
        for (hash, (at, length)) in order {
            let Some(held) = &held else { break };
            let line = read_range(&**held, *at, *length as usize)?;
            // One that was bent since is left out, too.
            if parse_line(&line).is_some_and(|(name, _)| is_wanted(name)) {
                places.insert(*hash, (bytes, *length));
                bytes += line.len() as u64;
                out.extend_from_slice(&line);
            }
            if out.len() >= PIECE_BYTES {
                write_all(&mut *file, &out)?;
                out.clear();
            }
        }
        write_all(&mut *file, &out)?;
        file.sync()?;
        self.disk.rename(fresh, &self.path)?;
        Ok((file, places, bytes))
    }
}

/// Hands over the lines of a file, each with its end, and where it begins; the last may have none.
fn each_line(file: &dyn godwit_journal::disk::ReadAt, each: &mut dyn FnMut(u64, &[u8])) -> io::Result<()> {
    let (mut held, mut at, mut read): (Vec<u8>, u64, u64) = (Vec::new(), 0, 0);
    loop {
        let piece = read_range(file, read, PIECE_BYTES)?;
        read += piece.len() as u64;
        let is_last = piece.is_empty();
        let searched = held.len();
        held.extend_from_slice(&piece);
        let mut begin = 0;
        let ends = held.iter().enumerate().skip(searched).filter(|(_, byte)| **byte == b'\n').map(|(end, _)| end + 1);
        for end in ends {
            each(at + begin as u64, held.get(begin..end).unwrap_or_default());
            begin = end;
        }
        held.drain(..begin);
        at += begin as u64;
        if is_last {
            if !held.is_empty() {
                each(at, &held);
            }
            return Ok(());
        }
    }
}

/// CHECKSUM, a tab, the name, a tab and the text; without a text the name is over.
fn make_line(name: &str, text: Option<&str>) -> String {
    let body = text.map_or_else(|| name.to_owned(), |text| format!("{name}\t{text}"));
    format!("{:08x}\t{body}\n", crc32c::crc32c(body.as_bytes()))
}

fn parse_line(line: &[u8]) -> Option<(&str, Option<&str>)> {
    let (sum, body) = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split_once('\t')?;
    if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(body.as_bytes()) {
        return None;
    }
    Some(body.split_once('\t').map_or((body, None), |(name, text)| (name, Some(text))))
}

#[cfg(test)]
mod tests {
    use super::{LinesFile, REWRITE_BYTES_MIN};
    use crate::notes::Notes;
    use crate::snapshots::Snapshots;
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

    fn open(path: &std::path::Path) -> LinesFile {
        let mut file = LinesFile::new(Arc::new(RealDisk), &path.join("notes"), 4);
        let found = file.find().unwrap();
        file.begin(found, |_, _| true).unwrap();
        file
    }

    fn append(file: &mut LinesFile, notes: &BTreeMap<String, Option<String>>) -> std::io::Result<()> {
        file.append(notes.iter().map(|(name, text)| (name.as_str(), text.as_deref())), &mut |_| true)
    }

    fn begin(path: &std::path::Path, node: &Arc<Mutex<Node>>) -> Notes {
        let snapshots = Snapshots::new(Arc::new(RealDisk), path);
        Notes::begin(open(path), Arc::new(snapshots), Arc::clone(node), |_| ()).unwrap()
    }

    fn read(path: &std::path::Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut file = LinesFile::new(Arc::new(RealDisk), &path.join("notes"), 4);
        let held = file.find().unwrap();
        file.begin(held, |name, text| {
            found.push((name.to_owned(), text.to_owned()));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn the_last_word_of_each_name_counts_and_a_torn_or_bent_line_is_left_out() {
        let path = folder("last");
        let mut file = open(&path);
        append(&mut file, &notes(&[("a", Some("1")), ("b", Some("x"))])).unwrap();
        append(&mut file, &notes(&[("a", Some("2")), ("b", None), ("c", Some("3"))])).unwrap();
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
        let notes = begin(&path, &node);
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
        let notes = begin(&path, &node);
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
        let mut file = open(&path);
        append(&mut file, &notes(&[("a", Some("1")), ("b", Some("x"))])).unwrap();
        drop(file);
        // In the way of the fresh file: as good as a disk that takes nothing.
        std::fs::create_dir(path.join("notes.new")).unwrap();
        let mut file = open(&path);
        let news = notes(&[("a", Some("2"))]);
        assert!(append(&mut file, &news).is_err());
        std::fs::remove_dir(path.join("notes.new")).unwrap();
        append(&mut file, &news).unwrap();
        drop(file);
        assert_eq!(read(&path), [("a".into(), "2".into()), ("b".into(), "x".into())]);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_file_that_is_mostly_past_is_written_anew() {
        let path = folder("anew");
        let mut file = open(&path);
        let text = "x".repeat(10_000);
        for number in 0..300 {
            append(&mut file, &notes(&[("a", Some(&format!("{text}{number}"))), ("b", Some("kept"))])).unwrap();
        }
        assert!(std::fs::metadata(path.join("notes")).unwrap().len() < 2 * REWRITE_BYTES_MIN);
        drop(file);
        assert_eq!(read(&path), [("a".into(), format!("{text}299")), ("b".into(), "kept".into())]);
        std::fs::remove_dir_all(path).unwrap();
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod disk_tests;
