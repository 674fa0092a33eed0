//! What a journal finds at its start: files as the last run left them, perhaps torn, bent or half sealed. Owns making a catalog of them that is
//! true, and saying what was wrong. Nothing is repaired in place: what is good is read, and sealed anew.
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;

use crate::Stream;
use crate::catalog::{Catalog, Sealed, Segments, Unsealed};
use crate::decode::facts::Facts;
use crate::decode::scan::{Scan, Wanted, scan};
use crate::disk::Disk;
use crate::lane::Closed;
use crate::seal::remove_if_there;
use crate::segment::FileName;

/// Offsets that are left out where a power cut may have taken rows that a reader has seen: none is given twice.
pub const SKIPPED: u64 = 1_000_000;

/// What became of one stream.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// The offset after all that were ever seen.
    pub(crate) next: u64,
    /// Segments that are to be sealed.
    pub(crate) closed: Vec<Closed>,
    /// Of the unsealed segments, oldest first.
    pub(crate) facts: Vec<Facts>,
    /// What was wrong, a sentence each.
    pub(crate) said: Vec<String>,
    pub(crate) damaged: u64,
}

pub(crate) fn recover(stream: Stream, disk: &dyn Disk, catalog: &Catalog) -> io::Result<Recovered> {
    let mut segments = catalog.lock(stream);
    disk.create_folder(&segments.folder)?;
    let names: BTreeSet<String> = disk.list(&segments.folder)?.into_iter().collect();
    for name in names.iter().filter(|name| name.ends_with(".new")) {
        remove_if_there(disk, &segments.path(name))?;
    }
    let mut recovered = Recovered::default();
    if let Some(manifest) = segments.read_manifest(disk) {
        segments.manifest = manifest;
    } else if names.contains("manifest.json") {
        recovered.say(stream, "manifest.json cannot be read and is made anew from the segments".to_owned());
    }
    drop_missing(&mut segments, &names, stream, &mut recovered);
    take_in_sealed(disk, &mut segments, &names, stream, &mut recovered)?;
    take_in_open(disk, &mut segments, &names, stream, &mut recovered)?;
    recovered.next = recovered.next.max(segments.manifest.next).max(segments.manifest.first);
    Ok(recovered)
}

/// Segments that the manifest names and that are not there: let go (the oldest), or taken away by somebody.
fn drop_missing(segments: &mut Segments, names: &BTreeSet<String>, stream: Stream, recovered: &mut Recovered) {
    let mut is_oldest = true;
    for sealed in std::mem::take(&mut segments.manifest.segments) {
        if names.contains(&sealed.file) {
            is_oldest = false;
            segments.manifest.segments.push(sealed);
            continue;
        }
        if is_oldest {
            segments.raise_first(sealed.next);
        } else {
            // It stays named, so that nobody takes its offsets for rows that were never there.
            recovered.say(stream, format!("{} is not there; its rows are gone", sealed.file));
            let holes = vec![(sealed.first, sealed.next)];
            segments.manifest.segments.push(Sealed { rows: 0, holes, ..sealed });
        }
    }
}

/// Sealed files that the manifest does not name yet, or that it had let go.
fn take_in_sealed(
    disk: &dyn Disk,
    segments: &mut Segments,
    names: &BTreeSet<String>,
    stream: Stream,
    recovered: &mut Recovered,
) -> io::Result<()> {
    let named: BTreeSet<String> = segments.manifest.segments.iter().map(|sealed| sealed.file.clone()).collect();
    for name in names.iter().filter(|name| !named.contains(*name)) {
        let Some(FileName::Sealed { first, next }) = FileName::parse(name) else { continue };
        if next <= segments.manifest.first {
            remove_if_there(disk, &segments.path(name))?;
            remove_if_there(disk, &segments.path(&FileName::Index { first, next }.text()))?;
            continue;
        }
        let (found, facts, bytes) = read_whole(disk, segments, stream, name, (first, next))?;
        recovered.damaged += found.damaged;
        recovered.say_of(stream, name, &found);
        segments.add_sealed(facts.into_sealed(name.clone(), (first, next), bytes, found.all_holes(next)));
    }
    Ok(())
}

/// Open segments of the last run, each up to its last whole batch and to where the next file begins.
fn take_in_open(
    disk: &dyn Disk,
    segments: &mut Segments,
    names: &BTreeSet<String>,
    stream: Stream,
    recovered: &mut Recovered,
) -> io::Result<()> {
    let firsts: BTreeSet<u64> = names.iter().filter_map(|name| open_first(name)).collect();
    for first in firsts.iter().copied() {
        let name = FileName::Open { first }.text();
        let is_sealed = segments.manifest.segments.iter().any(|sealed| sealed.first == first);
        let is_gone = first < segments.manifest.first || is_sealed;
        if is_gone {
            remove_if_there(disk, &segments.path(&name))?;
            continue;
        }
        let sealed_after = segments.manifest.segments.iter().map(|sealed| sealed.first).filter(|other| *other > first);
        let bound = firsts.range(first + 1..).next().copied().into_iter().chain(sealed_after).min();
        let (found, facts, _) = read_whole(disk, segments, stream, &name, (first, bound.unwrap_or(u64::MAX)))?;
        recovered.damaged += found.damaged;
        recovered.say_of(stream, &name, &found);
        let is_last = firsts.last() == Some(&first);
        if facts.rows == 0 && !is_last {
            remove_if_there(disk, &segments.path(&name))?;
            continue;
        }
        // Rows up to where the next file begins that are not there were damaged.
        let next = bound.unwrap_or(found.next);
        segments.unsealed.push(Unsealed { first, next: Some(next), bytes: found.bytes });
        recovered.closed.push(Closed { stream, first, next, is_ours: false });
        recovered.next = recovered.next.max(next);
        recovered.facts.push(facts);
    }
    Ok(())
}

fn open_first(name: &str) -> Option<u64> {
    match FileName::parse(name) {
        Some(FileName::Open { first }) => Some(first),
        _ => None,
    }
}

fn read_whole(
    disk: &dyn Disk,
    segments: &Segments,
    stream: Stream,
    name: &str,
    (first, next): (u64, u64),
) -> io::Result<(Scan, Facts, u64)> {
    let file = disk.open(&segments.path(name))?;
    let bytes = file.length()?;
    let mut facts = Facts::default();
    let found =
        scan(&*file, Wanted { stream, limit: bytes, first, next, from: 0, is_verified: true }, &mut |batch, _| {
            facts.add(&batch);
            ControlFlow::Continue(())
        })?;
    Ok((found, facts, bytes))
}

impl Recovered {
    /// Ends what the last run left open before rows that the disk may not have kept: their offsets are not given again. Without
    /// rows to end, or where nothing was lost, a file that has none is in the way.
    pub(crate) fn settle(&mut self, disk: &dyn Disk, catalog: &Catalog, is_whole: bool) -> io::Result<()> {
        let Some(last) = self.closed.last_mut() else { return Ok(()) };
        let mut segments = catalog.lock(last.stream);
        if !is_whole {
            last.next += SKIPPED;
            self.next = last.next;
            segments.close_open(last.first, last.next);
        } else if last.next == last.first {
            remove_if_there(disk, &segments.path(&FileName::Open { first: last.first }.text()))?;
            segments.forget_unsealed(last.first);
            self.closed.pop();
        }
        Ok(())
    }

    fn say(&mut self, stream: Stream, what: String) {
        self.said.push(format!("{}: {what}", stream.name()));
    }

    fn say_of(&mut self, stream: Stream, name: &str, found: &Scan) {
        if found.torn_bytes > 0 {
            let (bytes, next) = (found.torn_bytes, found.next);
            self.say(stream, format!("{name} ended in a torn tail of {bytes} bytes; it is cut before offset {next}"));
        }
        if found.damaged > 0 {
            self.say(stream, format!("{name} has {} damaged rows or batches; they are left out", found.damaged));
        }
    }
}
