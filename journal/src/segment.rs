//! A segment's file: its name, and writing the open one. Owns how batches' frames follow each other there; whether they
//! are synced is the segment writer's to say.
use std::io;
use std::path::{Path, PathBuf};

use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::ArrowError;

use crate::background::preallocate::Spare;
use crate::disk::{Append, Disk, Overwrite, write_all, write_all_at};

/// Offsets stand in a signed column; nothing larger is believed, so that there is always room to go on.
pub(crate) const OFFSET_MAX: u64 = i64::MAX as u64;

/// What begins a frame of an IPC stream: a mark and a length.
const MARK_BYTES: usize = 8;

/// What a file in a stream's folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileName {
    /// `FIRST-NEXT.arrow`.
    Sealed { first: u64, next: u64 },
    /// `FIRST.arrows`.
    Open { first: u64 },
    /// `FIRST-NEXT.index`.
    Index { first: u64, next: u64 },
}

impl FileName {
    /// None where it is no segment's.
    pub fn parse(name: &str) -> Option<Self> {
        let (stem, ending) = name.split_once('.')?;
        match (stem.split_once('-'), ending) {
            (None, "arrows") => Some(Self::Open { first: parse_offset(stem)? }),
            (Some((first, next)), _) => {
                let (first, next) = (parse_offset(first)?, parse_offset(next)?);
                match ending {
                    "arrow" if first < next => Some(Self::Sealed { first, next }),
                    "index" if first < next => Some(Self::Index { first, next }),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub fn text(self) -> String {
        match self {
            Self::Sealed { first, next } => format!("{first:020}-{next:020}.arrow"),
            Self::Open { first } => format!("{first:020}.arrows"),
            Self::Index { first, next } => format!("{first:020}-{next:020}.index"),
        }
    }
}

fn parse_offset(text: &str) -> Option<u64> {
    let is_offset = text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|offset| is_offset && *offset <= OFFSET_MAX)
}

/// How batches are laid down: buffers begin at multiples of eight bytes, so that a batch of one row stays small.
pub(crate) fn write_options() -> Result<IpcWriteOptions, ArrowError> {
    IpcWriteOptions::try_new(8, false, MetadataVersion::V5)
}

pub(crate) fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

/// The segment that grows.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub(crate) first: u64,
    pub(crate) path: PathBuf,
    /// Bytes written, all of them whole batches.
    pub(crate) bytes: u64,
    pub(crate) opened_ms: u64,
    /// Where the last was written.
    last_at: u64,
    sink: Sink,
    /// Frames that are not yet written.
    pending: Vec<u8>,
}

/// Where a segment's bytes go.
#[derive(Debug)]
enum Sink {
    Growing(Box<dyn Append>),
    /// So many zeros of it were on the disk before anything was written over them.
    Preallocated(Box<dyn Overwrite>, u64),
}

impl OpenSegment {
    /// A new file with the schema, preallocated if there is a spare file; its name survives a power cut.
    pub(crate) fn create(
        disk: &dyn Disk,
        folder: &Path,
        first: u64,
        schema: &[u8],
        spare: Option<Spare>,
        now_ms: u64,
    ) -> io::Result<Self> {
        let path = folder.join(FileName::Open { first }.text());
        // Without the preallocated file only time is lost.
        let spare = spare.filter(|spare| disk.rename(&spare.path, &path).is_ok());
        let sink = match spare {
            Some(spare) => Sink::Preallocated(disk.open_over(&path)?, spare.bytes),
            None => Sink::Growing(disk.create(&path)?),
        };
        let mut segment = Self { first, path, bytes: 0, opened_ms: now_ms, last_at: 0, sink, pending: schema.to_vec() };
        segment.flush()?;
        if segment.is_in_preallocated() {
            segment.sync()?;
        }
        disk.sync_folder(folder)?;
        Ok(segment)
    }

    /// What is written next overwrites zeros.
    pub(crate) fn is_in_preallocated(&self) -> bool {
        matches!(self.sink, Sink::Preallocated(_, bytes) if self.bytes < bytes)
    }

    /// What was written last began over zeros: until a sync it may be on the disk in part, and in any order.
    pub(crate) fn ends_in_preallocated(&self) -> bool {
        matches!(self.sink, Sink::Preallocated(_, bytes) if self.last_at < bytes)
    }

    /// Little is left of its preallocated bytes, or it never had any.
    pub(crate) fn lacks_preallocated(&self) -> bool {
        match self.sink {
            Sink::Growing(_) => true,
            Sink::Preallocated(_, bytes) => self.bytes >= bytes - bytes / 16,
        }
    }

    /// Takes a batch's frame; `flush` writes what was taken.
    pub(crate) fn add(&mut self, frame: &[u8]) {
        self.pending.extend_from_slice(frame);
    }

    /// What was taken and is not yet written.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.last_at = self.bytes;
        match &mut self.sink {
            Sink::Growing(file) => write_all(&mut **file, &self.pending)?,
            Sink::Preallocated(file, _) => write_over(&mut **file, self.bytes, &self.pending)?,
        }
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Growing(file) => file.sync(),
            Sink::Preallocated(file, _) => file.sync(),
        }
    }
}

/// A frame's mark comes last: up to then a reader finds zeros there, which end a stream, and never half a batch.
fn write_over(file: &mut dyn Overwrite, place: u64, frames: &[u8]) -> io::Result<()> {
    let (mark, rest) = frames.split_at(frames.len().min(MARK_BYTES));
    write_all_at(file, place + mark.len() as u64, rest)?;
    write_all_at(file, place, mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_says_which_offsets_are_in_it() {
        for name in [
            FileName::Open { first: 0 },
            FileName::Sealed { first: 7, next: OFFSET_MAX },
            FileName::Index { first: 7, next: 8 },
        ] {
            assert_eq!(FileName::parse(&name.text()), Some(name));
        }
        assert_eq!(FileName::Open { first: 42 }.text(), "00000000000000000042.arrows");
        for other in ["manifest.json", "42.arrows", "00000000000000000042.arrow", "0000000000000000004x.arrows", "a-b"]
        {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
        assert_eq!(FileName::parse("99999999999999999999.arrows"), None);
        assert_eq!(FileName::parse("00000000000000000009-00000000000000000009.arrow"), None);
    }
}
