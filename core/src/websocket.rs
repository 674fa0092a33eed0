//! RFC 6455 framing, server side: bytes in to events, frame headers out. Holds nothing for an idle connection.
use crate::codes::Code;
use crate::limits::Limits;

/// One thing that came.
#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    /// A whole message, unmasked; text was checked to be UTF-8. The slice lies in the input or in the reader's own buffer.
    Message { payload: &'a [u8], is_text: bool },
    Ping(&'a [u8]),
    Pong,
    /// The peer closes; the code is 1005 when it gave none.
    Close { code: u16 },
}

/// What is half received of a message. `None` inside while nothing is.
#[derive(Debug, Default)]
pub struct Reader {}

impl Reader {
    /// Takes what it can from the front of `input` (advancing it) until one event is whole; none: more bytes are needed, and
    /// everything was consumed. An error closes the connection with the code.
    pub fn read<'a>(&'a mut self, _input: &mut &'a mut [u8], _limits: &Limits) -> Result<Option<Event<'a>>, Code> {
        Ok(None)
    }

    /// Bytes held for a message or frame that is not whole yet.
    pub fn held_bytes(&self) -> usize {
        0
    }
}

/// Appends a ping frame.
pub fn ping(_out: &mut Vec<u8>) {}

/// Appends a pong that echoes `payload`.
pub fn pong(_out: &mut Vec<u8>, _payload: &[u8]) {}

/// Appends a close frame; `reason` is cut at a character boundary to 123 bytes.
pub fn close(_out: &mut Vec<u8>, _code: u16, _reason: &str) {}
