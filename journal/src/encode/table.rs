//! Rows of one stream on their way into a record batch: the columns that the schema names, filled field by field in its order,
//! with the checksum over what was put. Owns the layout of the checksum as events.toml tells it; what a row holds is told from outside.
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder,
    StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};

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

fn element() -> ArrowField {
    ArrowField::new("item", DataType::Int64, false)
}

/// A column keeps room for as many rows and bytes as its last batch had, up to this.
const ROOM_ROWS: usize = 4096;
const ROOM_BYTES: usize = 1 << 20;

#[derive(Debug)]
enum Column {
    String(StringBuilder),
    Binary(BinaryBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Double(Float64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Int64List(ListBuilder<Int64Builder>),
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
    schema: SchemaRef,
    columns: Vec<Column>,
    sum: Vec<u8>,
    /// The column that the next value belongs to.
    place: usize,
    bytes: usize,
}

impl Table {
    pub(crate) fn new(stream: Stream) -> Self {
        let columns = stream.fields().iter().map(|field| Column::new(field.kind)).collect();
        Self { schema: schema_of(stream), columns, sum: Vec::new(), place: 0, bytes: 0 }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
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

    /// The rows as a batch; the table is empty then.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.bytes = 0;
        let columns = self.columns.iter_mut().map(Column::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    fn push(&mut self, value: Value<'_>) {
        if let Some(column) = self.columns.get_mut(self.place) {
            column.push(value);
        }
        self.place += 1;
    }
}

impl Column {
    fn new(kind: Type) -> Self {
        match kind {
            Type::String => Self::String(StringBuilder::new()),
            Type::Binary => Self::Binary(BinaryBuilder::new()),
            Type::Int32 => Self::Int32(Int32Builder::new()),
            Type::Int64 => Self::Int64(Int64Builder::new()),
            Type::Double => Self::Double(Float64Builder::new()),
            Type::Boolean => Self::Boolean(BooleanBuilder::new()),
            Type::Timestamp => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            Type::Int64List => Self::Int64List(ListBuilder::new(Int64Builder::new()).with_field(element())),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::String(builder), Value::Text(text)) => builder.append_value(text),
            (Self::Binary(builder), Value::Bytes(bytes)) => builder.append_value(bytes),
            (Self::Int32(builder), Value::Number(number)) => builder.append_value(number as i32),
            (Self::Int64(builder), Value::Number(number)) => builder.append_value(number),
            (Self::Double(builder), Value::Double(double)) => builder.append_value(double),
            (Self::Boolean(builder), Value::Number(number)) => builder.append_value(number != 0),
            (Self::Timestamp(builder), Value::Number(number)) => builder.append_value(number),
            (Self::Int64List(builder), Value::Numbers(numbers)) => {
                builder.append_value(numbers.iter().map(|number| Some(*number as i64)));
            }
            (column, value) => {
                debug_assert!(matches!(value, Value::Null), "{value:?} is not what this column holds");
                column.push_null();
            }
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::String(builder) => builder.append_null(),
            Self::Binary(builder) => builder.append_null(),
            Self::Int32(builder) => builder.append_null(),
            Self::Int64(builder) => builder.append_null(),
            Self::Double(builder) => builder.append_null(),
            Self::Boolean(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
            Self::Int64List(builder) => builder.append_null(),
        }
    }

    /// What it holds; it has room for as much again.
    fn finish(&mut self) -> ArrayRef {
        let rows = self.rows().min(ROOM_ROWS);
        match self {
            Self::String(builder) => {
                let bytes = builder.values_slice().len().min(ROOM_BYTES);
                ArrayBuilder::finish(&mut std::mem::replace(builder, StringBuilder::with_capacity(rows, bytes)))
            }
            Self::Binary(builder) => {
                let bytes = builder.values_slice().len().min(ROOM_BYTES);
                ArrayBuilder::finish(&mut std::mem::replace(builder, BinaryBuilder::with_capacity(rows, bytes)))
            }
            Self::Int32(builder) => {
                ArrayBuilder::finish(&mut std::mem::replace(builder, Int32Builder::with_capacity(rows)))
            }
            Self::Int64(builder) => {
                ArrayBuilder::finish(&mut std::mem::replace(builder, Int64Builder::with_capacity(rows)))
            }
            Self::Double(builder) => ArrayBuilder::finish(builder),
            Self::Boolean(builder) => ArrayBuilder::finish(builder),
            Self::Timestamp(builder) => ArrayBuilder::finish(builder),
            Self::Int64List(builder) => ArrayBuilder::finish(builder),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::String(builder) => builder.len(),
            Self::Binary(builder) => builder.len(),
            Self::Int32(builder) => builder.len(),
            Self::Int64(builder) => builder.len(),
            Self::Double(_) | Self::Boolean(_) | Self::Timestamp(_) | Self::Int64List(_) => 0,
        }
    }
}
