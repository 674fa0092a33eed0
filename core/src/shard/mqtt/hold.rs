//! Where a connected client's session stands, for the node: the logs keep what it has yet to be sent or has not settled. Owns when that is told:
//! at once when its subscriptions change, else as the sweep comes by and something has changed. Between two of them the node knows an
//! older place, which holds more.
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::Stage;
use crate::codec::Wire;
use crate::cursor::NONE;
use crate::shard::{Shard, lock};

const QOS_BITS: u8 = 3;

impl Shard {
    /// Tells the node where a client's subscriptions at QoS 1 and 2 stand.
    pub(super) fn hold_stands(&mut self, socket: u32) {
        let connection = self.connection_id(socket);
        let mut stands: Vec<(Arc<str>, u64)> = Vec::new();
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            if let Some(stream) = self.streams.get(cursor.stream).filter(|_| cursor.options & QOS_BITS > 0)
                && !matches!(stream.wire, Wire::MqttShared(_))
            {
                stands.push((Arc::clone(&stream.name), self.arrival_of(id).0));
            }
            id = cursor.next;
        }
        let state = self.hold_state(socket);
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        if mqtt.stage != Stage::Open {
            return;
        }
        mqtt.held_state = state;
        let (places, mut node) = (mqtt.flight.unreleased(), lock(&self.node));
        let after = node.before_in_flight(places);
        mqtt.flight.pin(mqtt.held_at, &node);
        mqtt.held_at = self.arrived;
        stands.iter_mut().for_each(|(_, arrival)| *arrival = after.min(*arrival));
        node.hold(mqtt.client_key(), connection, stands);
        self.wakes |= node.take_wakes();
    }

    /// The same as the sweep comes by, where something has been sent or settled since.
    pub(in crate::shard) fn hold_stands_again(&mut self, socket: u32) {
        let state = self.hold_state(socket);
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        if mqtt.is_some_and(|mqtt| mqtt.stage == Stage::Open && mqtt.held_state != state) {
            self.hold_stands(socket);
        }
    }

    /// A number that is another when the places are; 0 where nothing is held.
    fn hold_state(&self, socket: u32) -> u64 {
        let Some(connection) = self.connections.get(socket) else { return 0 };
        let Some(mqtt) = connection.mqtt.as_ref() else { return 0 };
        let (mut hasher, mut has_any) = (DefaultHasher::new(), false);
        mqtt.flight.hash_state(&mut hasher);
        let mut id = connection.first_cursor;
        while let Some(cursor) = self.cursors.get(id) {
            if cursor.options & QOS_BITS > 0 {
                let used_ms = self.streams.get(cursor.stream).map_or(0, |stream| stream.used_ms);
                (cursor.stream, cursor.stand, used_ms).hash(&mut hasher);
                has_any = true;
            }
            id = cursor.next;
        }
        if has_any { hasher.finish() | 1 } else { 0 }
    }
}
