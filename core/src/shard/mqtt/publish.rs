//! PUBLISH from a client: from packet to draft, and the answer to it. Owns QoS 2's promise that a message is accepted once,
//! topic aliases, and what content is: JSON and text are seen as such on the other wires.
use std::sync::Arc;

use super::inbound::{is_worded, reason_of};
use crate::codes::Code;
use crate::command::{Id, Numbered, Refusal};
use crate::holder::Holder;
use crate::json;
use crate::limits::Limits;
use crate::message::{Draft, FromMqtt, Kind, NO_EXPIRY, fields};
use crate::mqtt::{Carried, Fault, Publish, Qos, Reason, Version, is_bridge_state, subject_of};
use crate::node::{NOBODY, Outcome, Received};
use crate::rights::{Action, Verdict};
use crate::shard::access::ReplyRight;
use crate::shard::session::Step;
use crate::shard::{Shard, lock};
use crate::subject;

const PUBACK: u8 = 4;
const PUBREC: u8 = 5;
const PUBCOMP: u8 = 7;
/// A 3.1.1 client is told no Receive Maximum; so much more of QoS 2 is taken from it.
const PATIENCE: usize = 8;

impl Shard {
    pub(super) fn take_publish(&mut self, socket: u32, publish: &Publish<'_>) -> Result<Step, Fault> {
        // A repeat, too, sets its topic alias for the packets that follow on this connection [MQTT-3.3.2-12].
        let subject = self.subject_of_publish(socket, publish)?;
        if self.is_known(socket, publish)? {
            self.commit();
            self.answer_known(socket, publish.packet_id);
            return Ok(Step::Done);
        }
        let refused = match self.check_publish(socket, &subject, publish)? {
            Ok(Step::Done) => None,
            Ok(step) => return Ok(step),
            Err(refusal) => Some(refusal),
        };
        if publish.qos != Qos::AtMostOnce {
            self.note_received(socket, publish);
        }
        if refused.is_some() && is_bridge_state(subject.trim_start_matches('/')) {
            self.commit();
            self.note_bridge(socket);
            self.settle_publish(socket, publish.qos, publish.packet_id, Ok(()));
            return Ok(Step::Done);
        }
        if let Some(refusal) = refused {
            return Ok(self.refuse_publish(socket, publish, refusal));
        }
        let kind = match kind_of(publish.payload, &publish.carried, &self.settings.limits) {
            Ok(kind) => kind,
            Err(fault) if publish.qos == Qos::AtMostOnce => return Err(fault),
            Err(fault) => {
                return Ok(self.refuse_publish(socket, publish, Refusal::new(Code::ContentInvalid, fault.text)));
            }
        };
        let Some(connection) = self.connections.get(socket) else { return Ok(Step::Done) };
        let (Some(mqtt), Some(access)) = (&connection.mqtt, &connection.access) else { return Ok(Step::Done) };
        let flags = (publish.qos, publish.is_retained);
        let fields_max = self.settings.limits.fields_max;
        let mut draft = draft_of(kind, publish.payload, &publish.carried, flags, mqtt.serial, fields_max);
        draft.holder = Arc::clone(&access.holder);
        draft.connection = socket;
        draft.origin = if access.is_anonymous { self.origin(socket) } else { 0 };
        draft.owns_reply = publish
            .carried
            .response_topic
            .is_none_or(|topic| self.judge_subject(socket, Action::Publish, &subject_of(topic)) == Verdict::Allow);
        if publish.qos == Qos::ExactlyOnce && mqtt.session_ms > 0 {
            let number = u64::from(publish.packet_id);
            draft.numbered = Some((Arc::clone(&mqtt.client_id), Numbered { number, floor: 0, is_again: false }));
        }
        let id = match publish.qos {
            Qos::AtMostOnce => Id::None,
            qos => Id::Number(i64::from(publish.packet_id) | (qos as i64) << 16),
        };
        self.push_draft(&subject, draft, id);
        Ok(Step::Done)
    }

    /// Answers those before it, and then this one with a no.
    fn refuse_publish(&mut self, socket: u32, publish: &Publish<'_>, refusal: Refusal) -> Step {
        self.commit();
        self.counters.publishes_refused += 1;
        self.tell_refusal(socket, refusal.code, &refusal.reason);
        self.settle_publish(socket, publish.qos, publish.packet_id, Err(refusal));
        Step::Done
    }

    /// Whether the packet is a repeat of one of QoS 2 that has not been released; an error past Receive Maximum.
    fn is_known(&mut self, socket: u32, publish: &Publish<'_>) -> Result<bool, Fault> {
        if publish.qos == Qos::AtMostOnce {
            return Ok(false);
        }
        let max = self.settings.limits.mqtt_receive_max;
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return Ok(false) };
        if !publish.is_duplicate
            && let Ok(place) = mqtt.find_received(publish.packet_id)
            && mqtt.received.get(place).is_some_and(|one| one.is_returned)
        {
            // A repeat over another connection says that it is one [MQTT-3.3.1-1]: this is another message, and the release of the one before was
            // lost with a node that was killed.
            mqtt.received.remove(place);
        }
        if publish.qos == Qos::ExactlyOnce && mqtt.find_received(publish.packet_id).is_ok() {
            return Ok(true);
        }
        let count = mqtt.received.len() + usize::from(mqtt.unanswered);
        let is_over = match mqtt.writer.version {
            Version::V5 => count >= max,
            Version::V3 => mqtt.received.len() >= max * PATIENCE,
        };
        if is_over {
            return Err(Fault::new(Reason::RECEIVE_MAXIMUM, "more is under way than Receive Maximum allows"));
        }
        Ok(false)
    }

    fn note_received(&mut self, socket: u32, publish: &Publish<'_>) {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        if publish.qos == Qos::AtLeastOnce {
            mqtt.unanswered = mqtt.unanswered.saturating_add(1);
        } else if let Err(place) = mqtt.find_received(publish.packet_id) {
            let (packet_id, arrival) = (publish.packet_id, Received::UNDER_WAY);
            mqtt.received.insert(place, Received { packet_id, arrival, is_returned: false, is_kept: false });
        }
    }

    /// The subject that the topic or its alias names.
    fn subject_of_publish(&mut self, socket: u32, publish: &Publish<'_>) -> Result<String, Fault> {
        let Some(alias) = publish.alias else { return Ok(subject_of(publish.topic)) };
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else {
            return Ok(String::new());
        };
        let aliases = mqtt.aliases_mut();
        if publish.topic.is_empty() {
            let known = aliases.theirs.get(&alias).map(|topic| subject_of(topic));
            return known.ok_or(Fault::protocol("the topic alias means nothing yet"));
        }
        aliases.theirs.insert(alias, publish.topic.into());
        Ok(subject_of(publish.topic))
    }

    /// Rights, names and rates: why this one publish is refused.
    fn check_publish(
        &mut self,
        socket: u32,
        subject: &str,
        publish: &Publish<'_>,
    ) -> Result<Result<Step, Refusal>, Fault> {
        match self.judge_subject(socket, Action::Publish, subject) {
            Verdict::Allow if !subject::is_own(subject) => {}
            Verdict::Ask => {
                self.commit();
                return match self.ask(socket, Action::Publish, subject) {
                    Ok(step) => Ok(Ok(step)),
                    Err(refusal) if self.can_refuse(socket, publish.qos) => Ok(Err(refusal)),
                    Err(refusal) => Err(Fault::refused(refusal, Reason::BUSY)),
                };
            }
            _ => return Ok(Err(Code::PublishForbidden.into())),
        }
        if let Err(refusal) = subject::check_subject(subject) {
            if publish.qos == Qos::AtMostOnce {
                return Err(Fault::of(
                    Code::SubjectInvalid,
                    Reason::TOPIC_INVALID,
                    "the topic is no subject of this node",
                ));
            }
            return Ok(Err(refusal));
        }
        if let Some(topic) = publish.carried.response_topic {
            match self.judge_reply(socket, &subject_of(topic)) {
                Ok(ReplyRight::Granted { .. }) => {}
                Ok(ReplyRight::Asked(step)) => return Ok(Ok(step)),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let Err(refusal) = self.spend_publish(socket, publish.payload.len()) else { return Ok(Ok(Step::Done)) };
        if self.can_refuse(socket, publish.qos) {
            return Ok(Err(refusal));
        }
        Err(Fault::refused(refusal, Reason::RATE_TOO_HIGH))
    }

    /// Whether a publish can be answered with a no. Where not, what could be taken later is not dropped in silence, which would
    /// be a lie: the connection ends instead.
    fn can_refuse(&self, socket: u32, qos: Qos) -> bool {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        qos != Qos::AtMostOnce && mqtt.is_some_and(|mqtt| mqtt.writer.version != Version::V3)
    }

    /// Answers a publish that was numbered or refused; false where the connection speaks another protocol.
    pub(in crate::shard) fn settle_draft(&mut self, socket: u32, id: &Id, outcome: &Outcome) -> bool {
        if self.connections.get(socket).is_none_or(|connection| connection.mqtt.is_none()) {
            return false;
        }
        let outcome = match outcome {
            Outcome::Published { .. } => Ok(()),
            Outcome::Awaits { at, is_duplicate, arrival } => {
                self.note_accepted(socket, id, *arrival);
                self.hold_ack(socket, id, *at, *is_duplicate, *arrival);
                return true;
            }
            Outcome::Refused(code) => {
                self.counters.publishes_refused += 1;
                self.tell_refusal(socket, *code, "");
                Err(*code)
            }
        };
        if outcome == Err(Code::RateExceeded) && self.note_overrun(socket, id) {
            return true;
        }
        if let Id::Number(number) = id {
            let qos = if number >> 16 == Qos::ExactlyOnce as i64 { Qos::ExactlyOnce } else { Qos::AtLeastOnce };
            self.settle_publish(socket, qos, *number as u16, outcome.map_err(Refusal::from));
        }
        true
    }

    /// A publish beyond its subject's rate that cannot be answered with a no: the connection will end, and this is not answered.
    fn note_overrun(&mut self, socket: u32, id: &Id) -> bool {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return false };
        let is_mute = *id == Id::None || mqtt.writer.version == Version::V3;
        if is_mute {
            mqtt.has_overrun = true;
            self.hasty.push(socket);
        }
        is_mute
    }

    fn settle_publish(&mut self, socket: u32, qos: Qos, packet_id: u16, outcome: Result<(), Refusal>) {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        // 3.1.1 cannot say no: what is not allowed is answered as if it were taken [MQTT-3.3.5-2], and what cannot be kept ends the connection.
        let is_plain = mqtt.writer.version == Version::V3;
        // 3.1.1: what it has no right to, and what the operator says is to be dropped.
        let is_dropped = |code| code == Code::PublishForbidden || self.settings.drops_mqtt_refused;
        let is_silent =
            outcome.as_ref().is_err_and(|no| is_plain && no.code != Code::DiskFailing && is_dropped(no.code));
        if outcome.is_err() && !is_silent {
            // The packet identifier is free: who sends the message again is not told that it had been taken.
            if let Ok(place) = mqtt.find_received(packet_id) {
                mqtt.received.remove(place);
            }
        }
        if let Err(refusal) = &outcome
            && is_plain
            && !is_silent
        {
            // An answer would say that it was taken: without one the client knows that it was not.
            if self.batch.is_empty() {
                return self.end_unkept(socket, refusal);
            }
            // Publishes of the same turn are being answered: it ends as the shard looks at it next.
            mqtt.rare_mut().unkept.get_or_insert_with(|| refusal.clone());
            self.hasty.push(socket);
            return;
        }
        // A reason that could mean anything is put into words.
        let (reason, text) = match &outcome {
            Ok(()) => (Reason::SUCCESS, ""),
            Err(refusal) if is_worded(refusal.code) => (reason_of(refusal.code).in_puback(), &*refusal.reason),
            Err(refusal) => (reason_of(refusal.code).in_puback(), ""),
        };
        match qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => {
                mqtt.unanswered = mqtt.unanswered.saturating_sub(1);
                self.answer_publish(socket, PUBACK, packet_id, reason, text);
            }
            Qos::ExactlyOnce => {
                self.settle_received(socket, packet_id);
                self.answer_publish(socket, PUBREC, packet_id, reason, text);
            }
        }
    }

    /// A bridge said whether it is connected: that is told once.
    fn note_bridge(&mut self, socket: u32) {
        let mqtt = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut());
        if mqtt.is_some_and(|mqtt| !std::mem::replace(&mut mqtt.is_bridge, true)) {
            self.tell_refusal(
                socket,
                Code::PublishForbidden,
                "a bridge's state under $SYS/broker/connection/ is not kept",
            );
        }
    }

    fn answer_known(&mut self, socket: u32, packet_id: u16) {
        if !self.waits_for_row(socket, packet_id) {
            self.settle_received(socket, packet_id);
            self.answer_publish(socket, PUBREC, packet_id, Reason::SUCCESS, "");
        }
    }

    fn answer_publish(&mut self, socket: u32, kind: u8, packet_id: u16, reason: Reason, text: &str) {
        self.say(socket, |mqtt, out| mqtt.writer.acknowledge(out, kind, packet_id, reason, mqtt.problem(text)));
    }

    /// PUBREL: the identifier may be used for another message.
    pub(super) fn release_publish(&mut self, socket: u32, packet_id: u16) -> Step {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return Step::Done };
        let reason = match mqtt.find_received(packet_id) {
            Ok(place) => {
                let is_on_disk = mqtt.received.remove(place).is_on_disk();
                if mqtt.received.is_empty() && mqtt.received.capacity() > 16 {
                    mqtt.received = Vec::new();
                }
                if is_on_disk {
                    // The client may use the identifier for another message: that this one was released must not be forgotten.
                    self.await_note(socket);
                }
                Reason::SUCCESS
            }
            Err(_) => {
                if !mqtt.is_noted() && lock(&self.node).promises_disk_within("/**") {
                    // An earlier connection of the session may have released it, and the disk may not know that yet.
                    self.await_note(socket);
                }
                Reason::PACKET_ID_UNKNOWN
            }
        };
        self.answer_publish(socket, PUBCOMP, packet_id, reason, "");
        Step::Done
    }
}

/// What content is: what the publisher says, or else what it looks like.
pub(super) fn kind_of(payload: &[u8], carried: &Carried<'_>, limits: &Limits) -> Result<Kind, Fault> {
    let text = std::str::from_utf8(payload).ok();
    if carried.is_text && text.is_none() {
        return Err(Fault::new(Reason::PAYLOAD_INVALID, "the payload is said to be text, and is not UTF-8"));
    }
    let Some(text) = text else { return Ok(Kind::Bytes) };
    let is_json = || json::check(text, limits.content_depth_max).is_ok();
    let media = carried.content_type.map(|media| media.split(';').next().unwrap_or("").trim().to_ascii_lowercase());
    Ok(match media.as_deref() {
        Some(media) if media == "application/json" || media.ends_with("+json") => {
            if is_json() {
                Kind::Json
            } else {
                Kind::Text
            }
        }
        Some(media) if media.starts_with("text/") || carried.is_text => Kind::Text,
        Some(_) => Kind::Bytes,
        None if text.trim_start().starts_with(['{', '[']) && is_json() => Kind::Json,
        None if carried.is_text || !text.contains(is_binary) => Kind::Text,
        None => Kind::Bytes,
    })
}

fn is_binary(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r')
}

/// The draft of a packet, to be given its identity and connection.
pub(super) fn draft_of(
    kind: Kind,
    payload: &[u8],
    carried: &Carried<'_>,
    (qos, is_retained): (Qos, bool),
    publisher: u32,
    fields_max: usize,
) -> Draft {
    let reply_to = carried.response_topic.map(subject_of).unwrap_or_default();
    let mqtt = FromMqtt { qos, publisher, expiry_s: carried.expiry_s.unwrap_or(NO_EXPIRY) };
    let users = carried.users();
    let held = if users.is_empty() { Vec::new() } else { fields::hold_last(users, fields_max) };
    let draft = Draft::new(kind, payload, &reply_to, Holder::nobody(), NOBODY).with_fields(&held);
    let mut draft = draft.from_mqtt(mqtt, |out| carried.put_forwarded(out));
    draft.is_retained = Some(is_retained);
    // Retained and without content it takes the retained message away [MQTT-3.3.1-6].
    draft.is_removal = is_retained && payload.is_empty();
    draft
}
