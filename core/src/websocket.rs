//! RFC 6455 framing: bytes in to events, frames out; the server's side, and of the client's what a load generator needs.
//! Owns framing, masking, UTF-8 of text and the close codes a broken frame earns; what a message says is the wires', timing
//! and pings are the shard's. Invariant: an idle connection holds one pointer, and memory follows the bytes that came, never
//! the length a peer announced.

mod deflate;
mod write;

use crate::codes::Code;
use crate::limits::Limits;

pub use deflate::{Deflater, Inflater, WINDOW_BITS_MAX, WINDOW_BITS_MIN};
pub use write::{Mask, binary, close, close_reason, frame, ping, pong, text};

/// What a close without a code counts as.
pub const NO_CODE: u16 = 1005;

/// One thing that came.
#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    /// A whole message, unmasked; text was checked to be UTF-8. The slice lies in the input or in the reader's own buffer.
    Message {
        payload: &'a [u8],
        is_text: bool,
    },
    /// A whole message as permessage-deflate left it: neither inflated nor checked.
    Deflated {
        payload: &'a [u8],
        is_text: bool,
    },
    Ping(&'a [u8]),
    Pong,
    /// The peer closes; the code is 1005 when it gave none, and the reason empty.
    Close {
        code: u16,
        reason: &'a str,
    },
}

/// Reads what a client sends. Holds memory only while a message or frame is half received.
#[derive(Debug, Default)]
pub struct Reader {
    partial: Option<Box<Partial>>,
}

/// What is half received.
#[derive(Debug, Default)]
struct Partial {
    /// Bytes of a frame header that is not whole yet.
    header: Vec<u8>,
    /// The frame whose payload is under way, and how much of it has come.
    frame: Option<(Header, usize)>,
    /// Payload of a control frame under way.
    control: Vec<u8>,
    /// Payload of the message under way.
    message: Vec<u8>,
    /// How much of a text is known to be UTF-8.
    checked_bytes: usize,
    /// 0 while no fragmented message is under way.
    fragments: u32,
    is_text: bool,
    is_deflated: bool,
    /// The message was handed out and can be forgotten.
    is_spent: bool,
}

#[derive(Clone, Copy, Debug)]
struct Header {
    is_final: bool,
    is_deflated: bool,
    opcode: u8,
    mask: [u8; 4],
    length: usize,
}

/// What a frame may be, where it stands.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    /// A message is under way, so that this frame goes on with it or is a control frame.
    has_message: bool,
    takes_deflated: bool,
    bytes_max: usize,
}

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The first reserved bit: of a message's first frame, that it is deflated (RFC 7692, 6).
const DEFLATED: u8 = 0x40;

impl Header {
    const fn is_control(self) -> bool {
        self.opcode & 8 != 0
    }

    /// Reads a header from the front of `bytes`: it and its length. None: it is not whole. Checks as early as it can.
    fn read(bytes: &[u8], allowed: Allowed) -> Result<Option<(Self, usize)>, Code> {
        let &[first, ref rest @ ..] = bytes else { return Ok(None) };
        let is_final = first & 0x80 != 0;
        let opcode = first & 15;
        let is_known = matches!(opcode, CONTINUATION..=BINARY | CLOSE..=PONG);
        let is_control = opcode & 8 != 0;
        let is_in_place = is_control || (opcode == CONTINUATION) == allowed.has_message;
        let may_be_deflated = allowed.takes_deflated && matches!(opcode, TEXT | BINARY);
        let reserved = if may_be_deflated { 0x70 & !DEFLATED } else { 0x70 };
        if first & reserved != 0 || !is_known || !is_in_place || (is_control && !is_final) {
            return Err(Code::ProtocolBroken);
        }
        let &[second, ref rest @ ..] = rest else { return Ok(None) };
        if second & 0x80 == 0 || (is_control && second & 0x7f > 125) {
            return Err(Code::ProtocolBroken);
        }
        let (length, rest) = match second & 0x7f {
            126 => {
                let Some((word, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
                (u64::from(u16::from_be_bytes(*word)), rest)
            }
            127 => {
                let Some((word, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
                (u64::from_be_bytes(*word), rest)
            }
            short => (u64::from(short), rest),
        };
        // RFC 6455, 5.2: the most significant bit is 0, and the shortest form has to be used.
        let is_shortest = match second & 0x7f {
            126 => length > 125,
            127 => length > 0xffff && length >> 63 == 0,
            _ => true,
        };
        if !is_shortest {
            return Err(Code::ProtocolBroken);
        }
        let length =
            usize::try_from(length).ok().filter(|&length| length <= allowed.bytes_max).ok_or(Code::MessageTooBig)?;
        let Some((mask, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let is_deflated = first & DEFLATED != 0;
        Ok(Some((Self { is_final, is_deflated, opcode, mask: *mask, length }, bytes.len() - rest.len())))
    }
}

impl Reader {
    /// Takes what it can from the front of `input` (advancing it) until one event is whole; none: more bytes are needed, and
    /// everything was consumed. After an error nothing more can be read.
    ///
    /// # Errors
    /// The code to close the connection with.
    pub fn read<'s, 'a: 's>(
        &'s mut self,
        input: &mut &'a mut [u8],
        limits: &Limits,
    ) -> Result<Option<Event<'s>>, Code> {
        self.read_agreed(input, limits, false)
    }

    /// The same from a peer with whom it was agreed (or not) that messages may be deflated.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_agreed<'s, 'a: 's>(
        &'s mut self,
        input: &mut &'a mut [u8],
        limits: &Limits,
        takes_deflated: bool,
    ) -> Result<Option<Event<'s>>, Code> {
        if self.partial.as_ref().is_some_and(|partial| partial.is_spent) {
            self.partial = None;
        }
        if self.partial.is_none() {
            // The common case: a whole frame lies in the input, and nothing is copied.
            if input.is_empty() {
                return Ok(None);
            }
            if let Some((header, used)) = Header::read(
                input,
                Allowed { has_message: false, takes_deflated, bytes_max: limits.message_bytes_max },
            )? && header.is_final
                && input.len() - used >= header.length
            {
                let payload = take(input, used, header.length);
                unmask(payload, header.mask, 0);
                return event(header.opcode, header.is_deflated, payload).map(Some);
            }
        }
        self.partial.get_or_insert_default().read(input, limits, takes_deflated)
    }

    /// Bytes held for a message or frame that is not whole yet.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.as_ref().filter(|partial| !partial.is_spent).map_or(0, |partial| {
            size_of::<Partial>() + partial.header.capacity() + partial.control.capacity() + partial.message.capacity()
        })
    }
}

impl Partial {
    fn read<'s>(
        &'s mut self,
        input: &mut &mut [u8],
        limits: &Limits,
        takes_deflated: bool,
    ) -> Result<Option<Event<'s>>, Code> {
        loop {
            let (header, seen) = match self.frame {
                Some(frame) => frame,
                None => match self.read_header(input, limits, takes_deflated)? {
                    Some(header) => (header, 0),
                    None => return Ok(None),
                },
            };
            let payload = take(input, 0, input.len().min(header.length - seen));
            unmask(payload, header.mask, seen);
            let seen = seen + payload.len();
            let is_whole = seen == header.length;
            self.frame = if is_whole { None } else { Some((header, seen)) };
            if header.is_control() {
                self.control.extend_from_slice(payload);
                if is_whole {
                    return self.end_control(header.opcode).map(Some);
                }
            } else {
                self.message.extend_from_slice(payload);
                let is_last = is_whole && header.is_final;
                self.check_text(is_last)?;
                if is_last {
                    self.is_spent = true;
                    let (payload, is_text) = (self.message.as_slice(), self.is_text);
                    return Ok(Some(match self.is_deflated {
                        true => Event::Deflated { payload, is_text },
                        false => Event::Message { payload, is_text },
                    }));
                }
            }
            if input.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Gathers a frame's header; the control frame handed out before is forgotten by then.
    fn read_header(
        &mut self,
        input: &mut &mut [u8],
        limits: &Limits,
        takes_deflated: bool,
    ) -> Result<Option<Header>, Code> {
        self.control.clear();
        let room = limits.message_bytes_max.saturating_sub(self.message.len());
        loop {
            let has_message = self.fragments > 0;
            // A control frame's length is not the message's.
            let bytes_max = if self.header.first().or(input.first()).is_some_and(|b| b & 8 != 0) { 125 } else { room };
            let allowed = Allowed { has_message, takes_deflated, bytes_max };
            if self.header.is_empty() {
                if let Some((header, used)) = Header::read(input, allowed)? {
                    take(input, 0, used);
                    return self.begin(header, limits).map(Some);
                }
            } else if let Some((header, _)) = Header::read(&self.header, allowed)? {
                self.header.clear();
                return self.begin(header, limits).map(Some);
            }
            if input.is_empty() {
                return Ok(None);
            }
            self.header.extend_from_slice(take(input, 0, 1));
        }
    }

    fn begin(&mut self, header: Header, limits: &Limits) -> Result<Header, Code> {
        if !header.is_control() {
            self.fragments += 1;
            if header.opcode != CONTINUATION {
                (self.is_text, self.is_deflated) = (header.opcode == TEXT, header.is_deflated);
            }
            if self.fragments as usize > limits.fragments_per_message_max {
                return Err(Code::MessageTooBig);
            }
        }
        Ok(header)
    }

    fn end_control(&mut self, opcode: u8) -> Result<Event<'_>, Code> {
        self.is_spent = self.fragments == 0;
        event(opcode, false, &self.control)
    }

    /// Fails at the first fragment, or part of one, that no UTF-8 text can begin with.
    fn check_text(&mut self, is_last: bool) -> Result<(), Code> {
        if !self.is_text || self.is_deflated {
            return Ok(());
        }
        let tail = self.message.get(self.checked_bytes..).unwrap_or(&[]);
        match std::str::from_utf8(tail) {
            Ok(_) => self.checked_bytes = self.message.len(),
            Err(error) if error.error_len().is_none() && !is_last => self.checked_bytes += error.valid_up_to(),
            Err(_) => return Err(Code::TextInvalid),
        }
        Ok(())
    }
}

/// Cuts `skip` and then `length` bytes off the front of `input`; returns the latter.
fn take<'a>(input: &mut &'a mut [u8], skip: usize, length: usize) -> &'a mut [u8] {
    let (_, rest) = std::mem::take(input).split_at_mut(skip);
    let (taken, rest) = rest.split_at_mut(length);
    *input = rest;
    taken
}

/// Unmasks the part of a payload that begins `seen` bytes into it.
fn unmask(payload: &mut [u8], mut mask: [u8; 4], seen: usize) {
    mask.rotate_left(seen % 4);
    let half = u32::from_ne_bytes(mask);
    let wide = u64::from(half) << 32 | u64::from(half);
    let (words, tail) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in tail.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

/// The event of an unfragmented frame, or of a control frame.
fn event(opcode: u8, is_deflated: bool, payload: &[u8]) -> Result<Event<'_>, Code> {
    match opcode {
        TEXT | BINARY if is_deflated => Ok(Event::Deflated { payload, is_text: opcode == TEXT }),
        TEXT if std::str::from_utf8(payload).is_err() => Err(Code::TextInvalid),
        TEXT | BINARY => Ok(Event::Message { payload, is_text: opcode == TEXT }),
        PING => Ok(Event::Ping(payload)),
        PONG => Ok(Event::Pong),
        _ => read_close(payload),
    }
}

/// RFC 6455, 7.4: which codes may be sent, and that the reason is UTF-8.
fn read_close(payload: &[u8]) -> Result<Event<'_>, Code> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return match payload {
            [] => Ok(Event::Close { code: NO_CODE, reason: "" }),
            _ => Err(Code::ProtocolBroken),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Code::ProtocolBroken);
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Code::TextInvalid)?;
    Ok(Event::Close { code, reason })
}

#[cfg(test)]
mod tests;
