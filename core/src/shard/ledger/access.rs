//! Who came, what they asked to hear, and how they left, as rows. Owns what is known of whom when it happens.
use std::net::SocketAddr;
use std::sync::Arc;

use super::ROWS_MAX;
use crate::command::Outcome;
use crate::holder::Holder;
use crate::journal::{AccessKind, AccessRow, Peer};
use crate::report::ConnectionId;
use crate::shard::Shard;

/// Of what was said beside a code, so much is written down.
const REASON_BYTES: usize = 256;

/// What is written down of a reason, if there is one.
pub(in crate::shard) fn brief(reason: &str) -> Option<Box<str>> {
    let end = reason.floor_char_boundary(REASON_BYTES);
    reason.get(..end).filter(|brief| !brief.is_empty()).map(Box::from)
}

/// Whether a connection that was never let in and ended with a code was refused: one of ours, or of MQTT's that are faults.
pub(in crate::shard) const fn is_refusal(code: u16) -> bool {
    code >= 4000 || matches!(code, 0x80..=0xff)
}

impl Shard {
    pub(super) fn peer(&self, socket: u32) -> Peer {
        let connection = self.connections.get(socket);
        let access = connection.and_then(|c| c.access.as_ref());
        Peer {
            connection: self.connection_id(socket),
            holder: access.map_or_else(Holder::nobody, |access| Arc::clone(&access.holder)),
            client: connection.and_then(|c| c.client().cloned()).unwrap_or_else(|| Arc::from("")),
        }
    }

    /// Writes what happened to a connection; `fill` says what else is known.
    pub(in crate::shard) fn note_access(&mut self, socket: u32, kind: AccessKind, fill: impl FnOnce(&mut AccessRow)) {
        if !self.written.ledger.as_ref().is_some_and(|ledger| ledger.keeps_access && ledger.access.len() < ROWS_MAX) {
            return;
        }
        let Some(connection) = self.connections.get(socket) else { return };
        let (address, protocol) = (connection.peer.address(), connection.wire.name());
        self.push_access(self.peer(socket), address, protocol, kind, fill);
    }

    /// A subscription begins, asked for or with a session that goes on; `place` is where the client said that it stood.
    pub(in crate::shard) fn note_subscribed(
        &mut self,
        socket: u32,
        selector: &str,
        outcome: Outcome,
        place: Option<Box<str>>,
    ) {
        if !self.settings.journals(selector) {
            return;
        }
        self.note_access(socket, AccessKind::Subscribed, |row| {
            (row.selector, row.outcome, row.at) = (Some(Arc::from(selector)), Some(outcome), place);
        });
    }

    pub(in crate::shard) fn note_unsubscribed(&mut self, socket: u32, selector: &str) {
        if self.settings.journals(selector) {
            self.note_access(socket, AccessKind::Unsubscribed, |row| row.selector = Some(Arc::from(selector)));
        }
    }

    /// A connection goes: one that was let in has left, one that was not was refused, where a code says so.
    pub(in crate::shard) fn note_end(&mut self, socket: u32, code: u16) {
        let now_ms = self.now.mono_ms;
        let Some(connection) = self.connections.get(socket).filter(|_| self.written.ledger.is_some()) else { return };
        let close = connection.details.as_ref().and_then(|details| details.close.as_ref());
        let reason = close.and_then(|close| close.reason.clone());
        let duration_ms = connection.since.age_ms(now_ms);
        let kind = if connection.is_announced { AccessKind::Disconnected } else { AccessKind::Refused };
        if connection.is_announced || is_refusal(code) {
            self.note_access(socket, kind, |row| {
                (row.code, row.reason, row.duration_ms) = (Some(code), reason, Some(duration_ms));
            });
        }
    }

    /// The same of somebody who has no connection.
    pub(in crate::shard) fn note_refusal(&mut self, address: SocketAddr, code: u16, reason: &str) {
        if !self.written.ledger.as_ref().is_some_and(|ledger| ledger.keeps_access && ledger.access.len() < ROWS_MAX) {
            return;
        }
        let nobody: Arc<str> = Arc::from("");
        let connection = ConnectionId(0);
        let peer = Peer { connection, holder: Holder::nobody(), client: nobody };
        self.push_access(peer, address, "", AccessKind::Refused, |row| {
            (row.code, row.reason) = (Some(code), brief(reason));
        });
    }

    fn push_access(
        &mut self,
        peer: Peer,
        address: SocketAddr,
        protocol: &'static str,
        kind: AccessKind,
        fill: impl FnOnce(&mut AccessRow),
    ) {
        let now_ms = self.now.wall_ms;
        let Some(ledger) = &mut self.written.ledger else { return };
        let begins = kind == AccessKind::Subscribed;
        let mut row = AccessRow {
            time_us: if begins { ledger.begin_us(now_ms) } else { ledger.time_us(now_ms) },
            kind,
            peer,
            address,
            protocol,
            selector: None,
            outcome: None,
            at: None,
            code: None,
            reason: None,
            duration_ms: None,
        };
        fill(&mut row);
        ledger.access.push(row);
    }
}
