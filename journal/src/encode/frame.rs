//! A record batch as the bytes of an IPC stream (Columnar format, "Encapsulated message format"). All batches of a stream have the
//! same head but for its numbers, so Arrow makes one, once, and each frame is a copy of it with its own numbers, and its columns behind it.
//! Owns where these numbers stand. What Arrow would have written is what is written, byte by byte: a test compares them.
use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{Buffer, FieldNode, Message, root_as_message};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use crate::segment::write_options;

/// The mark and the length that begin a frame.
const PREFIX_BYTES: usize = 8;
/// Buffers begin at multiples of this.
const ALIGNMENT: usize = 8;

/// What all of a stream's frames have in common.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The schema's own frame, with which a file begins.
    schema: Vec<u8>,
    head: Vec<u8>,
    /// Where numbers of the head stand: how long the body is, how many rows there are, the first node, the first buffer.
    body_length: usize,
    rows: usize,
    nodes: usize,
    buffers: usize,
}

impl Shape {
    /// # Errors
    /// Where Arrow's head is none that we understand: an error of ours, which every test would find.
    pub(crate) fn new(schema: &SchemaRef) -> Result<Self, ArrowError> {
        let (begin, frame) = (frames_of(schema, None)?, frames_of(schema, Some(1))?);
        Self::find(begin, frame).ok_or_else(|| ArrowError::IpcError("a frame of another form".into()))
    }

    fn find(schema: Vec<u8>, mut frame: Vec<u8>) -> Option<Self> {
        frame.drain(..schema.len());
        let length = u32::from_le_bytes(frame.get(4..PREFIX_BYTES)?.try_into().ok()?) as usize;
        let metadata = frame.get(PREFIX_BYTES..PREFIX_BYTES + length)?;
        let message = root_as_message(metadata).ok()?;
        let batch = message.header_as_record_batch()?;
        let place = |bytes: &[u8]| PREFIX_BYTES + (bytes.as_ptr() as usize - metadata.as_ptr() as usize);
        let (nodes, buffers) = (place(batch.nodes()?.bytes()), place(batch.buffers()?.bytes()));
        let field = |table: usize, inside: u16| (inside > 0).then(|| PREFIX_BYTES + table + usize::from(inside));
        let body_length = field(message._tab.loc(), message._tab.vtable().get(Message::VT_BODYLENGTH))?;
        let rows = field(batch._tab.loc(), batch._tab.vtable().get(arrow_ipc::RecordBatch::VT_LENGTH))?;
        frame.truncate(PREFIX_BYTES + length);
        Some(Self { schema, head: frame, body_length, rows, nodes, buffers })
    }

    /// The frame with which a stream begins.
    pub(crate) fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// Begins the frame of a batch of so many rows, whose columns hold so many bytes.
    pub(crate) fn begin(&self, rows: usize, bytes: usize) -> Writer<'_> {
        let room = self.head.len() * 2 + bytes; // a buffer's numbers take more than what aligns it
        let mut frame = Vec::with_capacity(room);
        frame.extend_from_slice(&self.head);
        let mut writer = Writer { shape: self, frame, node: self.nodes, buffer: self.buffers };
        writer.set(self.rows, rows);
        writer
    }
}

/// What Arrow makes of the schema, and of so many rows without a value behind it.
fn frames_of(schema: &SchemaRef, rows: Option<usize>) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), schema, write_options()?)?;
    if let Some(rows) = rows {
        let nullable = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let nullable = Arc::new(Schema::new(nullable.collect::<Vec<_>>()));
        let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), rows));
        writer.write(&RecordBatch::try_new(nullable, columns.collect())?)?;
    }
    Ok(std::mem::take(writer.get_mut()))
}

/// A frame that is being written.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    shape: &'a Shape,
    frame: Vec<u8>,
    /// Where the next node's numbers belong, and the next buffer's.
    node: usize,
    buffer: usize,
}

impl Writer<'_> {
    /// A column begins, or the elements of one.
    pub(crate) fn node(&mut self, rows: usize, nulls: usize) {
        self.set(self.node, rows);
        self.set(self.node + 8, nulls);
        self.node += size_of::<FieldNode>();
    }

    pub(crate) fn buffer(&mut self, bytes: &[u8]) {
        self.begin_buffer(bytes.len());
        self.frame.extend_from_slice(bytes);
        self.align();
    }

    /// A buffer of so many bytes that are zeros until they are made.
    pub(crate) fn buffer_of(&mut self, length: usize, make: impl FnOnce(&mut [u8])) {
        self.begin_buffer(length);
        let begin = self.frame.len();
        self.frame.resize(begin + length, 0);
        make(self.frame.get_mut(begin..).unwrap_or_default());
        self.align();
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.set(self.shape.body_length, self.body());
        self.frame
    }

    fn begin_buffer(&mut self, length: usize) {
        self.set(self.buffer, self.body());
        self.set(self.buffer + 8, length);
        self.buffer += size_of::<Buffer>();
    }

    fn body(&self) -> usize {
        self.frame.len() - self.shape.head.len()
    }

    fn align(&mut self) {
        let length = self.frame.len().next_multiple_of(ALIGNMENT);
        self.frame.resize(length, 0);
    }

    fn set(&mut self, place: usize, number: usize) {
        if let Some(bytes) = self.frame.get_mut(place..place + 8) {
            bytes.copy_from_slice(&(number as u64).to_le_bytes());
        }
    }
}
