//! nchan over WebSocket: the address names the channel, and every publish is answered by a line of figures.
use super::{Dialect, Heard, Outgoing, Place, Role, quote, write_content};
use crate::websocket;

pub(super) struct Nchan {
    host: String,
    content: Vec<u8>,
}

impl Nchan {
    pub(super) fn new(host: &str, content: Vec<u8>) -> Self {
        Self { host: host.to_owned(), content }
    }
}

impl Dialect for Nchan {
    fn greet(&self, role: Role, out: &mut Vec<u8>) {
        let path = match role {
            Role::Subscriber(subject) => format!("/sub/{subject}"),
            Role::Publisher(subject) => format!("/pub/{subject}"),
        };
        websocket::write_upgrade(&path, &self.host, "", out);
    }

    fn join(&self, _subject: u32, _after: Option<Place>, _out: &mut Vec<u8>) {}

    fn joins_by_greeting(&self) -> bool {
        true
    }

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>) {
        websocket::write_frame(websocket::TEXT, out, |out| write_content(&self.content, message, out));
    }

    fn next<'a>(&self, is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)> {
        if !is_ready {
            let (length, is_yes) = websocket::read_upgrade(bytes)?;
            return Some((length, if is_yes { Heard::Ready } else { Heard::Fault(quote(bytes)) }));
        }
        let (length, opcode, payload) = websocket::read_frame(bytes)?;
        let payload = bytes.get(payload)?;
        let heard = match opcode {
            websocket::TEXT | websocket::BINARY if payload.starts_with(br#"{"stamp":"#) => {
                Heard::Message { content: payload, head: &[] }
            }
            websocket::TEXT if payload.starts_with(b"queued messages:") => Heard::Acked(1),
            websocket::PING => {
                let mut pong = Vec::new();
                websocket::write_frame(websocket::PONG, &mut pong, |out| out.extend_from_slice(payload));
                Heard::Echo(pong)
            }
            _ => Heard::Fault(quote(payload)),
        };
        Some((length, heard))
    }

    fn acks(&self) -> bool {
        true
    }

    fn is_bound_to_subject(&self) -> bool {
        true
    }
}
