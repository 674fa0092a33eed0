//! What a session says at QoS 2 of subjects that promise the disk: it leaves once the state that makes it true is on the disk, whatever
//! happens to the node afterwards. Owns what waits for that. The state is the session's note, and for a message the row of that; one note is
//! under way for each connection, and what the connection says meanwhile is in the next.
use std::sync::Arc;

use crate::codec::Wire;
use crate::command::Id;
use crate::mqtt::{Qos, select};
use crate::node::{InFlight, Node, NotesProgress, Progress, Received};
use crate::shard::mqtt::Mqtt;
use crate::shard::outbound::Frames;
use crate::shard::{Shard, SocketOutput, lock};

/// Of the bytes that may be held for slow consumers, one in so many may wait for the disk; past that nothing more is put together.
const SHARE: usize = 4;

/// How far a connection's session is on the disk.
#[derive(Debug, Default)]
pub(in crate::shard) struct OnDisk {
    /// The state has changed since the note that was written last.
    is_changed: bool,
    /// What the client hears next would not be true after a kill, whatever the disk does.
    is_strict: bool,
    /// Something that the client must not hear yet waits.
    is_waiting: bool,
    /// It waits for as long as the disk fails; else it is heard then.
    waits_strictly: bool,
    /// A note of this connection is on the disk.
    is_noted: bool,
    /// A group has had something settled that it must not deal again.
    pub(in crate::shard::mqtt) has_settled: bool,
    /// The notes that it waits for.
    batch: u64,
    /// The last message that has to be there, too.
    arrival: u64,
    /// Bytes that wait.
    held_bytes: usize,
}

impl OnDisk {
    /// The client is about to hear of something that has to be on the disk, with the message of an arrival (0 none).
    pub(in crate::shard::mqtt) fn change(&mut self, arrival: u64) {
        (self.is_changed, self.is_strict) = (true, true);
        self.arrival = self.arrival.max(arrival);
    }
}

/// Connections that wait.
#[derive(Debug, Default)]
pub(in crate::shard) struct Waiting {
    sockets: Vec<u32>,
    /// Connections for which nothing more is put together until others have been sent what waits.
    crowded: Vec<u32>,
    held_bytes: usize,
    /// The journal is to write what has been noted.
    is_asking: bool,
    /// How far the disk was when the connections were last looked at; none: one of them has not been.
    seen: Option<(Progress, NotesProgress)>,
}

impl Shard {
    /// Whether a client's session outlives the node.
    pub(in crate::shard::mqtt) fn is_durable(&self, socket: u32) -> bool {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        self.settings.journal.is_some() && mqtt.is_some_and(|mqtt| mqtt.session_ms > 0)
    }

    /// Notes that what the client hears next depends on its session, as that is now.
    pub(in crate::shard::mqtt) fn await_note(&mut self, socket: u32) {
        if self.is_durable(socket)
            && let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut())
        {
            mqtt.on_disk_mut().change(0);
        }
    }

    /// Notes that a client is about to hear that it is subscribed, or not any more: where its filter promises the disk, and that works, the
    /// disk has it before. While the disk fails the client hears it all the same, like anything that needs no message.
    pub(in crate::shard::mqtt) fn await_subscribed<'a>(
        &mut self,
        socket: u32,
        mut filters: impl Iterator<Item = &'a str>,
    ) {
        let promises = |node: &Node, filter| {
            select(filter).is_ok_and(|selected| node.promises_disk_within(selected.selector.text()))
        };
        let node = Arc::clone(&self.node);
        if self.is_durable(socket)
            && filters.any(|filter| promises(&lock(&node), filter))
            && let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut())
        {
            mqtt.on_disk_mut().is_changed = true;
        }
    }

    /// A restored session may be further than its last note that is on the disk.
    pub(in crate::shard::mqtt) fn await_resumed(&mut self, socket: u32) {
        let Some(mqtt) = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref()) else { return };
        let has_flight = mqtt.flight.has_on_disk();
        let is_promised = has_flight || mqtt.received.iter().any(|one| one.is_on_disk());
        if is_promised {
            self.await_note(socket);
        }
        if has_flight && let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) {
            // What the connection before had settled its groups may not have noted.
            mqtt.on_disk_mut().has_settled = true;
        }
    }

    /// Whether what a connection says now depends on what is not on the disk.
    pub(in crate::shard) fn is_ahead_of_disk(&self, socket: u32) -> bool {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_deref());
        mqtt.and_then(Mqtt::on_disk).is_some_and(|on_disk| on_disk.is_changed)
    }

    /// Whether a connection's client is to hear nothing before the disk has caught up.
    pub(in crate::shard) fn is_waiting_for_disk(&self, socket: u32) -> bool {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_deref());
        mqtt.and_then(Mqtt::on_disk).is_some_and(|on_disk| on_disk.is_waiting)
    }

    /// Whether nothing more is put together for a session now: too much waits for the disk.
    pub(in crate::shard) fn is_put_off(&mut self, socket: u32) -> bool {
        let share = self.settings.limits.partial_bytes_max / usize::from(self.settings.shards.max(1)) / SHARE;
        if self.dealing.disk_waits.held_bytes <= share {
            return false;
        }
        let Some(connection) = self.connections.get_mut(socket) else { return false };
        // Who has never had to do with the disk waits for nobody who has.
        if connection.mqtt.as_deref().and_then(Mqtt::on_disk).is_none() {
            return false;
        }
        connection.wait_for_disk();
        self.dealing.disk_waits.crowded.push(socket);
        true
    }

    /// Keeps frames, and the private bytes before them, until the disk has caught up: for their cursors they are sent.
    pub(in crate::shard) fn hold_frames<O: SocketOutput>(&mut self, socket: u32, mut frames: Frames, out: &mut O) {
        let count = frames.bytes.len();
        self.count_frames(socket, &frames, count, out);
        if let Some(note) = frames.notes.last() {
            self.arrive(note.cursor);
        }
        let bytes = std::mem::take(&mut frames.bytes);
        self.recycle(frames);
        self.hold_bytes(socket, bytes);
    }

    fn hold_bytes(&mut self, socket: u32, bytes: Vec<u8>) {
        self.note_for_disk(socket);
        let count = bytes.len();
        self.share_rest(socket, Arc::new(bytes), 0);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        connection.wait_for_disk();
        if let Some(mqtt) = connection.mqtt.as_mut() {
            let on_disk = mqtt.on_disk_mut();
            (on_disk.is_waiting, on_disk.held_bytes) = (true, count);
            self.dealing.disk_waits.held_bytes += count;
            self.dealing.disk_waits.sockets.push(socket);
            self.dealing.disk_waits.seen = None;
        }
    }

    /// Notes a session as it is now, and asks for the disk.
    fn note_for_disk(&mut self, socket: u32) {
        self.tell_settled();
        let has_settled = self.note_groups(socket);
        if let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) {
            // Identifiers that came and went leave the state as it was; the rows that they came with are told by a note behind those.
            mqtt.saved = 0;
        }
        self.save_session(socket);
        let index = self.index;
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        let mut node = lock(&self.node);
        let on_disk = mqtt.on_disk_mut();
        on_disk.batch = node.await_notes(index);
        node.await_disk(index, on_disk.arrival);
        on_disk.waits_strictly = std::mem::take(&mut on_disk.is_strict);
        (on_disk.is_changed, on_disk.has_settled) = (false, on_disk.has_settled && !has_settled);
        self.dealing.disk_waits.is_asking = true;
    }

    /// Has the journal write what was noted.
    pub(in crate::shard) fn ask_for_disk<O: SocketOutput>(&mut self, out: &mut O) {
        if std::mem::take(&mut self.dealing.disk_waits.is_asking) {
            out.journal();
        }
    }

    /// Connections for which the disk has caught up say what waits.
    pub(in crate::shard) fn end_disk_waits(&mut self) {
        if self.dealing.disk_waits.sockets.is_empty() && self.dealing.disk_waits.crowded.is_empty() {
            return;
        }
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        let (Some(progress), notes) = (node.journal_progress(), node.notes_progress()) else { return };
        if self.dealing.disk_waits.seen.replace((progress, notes)) != Some((progress, notes)) {
            let sockets = std::mem::take(&mut self.dealing.disk_waits.sockets);
            let (ready, waiting): (Vec<u32>, Vec<u32>) = sockets.into_iter().partition(|socket| {
                let mqtt = self.connections.get(*socket).and_then(|connection| connection.mqtt.as_deref());
                mqtt.and_then(Mqtt::on_disk).is_none_or(|on_disk| {
                    let is_noted = node.has_noted(on_disk.batch, self.index);
                    // A row that was lost, or is refused, counts once the disk works again: its message waits as long.
                    let has_row = on_disk.arrival <= progress.synced;
                    if !has_row {
                        node.await_disk(self.index, on_disk.arrival);
                    }
                    is_noted && has_row || notes.is_failing && !on_disk.waits_strictly
                })
            });
            drop(node);
            self.dealing.disk_waits.sockets = waiting;
            for socket in ready {
                self.end_disk_wait(socket, notes);
            }
        } else {
            drop(node);
        }
        for socket in std::mem::take(&mut self.dealing.disk_waits.crowded) {
            if !self.is_waiting_for_disk(socket) && !self.is_put_off(socket) {
                self.unblock(socket);
            }
        }
    }

    fn end_disk_wait(&mut self, socket: u32, notes: NotesProgress) {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        let Some(on_disk) = mqtt.on_disk_if_any().filter(|on_disk| on_disk.is_waiting) else { return };
        (on_disk.is_waiting, on_disk.is_noted) = (false, on_disk.is_noted || on_disk.batch <= notes.synced);
        self.dealing.disk_waits.held_bytes -= std::mem::take(&mut on_disk.held_bytes);
        self.unblock(socket);
        self.make_ready(socket);
    }

    /// A connection has gone: what waited for it is no more.
    pub(in crate::shard) fn forget_disk_wait(&mut self, socket: u32) {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        let Some(on_disk) = mqtt.on_disk_if_any() else { return };
        self.dealing.disk_waits.held_bytes -= std::mem::take(&mut on_disk.held_bytes);
        self.dealing.disk_waits.sockets.retain(|waiting| *waiting != socket);
        self.dealing.disk_waits.crowded.retain(|waiting| *waiting != socket);
    }
}

impl Mqtt {
    /// How far its session is on the disk; none where nothing had to be there yet.
    fn on_disk(&self) -> Option<&OnDisk> {
        self.rare.as_ref()?.on_disk.as_deref()
    }

    /// The same, to be changed.
    pub(in crate::shard::mqtt) fn on_disk_mut(&mut self) -> &mut OnDisk {
        self.rare_mut().on_disk.get_or_insert_default()
    }

    fn on_disk_if_any(&mut self) -> Option<&mut OnDisk> {
        self.rare.as_mut()?.on_disk.as_deref_mut()
    }

    /// Whether a note of this connection is on the disk.
    pub(in crate::shard::mqtt) fn is_noted(&self) -> bool {
        self.on_disk().is_some_and(|on_disk| on_disk.is_noted)
    }

    /// Where a publish stands among those that have not been released.
    pub(in crate::shard::mqtt) fn find_received(&self, packet_id: u16) -> Result<usize, usize> {
        self.received.binary_search_by_key(&packet_id, |one| one.packet_id)
    }
}

/// What was published at QoS 2, and its identifier.
impl Shard {
    /// A publish was accepted that is answered once it is on the disk.
    pub(in crate::shard::mqtt) fn note_accepted(&mut self, socket: u32, id: &Id, accepted: u64) {
        let Id::Number(number) = id else { return };
        if number >> 16 != Qos::ExactlyOnce as i64 || !self.is_durable(socket) {
            return;
        }
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        if let Ok(place) = mqtt.find_received(*number as u16) {
            mqtt.received.get_mut(place).into_iter().for_each(|one| one.arrival = accepted);
        }
    }

    /// A publish is about to be answered.
    pub(in crate::shard::mqtt) fn settle_received(&mut self, socket: u32, packet_id: u16) {
        let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) else { return };
        let Ok(place) = mqtt.find_received(packet_id) else { return };
        let Some(one) = mqtt.received.get_mut(place) else { return };
        if one.arrival == Received::UNDER_WAY {
            one.arrival = 0;
        }
        one.is_kept = true;
        // Its row says that it was received, to a session that is there.
        if one.is_on_disk() && !mqtt.is_noted() {
            self.await_note(socket);
        }
    }

    /// A repeat of a publish that has not been released is answered like the first, which may still wait for the disk.
    pub(in crate::shard::mqtt) fn waits_for_row(&mut self, socket: u32, packet_id: u16) -> bool {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        let place = mqtt.and_then(|mqtt| Some((mqtt, mqtt.find_received(packet_id).ok()?)));
        let received = place.and_then(|(mqtt, place)| mqtt.received.get(place).copied());
        let waits = |one: &Received| one.is_on_disk() && !one.is_kept;
        let Some(arrival) = received.filter(waits).map(|one| one.arrival) else { return false };
        let mut node = lock(&self.node);
        if node.journal_progress().is_none_or(|progress| progress.holds(arrival)) {
            return false;
        }
        node.await_disk(self.index, arrival);
        drop(node);
        let id = Id::Number(i64::from(packet_id) | (Qos::ExactlyOnce as i64) << 16);
        self.hold_ack(socket, &id, None, true, arrival);
        true
    }

    /// What a client's groups have had settled is noted before the session forgets it; true where there was something.
    fn note_groups(&mut self, socket: u32) -> bool {
        let Some(connection) = self.connections.get(socket) else { return false };
        if connection.mqtt.as_deref().and_then(Mqtt::on_disk).is_none_or(|on_disk| !on_disk.has_settled) {
            return false;
        }
        let mut node = lock(&self.node);
        let mut id = connection.first_cursor;
        while let Some(cursor) = self.cursors.get(id) {
            if let Some(Wire::MqttShared(number)) = self.streams.get(cursor.stream).map(|stream| stream.wire) {
                node.note_group(number);
            }
            id = cursor.next;
        }
        true
    }
}

/// Whether a packet is of those that have to be on the disk.
pub(super) fn is_on_disk(packet: &InFlight) -> bool {
    packet.flags & InFlight::ON_DISK != 0
}
