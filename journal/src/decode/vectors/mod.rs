//! Damaged open segments and what is recovered from each: `journal/tests/recovery`. The pipelines read the same files, so that both
//! languages follow one rule. `GODWIT_WRITE_VECTORS=1 cargo test -p godwit-journal vectors` writes the files again from `cases`.
mod cases;
mod undamaged;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::Stream;
use crate::decode::batch::offsets;
use crate::decode::scan::{Scan, Wanted, scan};
use crate::disk::ReadAt;

/// Everything that `recovery.json` holds.
#[derive(Debug, Deserialize, Serialize)]
struct Vectors {
    about: String,
    /// The undamaged segment, beside this file.
    file: String,
    stream: String,
    /// The offset of its first row.
    first: u64,
    /// The offset after its last row.
    next: u64,
    cases: Vec<Case>,
}

/// One damaged segment.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Case {
    name: String,
    /// Applied to the undamaged segment, in this order.
    edits: Vec<Edit>,
    /// The first offset of the file after it; null where it is the last.
    following: Option<u64>,
    /// The machine may have lost power since the segment was written.
    power_cut: bool,
    /// Offsets of the rows that are recovered, `[first, next)` each. Everything else before `end` is lost.
    rows: Vec<(u64, u64)>,
    /// The offset after the last row that is recovered.
    end: u64,
    /// Bytes behind the last frame that has a recovered row, up to the last one that is not zero.
    tail_bytes: u64,
}

/// One change of a file's bytes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Edit {
    /// Hexadecimal bytes in place of those that begin there.
    Put { at: u64, bytes: String },
    /// Zeros in place of the bytes from the first place up to the second.
    Zero { at: u64, end: u64 },
    /// Nothing from there on.
    Cut { at: u64 },
    /// Zeros behind the end.
    Room { count: u64 },
}

impl Edit {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Put { at, bytes } => {
                let bytes = parse_hex(bytes);
                let at = *at as usize;
                content.resize(content.len().max(at + bytes.len()), 0);
                content[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            Self::Zero { at, end } => content[*at as usize..*end as usize].fill(0),
            Self::Cut { at } => content.truncate(*at as usize),
            Self::Room { count } => content.resize(content.len() + *count as usize, 0),
        }
    }
}

fn parse_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

#[derive(Debug)]
struct Content(Vec<u8>);

impl ReadAt for Content {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, place: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(place as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// What is recovered of a file's bytes, each row by its offset.
fn recover(content: Vec<u8>, first: u64, case: &Case) -> (Scan, BTreeMap<u64, RecordBatch>) {
    let limit = content.len() as u64;
    let next = case.following.unwrap_or(u64::MAX);
    let (stream, may_be_torn) = (Stream::Messages, case.power_cut);
    let wanted = Wanted { stream, limit, first, next, from: 0, is_verified: true, may_be_torn };
    let mut rows = BTreeMap::new();
    let found = scan(&Content(content), wanted, &mut |batch, _| {
        for (row, offset) in offsets(&batch).unwrap().iter().enumerate() {
            rows.insert(*offset as u64, batch.slice(row, 1));
        }
        ControlFlow::Continue(())
    });
    (found.unwrap(), rows)
}

fn extents(offsets: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for offset in offsets {
        match found.last_mut() {
            Some((_, next)) if *next == offset => *next += 1,
            _ => found.push((offset, offset + 1)),
        }
    }
    found
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recovery")
}

/// The values of a row by the names of its columns.
fn values(row: &RecordBatch) -> BTreeMap<String, String> {
    let schema = row.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    names.zip(row.columns().iter().map(|column| format!("{column:?}"))).collect()
}

#[test]
fn what_is_recovered_of_a_damaged_open_segment_is_what_the_vectors_say() {
    if std::env::var_os("GODWIT_WRITE_VECTORS").is_some() {
        cases::write(&folder());
    }
    let vectors: Vectors = serde_json::from_slice(&fs::read(folder().join("recovery.json")).unwrap()).unwrap();
    let whole = fs::read(folder().join(&vectors.file)).unwrap();
    let (_, written) = recover(whole.clone(), vectors.first, &Case::default());
    assert_eq!(extents(written.keys().copied()), [(vectors.first, vectors.next)]);
    for case in &vectors.cases {
        let mut content = whole.clone();
        case.edits.iter().for_each(|edit| edit.apply(&mut content));
        let (found, rows) = recover(content, vectors.first, case);
        assert_eq!(extents(rows.keys().copied()), case.rows, "{}", case.name);
        assert_eq!((found.next, found.torn_bytes), (case.end, case.tail_bytes), "{}", case.name);
        for (offset, row) in &rows {
            assert_eq!(values(row), values(&written[offset]), "{}: offset {offset}", case.name);
        }
    }
}

/// A place in a file, for the cases.
fn find(content: &[u8], within: Range<u64>, wanted: &[u8]) -> u64 {
    let (begin, end) = (within.start as usize, within.end as usize);
    let found = content[begin..end].windows(wanted.len()).position(|bytes| bytes == wanted);
    (begin + found.expect("the bytes are there")) as u64
}
