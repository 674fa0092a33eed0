//! Every good row of a segment's file, in order, and what was found wrong on the way. Owns what counts: whole batches, rows that fit their
//! checksum, offsets that rise within the file's bounds.
use std::io;
use std::ops::ControlFlow;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;

use crate::decode::batch::{decode, decode_schema, find_damage, offsets};
use crate::decode::frames::{Found, Frame, Frames, Next};
use crate::disk::ReadAt;
use crate::{Stream, schema_of};

/// What a scan met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Good rows.
    pub(crate) rows: u64,
    /// The offset after the last good row.
    pub(crate) next: u64,
    /// Where the last whole batch ends.
    pub(crate) bytes: u64,
    /// Bytes behind it that make no batch; preallocated zeros at the end do not count.
    pub(crate) torn_bytes: u64,
    /// Rows whose checksum does not fit, and batches that are broken with good ones behind them.
    pub(crate) damaged: u64,
    /// Those of them that stand behind the last good row.
    pub(crate) damaged_last: u64,
    /// Offsets between good rows that are not there, `[first, next)` each.
    pub(crate) missing: Vec<(u64, u64)>,
}

/// Which rows of a file are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) stream: Stream,
    /// Bytes of the file that count.
    pub(crate) limit: u64,
    /// The offset of its first row, and the one from which on rows do not count.
    pub(crate) first: u64,
    pub(crate) next: u64,
    /// Every row is held against its checksum. Else whoever reads next does it.
    pub(crate) is_verified: bool,
    /// A power cut may have left any part of the last batch: then it never was on the disk as a whole, and is a torn tail.
    pub(crate) may_be_torn: bool,
    /// Batches that end before this offset need not be looked at.
    pub(crate) from: u64,
}

/// Calls `each` with every batch of good rows; a batch is cut to those that count.
pub(crate) fn scan(
    file: &dyn ReadAt,
    wanted: Wanted,
    each: &mut dyn FnMut(RecordBatch, &Frame) -> ControlFlow<()>,
) -> io::Result<Scan> {
    let Wanted { limit, first, next, from, .. } = wanted;
    let mut frames = Frames::new(file, limit)?;
    let mut scan = Scan { next: first, ..Scan::default() };
    let Head { schema, mut at, is_bent } = read_head(&mut frames, wanted.stream)?;
    scan.damaged += u64::from(is_bent);
    scan.bytes = at;
    let mut end = at;
    while at < frames.limit() {
        let frame = match frames.find_next(at)? {
            Next::Frame(frame) => frame,
            Next::Behind(frame) => {
                scan.damaged += 1;
                frame
            }
            Next::End(behind) => {
                end = behind;
                break;
            }
        };
        at = frame.end();
        end = at;
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
        let damage = batch.as_ref().filter(|_| wanted.is_verified).and_then(find_damage);
        if wanted.may_be_torn && (batch.is_none() || damage.is_some()) {
            let (is_last, behind) = frames.look_past(&frame)?;
            if is_last {
                end = behind;
                break;
            }
        }
        let Some(batch) = batch else {
            scan.damaged += 1;
            scan.damaged_last += 1;
            continue;
        };
        let Some(batch) = scan.judge(&batch, damage.as_ref(), next) else { continue };
        scan.bytes = at;
        if each(batch, &frame).is_break() {
            return Ok(scan);
        }
    }
    scan.torn_bytes = frames.find_written_end(scan.bytes, end)?.saturating_sub(scan.bytes);
    Ok(scan)
}

/// What stands in front of the batches.
pub(crate) struct Head {
    pub(crate) schema: SchemaRef,
    /// Where the batches begin.
    pub(crate) at: u64,
    pub(crate) is_bent: bool,
}

/// The schema in front. One that is bent is replaced by ours: the checksums tell whether it was that.
pub(crate) fn read_head(frames: &mut Frames<'_>, stream: Stream) -> io::Result<Head> {
    let ours = schema_of(stream);
    let start = frames.start()?;
    // Without anything behind it, it is a file that a power cut left before its beginning was on the disk.
    let Found::Frame(frame) = frames.find(start)? else {
        let is_bent = frames.find_trailing(start)?.frame.is_some();
        return Ok(Head { schema: ours, at: start, is_bent });
    };
    let bytes = if frame.is_schema { frames.read(&frame)? } else { None };
    let schema = bytes.and_then(|bytes| decode_schema(&bytes)).filter(|schema| fits(schema, &ours));
    let is_bent = schema.is_none() && !frames.look_past(&frame)?.0;
    Ok(Head { schema: schema.unwrap_or(ours), at: frame.end(), is_bent })
}

/// Whether a schema may be of an older or newer writer of the stream: the columns it shares with ours are the same, and it lacks none
/// that always has a value. An older writer lacks columns and a newer one has more. A schema of which both is true has a damaged
/// name: its column would be read as nulls.
fn fits(schema: &SchemaRef, ours: &SchemaRef) -> bool {
    let mut lacking = 0;
    let is_alike = ours.fields().iter().all(|our| match schema.field_with_name(our.name()) {
        Ok(field) => field.data_type() == our.data_type() && field.is_nullable() == our.is_nullable(),
        Err(_) => {
            lacking += 1;
            our.is_nullable()
        }
    });
    is_alike && (lacking == 0 || schema.fields().len() + lacking == ours.fields().len())
}

impl Scan {
    /// Offsets of a file that are not in it, where it ends at `next`.
    pub(crate) fn all_missing(&self, next: u64) -> Vec<(u64, u64)> {
        let end = (self.next < next).then_some((self.next, next));
        self.missing.iter().copied().chain(end).collect()
    }

    /// The rows of a batch that count; none where none does.
    fn judge(&mut self, batch: &RecordBatch, damage: Option<&BooleanArray>, next: u64) -> Option<RecordBatch> {
        let offsets = offsets(batch)?;
        let mut expected = self.next;
        let mut missing = Vec::new();
        let mut damaged = 0;
        let counts: Vec<bool> = offsets
            .iter()
            .enumerate()
            .map(|(row, offset)| {
                if damage.is_some_and(|good| !good.value(row)) {
                    damaged += 1;
                    self.damaged_last += 1;
                    return false;
                }
                let offset = u64::try_from(*offset).unwrap_or(u64::MAX);
                if offset < expected || offset >= next {
                    return false;
                }
                if offset > expected {
                    missing.push((expected, offset));
                }
                expected = offset + 1;
                self.damaged_last = 0;
                true
            })
            .collect();
        self.damaged += damaged;
        self.missing.extend(missing);
        let rows = counts.iter().filter(|counts| **counts).count();
        self.rows += rows as u64;
        self.next = expected;
        if rows == counts.len() {
            return Some(batch.clone());
        }
        (rows > 0).then(|| filter_record_batch(batch, &BooleanArray::from(counts)).ok())?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::encode::rows::{Origin, Row};
    use crate::encode::table::Table;
    use crate::runs::RunRow;

    /// Preallocated zeros that rows overwrite between two scans.
    #[derive(Debug)]
    struct Written {
        bytes: Vec<u8>,
        from: usize,
        was_read: AtomicBool,
    }

    impl ReadAt for Written {
        fn length(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn read_at(&self, place: u64, into: &mut [u8]) -> io::Result<usize> {
            let (place, count) = (place as usize, into.len());
            into.copy_from_slice(&self.bytes[place..place + count]);
            if !self.was_read.swap(true, Ordering::Relaxed) {
                into[self.from.saturating_sub(place).min(count)..].fill(0);
            }
            Ok(count)
        }
    }

    #[test]
    fn what_is_written_while_somebody_looks_is_not_damaged() {
        let mut table = Table::new(Stream::Runs).unwrap();
        let origin = Origin { node: "n1".into(), run: "1".into() };
        let mut frame_of = |offset, bytes| {
            let row = RunRow { reason: Some("x".repeat(bytes)), ..RunRow::new("lost", 1, 1) };
            row.write(&mut table, &origin, offset);
            table.take().unwrap()
        };
        // The first look ends amid the second row.
        let frames = [frame_of(0, 700_000), frame_of(1, 700_000), frame_of(2, 10)];
        let mut bytes = table.schema().to_vec();
        let from = bytes.len() + frames[0].len();
        bytes.extend(frames.concat());
        bytes.resize(bytes.len() + 100_000, 0);
        let file = Written { bytes, from, was_read: AtomicBool::new(false) };
        let limit = u64::MAX;
        let wanted = Wanted {
            stream: Stream::Runs,
            limit,
            first: 0,
            next: limit,
            is_verified: true,
            may_be_torn: false,
            from: 0,
        };
        let found = scan(&file, wanted, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!((found.rows, found.damaged, found.missing), (3, 0, vec![]));
    }
}
