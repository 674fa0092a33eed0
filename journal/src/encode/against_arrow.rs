//! What we lay down against what Arrow's own builders and writer make of the same rows, byte by byte, for every stream.
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use proptest::prelude::*;

use crate::encode::table::{Table, Value, element, schema_of};
use crate::segment::write_options;
use crate::{Field, Stream, Type};

/// A value that a field may have.
#[derive(Clone, Debug)]
enum Held {
    Null,
    Text(String),
    Bytes(Vec<u8>),
    Number(i64),
    Double(f64),
    Numbers(Vec<u64>),
}

impl Held {
    fn lend(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::Number(number) => Value::Number(*number),
            Self::Double(double) => Value::Double(*double),
            Self::Numbers(numbers) => Value::Numbers(numbers),
        }
    }

    fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

fn value_of(field: &Field) -> BoxedStrategy<Held> {
    let value = match field.kind {
        Type::String => ".{0,20}".prop_map(Held::Text).boxed(),
        Type::Binary => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Held::Bytes).boxed(),
        Type::Int32 => any::<i32>().prop_map(|number| Held::Number(number.into())).boxed(),
        Type::Int64 | Type::Timestamp => any::<i64>().prop_map(Held::Number).boxed(),
        Type::Double => any::<f64>().prop_map(Held::Double).boxed(),
        Type::Boolean => (0..2_i64).prop_map(Held::Number).boxed(),
        Type::Int64List => proptest::collection::vec(any::<u64>(), 0..5).prop_map(Held::Numbers).boxed(),
    };
    if field.is_nullable { prop_oneof![Just(Held::Null), value].boxed() } else { value }
}

/// Rows of a stream, without their checksums, in a few batches.
fn batches_of(stream: Stream) -> impl Strategy<Value = Vec<Vec<Vec<Held>>>> {
    let (_, fields) = stream.fields().split_last().unwrap();
    let row = fields.iter().map(value_of).collect::<Vec<_>>();
    proptest::collection::vec(proptest::collection::vec(row, 1..40), 1..4)
}

fn checksum(row: &[Held]) -> Held {
    let mut sum = Vec::new();
    row.iter().for_each(|value| crate::encode::table::add_to_sum(&mut sum, value.lend()));
    Held::Number(crc32c::crc32c(&sum).into())
}

fn array_of(kind: Type, values: &[&Held]) -> ArrayRef {
    let numbers = values.iter().map(|value| value.number());
    match kind {
        Type::Int32 => Arc::new(numbers.map(|number| number.map(|number| number as i32)).collect::<Int32Array>()),
        Type::Int64 => Arc::new(numbers.collect::<Int64Array>()),
        Type::Boolean => Arc::new(numbers.map(|number| number.map(|number| number != 0)).collect::<BooleanArray>()),
        Type::Timestamp => Arc::new(numbers.collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        Type::String => Arc::new(StringArray::from_iter(values.iter().map(|value| match value {
            Held::Text(text) => Some(text.as_str()),
            _ => None,
        }))),
        Type::Binary => Arc::new(BinaryArray::from_iter(values.iter().map(|value| match value {
            Held::Bytes(bytes) => Some(bytes),
            _ => None,
        }))),
        Type::Double => Arc::new(Float64Array::from_iter(values.iter().map(|value| match value {
            Held::Double(double) => Some(*double),
            _ => None,
        }))),
        Type::Int64List => {
            let mut lists = ListBuilder::new(Int64Builder::new()).with_field(element());
            values.iter().for_each(|value| match value {
                Held::Numbers(numbers) => lists.append_value(numbers.iter().map(|number| Some(*number as i64))),
                _ => lists.append_null(),
            });
            Arc::new(lists.finish())
        }
    }
}

fn of_arrow(stream: Stream, batches: &[Vec<Vec<Held>>]) -> Vec<u8> {
    let schema = schema_of(stream);
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, write_options().unwrap()).unwrap();
    for rows in batches {
        let whole: Vec<Vec<Held>> = rows.iter().map(|row| [&row[..], &[checksum(row)]].concat()).collect();
        let column = |(place, field): (usize, &Field)| {
            array_of(field.kind, &whole.iter().map(|row| &row[place]).collect::<Vec<_>>())
        };
        let columns = stream.fields().iter().enumerate().map(column).collect();
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
    }
    std::mem::take(writer.get_mut())
}

fn of_ours(stream: Stream, batches: &[Vec<Vec<Held>>]) -> Vec<u8> {
    let mut table = Table::new(stream).unwrap();
    let mut bytes = table.schema().to_vec();
    for rows in batches {
        for row in rows {
            row.iter().for_each(|value| table.put(value.lend()));
            table.end();
        }
        bytes.extend(table.take().unwrap());
    }
    bytes
}

proptest! {
    #[test]
    fn a_segment_is_what_arrow_would_have_written(
        (stream, batches) in proptest::sample::select(&Stream::ALL[..])
            .prop_flat_map(|stream| (Just(stream), batches_of(stream))),
    ) {
        prop_assert!(of_ours(stream, &batches) == of_arrow(stream, &batches));
    }
}

#[test]
fn rows_that_lack_a_field_are_no_batch_and_leave_nothing_behind() {
    let mut table = Table::new(Stream::Runs).unwrap();
    table.put("node");
    assert!(table.take().is_none());
    let row = [Held::Text("n".into()), Held::Text("r".into()), Held::Text(String::new()), Held::Number(1)];
    let rest = Stream::Runs.fields()[4..].split_last().unwrap().1.iter();
    let rest = rest.map(|field| match field.kind {
        _ if field.is_nullable => Held::Null,
        Type::String => Held::Text("x".into()),
        _ => Held::Number(7),
    });
    let rows = vec![vec![row.into_iter().chain(rest).collect()]];
    let mut bytes = table.schema().to_vec();
    for value in &rows[0][0] as &Vec<Held> {
        table.put(value.lend());
    }
    table.end();
    bytes.extend(table.take().unwrap());
    assert!(bytes == of_arrow(Stream::Runs, &rows));
}
