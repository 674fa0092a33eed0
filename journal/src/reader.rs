//! Reading the journal back, while it is written or after a restart: rows by offset, messages by subject or by arrival, and all that a
//! node needs to begin with. Owns which files are read for a question; a row that does not fit its checksum is never served.
mod last;
mod load;
mod names;
mod page;

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;

use crate::Stream;
use crate::catalog::Catalog;
use crate::decode::facts::parse_run;
use crate::decode::scan::{Wanted, scan};
use crate::disk::{Disk, ReadAt, read_range};
use crate::index::{Entry, Index};
use crate::progress::Progress;
use crate::segment::FileName;

pub use load::{Budget, Loaded};
pub use page::{Found, Page, PageLimits};

/// Reads one journal; cloning shares it.
#[derive(Clone, Debug)]
pub struct Reader {
    disk: Arc<dyn Disk>,
    catalog: Catalog,
    progress: Progress,
    /// Damage that was counted, by the stream and the first offset of its file.
    damaged: Arc<Mutex<HashMap<(Stream, u64), u64>>>,
    names: Arc<names::Names>,
}

/// One file that has rows.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) stream: Stream,
    pub(crate) path: PathBuf,
    pub(crate) first: u64,
    /// Rows at or past it do not count.
    pub(crate) next: u64,
    /// Bytes of whole batches.
    pub(crate) bytes: u64,
    pub(crate) run: Option<u64>,
    pub(crate) rows: u64,
    pub(crate) arrivals: Option<(u64, u64)>,
    pub(crate) newest_ms: Option<u64>,
    pub(crate) is_sealed: bool,
}

impl Reader {
    pub(crate) fn new(disk: &Arc<dyn Disk>, catalog: &Catalog, progress: &Progress) -> Self {
        let (damaged, names) = (Arc::default(), Arc::default());
        Self { disk: Arc::clone(disk), catalog: catalog.clone(), progress: progress.clone(), damaged, names }
    }

    /// The offset from which on rows of a stream are kept, and the one after the last that is written.
    pub fn span(&self, stream: Stream) -> (u64, u64) {
        let sources = self.sources(stream);
        let first = self.catalog.lock(stream).manifest.first;
        let next = sources.last().map_or(first, |source| self.end_of(source));
        (first, next)
    }

    /// The offset from which on rows of a stream are kept.
    pub fn first(&self, stream: Stream) -> u64 {
        self.catalog.lock(stream).manifest.first
    }

    /// Offsets that are gone, by damage or with a run that did not end in order.
    pub fn missing(&self, stream: Stream) -> Vec<(u64, u64)> {
        let segments = self.catalog.lock(stream);
        segments.manifest.segments.iter().flat_map(|sealed| sealed.missing.clone()).collect()
    }

    /// The first arrival that may be kept; past all of them where no message is.
    pub fn first_arrival(&self) -> u64 {
        let sources = self.sources(Stream::Messages);
        let with_rows = sources.iter().find(|source| source.rows > 0 || !source.is_sealed);
        with_rows.map_or(u64::MAX, |source| source.arrivals.map_or(0, |(first, _)| first))
    }

    /// The last arrival of a run that the journal holds.
    pub fn last_arrival_of(&self, run: u64) -> Option<u64> {
        let mut last = None;
        for source in self.sources(Stream::Messages).iter().rev() {
            if source.run.is_some_and(|of| of != run) {
                if last.is_some() {
                    break;
                }
                continue;
            }
            let arrival = match source.arrivals {
                Some((_, max)) => Some(max),
                None => self.arrivals_of(source, run),
            };
            last = last.max(arrival);
        }
        last
    }

    /// The files with rows of a stream, oldest first.
    pub(crate) fn sources(&self, stream: Stream) -> Vec<Source> {
        let segments = self.catalog.lock(stream);
        let sealed = segments.manifest.segments.iter().map(|sealed| Source {
            stream,
            path: segments.path(&sealed.file),
            first: sealed.first,
            next: sealed.next,
            bytes: u64::MAX,
            run: Some(parse_run(&sealed.run)),
            rows: sealed.rows,
            arrivals: sealed.arrival_min.zip(sealed.arrival_max),
            // One without rows is as old as none: what a power cut left of a segment that had just begun.
            newest_ms: u64::try_from(sealed.time_max / 1000).ok().filter(|_| sealed.rows > 0),
            is_sealed: true,
        });
        let unsealed = segments.unsealed.iter().map(|open| Source {
            stream,
            path: segments.path(&FileName::Open { first: open.first }.text()),
            first: open.first,
            next: open.next.unwrap_or(u64::MAX),
            bytes: open.bytes,
            run: None,
            rows: 0,
            arrivals: None,
            newest_ms: None,
            is_sealed: false,
        });
        let mut sources: Vec<Source> = sealed.chain(unsealed).collect();
        sources.sort_by_key(|source| source.first);
        for place in 1..sources.len() {
            let bound = sources.get(place).map_or(u64::MAX, |after| after.first);
            if let Some(before) = sources.get_mut(place - 1) {
                before.next = before.next.min(bound);
            }
        }
        sources
    }

    /// Every batch of good rows of offsets `first` to `next`, in order, cut to those.
    pub(crate) fn each_batch(
        &self,
        stream: Stream,
        first: u64,
        next: u64,
        each: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> io::Result<()> {
        for source in self.sources(stream) {
            if source.next <= first || source.first >= next {
                continue;
            }
            if self.read_source(&source, first, next, each)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The same of one file. A file that has been let go meanwhile has no rows.
    pub(crate) fn read_source(
        &self,
        source: &Source,
        first: u64,
        next: u64,
        each: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let Some((file, limit)) = self.open(source)? else { return Ok(ControlFlow::Continue(())) };
        let mut flow = ControlFlow::Continue(());
        let Source { stream, first: begin, next: end, .. } = *source;
        let found = scan(
            &*file,
            Wanted { stream, limit, first: begin, next: end, from: first, is_verified: true, may_be_torn: false },
            &mut |batch, _| {
                if let Some(batch) = page::cut(batch, first, next) {
                    flow = each(batch);
                }
                flow
            },
        )?;
        let is_short = flow.is_continue() && first <= begin && source.is_sealed && found.rows < source.rows;
        let damaged = if is_short { source.rows - found.rows } else { found.damaged };
        self.count_damage((stream, begin), damaged);
        Ok(flow)
    }

    /// What is read again is not damaged again.
    fn count_damage(&self, file: (Stream, u64), damaged: u64) {
        if damaged > 0 {
            let mut counted = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
            let known = counted.entry(file).or_default();
            self.progress.add_damaged(damaged.saturating_sub(*known));
            *known = damaged.max(*known);
        }
    }

    /// The file of a source and how much of it counts; none where it has been let go.
    fn open(&self, source: &Source) -> io::Result<Option<(Box<dyn ReadAt>, u64)>> {
        let opened = match self.disk.open(&source.path) {
            // It was sealed since we looked.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !source.is_sealed => {
                match self.sealed_path(source) {
                    Some(path) => self.disk.open(&path).map(|file| (file, u64::MAX)),
                    None => Err(error),
                }
            }
            opened => opened.map(|file| (file, source.bytes)),
        };
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The file of a segment that was sealed after it was listed.
    fn sealed_path(&self, source: &Source) -> Option<PathBuf> {
        let segments = self.catalog.lock(source.stream);
        let sealed = segments.manifest.segments.iter().find(|sealed| sealed.first == source.first)?;
        Some(segments.path(&sealed.file))
    }

    /// Where a subject is in a segment of messages; none where the rows must be looked at.
    pub(crate) fn entries_of(&self, source: &Source, subject: &str) -> Option<Vec<Entry>> {
        if !source.is_sealed {
            return None;
        }
        if self.names.lacks(source.first, subject) {
            return Some(Vec::new());
        }
        let index = self.index_of(source)?;
        self.names.add(source.first, index.len(), index.subjects(), self.first(source.stream));
        Some(index.find(subject))
    }

    /// The index of a sealed segment of messages, where it can be read.
    pub(crate) fn index_of(&self, source: &Source) -> Option<Index> {
        let name = FileName::Index { first: source.first, next: source.next }.text();
        let file = self.disk.open(&source.path.with_file_name(name)).ok()?;
        let bytes = read_range(&*file, 0, usize::try_from(file.length().ok()?).ok()?).ok()?;
        Index::decode(bytes)
    }

    fn end_of(&self, source: &Source) -> u64 {
        if source.next != u64::MAX {
            return source.next;
        }
        let mut next = source.first;
        let scanned = self.read_source(source, 0, u64::MAX, &mut |batch| {
            let last = crate::decode::batch::offsets(&batch).and_then(|offsets| offsets.last().copied());
            next = last.map_or(next, |last| last as u64 + 1);
            ControlFlow::Continue(())
        });
        scanned.map_or(source.first, |_| next)
    }

    fn arrivals_of(&self, source: &Source, run: u64) -> Option<u64> {
        let mut facts = crate::decode::facts::Facts::default();
        let scanned = self.read_source(source, 0, u64::MAX, &mut |batch| {
            facts.add(&batch);
            ControlFlow::Continue(())
        });
        let _ = scanned.ok()?;
        facts.arrivals.filter(|_| parse_run(&facts.run) == run).map(|arrivals| arrivals.1)
    }
}
