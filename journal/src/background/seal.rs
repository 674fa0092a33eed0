//! Sealing: an open segment that grows no more becomes an IPC file with large batches, is named in the manifest, and only then
//! removed. And letting the oldest go. Owns the order of these steps, in which a crash between any two loses nothing.
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;

use crate::Stream;
use crate::catalog::{Catalog, Segments};
use crate::decode::facts::Facts;
use crate::decode::frames::Frames;
use crate::decode::scan::{Wanted, read_head, scan};
use crate::disk::{Append, Disk, background, is_temporary, put, remove_if_there, write_all};
use crate::index::Builder;
use crate::progress::Progress;
use crate::reader::Reader;
use crate::segment::{FileName, to_io, write_options};
use crate::segment_writer::Closed;
use crate::settings::Retention;

/// A sealed segment's batches hold about this many rows, …
const BATCH_ROWS: usize = 8192;
/// … or bytes.
const BATCH_BYTES: usize = 2 << 20;
/// A sealed file is synced bit by bit: one sync of all of it would hold up those whom publishers wait for.
const SYNC_BYTES: usize = 4 << 20;
/// Small pieces are gathered up to so much, …
const BUFFER_BYTES: usize = 1 << 20;
/// … what is as large as this is written as it is.
const PIECE_BYTES: usize = 64 << 10;
/// Nothing is copied on a disk that has not so many times its size to spare: the last of it is for those whom publishers wait for.
const FREE_TIMES: u64 = 2;

/// Keeps the snapshots of subjects that rows up to an arrival made, before these rows go.
#[derive(Clone)]
pub struct Keep(pub Arc<KeepSnapshots>);

type KeepSnapshots = dyn Fn(&[String], u64) -> io::Result<()> + Send + Sync;

impl std::fmt::Debug for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keep")
    }
}

/// What sealing works on.
#[derive(Clone, Debug)]
pub(crate) struct Sealer {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) catalog: Catalog,
    pub(crate) progress: Progress,
    pub(crate) keep: Option<Keep>,
}

impl Sealer {
    /// Makes a sealed segment of a closed one while others write.
    pub(crate) fn seal_beside(&self, closed: Closed) -> io::Result<()> {
        let has_room = self
            .find(closed)
            .is_none_or(|(folder, bytes)| self.disk.free_bytes(&folder).is_none_or(|free| free / FREE_TIMES >= bytes));
        if has_room { self.seal(closed) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    /// The folder and the bytes of a closed segment; none where it is sealed or gone.
    fn find(&self, closed: Closed) -> Option<(PathBuf, u64)> {
        let segments = self.catalog.lock(closed.stream);
        let open = segments.unsealed.iter().find(|open| open.first == closed.first)?;
        Some((segments.folder.clone(), open.bytes))
    }

    /// Makes a sealed segment of a closed one. Where that fails, what was written of it is not left on a disk that may be full.
    pub(crate) fn seal(&self, closed: Closed) -> io::Result<()> {
        let Some((folder, limit)) = self.find(closed) else { return Ok(()) };
        let sealed = self.copy(closed, &folder, limit);
        if sealed.is_err() {
            let name = FileName::Sealed { first: closed.first, next: closed.next };
            let _ = remove_if_there(&*self.disk, &background(&folder.join(name.text()))); // else the next try does
        }
        sealed
    }

    fn copy(&self, closed: Closed, folder: &Path, limit: u64) -> io::Result<()> {
        let Closed { stream, first, next, is_ours } = closed;
        let from = folder.join(FileName::Open { first }.text());
        let name = FileName::Sealed { first, next }.text();
        let path = folder.join(&name);
        let background = background(&path);
        let mut rewrite = Rewrite::begin(self.disk.as_ref(), stream, (&from, &background), limit)?;
        let found = rewrite.copy(first, next, !is_ours)?;
        let (facts, index, bytes) = rewrite.end()?;
        self.progress.add_damaged(found.damaged);
        if stream == Stream::Messages {
            self.write_index(stream, first, next, index)?;
        }
        self.disk.rename(&background, &path)?;
        self.disk.sync_folder(folder)?;
        let mut segments = self.catalog.lock(stream);
        segments.add_sealed(facts.into_sealed(name, (first, next), bytes, found.all_missing(next)));
        segments.forget_unsealed(first);
        self.save(segments)?;
        self.disk.remove(&from)
    }

    /// Puts the manifest on the disk, and keeps nobody from the catalog meanwhile: nobody else saves one.
    fn save(&self, segments: MutexGuard<'_, Segments>) -> io::Result<()> {
        let fresh = segments.clone();
        drop(segments);
        fresh.save(self.disk.as_ref())
    }

    fn write_index(&self, stream: Stream, first: u64, next: u64, index: Builder) -> io::Result<()> {
        let path = self.catalog.lock(stream).path(&FileName::Index { first, next }.text());
        put(&*self.disk, &path, &index.encode()?)
    }

    /// Lets the oldest sealed segments go that are past a bound; of messages, those whose snapshots are kept elsewhere.
    pub(crate) fn retain(&self, stream: Stream, retention: Retention, now_ms: u64) -> io::Result<()> {
        let mut gone = self.find_past(stream, retention, now_ms);
        let mut kept = Ok(());
        if stream == Stream::Messages {
            let count = gone.iter().take_while(|(first, _)| {
                kept = self.keep_snapshots(*first);
                kept.is_ok()
            });
            let count = count.count();
            gone.truncate(count);
        }
        self.let_go(stream, gone).and(kept)
    }

    /// A segment that cannot be read at all has no snapshot to keep. While the process has no descriptors or no memory to read it, it stays, and
    /// the next call tries again.
    fn keep_snapshots(&self, first: u64) -> io::Result<()> {
        let Some(keep) = &self.keep else { return Ok(()) };
        let reader = Reader::new(&self.disk, &self.catalog, &self.progress);
        match reader.list_retained(first) {
            Ok((subjects, until)) => keep.0(&subjects, until),
            Err(error) if is_temporary(&error) => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// The oldest segments that are past a bound.
    fn find_past(&self, stream: Stream, retention: Retention, now_ms: u64) -> Vec<(u64, u64)> {
        let segments = self.catalog.lock(stream);
        let mut bytes: u64 = segments.manifest.segments.iter().map(|sealed| sealed.bytes).sum();
        let mut gone = Vec::new();
        for (sealed, newest_ms) in segments.manifest.segments.iter().zip(segments.list_newest_ms(now_ms)) {
            let is_old = retention.age_ms_max > 0 && now_ms.saturating_sub(newest_ms) > retention.age_ms_max;
            let is_much = retention.bytes_max > 0 && bytes > retention.bytes_max;
            if !is_old && !is_much {
                break;
            }
            bytes -= sealed.bytes;
            gone.push((sealed.first, sealed.next));
        }
        gone
    }

    fn let_go(&self, stream: Stream, gone: Vec<(u64, u64)>) -> io::Result<()> {
        let mut segments = self.catalog.lock(stream);
        let Some(&(_, kept_from)) = gone.last() else { return Ok(()) };
        segments.manifest.segments.drain(..gone.len());
        segments.raise_first(kept_from);
        let folder = segments.folder.clone();
        // On a full disk the manifest may need the room that these files take.
        let is_saved = self.save(segments).is_ok();
        for (first, next) in gone {
            for name in [FileName::Sealed { first, next }, FileName::Index { first, next }] {
                remove_if_there(self.disk.as_ref(), &folder.join(name.text()))?;
            }
        }
        if is_saved { Ok(()) } else { self.save(self.catalog.lock(stream)) }
    }
}

pub(crate) fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Copies the rows of one file into another, in large batches.
struct Rewrite {
    stream: Stream,
    file: Box<dyn crate::disk::ReadAt>,
    limit: u64,
    writer: FileWriter<Out>,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    waiting_bytes: usize,
    facts: Facts,
    index: Builder,
}

impl Rewrite {
    fn begin(disk: &dyn Disk, stream: Stream, (from, to): (&Path, &Path), limit: u64) -> io::Result<Self> {
        let file = disk.open(from)?;
        remove_if_there(disk, to)?;
        let schema = read_head(&mut Frames::new(&*file, limit)?, stream)?.schema;
        let out = Out { file: disk.create(to)?, buffer: Vec::new(), unsynced: 0, bytes: 0 };
        let options = write_options().map_err(to_io)?;
        let writer = FileWriter::try_new_with_options(out, &schema, options).map_err(to_io)?;
        let (facts, index) = (Facts::default(), Builder::default());
        Ok(Self { stream, file, limit, writer, waiting: Vec::new(), waiting_rows: 0, waiting_bytes: 0, facts, index })
    }

    fn copy(&mut self, first: u64, next: u64, is_verified: bool) -> io::Result<crate::decode::scan::Scan> {
        let file = std::mem::replace(&mut self.file, Box::new(Nothing));
        let mut failed = Ok(());
        let found = scan(
            &*file,
            Wanted { stream: self.stream, limit: self.limit, first, next, from: 0, is_verified, may_be_torn: false },
            &mut |batch, frame| {
                failed = self.add(batch, frame.body_bytes);
                if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        )?;
        failed?;
        Ok(found)
    }

    fn add(&mut self, batch: RecordBatch, bytes: usize) -> io::Result<()> {
        self.waiting_rows += batch.num_rows();
        self.waiting_bytes += bytes;
        self.waiting.push(batch);
        if self.waiting_rows >= BATCH_ROWS || self.waiting_bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(first) = self.waiting.first() else { return Ok(()) };
        let batch = concat_batches(&first.schema(), &self.waiting).map_err(to_io)?;
        self.facts.add(&batch);
        self.index.add(&batch);
        self.waiting.clear();
        (self.waiting_rows, self.waiting_bytes) = (0, 0);
        self.writer.write(&batch).map_err(to_io)
    }

    fn end(mut self) -> io::Result<(Facts, Builder, u64)> {
        self.flush()?;
        let mut out = self.writer.into_inner().map_err(|error: ArrowError| to_io(error))?;
        out.flush_all()?;
        out.file.sync()?;
        Ok((self.facts, self.index, out.bytes))
    }
}

#[derive(Debug)]
struct Nothing;

impl crate::disk::ReadAt for Nothing {
    fn length(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

/// Bytes on their way to a sealed file.
#[derive(Debug)]
struct Out {
    file: Box<dyn Append>,
    buffer: Vec<u8>,
    unsynced: usize,
    bytes: u64,
}

impl Out {
    fn flush_all(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.put(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        write_all(&mut *self.file, bytes)?;
        self.unsynced += bytes.len();
        if self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            self.file.sync()?;
        }
        Ok(())
    }
}

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if bytes.len() >= PIECE_BYTES {
            self.flush_all()?;
            self.put(bytes)?;
            return Ok(bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush_all()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
