//! One client's commands, each in its state: what it may do, what it is answered. Owns the order of answers: publishes are
//! numbered before any later command of the same turn is executed.
mod publisher;

use std::sync::Arc;

use super::Shard;
use super::access::ReplyRight;
use super::connection::{Connection, Phase, session_name};
use crate::codes::Code;
use crate::command::{Ack, Command, Connect, Id, Publish, Refusal, Reply};
use crate::holder::Holder;
use crate::journal::AccessKind;
use crate::limits;
use crate::message::Draft;
use crate::node::Outcome;
use crate::report::{ConnectionId, Report};
use crate::rights::{Action, Verdict};
use crate::subject::{self, Selector};

/// Drafts that are appended before the turn ends, so that a batch stays small.
const BATCH_MAX: usize = 1024;

/// What executing a command led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Done,
    /// The server is asked; its answer completes the command.
    Wait,
    /// The server is asked; the command is executed anew with the answer.
    Again,
}

impl Shard {
    pub(super) fn execute(&mut self, socket: u32, id: &Id, command: &Command<'_>) -> Result<Step, Refusal> {
        if let Command::Connect(connect) = command {
            self.commit();
            return self.connect(socket, id, connect);
        }
        if self.connections.get(socket).is_none_or(|c| c.access.is_none()) {
            self.refuse_login(socket, Code::ConnectMissing, Code::ConnectMissing.sentence());
            return Ok(Step::Done);
        }
        if !matches!(command, Command::Publish(_)) {
            self.commit();
        }
        // Who goes on without a `connect` has come as nobody in particular.
        self.announce_connection(socket);
        if self.drain.is_some() && matches!(command, Command::Publish(_) | Command::Subscribe(_)) {
            return Err(Code::NodeDraining.into());
        }
        match command {
            Command::Publish(Publish { publisher: Some(_), .. }) => Err(Refusal::new(
                Code::FieldInvalid,
                "publisher is a field of connect; a publish has it over HTTP alone",
            )),
            Command::Publish(publish) => self.publish(socket, id, publish),
            Command::Subscribe(subscribe) => {
                let selector = Selector::parse(&subscribe.selector)?;
                match self.judge(socket, Action::Subscribe, &selector) {
                    Verdict::Allow => self.subscribe(socket, id, subscribe, &selector).map(|()| Step::Done),
                    Verdict::Ask => self.ask(socket, Action::Subscribe, selector.text()),
                    Verdict::Deny => {
                        Err(Refusal::new(Code::SubscribeForbidden, self.why_not(socket, Action::Subscribe)))
                    }
                }
            }
            Command::Unsubscribe { selector } => {
                if !self.unsubscribe(socket, selector) {
                    return Err(Code::SubscriptionUnknown.into());
                }
                self.note_unsubscribed(socket, selector);
                if self.settings.reports_sessions {
                    let connection = self.connection_id(socket);
                    self.report(Report::Unsubscribed { connection, selector: selector.to_string() });
                }
                self.reply_if_asked(socket, id, &Reply::Unsubscribed { selector });
                Ok(Step::Done)
            }
            Command::Ping => {
                let time_ms = self.now.wall_ms;
                self.reply_if_asked(socket, id, &Reply::Pong { time_ms });
                Ok(Step::Done)
            }
            Command::Watch { pattern } => self.watch(socket, id, pattern),
            Command::Unwatch { pattern } => self.unwatch(socket, id, pattern),
            Command::Connect(_) => Ok(Step::Done),
        }
    }

    /// Success is silent where the client gave no id.
    pub(super) fn reply_if_asked(&mut self, socket: u32, id: &Id, reply: &Reply<'_>) {
        if *id != Id::None {
            self.reply(socket, id, reply);
        }
    }

    /// `connect`: who it is. A token is judged by the server; without one the client is anonymous, where that is allowed.
    pub(super) fn connect(&mut self, socket: u32, id: &Id, command: &Connect<'_>) -> Result<Step, Refusal> {
        let (token, client) = (command.token.as_deref(), command.client.as_deref());
        let is_asked = self.is_asked(socket, token.is_some());
        if let Some(connection) = self.connections.get_mut(socket)
            && command.frame_bytes_max.is_some()
        {
            connection.papers().frame_bytes_max = command.frame_bytes_max;
        }
        if let Some(name) = client {
            let name = self.intern(name);
            if let Some(connection) = self.connections.get_mut(socket) {
                connection.papers().client = Some(name);
            }
        }
        if let Some(name) = &command.publisher {
            self.name_publisher(socket, name, command.number);
        }
        let connection_id = self.connection_id(socket);
        let known = self.connections.get(socket).and_then(|connection| connection.access.as_ref());
        let is_renewal = known.is_some_and(|access| !access.is_basis);
        if is_asked && is_renewal {
            let mut paid = self.spend_login(socket);
            if let Some(token) = token {
                paid = paid.and_then(|()| self.may_renew(socket, token));
            }
            paid.map_err(|excess| Refusal { code: Code::RateExceeded, ..excess.refusal() })?;
        } else if is_asked
            && let Some(token) = token
            && let Err(excess) = self.may_show_token(socket, token)
        {
            self.turn_away(socket, excess, Holder::nobody());
            return Ok(Step::Done);
        }
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        if is_asked {
            connection.details().connect_id = Some(id.clone());
            let report = Report::Authorize {
                connection: connection_id,
                token: token.map(str::to_owned),
                client: client.map(str::to_owned),
                address: connection.peer.address(),
                is_renewal,
                certificate: connection.certificate(),
            };
            self.reports.push(report);
            return Ok(Step::Wait);
        }
        if connection.access.is_none() {
            self.refuse_login(socket, Code::TokenMissing, Code::TokenMissing.sentence());
            return Ok(Step::Done);
        }
        self.connected(socket, id);
        Ok(Step::Done)
    }

    /// Answers `connect` and reports the connection, once.
    pub(super) fn connected(&mut self, socket: u32, id: &Id) {
        let connection_id = self.connection_id(socket);
        let settings = Arc::clone(&self.settings);
        let lacks_publisher = self.attach_publisher(socket);
        self.reply_if_asked(
            socket,
            id,
            &Reply::Connected {
                session: &session_name(connection_id),
                node: &settings.node,
                time_ms: self.now.wall_ms,
                ping_interval_ms: settings.limits.ping_interval_ms,
                lacks_publisher,
            },
        );
        self.announce_connection(socket);
    }

    /// Writes down that a connection came, once it is known who it is, and reports it where that is wanted.
    pub(super) fn announce_connection(&mut self, socket: u32) {
        let Some(connection) = self.connections.get_mut(socket).filter(|connection| !connection.is_announced) else {
            return;
        };
        let Some(access) = connection.access.clone() else { return };
        connection.is_announced = true;
        let connection_id = self.connection_id(socket);
        self.note_access(socket, AccessKind::Connected, |_| {});
        let Some(connection) = self.connections.get(socket).filter(|_| self.settings.reports_sessions) else { return };
        let report = Report::Connected {
            connection: connection_id,
            holder: Arc::clone(&access.holder),
            client: connection.client().cloned().unwrap_or_else(|| Arc::from("")),
            address: connection.peer.address(),
            protocol: connection.wire.name(),
        };
        self.report(report);
    }

    /// The same of who was let in as nobody in particular and never said a command.
    pub(super) fn announce_silent(&mut self, socket: u32) {
        let is_in = |c: &Connection| c.wire.is_websocket() && c.mqtt.is_none() && !c.is_asking;
        if self.connections.get(socket).is_some_and(is_in) {
            self.announce_connection(socket);
        }
    }

    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.clients.get(name) {
            return Arc::clone(known);
        }
        if self.clients.len() >= 1024 {
            self.clients.clear();
        }
        let name: Arc<str> = Arc::from(name);
        self.clients.insert(Box::from(&*name), Arc::clone(&name));
        name
    }

    pub(super) fn publish(&mut self, socket: u32, id: &Id, publish: &Publish<'_>) -> Result<Step, Refusal> {
        let step = self.try_publish(socket, id, publish);
        if let Err(refusal) = &step {
            self.counters.count_refused_publish(self.connections.get(socket), refusal.code);
        }
        step
    }

    fn try_publish(&mut self, socket: u32, id: &Id, publish: &Publish<'_>) -> Result<Step, Refusal> {
        subject::check_publish_subject(&publish.subject)?;
        let Some(access) = self.connections.get(socket).and_then(|c| c.access.clone()) else { return Ok(Step::Done) };
        match self.judge_subject(socket, Action::Publish, &publish.subject) {
            Verdict::Allow => {}
            Verdict::Ask => {
                self.commit();
                return self.ask(socket, Action::Publish, &publish.subject);
            }
            Verdict::Deny => {
                return Err(Refusal::new(Code::PublishForbidden, self.why_not(socket, Action::Publish)));
            }
        }
        if subject::has_empty_segment(&publish.subject) && !super::lock(&self.node).has_had(&publish.subject) {
            return Err(subject::refuse_empty_segment(&publish.subject));
        }
        let mut owns_reply = true;
        if let Some(reply_to) = &publish.reply_to {
            subject::check_subject(reply_to)?;
            match self.judge_reply(socket, reply_to)? {
                ReplyRight::Granted { may_publish } => owns_reply = may_publish,
                ReplyRight::Asked(step) => return Ok(step),
            }
        }
        self.check_ack(publish.ack, publish.is_guaranteed)?;
        if let Some(key) = &publish.key
            && access.is_anonymous
            && key.len() < limits::KEY_BYTES_MIN_ANONYMOUS
        {
            return Err(Refusal::new(Code::KeyInvalid, "an anonymous client's key has at least 16 bytes"));
        }
        let numbered = publish
            .numbered
            .map(|numbered| Ok::<_, Refusal>((self.publisher_of(socket, publish.publisher.as_deref())?, numbered)))
            .transpose()?;
        self.spend_publish(socket, publish.content.len() + publish.fields.len())?;
        let reply_to = publish.reply_to.as_deref().unwrap_or("");
        let holder = Arc::clone(&access.holder);
        let mut draft =
            Draft::new(publish.kind, &publish.content, reply_to, holder, socket).with_fields(&publish.fields);
        draft.is_retained = publish.retain;
        draft.merge = publish.merge;
        draft.is_removal = publish.is_removal;
        draft.is_guaranteed = publish.is_guaranteed;
        draft.key = publish.key.as_ref().map(|key| key.as_bytes().into());
        draft.numbered = numbered;
        draft.ack = publish.ack;
        draft.owns_reply = owns_reply;
        draft.origin = if access.is_anonymous { self.origin(socket) } else { 0 };
        self.push_draft(&publish.subject, draft, id.clone());
        Ok(Step::Done)
    }

    /// Whether this node can reach a level of acknowledgement at all.
    fn check_ack(&self, ack: Ack, is_guaranteed: bool) -> Result<(), Refusal> {
        let why = match ack {
            Ack::Cached => return Ok(()),
            Ack::Disk if !is_guaranteed => "a standard message is kept nowhere",
            Ack::Disk if self.settings.journal.is_some() => return Ok(()),
            Ack::Disk => "this node keeps no journal: it has no data directory, or journal.enabled is false",
            Ack::Replicated => "replicated needs several nodes, and this node is alone: use cached or disk",
        };
        Err(Refusal::new(Code::AckUnavailable, why))
    }

    /// Adds a draft that is allowed to the turn's batch.
    pub(super) fn push_draft(&mut self, subject: &str, draft: Draft, id: Id) {
        self.counters.messages_in += 1;
        if let Some(connection) = self.connections.get(draft.connection) {
            self.counters.of(connection).messages_in += 1;
        }
        self.batch.push(subject, draft);
        self.batch_ids.push(id);
        if self.batch.len() >= BATCH_MAX {
            self.commit();
        }
    }

    /// Answers the publishes of a batch, in order.
    pub(super) fn answer_publishes(&mut self, outcomes: &mut Vec<Outcome>) {
        let ids = std::mem::take(&mut self.batch_ids);
        let sockets: Vec<u32> = self.batch.connections().collect();
        for ((outcome, id), socket) in outcomes.drain(..).zip(&ids).zip(sockets) {
            if self.connections.get(socket).is_some_and(|connection| connection.phase == Phase::Http) {
                self.answer_produce(socket, id, outcome);
                continue;
            }
            if self.settle_draft(socket, id, &outcome) {
                continue;
            }
            match outcome {
                Outcome::Published { at, is_duplicate } => {
                    self.reply_if_asked(socket, id, &Reply::Published { at, is_duplicate, reached: None });
                }
                Outcome::Awaits { at, is_duplicate, arrival } => self.hold_ack(socket, id, at, is_duplicate, arrival),
                Outcome::Refused(code) => {
                    self.counters.count_refused_publish(self.connections.get(socket), code);
                    self.refuse(socket, id, &Refusal::from(code));
                }
            }
        }
        self.batch_ids = ids;
        self.batch_ids.clear();
    }

    pub(super) fn connection_id(&self, socket: u32) -> ConnectionId {
        let serial = self.connections.get(socket).map_or(0, |c| c.serial);
        ConnectionId::new(self.index, serial, socket)
    }

    /// The slot of a connection that is still the same.
    pub(super) fn socket_of(&self, connection: ConnectionId) -> Option<u32> {
        let socket = connection.slot();
        let found = self.connections.get(socket)?;
        let is_there = found.phase == Phase::Open || found.phase == Phase::Http && found.is_asking;
        (found.serial == connection.serial() && is_there).then_some(socket)
    }

    /// Adds a report that may be dropped when nobody collects them.
    pub(super) fn report(&mut self, report: Report) {
        if self.reports.len() < 65_536 {
            self.reports.push(report);
        } else {
            self.counters.reports_dropped += 1;
        }
    }
}
