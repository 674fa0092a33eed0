//! NATS over TCP, core only: no acknowledgement exists, so a window counts what has been delivered.
use super::{Dialect, Heard, Outgoing, Place, Role, quote, write_content, write_decimal};

pub(super) struct Nats {
    content: Vec<u8>,
}

impl Nats {
    pub(super) fn new(content: Vec<u8>) -> Self {
        Self { content }
    }
}

impl Dialect for Nats {
    fn greet(&self, _role: Role, out: &mut Vec<u8>) {
        out.extend_from_slice(b"CONNECT {\"verbose\":false,\"pedantic\":false,\"protocol\":1}\r\n");
    }

    /// The PONG to the PING behind it says that the subscription stands.
    fn join(&self, subject: u32, _after: Option<Place>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"SUB bench.");
        write_decimal(u64::from(subject), out);
        out.extend_from_slice(b" 1\r\nPING\r\n");
    }

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>) {
        out.extend_from_slice(b"PUB bench.");
        write_decimal(u64::from(message.subject), out);
        out.push(b' ');
        write_decimal(self.content.len() as u64, out);
        out.extend_from_slice(b"\r\n");
        write_content(&self.content, message, out);
        out.extend_from_slice(b"\r\n");
    }

    fn next<'a>(&self, _is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)> {
        let line = bytes.iter().position(|&byte| byte == b'\n')? + 1;
        let text = bytes.get(..line)?;
        let heard = if text.starts_with(b"MSG ") {
            let content = bytes.get(line..line + self.content.len())?;
            bytes.get(line + self.content.len() + 1)?;
            return Some((line + self.content.len() + 2, Heard::Message { content, head: &[] }));
        } else if text.starts_with(b"INFO ") {
            Heard::Ready
        } else if text.starts_with(b"PONG") {
            Heard::Joined(None)
        } else if text.starts_with(b"PING") {
            Heard::Echo(b"PONG\r\n".to_vec())
        } else {
            Heard::Fault(quote(text))
        };
        Some((line, heard))
    }

    fn acks(&self) -> bool {
        false
    }
}
