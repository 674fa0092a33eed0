//! The files of a journal looked through, every row against its checksum, without changing anything: for operators. It may be done while
//! a node writes; then the open segments are as far as they were.
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use crate::Stream;
use crate::boot;
use crate::catalog::{Catalog, Manifest, NAME, Sealed, Segments};
use crate::decode::footer::is_ipc_file;
use crate::decode::scan::{Wanted, scan};
use crate::disk::{Disk, read_range};
use crate::segment::FileName;

/// What was found in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub stream: Stream,
    pub file: String,
    pub first: u64,
    pub next: u64,
    pub rows: u64,
    pub bytes: u64,
    /// Rows or batches that do not fit their checksum, and the end of a sealed segment that makes no batch.
    pub damaged: u64,
    /// Bytes at the end that make no batch: usual in an open segment.
    pub torn_bytes: u64,
    /// Rows with which it was sealed, as the manifest says, and that are not good any more.
    pub lost: u64,
    /// Sealed, and no IPC file as others read it: its beginning or its footer is gone or bent.
    pub is_bent: bool,
    /// The manifest names it, and it is not there.
    pub is_missing: bool,
    /// No file, but offsets between two, where nothing says why: `file` is what a segment of them would be called.
    pub is_gap: bool,
}

impl Checked {
    fn new(stream: Stream, file: String, (first, next): (u64, u64)) -> Self {
        let (rows, bytes, damaged, torn_bytes, lost) = (0, 0, 0, 0, 0);
        let (is_bent, is_missing, is_gap) = (false, false, false);
        Self { stream, file, first, next, rows, bytes, damaged, torn_bytes, lost, is_bent, is_missing, is_gap }
    }

    /// Nothing is wrong with it.
    pub fn is_whole(&self) -> bool {
        self.damaged == 0 && self.lost == 0 && !self.is_bent && !self.is_missing && !self.is_gap
    }
}

/// A file of a segment: its first offset, the one after its last where it is sealed, its name.
type Listed = (u64, Option<u64>, String);

/// Looks through all files in the journal's directory, stream by stream, oldest first.
pub fn check(disk: &dyn Disk, directory: &Path) -> io::Result<Vec<Checked>> {
    let catalog = Catalog::new(directory, "");
    let may_be_torn = !boot::is_same(disk, directory);
    let mut found = Vec::new();
    for stream in Stream::ALL {
        let segments = catalog.lock(stream);
        found.append(&mut StreamCheck { disk, segments: &segments, stream, may_be_torn }.check()?);
    }
    Ok(found)
}

/// Checks one stream's folder.
struct StreamCheck<'a> {
    disk: &'a dyn Disk,
    segments: &'a Segments,
    stream: Stream,
    /// The power may have been cut since it was written.
    may_be_torn: bool,
}

impl StreamCheck<'_> {
    fn check(&self) -> io::Result<Vec<Checked>> {
        self.look_at_manifest()?;
        self.segments.check_format(self.disk)?;
        let folder = &self.segments.folder;
        let names = match self.disk.list(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names.map_err(|error| naming(folder, &error))?,
        };
        let files = sort(names);
        let mut checked = Vec::new();
        let ends: Vec<u64> = files.iter().skip(1).map(|(first, _, _)| *first).chain([u64::MAX]).collect();
        for ((first, next, name), end) in files.iter().zip(ends) {
            match self.check_file(name, (*first, next.unwrap_or(end).min(end))) {
                // It was sealed, or let go, since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                of => checked.push(of?),
            }
        }
        if let Ok(Some(manifest)) = self.segments.read_manifest(self.disk) {
            self.hold_against(manifest.segments, &files, &mut checked)?;
        }
        checked.sort_by_key(|of| of.first);
        self.add_gaps(&mut checked);
        checked.sort_by_key(|of| of.first);
        if self.segments.has_bad_manifest(self.disk) {
            // It holds no rows, and is one thing that is damaged.
            checked.insert(0, Checked { damaged: 1, ..Checked::new(self.stream, NAME.to_owned(), (0, 0)) });
        }
        Ok(checked)
    }

    /// An error where there is one that one may not read.
    fn look_at_manifest(&self) -> io::Result<()> {
        let path = self.segments.path(NAME);
        match self.disk.open(&path).and_then(|file| read_range(&*file, 0, 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(naming(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Counts the rows that the manifest knows and the files lack. What it names and the folder did not list was sealed meanwhile, or it
    /// is missing.
    fn hold_against(&self, named: Vec<Sealed>, listed: &[Listed], checked: &mut Vec<Checked>) -> io::Result<()> {
        for sealed in named {
            if !listed.iter().any(|(_, _, name)| *name == sealed.file) {
                match self.check_file(&sealed.file, (sealed.first, sealed.next)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        checked.extend(self.missing(&sealed));
                        continue;
                    }
                    of => {
                        checked.retain(|open| open.first != sealed.first);
                        checked.push(of?);
                    }
                }
            }
            if let Some(of) = checked.iter_mut().find(|of| of.file == sealed.file) {
                of.lost = sealed.rows.saturating_sub(of.rows);
            }
        }
        Ok(())
    }

    /// None where it was let go just now.
    fn missing(&self, sealed: &Sealed) -> Option<Checked> {
        let named = |manifest: Manifest| manifest.segments.iter().any(|still| still.file == sealed.file);
        let is_missing = self.segments.read_manifest(self.disk).ok().flatten().is_some_and(named);
        let none = Checked::new(self.stream, sealed.file.clone(), (sealed.first, sealed.next));
        is_missing.then_some(Checked { rows: sealed.rows, is_missing, ..none })
    }

    /// Offsets between two segments: each begins where the one before it ends, also where offsets were skipped.
    fn add_gaps(&self, checked: &mut Vec<Checked>) {
        let gaps: Vec<(u64, u64)> = checked.windows(2).map(|two| (two[0].next, two[1].first)).collect();
        for (first, next) in gaps.into_iter().filter(|(first, next)| first < next) {
            let file = FileName::Sealed { first, next }.text();
            checked.push(Checked { is_gap: true, ..Checked::new(self.stream, file, (first, next)) });
        }
    }

    fn check_file(&self, name: &str, bounds: (u64, u64)) -> io::Result<Checked> {
        let path = self.segments.path(name);
        self.read(name, &path, bounds).map_err(|error| naming(&path, &error))
    }

    fn read(&self, name: &str, path: &Path, (first, next): (u64, u64)) -> io::Result<Checked> {
        let file = self.disk.open(path)?;
        let limit = file.length()?;
        let is_open = name.ends_with(".arrows");
        let may_be_torn = self.may_be_torn && is_open;
        let wanted = Wanted { stream: self.stream, limit, first, next, from: 0, is_verified: true, may_be_torn };
        let mut frames = Vec::new();
        let scanned = scan(&*file, wanted, &mut |_, frame| {
            frames.push(*frame);
            ControlFlow::Continue(())
        })?;
        // A sealed file ends in nothing that makes no batch: it was whole before it had its name.
        let is_cut = !is_open && scanned.torn_bytes > 0;
        Ok(Checked {
            rows: scanned.rows,
            // Preallocated zeros do not belong to the rows.
            bytes: if is_open { scanned.bytes + scanned.torn_bytes } else { limit },
            damaged: scanned.damaged + u64::from(is_cut),
            torn_bytes: scanned.torn_bytes,
            is_bent: !is_open && !is_ipc_file(&*file, &frames)?,
            ..Checked::new(self.stream, name.to_owned(), (first, if next == u64::MAX { scanned.next } else { next }))
        })
    }
}

/// Segments by their first offset; a sealed one stands in place of the open one that it was.
fn sort(names: Vec<String>) -> Vec<Listed> {
    let mut files: Vec<Listed> = Vec::new();
    for name in names {
        match FileName::parse(&name) {
            Some(FileName::Sealed { first, next }) => files.push((first, Some(next), name)),
            Some(FileName::Open { first }) => files.push((first, None, name)),
            _ => {}
        }
    }
    files.sort_by_key(|(first, next, _)| (*first, next.is_none()));
    files.dedup_by_key(|(first, _, _)| *first);
    files
}

/// The error, with which file it was.
fn naming(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
