//! Rows of one stream on their way into a record batch: the columns that the schema names, filled field by field in its order,
//! with the checksum over what was put. Owns the layout of the checksum as events.toml tells it; what a row holds is told from outside.
use std::sync::Arc;

use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};

use crate::encode::column::Column;
use crate::encode::frame::Shape;
use crate::{Stream, Type};

/// The schema of a stream's record batches.
pub fn schema_of(stream: Stream) -> SchemaRef {
    let fields =
        stream.fields().iter().map(|field| ArrowField::new(field.name, type_of(field.kind), field.is_nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn type_of(kind: Type) -> DataType {
    match kind {
        Type::String => DataType::Utf8,
        Type::Binary => DataType::Binary,
        Type::Int32 => DataType::Int32,
        Type::Int64 => DataType::Int64,
        Type::Double => DataType::Float64,
        Type::Boolean => DataType::Boolean,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::Int64List => DataType::List(Arc::new(element())),
    }
}

pub(crate) fn element() -> ArrowField {
    ArrowField::new("item", DataType::Int64, false)
}

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Text(&'a str),
    Bytes(&'a [u8]),
    /// Integers, times in microseconds, and booleans as 0 and 1.
    Number(i64),
    Double(f64),
    Numbers(&'a [u64]),
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number as i64)
    }
}

impl From<bool> for Value<'_> {
    fn from(is_true: bool) -> Self {
        Self::Number(i64::from(is_true))
    }
}

impl From<f64> for Value<'_> {
    fn from(double: f64) -> Self {
        Self::Double(double)
    }
}

/// Adds a field to what the checksum of its row is made over.
pub(crate) fn add_to_sum(sum: &mut Vec<u8>, value: Value<'_>) {
    sum.push(u8::from(!matches!(value, Value::Null)));
    match value {
        Value::Null => {}
        Value::Text(text) => add_bytes(sum, text.as_bytes()),
        Value::Bytes(bytes) => add_bytes(sum, bytes),
        Value::Number(number) => sum.extend_from_slice(&number.to_le_bytes()),
        Value::Double(double) => sum.extend_from_slice(&double.to_le_bytes()),
        Value::Numbers(numbers) => {
            sum.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
            sum.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
    }
}

fn add_bytes(sum: &mut Vec<u8>, bytes: &[u8]) {
    sum.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    sum.extend_from_slice(bytes);
}

/// Rows of one stream that wait to become a batch.
#[derive(Debug)]
pub(crate) struct Table {
    shape: Shape,
    columns: Vec<Column>,
    sum: Vec<u8>,
    /// The column that the next value belongs to.
    place: usize,
    bytes: usize,
}

impl Table {
    /// # Errors
    /// Where Arrow lays batches down in a way that we do not know.
    pub(crate) fn new(stream: Stream) -> Result<Self, ArrowError> {
        let columns = stream.fields().iter().map(|field| Column::new(field.kind)).collect();
        Ok(Self { shape: Shape::new(&schema_of(stream))?, columns, sum: Vec::new(), place: 0, bytes: 0 })
    }

    /// The frame with which a segment begins.
    pub(crate) fn schema(&self) -> &[u8] {
        self.shape.schema()
    }

    /// About how much the rows put so far hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next field of the row. A value that is none of the field's type is an error of ours; the row is then damaged.
    pub(crate) fn put<'a>(&mut self, value: impl Into<Value<'a>>) {
        let value = value.into();
        add_to_sum(&mut self.sum, value);
        self.push(value);
    }

    /// Puts the checksum: the row is complete.
    pub(crate) fn end(&mut self) {
        let crc = crc32c::crc32c(&self.sum);
        self.push(Value::Number(i64::from(crc)));
        debug_assert_eq!(self.place, self.columns.len(), "a row has as many values as fields");
        self.bytes += self.sum.len();
        self.sum.clear();
        self.place = 0;
    }

    /// The rows as a batch's frame, none where columns are of unequal length; the table is empty then.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        (self.bytes, self.place) = (0, 0);
        self.sum.clear();
        let rows = self.columns.first().map_or(0, Column::rows);
        let is_even = self.columns.iter().all(|column| column.rows() == rows);
        let frame = is_even.then(|| {
            let mut frame = self.shape.begin(rows, self.columns.iter().map(Column::bytes).sum());
            self.columns.iter().for_each(|column| column.write(&mut frame));
            frame.end()
        });
        self.columns.iter_mut().for_each(Column::clear);
        frame
    }

    fn push(&mut self, value: Value<'_>) {
        if let Some(column) = self.columns.get_mut(self.place) {
            column.push(value);
        }
        self.place += 1;
    }
}
