//! The segment that the vectors damage: rows in which every column that may be null is null in some rows and has a value in others.
use crate::encode::table::{Table, Value};
use crate::{Stream, Type};

/// The offset of the first row: another than zero, so that nobody who counts from there is right by chance.
pub(super) const FIRST: u64 = 40;
/// The rows of each batch. Two that follow each other are of one even size, so that one can stand in place of the other.
const ROWS: [u64; 7] = [1, 7, 4, 4, 1, 12, 5];
const TIME_US: u64 = 1_795_250_000_000_000;

/// A batch's place in the file and its offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) first: u64,
    pub(super) next: u64,
}

#[derive(Debug)]
pub(super) struct Base {
    pub(super) content: Vec<u8>,
    pub(super) frames: Vec<Frame>,
}

/// Of one length for every offset, and in one place of the file only.
pub(super) fn content_of(offset: u64) -> String {
    format!("content-{offset:04}")
}

fn put(table: &mut Table, name: &str, kind: Type, is_nullable: bool, offset: u64) {
    // No two columns that may be null have a value in the same rows.
    let is_null = is_nullable && (offset + name.len() as u64).is_multiple_of(2);
    let text = format!("{name}-{offset:04}");
    match (name, kind) {
        _ if is_null => table.put(Value::Null),
        ("node", _) => table.put("n1"),
        ("run", _) => table.put("a1"),
        ("content", _) => table.put(content_of(offset).as_bytes()),
        ("journal_offset", _) => table.put(offset),
        ("time", _) => table.put(TIME_US + offset),
        (_, Type::String) => table.put(text.as_str()),
        (_, Type::Binary) => table.put(text.as_bytes()),
        _ => table.put(offset + 1_000),
    }
}

pub(super) fn make() -> Base {
    let mut table = Table::new(Stream::Messages).unwrap();
    let mut content = table.schema().to_vec();
    let (mut frames, mut first) = (Vec::new(), FIRST);
    for rows in ROWS {
        for offset in first..first + rows {
            for field in Stream::Messages.fields().iter().filter(|field| field.name != "crc") {
                put(&mut table, field.name, field.kind, field.is_nullable, offset);
            }
            table.end();
        }
        let at = content.len() as u64;
        content.extend(table.take().unwrap());
        frames.push(Frame { at, end: content.len() as u64, first, next: first + rows });
        first += rows;
    }
    Base { content, frames }
}
