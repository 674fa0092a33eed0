//! Subscriptions of one client that overlap: a message that several of them select is sent once, at the highest QoS of them and
//! with all their identifiers [MQTT-3.3.4-2 to 3.3.4-4]. Which of them sends it follows from what they are and when they began,
//! never from where they stand, so that a cursor that falls behind or is set back takes nothing from another one.
//! Subscriptions that sit among ready packets, at QoS 0, each get a copy, as the standard allows. Where another one is to send from now
//! on, because one ended or was asked for again at another QoS, that sends what the one before had not.
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::deliver::Wanted;
use super::parts::Parts;
use crate::codec::Wire;
use crate::command::Outcome;
use crate::cursor::{Cursor, CursorState, NONE};
use crate::mqtt::{Qos, subject_of};
use crate::node::{Inherited, Sender};
use crate::shard::streams::Streams;
use crate::shard::{Shard, lock};
use crate::slab::Slab;
use crate::stream::Source;
use crate::subject::{Pattern, Selector};

#[derive(Debug, Default)]
pub(super) struct Overlaps {
    /// Of each subscription that overlaps an earlier one: the arrival after which it selects.
    began: HashMap<u32, u64>,
    /// Of each that sends in place of others now: what they sent, and what they did not.
    inherited: HashMap<u32, Inherited>,
}

/// A subscription that is replaced by one for the same filter.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    /// The arrival after which it selects.
    began: u64,
    inherited: Option<Inherited>,
    /// Those that leave to it what they select as well.
    lower: HashSet<u32>,
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
            let is_own = wanted.options.is_not_local && self.is_own(parts);
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

    /// Whether the client has published it.
    fn is_own(&self, parts: &Parts<'_>) -> bool {
        parts.publisher != 0 && parts.publisher == self.serial
    }

    /// Whether nobody has sent the message before a cursor, as far as it has inherited from others.
    fn is_left(&self, id: u32, parts: &Parts<'_>) -> bool {
        let inherited = self.overlaps.inherited.get(&id);
        inherited.is_none_or(|all| all.sends(&subject_of(parts.topic), parts.arrival, self.is_own(parts)))
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
        let Ok(pattern) = Pattern::parse(selector.text()) else { return };
        // Also one that sits among ready packets may be asked for otherwise some day.
        let overlaps = !self.overlapping(socket, id, &pattern, true).is_empty();
        self.forget_overlap(socket, id);
        if let Some(all) = self.overlaps_mut(socket).filter(|_| overlaps) {
            all.get_or_insert_default().began.insert(id, began);
        }
    }

    /// The arrival after which a subscription selects, if it overlaps an earlier one.
    pub(super) fn began(&self, socket: u32, cursor: u32) -> u64 {
        self.overlaps(socket).and_then(|overlaps| overlaps.began.get(&cursor).copied()).unwrap_or(0)
    }

    /// What is to be known of a subscription for the one that replaces it.
    pub(super) fn replaced(&mut self, socket: u32, id: u32) -> Replaced {
        let (began, inherited) = (self.began(socket, id), self.inherited(socket, id));
        let lower = self.lower(socket, id).into_iter().collect();
        self.forget_overlap(socket, id);
        Replaced { began, inherited, lower }
    }

    fn forget_overlap(&mut self, socket: u32, id: u32) {
        if let Some(overlaps) = self.overlaps_mut(socket).and_then(|overlaps| overlaps.as_mut()) {
            overlaps.began.remove(&id);
            overlaps.inherited.remove(&id);
        }
    }

    /// What is known of a client's subscriptions; none where none overlap.
    fn overlaps(&self, socket: u32) -> Option<&Overlaps> {
        self.connections.get(socket)?.mqtt.as_ref()?.overlaps.as_deref()
    }

    fn overlaps_mut(&mut self, socket: u32) -> Option<&mut Option<Box<Overlaps>>> {
        Some(&mut self.connections.get_mut(socket)?.mqtt.as_mut()?.overlaps)
    }

    /// A subscription goes on with another one's cursor, which may rank otherwise.
    pub(super) fn replace_overlap(&mut self, socket: u32, id: u32, selector: &Selector, replaced: Replaced) {
        self.note_overlap(id, selector, replaced.began);
        self.inherit(socket, id, replaced.inherited);
        let lower = self.lower(socket, id);
        let now: HashSet<u32> = lower.iter().copied().collect();
        for &raised in replaced.lower.difference(&now) {
            self.hand_over(socket, id, raised);
        }
        // Of those that were to send the same, the last decides.
        for &passed in lower.iter().filter(|other| !replaced.lower.contains(other)) {
            self.hand_over(socket, passed, id);
        }
    }

    /// A subscription ends: those that left to it what they select as well send what it was still to send.
    pub(in crate::shard) fn hand_over_all(&mut self, socket: u32, leaving: u32) {
        for other in self.lower(socket, leaving) {
            self.hand_over(socket, leaving, other);
        }
        self.forget_overlap(socket, leaving);
    }

    /// From now on one subscription sends what another one was to send of what both select.
    fn hand_over(&mut self, socket: u32, from: u32, to: u32) {
        let Some(cursor) = self.cursors.get(from) else { return };
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        let (stood, _) = self.arrival_of(from);
        let sender = Sender {
            selector: Box::from(&*stream.name),
            is_not_local: Wanted::of(cursor).options.is_not_local,
            began: self.began(socket, from),
            stood,
            inherited: self.inherited(socket, from),
        };
        let (arrival, _) = self.arrival_of(to);
        let inherited = Inherited::and(self.inherited(socket, to), arrival, sender);
        self.inherit(socket, to, inherited);
        // What came before it began is none of its business.
        let back = stood.max(self.began(socket, to));
        if arrival > back {
            self.go_back(socket, to, back);
        }
    }

    /// The subscriptions of a client that leave to this one what they select as well; to whom the others leave it, last.
    fn lower(&self, socket: u32, id: u32) -> Vec<u32> {
        if self.overlaps(socket).is_none() {
            return Vec::new();
        }
        let stream = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream));
        let stream = stream.filter(|stream| stream.wire == Wire::MqttParts);
        let Some(Ok(pattern)) = stream.map(|stream| Pattern::parse(&stream.name)) else { return Vec::new() };
        let mut others = self.overlapping(socket, id, &pattern, false);
        others.retain(|&other| self.rank(socket, other) < self.rank(socket, id));
        others.sort_by_key(|&other| self.rank(socket, other));
        others
    }

    /// A subscription begins again after an arrival behind it, in the journal as well.
    fn go_back(&mut self, socket: u32, id: u32, arrival: u64) {
        let stream = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream));
        let Some(selector) = stream.map(|stream| Arc::clone(&stream.name)) else { return };
        self.end_range(id);
        if let Some(cursor) = self.cursors.get_mut(id) {
            match cursor.job.as_mut().and_then(|job| job.join.as_mut()).filter(|_| cursor.stand == CursorState::Joining)
            {
                // What was retained since then comes as what it was when it was published.
                Some(join) => join.bound = arrival,
                None => (cursor.stand, cursor.sequence) = (CursorState::Behind(arrival), 0),
            }
        }
        self.queue_behind(id);
        let node = Arc::clone(&self.node);
        self.settle_client_range(id, arrival, &lock(&node));
        self.note_subscribed(socket, &selector, Outcome::Recovered, None);
    }

    /// What a subscription has to do with others that sent before it, as far as that still matters.
    pub(super) fn inherited(&self, socket: u32, id: u32) -> Option<Inherited> {
        let all = self.overlaps(socket)?.inherited.get(&id)?;
        all.clone().beyond(self.arrival_of(id).0)
    }

    pub(super) fn inherit(&mut self, socket: u32, id: u32, inherited: Option<Inherited>) {
        let Some(overlaps) = self.overlaps_mut(socket) else { return };
        if let Some(inherited) = inherited {
            overlaps.get_or_insert_default().inherited.insert(id, inherited);
        } else if let Some(overlaps) = overlaps {
            overlaps.inherited.remove(&id);
        }
    }

    fn rank(&self, socket: u32, id: u32) -> Option<Rank<'_>> {
        let cursor = self.cursors.get(id)?;
        let name = &*self.streams.get(cursor.stream)?.name;
        Some((Wanted::of(cursor).options.qos, Reverse(self.began(socket, id)), Reverse(name)))
    }

    /// The client's other subscriptions that select something of a pattern; `with_plain`: also those among ready packets.
    fn overlapping(&self, socket: u32, except: u32, pattern: &Pattern, with_plain: bool) -> Vec<u32> {
        let mut found = Vec::new();
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            let is_meant = |wire| wire == Wire::MqttParts || with_plain && matches!(wire, Wire::Mqtt(_));
            let stream = self.streams.get(cursor.stream).filter(|stream| is_meant(stream.wire));
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
    let sender = subscriptions.is_left(id, parts).then(|| subscriptions.merge(parts)).flatten();
    sender.filter(|(sender, _)| *sender == id).map(|(_, wanted)| wanted)
}
