//! From a message to the packet that one client is sent. Owns what differs from client to client: QoS and packet identifier, the
//! retain flag, aliases, subscription identifiers, countdowns, what a client does not want, and when it can take no more.
use super::Mqtt;
use super::overlap::{Subscriptions, merged};
use super::parts::Parts;
use crate::codec::Wire;
use crate::cursor::{Cursor, CursorState};
use crate::message::Message;
use crate::mqtt::{Options, Qos, Version, Writer};
use crate::node::Entry;
use crate::node::InFlight;
use crate::shard::Shard;
use crate::shard::absorb::Single;
use crate::shard::outbound::{Frames, GATHER_BYTES, Note, Passed};
use crate::shard::streams::Streams;
use crate::slab::Slab;
use std::sync::Arc;

/// Appends the packet that all plain subscribers at QoS 0 share; nothing where MQTT has no name for the subject.
pub(in crate::shard) fn put_shared(writer: Writer, message: &Message, out: &mut Vec<u8>) {
    if let Some(parts) = Parts::of(message) {
        // Streams are sent as they grow: what is left of an expiry is what it was.
        writer.publish(out, &parts.outgoing(message.time_ms));
    }
}

/// Appends the parts that packets of one's own are put together from.
pub(in crate::shard) fn put_parts(message: &Message, out: &mut Vec<u8>) {
    if let Some(parts) = Parts::of(message) {
        parts.put(out);
    }
}

/// What became of a message for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It was appended; it is in flight if `is_tracked`.
    Sent { is_tracked: bool },
    /// This client is not to have it: its own, expired, or too large.
    Passed,
    /// As much as the client takes is in flight; it waits.
    Stalled,
}

/// What one subscription wants, or several that overlap.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) options: Options,
    pub(super) subscription_id: u32,
    pub(super) further_ids: Vec<u32>,
}

impl Wanted {
    pub(super) fn of(cursor: &Cursor) -> Self {
        let none = Options { qos: Qos::AtMostOnce, is_not_local: false, keeps_retain: false, retain_handling: 0 };
        let options = Options::read(cursor.options, Version::V5).unwrap_or(none);
        Self { options, subscription_id: cursor.subscription_id, further_ids: Vec::new() }
    }
}

impl Mqtt {
    /// Appends the packet of one message. `is_joining`: as what its subject retains.
    pub(super) fn put(
        &mut self,
        wanted: &Wanted,
        parts: &Parts<'_>,
        is_joining: bool,
        wall_ms: u64,
        out: &mut Vec<u8>,
    ) -> Put {
        let Wanted { options, subscription_id, further_ids } = wanted;
        let is_own = options.is_not_local && parts.publisher != 0 && parts.publisher == self.serial;
        if is_own || parts.expires_in_s(wall_ms) == Some(0) {
            return Put::Passed;
        }
        let mut packet = parts.outgoing(wall_ms);
        // A message without a position cannot be sent again.
        packet.qos = if parts.sequence == 0 { Qos::AtMostOnce } else { options.qos.min(parts.qos) };
        packet.is_retained = is_joining || options.keeps_retain && parts.is_retained;
        packet.subscription_id = *subscription_id;
        packet.further_ids = further_ids;
        let alias_bytes = if self.alias_max > 0 { 4 } else { 0 };
        if self.packet_bytes_max < u32::MAX
            && self.writer.publish_bytes(&packet) + alias_bytes > self.packet_bytes_max as usize
        {
            return Put::Passed;
        }
        let is_tracked = packet.qos > Qos::AtMostOnce;
        if is_tracked {
            if !self.flight.has_room(self.in_flight_max) {
                self.is_stalled = true;
                return Put::Stalled;
            }
            let is_once = packet.qos == Qos::ExactlyOnce;
            let is_on_disk = is_once && parts.is_on_disk && self.session_ms > 0;
            if is_on_disk {
                self.on_disk_mut().change(parts.arrival);
            }
            packet.packet_id = self.flight.send(InFlight {
                packet_id: 0,
                flags: (u8::from(is_once) * InFlight::EXACTLY_ONCE)
                    | (u8::from(packet.is_retained) * InFlight::RETAINED)
                    | (u8::from(is_on_disk) * InFlight::ON_DISK)
                    | (u8::from(is_joining) * InFlight::STATE),
                log: parts.log,
                sequence: parts.sequence,
                subscription_id: *subscription_id,
                group: 0,
                arrival: parts.arrival,
                message: None,
            });
        }
        if self.alias_max > 0 {
            let (alias, is_known) = self.alias(parts);
            packet.alias = alias;
            if is_known {
                packet.topic = "";
            }
        }
        self.writer.publish(out, &packet);
        Put::Sent { is_tracked }
    }

    /// The same for a cursor whose client may have others that overlap it: one of them sends the message, for all.
    #[expect(clippy::too_many_arguments, reason = "the parts of a shard that are borrowed apart")]
    fn put_for(
        &mut self,
        cursors: &Slab<Cursor>,
        streams: &Streams,
        first: u32,
        id: u32,
        wanted: &Wanted,
        parts: &Parts<'_>,
        wall_ms: u64,
        out: &mut Vec<u8>,
    ) -> Put {
        let Some(overlaps) = &self.overlaps else { return self.put(wanted, parts, false, wall_ms, out) };
        let subscriptions = Subscriptions { cursors, streams, overlaps, first, serial: self.serial };
        match merged(&subscriptions, id, parts) {
            Some(merged) => self.put(&merged, parts, false, wall_ms, out),
            None => Put::Passed,
        }
    }

    /// The alias of a message's topic and whether the client knows it; 0 where all that it takes are in use.
    fn alias(&mut self, parts: &Parts<'_>) -> (u16, bool) {
        let max = usize::from(self.alias_max);
        let ours = &mut self.aliases_mut().ours;
        if let Some(alias) = ours.get(&parts.log) {
            return (*alias, true);
        }
        if ours.len() >= max {
            return (0, false);
        }
        let alias = ours.len() as u16 + 1;
        ours.insert(parts.log, alias);
        (alias, false)
    }

    /// Packets that were put together did not leave: `count` of them were in flight. Aliases among them are told anew.
    pub(in crate::shard) fn take_back(&mut self, count: usize) {
        self.flight.take_back(count);
        if let Some(aliases) = self.rare.as_mut().and_then(|rare| rare.aliases.as_mut()) {
            aliases.ours.clear();
        }
    }
}

impl Shard {
    /// Whether a cursor's frames are put together for its client alone.
    pub(in crate::shard) fn has_parts(&self, stream: u32) -> bool {
        self.streams.get(stream).is_some_and(|stream| stream.wire == Wire::MqttParts)
    }

    /// Whether a connection speaks MQTT.
    pub(in crate::shard) fn is_client(&self, socket: u32) -> bool {
        self.connections.get(socket).is_some_and(|connection| connection.mqtt.is_some())
    }

    /// Whether a cursor waits for its client to settle what is in flight.
    pub(in crate::shard) fn is_stalled(&self, cursor: u32) -> bool {
        let Some(cursor) = self.cursors.get(cursor).filter(|cursor| cursor.options & 3 > 0) else { return false };
        let mqtt = self.connections.get(cursor.connection).and_then(|connection| connection.mqtt.as_ref());
        mqtt.is_some_and(|mqtt| mqtt.is_stalled)
    }

    /// Puts together what a stream of parts holds for one of its cursors.
    pub(in crate::shard) fn gather_parts(&mut self, id: u32, socket: u32, frames: &mut Frames) {
        let wall_ms = self.now.wall_ms;
        let Some(cursor) = self.cursors.get(id) else { return };
        let CursorState::Live(from) = cursor.stand else { return };
        let Some(stream) = self.streams.get(cursor.stream) else { return };
        let (Some(window), is_subject) = (stream.window.as_ref(), stream.pattern().is_none()) else { return };
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let (first, Some(mqtt)) = (connection.first_cursor, connection.mqtt.as_mut()) else { return };
        let (mut place, mut is_stalled) = (from, false);
        let wanted = Wanted::of(cursor);
        let (cursors, streams) = (&self.cursors, &self.streams);
        window.each_frame(from, |bytes, before| {
            let parts = Parts::read(bytes);
            let put = parts.map_or(Put::Passed, |parts| {
                mqtt.put_for(cursors, streams, first, id, &wanted, &parts, wall_ms, &mut frames.bytes)
            });
            is_stalled = put == Put::Stalled;
            if is_stalled {
                return false;
            }
            place = before.place + bytes.len() as u64;
            let messages = window.placed(before.place, place) as u32;
            if put == Put::Passed
                && messages > 0
                && let Some((here, _)) = window.around(place)
            {
                let sequence = if is_subject { here.sequence } else { 0 };
                frames.passed.push(Passed { cursor: id, arrival: here.arrival, sequence });
            }
            if let Put::Sent { is_tracked } = put {
                let before = CursorState::Live(before.place);
                let end = frames.bytes.len();
                frames.notes.push(Note {
                    end,
                    cursor: id,
                    before,
                    sequence: 0,
                    is_standard: false,
                    is_too_large: false,
                    is_tracked,
                    messages,
                });
            }
            frames.bytes.len() < GATHER_BYTES
        });
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        cursor.stand = CursorState::Live(place);
        cursor.standard = window.around(place).map_or(cursor.standard, |(_, end)| end.standard);
        if place < window.head() && !is_stalled {
            self.link_ready(id);
        }
    }

    /// The packet of a message for the only cursor of its stream.
    pub(in crate::shard) fn put_single(&mut self, single: &Single, frames: &mut Frames) {
        let Some(Entry::Message(message)) = self.entries.get(single.entry as usize) else { return };
        let message = Arc::clone(message);
        let Some(cursor) = self.cursors.get_mut(single.cursor) else { return };
        if cursor.stand != CursorState::Current {
            return;
        }
        if self.put_one(single.cursor, &message, frames) == Put::Stalled {
            self.postpone(single);
        }
    }

    /// The packets of messages read from the logs, until the client can take no more.
    pub(in crate::shard) fn put_chunk(&mut self, id: u32, messages: &[Arc<Message>], mut frames: Frames) -> Frames {
        self.counters.catch_up_messages += messages.len() as u64;
        for message in messages {
            if self.put_one(id, message, &mut frames) == Put::Stalled {
                if let Some(cursor) = self.cursors.get_mut(id) {
                    cursor.stand = CursorState::Behind(message.arrival - 1);
                    cursor.sequence = message.sequence.saturating_sub(1);
                }
                break;
            }
        }
        frames
    }

    fn put_one(&mut self, id: u32, message: &Message, frames: &mut Frames) -> Put {
        let wall_ms = self.now.wall_ms;
        let (Some(cursor), Some(parts)) = (self.cursors.get(id), Parts::of(message)) else { return Put::Passed };
        let Some(connection) = self.connections.get_mut(cursor.connection) else { return Put::Passed };
        let (first, Some(mqtt)) = (connection.first_cursor, connection.mqtt.as_mut()) else { return Put::Passed };
        let (wanted, out) = (Wanted::of(cursor), &mut frames.bytes);
        let put = mqtt.put_for(&self.cursors, &self.streams, first, id, &wanted, &parts, wall_ms, out);
        if put == Put::Passed && message.sequence > 0 {
            let is_subject = self.cursors.get(id).and_then(|cursor| self.streams.get(cursor.stream));
            let is_subject = is_subject.is_some_and(|stream| stream.pattern().is_none());
            let sequence = if is_subject { message.sequence } else { 0 };
            frames.passed.push(Passed { cursor: id, arrival: message.arrival, sequence });
        }
        if let Put::Sent { is_tracked } = put {
            frames.notes.push(Note {
                end: frames.bytes.len(),
                cursor: id,
                before: CursorState::Behind(message.arrival - 1),
                sequence: message.sequence.saturating_sub(1),
                is_standard: message.sequence == 0,
                is_too_large: false,
                is_tracked,
                messages: u32::from(message.sequence > 0),
            });
        }
        put
    }
}
