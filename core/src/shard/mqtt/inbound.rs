//! From an MQTT connection's bytes to packets, each carried out in its order. Owns the bytes of a packet that is not whole, or
//! that waits for an answer of the server; what is wrong with a packet ends the connection with the standard's reason.
use crate::codes::Code;
use crate::mqtt::{self, Fault, Packet, Reason, Split, Version};
use crate::shard::connection::Phase;
use crate::shard::session::Step;
use crate::shard::{Shard, SocketOutput};

impl Shard {
    /// Bytes of a TCP connection to an MQTT listener.
    pub(in crate::shard) fn receive_packets<O: SocketOutput>(&mut self, socket: u32, bytes: &[u8], out: &mut O) {
        self.read_packets(socket, bytes);
        self.pause_asking(socket, out);
    }

    /// Carries out the packets that are whole and keeps the rest.
    pub(in crate::shard) fn read_packets(&mut self, socket: u32, bytes: &[u8]) {
        let now_ms = self.now.mono_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_asking = connection.is_asking;
        let Some(mqtt) = connection.mqtt.as_mut() else { return };
        mqtt.heard_ms = now_ms;
        let mut held = std::mem::take(&mut mqtt.held);
        let held_before = held.len();
        let input: &[u8] = if held.is_empty() && !is_asking {
            bytes
        } else {
            held.extend_from_slice(bytes);
            &held
        };
        let done = if is_asking { 0 } else { self.carry_out(socket, input) };
        let rest = input.get(done..).unwrap_or(&[]);
        let kept = if held.is_empty() {
            rest.to_vec()
        } else {
            held.drain(..done);
            held
        };
        self.hold_packet(socket, kept, held_before);
    }

    /// Returns how many bytes are done with.
    fn carry_out(&mut self, socket: u32, input: &[u8]) -> usize {
        let mut done = 0;
        let bytes_max = self.settings.limits.message_bytes_max;
        let alias_max = self.settings.limits.mqtt_aliases_max as u16;
        while let Some(rest) = input.get(done..).filter(|rest| !rest.is_empty()) {
            let Some(connection) = self.connections.get(socket).filter(|c| c.phase == Phase::Open) else { break };
            let Some(version) = connection.mqtt.as_ref().map(|mqtt| mqtt.version()) else { break };
            let (first, start, end) = match mqtt::split(rest, version, bytes_max) {
                Ok(Split::Whole { first, start, end }) => (first, start, end),
                Ok(Split::Part) => return done,
                Err(fault) => {
                    self.fail(socket, &fault);
                    break;
                }
            };
            let body = rest.get(start..end).unwrap_or(&[]);
            let step = match mqtt::parse(first, body, version, alias_max) {
                Ok(packet) => self.take_packet(socket, &packet),
                Err((fault, speaks)) => {
                    if version.is_none() {
                        self.refuse_connect(socket, speaks, &fault);
                    } else {
                        self.fail(socket, &fault);
                    }
                    break;
                }
            };
            match step {
                Ok(Step::Done) => done += end,
                Ok(step) => {
                    if let Some(connection) = self.connections.get_mut(socket) {
                        connection.is_asking = true;
                    }
                    return done + if step == Step::Again { 0 } else { end };
                }
                Err(fault) => {
                    self.fail(socket, &fault);
                    break;
                }
            }
        }
        input.len()
    }

    fn hold_packet(&mut self, socket: u32, held: Vec<u8>, held_before: usize) {
        let now_ms = self.now.mono_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_half = !held.is_empty() && !connection.is_asking;
        match connection.details.as_mut() {
            Some(details) if !is_half => details.half_since_ms = None,
            None if !is_half => {}
            _ => {
                connection.details().half_since_ms.get_or_insert(now_ms);
            }
        }
        let count = held.len();
        if let Some(mqtt) = connection.mqtt.as_mut() {
            mqtt.held = held;
        }
        self.counters.held_bytes = (self.counters.held_bytes + count as u64).saturating_sub(held_before as u64);
        let share = self.settings.limits.partial_bytes_max / usize::from(self.settings.shards.max(1));
        if count > 0 && self.counters.held_bytes as usize > share {
            self.close(socket, Code::PartialBytesExceeded, Code::PartialBytesExceeded.sentence());
        }
    }

    /// The server has answered, or the client identifier is free: goes on where the connection waited.
    pub(in crate::shard) fn unpark_packets<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        connection.is_asking = false;
        if connection.phase == Phase::Open {
            match self.go_on_arriving(socket) {
                Ok(Step::Done) => self.read_packets(socket, &[]),
                Ok(_) => {
                    if let Some(connection) = self.connections.get_mut(socket) {
                        connection.is_asking = true;
                    }
                }
                Err(fault) => self.fail(socket, &fault),
            }
        }
        let Some(connection) = self.connections.get_mut(socket).filter(|connection| !connection.is_asking) else {
            return;
        };
        let parked = connection.details.as_mut().and_then(|details| details.parked.take());
        if let Some(mut parked) = parked
            && connection.phase == Phase::Open
        {
            self.read_frames(socket, &mut parked.rest, out);
        }
        if self.connections.get(socket).is_some_and(|connection| !connection.is_asking) {
            self.resume(socket, out);
        }
    }

    fn take_packet(&mut self, socket: u32, packet: &Packet<'_>) -> Result<Step, Fault> {
        if !matches!(packet, Packet::Publish(_)) {
            // Answers leave in the order of the questions.
            self.commit();
        }
        match packet {
            Packet::Connect(connect) => self.arrive_client(socket, connect),
            Packet::Publish(publish) => self.take_publish(socket, publish),
            Packet::Pubrel(release) => Ok(self.release_publish(socket, release.packet_id)),
            Packet::Puback(ack) => self.take_puback(socket, ack),
            Packet::Pubrec(ack) => self.take_pubrec(socket, ack),
            Packet::Pubcomp(ack) => self.take_pubcomp(socket, ack),
            Packet::Subscribe(subscribe) => self.take_subscribe(socket, subscribe),
            Packet::Unsubscribe(unsubscribe) => Ok(self.take_unsubscribe(socket, unsubscribe)),
            Packet::Pingreq => {
                self.say(socket, |mqtt, out| mqtt.writer.pingresp(out));
                Ok(Step::Done)
            }
            Packet::Disconnect(disconnect) => self.take_disconnect(socket, disconnect),
        }
    }

    /// Appends a packet to what is this client's own. One that is larger than it takes ends the connection [MQTT-3.1.2-24].
    pub(super) fn say(&mut self, socket: u32, write: impl FnOnce(&mut super::Mqtt, &mut Vec<u8>)) {
        let Some(connection) = self.connections.get_mut(socket).filter(|c| c.phase == Phase::Open) else { return };
        let Some(mqtt) = connection.mqtt.as_mut() else { return };
        let start = connection.private.len();
        write(mqtt, &mut connection.private);
        if connection.private.len() - start > mqtt.packet_bytes_max as usize {
            connection.private.truncate(start);
            return self.fail(socket, &Fault::new(Reason::PACKET_TOO_LARGE, "the answer is larger than you take"));
        }
        self.make_ready(socket);
    }

    /// What a client said before its CONNECT was whole is answered in the standard that it seems to speak, if it can be.
    fn refuse_connect(&mut self, socket: u32, speaks: Option<Version>, fault: &Fault) {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        if let Some(version) = speaks {
            mqtt.writer.version = version;
            mqtt.stage = super::Stage::Arriving;
        }
        self.fail(socket, fault);
    }

    /// Ends a connection whose packet was wrong.
    pub(super) fn fail(&mut self, socket: u32, fault: &Fault) {
        self.counters.commands_refused += 1;
        self.tell_refusal(socket, fault.code, &format!("MQTT 0x{:02x}: {}", fault.reason.0, fault.text));
        self.end(socket, fault.reason, &fault.text, u16::from(fault.reason.0));
    }

    /// A connection closed for one of our reasons.
    pub(in crate::shard) fn end_for(&mut self, socket: u32, code: Code, text: &str) {
        self.end(socket, reason_of(code), text, code as u16);
    }
}

/// Whether MQTT's code for one of ours says too little, so that an answer needs a reason string.
pub(super) fn is_worded(code: Code) -> bool {
    code == Code::AuthorizerTimeout || matches!(reason_of(code), Reason::QUOTA | Reason::UNSPECIFIED)
}

/// What one of our codes is in MQTT.
pub(super) fn reason_of(code: Code) -> Reason {
    match code {
        Code::ConnectMissing | Code::TokenMissing | Code::TokenRevoked | Code::ConnectRefused => Reason::NOT_AUTHORIZED,
        Code::PublishForbidden | Code::SubscribeForbidden => Reason::NOT_AUTHORIZED,
        Code::TokenInvalid => Reason::BAD_CREDENTIALS,
        Code::TokenExpired => Reason::CONNECT_TIME,
        Code::SubjectInvalid => Reason::TOPIC_INVALID,
        Code::PatternInvalid => Reason::FILTER_INVALID,
        Code::RateExceeded
        | Code::SubscriptionsTooMany
        | Code::StreamsTooMany
        | Code::SubjectsTooMany
        | Code::SnapshotTooBig
        | Code::ShareExceeded => Reason::QUOTA,
        Code::NodeBusy | Code::PartialBytesExceeded | Code::ConnectsTooMany => Reason::QUOTA,
        Code::Draining | Code::GoingAway => Reason::SHUTTING_DOWN,
        Code::AuthorizerUnavailable | Code::KeysUnavailable => Reason::UNAVAILABLE,
        Code::IdleTimeout => Reason::KEEP_ALIVE_TIMEOUT,
        Code::MessageTooBig => Reason::PACKET_TOO_LARGE,
        Code::MessageTimeout => Reason::PROTOCOL_ERROR,
        Code::MovedByOperator | Code::ClosedByOperator | Code::RightsChanged => Reason::ADMINISTRATIVE,
        Code::ContentInvalid => Reason::PAYLOAD_INVALID,
        // Of the codes that SUBACK and PUBACK have, the one that says: valid, and not taken.
        Code::AuthorizerTimeout => Reason::IMPLEMENTATION,
        _ => Reason::UNSPECIFIED,
    }
}
