//! CONNECT: who comes, whether it may, and what it finds. Owns the way from the packet to CONNACK: the server judges the
//! credentials, rights judge the will, and another connection of the same client goes first.
use std::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use super::admit::{Restored, SessionAnswers};
use super::publish::{draft_of, kind_of};
use super::{Mqtt, Stage};
use crate::codec::Wire;
use crate::codes::Code;
use crate::limits::CLIENT_BYTES_MAX;
use crate::mqtt::{Connack, Connect, Fault, Reason, Version, Will as WillPacket, is_bridge_state, subject_of};
use crate::node::{Came, Claim, Will};
use crate::report::Report;
use crate::rights::{Action, Verdict};
use crate::shard::session::Step;
use crate::shard::{Shard, lock};
use crate::subject::{self, Selector};

/// What a CONNECT said that is not settled yet.
#[derive(Debug)]
pub(super) struct Arriving {
    is_clean: bool,
    session_ms: u64,
    session_said: Option<u32>,
    keep_alive_said: Option<u16>,
    assigned_id: bool,
    /// It claimed its client identifier, and had to wait for another connection to go.
    has_waited: bool,
    will: Option<Will>,
    pub(super) answers: SessionAnswers,
}

impl Arriving {
    /// Where its will awaits replies; empty: nowhere.
    pub(super) fn reply_of_will(&self) -> Option<String> {
        let will = self.will.as_ref()?;
        std::str::from_utf8(will.draft.reply_to()).ok().map(str::to_owned)
    }
}

impl Shard {
    pub(super) fn arrive_client(&mut self, socket: u32, connect: &Connect<'_>) -> Result<Step, Fault> {
        let (connection_id, origin) = (self.connection_id(socket), self.origin(socket));
        let limits = &self.settings.limits;
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        let Some(mqtt) = connection.mqtt.as_mut() else { return Ok(Step::Done) };
        mqtt.writer.version = connect.version;
        mqtt.stage = Stage::Arriving;
        mqtt.wants_problems = connect.wants_problems;
        mqtt.packet_bytes_max = connect.packet_bytes_max;
        mqtt.alias_max = connect.alias_max.min(limits.mqtt_aliases_max as u16);
        mqtt.in_flight_max = connect.receive_max.min(limits.mqtt_inflight_max as u16);
        let wire = Wire::Mqtt(mqtt.writer);
        self.check_turned_away(socket)?;
        let limits = &self.settings.limits;
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        let Some(mqtt) = connection.mqtt.as_mut() else { return Ok(Step::Done) };
        if connect.has_auth_method {
            return Err(Fault::new(Reason::BAD_METHOD, "no authentication method is known here"));
        }
        check_client_id(connect)?;
        mqtt.client_id = if connect.client_id.is_empty() {
            assign_id(self.settings.seed, connection_id.0)
        } else {
            Arc::from(connect.client_id)
        };
        let session_ms = u64::from(connect.session_expiry_s).saturating_mul(1000).min(limits.mqtt_session_ms_max);
        let is_shorter = u64::from(connect.session_expiry_s) * 1000 > session_ms;
        let keep_alive_max_s = (limits.mqtt_keep_alive_ms_max / 1000) as u16;
        let is_endless =
            connect.version == Version::V5 && (connect.keep_alive_s == 0 || connect.keep_alive_s > keep_alive_max_s);
        let keep_alive_s = if is_endless { keep_alive_max_s } else { connect.keep_alive_s };
        mqtt.silence_ms_max = u32::from(keep_alive_s) * 1500;
        let will = connect.will.as_ref().filter(|will| !is_bridge_state(will.topic));
        let mut will = will.map(|will| make_will(will, &self.settings.limits)).transpose()?;
        if let Some(will) = &mut will {
            lock(&self.node).place_will(will, origin).map_err(too_many_wills)?;
        }
        mqtt.arriving = Some(Box::new(Arriving {
            is_clean: connect.is_clean,
            session_ms,
            session_said: is_shorter.then_some((session_ms / 1000) as u32),
            keep_alive_said: is_endless.then_some(keep_alive_max_s),
            assigned_id: connect.client_id.is_empty(),
            has_waited: false,
            will,
            answers: SessionAnswers::default(),
        }));
        connection.wire = wire;
        self.counters.count_opened(connection, wire);
        self.ask_who(socket, connect)
    }

    /// A password, or else a user name, is a token that the server judges; without one the client is anonymous.
    fn ask_who(&mut self, socket: u32, connect: &Connect<'_>) -> Result<Step, Fault> {
        let bad = || Fault::new(Reason::BAD_CREDENTIALS, "the password is no text");
        if connect.username.is_some_and(|name| name.contains(char::is_control)) {
            return Err(Fault::new(Reason::BAD_CREDENTIALS, "the user name holds a control character"));
        }
        let password = connect.password.map(std::str::from_utf8).transpose().map_err(|_| bad())?;
        let token = password.filter(|token| !token.is_empty()).or(connect.username.filter(|name| !name.is_empty()));
        let is_asked = self.is_asked(socket, token.is_some());
        if is_asked && token.is_some_and(|token| self.may_show_token(socket, token).is_err()) {
            let text = "this address has shown more tokens that were refused than it may";
            return Err(Fault::of(Code::ConnectsTooMany, Reason::QUOTA, text));
        }
        let connection_id = self.connection_id(socket);
        let anonymous = self.anonymous.clone();
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        if is_asked {
            let report = Report::Authorize {
                connection: connection_id,
                token: token.map(str::to_owned),
                client: connection.client().map(|name| name.to_string()),
                address: connection.peer.address(),
                is_renewal: false,
                certificate: connection.certificate(),
            };
            self.reports.push(report);
            return Ok(Step::Wait);
        }
        if anonymous.is_none() {
            return Err(Fault::of(Code::TokenMissing, Reason::NOT_AUTHORIZED, "this node asks for a password"));
        }
        self.set_access(socket, anonymous);
        self.go_on_arriving(socket)
    }

    /// Goes on with a CONNECT after each answer, until the client has come or has been refused.
    pub(super) fn go_on_arriving(&mut self, socket: u32) -> Result<Step, Fault> {
        let Some(connection) = self.connections.get(socket) else { return Ok(Step::Done) };
        let Some(mqtt) = connection.mqtt.as_ref().filter(|mqtt| mqtt.stage == Stage::Arriving) else {
            return Ok(Step::Done);
        };
        let (Some(arriving), true) = (&mqtt.arriving, connection.access.is_some()) else { return Ok(Step::Wait) };
        if let Some(will) = &arriving.will {
            let selector = Selector::Subject(will.subject.clone());
            match self.judge(socket, Action::Publish, &selector) {
                Verdict::Allow => {}
                Verdict::Ask => {
                    let asked = self.ask(socket, Action::Publish, selector.text());
                    return asked.map(|_| Step::Wait).map_err(|refusal| Fault::refused(refusal, Reason::UNAVAILABLE));
                }
                Verdict::Deny => {
                    return Err(Fault::of(
                        Code::PublishForbidden,
                        Reason::NOT_AUTHORIZED,
                        "your rights do not cover the will's topic",
                    ));
                }
            }
        }
        match self.judge_reply_of_will(socket)? {
            Some(step) => Ok(step),
            None => self.claim_client(socket),
        }
    }

    /// Takes the client identifier, with the session that is kept under it, once nothing is left to be judged but that.
    fn claim_client(&mut self, socket: u32) -> Result<Step, Fault> {
        let Some(connection) = self.connections.get(socket) else { return Ok(Step::Done) };
        let (Some(mqtt), Some(access)) = (&connection.mqtt, &connection.access) else { return Ok(Step::Done) };
        let Some(arriving) = &mqtt.arriving else { return Ok(Step::Done) };
        let holder = Arc::clone(&access.holder);
        let (id, is_clean) = (holder.client_key(&mqtt.client_id), arriving.is_clean);
        let (keeps_session, has_waited) = (arriving.session_ms > 0, arriving.has_waited);
        let connection_id = self.connection_id(socket);
        if !is_clean && let Some(step) = self.judge_session(socket, &id, &holder)? {
            return Ok(step);
        }
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        self.absorb_all(&mut node);
        if let Some(mqtt) = self.connections.get_mut(socket).and_then(|connection| connection.mqtt.as_mut()) {
            if *id != *mqtt.client_id {
                mqtt.rare_mut().client_key = Some(Arc::clone(&id));
            } else if let Some(rare) = &mut mqtt.rare {
                rare.client_key = None;
            }
        }
        if has_waited && !node.is_next(&id, connection_id) {
            return Err(Fault::new(Reason::TAKEN_OVER, "another connection has come with this client identifier"));
        }
        self.settle_turned_away(socket, &holder, &node)?;
        let origin = self.origin(socket);
        let owner = node.owner_of(&holder, origin);
        if let Some(will) = self.arriving(socket).and_then(|arriving| arriving.will.as_mut()) {
            node.move_will(will, owner, (&id, &holder)).map_err(too_many_wills)?;
        }
        let place = keeps_session.then_some(owner);
        let claimed = match node.claim(&id, &holder, connection_id, is_clean, place) {
            Claim::Foreign => Err(Fault::new(Reason::CLIENT_ID_INVALID, "this client identifier is somebody else's")),
            Claim::Full(code) => {
                Err(Fault::of(code, Reason::QUOTA, "this client's holder has its share of mqtt_sessions_max"))
            }
            Claim::Wait => Ok(None),
            Claim::Granted { serial, kept: None, .. } => Ok(Some((serial, None))),
            Claim::Granted { serial, kept: Some(kept), before } => {
                self.restore_client(socket, kept, (&id, before), &mut node).map(|restored| Some((serial, restored)))
            }
        };
        node.note_origin(&id, connection_id, origin);
        self.wakes |= node.take_wakes();
        // Some of them may be others': they are published whatever becomes of this client.
        let wills = node.take_wills();
        drop(node);
        self.publish_wills(wills);
        let Some((serial, restored)) = claimed? else {
            self.arriving(socket).into_iter().for_each(|arriving| arriving.has_waited = true);
            return Ok(Step::Wait);
        };
        self.open_client(socket, serial, restored);
        Ok(Step::Done)
    }

    fn open_client(&mut self, socket: u32, serial: u32, restored: Option<Restored>) {
        let (receive_max, alias_max) =
            (self.settings.limits.mqtt_receive_max as u16, self.settings.limits.mqtt_aliases_max as u16);
        let packet_bytes_max = self.settings.limits.message_bytes_max as u32;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let Some(mqtt) = connection.mqtt.as_mut() else { return };
        let Some(arriving) = mqtt.arriving.take() else { return };
        mqtt.serial = serial;
        mqtt.session_ms = arriving.session_ms;
        mqtt.stage = Stage::Open;
        let missed = restored.as_ref().map(|restored| restored.missed.text()).unwrap_or_default();
        let said = Connack {
            missed: &missed,
            has_session: restored.is_some(),
            session_expiry_s: arriving.session_said,
            receive_max,
            packet_bytes_max,
            alias_max,
            assigned_id: if arriving.assigned_id { &mqtt.client_id } else { "" },
            keep_alive_s: arriving.keep_alive_said,
            reason_string: "",
        };
        let start = connection.private.len();
        mqtt.writer.connack(&mut connection.private, Reason::SUCCESS, &said);
        if connection.private.len() - start > mqtt.packet_bytes_max as usize {
            // Who takes no CONNACK that says what has to be said cannot be served [MQTT-3.1.2-24].
            connection.private.truncate(start);
            return self.finish(socket, u16::from(Reason::PACKET_TOO_LARGE.0), "");
        }
        let is_hasty = mqtt.is_hasty();
        if let Some(will) = arriving.will {
            self.save_will(socket, will);
        }
        self.make_ready(socket);
        if is_hasty {
            self.hasty.push(socket);
        }
        self.announce_connection(socket);
        if let Some(restored) = restored {
            self.resume_client(socket, restored);
        }
        self.hold_stands(socket);
        self.save_session(socket);
    }

    /// The client that this connection waited for has gone, or must go itself.
    pub(in crate::shard) fn take_mail<O: crate::shard::SocketOutput>(&mut self, out: &mut O) {
        while !self.mail.is_empty() {
            for mail in std::mem::take(&mut self.mail) {
                match mail {
                    crate::node::Mail::Free(connection) => {
                        if let Some(socket) = self.socket_of(connection) {
                            self.unpark_packets(socket, out);
                        }
                    }
                    crate::node::Mail::Deal(number) => {
                        if let Some(&stream) = self.shared.get(&number) {
                            self.note_deal(stream);
                        }
                    }
                    crate::node::Mail::Evict(connection) => match self.socket_of(connection) {
                        Some(socket) => {
                            let reason = Reason::TAKEN_OVER;
                            self.end(socket, reason, "another connection has come with this client identifier", 0x8e);
                        }
                        None => lock(&self.node).abandon_client(connection, self.now),
                    },
                }
            }
            let node = Arc::clone(&self.node);
            let mut node = lock(&node);
            node.take_mail(self.index, &mut self.mail);
            self.wakes |= node.take_wakes();
        }
    }
}

/// A name that nobody can guess and that no other connection of this run has.
fn assign_id(seed: u64, connection: u64) -> Arc<str> {
    let mut hasher = SipHasher13::new_with_keys(seed, !seed);
    hasher.write_u64(connection);
    Arc::from(format!("godwit-{:x}-{:016x}", connection, hasher.finish()))
}

/// A name that could be taken for a pattern, or forge a line, is none of ours.
fn check_client_id(connect: &Connect<'_>) -> Result<(), Fault> {
    let id = connect.client_id;
    let refused = Fault::new(Reason::CLIENT_ID_INVALID, "the client identifier is not one that this node takes");
    if id.is_empty() && connect.version == Version::V3 && !connect.is_clean {
        return Err(refused);
    }
    let is_odd = |c: char| matches!(c, '+' | '#' | '%') || c.is_control();
    if id.len() > CLIENT_BYTES_MAX || id.contains(is_odd) { Err(refused) } else { Ok(()) }
}

fn too_many_wills(code: Code) -> Fault {
    let text = match code {
        Code::ShareExceeded => "this client's holder, or its address, has its share of limits.mqtt_wills_bytes_max",
        _ => "the will would exceed limits.mqtt_wills_bytes_max with those that are held",
    };
    Fault::of(code, Reason::QUOTA, text)
}

fn make_will(packet: &WillPacket<'_>, limits: &crate::limits::Limits) -> Result<Will, Fault> {
    let subject = subject_of(packet.topic);
    if !subject::is_own(&subject) {
        subject::check_subject(&subject).map_err(|_| {
            Fault::of(Code::SubjectInvalid, Reason::TOPIC_INVALID, "the will's topic is no subject of this node")
        })?;
    }
    let kind = kind_of(packet.payload, &packet.carried, limits)?;
    let draft = draft_of(kind, packet.payload, &packet.carried, (packet.qos, packet.is_retained), 0, limits.fields_max);
    let delay_ms = u64::from(packet.delay_s) * 1000;
    let will = Will {
        subject: subject.into(),
        draft,
        own_rule: None,
        came: Came::default(),
        voucher: Arc::default(),
        is_answered: false,
        token: None,
        delay_ms,
        place: None,
    };
    Ok(will)
}

impl Mqtt {
    /// The client's name, once it has said it.
    pub(in crate::shard) fn name(&self) -> Option<&Arc<str>> {
        (self.stage != Stage::Fresh).then_some(&self.client_id)
    }

    /// Something came from it, or may have.
    pub(in crate::shard) fn hear(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    /// Whether its CONNECT is still being judged.
    pub(in crate::shard) fn is_arriving(&self) -> bool {
        self.arriving.is_some()
    }

    /// Its client's rights have been revoked: nothing is published in its name any more, and for an identity the session ends too. Whether there was one, and whether there was a will.
    pub(in crate::shard) fn revoke(&mut self, is_identity: bool) -> (bool, bool) {
        let has_session = is_identity && self.session_ms > 0;
        if is_identity {
            self.session_ms = 0;
        }
        (has_session, std::mem::take(&mut self.has_will))
    }

    /// What the node keeps its client under.
    pub(in crate::shard) fn client_key(&self) -> &Arc<str> {
        self.rare.as_ref().and_then(|rare| rare.client_key.as_ref()).unwrap_or(&self.client_id)
    }
}
