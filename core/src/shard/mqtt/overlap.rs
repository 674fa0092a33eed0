//! Subscriptions of one client that overlap: a message that several of them select is sent once, at the highest QoS of them and
//! with all their identifiers [MQTT-3.3.4-2 to 3.3.4-4]. Which of them sends it follows from what they are and when they began,
//! never from where they stand, so that a cursor that falls behind or is set back takes nothing from another one.
//! Subscriptions that sit among ready packets, at QoS 0, each get a copy, as the standard allows.
use std::cmp::Reverse;
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

/// Who sends: the highest QoS, of those who began first, of those the first by name; the same on whichever shard it is asked.
type Rank<'a> = (Qos, Reverse<u64>, Reverse<&'a str>);

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
        let mut best: Option<(Rank<'_>, u32, Wanted)> = None;
        let (mut ids, mut keeps_retain) = (Vec::new(), false);
        let mut id = self.first;
        while let Some(cursor) = self.cursors.get(id) {
            let (here, began) = (id, self.overlaps.began.get(&id).copied().unwrap_or(0));
            id = cursor.next;
            let wanted = Wanted::of(cursor);
            let is_own = wanted.options.is_not_local && parts.publisher != 0 && parts.publisher == self.serial;
            let Some(name) = self.selects(cursor, parts, &subject).filter(|_| !is_own && began < parts.arrival) else {
                continue;
            };
            keeps_retain |= wanted.options.keeps_retain;
            ids.extend(Some(wanted.subscription_id).filter(|&id| id > 0));
            let rank = (wanted.options.qos, Reverse(began), Reverse(name));
            if best.as_ref().is_none_or(|(other, _, _)| *other < rank) {
                best = Some((rank, here, wanted));
            }
        }
        let (_, sender, mut wanted) = best?;
        wanted.options.keeps_retain = keeps_retain;
        wanted.subscription_id = ids.pop().unwrap_or(0);
        ids.retain(|&id| id != wanted.subscription_id);
        ids.sort_unstable();
        ids.dedup();
        wanted.further_ids = ids;
        Some((sender, wanted))
    }

    /// The name of a cursor's selector, if it selects the message.
    fn selects(&self, cursor: &Cursor, parts: &Parts<'_>, subject: &str) -> Option<&str> {
        let stream = self.streams.get(cursor.stream).filter(|stream| stream.wire == Wire::MqttParts)?;
        let is_selected = match &stream.source {
            Source::Subject(log) => *log == parts.log,
            Source::Pattern(pattern) => pattern.matches(subject),
        };
        is_selected.then_some(&*stream.name)
    }
}

impl Shard {
    /// A subscription begins after `began`: notes whether it overlaps another one of its client.
    pub(super) fn note_overlap(&mut self, id: u32, selector: &Selector, began: u64) {
        let Some(socket) = self.cursors.get(id).map(|cursor| cursor.connection) else { return };
        let Ok(pattern) = Pattern::parse_levels(selector.text()) else { return };
        let overlaps = !self.overlapping(socket, id, &pattern).is_empty();
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|connection| connection.mqtt.as_mut()) else {
            return;
        };
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

    /// A subscription is replaced by one at this QoS: returns since when the new one selects, if since before it stands. One
    /// that ranks lower now leaves to others what they left to it; one that ranks higher begins where it stands.
    pub(super) fn change_overlap(&mut self, socket: u32, before: Option<u32>, qos: Qos) -> Option<u64> {
        let before = before?;
        let qos_before = self.cursors.get(before).map(|cursor| Wanted::of(cursor).options.qos)?;
        if qos < qos_before {
            self.hand_over(socket, before);
        }
        (qos <= qos_before).then(|| self.began(socket, before))
    }

    /// A subscription ends, or ranks lower, while it has something to send: those that left that to it send it themselves, and
    /// perhaps some of what they have sent again, but nothing is missed.
    pub(super) fn hand_over(&mut self, socket: u32, leaving: u32) {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        if mqtt.is_none_or(|mqtt| mqtt.overlaps.is_none()) {
            return;
        }
        let stream = self.cursors.get(leaving).and_then(|cursor| self.streams.get(cursor.stream));
        let Some(Ok(pattern)) = stream.map(|stream| Pattern::parse_levels(&stream.name)) else { return };
        let (stood, _) = self.arrival_of(leaving);
        for other in self.overlapping(socket, leaving, &pattern) {
            let (arrival, is_joining) = self.arrival_of(other);
            if arrival > stood && !is_joining && self.rank(socket, other) < self.rank(socket, leaving) {
                self.stand(other, Stand::Behind(stood));
                self.queue_behind(other);
            }
        }
    }

    fn rank(&self, socket: u32, id: u32) -> Option<Rank<'_>> {
        let cursor = self.cursors.get(id)?;
        let name = &*self.streams.get(cursor.stream)?.name;
        Some((Wanted::of(cursor).options.qos, Reverse(self.began(socket, id)), Reverse(name)))
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
