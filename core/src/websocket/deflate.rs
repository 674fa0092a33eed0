//! permessage-deflate (RFC 7692) without context takeover in either direction: a message stands alone, so that one compressed
//! frame serves every reader and a connection remembers nothing. Owns the deflated form of a frame and its undoing; who
//! agreed to it is `http::extensions`', which frames are compressed the shard's. Invariant: inflating never makes more than
//! the limit says, whatever the input.
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::DEFLATED;
use crate::codes::Code;

/// Windows that can be compressed within: 512 bytes to 32 kB.
pub const WINDOW_BITS_MIN: u8 = 9;
pub const WINDOW_BITS_MAX: u8 = 15;
const WINDOWS: usize = (WINDOW_BITS_MAX - WINDOW_BITS_MIN + 1) as usize;

/// What ends every flushed block, and is left out (RFC 7692, 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// More than what deflating adds to bytes that do not get shorter.
const SLACK_BYTES: usize = 64;
/// Room that inflating begins with.
const ROOM_BYTES: usize = 4096;

/// Compresses frames; one for a whole shard. Some 260 kB for each size of window in use.
#[derive(Debug, Default)]
pub struct Deflater {
    by_window: [Option<Box<Compress>>; WINDOWS],
    payload: Vec<u8>,
}

impl Deflater {
    /// Compresses the one frame that stands in `frame` from `begin` on, where that makes it shorter.
    pub fn squeeze(&mut self, window_bits: u8, frame: &mut Vec<u8>, begin: usize) {
        let window_bits = window_bits.clamp(WINDOW_BITS_MIN, WINDOW_BITS_MAX);
        let Some((first, payload)) = split(frame.get(begin..).unwrap_or(&[])) else { return };
        let Some(slot) = self.by_window.get_mut(usize::from(window_bits - WINDOW_BITS_MIN)) else { return };
        let compress = slot.get_or_insert_with(|| {
            Box::new(Compress::new_with_window_bits(Compression::default(), false, window_bits))
        });
        compress.reset();
        self.payload.clear();
        self.payload.reserve(payload.len() + payload.len() / 1000 + SLACK_BYTES);
        let status = compress.compress_vec(payload, &mut self.payload, FlushCompress::Sync);
        let is_whole = status.is_ok() && compress.total_in() == payload.len() as u64 && self.payload.ends_with(&TAIL);
        self.payload.truncate(self.payload.len().saturating_sub(TAIL.len()));
        if !is_whole || self.payload.len() >= payload.len() {
            return;
        }
        let opcode = first & 15;
        frame.truncate(begin);
        super::write::put_frame(frame, opcode, self.payload.len(), |out| out.extend_from_slice(&self.payload));
        if let Some(first) = frame.get_mut(begin) {
            *first |= DEFLATED;
        }
    }
}

/// The first byte and the payload of an unmasked frame that is whole.
fn split(frame: &[u8]) -> Option<(u8, &[u8])> {
    let &[first, length, ..] = frame else { return None };
    let header_bytes = match length {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    Some((first, frame.get(header_bytes..)?))
}

/// Inflates messages; one for a whole shard.
#[derive(Debug, Default)]
pub struct Inflater {
    decompress: Option<Box<Decompress>>,
}

impl Inflater {
    /// What a deflated message was, into `out`.
    ///
    /// # Errors
    /// The code to close with: the message is larger than `bytes_max`, was not deflated at all, or is a text and no UTF-8.
    pub fn inflate(&mut self, payload: &[u8], is_text: bool, bytes_max: usize, out: &mut Vec<u8>) -> Result<(), Code> {
        let decompress = self.decompress.get_or_insert_with(|| Box::new(Decompress::new(false)));
        decompress.reset(false);
        out.clear();
        for mut input in [payload, &TAIL] {
            while !input.is_empty() {
                // One byte more than is allowed tells a message that is too large from one that just fits.
                let room = ROOM_BYTES.max(out.capacity()).min(bytes_max + 1 - out.len());
                out.reserve_exact(room);
                let before = (decompress.total_in(), out.len());
                let status = decompress.decompress_vec(input, out, FlushDecompress::Sync);
                let status = status.map_err(|_| Code::ProtocolBroken)?;
                if out.len() > bytes_max {
                    return Err(Code::MessageTooBig);
                }
                let used = (decompress.total_in() - before.0) as usize;
                input = input.get(used..).unwrap_or(&[]);
                match status {
                    // A block may say that it is the last; what follows begins anew (RFC 7692, 7.2.3.4).
                    Status::StreamEnd => decompress.reset(false),
                    _ if used == 0 && out.len() == before.1 => return Err(Code::ProtocolBroken),
                    _ => {}
                }
            }
        }
        if is_text && std::str::from_utf8(out).is_err() { Err(Code::TextInvalid) } else { Ok(()) }
    }
}
