//! Which segments there are: of each stream the sealed ones with what they span, the open ones, what is gone. Shared by the writer, the
//! sealer and readers; kept in the stream's `manifest.json`, which is written beside its place and renamed into it.
//! Invariant: a file that the manifest names is complete, and one that is about to be removed is not named any more.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::Stream;
use crate::disk::{Disk, put, read_range};
use crate::segment::{FileName, OFFSET_MAX};

const FORMAT: u32 = 2;
pub(crate) const NAME: &str = "manifest.json";

/// One sealed segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    pub file: String,
    pub first: u64,
    pub next: u64,
    pub rows: u64,
    pub bytes: u64,
    /// All of its rows are of one run.
    pub run: String,
    /// Microseconds since 1970 UTC.
    pub time_min: i64,
    pub time_max: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_max: Option<u64>,
    /// Offsets of it that are gone, `[first, next]` each: damaged, or never known to have been written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<(u64, u64)>,
}

/// What stands in `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub stream: String,
    pub node: String,
    /// Rows before this offset are no longer kept.
    pub first: u64,
    /// The offset after the last sealed row.
    pub next: u64,
    /// Oldest first; each begins where the one before it ends.
    pub segments: Vec<Sealed>,
}

impl Manifest {
    /// Whether what it says can be so: of our format, and each file named after its offsets, behind the one before.
    fn is_sound(&self) -> bool {
        let is_named = |sealed: &Sealed| {
            let span = FileName::Sealed { first: sealed.first, next: sealed.next };
            FileName::parse(&sealed.file) == Some(span)
        };
        let ends = self.segments.windows(2).all(|two| two[0].next <= two[1].first);
        let is_bounded = self.first <= self.next && self.next <= OFFSET_MAX;
        self.format == FORMAT && is_bounded && ends && self.segments.iter().all(is_named)
    }
}

/// A segment that is no IPC file yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsealed {
    pub(crate) first: u64,
    /// Rows at or past it do not count; none: it still grows.
    pub(crate) next: Option<u64>,
    /// Bytes of whole batches.
    pub(crate) bytes: u64,
}

/// The segments of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    pub(crate) folder: PathBuf,
    pub(crate) manifest: Manifest,
    /// Oldest first.
    pub(crate) unsealed: Vec<Unsealed>,
    /// Rows that could be read must be written again, because the disk refused to sync them: no segment has them meanwhile.
    pub(crate) is_behind: bool,
    /// How often that began.
    pub(crate) setbacks: u64,
}

/// Those of all streams; cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Catalog(Arc<Vec<Mutex<Segments>>>);

impl Catalog {
    pub(crate) fn new(directory: &Path, node: &str) -> Self {
        let make = |stream: Stream| Mutex::new(Segments::new(directory, stream, node));
        Self(Arc::new(Stream::ALL.into_iter().map(make).collect()))
    }

    pub(crate) fn lock(&self, stream: Stream) -> MutexGuard<'_, Segments> {
        self.0[stream as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segments {
    fn new(directory: &Path, stream: Stream, node: &str) -> Self {
        let manifest = Manifest {
            format: FORMAT,
            stream: stream.name().to_owned(),
            node: node.to_owned(),
            first: 0,
            next: 0,
            segments: Vec::new(),
        };
        Self { folder: directory.join(stream.name()), manifest, unsealed: Vec::new(), is_behind: false, setbacks: 0 }
    }

    /// The manifest on the disk, or None if it is missing or damaged.
    pub(crate) fn read_manifest(&self, disk: &dyn Disk) -> io::Result<Option<Manifest>> {
        let file = match disk.open(&self.folder.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let bytes = read_range(&*file, 0, usize::try_from(file.length()?).unwrap_or(usize::MAX))?;
        let manifest: Option<Manifest> = serde_json::from_slice(&bytes).ok();
        Ok(manifest.filter(|manifest| manifest.stream == self.manifest.stream && manifest.is_sound()))
    }

    /// There is one on the disk, and it cannot be read: the next start makes it anew of the segments.
    pub(crate) fn has_bad_manifest(&self, disk: &dyn Disk) -> bool {
        disk.open(&self.folder.join(NAME)).is_ok() && !matches!(self.read_manifest(disk), Ok(Some(_)))
    }

    /// Refuses a manifest of another format, which must not be taken for a damaged one and rebuilt.
    pub(crate) fn check_format(&self, disk: &dyn Disk) -> io::Result<()> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let path = self.folder.join(NAME);
        let file = match disk.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let bytes = read_range(&*file, 0, usize::try_from(file.length()?).unwrap_or(usize::MAX))?;
        match serde_json::from_slice::<Format>(&bytes) {
            Ok(Format { format }) if format != FORMAT => {
                let why = format!("{} has format {format}: this version reads only format {FORMAT}", path.display());
                Err(io::Error::new(io::ErrorKind::InvalidData, why))
            }
            _ => Ok(()),
        }
    }

    /// Puts the manifest on the disk.
    pub(crate) fn save(&self, disk: &dyn Disk) -> io::Result<()> {
        let mut text = serde_json::to_vec(&self.manifest)?;
        text.push(b'\n');
        put(disk, &self.folder.join(NAME), &text)?;
        disk.sync_folder(&self.folder)
    }

    /// A sealed segment, in its place.
    pub(crate) fn add_sealed(&mut self, sealed: Sealed) {
        self.manifest.next = self.manifest.next.max(sealed.next);
        let place = self.manifest.segments.partition_point(|other| other.first < sealed.first);
        self.manifest.segments.insert(place, sealed);
    }

    /// Rows before this offset are no longer kept.
    pub(crate) fn raise_first(&mut self, first: u64) {
        self.manifest.first = self.manifest.first.max(first);
        self.manifest.next = self.manifest.next.max(first);
    }

    /// When the newest row of each sealed segment was written (ms). A time that is yet to come is of a clock that was wrong: the segment is then at
    /// least as old as the next one.
    pub(crate) fn list_newest_ms(&self, now_ms: u64) -> Vec<u64> {
        let mut next_ms = now_ms;
        let mut newest: Vec<u64> = Vec::with_capacity(self.manifest.segments.len());
        for sealed in self.manifest.segments.iter().rev() {
            let own_ms = u64::try_from(sealed.time_max / 1000).unwrap_or(0);
            if own_ms <= now_ms {
                next_ms = own_ms;
            }
            newest.push(next_ms);
        }
        newest.reverse();
        newest
    }

    /// The segment that now has this many bytes of whole batches.
    pub(crate) fn set_open(&mut self, first: u64, bytes: u64) {
        self.is_behind = false;
        match self.unsealed.iter_mut().find(|open| open.first == first) {
            Some(open) => open.bytes = bytes,
            None => self.unsealed.push(Unsealed { first, next: None, bytes }),
        }
    }

    /// It grows no more: rows from `next` on do not count.
    pub(crate) fn close_open(&mut self, first: u64, next: u64) {
        if let Some(open) = self.unsealed.iter_mut().find(|open| open.first == first) {
            open.next = Some(next);
        }
    }

    /// The written rows from the end of a segment on must be written again: its synced rows end before `next`.
    pub(crate) fn fall_back(&mut self, first: u64, next: u64) {
        (self.is_behind, self.setbacks) = (true, self.setbacks + 1);
        if next > first { self.close_open(first, next) } else { self.forget_unsealed(first) }
    }

    pub(crate) fn forget_unsealed(&mut self, first: u64) {
        self.unsealed.retain(|open| open.first != first);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
