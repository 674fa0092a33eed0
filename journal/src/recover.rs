//! What a journal finds at its start: files as the last run left them, perhaps torn, bent or half sealed. Owns making a catalog of them that is
//! true, and saying what was wrong. Nothing is repaired in place: what is good is read, and sealed anew.
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::sync::MutexGuard;

use crate::Stream;
use crate::catalog::{Catalog, Sealed, Segments, Unsealed};
use crate::decode::facts::Facts;
use crate::decode::scan::{Scan, Wanted, scan};
use crate::disk::{Disk, remove_if_there};
use crate::segment::FileName;
use crate::segment_writer::Closed;

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
    /// Rows behind the last one that is good are damaged: nothing tells what they were.
    pub(crate) is_end_damaged: bool,
}

/// Looking through one stream's folder.
struct Search<'a> {
    stream: Stream,
    disk: &'a dyn Disk,
    segments: MutexGuard<'a, Segments>,
    names: BTreeSet<String>,
    /// The power may have been cut since the last run.
    was_cut: bool,
    found: Recovered,
}

pub(crate) fn recover(stream: Stream, disk: &dyn Disk, catalog: &Catalog, was_cut: bool) -> io::Result<Recovered> {
    let segments = catalog.lock(stream);
    disk.create_folder(&segments.folder)?;
    let names = disk.list(&segments.folder)?.into_iter().collect();
    let mut search = Search { stream, disk, segments, names, was_cut, found: Recovered::default() };
    for name in search.names.iter().filter(|name| name.ends_with(".new")) {
        search.remove(name)?;
    }
    let manifest = search.segments.read_manifest(disk)?; // an I/O error does not rebuild it
    let is_known = manifest.is_some();
    if let Some(manifest) = manifest {
        search.segments.manifest = manifest;
    } else if search.names.contains("manifest.json") {
        let what = "manifest.json cannot be read and is made anew from the segments";
        search.found.say(stream, what.to_owned());
    }
    search.drop_missing();
    search.take_in_sealed()?;
    search.take_in_open()?;
    if !is_known {
        search.begin_at_oldest();
    }
    let Search { segments, mut found, .. } = search;
    found.next = found.next.max(segments.manifest.next).max(segments.manifest.first);
    Ok(found)
}

impl Search<'_> {
    fn remove(&self, name: &str) -> io::Result<()> {
        remove_if_there(self.disk, &self.segments.path(name))
    }

    /// Without a manifest the rows before the oldest segment count as let go.
    fn begin_at_oldest(&mut self) {
        let sealed = self.segments.manifest.segments.first().map(|sealed| sealed.first);
        let open = self.segments.unsealed.first().map(|open| open.first);
        if let Some(first) = sealed.into_iter().chain(open).min() {
            self.segments.raise_first(first);
        }
    }

    /// Segments that the manifest names and that are not there: let go (the oldest), or taken away by somebody.
    fn drop_missing(&mut self) {
        let mut is_oldest = true;
        for sealed in std::mem::take(&mut self.segments.manifest.segments) {
            if self.names.contains(&sealed.file) {
                is_oldest = false;
                self.segments.manifest.segments.push(sealed);
                continue;
            }
            if is_oldest {
                self.segments.raise_first(sealed.next);
            } else {
                // It stays named, so that nobody takes its offsets for rows that were never there.
                self.found.say(self.stream, format!("{} is not there; its rows are gone", sealed.file));
                let missing = vec![(sealed.first, sealed.next)];
                self.segments.manifest.segments.push(Sealed { rows: 0, missing, ..sealed });
            }
        }
    }

    /// Sealed files that the manifest does not name yet, or that it had let go.
    fn take_in_sealed(&mut self) -> io::Result<()> {
        let named: BTreeSet<&String> = self.segments.manifest.segments.iter().map(|sealed| &sealed.file).collect();
        let others: Vec<String> = self.names.iter().filter(|name| !named.contains(name)).cloned().collect();
        for name in others {
            let Some(FileName::Sealed { first, next }) = FileName::parse(&name) else { continue };
            if next <= self.segments.manifest.first {
                self.remove(&name)?;
                self.remove(&FileName::Index { first, next }.text())?;
                continue;
            }
            let (scan, facts, bytes) = self.read_whole(&name, (first, next))?;
            let sealed = facts.into_sealed(name, (first, next), bytes, scan.all_missing(next));
            self.segments.add_sealed(sealed);
        }
        Ok(())
    }

    /// Open segments of the last run, each up to its last whole batch and to where the next file begins.
    fn take_in_open(&mut self) -> io::Result<()> {
        let firsts: BTreeSet<u64> = self.names.iter().filter_map(|name| open_first(name)).collect();
        for first in firsts.iter().copied() {
            let name = FileName::Open { first }.text();
            let sealed = &self.segments.manifest.segments;
            let is_sealed = sealed.iter().any(|sealed| sealed.first == first);
            if first < self.segments.manifest.first || is_sealed {
                self.remove(&name)?;
                continue;
            }
            let sealed_after = sealed.iter().map(|sealed| sealed.first).filter(|other| *other > first);
            let bound = firsts.range(first + 1..).next().copied().into_iter().chain(sealed_after).min();
            let (scan, facts, _) = self.read_whole(&name, (first, bound.unwrap_or(u64::MAX)))?;
            let is_last = firsts.last() == Some(&first);
            self.found.is_end_damaged = is_last && scan.damaged_last > 0;
            if let (0, false, Some(next)) = (facts.rows, is_last, bound) {
                self.give_up(&name, (first, next))?;
                continue;
            }
            // Rows up to where the next file begins that are not there were damaged.
            let next = bound.unwrap_or(scan.next);
            self.segments.unsealed.push(Unsealed { first, next: Some(next), bytes: scan.bytes });
            self.found.closed.push(Closed { stream: self.stream, first, next, is_ours: false });
            self.found.next = self.found.next.max(next);
            self.found.facts.push(facts);
        }
        Ok(())
    }

    /// A file that others follow and of which no row can be read. Its offsets stay named, so that nobody takes them for rows never there.
    fn give_up(&mut self, name: &str, (first, next): (u64, u64)) -> io::Result<()> {
        self.found.say(self.stream, format!("{name} has no row that can be read; those up to offset {next} are gone"));
        let sealed = FileName::Sealed { first, next }.text();
        self.segments.add_sealed(Facts::default().into_sealed(sealed, (first, next), 0, vec![(first, next)]));
        // On a disk that takes no manifest the next start does this again.
        if self.segments.save(self.disk).is_ok() { self.remove(name) } else { Ok(()) }
    }

    /// Every row of a file; what is wrong with it is said.
    fn read_whole(&mut self, name: &str, (first, next): (u64, u64)) -> io::Result<(Scan, Facts, u64)> {
        let file = self.disk.open(&self.segments.path(name))?;
        let bytes = file.length()?;
        let mut facts = Facts::default();
        let may_be_torn = self.was_cut && !name.ends_with(".arrow");
        let wanted = Wanted { stream: self.stream, limit: bytes, first, next, from: 0, is_verified: true, may_be_torn };
        let scan = scan(&*file, wanted, &mut |batch, _| {
            facts.add(&batch);
            ControlFlow::Continue(())
        })?;
        self.found.damaged += scan.damaged;
        self.found.say_of(self.stream, name, &scan);
        Ok((scan, facts, bytes))
    }
}

fn open_first(name: &str) -> Option<u64> {
    match FileName::parse(name) {
        Some(FileName::Open { first }) => Some(first),
        _ => None,
    }
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
