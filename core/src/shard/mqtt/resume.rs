//! A client that comes back to its session: its subscriptions stand where they stood, and what it had not settled is sent again,
//! in order and before anything new [MQTT-4.4.0-1, MQTT-4.6.0-1].
use std::sync::Arc;

use super::admit::Restored;
use super::flight::Flight;
use super::overlap::Subscriptions;
use super::parts::Parts;
use crate::command::Outcome;
use crate::cursor::CursorState;
use crate::mqtt::Qos;
use crate::node::{InFlight, KeptSubscription};
use crate::shard::{Shard, lock};
use crate::subject::Selector;

const PUBREL: u8 = 6;
/// The bits of a subscription's options that say its QoS.
const QOS_BITS: u8 = 3;

impl Shard {
    /// Places what was restored, once the client has its CONNACK.
    pub(super) fn resume_client(&mut self, socket: u32, restored: Restored) {
        let Restored { kept, cursors, lost, .. } = restored;
        if let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) {
            mqtt.flight = Flight::resumed(kept.in_flight, kept.last_packet_id);
            mqtt.received = kept.received;
            mqtt.received.iter_mut().for_each(|one| one.is_returned = true);
            if kept.gaps.is_some() || kept.notices.is_some() {
                let rare = mqtt.rare_mut();
                (rare.gaps, rare.notices) = (kept.gaps, kept.notices);
            }
        }
        self.await_resumed(socket);
        for (cursor, subscription) in cursors.iter().zip(&kept.subscriptions) {
            self.place_restored(socket, *cursor, subscription);
        }
        // Which overlap is known when all are there.
        for (cursor, subscription) in cursors.into_iter().zip(kept.subscriptions) {
            if let (Some(cursor), Ok(selector)) = (cursor, Selector::parse(&subscription.selector)) {
                self.note_overlap(cursor, &selector, subscription.began);
                self.inherit(socket, cursor, subscription.inherited);
            }
        }
        for (selector, code) in lost {
            self.tell_lost(socket, &selector, code);
        }
        self.resend(socket);
    }

    /// `cursor` is none for a group's member: its group knows where it stands.
    fn place_restored(&mut self, socket: u32, cursor: Option<u32>, kept: &KeptSubscription) {
        let Some(cursor) = cursor else {
            return self.note_subscribed(socket, &kept.selector, Outcome::Recovered, None);
        };
        let mut stood = kept.arrival;
        if kept.is_joining {
            self.begin_retained(cursor, kept.arrival, kept.joined.as_deref());
        } else if kept.options & QOS_BITS == 0 {
            stood = self.arrived; // what came meanwhile is owed to nobody
            self.enter_head(cursor);
        } else {
            self.stand(cursor, CursorState::Behind(kept.arrival));
            self.queue_behind(cursor);
        }
        let node = Arc::clone(&self.node);
        self.settle_client_range(cursor, stood, &lock(&node));
        self.note_subscribed(socket, &kept.selector, Outcome::Recovered, None);
    }

    /// Sends again what this session has in flight, as far as the client takes it and its socket does.
    pub(in crate::shard) fn resend(&mut self, socket: u32) {
        let bytes_max = self.settings.limits.reply_buffer_bytes_max;
        loop {
            let Some(connection) = self.connections.get_mut(socket) else { return };
            if connection.private.len() >= bytes_max {
                return;
            }
            let Some(mqtt) = connection.mqtt.as_mut() else { return };
            let Some(packet) = mqtt.flight.resend(mqtt.in_flight_max) else { return };
            if packet.is_released() {
                let reason = crate::mqtt::Reason::SUCCESS;
                mqtt.writer.acknowledge(&mut connection.private, PUBREL, packet.packet_id, reason, "");
            } else if !self.put_again(socket, packet)
                && let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut())
            {
                mqtt.flight.withdraw_resent();
            }
            self.make_ready(socket);
        }
    }

    /// False where the message is no more, has expired, or is larger than the client takes now.
    fn put_again(&mut self, socket: u32, mut packet: InFlight) -> bool {
        let node = lock(&self.node);
        node.pin(&mut packet);
        let wall_ms = self.now.wall_ms;
        let Some(message) = packet.message else { return false };
        // A patch alone is not the state that was sent first; what has been merged into that since follows again.
        let state = node.snapshot(packet.log, self.now).filter(|_| packet.flags & InFlight::STATE != 0);
        let state = state.filter(|state| message.is_patch || state.last.sequence == message.sequence);
        drop(node);
        let parts = state.as_ref().map_or_else(|| Parts::of(&message), Parts::of_snapshot);
        let Some(parts) = parts.filter(|parts| parts.expires_in_s(wall_ms) != Some(0)) else {
            return false;
        };
        let Some(connection) = self.connections.get_mut(socket) else { return false };
        let (first, Some(mqtt)) = (connection.first_cursor, connection.mqtt.as_ref()) else { return false };
        let all = mqtt.overlaps.as_ref().and_then(|overlaps| {
            let (cursors, streams, serial) = (&self.cursors, &self.streams, mqtt.serial);
            Subscriptions { cursors, streams, overlaps, first, serial }.merge(&parts)
        });
        let mut outgoing = parts.outgoing(wall_ms);
        outgoing.qos = if packet.flags & InFlight::EXACTLY_ONCE == 0 { Qos::AtLeastOnce } else { Qos::ExactlyOnce };
        outgoing.packet_id = packet.packet_id;
        outgoing.is_duplicate = true;
        outgoing.is_retained = packet.flags & InFlight::RETAINED != 0;
        outgoing.subscription_id = packet.subscription_id;
        if let Some((_, wanted)) = &all {
            (outgoing.subscription_id, outgoing.further_ids) = (wanted.subscription_id, &wanted.further_ids);
        }
        if mqtt.writer.publish_bytes(&outgoing) > mqtt.packet_bytes_max as usize {
            return false;
        }
        mqtt.writer.publish(&mut connection.private, &outgoing);
        true
    }
}
