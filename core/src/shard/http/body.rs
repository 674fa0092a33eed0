//! A body that comes in pieces, by its length or in chunks. What is held of it is counted against the node's limit.
use std::sync::Arc;

use super::{Receiving, Rest, Taken};
use crate::codes::Code;
use crate::http::{self, Chunked, Framing};
use crate::shard::Shard;

impl Shard {
    pub(super) fn begin_body(&mut self, socket: u32, head: &[u8], framing: Framing, is_awaited: bool) {
        if is_awaited {
            self.commit();
        }
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if is_awaited {
            connection.private.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let rest = match framing {
            Framing::Length(length) => Rest::Length(length),
            Framing::None | Framing::Chunked => Rest::Chunked(Chunked::default()),
        };
        let receiving = Receiving { head: head.to_vec(), body: Vec::new(), rest };
        connection.exchange().receiving = Some(Box::new(receiving));
        // Its own deadline begins now.
        connection.details().half_since_ms = None;
        self.make_ready(socket);
    }

    /// Goes on with a body; when it is whole, the request is answered.
    pub(super) fn take_body(&mut self, socket: u32, rest: &mut &[u8]) -> Taken {
        let settings = Arc::clone(&self.settings);
        let Some(connection) = self.connections.get_mut(socket) else { return Taken::End };
        let Some(mut receiving) = connection.exchange().receiving.take() else { return Taken::Next };
        let before = receiving.body.capacity();
        let is_whole = match &mut receiving.rest {
            Rest::Length(left) => {
                let (part, behind) = rest.split_at_checked((*left).min(rest.len())).unwrap_or((rest, &[]));
                receiving.body.extend_from_slice(part);
                *left -= part.len();
                *rest = behind;
                Ok(*left == 0)
            }
            Rest::Chunked(chunked) => chunked.read(rest, &mut receiving.body, &settings.limits),
        };
        let held = receiving.body.capacity();
        self.counters.held_bytes = (self.counters.held_bytes + held as u64).saturating_sub(before as u64);
        match is_whole {
            Ok(false) if self.is_crowded() => {
                self.release_body(held);
                self.refuse_all(socket, &http::refuse(Code::PartialBytesExceeded, ""))
            }
            Ok(false) => {
                if let Some(connection) = self.connections.get_mut(socket) {
                    connection.exchange().receiving = Some(receiving);
                }
                Taken::More
            }
            Ok(true) => {
                self.release_body(held);
                if let Some(details) = self.connections.get_mut(socket).and_then(|c| c.details.as_mut()) {
                    details.half_since_ms = None;
                }
                match http::read_head(&receiving.head, &settings.limits) {
                    Ok(Some(head)) => self.answer_request(socket, &head, &receiving.head, &receiving.body, 0),
                    // It has been read before.
                    _ => Taken::End,
                }
            }
            Err(refused) => {
                self.release_body(held);
                self.refuse_all(socket, &refused)
            }
        }
    }

    fn is_crowded(&self) -> bool {
        let share = self.settings.limits.partial_bytes_max / usize::from(self.settings.shards.max(1));
        self.counters.held_bytes as usize > share
    }

    fn release_body(&mut self, bytes: usize) {
        self.counters.held_bytes = self.counters.held_bytes.saturating_sub(bytes as u64);
    }

    /// Bytes of a body that is half received, when its connection goes.
    pub(in crate::shard) fn release_exchange(&mut self, socket: u32) {
        let exchange =
            self.connections.get_mut(socket).and_then(|c| c.details.as_mut()).and_then(|d| d.exchange.as_mut());
        let held = exchange.and_then(|exchange| exchange.receiving.take()).map_or(0, |body| body.body.capacity());
        self.release_body(held);
    }
}
