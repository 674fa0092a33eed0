//! The end of a connection, and what happens whenever its private bytes have left. Owns closing: every session ends with
//! exactly one code, and a close frame gets the chance to leave.
use super::connection::{Close, Phase};
use super::ledger::{brief, is_refusal};
use super::{Shard, SocketOutput};
use crate::codec::{Wire, sse};
use crate::codes::Code;
use crate::cursor::NONE;
use crate::report::Report;
use crate::websocket::{self, Event};

/// Bytes of a half-received message that a connection holds while it closes: a close frame is small.
const CLOSING_BYTES_MAX: usize = 1024;

impl Shard {
    /// All private bytes of a connection have left.
    pub(super) fn private_left<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.private.capacity() > 0 {
            connection.private = Vec::new();
        }
        self.uncount_rest(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.phase == Phase::Closing {
            if connection.is_finished {
                let exchange = connection.details.as_mut().and_then(|details| details.exchange.as_mut());
                if exchange.is_some_and(|exchange| std::mem::take(&mut exchange.lingers)) {
                    connection.is_finished = false;
                    return out.finish(socket);
                }
                self.closing.push(socket);
            }
            return;
        }
        if connection.mqtt.is_some() {
            self.resend(socket);
            self.stir_shared(socket);
        }
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.is_choked {
            connection.is_choked = false;
            self.resume(socket, out);
        }
        self.read_ahead(socket, out);
        if self.connections.get(socket).is_some_and(|connection| connection.is_watching) {
            self.owe_state(socket);
        }
    }

    /// A client that does not take its answers is not read until it does.
    pub(super) fn choke<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let bytes_max = self.settings.limits.reply_buffer_bytes_max;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.owed_bytes() > bytes_max && !connection.is_choked && connection.phase == Phase::Open {
            connection.is_choked = true;
            if !connection.is_paused {
                connection.is_paused = true;
                out.pause_read(socket);
            }
        }
    }

    /// Closes a WebSocket with a code and a reason; what was to be sent before it still is.
    pub(super) fn close(&mut self, socket: u32, code: Code, reason: &str) {
        self.close_until(socket, code, reason, None);
    }

    /// Closes a WebSocket whose peer broke it: where its next frame begins is not known, so none is awaited. The sending half ends
    /// behind the close frame, and the socket is let go when the peer has ended too (RFC 6455, 7.1.7).
    pub(super) fn break_off(&mut self, socket: u32, code: Code) {
        self.close(socket, code, code.sentence());
        if let Some(connection) = self.connections.get_mut(socket)
            && connection.phase == Phase::Closing
            && connection.mqtt.is_none()
        {
            connection.exchange().lingers = true;
            connection.is_finished = true;
        }
    }

    /// The same, saying when to come back.
    pub(super) fn close_until(&mut self, socket: u32, code: Code, reason: &str, reconnect_after_ms: Option<u64>) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.mqtt.is_some() {
            return self.end_for(socket, code, reason);
        }
        if connection.phase == Phase::Open && connection.wire.is_websocket() {
            let reason = websocket::close_reason(code, reason, reconnect_after_ms);
            websocket::close(&mut connection.private, code as u16, &reason);
        } else if connection.phase == Phase::Open && connection.wire != Wire::Poll {
            sse::put_close(&mut connection.private, code, reason, reconnect_after_ms);
        } else if connection.phase != Phase::Closing {
            self.refuse_under_way(socket, code, reason, reconnect_after_ms);
        }
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.phase != Phase::Closing {
            self.begin_close(socket, code as u16, reason);
        }
    }

    /// The peer closes: its code is echoed, and the socket is let go once that has left.
    pub(super) fn close_by_peer(&mut self, socket: u32, code: u16, reason: &str) {
        // Its code may be any, also one that would be a refusal were it ours.
        self.announce_silent(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.phase == Phase::Open {
            let echo = if code == 1005 { 1000 } else { code };
            websocket::close(&mut connection.private, echo, "");
        }
        connection.is_finished = true;
        self.begin_close(socket, if code == 1005 { 1000 } else { code }, reason);
    }

    /// Nothing more is read but the peer's close, nothing more is sent but what is private.
    pub(super) fn begin_close(&mut self, socket: u32, code: u16, reason: &str) {
        let deadline_ms = self.now.mono_ms + self.settings.limits.close_ms_max;
        self.commit();
        self.leave_all(socket);
        self.leave_accounts(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.phase == Phase::Http || !connection.wire.is_websocket() && connection.mqtt.is_none() {
            connection.is_finished = true;
        }
        connection.phase = Phase::Closing;
        connection.details().close.get_or_insert_with(|| Close { code, reason: brief(reason), deadline_ms });
        self.make_ready(socket);
    }

    /// Gives the peer of a connection that is closing at most so long from now on.
    pub(super) fn hurry_close(&mut self, socket: u32, most_ms: u64) {
        let until_ms = self.now.mono_ms + most_ms;
        if let Some(close) = self.connections.get_mut(socket).and_then(|c| c.details().close.as_mut()) {
            close.deadline_ms = close.deadline_ms.min(until_ms);
        }
    }

    /// While closing, only the peer's own close matters.
    pub(super) fn await_close(&mut self, socket: u32, mut input: &mut [u8]) {
        let settings = std::sync::Arc::clone(&self.settings);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.details.as_ref().is_some_and(|details| details.exchange.is_some()) {
            return;
        }
        let takes_deflated = connection.window_bits > 0;
        let mut reader = std::mem::take(&mut connection.reader);
        loop {
            match reader.read_agreed(&mut input, &settings.limits, takes_deflated) {
                Ok(Some(Event::Close { .. })) => {
                    connection.is_finished = true;
                    self.make_ready(socket);
                    return;
                }
                // The rest of what was refused: closing over unread bytes would reset the connection, and the peer might
                // never read why.
                Err(_) => return,
                Ok(None) => break,
                Ok(Some(_)) => {}
            }
        }
        if reader.held_bytes() <= CLOSING_BYTES_MAX {
            connection.reader = reader;
        }
    }

    /// Lets go of the connections that have nothing left to say. Only while nothing is in flight.
    pub(super) fn close_finished<O: SocketOutput>(&mut self, out: &mut O) {
        while let Some(socket) = self.closing.pop() {
            let is_done = |c: &super::connection::Connection| c.phase == Phase::Closing && c.is_finished;
            if self.connections.get(socket).is_some_and(is_done) {
                self.forget(socket, Code::GoingAway as u16, out);
            }
        }
    }

    /// The socket ended under us.
    pub fn gone<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        self.commit();
        let Some(connection) = self.connections.get_mut(socket) else { return };
        // A client may end its half and still read its answers.
        let owes_answers =
            connection.phase == Phase::Http || connection.phase == Phase::Closing && connection.is_finished;
        let has_more = connection.has_rest || !connection.private.is_empty();
        if owes_answers && has_more && !connection.is_blocked() {
            self.begin_close(socket, Code::ClosedNormally as u16, "");
            if let Some(connection) = self.connections.get_mut(socket) {
                connection.exchange().lingers = false;
            }
            return;
        }
        self.forget(socket, Code::GoingAway as u16, out);
    }

    /// Forgets a connection and closes its socket. Nothing of it may be in flight.
    pub(super) fn forget<O: SocketOutput>(&mut self, socket: u32, code: u16, out: &mut O) {
        self.leave_all(socket);
        self.detach_publisher(socket);
        self.uncount_rest(socket);
        self.forget_disk_wait(socket);
        self.release_exchange(socket);
        let close = self.connections.get(socket).and_then(|c| c.details.as_ref()?.close.as_ref());
        let code = close.map_or(code, |close| close.code);
        if !is_refusal(code) {
            self.announce_silent(socket);
        }
        self.note_end(socket, code);
        let connection_id = self.connection_id(socket);
        let Some(connection) = self.connections.take(socket) else { return };
        self.connection_count.leave(self.index, connection.origin);
        self.counters.connections = self.connections.len() as u64;
        let held = (connection.reader.held_bytes() + connection.mqtt.as_ref().map_or(0, |mqtt| mqtt.held.len())) as u64;
        self.counters.held_bytes = self.counters.held_bytes.saturating_sub(held);
        self.counters.count_ended(&connection, code);
        // Whoever is asked about it no longer needs to answer.
        if connection.is_asking || (connection.is_announced && self.settings.reports_sessions) {
            let duration_ms = connection.since.age_ms(self.now.mono_ms);
            self.report(Report::Disconnected { connection: connection_id, code, duration_ms });
        }
        out.close(socket);
    }

    /// Ends all subscriptions and watches of a connection.
    pub(super) fn leave_all(&mut self, socket: u32) {
        self.leave_client(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let mut id = std::mem::replace(&mut connection.first_cursor, NONE);
        let is_watching = std::mem::take(&mut connection.is_watching);
        while let Some(cursor) = self.cursors.get(id) {
            let next = cursor.next;
            self.remove_cursor(id);
            id = next;
        }
        if is_watching {
            self.unwatch_all(socket);
        }
    }
}
