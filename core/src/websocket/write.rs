//! Frames out: unmasked as a server sends them, masked as a client must.

use crate::codes::Code;
use crate::json::{put_number, put_string};

use super::{BINARY, CLOSE, PING, PONG, TEXT};

/// Longest reason a close frame holds: 125 bytes less the code.
const REASON_BYTES_MAX: usize = 123;

/// The key a client masks its frames with. A load generator may use one for all: masking protects proxies, not secrets.
pub type Mask = [u8; 4];

/// Appends one frame whose payload `write` appends. `guess` is the payload's expected length: when it names the right size
/// of header (2, 4 or 10 bytes) nothing is moved afterwards.
#[inline]
pub(super) fn put_frame(out: &mut Vec<u8>, opcode: u8, guess: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    let guessed = header_bytes(guess);
    out.extend_from_slice(&[0; 10][..guessed]);
    write(out);
    let length = out.len() - begin - guessed;
    let needed = header_bytes(length);
    if needed > guessed {
        out.splice(begin..begin, std::iter::repeat_n(0, needed - guessed));
    } else if needed < guessed {
        out.drain(begin..begin + guessed - needed);
    }
    let header = &mut out[begin..begin + needed];
    header[0] = 0x80 | opcode;
    match needed {
        2 => header[1] = length as u8,
        4 => {
            header[1] = 126;
            header[2..].copy_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            header[1] = 127;
            header[2..].copy_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

const fn header_bytes(length: usize) -> usize {
    match length {
        0..=125 => 2,
        126..=0xffff => 4,
        _ => 10,
    }
}

/// Appends a text frame whose payload, about `guess` bytes, `write` appends.
#[inline]
pub fn text(out: &mut Vec<u8>, guess: usize, write: impl FnOnce(&mut Vec<u8>)) {
    put_frame(out, TEXT, guess, write);
}

/// Appends a binary frame whose payload, about `guess` bytes, `write` appends.
#[inline]
pub fn binary(out: &mut Vec<u8>, guess: usize, write: impl FnOnce(&mut Vec<u8>)) {
    put_frame(out, BINARY, guess, write);
}

/// Appends a ping frame.
pub fn ping(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x80 | PING, 0]);
}

/// Appends a pong that echoes `payload`.
pub fn pong(out: &mut Vec<u8>, payload: &[u8]) {
    put_frame(out, PONG, payload.len(), |out| out.extend_from_slice(payload));
}

/// Appends a close frame; `reason` is cut at a character boundary to 123 bytes. A code that may not be sent (1005) sends none.
pub fn close(out: &mut Vec<u8>, code: u16, reason: &str) {
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        out.extend_from_slice(&[0x80 | CLOSE, 0]);
        return;
    }
    let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
    put_frame(out, CLOSE, reason.len() + 2, |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(reason.as_bytes());
    });
}

/// The reason of a close: JSON with the code's name, when to come back, and as much of `reason` as fits.
#[must_use]
pub fn close_reason(code: Code, reason: &str, reconnect_after_ms: Option<u64>) -> String {
    let mut out = Vec::with_capacity(REASON_BYTES_MAX);
    out.extend_from_slice(b"{\"name\":");
    put_string(&mut out, code.name());
    if let Some(after_ms) = reconnect_after_ms {
        out.extend_from_slice(b",\"reconnect_after_ms\":");
        put_number(&mut out, after_ms);
    }
    let without = out.len();
    let mut said = reason.to_owned();
    while !said.is_empty() {
        out.extend_from_slice(b",\"reason\":");
        put_string(&mut out, &said);
        let over = (out.len() + 1).saturating_sub(REASON_BYTES_MAX);
        if over == 0 {
            break;
        }
        out.truncate(without);
        shorten(&mut said, over);
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Takes at least so many bytes of a sentence away, and says so; nothing is left of one that has no more to say then.
fn shorten(said: &mut String, over: usize) {
    const CUT: &str = "…";
    let whole = said.strip_suffix(CUT).unwrap_or(said);
    let end = whole.floor_char_boundary(said.len().saturating_sub(over + CUT.len()));
    let left = whole[..end].trim_end().len();
    said.truncate(left);
    if left > 0 {
        said.push_str(CUT);
    }
}

/// Appends a client's frame: `opcode` 1 text, 2 binary, 8 close, 9 ping, 10 pong.
pub fn frame(out: &mut Vec<u8>, opcode: u8, mask: Mask, payload: &[u8]) {
    let begin = out.len();
    put_frame(out, opcode & 15, payload.len(), |_| {});
    out.truncate(begin + 1);
    match payload.len() {
        length @ 0..=125 => out.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            out.push(0xfe);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(0xff);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let body = out.len();
    out.extend_from_slice(payload);
    super::unmask(&mut out[body..], mask, 0);
}
