//! Answers written, and what follows them: the next request, or the end of the connection.
use std::sync::Arc;

use super::Taken;
use crate::codes::Code;
use crate::http::{Answer, Refused};
use crate::shard::connection::Phase;
use crate::shard::{Shard, SocketOutput};

impl Shard {
    /// Writes an answer; those before it have been.
    pub(super) fn answer(&mut self, socket: u32, answer: &Answer<'_>) {
        let (wall_ms, settings) = (self.now.wall_ms, Arc::clone(&self.settings));
        if let Some(connection) = self.connections.get_mut(socket) {
            let shape = connection.exchange().shape;
            shape.put(&mut connection.private, wall_ms, &settings.origins, answer);
            self.make_ready(socket);
        }
    }

    pub(super) fn answer_refusal(&mut self, socket: u32, refused: &Refused) {
        self.commit();
        self.counters.count_refused_command(refused.code);
        self.tell_refusal(socket, refused.code, &refused.reason);
        self.put_refusal(socket, refused);
    }

    /// Writes a refusal where the answers before it are known to be written.
    pub(super) fn put_refusal(&mut self, socket: u32, refused: &Refused) {
        let (wall_ms, settings) = (self.now.wall_ms, Arc::clone(&self.settings));
        if let Some(connection) = self.connections.get_mut(socket) {
            let shape = connection.exchange().shape;
            shape.put_refusal(&mut connection.private, wall_ms, &settings.origins, refused);
            self.make_ready(socket);
        }
    }

    /// After an answer: the next request, unless the last one was the last.
    pub(super) fn after_answer(&mut self, socket: u32) -> Taken {
        let Some(connection) = self.connections.get_mut(socket) else { return Taken::End };
        let exchange = connection.exchange();
        if exchange.shape.is_last {
            // Whoever did not say so itself may have sent more.
            exchange.lingers = true;
            self.begin_close(socket, Code::ClosedNormally as u16, "");
            return Taken::End;
        }
        Taken::Next
    }

    /// Ends a request that is under way with a code, for a connection that is being closed.
    pub(in crate::shard) fn refuse_under_way(&mut self, socket: u32, code: Code, reason: &str, after_ms: Option<u64>) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_polling = connection.phase == Phase::Open;
        let details = connection.details();
        let has_begun = !details.held.is_empty() || details.half_since_ms.is_some();
        let exchange = connection.exchange();
        if !is_polling && !has_begun && exchange.kept.is_none() {
            return;
        }
        exchange.shape.is_last = true;
        exchange.lingers = has_begun;
        (exchange.poll, exchange.kept) = (None, None);
        let after_ms = u32::try_from(after_ms.unwrap_or(0)).unwrap_or(u32::MAX);
        let refused = Refused { code, reason: reason.to_owned(), lines: "", after_ms };
        self.put_refusal(socket, &refused);
    }

    /// Deadlines of a connection between its requests and within one.
    pub(in crate::shard) fn look_at_request<O: SocketOutput>(
        &mut self,
        socket: u32,
        duration_ms: u64,
        silent_ms: u64,
        out: &mut O,
    ) {
        let limits = &self.settings.limits;
        let (handshake_ms, message_ms, idle_ms) = (limits.handshake_ms_max, limits.message_ms_max, limits.idle_ms_max);
        let now_ms = self.now.mono_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.is_asking {
            return;
        }
        let details = connection.details.as_ref();
        let exchange = details.and_then(|details| details.exchange.as_ref());
        let has_body = exchange.is_some_and(|exchange| exchange.receiving.is_some());
        let allowed_ms = if has_body { message_ms } else { handshake_ms };
        let since_ms = details.and_then(|details| details.half_since_ms);
        // Who has begun to ask is told; who never said a word is not.
        if since_ms.is_some_and(|since_ms| now_ms >= since_ms + allowed_ms) {
            self.counters.count_refused(Code::RequestTimeout);
            self.close(socket, Code::RequestTimeout, "");
        } else if exchange.is_none() && since_ms.is_none() && duration_ms >= handshake_ms {
            self.counters.count_refused(Code::RequestTimeout);
            self.forget(socket, Code::RequestTimeout as u16, out);
        } else if silent_ms >= idle_ms {
            self.forget(socket, Code::IdleTimeout as u16, out);
        }
    }
}
