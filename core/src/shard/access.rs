//! May this connection do that? The one place where it is decided, for every wire and every way a message takes: connect,
//! subscribe, history, snapshot, retained, shared, will, REST. Nothing of a subject is shown, and nothing published on it, to
//! whom `judge` has not said `Allow`; a wire asks with the selector it is about to serve, and serves nothing else.
//! Owns what a listener and an address allow; what an identity may do is compiled in `rights`, how much of it in `quota`.
mod asking;
mod expiry;
mod failures;
mod peer;
mod quota;
mod reply;
mod share;
mod takeover;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::connection::Access;
use super::{Shard, lock};
use crate::address::Networks;
use crate::codes::Code;
use crate::command::Refusal;
use crate::holder::Revoked;
use crate::node::{Came, Ended};
use crate::report::Report;
use crate::rights::{Action, Verdict};
use crate::settings::{Listener, Settings};
use crate::subject::Selector;
pub(super) use asking::{Prepaid, Reasked};
pub(super) use peer::Peer;
pub(super) use quota::{Entry, Excess};
pub(super) use reply::ReplyRight;

/// What the way a client came by allows at all: its listener's role and, for publishers, its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Door(u8); // one byte: every connection keeps one

impl Door {
    pub(super) fn new(may_subscribe: bool, may_publish: bool) -> Self {
        Self(u8::from(may_subscribe) | u8::from(may_publish) << 1)
    }

    pub(super) fn may_subscribe(self) -> bool {
        self.0 & 1 != 0
    }

    pub(super) fn may_publish(self) -> bool {
        self.0 & 2 != 0
    }
}

/// The settings that say who may come in by which door, compiled.
#[derive(Debug, Default)]
pub(super) struct Doors {
    publishers: Networks,
    /// Whose word about a client's address is taken.
    pub proxies: Networks,
    roles: Vec<(bool, bool)>,
}

impl Doors {
    /// Lists that do not parse hold nobody: `check` has refused them before.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            publishers: Networks::parse(&settings.publisher_addresses).unwrap_or_default(),
            proxies: Networks::parse(&settings.trusted_proxies).unwrap_or_default(),
            roles: settings.listeners.iter().map(role).collect(),
        }
    }

    /// Which door an address that came to a listener goes through.
    pub(super) fn door(&self, listener: u8, address: SocketAddr, settings: &Settings) -> Door {
        let (may_subscribe, may_publish) = self.roles.get(usize::from(listener)).copied().unwrap_or((true, true));
        let is_listed = settings.publisher_addresses.is_empty() || self.publishers.contains(address.ip());
        Door::new(may_subscribe, may_publish && is_listed)
    }

    /// The door that who came so would go through now. By a listener that is no more anybody comes as by the others.
    pub(super) fn door_of(&self, came: &Came, settings: &Settings) -> Door {
        let listener = settings.listeners.iter().position(|listener| *listener.name == *came.listener);
        let may_publish = match listener {
            Some(listener) => self.roles.get(listener).is_none_or(|(_, may_publish)| *may_publish),
            None => self.roles.is_empty() || self.roles.iter().any(|(_, may_publish)| *may_publish),
        };
        let is_listed = settings.publisher_addresses.is_empty()
            || came.address.is_some_and(|address| self.publishers.contains(address));
        Door::new(false, may_publish && is_listed)
    }
}

fn role(listener: &Listener) -> (bool, bool) {
    (listener.role != "publish", listener.role != "subscribe")
}

/// Refuses settings whose lists or roles are none.
pub fn check(settings: &Settings) -> Result<(), Refusal> {
    Networks::parse(&settings.publisher_addresses)?;
    Networks::parse(&settings.trusted_proxies)?;
    for listener in &settings.listeners {
        if !["", "both", "subscribe", "publish"].contains(&listener.role.as_str()) {
            return Err(Refusal::new(Code::FieldInvalid, format!("no such role of a listener: {}", listener.role)));
        }
    }
    Ok(())
}

/// The decision. A session that outlives its connection (a will, an offline session) keeps what it came with and asks here too.
pub(super) fn decide(access: Option<&Access>, door: Door, action: Action, selector: &Selector) -> Verdict {
    let is_open = match action {
        Action::Subscribe => door.may_subscribe(),
        Action::Publish => door.may_publish(),
    };
    match (access.filter(|_| is_open), selector) {
        (None, _) => Verdict::Deny,
        (Some(access), Selector::Subject(subject)) => access.rights.judge_subject(action, subject),
        (Some(access), Selector::Pattern(pattern)) => access.rights.judge_pattern(action, pattern),
    }
}

impl Shard {
    /// May this connection have or publish on all of the selector?
    pub(super) fn judge(&self, socket: u32, action: Action, selector: &Selector) -> Verdict {
        self.connections.get(socket).map_or(Verdict::Deny, |c| decide(c.access.as_deref(), c.door, action, selector))
    }

    /// The same of a subject that is known to be one.
    pub(super) fn judge_subject(&self, socket: u32, action: Action, subject: &str) -> Verdict {
        let Some(connection) = self.connections.get(socket) else { return Verdict::Deny };
        let door = connection.door;
        match (&connection.access, action) {
            (None, _) => Verdict::Deny,
            (_, Action::Subscribe) if !door.may_subscribe() => Verdict::Deny,
            (_, Action::Publish) if !door.may_publish() => Verdict::Deny,
            (Some(access), action) => access.rights.judge_subject(action, subject),
        }
    }

    /// Why something was denied, for a person: whom a listener or an address keeps out would look for it in vain among the rights.
    pub(super) fn why_not(&self, socket: u32, action: Action) -> &'static str {
        let door = self.connections.get(socket).map(|connection| connection.door);
        match action {
            Action::Subscribe if door.is_some_and(|door| !door.may_subscribe()) => {
                "this listener is for publishers alone"
            }
            Action::Subscribe => "your rights do not cover this subscription",
            Action::Publish if door.is_some_and(|door| !door.may_publish()) => {
                "nothing may be published from this address, or over this listener"
            }
            Action::Publish => "your rights do not cover publishing here",
        }
    }

    /// Ends the connections whose rights come from a source, or from one of its keys, that is trusted no longer, or not as before.
    pub(super) fn withdraw(&mut self, source: &str, code: Code, within_ms: u64) {
        self.commit();
        let is_meant = |of: &str| of.strip_prefix(source).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'));
        let sockets: Vec<u32> = self.connections.indices_from(0).collect();
        for socket in sockets {
            let access = self.connections.get(socket).and_then(|connection| connection.access.as_ref());
            if !access.is_some_and(|access| access.rights.source.as_deref().is_some_and(is_meant)) {
                continue;
            }
            if within_ms == 0 {
                self.close(socket, code, code.sentence());
            } else {
                self.ask_for_renewal(socket, within_ms);
            }
        }
    }

    /// The token of a connection ends in the second half of a time, each one's at a moment of its own.
    fn ask_for_renewal(&mut self, socket: u32, within_ms: u64) {
        let half_ms = within_ms.div_ceil(2);
        let spread_ms = self.connection_id(socket).0.wrapping_mul(0x9e37_79b9_7f4a_7c15) % half_ms.max(1);
        let wall_ms = self.now.wall_ms;
        let ends_ms = wall_ms.saturating_add(half_ms + spread_ms);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let before_ms = connection.papers.as_ref().and_then(|papers| papers.expires_ms);
        if before_ms.is_none_or(|before_ms| before_ms > ends_ms) {
            connection.set_expiry(ends_ms, wall_ms);
            self.look_at_token(socket);
        }
    }

    /// Closes the connections that came as an identity, or with a token of a name. The first shard ends what is kept of who is away.
    pub(super) fn revoke(&mut self, revoked: &Revoked, code: Code) {
        self.commit();
        if self.index == 0 {
            let mut next = lock(&self.node).revoke_away(revoked, None);
            while let Some(from) = next {
                next = lock(&self.node).revoke_away(revoked, Some(from));
            }
        }
        let mut ended = Ended::default();
        let sockets: Vec<u32> = self.connections.indices_from(0).collect();
        for socket in sockets {
            let Some(connection) = self.connections.get_mut(socket) else { continue };
            let access = connection.access.as_ref();
            if !access.is_some_and(|access| revoked.covers(&access.holder, access.token.as_deref())) {
                continue;
            }
            ended.connections += 1;
            if let Some(mqtt) = connection.mqtt.as_mut() {
                let (has_session, has_will) = mqtt.revoke(revoked.ends_sessions());
                ended.sessions += u64::from(has_session);
                ended.wills += u64::from(has_will);
            }
            self.close(socket, code, code.sentence());
        }
        lock(&self.node).note_ended(ended);
    }

    /// Whether an address's word about where a client comes from is taken.
    pub fn trusts(&self, address: SocketAddr) -> bool {
        self.doors.proxies.contains(address.ip())
    }

    /// The client has shown a certificate that leads to one of our authorities, and perhaps those between (DER).
    pub fn set_certificate(&mut self, socket: u32, certificate: Vec<u8>) {
        if !self.settings.tls.gives_identity {
            return;
        }
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.papers().certificate = Some(certificate.into());
        }
    }

    /// What came beneath the wires, a handshake or a proxy's header, is broken: told to who operates the node, since the peer can
    /// hardly be told.
    pub fn refuse_handshake(&mut self, socket: u32, reason: String) {
        let Some(address) = self.connections.get(socket).map(|connection| connection.peer.address()) else { return };
        self.counters.count_refused(Code::HandshakeBroken);
        self.note_refusal(address, Code::HandshakeBroken as u16, &reason);
        self.report(Report::Refused { address, code: Code::HandshakeBroken, reason });
    }

    /// Whether a client is who its certificate says, unless it shows a token.
    pub(super) fn is_known_by_certificate(&self, socket: u32) -> bool {
        self.connections.get(socket).is_some_and(|connection| connection.certificate().is_some())
    }

    /// Whether the server says who a client is: by its token, by its certificate, or because nobody is let in who is not asked.
    pub(super) fn is_asked(&self, socket: u32, has_token: bool) -> bool {
        let is_judged = self.settings.asks_on_connect && (has_token || self.anonymous.is_none());
        is_judged || !(has_token && self.settings.asks_on_connect) && self.is_known_by_certificate(socket)
    }

    /// A request names the client that it comes from. From a trusted proxy that is believed, request by request, up to the first
    /// address that is none of the trusted; where it names none, the client is nobody that any list holds.
    pub(super) fn take_forwarded(&mut self, socket: u32, forwarded: &[&str]) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_first = !connection.is_forwarded;
        if is_first {
            if forwarded.is_empty() || !self.doors.proxies.contains(connection.peer.address().ip()) {
                return;
            }
            connection.is_forwarded = true;
        }
        let proxies = &self.doors.proxies;
        let mut client: Option<IpAddr> = None;
        for text in forwarded.iter().rev().flat_map(|line| line.rsplit(',')) {
            let text = text.trim();
            // Some proxies write the port as well.
            client = text.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
            if client.is_none_or(|ip| !proxies.contains(ip)) {
                break;
            }
        }
        self.move_peer(socket, SocketAddr::new(client.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), 0), is_first);
    }

    /// A proxy that is trusted has said where the client really comes from: from here on that is its address.
    pub fn set_peer(&mut self, socket: u32, address: SocketAddr) {
        self.move_peer(socket, address, true);
    }

    /// The same, of a connection (`is_new`) or of one request among others.
    fn move_peer(&mut self, socket: u32, address: SocketAddr, is_new: bool) {
        let door = match self.connections.get_mut(socket) {
            Some(connection) if !is_new && connection.peer.address().ip() == address.ip() => return,
            Some(connection) => self.doors.door(connection.listener, address, &self.settings),
            None => return,
        };
        let entry = self.enter(address.ip(), is_new);
        let (member, excess) = match entry {
            Entry::Free(member) => (member, None),
            Entry::Refused(excess) | Entry::Ignored(excess) => (None, Some(excess)),
        };
        self.set_member(socket, member);
        let is_in = self.move_share(socket, address.ip());
        let excess = excess.or_else(|| (!is_in).then(|| self.note_share_excess()));
        let Some(connection) = self.connections.get_mut(socket) else { return };
        (connection.peer, connection.door) = (Peer::new(address), door);
        if excess.is_some() || connection.details.is_some() {
            connection.details().turned_away = excess;
        }
    }
}
