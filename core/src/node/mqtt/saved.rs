//! Sessions of MQTT clients as notes of the journal: written when a client comes, subscribes or goes, and every few seconds of one that
//! was sent something; read when the node starts. Owns what comes back of a session: positions and packet identifiers, no messages. What
//! was sent since the last note is sent again after a kill; a session whose messages did not come back is over (16.7).
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::Node;
use super::{Client, InFlight, Kept, KeptSubscription, Packets, Received};
use crate::holder::Holder;
use crate::message::LogId;
use crate::position::{Now, Position};
use crate::report::ConnectionId;

/// Before a client's identifier in the name of its note.
pub(in crate::node) const SESSION: &str = "session ";

/// The note of one session.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    #[serde(flatten)]
    holder: SavedHolder,
    /// How long it outlives its connection.
    session_ms: u64,
    /// When it ends (wall clock); 0: the client is connected.
    expires_ms: u64,
    subscriptions: Vec<KeptSubscription>,
    flight: Vec<SavedPacket>,
    received: Vec<u16>,
    /// Of messages whose rows are on the disk before the client hears of them: identifiers, and arrivals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    received_at: Vec<(u16, u64)>,
    /// Rows after this arrival of this epoch say what else was received.
    #[serde(default)]
    epoch: u64,
    #[serde(default)]
    until: u64,
    last_packet_id: u16,
    gaps: Option<u32>,
    notices: Option<u32>,
    owed_after: u64,
}

/// Who owns what a note holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedHolder {
    identity: Box<str>,
    #[serde(default)]
    tenant: Option<Box<str>>,
    #[serde(default)]
    authority: Box<str>,
}

impl SavedHolder {
    pub(super) fn of(holder: &Holder) -> Self {
        Self {
            identity: Box::from(&*holder.identity),
            tenant: (!holder.tenant.is_empty()).then(|| Box::from(&*holder.tenant)),
            authority: Box::from(&*holder.authority),
        }
    }

    pub(super) fn read(&self) -> Arc<Holder> {
        Holder::new(self.tenant.as_deref().unwrap_or(""), &self.authority, &self.identity)
    }
}

/// A packet in flight, by where its message stands.
#[derive(Debug, Serialize, Deserialize)]
struct SavedPacket {
    packet_id: u16,
    flags: u8,
    subject: Box<str>,
    epoch: u64,
    sequence: u64,
    subscription_id: u32,
    /// The group that it was dealt by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<String>,
    /// Of one that is not sent before its row is on the disk: its arrival.
    #[serde(default, skip_serializing_if = "is_zero")]
    arrival: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Packets of a session that is coming back, until the logs have.
#[derive(Debug)]
pub(in crate::node) struct Pending {
    id: Arc<str>,
    flight: Vec<SavedPacket>,
    /// What rows up to this arrival say, its note has said.
    noted: u64,
}

impl Node {
    /// What a connected client's session has come to. `session_ms` 0: it ends with the connection.
    pub fn save_client(&mut self, id: &str, connection: ConnectionId, kept: Option<&Kept>, session_ms: u64) {
        if self.clients.by_id.get(id).is_some_and(|client| client.owner() == Some(connection)) {
            self.note_session(id, kept.filter(|_| session_ms > 0), session_ms, 0);
        }
    }

    /// Writes down what is kept of a client, or that nothing is any more.
    pub(super) fn note_session(&mut self, id: &str, kept: Option<&Kept>, session_ms: u64, expires_ms: u64) {
        if self.journal.is_none() {
            return;
        }
        // What a group dealt at QoS 1 it deals again.
        let is_own = |packet: &&InFlight| packet.group == 0 || packet.flags & InFlight::EXACTLY_ONCE != 0;
        let flight: Vec<SavedPacket> = kept.map_or_else(Vec::new, |kept| {
            kept.in_flight.iter().filter(is_own).map(|one| self.save_packet(one)).collect()
        });
        let (epoch, until) = (self.epoch, self.numbered());
        let Some(client) = self.clients.by_id.get_mut(id) else { return };
        let had_note = std::mem::replace(&mut client.has_note, kept.is_some());
        let saved = kept.map(|kept| Saved {
            holder: SavedHolder::of(&client.holder),
            session_ms,
            expires_ms,
            subscriptions: kept.subscriptions.clone(),
            flight,
            received: kept.received.iter().filter(|one| one.arrival == 0).map(|one| one.packet_id).collect(),
            received_at: kept
                .received
                .iter()
                .filter(|one| one.is_on_disk())
                .map(|one| (one.packet_id, one.arrival))
                .collect(),
            epoch,
            until,
            last_packet_id: kept.last_packet_id,
            gaps: kept.gaps,
            notices: kept.notices,
            owed_after: kept.owed_after,
        });
        let text = saved.and_then(|saved| serde_json::to_string(&saved).ok());
        if let Some(journal) = self.journal.as_mut().filter(|_| had_note || text.is_some()) {
            journal.note(format!("{SESSION}{id}"), text);
        }
    }

    fn save_packet(&self, packet: &InFlight) -> SavedPacket {
        let log = self.names.get(packet.log);
        let at = log.map_or(Position { epoch: 0, sequence: 0 }, |log| log.position(packet.sequence));
        SavedPacket {
            packet_id: packet.packet_id,
            flags: packet.flags,
            subject: log.map_or_else(Box::default, |log| Box::from(&*log.subject)),
            epoch: at.epoch,
            sequence: at.sequence,
            subscription_id: packet.subscription_id,
            shared: self.group_name(packet.group),
            arrival: if packet.flags & InFlight::ON_DISK == 0 { 0 } else { packet.arrival },
        }
    }

    /// A session of an earlier run; before the messages come back, so that those it is owed stay. None: it is none, or is over.
    pub(in crate::node) fn restore_session(&mut self, id: &str, text: &str, now: Now) -> Option<Pending> {
        let saved: Saved = serde_json::from_str(text).ok()?;
        let ends_ms =
            if saved.expires_ms == 0 { now.wall_ms.saturating_add(saved.session_ms) } else { saved.expires_ms };
        let left_ms = ends_ms.checked_sub(now.wall_ms).filter(|left_ms| *left_ms > 0)?;
        if self.clients.by_id.contains_key(id) || self.limits.mqtt_sessions_max == 0 {
            return None;
        }
        let mut kept = Kept {
            received: self.read_received(&saved),
            subscriptions: saved.subscriptions,
            in_flight: Vec::new(),
            last_packet_id: saved.last_packet_id,
            gaps: saved.gaps,
            notices: saved.notices,
            owed_after: saved.owed_after,
            floor: 0,
            is_restored: true,
        };
        kept.cut(self.end_of_epoch(saved.epoch));
        let holder = saved.holder.read();
        self.own(&kept, &holder.tenant);
        let id: Arc<str> = Arc::from(id);
        let clients = &mut self.clients;
        clients.last_serial = clients.last_serial.wrapping_add(1).max(1);
        let (serial, expires_ms) = (clients.last_serial, now.mono_ms.saturating_add(left_ms));
        self.holders.add_client(serial, &id);
        let kept = Some(Box::new(kept));
        let mut client = Client::new(serial, holder);
        (client.kept, client.expires_ms, client.has_note) = (kept, expires_ms, true);
        let owner = self.owner_of(&client.holder, 0);
        self.clients.insert_promised(&id, client, owner);
        self.count_again_away(&id, now.mono_ms);
        self.clients.away += 1;
        self.restore_timers(&id, (expires_ms, None, serial));
        let last = self.last_of_epoch(saved.epoch);
        let mut flight = saved.flight;
        // Packets whose rows were lost were never sent.
        flight.retain(|packet| packet.arrival <= last);
        Some(Pending { id, flight, noted: saved.until.min(last) })
    }

    /// The messages are back: what a session has in flight is found among them, and it stands no further than they reach.
    pub(in crate::node) fn settle_session(&mut self, pending: Pending, head: u64, packets: &mut Packets) {
        let in_flight: Vec<InFlight> = pending.flight.iter().map(|packet| self.find_packet(packet)).collect();
        for (saved, packet) in pending.flight.iter().zip(&in_flight) {
            if let Some(name) = &saved.shared {
                self.take_restored(name, packet.arrival);
            }
        }
        let Some(client) = self.clients.by_id.get_mut(&pending.id) else { return };
        let (Some(before), tenant) = (client.kept.take(), Arc::clone(&client.holder.tenant)) else { return };
        let mut kept = before.clone();
        kept.cut(head);
        kept.in_flight = in_flight;
        packets.settle(&pending.id, pending.noted, &mut kept.received);
        self.own(&kept, &tenant);
        self.disown(&before, &tenant);
        if let Some(client) = self.clients.by_id.get_mut(&pending.id) {
            client.kept = Some(kept);
        }
    }

    /// Of a message that did not come back the place is none: its session is over.
    fn find_packet(&self, saved: &SavedPacket) -> InFlight {
        let log = self.names.find(&saved.subject);
        let at = Position { epoch: saved.epoch, sequence: saved.sequence };
        let found = log.and_then(|log| Some((log, self.number(log, at)?)));
        let (log, sequence) = found.unwrap_or((LogId { slot: u32::MAX, generation: u32::MAX }, 0));
        let SavedPacket { packet_id, flags, subscription_id, .. } = *saved;
        let message = self.message(log, sequence).cloned();
        let arrival = message.as_ref().map_or(0, |message| message.arrival);
        InFlight { packet_id, flags, log, sequence, subscription_id, group: 0, arrival, message }
    }
}

impl Kept {
    /// No arrival beyond `head` means anything any more.
    fn cut(&mut self, head: u64) {
        for subscription in &mut self.subscriptions {
            subscription.arrival = subscription.arrival.min(head);
            subscription.began = subscription.began.min(head);
            if let Some(inherited) = &mut subscription.inherited {
                inherited.cut(head);
            }
        }
    }
}

impl Node {
    /// The last arrival of the run that noted something: what came after it was not on the disk when that run was killed, and arrivals like
    /// its own are other messages'.
    pub(super) fn last_of_epoch(&self, epoch: u64) -> u64 {
        self.restoring.as_ref().and_then(|restoring| restoring.last_of_epoch(epoch)).unwrap_or(u64::MAX)
    }

    fn read_received(&self, saved: &Saved) -> Vec<Received> {
        let last = self.last_of_epoch(saved.epoch);
        let restore = |packet_id, arrival| Received { packet_id, arrival, is_returned: true, is_kept: true };
        let rest = saved.received.iter().map(|packet_id| restore(*packet_id, 0));
        let known = saved.received_at.iter().filter(|(_, arrival)| *arrival <= last);
        let known = known.map(|(packet_id, arrival)| restore(*packet_id, *arrival));
        let mut received: Vec<Received> = rest.chain(known).collect();
        received.sort_unstable_by_key(|one| one.packet_id);
        received
    }
}
