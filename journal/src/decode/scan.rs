//! Every good row of a segment's file, in order, and what was found wrong on the way. Owns what counts: whole batches, rows that fit their
//! checksum, offsets that rise within the file's bounds.
use std::io;
use std::ops::ControlFlow;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;

use crate::decode::batch::{decode, decode_schema, find_damage, offsets};
use crate::decode::frames::{Found, Frame, Frames};
use crate::disk::ReadAt;

/// What a scan met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Good rows.
    pub(crate) rows: u64,
    /// The offset after the last good row.
    pub(crate) next: u64,
    /// Where the last whole batch ends.
    pub(crate) bytes: u64,
    /// Bytes behind it that make no batch.
    pub(crate) torn_bytes: u64,
    /// Rows whose checksum does not fit, and batches that are broken with good ones behind them.
    pub(crate) damaged: u64,
    /// Offsets between good rows that are not there, `[first, next)` each.
    pub(crate) holes: Vec<(u64, u64)>,
}

/// Which rows of a file are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Bytes of the file that count.
    pub(crate) limit: u64,
    /// The offset of its first row, and the one from which on rows do not count.
    pub(crate) first: u64,
    pub(crate) next: u64,
    /// Batches that end before this offset need not be looked at.
    pub(crate) from: u64,
}

/// Calls `each` with every batch of good rows; a batch is cut to those that count.
pub(crate) fn scan(
    file: &dyn ReadAt,
    wanted: Wanted,
    each: &mut dyn FnMut(RecordBatch, &Frame) -> ControlFlow<()>,
) -> io::Result<Scan> {
    let Wanted { limit, first, next, from } = wanted;
    let mut frames = Frames::new(file, limit)?;
    let mut scan = Scan { next: first, ..Scan::default() };
    let mut at = frames.start()?;
    let Some((schema, begin)) = read_schema(&mut frames, at)? else {
        scan.torn_bytes = frames.limit() - at;
        return Ok(scan);
    };
    at = begin;
    scan.bytes = at;
    let mut is_torn = false;
    while at < frames.limit() {
        let frame = match frames.find(at)? {
            Found::Frame(frame) => frame,
            found => match frames.find_behind(at)? {
                Some(frame) => {
                    scan.damaged += 1;
                    frame
                }
                None => {
                    is_torn = found == Found::Broken;
                    break;
                }
            },
        };
        at = frame.end();
        // Offsets only rise, so the batch ends no later than this if it is where it should be, and is not wanted.
        if scan.next.saturating_add(frame.rows) <= from && !frame.is_schema {
            scan.next += frame.rows;
            scan.bytes = at;
            continue;
        }
        let batch = match frames.read(&frame)? {
            Some(bytes) if !frame.is_schema => decode(&schema, &bytes, &frame),
            _ => None,
        };
        let Some(batch) = batch else {
            scan.damaged += 1;
            continue;
        };
        let Some(batch) = scan.judge(&batch, next) else { continue };
        scan.bytes = at;
        if each(batch, &frame).is_break() {
            return Ok(scan);
        }
    }
    if is_torn || at > scan.bytes {
        scan.torn_bytes = frames.limit() - scan.bytes;
    }
    Ok(scan)
}

/// The schema in front, and where the batches begin.
pub(crate) fn read_schema(frames: &mut Frames<'_>, at: u64) -> io::Result<Option<(SchemaRef, u64)>> {
    let Found::Frame(frame) = frames.find(at)? else { return Ok(None) };
    let Some(bytes) = frames.read(&frame)? else { return Ok(None) };
    Ok(decode_schema(&bytes).map(|schema| (schema, frame.end())))
}

impl Scan {
    /// The rows of a batch that count; none where none does.
    fn judge(&mut self, batch: &RecordBatch, next: u64) -> Option<RecordBatch> {
        let damage = find_damage(batch);
        let offsets = offsets(batch)?;
        let mut expected = self.next;
        let mut holes = Vec::new();
        let mut damaged = 0;
        let counts: Vec<bool> = offsets
            .iter()
            .enumerate()
            .map(|(row, offset)| {
                if damage.as_ref().is_some_and(|good| !good.value(row)) {
                    damaged += 1;
                    return false;
                }
                let offset = u64::try_from(*offset).unwrap_or(u64::MAX);
                if offset < expected || offset >= next {
                    return false;
                }
                if offset > expected {
                    holes.push((expected, offset));
                }
                expected = offset + 1;
                true
            })
            .collect();
        self.damaged += damaged;
        self.holes.extend(holes);
        let rows = counts.iter().filter(|counts| **counts).count();
        self.rows += rows as u64;
        self.next = expected;
        if rows == counts.len() {
            return Some(batch.clone());
        }
        (rows > 0).then(|| filter_record_batch(batch, &BooleanArray::from(counts)).ok())?
    }
}
