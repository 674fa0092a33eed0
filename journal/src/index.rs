//! Which subjects are in a sealed segment of messages, and where: a file beside it, sorted by subject and epoch, so that who looks for
//! one subject reads few segments. Owns its format (an Arrow IPC file) and looking things up. It only saves reading: without it, or
//! should it be bent, the segment itself is read.
use std::collections::HashMap;
use std::io::{self, Cursor};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::decode::facts::number_in;
use crate::encode::rows::RETAINED;
use crate::segment::{to_io, write_options};

/// Where one epoch of a subject is in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) subject: String,
    pub(crate) epoch: u64,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    pub(crate) first_offset: u64,
    pub(crate) last_offset: u64,
    pub(crate) rows: u64,
    /// The last that changed the snapshot.
    pub(crate) retained_offset: Option<u64>,
}

const NUMBERS: [&str; 7] =
    ["epoch", "first_sequence", "last_sequence", "first_offset", "last_offset", "rows", "retained_offset"];

/// What the file's metadata name the CRC-32C over its entries.
const CHECKSUM: &str = "crc32c";

/// Over what every entry is made of, column by column.
fn sum(batches: &[RecordBatch]) -> u32 {
    let columns = batches.iter().flat_map(RecordBatch::columns).filter(|column| !column.is_empty());
    columns.fold(0, |sum, column| match column.as_string_opt::<i32>() {
        Some(texts) => {
            let ends = texts.offsets();
            let within = ends.first() as usize..ends.last() as usize;
            let sum = crc32c::crc32c_append(sum, ends.inner().inner());
            crc32c::crc32c_append(sum, texts.value_data().get(within).unwrap_or_default())
        }
        None => {
            let is_there: Vec<u8> = (0..column.len()).map(|row| u8::from(column.is_valid(row))).collect();
            let sum = crc32c::crc32c_append(sum, column.as_primitive::<Int64Type>().values().inner());
            crc32c::crc32c_append(sum, &is_there)
        }
    })
}

fn schema() -> SchemaRef {
    let subject = Field::new("subject", DataType::Utf8, false);
    let numbers = NUMBERS.iter().map(|name| Field::new(*name, DataType::Int64, *name == "retained_offset"));
    Arc::new(Schema::new([subject].into_iter().chain(numbers).collect::<Vec<_>>()))
}

/// An index that is being made while its segment is sealed.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    /// In the order in which they began.
    entries: Vec<Entry>,
    /// Which is a subject's last: its epochs only rise.
    last: HashMap<String, usize>,
}

impl Builder {
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        let column = |name| batch.column_by_name(name);
        let Some(subjects) = column("subject").and_then(|column| column.as_string_opt::<i32>()) else { return };
        let numbers = ["epoch", "sequence", "journal_offset"].map(|name| column(name)?.as_primitive_opt::<Int64Type>());
        let [Some(epochs), Some(sequences), Some(offsets)] = numbers else { return };
        let flags = column("flags").and_then(|column| column.as_primitive_opt::<Int32Type>());
        for row in 0..batch.num_rows() {
            let numbers = [epochs, sequences, offsets].map(|column| number_in(column, row));
            let [Some(epoch), Some(sequence), Some(offset)] = numbers else { continue };
            let Some(entry) = self.entry(subjects.value(row), epoch, (sequence, offset)) else { continue };
            entry.last_sequence = sequence;
            entry.last_offset = offset;
            entry.rows += 1;
            if flags.is_some_and(|flags| i64::from(flags.value(row)) & RETAINED != 0) {
                entry.retained_offset = Some(offset);
            }
        }
    }

    /// The entry of a subject's epoch, which begins here where there is none.
    fn entry(&mut self, subject: &str, epoch: u64, (first_sequence, first_offset): (u64, u64)) -> Option<&mut Entry> {
        let has_epoch = |at: &usize| self.entries.get(*at).is_some_and(|entry| entry.epoch == epoch);
        let at = self.last.get(subject).copied().filter(has_epoch).unwrap_or_else(|| {
            let subject = subject.to_owned();
            self.last.insert(subject.clone(), self.entries.len());
            self.entries.push(Entry { subject, epoch, first_sequence, first_offset, ..Entry::default() });
            self.entries.len() - 1
        });
        self.entries.get_mut(at)
    }

    /// The file's bytes.
    pub(crate) fn encode(self) -> io::Result<Vec<u8>> {
        let mut entries = self.entries;
        entries.sort_by(|one, other| (&one.subject, one.epoch).cmp(&(&other.subject, other.epoch)));
        let subjects = StringArray::from_iter_values(entries.iter().map(|entry| entry.subject.as_str()));
        let numbers = |pick: &dyn Fn(&Entry) -> Option<u64>| -> ArrayRef {
            Arc::new(entries.iter().map(|entry| pick(entry).map(|number| number as i64)).collect::<Int64Array>())
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(subjects),
            numbers(&|entry| Some(entry.epoch)),
            numbers(&|entry| Some(entry.first_sequence)),
            numbers(&|entry| Some(entry.last_sequence)),
            numbers(&|entry| Some(entry.first_offset)),
            numbers(&|entry| Some(entry.last_offset)),
            numbers(&|entry| Some(entry.rows)),
            numbers(&|entry| entry.retained_offset),
        ];
        let batch = RecordBatch::try_new(schema(), columns).map_err(to_io)?;
        let options = write_options().map_err(to_io)?;
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema(), options).map_err(to_io)?;
        writer.write(&batch).map_err(to_io)?;
        writer.write_metadata(CHECKSUM, sum(&[batch]).to_string());
        writer.into_inner().map_err(to_io)
    }
}

/// The index of one segment, read.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    batches: Vec<RecordBatch>,
}

impl Index {
    /// None where the bytes are no index.
    pub(crate) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let read = move || {
            let reader = FileReader::try_new(Cursor::new(bytes), None).ok()?;
            if *reader.schema() != *schema() {
                return None;
            }
            let known = reader.custom_metadata().get(CHECKSUM).cloned();
            let batches = reader.collect::<Result<Vec<_>, _>>().ok()?;
            // The first ones had none.
            let fits = known.is_none_or(|known| known == sum(&batches).to_string());
            fits.then_some(batches)
        };
        let batches = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).ok()??;
        Some(Self { batches })
    }

    /// The epochs of a subject, in order.
    pub(crate) fn find(&self, subject: &str) -> Vec<Entry> {
        let mut found = Vec::new();
        for batch in &self.batches {
            let Some(subjects) = batch.column(0).as_string_opt::<i32>() else { continue };
            let begin = partition_point(subjects.len(), |row| subjects.value(row) < subject);
            found.extend(
                (begin..subjects.len()).take_while(|row| subjects.value(*row) == subject).map(|row| read(batch, row)),
            );
        }
        found
    }

    pub(crate) fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The subject of every entry.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &str> {
        let columns = self.batches.iter().filter_map(|batch| batch.column(0).as_string_opt::<i32>());
        columns.flat_map(|subjects| subjects.iter().flatten())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| read(batch, row)))
    }
}

/// The first of so many rows, all before which are `before` and none after.
fn partition_point(rows: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

fn read(batch: &RecordBatch, row: usize) -> Entry {
    let number = |place: usize| {
        let column = batch.column(place).as_primitive::<Int64Type>();
        column.is_valid(row).then(|| column.value(row) as u64)
    };
    let known = |place: usize| number(place).unwrap_or(0);
    Entry {
        subject: batch.column(0).as_string::<i32>().value(row).to_owned(),
        epoch: known(1),
        first_sequence: known(2),
        last_sequence: known(3),
        first_offset: known(4),
        last_offset: known(5),
        rows: known(6),
        retained_offset: number(7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_is_bent_anywhere_is_none() {
        let entry = |subject: &str, epoch| Entry {
            subject: subject.to_owned(),
            epoch,
            first_sequence: 1,
            last_sequence: 9,
            first_offset: 3,
            last_offset: 40,
            rows: 9,
            retained_offset: (epoch == 8).then_some(40),
        };
        let all = [entry("/a", 7), entry("/a", 8), entry("/b", 8)];
        let entries = all.iter().rev().cloned().collect();
        let bytes = Builder { entries, ..Builder::default() }.encode().unwrap();
        let known = |bytes: Vec<u8>| Index::decode(bytes).map(|index| index.entries().collect::<Vec<_>>());
        assert_eq!(known(bytes.clone()).unwrap(), all);
        for place in (0..bytes.len()).filter(|place| bytes[*place] != 0) {
            let mut bent = bytes.clone();
            bent[place] ^= 1;
            assert!(known(bent).is_none_or(|found| found == all), "byte {place}");
        }
    }
}
