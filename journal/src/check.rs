//! The files of a journal looked through, every row against its checksum, without changing anything: for operators. It may be done while
//! a node writes; then the open segments are as far as they were.
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use crate::Stream;
use crate::boot;
use crate::catalog::{Catalog, Manifest, NAME, Segments};
use crate::decode::scan::{Wanted, scan};
use crate::disk::Disk;
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
    /// Rows or batches that do not fit their checksum.
    pub damaged: u64,
    /// Bytes at the end that make no batch: usual in an open segment.
    pub torn_bytes: u64,
    /// The manifest names it, and it is not there.
    pub is_missing: bool,
}

impl Checked {
    /// A manifest that cannot be read: it holds no rows, and is one thing that is damaged.
    fn manifest(stream: Stream) -> Self {
        let (file, is_missing) = (NAME.to_owned(), false);
        Self { stream, file, first: 0, next: 0, rows: 0, bytes: 0, damaged: 1, torn_bytes: 0, is_missing }
    }
}

/// Looks through all files in the journal's directory, stream by stream, oldest first.
pub fn check(disk: &dyn Disk, directory: &Path) -> io::Result<Vec<Checked>> {
    let catalog = Catalog::new(directory, "");
    let may_be_torn = !boot::is_same(disk, directory);
    let mut found = Vec::new();
    for stream in Stream::ALL {
        let segments = catalog.lock(stream);
        segments.check_format(disk)?;
        let names = match disk.list(&segments.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names?,
        };
        let mut files: Vec<(u64, Option<u64>, String)> = Vec::new();
        for name in names {
            match FileName::parse(&name) {
                Some(FileName::Sealed { first, next }) => files.push((first, Some(next), name)),
                Some(FileName::Open { first }) => files.push((first, None, name)),
                _ => {}
            }
        }
        // A sealed segment stands before the open one that it was.
        files.sort_by_key(|(first, next, _)| (*first, next.is_none()));
        files.dedup_by_key(|(first, _, _)| *first);
        let mut checked = Vec::new();
        let ends: Vec<u64> = files.iter().skip(1).map(|(first, _, _)| *first).chain([u64::MAX]).collect();
        for ((first, next, name), end) in files.iter().zip(ends) {
            let bounds = (*first, next.unwrap_or(end).min(end));
            match check_file(disk, (stream, name), &segments.path(name), bounds, may_be_torn && next.is_none()) {
                // It was sealed, or let go, since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                of => checked.push(of?),
            }
        }
        add_sealed(disk, &segments, stream, &files, &mut checked)?;
        checked.sort_by_key(|of| of.first);
        if segments.has_bad_manifest(disk) {
            checked.insert(0, Checked::manifest(stream));
        }
        found.append(&mut checked);
    }
    Ok(found)
}

/// What the manifest names and the folder did not list: it was sealed meanwhile, or it is missing.
fn add_sealed(
    disk: &dyn Disk,
    segments: &Segments,
    stream: Stream,
    listed: &[(u64, Option<u64>, String)],
    checked: &mut Vec<Checked>,
) -> io::Result<()> {
    let named = |manifest: Option<Manifest>| manifest.into_iter().flat_map(|manifest| manifest.segments);
    for sealed in named(segments.read_manifest(disk)) {
        if listed.iter().any(|(_, _, name)| *name == sealed.file) {
            continue;
        }
        let bounds = (sealed.first, sealed.next);
        match check_file(disk, (stream, &sealed.file), &segments.path(&sealed.file), bounds, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Unless it was let go just now.
                if named(segments.read_manifest(disk)).any(|still| still.file == sealed.file) {
                    let (file, first, next, rows) = (sealed.file, sealed.first, sealed.next, sealed.rows);
                    let (bytes, damaged, torn_bytes, is_missing) = (0, 0, 0, true);
                    checked.push(Checked { stream, file, first, next, rows, bytes, damaged, torn_bytes, is_missing });
                }
            }
            of => {
                checked.retain(|open| open.first != sealed.first);
                checked.push(of?);
            }
        }
    }
    Ok(())
}

fn check_file(
    disk: &dyn Disk,
    (stream, name): (Stream, &str),
    path: &Path,
    (first, next): (u64, u64),
    may_be_torn: bool,
) -> io::Result<Checked> {
    let file = disk.open(path)?;
    let limit = file.length()?;
    let wanted = Wanted { stream, limit, first, next, from: 0, is_verified: true, may_be_torn };
    let scanned = scan(&*file, wanted, &mut |_, _| ControlFlow::Continue(()))?;
    let is_open = name.ends_with(".arrows");
    Ok(Checked {
        stream,
        file: name.to_owned(),
        first,
        next: if next == u64::MAX { scanned.next } else { next },
        rows: scanned.rows,
        // Room that was made ahead of the rows is none of theirs.
        bytes: if is_open { scanned.bytes + scanned.torn_bytes } else { limit },
        damaged: scanned.damaged,
        torn_bytes: scanned.torn_bytes,
        is_missing: false,
    })
}
