//! Subscriptions of one client that overlap: a message that several of them select is sent once, at the highest QoS of them and
//! with all their identifiers [MQTT-3.3.4-2 to 3.3.4-4]. Which of them sends it follows from what they are and when they began,
//! never from where they stand, so that a cursor that falls behind or is set back takes nothing from another one.
//! Subscriptions that sit among ready packets, at QoS 0, each get a copy, as the standard allows.
use std::collections::HashMap;

use super::deliver::Wanted;
use super::parts::Parts;
use crate::cursor::{Cursor, NONE, Stand};
use crate::mqtt::{Qos, subject_of};
use crate::shard::Shard;
use crate::shard::streams::Streams;
use crate::slab::Slab;
use crate::stream::Source;
use crate::subject::{Pattern, Selector};
use crate::wire::Wire;

/// Of each subscription that overlaps an earlier one: the arrival after which it selects.
#[derive(Debug, Default)]
pub(super) struct Overlaps {
    began: HashMap<u32, u64>,
}

/// Where the subscriptions of a client that are put together stand.
pub(super) struct Subscriptions<'a> {
    pub(super) cursors: &'a Slab<Cursor>,
    pub(super) streams: &'a Streams,
    pub(super) overlaps: &'a Overlaps,
    pub(super) first: u32,
    pub(super) serial: u32,
}

impl Subscriptions<'_> {
    /// The cursor that sends a message, and what it wants for all that select it.
    pub(super) fn merge(&self, parts: &Parts<'_>) -> Option<(u32, Wanted)> {
        let subject = subject_of(parts.topic);
        let mut best: Option<((Qos, u64, u32), Wanted)> = None;
        let (mut ids, mut keeps_retain) = (Vec::new(), false);
        let mut id = self.first;
        while let Some(cursor) = self.cursors.get(id) {
            let (here, began) = (id, self.overlaps.began.get(&id).copied().unwrap_or(0));
            id = cursor.next;
            let wanted = Wanted::of(cursor);
            let is_own = wanted.options.is_not_local && parts.publisher != 0 && parts.publisher == self.serial;
            if is_own || began >= parts.arrival || !self.selects(cursor, parts, &subject) {
                continue;
            }
            keeps_retain |= wanted.options.keeps_retain;
            ids.extend(Some(wanted.subscription_id).filter(|&id| id > 0));
            // The one that began first of those with the highest QoS.
            let rank = (wanted.options.qos, u64::MAX - began, u32::MAX - here);
            if best.as_ref().is_none_or(|(other, _)| *other < rank) {
                best = Some((rank, wanted));
            }
        }
        let ((_, _, place), mut wanted) = best?;
        wanted.options.keeps_retain = keeps_retain;
        wanted.subscription_id = ids.pop().unwrap_or(0);
        ids.retain(|&id| id != wanted.subscription_id);
        ids.sort_unstable();
        ids.dedup();
        wanted.further_ids = ids;
        Some((u32::MAX - place, wanted))
    }

    fn selects(&self, cursor: &Cursor, parts: &Parts<'_>, subject: &str) -> bool {
        self.streams.get(cursor.stream).filter(|stream| stream.wire == Wire::MqttParts).is_some_and(|stream| {
            match &stream.source {
                Source::Subject(log) => *log == parts.log,
                Source::Pattern(pattern) => pattern.matches(subject),
            }
        })
    }
}

impl Shard {
    /// A subscription begins after `began`: notes whether it overlaps another one of its client.
    pub(super) fn note_overlap(&mut self, id: u32, selector: &Selector, began: u64) {
        let Some(socket) = self.cursors.get(id).map(|cursor| cursor.connection) else { return };
        let Ok(pattern) = Pattern::parse_levels(selector.text()) else { return };
        let overlaps = !self.overlapping(socket, id, &pattern).is_empty();
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|connection| connection.mqtt.as_mut()) else { return };
        if overlaps {
            mqtt.overlaps.get_or_insert_default().began.insert(id, began);
        } else if let Some(overlaps) = &mut mqtt.overlaps {
            overlaps.began.remove(&id);
        }
    }

    /// The arrival after which a subscription selects, if it overlaps an earlier one.
    pub(super) fn began(&self, socket: u32, cursor: u32) -> u64 {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        let overlaps = mqtt.and_then(|mqtt| mqtt.overlaps.as_ref());
        overlaps.and_then(|overlaps| overlaps.began.get(&cursor).copied()).unwrap_or(0)
    }

    /// A subscription ends or changes while it has something to send: the others, which left that to it, send it themselves.
    pub(super) fn hand_over(&mut self, socket: u32, selector: &str) {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        if mqtt.is_none_or(|mqtt| mqtt.overlaps.is_none()) {
            return;
        }
        let (Some(leaving), Ok(pattern)) = (self.cursor_of(socket, selector), Pattern::parse_levels(selector)) else {
            return;
        };
        let (stood, _) = self.arrival_of(leaving);
        for other in self.overlapping(socket, leaving, &pattern) {
            let (arrival, is_joining) = self.arrival_of(other);
            if arrival > stood && !is_joining {
                self.stand(other, Stand::Behind(stood));
                self.queue_behind(other);
            }
        }
    }

    /// The client's other subscriptions that select something of a pattern.
    fn overlapping(&self, socket: u32, except: u32, pattern: &Pattern) -> Vec<u32> {
        let mut found = Vec::new();
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            let stream = self.streams.get(cursor.stream).filter(|stream| stream.wire == Wire::MqttParts);
            let overlaps = stream.is_some_and(|stream| match &stream.source {
                Source::Subject(_) => pattern.has_wildcard() && pattern.matches(&stream.name),
                Source::Pattern(other) => other.overlaps(pattern),
            });
            if overlaps && id != except {
                found.push(id);
            }
            id = cursor.next;
        }
        found
    }
}

/// What a cursor sends of a message, where its client has subscriptions that overlap; none where another one sends it.
pub(super) fn merged(subscriptions: &Subscriptions<'_>, id: u32, parts: &Parts<'_>) -> Option<Wanted> {
    subscriptions.merge(parts).filter(|(sender, _)| *sender == id).map(|(_, wanted)| wanted)
}
