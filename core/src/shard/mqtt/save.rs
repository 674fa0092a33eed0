//! The session of a client that is connected, noted in the journal's notes: at once when its subscriptions change, else as the sweep comes
//! by and it has been sent something. Owns that a note costs nothing where nothing changed, and is never further on than the client.
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::Stage;
use crate::cursor::NONE;
use crate::node::{Kept, Will};
use crate::shard::{Shard, lock};

/// The place of an idle client is noted again when it is an eighth of the node's index old.
const SHARE: u64 = 8;

impl Shard {
    /// Notes what a connected client's session has come to, if that is news.
    pub(in crate::shard) fn save_session(&mut self, socket: u32) {
        if self.settings.journal.is_none() {
            return;
        }
        let connection_id = self.connection_id(socket);
        let state = self.session_state(socket);
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        if mqtt.stage != Stage::Open || std::mem::replace(&mut mqtt.saved, state) == state {
            return;
        }
        let (id, session_ms) = (Arc::clone(mqtt.client_key()), mqtt.session_ms);
        let (in_flight, last_packet_id) = mqtt.flight.show();
        let (received, (gaps, notices)) = (mqtt.received.clone(), mqtt.notified());
        let subscriptions = if session_ms > 0 { self.kept_subscriptions(socket) } else { Vec::new() };
        let mut node = lock(&self.node);
        let places = in_flight.iter().filter(|packet| packet.needs_message());
        let owed_after = node.before_in_flight(places.map(|packet| (packet.log, packet.sequence)));
        let kept = Kept {
            subscriptions,
            in_flight,
            received,
            last_packet_id,
            gaps,
            notices,
            owed_after,
            floor: 0,
            is_restored: false,
        };
        node.save_client(&id, connection_id, Some(&kept), session_ms);
    }

    /// Gives the node the will of a client that has come.
    pub(super) fn save_will(&mut self, socket: u32, mut will: Will) {
        let (origin, came, connection_id) = (self.origin(socket), self.came(socket), self.connection_id(socket));
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let (Some(mqtt), Some(access)) = (connection.mqtt.as_mut(), &connection.access) else { return };
        will.take_rights(&access.rights, access.voucher());
        will.token = access.token.clone();
        will.came = came;
        will.draft.holder = Arc::clone(&access.holder);
        will.draft.origin = if access.is_anonymous { origin } else { 0 };
        mqtt.has_will = true;
        lock(&self.node).save_will(mqtt.client_key(), connection_id, will);
    }

    /// A number that is another when the session is.
    fn session_state(&self, socket: u32) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Some(connection) = self.connections.get(socket) else { return 0 };
        let Some(mqtt) = connection.mqtt.as_ref() else { return 0 };
        (mqtt.session_ms, &mqtt.received, mqtt.notified()).hash(&mut hasher);
        mqtt.flight.hash_state(&mut hasher);
        let step = (self.settings.limits.index_entries_max as u64 / SHARE).max(1);
        (self.arrived / step).hash(&mut hasher);
        let mut id = connection.first_cursor;
        while id != NONE {
            let Some(cursor) = self.cursors.get(id) else { break };
            (cursor.stream, cursor.options, cursor.subscription_id).hash(&mut hasher);
            id = cursor.next;
        }
        hasher.finish() | 1
    }
}
