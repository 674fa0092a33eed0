//! One column of the rows that wait to become a batch, laid down as Arrow wants it (Columnar format, "Physical memory layout") while
//! they come. Owns the bytes of a type; where they stand in a frame is the frame's to say.
use crate::Type;
use crate::encode::frame::Writer;
use crate::encode::table::Value;

/// A column keeps its memory for the next batch, up to this.
const ROOM_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Column {
    kind: Type,
    rows: usize,
    /// The rows without a value.
    nulls: Vec<usize>,
    /// Of what has no width: where each value ends, in bytes, or in elements of a list.
    ends: Vec<u8>,
    values: Vec<u8>,
    /// Elements of a list.
    items: usize,
}

impl Column {
    pub(crate) fn new(kind: Type) -> Self {
        Self { kind, rows: 0, nulls: Vec::new(), ends: vec![0; 4], values: Vec::new(), items: 0 }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Its bytes in a frame, but for what aligns them.
    pub(crate) fn bytes(&self) -> usize {
        self.ends.len() + self.values.len() + if self.nulls.is_empty() { 0 } else { self.rows.div_ceil(8) }
    }

    pub(crate) fn push(&mut self, value: Value<'_>) {
        match (self.kind, value) {
            (Type::String, Value::Text(text)) => self.values.extend_from_slice(text.as_bytes()),
            (Type::Binary, Value::Bytes(bytes)) => self.values.extend_from_slice(bytes),
            (Type::Int32, Value::Number(number)) => self.values.extend_from_slice(&(number as i32).to_le_bytes()),
            (Type::Int64 | Type::Timestamp, Value::Number(number)) => {
                self.values.extend_from_slice(&number.to_le_bytes());
            }
            (Type::Double, Value::Double(double)) => self.values.extend_from_slice(&double.to_le_bytes()),
            (Type::Boolean, Value::Number(number)) => self.push_bit(number != 0),
            (Type::Int64List, Value::Numbers(numbers)) => {
                self.values.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
                self.items += numbers.len();
            }
            (_, value) => {
                debug_assert!(matches!(value, Value::Null), "{value:?} is not what this column holds");
                self.push_null();
            }
        }
        self.rows += 1;
        match self.kind {
            Type::String | Type::Binary => self.push_end(self.values.len()),
            Type::Int64List => self.push_end(self.items),
            Type::Int32 | Type::Int64 | Type::Timestamp | Type::Double | Type::Boolean => {}
        }
    }

    fn push_null(&mut self) {
        self.nulls.push(self.rows);
        match self.kind {
            Type::String | Type::Binary | Type::Int64List => {}
            Type::Int32 => self.values.extend_from_slice(&[0; 4]),
            Type::Int64 | Type::Timestamp | Type::Double => self.values.extend_from_slice(&[0; 8]),
            Type::Boolean => self.push_bit(false),
        }
    }

    fn push_bit(&mut self, is_set: bool) {
        if self.rows.is_multiple_of(8) {
            self.values.push(0);
        }
        if let Some(last) = self.values.last_mut() {
            *last |= u8::from(is_set) << (self.rows % 8);
        }
    }

    /// A batch holds a few megabytes and one message at most: four bytes are enough.
    fn push_end(&mut self, end: usize) {
        self.ends.extend_from_slice(&(end as i32).to_le_bytes());
    }

    /// Its nodes and buffers, in the order of the format ("RecordBatch message"): a list's elements stand behind it.
    pub(crate) fn write(&self, frame: &mut Writer<'_>) {
        frame.node(self.rows, self.nulls.len());
        self.write_validity(frame);
        match self.kind {
            Type::String | Type::Binary => frame.buffer(&self.ends),
            Type::Int64List => {
                frame.buffer(&self.ends);
                frame.node(self.items, 0);
                frame.buffer(&[]);
            }
            Type::Int32 | Type::Int64 | Type::Timestamp | Type::Double | Type::Boolean => {}
        }
        frame.buffer(&self.values);
    }

    /// A bit for each row, set where it has a value; nothing where all have.
    fn write_validity(&self, frame: &mut Writer<'_>) {
        if self.nulls.is_empty() {
            return frame.buffer(&[]);
        }
        frame.buffer_of(self.rows.div_ceil(8), |bits| {
            bits.fill(u8::MAX);
            if let Some(last) = bits.last_mut().filter(|_| !self.rows.is_multiple_of(8)) {
                *last = (1 << (self.rows % 8)) - 1;
            }
            for row in &self.nulls {
                if let Some(byte) = bits.get_mut(row / 8) {
                    *byte &= !(1 << (row % 8));
                }
            }
        });
    }

    pub(crate) fn clear(&mut self) {
        (self.rows, self.items) = (0, 0);
        self.nulls.clear();
        self.nulls.shrink_to(ROOM_BYTES / size_of::<usize>());
        self.ends.truncate(4);
        self.ends.shrink_to(ROOM_BYTES);
        self.values.clear();
        self.values.shrink_to(ROOM_BYTES);
    }
}
