//! What a journal finds at its start: files as the last run left them, perhaps torn, bent or half sealed. Owns making a catalog of them that is
//! true, and saying what was wrong. Nothing is repaired in place: what is good is read, and sealed anew.
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;

use crate::Stream;
use crate::catalog::{Catalog, Segments, Unsealed};
use crate::decode::facts::Facts;
use crate::decode::scan::{Scan, Wanted, scan};
use crate::disk::Disk;
use crate::lane::Closed;
use crate::seal::remove_if_there;
use crate::segment::FileName;

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
    let holes = segments.manifest.holes.iter().map(|hole| hole.1);
    recovered.next = holes.chain([recovered.next, segments.manifest.next, segments.manifest.first]).max().unwrap_or(0);
    Ok(recovered)
}

/// Segments that the manifest names and that are not there: let go (the oldest), or taken away by somebody.
fn drop_missing(segments: &mut Segments, names: &BTreeSet<String>, stream: Stream, recovered: &mut Recovered) {
    let (there, missing): (Vec<_>, Vec<_>) =
        std::mem::take(&mut segments.manifest.segments).into_iter().partition(|sealed| names.contains(&sealed.file));
    segments.manifest.segments = there;
    for sealed in missing {
        recovered.say(stream, format!("{} is not there; its rows are gone", sealed.file));
        if sealed.first <= segments.manifest.first {
            segments.raise_first(sealed.next);
        } else {
            segments.add_hole(sealed.first, sealed.next);
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
        let (found, facts, bytes) = read_whole(disk, segments, name, first, next)?;
        recovered.damaged += found.damaged;
        for (first, next) in found.holes {
            segments.add_hole(first, next);
        }
        segments.add_hole(found.next, next);
        if facts.rows > 0 {
            recovered.say(stream, format!("{name} was sealed and not yet named in the manifest; it is now"));
            segments.add_sealed(facts.into_sealed(name.clone(), first, next, bytes));
        } else {
            recovered.say(stream, format!("{name} holds no row that is whole; its rows are gone"));
        }
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
        let (found, facts, _) = read_whole(disk, segments, &name, first, bound.unwrap_or(u64::MAX))?;
        recovered.damaged += found.damaged;
        recovered.say_of(stream, &name, &found);
        if facts.rows == 0 {
            remove_if_there(disk, &segments.path(&name))?;
            continue;
        }
        // Rows up to the bound that are not there were written and never known to be kept: the next file begins where that did.
        let next = found.next;
        segments.unsealed.push(Unsealed { first, next: Some(next), bytes: found.bytes });
        recovered.closed.push(Closed { stream, first, next });
        recovered.next = recovered.next.max(next);
        if let Some(bound) = bound {
            segments.add_hole(next, bound);
        }
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
    name: &str,
    first: u64,
    next: u64,
) -> io::Result<(Scan, Facts, u64)> {
    let file = disk.open(&segments.path(name))?;
    let bytes = file.length()?;
    let mut facts = Facts::default();
    let found = scan(&*file, Wanted { limit: bytes, first, next, from: 0 }, &mut |batch, _| {
        facts.add(&batch);
        ControlFlow::Continue(())
    })?;
    Ok((found, facts, bytes))
}

impl Recovered {
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
