//! From a socket's bytes to commands: frames, and what waits for an answer of the server. Owns when a
//! connection is read; what a command means is the session's.
use std::net::SocketAddr;
use std::sync::Arc;

use super::access::Entry;
use super::connection::{Connection, Parked, Phase};
use super::mqtt::Mqtt;
use super::session::Step;
use super::{Shard, SocketOutput};
use crate::codec::{self, Wire};
use crate::codes::Code;
use crate::command::{Id, Reply};
use crate::holder::Holder;
use crate::mqtt::{Version, Writer};
use crate::position::Moment;
use crate::report::Report;
use crate::websocket::{self, Event};

/// Refused commands that the server is told of in a second.
const REFUSALS_TOLD_PER_S: u32 = 8;
/// Room for inflated messages that a shard keeps.
const INFLATED_BYTES_KEPT: usize = 65_536;

impl Shard {
    /// A socket was accepted by a listener (numbered as in the settings); it is refused at the limit and while draining.
    pub fn accept<O: SocketOutput>(&mut self, socket: u32, address: SocketAddr, listener: u8, out: &mut O) {
        let origin = self.share_of(address.ip());
        let code = if self.drain.is_some() {
            Some(Code::Draining)
        } else {
            let is_in = self.connection_count.enter(self.index, self.settings.limits.connections_max, origin);
            (!is_in).then_some(Code::ConnectionsTooMany)
        };
        if let Some(code) = code {
            self.counters.count_refused(code);
            self.note_refusal(address, code as u16, code.sentence());
            self.report(Report::Refused { address, code, reason: String::new() });
            out.close(socket);
            return;
        }
        let entry = self.enter(address.ip(), true);
        if let Entry::Ignored(excess) = entry {
            self.connection_count.leave(self.index, origin);
            let refusal = excess.refusal();
            self.counters.count_refused(refusal.code);
            self.report(Report::Refused { address, code: refusal.code, reason: refusal.reason });
            out.close(socket);
            return;
        }
        self.serial = self.serial.wrapping_add(1);
        let door = self.doors.door(listener, address, &self.settings);
        let mut connection = Connection::new(self.serial, address, listener, door, Moment::at(self.now.mono_ms));
        if self.settings.listeners.get(usize::from(listener)).is_some_and(|listener| listener.name.starts_with("mqtt"))
        {
            connection.phase = Phase::Open;
            connection.wire = Wire::Mqtt(Writer { version: Version::V3, is_websocket: false });
            connection.mqtt = Some(Box::new(Mqtt::new(false, self.now.mono_ms)));
        }
        match entry {
            Entry::Free(member) => connection.member = member,
            Entry::Refused(excess) | Entry::Ignored(excess) => connection.details().turned_away = Some(excess),
        }
        connection.origin = origin;
        self.counters.count_accepted(&connection);
        self.connections.insert_at(socket, connection);
        self.counters.connections = self.connections.len() as u64;
    }

    /// Bytes came; they may be changed (unmasked) in place.
    pub fn receive<O: SocketOutput>(&mut self, socket: u32, bytes: &mut [u8], out: &mut O) {
        let now = Moment::at(self.now.mono_ms);
        self.counters.bytes_in += bytes.len() as u64;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        self.counters.of(connection).bytes_in += bytes.len() as u64;
        connection.heard = now;
        connection.is_pinged = false;
        match connection.phase {
            Phase::Open | Phase::Closing if connection.speaks_packets() => self.receive_packets(socket, bytes, out),
            Phase::Http => self.read_requests(socket, bytes, out),
            Phase::Open if connection.wire == Wire::Poll => self.read_requests(socket, bytes, out),
            // Nothing is asked behind an answer without an end.
            Phase::Open if !connection.wire.is_websocket() => {}
            Phase::Open if connection.is_asking => {
                if let Some(parked) = connection.details().parked.as_mut() {
                    parked.rest.extend_from_slice(bytes);
                }
            }
            Phase::Open => self.read_frames(socket, bytes, out),
            Phase::Closing => self.await_close(socket, bytes),
        }
    }

    pub(super) fn read_frames<O: SocketOutput>(&mut self, socket: u32, mut input: &mut [u8], out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let mut reader = std::mem::take(&mut connection.reader);
        let held_before = reader.held_bytes();
        let settings = std::sync::Arc::clone(&self.settings);
        let takes_deflated = connection.window_bits > 0;
        loop {
            match reader.read_agreed(&mut input, &settings.limits, takes_deflated) {
                Ok(None) => break,
                Ok(Some(Event::Message { payload, is_text })) => self.message(socket, payload, is_text, 0),
                Ok(Some(Event::Deflated { payload, is_text })) => self.deflated(socket, payload, is_text),
                Ok(Some(Event::Ping(payload))) => self.pong(socket, payload),
                Ok(Some(Event::Pong)) => {}
                Ok(Some(Event::Close { code, reason })) => {
                    self.close_by_peer(socket, code, reason);
                    break;
                }
                Err(code) => {
                    self.break_off(socket, code);
                    break;
                }
            }
            let Some(connection) = self.connections.get_mut(socket) else { return };
            if connection.is_asking {
                let rest = input.to_vec();
                if connection.mqtt.is_some() {
                    connection.details().parked = Some(Parked { payload: Vec::new(), done: 0, rest });
                } else if let Some(parked) = connection.details().parked.as_mut() {
                    parked.rest = rest;
                }
                break;
            }
            if connection.phase != Phase::Open {
                break;
            }
        }
        self.keep_reader(socket, reader, held_before);
        self.pause_asking(socket, out);
    }

    /// A message that has to be inflated first; no further than a message may be large.
    fn deflated(&mut self, socket: u32, payload: &[u8], is_text: bool) {
        let bytes_max = self.settings.limits.message_bytes_max;
        let mut inflated = std::mem::take(&mut self.inflated);
        match self.inflater.inflate(payload, is_text, bytes_max, &mut inflated) {
            Ok(()) => self.message(socket, &inflated, is_text, 0),
            Err(code) => self.break_off(socket, code),
        }
        inflated.clear();
        inflated.shrink_to(INFLATED_BYTES_KEPT);
        self.inflated = inflated;
    }

    /// What conformance suites ask for: the message, as it came.
    fn echo(&mut self, socket: u32, payload: &[u8], is_text: bool) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let (out, window_bits) = (&mut connection.private, connection.window_bits);
        let begin = out.len();
        let write = |out: &mut Vec<u8>| out.extend_from_slice(payload);
        if is_text {
            websocket::text(out, payload.len(), write);
        } else {
            websocket::binary(out, payload.len(), write);
        }
        self.press.squeeze(window_bits, out, begin);
        self.make_ready(socket);
    }

    fn keep_reader(&mut self, socket: u32, reader: websocket::Reader, held_before: usize) {
        let held = reader.held_bytes();
        let now_ms = self.now.mono_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        connection.reader = reader;
        self.counters.held_bytes = (self.counters.held_bytes + held as u64).saturating_sub(held_before as u64);
        if held == 0 {
            if let Some(details) = &mut connection.details {
                details.half_since_ms = None;
            }
        } else if connection.details().half_since_ms.is_none() {
            connection.details().half_since_ms = Some(now_ms);
        }
        let share = self.settings.limits.partial_bytes_max / usize::from(self.settings.shards.max(1));
        if held > 0 && self.counters.held_bytes as usize > share {
            self.close(socket, Code::PartialBytesExceeded, Code::PartialBytesExceeded.sentence());
        }
    }

    pub(super) fn pause_asking<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        if let Some(connection) = self.connections.get_mut(socket)
            && connection.is_asking
            && !connection.is_paused
        {
            connection.is_paused = true;
            out.pause_read(socket);
        }
    }

    /// Executes the commands of one message from the given one on.
    fn message(&mut self, socket: u32, payload: &[u8], is_text: bool, done: usize) {
        let Some(connection) = self.connections.get(socket) else { return };
        let wire = connection.wire;
        if self.settings.echoes {
            return self.echo(socket, payload, is_text);
        }
        if connection.mqtt.is_some() && !is_text {
            return self.read_packets(socket, payload);
        }
        if is_text == (wire == Wire::Binary || wire.is_mqtt()) {
            self.close(socket, Code::DataUnsupported, Code::DataUnsupported.sentence());
            return;
        }
        let settings = std::sync::Arc::clone(&self.settings);
        let mut commands = match codec::commands(wire, payload, &settings.limits) {
            Ok(commands) => commands,
            Err(refusal) => {
                self.refuse(socket, &Id::None, &refusal);
                return;
            }
        };
        let mut index = 0;
        while let Some((id, command)) = commands.next() {
            index += 1;
            if index <= done {
                continue;
            }
            let step = match command {
                Ok(command) => self.execute(socket, &id, &command),
                Err(refusal) => Err(refusal),
            };
            match step {
                Ok(Step::Done) => {}
                Ok(step) => {
                    self.after_step(socket, Ok(step), payload, if step == Step::Again { index - 1 } else { index });
                    return;
                }
                Err(refusal) => self.refuse(socket, &id, &refusal),
            }
            if self.connections.get(socket).is_none_or(|c| c.phase != Phase::Open) {
                return;
            }
        }
    }

    /// Parks what waits for the server's answer.
    pub(super) fn after_step(
        &mut self,
        socket: u32,
        step: Result<Step, crate::command::Refusal>,
        payload: &[u8],
        done: usize,
    ) {
        match step {
            Ok(Step::Done) | Err(_) => {}
            Ok(Step::Wait | Step::Again) => {
                if let Some(connection) = self.connections.get_mut(socket) {
                    connection.is_asking = true;
                    connection.details().parked = Some(Parked { payload: payload.to_vec(), done, rest: Vec::new() });
                }
            }
        }
    }

    /// The server has answered: goes on where the connection waited.
    pub(super) fn unpark<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.phase == Phase::Http {
            return self.resume_request(socket, out);
        }
        // What it sent meanwhile is read only now.
        connection.heard = Moment::at(self.now.mono_ms);
        if let Some(mqtt) = &mut connection.mqtt {
            mqtt.hear(self.now.mono_ms);
            return self.unpark_packets(socket, out);
        }
        let Some(mut parked) = connection.details().parked.take() else { return };
        connection.is_asking = false;
        let is_text = connection.wire != Wire::Binary;
        // A connection that is being closed does nothing more, but the peer's own close is to be read.
        if !parked.payload.is_empty() && connection.phase == Phase::Open {
            self.message(socket, &parked.payload, is_text, parked.done);
        }
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.is_asking {
            if let Some(again) = connection.details().parked.as_mut() {
                again.rest = parked.rest;
            }
            return;
        }
        if !parked.rest.is_empty() && connection.phase == Phase::Open {
            self.read_frames(socket, &mut parked.rest, out);
        }
        self.resume(socket, out);
    }

    fn pong(&mut self, socket: u32, payload: &[u8]) {
        if let Some(connection) = self.connections.get_mut(socket)
            && connection.private.len() <= self.settings.limits.reply_buffer_bytes_max
        {
            websocket::pong(&mut connection.private, payload);
            self.make_ready(socket);
        }
    }

    /// Appends an answer to a connection's private bytes.
    pub(super) fn reply(&mut self, socket: u32, id: &Id, reply: &Reply<'_>) {
        if let Some(connection) = self.connections.get_mut(socket)
            && connection.phase == Phase::Open
        {
            codec::reply(connection.wire, &mut connection.private, id, reply);
            self.make_ready(socket);
        }
    }

    pub(super) fn refuse(&mut self, socket: u32, id: &Id, refusal: &crate::command::Refusal) {
        self.counters.count_refused_command(refusal.code);
        self.tell_refusal(socket, refusal.code, &refusal.reason);
        self.reply(socket, id, &Reply::Error { code: refusal.code, reason: &refusal.reason });
    }

    /// Operators see the last refusals, of every wire; a flood of them costs no more than a few reports a second.
    pub(super) fn tell_refusal(&mut self, socket: u32, code: Code, reason: &str) {
        let access = self.connections.get(socket).and_then(|connection| connection.access.as_ref());
        let holder = access.map_or_else(Holder::nobody, |access| Arc::clone(&access.holder));
        self.tell_refusal_of(socket, holder, code, reason);
    }

    /// The same of a holder whom the connection has shown and not become.
    pub(super) fn tell_refusal_of(&mut self, socket: u32, holder: Arc<Holder>, code: Code, reason: &str) {
        let connection_id = self.connection_id(socket);
        if !self.may_tell_refusal() {
            return;
        }
        let Some(connection) = self.connections.get(socket) else { return };
        let report = Report::CommandRefused {
            connection: connection_id,
            holder,
            address: connection.peer.address(),
            code,
            reason: if reason.is_empty() { code.sentence() } else { reason }.to_owned(),
            client: connection.mqtt.as_ref().map(|mqtt| mqtt.name().cloned().unwrap_or_default()),
        };
        self.report(report);
    }

    /// Whether one more may be told in this second.
    pub(super) fn may_tell_refusal(&mut self) -> bool {
        let second = (self.now.mono_ms / 1000) as u32;
        let told = if self.refusals_told.0 == second { self.refusals_told.1 } else { 0 };
        self.refusals_told = (second, told.saturating_add(1));
        told < REFUSALS_TOLD_PER_S
    }
}
