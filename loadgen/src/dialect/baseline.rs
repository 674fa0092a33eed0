//! The baseline's wire: WebSocket frames around a fixed layout that nobody has to parse.
//! First client frame: `S` or `P` (`p`: without acknowledgements), then the group as a little-endian u32. A publish is the
//! group and the content, under a mask of zeros, so that the baseline may pass the content on as it came.
//! Answers: one byte `S` when joined, four bytes (a little-endian count) as an acknowledgement, anything longer is content.
use super::{Dialect, Heard, Outgoing, Place, Role, quote, write_content};
use crate::websocket;

pub(super) struct Baseline {
    host: String,
    content: Vec<u8>,
}

impl Baseline {
    pub(super) fn new(host: &str, content: Vec<u8>) -> Self {
        Self { host: host.to_owned(), content }
    }
}

/// A frame of less than 64 kB whose mask is zero.
fn write_bare(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0x82, 0xfe, 0, 0, 0, 0, 0, 0]);
    fill(out);
    let length = (out.len() - start - 8) as u16;
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

impl Dialect for Baseline {
    fn greet(&self, _role: Role, out: &mut Vec<u8>) {
        websocket::write_upgrade("/", &self.host, "", out);
    }

    fn join(&self, subject: u32, _after: Option<Place>, out: &mut Vec<u8>) {
        write_bare(out, |out| {
            out.push(b'S');
            out.extend_from_slice(&subject.to_le_bytes());
        });
    }

    fn begin(&self, subject: u32, wants_acks: bool, out: &mut Vec<u8>) {
        write_bare(out, |out| {
            out.push(if wants_acks { b'P' } else { b'p' });
            out.extend_from_slice(&subject.to_le_bytes());
        });
    }

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>) {
        write_bare(out, |out| {
            out.extend_from_slice(&message.subject.to_le_bytes());
            write_content(&self.content, message, out);
        });
    }

    fn next<'a>(&self, is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)> {
        if !is_ready {
            let (length, is_yes) = websocket::read_upgrade(bytes)?;
            return Some((length, if is_yes { Heard::Ready } else { Heard::Fault(quote(bytes)) }));
        }
        let (length, opcode, payload) = websocket::read_frame(bytes)?;
        let payload = bytes.get(payload)?;
        let heard = match (opcode, payload) {
            (websocket::BINARY, [b'S']) => Heard::Joined(None),
            (websocket::BINARY, &[a, b, c, d]) => Heard::Acked(u32::from_le_bytes([a, b, c, d])),
            (websocket::BINARY, content) => Heard::Message { content, head: &[] },
            _ => Heard::Fault(quote(payload)),
        };
        Some((length, heard))
    }

    fn acks(&self) -> bool {
        true
    }
}
