//! One record batch that came from a disk: decoded, and every row held against its checksum. Owns that nothing damaged is
//! taken for a row: what does not decode is no batch, and what does not fit its checksum is no row.
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, MetadataVersion, root_as_message};
use arrow_schema::{DataType, SchemaRef, TimeUnit};

use crate::decode::frames::Frame;
use crate::encode::table::{Value, add_to_sum};

/// The schema that a frame holds, if it holds one with our common columns.
pub(crate) fn decode_schema(bytes: &[u8]) -> Option<SchemaRef> {
    let message = root_as_message(bytes.get(8..)?).ok()?;
    let schema = catch_unwind(AssertUnwindSafe(|| try_fb_to_schema(message.header_as_schema()?).ok())).ok()??;
    let is_ours = schema.field_with_name("journal_offset").is_ok_and(|field| *field.data_type() == DataType::Int64)
        && schema.fields().last().is_some_and(|field| field.name() == "crc" && *field.data_type() == DataType::Int64)
        && schema.fields().iter().all(|field| is_known(field.data_type()));
    is_ours.then(|| SchemaRef::new(schema))
}

fn is_known(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::Binary | DataType::Int32 | DataType::Int64 => true,
        DataType::Float64 | DataType::Boolean | DataType::Timestamp(TimeUnit::Microsecond, _) => true,
        DataType::List(element) => *element.data_type() == DataType::Int64,
        _ => false,
    }
}

/// The batch of a frame; none where its bytes make none. The decoder checks what it reads; should it still fall over bent bytes,
/// that too is damage and not the node's end.
pub(crate) fn decode(schema: &SchemaRef, bytes: &Buffer, frame: &Frame) -> Option<RecordBatch> {
    let block = Block::new(0, i32::try_from(frame.head_bytes).ok()?, i64::try_from(frame.body_bytes).ok()?);
    if !is_in_bounds(bytes.get(8..frame.head_bytes)?, frame.body_bytes) {
        return None;
    }
    let decoder = FileDecoder::new(SchemaRef::clone(schema), MetadataVersion::V5);
    let decoded = catch_unwind(AssertUnwindSafe(|| decoder.read_record_batch(&block, bytes).ok().flatten()));
    decoded.ok().flatten().filter(|batch| batch.num_rows() > 0)
}

/// Whether a batch says of none of its buffers that it lies outside of the body, and is not packed: the decoder falls over the one, and
/// we never do the other.
fn is_in_bounds(description: &[u8], body_bytes: usize) -> bool {
    let batch = root_as_message(description).ok().and_then(|message| message.header_as_record_batch());
    let Some(batch) = batch else { return false };
    let is_inside = |buffer: &arrow_ipc::Buffer| {
        let range = u64::try_from(buffer.offset()).ok().zip(u64::try_from(buffer.length()).ok());
        range.and_then(|(at, length)| at.checked_add(length)).is_some_and(|end| end <= body_bytes as u64)
    };
    batch.compression().is_none() && batch.buffers().is_some_and(|buffers| buffers.iter().all(is_inside))
}

/// The offsets of a batch's rows.
pub(crate) fn offsets(batch: &RecordBatch) -> Option<&[i64]> {
    Some(batch.column_by_name("journal_offset")?.as_primitive_opt::<Int64Type>()?.values())
}

/// Which rows fit their checksums; none: all do.
pub(crate) fn find_damage(batch: &RecordBatch) -> Option<BooleanArray> {
    let (crc, columns) = batch.columns().split_last()?;
    let columns: Vec<Column<'_>> = columns.iter().filter_map(|column| Column::new(&**column)).collect();
    let sums = crc.as_primitive_opt::<Int64Type>();
    let (mut sum, mut numbers) = (Vec::new(), Vec::new());
    let mut fits = |row: usize| {
        sum.clear();
        for column in &columns {
            column.add(row, &mut sum, &mut numbers);
        }
        sums.is_some_and(|sums| sums.is_valid(row) && sums.value(row) == i64::from(crc32c::crc32c(&sum)))
    };
    let good: Vec<bool> = (0..batch.num_rows()).map(&mut fits).collect();
    if good.iter().all(|good| *good) { None } else { Some(BooleanArray::from(good)) }
}

/// A column, as its checksum sees it.
enum Column<'a> {
    Text(&'a arrow_array::StringArray),
    Bytes(&'a arrow_array::BinaryArray),
    Int32(&'a arrow_array::Int32Array),
    Int64(&'a arrow_array::Int64Array),
    Double(&'a arrow_array::Float64Array),
    Boolean(&'a BooleanArray),
    Time(&'a arrow_array::TimestampMicrosecondArray),
    Numbers(&'a arrow_array::ListArray),
}

impl<'a> Column<'a> {
    fn new(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Utf8 => Self::Text(array.as_string_opt()?),
            DataType::Binary => Self::Bytes(array.as_binary_opt()?),
            DataType::Int32 => Self::Int32(array.as_primitive_opt::<Int32Type>()?),
            DataType::Int64 => Self::Int64(array.as_primitive_opt::<Int64Type>()?),
            DataType::Float64 => Self::Double(array.as_primitive_opt::<Float64Type>()?),
            DataType::Boolean => Self::Boolean(array.as_boolean_opt()?),
            DataType::Timestamp(..) => Self::Time(array.as_primitive_opt::<TimestampMicrosecondType>()?),
            DataType::List(_) => Self::Numbers(array.as_list_opt()?),
            _ => return None,
        })
    }

    fn add(&self, row: usize, sum: &mut Vec<u8>, numbers: &mut Vec<u64>) {
        let value = match self {
            Self::Text(array) => array.is_valid(row).then(|| Value::Text(array.value(row))),
            Self::Bytes(array) => array.is_valid(row).then(|| Value::Bytes(array.value(row))),
            Self::Int32(array) => array.is_valid(row).then(|| Value::Number(i64::from(array.value(row)))),
            Self::Int64(array) => array.is_valid(row).then(|| Value::Number(array.value(row))),
            Self::Double(array) => array.is_valid(row).then(|| Value::Double(array.value(row))),
            Self::Boolean(array) => array.is_valid(row).then(|| Value::Number(i64::from(array.value(row)))),
            Self::Time(array) => array.is_valid(row).then(|| Value::Number(array.value(row))),
            Self::Numbers(array) => array.is_valid(row).then(|| {
                numbers.clear();
                let elements = array.value(row);
                if let Some(elements) = elements.as_primitive_opt::<Int64Type>() {
                    numbers.extend(elements.values().iter().map(|number| *number as u64));
                }
                Value::Numbers(numbers)
            }),
        };
        add_to_sum(sum, value.unwrap_or(Value::Null));
    }
}
