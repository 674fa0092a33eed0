//! The end of an MQTT connection: the client's DISCONNECT, ours, and what each makes of session and will.
use std::sync::Arc;

use super::Stage;
use super::inbound::reason_of;
use crate::codes::Code;
use crate::command::Refusal;
use crate::mqtt::{Connack, Disconnect, Fault, Reason};
use crate::report::Report;
use crate::shard::connection::Phase;
use crate::shard::gap::Gone;
use crate::shard::session::Step;
use crate::shard::{Shard, SocketOutput};
use crate::websocket;

impl Shard {
    /// The client leaves in order: its will is forgotten, unless it asks for it.
    pub(super) fn take_disconnect(&mut self, socket: u32, packet: &Disconnect<'_>) -> Result<Step, Fault> {
        let session_ms_max = self.settings.limits.mqtt_session_ms_max;
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        let Some(mqtt) = connection.mqtt.as_mut() else { return Ok(Step::Done) };
        if let Some(seconds) = packet.session_expiry_s {
            if mqtt.session_ms == 0 && seconds > 0 {
                return Err(Fault::protocol("a session without an expiry interval is given one at its end"));
            }
            mqtt.session_ms = (u64::from(seconds) * 1000).min(session_ms_max);
        }
        if packet.reason == Reason::SUCCESS {
            mqtt.has_will = false;
        }
        self.finish(socket, u16::from(packet.reason.0), packet.said);
        Ok(Step::Done)
    }

    /// Says why, in the words of the client's standard, and closes.
    pub(super) fn end(&mut self, socket: u32, reason: Reason, text: &str, code: u16) {
        // What was accepted before is answered before.
        self.commit();
        let Some(connection) = self.connections.get_mut(socket).filter(|c| c.phase == Phase::Open) else { return };
        let Some(mqtt) = connection.mqtt.as_mut() else { return };
        let start = connection.private.len();
        // A reason string may not make a packet too large, nor may one be sent that is [MQTT-3.2.2-19, MQTT-3.14.2-3].
        for text in [mqtt.problem(text), ""] {
            connection.private.truncate(start);
            match mqtt.stage {
                Stage::Fresh | Stage::Left => {}
                Stage::Arriving => {
                    let said = Connack { reason_string: text, ..Connack::default() };
                    mqtt.writer.connack(&mut connection.private, reason, &said);
                }
                Stage::Open => mqtt.writer.disconnect(&mut connection.private, reason, text),
            }
            if connection.private.len() - start <= mqtt.packet_bytes_max as usize {
                break;
            }
        }
        if connection.private.len() - start > mqtt.packet_bytes_max as usize {
            connection.private.truncate(start);
        }
        if !mqtt.writer.is_websocket {
            // Bytes that are still on their way would meet a closed socket, and undo what was said.
            connection.exchange().lingers = true;
        }
        self.finish(socket, code, text);
    }

    /// Looks at connections whose time is short.
    pub(in crate::shard) fn look_at_hasty<O: SocketOutput>(&mut self, out: &mut O) {
        let mut hasty = std::mem::take(&mut self.hasty);
        hasty.sort_unstable();
        hasty.dedup();
        for socket in hasty {
            self.end_lost(socket);
            self.look_at(socket, out);
            let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
            if mqtt.is_some_and(|mqtt| mqtt.is_hasty()) {
                self.hasty.push(socket);
            }
        }
    }

    /// Messages are missing between what a cursor's client was sent and what follows. At QoS 1 and 2 they are skipped, counted and reported;
    /// where a pattern says so the session is over, and the next one begins without it (session present 0).
    pub(in crate::shard) fn note_missed(&mut self, cursor: u32, selector: &str, gone: Gone) {
        let Some(cursor) = self.cursors.get(cursor).filter(|cursor| cursor.options & 3 > 0) else { return };
        let socket = cursor.connection;
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        let Gone { missed, reason, ends_session } = gone;
        if ends_session {
            mqtt.has_lost = true;
            self.hasty.push(socket);
        }
        let client = Arc::clone(&mqtt.client_id);
        self.counters.mqtt_missed += missed.unwrap_or(1);
        if self.may_tell_refusal() {
            self.report(Report::MqttMissed { client, selector: selector.to_owned(), missed, reason: reason.name() });
        }
    }

    /// Whether a cursor's client is owed every message.
    pub(in crate::shard) fn is_owed(&self, cursor: u32) -> bool {
        let Some(cursor) = self.cursors.get(cursor).filter(|cursor| cursor.options & 3 > 0) else { return false };
        self.connections.get(cursor.connection).is_some_and(|connection| connection.mqtt.is_some())
    }

    /// A publish of 3.1.1 cannot be kept: only the end of its connection says so.
    pub(super) fn end_unkept(&mut self, socket: u32, refusal: &Refusal) {
        let reason = reason_of(refusal.code);
        self.end(socket, reason, &refusal.reason, u16::from(reason.0));
    }

    fn end_lost(&mut self, socket: u32) {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        let unkept = mqtt.rare.as_mut().and_then(|rare| rare.unkept.take());
        if let Some(refusal) = unkept.filter(|_| mqtt.stage == Stage::Open) {
            return self.end_unkept(socket, &refusal);
        }
        if std::mem::take(&mut mqtt.has_overrun) && mqtt.stage == Stage::Open {
            self.tell_refusal(socket, Code::RateExceeded, "MQTT 0x96: more is published than a rate allows");
            return self.end(socket, Reason::RATE_TOO_HIGH, "more is published than a rate allows", 0x96);
        }
        if std::mem::take(&mut mqtt.has_lost) && mqtt.stage == Stage::Open {
            mqtt.session_ms = 0;
            self.tell_refusal(socket, Code::NodeBusy, "MQTT 0x97: messages for this session are gone: it is over");
            self.end(socket, Reason::QUOTA, "messages for this session are gone: it is over", 0x97);
        }
    }

    pub(super) fn finish(&mut self, socket: u32, code: u16, reason: &str) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_websocket = connection.mqtt.as_ref().is_some_and(|mqtt| mqtt.writer.is_websocket);
        if is_websocket {
            // What was wrong with the WebSocket is said in its own words; for the rest MQTT has said what there is to say.
            let is_of_websocket = matches!(code, 1001..=1011);
            websocket::close(&mut connection.private, if is_of_websocket { code } else { 1000 }, "");
        } else {
            // There is no closing handshake to wait for.
            connection.is_finished = true;
        }
        self.begin_close(socket, code, reason);
    }
}
