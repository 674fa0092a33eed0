//! Writes one stream to the disk: rows become batches, batches are written to the open segment, and are held until they are synced.
//! Owns what a failure means: the segment ends at the last row that was synced, and everything after it is written again, to a new
//! segment. Invariant: a row that was taken is held or synced; a row keeps its offset, whatever happens to its segment.
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Stream;
use crate::background::preallocate::Preallocator;
use crate::catalog::Catalog;
use crate::disk::{Disk, remove_if_there};
use crate::encode::rows::{Origin, Row};
use crate::encode::table::Table;
use crate::segment::{FileName, OpenSegment, to_io};

/// The size, approximately, at which a batch ends.
const BATCH_BYTES: usize = 4 << 20;

/// A batch that was not synced yet.
#[derive(Debug)]
struct Held {
    frame: Vec<u8>,
    first: u64,
    bytes: usize,
    arrival: u64,
}

/// A segment that is complete and waits to be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) stream: Stream,
    pub(crate) first: u64,
    pub(crate) next: u64,
    /// This process wrote it: its rows can be copied without verifying them.
    pub(crate) is_ours: bool,
}

#[derive(Debug)]
pub(crate) struct SegmentWriter {
    stream: Stream,
    origin: Arc<Origin>,
    disk: Arc<dyn Disk>,
    catalog: Catalog,
    folder: PathBuf,
    table: Table,
    /// The offset of the next row.
    next: u64,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// How many of the held batches are in the open segment.
    written: usize,
    segment: Option<OpenSegment>,
    /// Preallocates the next segment; only for a stream that publishers wait for.
    preallocator: Option<Preallocator>,
    /// Bytes of the segment before the open one.
    bytes_before: u64,
    /// A file without synced rows that has the name of the next segment: it is removed first.
    refuse: Option<PathBuf>,
    /// Segments that were given up after failures; their synced rows stay.
    abandoned: VecDeque<Closed>,
    failure: Option<String>,
    journaled_arrival: u64,
    synced_arrival: u64,
}

impl SegmentWriter {
    pub(crate) fn new(
        stream: Stream,
        origin: &Arc<Origin>,
        disk: &Arc<dyn Disk>,
        catalog: &Catalog,
        next: u64,
    ) -> io::Result<Self> {
        Ok(Self {
            stream,
            origin: Arc::clone(origin),
            disk: Arc::clone(disk),
            catalog: catalog.clone(),
            folder: catalog.lock(stream).folder.clone(),
            table: Table::new(stream).map_err(to_io)?,
            next,
            held: VecDeque::new(),
            held_bytes: 0,
            written: 0,
            segment: None,
            preallocator: None,
            bytes_before: 0,
            refuse: None,
            abandoned: VecDeque::new(),
            failure: None,
            journaled_arrival: 0,
            synced_arrival: 0,
        })
    }

    /// Begins to preallocate segments on demand.
    pub(crate) fn begin_preallocation(&mut self) {
        self.preallocator = Preallocator::begin(&self.disk, &self.folder).ok(); // it only saves time
    }

    /// Removes the preallocated file: no further segment follows.
    pub(crate) fn end_preallocation(&mut self) {
        self.preallocator = None;
    }

    /// A publisher waits for this stream: preallocates its next segment.
    pub(crate) fn ask_preallocation(&self, bytes_max: u64) {
        if let Some(preallocator) = &self.preallocator {
            preallocator.ask(self.bytes_before, bytes_max);
        }
    }

    /// Assigns offsets to rows and makes batches of them.
    pub(crate) fn take<R: Row>(&mut self, rows: &[R]) {
        let mut first = self.next;
        for row in rows {
            row.write(&mut self.table, &self.origin, self.next);
            self.next += 1;
            if self.table.bytes() >= BATCH_BYTES {
                self.hold(first, row.arrival());
                first = self.next;
            }
        }
        if first < self.next {
            self.hold(first, rows.last().and_then(Row::arrival));
        }
    }

    fn hold(&mut self, first: u64, arrival: Option<u64>) {
        let Some(frame) = self.table.take() else {
            debug_assert!(false, "rows that lack a field are an error of ours: they are lost, and the offsets tell");
            return;
        };
        let bytes = frame.len();
        self.held_bytes += bytes;
        self.held.push_back(Held { frame, first, bytes, arrival: arrival.unwrap_or(0) });
    }

    /// Writes what is held and not yet written. Returns how many bytes.
    pub(crate) fn write(&mut self, now_ms: u64) -> u64 {
        if self.failure.is_some() || self.written == self.held.len() {
            return 0;
        }
        match self.try_write(now_ms) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.fail(&error);
                0
            }
        }
    }

    fn try_write(&mut self, now_ms: u64) -> io::Result<u64> {
        self.open(now_ms)?;
        let before = self.segment.as_ref().map_or(0, |segment| segment.bytes);
        while let (Some(held), Some(segment)) = (self.held.get(self.written), &mut self.segment) {
            // A batch that overwrote zeros is synced before the next is written: a power cut can tear only the last batch.
            if segment.ends_in_preallocated() && self.written > 0 {
                segment.sync()?;
                self.settle();
                continue;
            }
            segment.add(&held.frame);
            self.written += 1;
            if segment.is_in_preallocated() || segment.pending_bytes() >= BATCH_BYTES {
                segment.flush()?;
            }
        }
        let Some(segment) = &mut self.segment else { return Ok(0) };
        segment.flush()?;
        self.journaled_arrival = self.held.back().map_or(0, |held| held.arrival).max(self.journaled_arrival);
        self.catalog.lock(self.stream).set_open(segment.first, segment.bytes);
        Ok(segment.bytes - before)
    }

    /// Begins a segment unless one is open.
    fn open(&mut self, now_ms: u64) -> io::Result<()> {
        if self.segment.is_some() {
            return Ok(());
        }
        if let Some(path) = self.refuse.take()
            && let Err(error) = remove_if_there(&*self.disk, &path)
        {
            self.refuse = Some(path);
            return Err(error);
        }
        let first = self.held.get(self.written).map_or(self.next, |held| held.first);
        // If the file is created but an error follows, the next try removes it.
        self.refuse = Some(self.folder.join(FileName::Open { first }.text()));
        let spare = self.preallocator.as_ref().and_then(Preallocator::take);
        let schema = self.table.schema();
        self.segment = Some(OpenSegment::create(&*self.disk, &self.folder, first, schema, spare, now_ms)?);
        self.refuse = None;
        Ok(())
    }

    /// Syncs what was written. True when there was something, and it is on the disk now.
    pub(crate) fn sync(&mut self) -> bool {
        if self.written == 0 || self.failure.is_some() {
            return false;
        }
        let Some(segment) = &mut self.segment else { return false };
        if let Err(error) = segment.sync() {
            self.fail(&error);
            return false;
        }
        self.settle();
        true
    }

    /// Releases the batches that were synced.
    fn settle(&mut self) {
        for held in self.held.drain(..self.written) {
            self.held_bytes -= held.bytes;
            self.synced_arrival = self.synced_arrival.max(held.arrival);
        }
        self.written = 0;
    }

    /// Gives the segment up: its synced rows stay, all others are written again once the disk works.
    fn fail(&mut self, error: &io::Error) {
        self.failure = Some(format!("{}: {error}", self.stream.name()));
        self.written = 0;
        let Some(segment) = self.segment.take() else { return };
        let synced = self.held.front().map_or(self.next, |held| held.first);
        let mut segments = self.catalog.lock(self.stream);
        segments.fall_back(segment.first, synced);
        if synced > segment.first {
            let closed = Closed { stream: self.stream, first: segment.first, next: synced, is_ours: false };
            self.abandoned.push_back(closed);
        } else {
            self.refuse = Some(segment.path);
        }
    }

    /// Tries the disk again; true when everything that is held was synced.
    pub(crate) fn probe(&mut self, now_ms: u64) -> bool {
        if self.failure.is_none() {
            return true;
        }
        let before = self.failure.take();
        if self.held.is_empty() {
            self.catalog.lock(self.stream).is_behind = false; // what was to be written again was dropped
            return true;
        }
        self.write(now_ms);
        let is_well = self.failure.is_none() && self.sync();
        if !is_well && self.failure.is_none() {
            self.failure = before;
        }
        is_well
    }

    /// The next segment to be sealed: one that was given up, else the open one if it is large or old enough, or if `must` is set; all of that has
    /// to be synced. None: there is no other.
    pub(crate) fn rotate(&mut self, now_ms: u64, bytes_max: u64, age_ms_max: u64, must: bool) -> Option<Closed> {
        if let Some(closed) = self.abandoned.pop_front() {
            return Some(closed);
        }
        let segment = self.segment.as_ref()?;
        let is_full = segment.bytes >= bytes_max || self.has_larger_preallocated(segment);
        let is_due = is_full || now_ms.saturating_sub(segment.opened_ms) >= age_ms_max || must;
        if !is_due || self.failure.is_some() {
            return None;
        }
        if self.written > 0 && !self.sync() {
            return None;
        }
        let segment = self.segment.take()?;
        self.bytes_before = segment.bytes;
        let next = self.held.front().map_or(self.next, |held| held.first);
        let closed = Closed { stream: self.stream, first: segment.first, next, is_ours: true };
        self.catalog.lock(self.stream).close_open(closed.first, closed.next);
        Some(closed)
    }

    /// Little is left of the segment's preallocated bytes, and another file is ready.
    fn has_larger_preallocated(&self, segment: &OpenSegment) -> bool {
        segment.lacks_preallocated() && self.preallocator.as_ref().is_some_and(Preallocator::is_ready)
    }

    /// Removes the preallocated file, because this stream or another needs the space now. True if there was one.
    pub(crate) fn give_preallocated_up(&self) -> bool {
        self.preallocator.as_ref().is_some_and(Preallocator::give_up)
    }

    pub(crate) fn stream(&self) -> Stream {
        self.stream
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Rows that were not synced yet.
    pub(crate) fn held_rows(&self) -> u64 {
        self.held.front().map_or(0, |held| self.next - held.first)
    }

    pub(crate) fn has_unsynced(&self) -> bool {
        self.written > 0
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.held.is_empty()
    }

    /// The last arrival that was written, and the last that was synced.
    pub(crate) fn arrivals(&self) -> (u64, u64) {
        (self.journaled_arrival, self.synced_arrival)
    }

    /// When the open segment began (ms).
    pub(crate) fn opened_ms(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.opened_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::runs::RunRow;

    #[test]
    fn each_segment_that_was_given_up_is_sealed() {
        let folder = std::env::temp_dir().join(format!("godwit-given-up-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // of a test that failed
        let catalog = Catalog::new(&folder, "n");
        std::fs::create_dir_all(&catalog.lock(Stream::Runs).folder).unwrap();
        let (origin, disk): (Arc<Origin>, Arc<dyn Disk>) =
            (Arc::new(Origin { node: "n".to_owned(), run: String::new() }), Arc::new(RealDisk));
        let mut writer = SegmentWriter::new(Stream::Runs, &origin, &disk, &catalog, 0).unwrap();
        let mut expected = Vec::new();
        for first in 0..2 {
            writer.take(&[RunRow::new("began", 1, 1)]);
            writer.write(1);
            assert!(writer.sync());
            writer.fail(&io::Error::other("a disk that fails after each sync"));
            writer.failure = None;
            expected.push((first, first + 1));
        }
        let closed = std::iter::from_fn(|| writer.rotate(1, u64::MAX, u64::MAX, false));
        assert_eq!(closed.map(|closed| (closed.first, closed.next)).collect::<Vec<_>>(), expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
