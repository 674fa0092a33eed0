//! What a client says of messages it was sent: PUBACK, PUBREC, PUBCOMP. Owns that what waited for it goes on.
use super::flight::Receipt;
use crate::cursor::CursorState;
use crate::mqtt::{Acknowledge, Fault, Reason};
use crate::shard::Shard;
use crate::shard::session::Step;

const PUBREL: u8 = 6;

impl Shard {
    pub(super) fn take_puback(&mut self, socket: u32, packet: &Acknowledge) -> Result<Step, Fault> {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return Ok(Step::Done) };
        let settled = mqtt.flight.acknowledge(packet.packet_id);
        let settled = settled.map_err(|()| Fault::protocol("PUBACK for a message of QoS 2"))?;
        self.dealing
            .settled
            .extend(settled.filter(|packet| packet.group > 0).map(|packet| (packet.group, packet.arrival)));
        self.go_on_sending(socket);
        Ok(Step::Done)
    }

    pub(super) fn take_pubrec(&mut self, socket: u32, packet: &Acknowledge) -> Result<Step, Fault> {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return Ok(Step::Done) };
        let is_failure = packet.reason.is_failure();
        let is_on_disk = mqtt.flight.is_on_disk(packet.packet_id);
        let dealt = mqtt.flight.dealt(packet.packet_id);
        if is_on_disk && dealt.is_some() {
            mqtt.on_disk_mut().has_settled = true;
        }
        self.dealing.settled.extend(dealt);
        let reason = match mqtt.flight.receive(packet.packet_id, is_failure) {
            Receipt::Wrong => return Err(Fault::protocol("PUBREC for a message of QoS 1")),
            Receipt::Taken => Reason::SUCCESS,
            Receipt::Unknown => Reason::PACKET_ID_UNKNOWN,
        };
        if is_on_disk {
            self.await_note(socket);
        }
        if is_failure {
            self.go_on_sending(socket);
        } else {
            self.say(socket, |mqtt, out| mqtt.writer.acknowledge(out, PUBREL, packet.packet_id, reason, ""));
        }
        Ok(Step::Done)
    }

    pub(super) fn take_pubcomp(&mut self, socket: u32, packet: &Acknowledge) -> Result<Step, Fault> {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return Ok(Step::Done) };
        match mqtt.flight.complete(packet.packet_id) {
            Receipt::Wrong => return Err(Fault::protocol("PUBCOMP for a message that was not released")),
            Receipt::Taken => self.go_on_sending(socket),
            Receipt::Unknown => {}
        }
        Ok(Step::Done)
    }

    /// A client that had taken all it could takes more.
    pub(super) fn go_on_sending(&mut self, socket: u32) {
        self.resend(socket);
        self.stir_shared(socket);
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        if mqtt.is_stalled && mqtt.flight.has_room(mqtt.in_flight_max) {
            mqtt.is_stalled = false;
            self.stir(socket);
        }
    }

    /// Cursors of a connection that have something to send are looked at again.
    pub(in crate::shard) fn stir(&mut self, socket: u32) {
        let Some(connection) = self.connections.get(socket) else { return };
        let mut id = connection.first_cursor;
        while let Some(cursor) = self.cursors.get(id) {
            let (here, stand, stream) = (id, cursor.stand, cursor.stream);
            id = cursor.next;
            match stand {
                CursorState::Live(place) => {
                    let window = self.streams.get(stream).and_then(|s| s.window.as_ref());
                    if window.is_some_and(|w| w.head() > place) {
                        self.link_ready(here);
                    }
                }
                CursorState::Behind(_) | CursorState::Joining | CursorState::Reading(_) => self.queue_behind(here),
                CursorState::Current => {}
            }
        }
        self.make_ready(socket);
    }
}
