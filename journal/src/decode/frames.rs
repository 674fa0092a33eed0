//! An Arrow IPC stream or file as a run of frames, read from a disk that may have torn or bent it. Owns finding the frames, and finding
//! the next good one behind a bad one; what is in a batch is told by `batch`. Nothing here trusts a length before it was held against what is there.
use std::io;

use arrow_buffer::Buffer;
use arrow_ipc::{MessageHeader, root_as_message};

use crate::disk::{ReadAt, read_range};

/// What an IPC file begins with; its frames are those of a stream behind it.
pub(crate) const FILE_MAGIC: &[u8] = b"ARROW1\0\0";
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes in front of a frame's description.
const PREFIX: usize = 8;
/// A description of our batches is some 2 kB; nothing larger is believed.
const DESCRIPTION_MAX: usize = 1 << 20;
/// Preallocated zeros are skipped in such steps.
const ZEROS: [u8; 4096] = [0; 4096];
/// How much is read at once by who reads on, …
const WINDOW: usize = 1 << 20;
/// … and by who leaves something out.
const GLANCE: usize = 4 << 10;

/// One frame: a description and a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) at: u64,
    /// Prefix and description.
    pub(crate) head_bytes: usize,
    pub(crate) body_bytes: usize,
    pub(crate) rows: u64,
    pub(crate) is_schema: bool,
}

impl Frame {
    pub(crate) fn end(&self) -> u64 {
        self.at + (self.head_bytes + self.body_bytes) as u64
    }
}

/// What stands at a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Frame(Frame),
    /// The mark of the end, or the end itself.
    End,
    /// Something that is no whole frame.
    Broken,
}

/// How to go on from a place.
#[derive(Debug)]
pub(crate) enum Next {
    Frame(Frame),
    /// The first behind something that is no whole frame.
    Behind(Frame),
    /// There is none any more: where what is no frame ends.
    End(u64),
}

/// What follows an offset where there is no frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trailing {
    /// The next frame.
    pub(crate) frame: Option<Frame>,
    /// If there is no frame: where the last byte that is not zero ends. Zeros are preallocated.
    pub(crate) end: u64,
}

/// Reads frames of one file up to a limit.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    file: &'a dyn ReadAt,
    limit: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(file: &'a dyn ReadAt, limit: u64) -> io::Result<Self> {
        let limit = limit.min(file.length()?);
        Ok(Self { file, limit, window: Vec::new(), window_at: 0 })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Where the first frame is.
    pub(crate) fn start(&mut self) -> io::Result<u64> {
        let magic = FILE_MAGIC.len();
        let is_file = self.bytes(0, magic)? == Some(FILE_MAGIC);
        // Should the mark be bent, the frame behind it tells.
        let has_frame = |found: Found| matches!(found, Found::Frame(_));
        let is_bent = !is_file && !has_frame(self.find(0)?) && has_frame(self.find(magic as u64)?);
        Ok(if is_file || is_bent { magic as u64 } else { 0 })
    }

    /// What stands at `at`.
    pub(crate) fn find(&mut self, at: u64) -> io::Result<Found> {
        if at >= self.limit {
            return Ok(Found::End);
        }
        let Some(prefix) = self.bytes(at, PREFIX)? else { return Ok(Found::Broken) };
        let (mark, length) = prefix.split_at(4);
        if mark != CONTINUATION {
            return Ok(Found::Broken);
        }
        let length = usize::try_from(i32::from_le_bytes([length[0], length[1], length[2], length[3]]));
        let Ok(length) = length else { return Ok(Found::Broken) };
        if length == 0 {
            return Ok(Found::End);
        }
        if length > DESCRIPTION_MAX {
            return Ok(Found::Broken);
        }
        let limit = self.limit;
        let Some(head) = self.bytes(at, PREFIX + length)? else { return Ok(Found::Broken) };
        let Some(described) = head.get(PREFIX..).and_then(describe) else { return Ok(Found::Broken) };
        let Described { rows, body_bytes, is_schema } = described;
        let frame = Frame { at, head_bytes: PREFIX + length, body_bytes, rows, is_schema };
        let room = limit.saturating_sub(at);
        let fits = (frame.head_bytes as u64).checked_add(body_bytes as u64).is_some_and(|bytes| bytes <= room);
        Ok(if fits { Found::Frame(frame) } else { Found::Broken })
    }

    /// The frame at `at`, or the next behind what is broken there.
    pub(crate) fn find_next(&mut self, at: u64) -> io::Result<Next> {
        let found = match self.find(at)? {
            Found::Frame(frame) => return Ok(Next::Frame(frame)),
            found => found,
        };
        let behind = self.find_trailing(at)?;
        let Some(frame) = behind.frame else {
            return Ok(Next::End(if found == Found::Broken { behind.end } else { at }));
        };
        // A node may have written one here since: what was read of the file before that is out of date.
        (self.window_at, self.window) = (at, Vec::new());
        Ok(match self.find(at)? {
            Found::Frame(written) => Next::Frame(written),
            _ => Next::Behind(frame),
        })
    }

    /// Looks past an offset where there is no frame; frames begin at multiples of eight bytes.
    pub(crate) fn find_trailing(&mut self, at: u64) -> io::Result<Trailing> {
        let (mut place, mut end) = (at, at);
        while place < self.limit {
            if place.is_multiple_of(8) && self.bytes(place, ZEROS.len())?.is_some_and(|bytes| bytes == ZEROS) {
                place += ZEROS.len() as u64;
                continue;
            }
            let step = (8 - place % 8).min(self.limit - place);
            let Some(word) = self.bytes(place, step as usize)? else { break };
            let last = word.iter().rposition(|byte| *byte != 0);
            let has_mark = word.starts_with(&CONTINUATION);
            end = last.map_or(end, |last| place + last as u64 + 1);
            if place > at
                && has_mark
                && let Found::Frame(frame) = self.find(place)?
            {
                return Ok(Trailing { frame: Some(frame), end });
            }
            place += step;
        }
        Ok(Trailing { frame: None, end })
    }

    /// Whether no frame is behind this one, and where the last byte that is no zero ends.
    pub(crate) fn look_past(&mut self, frame: &Frame) -> io::Result<(bool, u64)> {
        if matches!(self.find(frame.end())?, Found::Frame(_)) {
            return Ok((false, frame.end()));
        }
        let behind = self.find_trailing(frame.end())?;
        Ok((behind.frame.is_none(), behind.end))
    }

    /// Where the last byte of this range ends that is not zero; its beginning where all are.
    pub(crate) fn find_written_end(&mut self, at: u64, end: u64) -> io::Result<u64> {
        let (mut place, mut found) = (at, at);
        while place < end {
            let step = (end - place).min(ZEROS.len() as u64);
            let Some(bytes) = self.bytes(place, step as usize)? else { break };
            found = bytes.iter().rposition(|byte| *byte != 0).map_or(found, |last| place + last as u64 + 1);
            place += step;
        }
        Ok(found)
    }

    /// Description and body of a frame.
    pub(crate) fn read(&mut self, frame: &Frame) -> io::Result<Option<Buffer>> {
        Ok(self.bytes(frame.at, frame.head_bytes + frame.body_bytes)?.map(Buffer::from))
    }

    /// Bytes of the file; none where it has not so many.
    fn bytes(&mut self, at: u64, count: usize) -> io::Result<Option<&[u8]>> {
        let end = at.checked_add(count as u64).filter(|end| *end <= self.limit);
        let Some(end) = end else { return Ok(None) };
        if at < self.window_at || end > self.window_at + self.window.len() as u64 {
            let room = usize::try_from(self.limit - at).unwrap_or(usize::MAX);
            let goes_on = at <= self.window_at + self.window.len() as u64;
            let wanted = count.max(if goes_on { WINDOW } else { GLANCE });
            self.window = read_range(self.file, at, wanted.min(room))?;
            self.window_at = at;
        }
        let start = (at - self.window_at) as usize;
        Ok(self.window.get(start..start + count))
    }
}

struct Described {
    rows: u64,
    body_bytes: usize,
    is_schema: bool,
}

/// None where it is neither schema nor batch.
fn describe(bytes: &[u8]) -> Option<Described> {
    let message = root_as_message(bytes).ok()?;
    let is_schema = message.header_type() == MessageHeader::Schema;
    let rows = match message.header_as_record_batch() {
        Some(batch) => u64::try_from(batch.length()).ok()?,
        None if is_schema => 0,
        None => return None,
    };
    Some(Described { rows, body_bytes: usize::try_from(message.bodyLength()).ok()?, is_schema })
}
