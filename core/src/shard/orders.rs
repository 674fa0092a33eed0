//! What the server decided, carried out: rights granted or refused, connections closed, the drain. Owns the drain's
//! course: clients are told when to reconnect, spread over time, and what is left at the end is closed.
use super::access::{Doors, Excess};
use super::connection::{Access, Connection, Phase};
use super::mqtt::put_notice;
use super::{Shard, SocketOutput};
use crate::account::Bounds;
use crate::codes::Code;
use crate::holder::Holder;
use std::sync::Arc;

use crate::codec::Wire;
use crate::command::Push;
use crate::cursor::NONE;
use crate::message::LogId;
use crate::mqtt;
use crate::report::{Order, Report};
use crate::rights::{Action, Verdict};
use crate::settings::Settings;
use crate::subject::Selector;

/// When to look again whether somebody else has left.
const QUOTA_AFTER_MS: u32 = 5_000;

/// How long a peer has to answer the close at the end of a drain, where `close_ms_max` gives it longer.
const LAST_CLOSE_MS: u64 = 500;

/// A drain under way.
#[derive(Debug)]
pub(super) struct Drain {
    deadline_ms: u64,
    spread_ms: u64,
    is_reported: bool,
    is_closing: bool,
}

impl Shard {
    pub fn order<O: SocketOutput>(&mut self, order: Order, out: &mut O) {
        match order {
            Order::Grant { connection, holder, rights, expires_ms, token } => {
                let Some(socket) = self.socket_of(connection) else { return };
                let mut access = Access::granted(holder, rights, token);
                if self.is_another_holder(socket, &access) {
                    let reason = "a renewed token must name the same identity, tenant and authority";
                    self.refuse_login(socket, Code::TokenInvalid, reason);
                    return self.unpark(socket, out);
                }
                if let Err(excess) = self.join_accounts(socket, &mut access) {
                    self.note_excess(excess);
                    self.turn_away(socket, excess, access.holder);
                    return self.unpark(socket, out);
                }
                self.report_renewed(socket, &access);
                self.set_access(socket, Some(Arc::new(access)));
                self.grant_until(socket, expires_ms);
                let Some(found) = self.connections.get_mut(socket) else { return };
                if let Some(details) = found.details.as_mut() {
                    details.tried = None;
                }
                if let Some(id) = found.details.as_mut().and_then(|details| details.connect_id.take()) {
                    self.connected(socket, &id);
                }
                self.judge_again(socket);
                self.ask_all_again(socket);
                self.look_at_token(socket);
                self.unpark(socket, out);
            }
            Order::Refuse { connection, code, reason } => {
                let Some(socket) = self.socket_of(connection) else { return };
                self.note_failure(socket, code);
                self.refuse_login(socket, code, &reason);
                self.unpark(socket, out);
            }
            Order::Close { connection, code, reason } => {
                let Some(socket) = self.socket_of(connection) else { return };
                self.close(socket, code, &reason);
                self.unpark(socket, out);
            }
            Order::Answer { connection, rule, is_background } => {
                let Some(socket) = self.socket_of(connection) else { return };
                self.take_answer(socket, rule, is_background);
                if !is_background {
                    self.go_on_answered(socket, out);
                }
            }
            Order::Withdraw { source, code, within_ms } => self.withdraw(&source, code, within_ms),
            Order::AskAgain { identity, tenant } => self.forget_all_answers(identity.as_deref(), tenant.as_deref()),
            Order::Revoke { revoked, code } => self.revoke(&revoked, code),
            Order::Purge { subject, log } => self.purge(&subject, log),
            Order::Configure(settings) => self.configure(settings),
            Order::Drain { grace_ms, spread_ms } => self.begin_drain(grace_ms, spread_ms, out),
            Order::ListConnections { ask, list } => self.list(ask, &list),
            Order::ShowConnection { ask, connection } => self.show(ask, connection),
            Order::Page(page) => self.keep_page(*page),
            Order::Stop => {}
        }
    }

    /// Ends a connection whose login or whose renewed token was refused: counted and told once, whatever its wire.
    pub(super) fn refuse_login(&mut self, socket: u32, code: Code, reason: &str) {
        let connection_id = self.connection_id(socket);
        let Some(connection) = self.connections.get(socket) else { return };
        let report = Report::LoginRefused {
            connection: connection_id,
            client: connection.client().cloned().unwrap_or_default(),
            address: connection.peer.address(),
            code,
            reason: if reason.is_empty() { code.sentence() } else { reason }.to_owned(),
        };
        self.counters.count_refused(code);
        self.report(report);
        self.close(socket, code, reason);
    }

    /// A connected client shows another token, which is granted now. A request of another user on the same HTTP connection renews nothing.
    fn report_renewed(&mut self, socket: u32, access: &Access) {
        let connection_id = self.connection_id(socket);
        let Some(connection) = self.connections.get_mut(socket).filter(|connection| connection.is_announced) else {
            return;
        };
        let is_renewed = if connection.wire == Wire::Poll {
            let before = connection.exchange().before.take();
            before.is_some_and(|before| before.holder == access.holder && is_another_token(&before, access))
        } else {
            // `is_another_holder` has closed the connection if the holder differs.
            connection.access.as_ref().is_none_or(|before| before.is_basis || is_another_token(before, access))
        };
        if is_renewed && self.settings.reports_sessions {
            let (holder, token) = (Arc::clone(&access.holder), access.token.clone());
            self.report(Report::Renewed { connection: connection_id, holder, token });
        }
    }

    /// The command that asked is carried out.
    fn go_on_answered<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        self.unpark(socket, out);
        // What was not asked again has gone another way.
        if self.connections.get(socket).is_some_and(|connection| !connection.is_asking) {
            self.forget_unanswered(socket);
        }
    }

    /// Whether a token that was shown on an open connection names somebody else than the one before it: what the connection has was
    /// granted to that one. Requests over HTTP show one each.
    fn is_another_holder(&self, socket: u32, access: &Access) -> bool {
        let Some(connection) = self.connections.get(socket) else { return false };
        let is_open = connection.phase == Phase::Open && connection.wire != Wire::Poll;
        let before = connection.access.as_ref().filter(|before| is_open && !before.is_basis);
        before.is_some_and(|before| before.holder != access.holder)
    }

    /// Ends a connection for a limit, saying when to come again. `holder`: who came, as far as it is known.
    pub(super) fn turn_away(&mut self, socket: u32, excess: Excess, holder: Arc<Holder>) {
        let refusal = excess.refusal();
        self.counters.count_refused(refusal.code);
        self.tell_refusal_of(socket, holder, refusal.code, &refusal.reason);
        let after_ms = if refusal.after_ms > 0 { refusal.after_ms } else { QUOTA_AFTER_MS };
        self.close_until(socket, refusal.code, &refusal.reason, Some(u64::from(after_ms)));
    }

    /// Lets go of the windows that hold frames of a subject; whoever stands in one is caught up from the logs.
    fn purge(&mut self, subject: &str, log: LogId) {
        let mut concerned = Vec::new();
        self.streams.concerned(log, subject, &mut concerned);
        for stream in concerned {
            self.close_window(stream);
        }
    }

    /// Takes other settings. Who is anonymous gets the new rights, and loses what they no longer cover.
    fn configure(&mut self, settings: Arc<Settings>) {
        self.commit();
        self.doors = Doors::new(&settings);
        self.anonymous = Access::anonymous(&settings);
        self.bounds = Bounds::of(&settings.limits);
        self.press.bytes_min = settings.limits.compress_bytes_min;
        self.settings = settings;
        let sockets: Vec<u32> = self.connections.indices_from(0).collect();
        for socket in sockets {
            let Some(connection) = self.connections.get_mut(socket) else { continue };
            connection.door = self.doors.door(connection.listener, connection.peer.address(), &self.settings);
            // A token of no identity is anonymous too, but its rights are its own.
            let is_open = connection.phase == Phase::Open;
            if connection.access.as_ref().is_some_and(|access| access.is_basis) {
                let anonymous = self.anonymous.clone();
                self.set_access(socket, anonymous);
            }
            self.count_again(socket);
            if is_open {
                self.judge_again(socket);
            }
        }
    }

    /// Ends the subscriptions and watches that a connection's new rights no longer cover.
    pub(super) fn judge_again(&mut self, socket: u32) {
        let mut ended = Vec::new();
        let mut id = self.connections.get(socket).map_or(NONE, |c| c.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            let here = id;
            if let Some(stream) = self.streams.get(cursor.stream) {
                let name = mqtt::split_shared(&stream.name).map_or(&*stream.name, |(_, selector)| selector);
                let is_granted = Selector::parse(name)
                    .is_ok_and(|selector| self.judge(socket, Action::Subscribe, &selector) != Verdict::Deny);
                if !is_granted {
                    ended.push((here, Arc::clone(&stream.name), Code::SubscribeForbidden));
                }
            }
            id = cursor.next;
        }
        for (id, selector, code) in &ended {
            self.hand_over_all(socket, *id);
            self.unsubscribe(socket, selector);
            self.tell_ended(socket, selector, *code);
        }
        for pattern in self.watched_by(socket) {
            if self.judge(socket, Action::Publish, &Selector::Pattern(pattern.clone())) == Verdict::Deny {
                self.remove_watch(socket, pattern.text());
                self.tell_ended(socket, pattern.text(), Code::WatchForbidden);
            }
        }
    }

    pub(super) fn tell_ended(&mut self, socket: u32, selector: &str, code: Code) {
        if let Some(connection) = self.connections.get_mut(socket) {
            let push = Push::Ended { selector, code, reason: code.sentence() };
            put_notice(connection, &push);
            self.make_ready(socket);
        }
    }

    fn begin_drain<O: SocketOutput>(&mut self, grace_ms: u64, spread_ms: u64, out: &mut O) {
        out.stop_accepting();
        self.commit();
        // Who has been told once knows: a second drain only ends sooner.
        let sockets: Vec<u32> = self.connections.indices_from(0).filter(|_| self.drain.is_none()).collect();
        for socket in sockets {
            let reconnect_after_ms = self.reconnect_after_ms(socket, spread_ms);
            let Some(connection) = self.connections.get_mut(socket) else { continue };
            if connection.phase == Phase::Open {
                put_notice(connection, &Push::Draining { reconnect_after_ms });
                self.make_ready(socket);
            }
            if self.connections.get(socket).is_some_and(Connection::has_asked_nothing) {
                self.begin_close(socket, Code::Draining as u16, "");
                self.hurry_login(socket);
            }
        }
        let deadline_ms = self.now.mono_ms + grace_ms;
        self.drain = Some(Drain { deadline_ms, spread_ms, is_reported: false, is_closing: false });
        self.next_sweep_ms = self.now.mono_ms;
    }

    /// Spread evenly by the connection's serial: neighbours in time come back far apart.
    fn reconnect_after_ms(&self, socket: u32, spread_ms: u64) -> u64 {
        let serial = self.connections.get(socket).map_or(0, |c| c.serial);
        let mixed = u64::from(serial.wrapping_mul(0x9e37_79b1));
        (mixed * spread_ms) >> 32
    }

    /// A connection that has not logged in is closed without waiting for the client's answer to the close.
    fn hurry_login(&mut self, socket: u32) {
        if let Some(connection) = self.connections.get_mut(socket).filter(|connection| connection.access.is_none()) {
            connection.is_finished = true;
            if let Some(exchange) = connection.details.as_mut().and_then(|details| details.exchange.as_mut()) {
                exchange.lingers = false;
            }
            self.make_ready(socket);
        }
    }

    pub(super) fn sweep_drain<O: SocketOutput>(&mut self, out: &mut O) {
        let Some(drain) = &mut self.drain else { return };
        let (now_ms, spread_ms) = (self.now.mono_ms, drain.spread_ms);
        let is_due = now_ms >= drain.deadline_ms && !drain.is_closing;
        // The sweep's turn would come to some of them only seconds later.
        let is_over = drain.is_closing && now_ms >= drain.deadline_ms + LAST_CLOSE_MS;
        drain.is_closing |= is_due;
        let sockets: Vec<u32> = self.connections.indices_from(0).filter(|_| is_due || is_over).collect();
        for socket in sockets {
            if is_due {
                let reconnect_after_ms = self.reconnect_after_ms(socket, spread_ms);
                self.close_until(socket, Code::Draining, "", Some(reconnect_after_ms));
                self.hurry_close(socket, LAST_CLOSE_MS);
                self.hurry_login(socket);
            } else {
                self.look_at(socket, out);
            }
        }
        if let Some(drain) = &mut self.drain
            && self.connections.is_empty()
            && !drain.is_reported
        {
            drain.is_reported = true;
            self.reports.push(Report::Drained { shard: self.index });
        }
    }
}

/// Whether two tokens may differ: those without a name cannot be told apart.
fn is_another_token(before: &Access, access: &Access) -> bool {
    before.token.is_none() || before.token != access.token
}
