//! MQTT clients by their identifier: whose connection each is, and what is kept of those that are away. Owns takeover (one
//! connection a client, on whichever shard) and the times at which sessions and wills run out. What is kept is positions, no
//! messages: where each subscription stands, which packets are in flight, which were received and not released.
mod abandoned;
mod admit;
mod away;
mod client;
mod dealt;
mod group_notes;
mod groups;
mod holders;
mod holds;
mod in_flight;
mod inherited;
mod node_bound;
mod owed;
mod packets;
mod promised;
mod revoked;
mod saved;
mod will_table;
mod willed;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Node;
use super::listeners::bit;
use super::names::Owner;
use crate::codes::Code;
use crate::holder::Holder;
use crate::position::Now;
use crate::report::ConnectionId;

pub use admit::Before;
use client::Client;
pub use dealt::Dealt;
pub use groups::Portion;
pub(super) use groups::{GROUP, Groups};
pub(super) use holders::Holders;
pub use holders::Overdue;
pub use in_flight::InFlight;
pub use inherited::{Inherited, Sender};
pub use owed::Missed;
pub(super) use owed::Owed;
pub(super) use packets::Packets;
pub use packets::Received;
use promised::Promises;
pub use revoked::Ended;
pub(super) use saved::{Pending, SESSION};
pub(super) use will_table::WillTable;
pub use willed::{Came, Will};
pub(super) use willed::{PendingWill, WILL};

/// What a shard is told of its connections' clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mail {
    /// Another connection has come with this one's client identifier.
    Evict(ConnectionId),
    /// The client identifier that this connection waits for is free.
    Free(ConnectionId),
    /// A group has messages to deal that a member gave back.
    Deal(u32),
}

/// A subscription of a client that is away.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KeptSubscription {
    pub selector: Box<str>,
    /// As in SUBSCRIBE.
    pub options: u8,
    pub subscription_id: u32,
    /// Everything up to this arrival has been sent.
    pub arrival: u64,
    /// Where it overlaps an earlier one: the arrival after which it selects.
    pub began: u64,
    /// Its retained messages have not all been sent.
    pub is_joining: bool,
    /// Those up to this subject have been sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<Box<str>>,
    /// What it has to do with others of its client that sent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Inherited>,
}

#[cfg(test)]
impl KeptSubscription {
    /// At QoS 1, and nothing has been sent yet.
    fn new(selector: &str) -> Self {
        Self {
            selector: selector.into(),
            options: 1,
            subscription_id: 0,
            arrival: 0,
            began: 0,
            is_joining: false,
            joined: None,
            inherited: None,
        }
    }
}

/// What is kept of a client that is away.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub subscriptions: Vec<KeptSubscription>,
    pub in_flight: Vec<InFlight>,
    pub received: Vec<Received>,
    pub last_packet_id: u16,
    /// It asked to be told of its gaps, with this subscription identifier.
    pub gaps: Option<u32>,
    /// The same of what concerns its connection.
    pub notices: Option<u32>,
    /// The arrival before its oldest message in flight: from there on nothing that it is owed grows too old.
    pub owed_after: u64,
    /// What it was owed up to here is held no longer: it was too much.
    pub floor: u64,
    /// It is an earlier run's: what no journal keeps is gone.
    pub is_restored: bool,
}

/// The connection of a will's draft, nobody's: an outcome that nobody waits for is told to nobody.
pub const NOBODY: u32 = u32::MAX - 1;

/// What became of a connection's claim to a client identifier.
#[derive(Debug)]
pub enum Claim {
    /// It belongs to another identity.
    Foreign,
    /// The session that it asks for has no place.
    Full(Code),
    /// Its present connection has been told to go; `Mail::Free` follows.
    Wait,
    Granted {
        serial: u32,
        kept: Option<Kept>,
        /// How the session stood, for `put_back` if it cannot be restored.
        before: Before,
    },
}

#[derive(Debug, Default)]
pub(in crate::node) struct Clients {
    /// In boxes: a table is half empty when it has grown.
    by_id: HashMap<Arc<str>, Box<Client>>,
    /// Connections that wait for another one of their client to go, by the client's serial.
    waiting: HashMap<u32, ConnectionId>,
    /// Connections that know that their client's identifier is free, and have not claimed it yet, by the client's serial.
    freed: HashMap<u32, ConnectionId>,
    last_serial: u32,
    /// When something of a client is due (monotonic ms).
    timers: BTreeMap<(u64, u32), Arc<str>>,
    mail: HashMap<u8, Vec<Mail>>,
    /// Clients that are away.
    pub(in crate::node) away: usize,
    promises: Promises,
    /// Those away that other quotas are yet to count.
    uncounted: Vec<Arc<str>>,
}

impl Clients {
    fn tell(&mut self, connection: ConnectionId, mail: Mail) -> u64 {
        self.tell_shard(connection.shard(), mail)
    }

    fn tell_shard(&mut self, shard: u8, mail: Mail) -> u64 {
        self.mail.entry(shard).or_default().push(mail);
        bit(shard)
    }

    fn forget_timers(&mut self, id: &str) {
        let Some(client) = self.by_id.get(id) else { return };
        self.timers.remove(&(client.expires_ms, client.serial));
        if let Some(will) = &client.will {
            self.timers.remove(&(will.0, client.serial));
        }
    }
}

impl Node {
    /// A connection says that it is this client. `is_clean`: what is kept of it is forgotten. `place`: who asks for a session that outlives
    /// the connection.
    pub fn claim(
        &mut self,
        id: &Arc<str>,
        holder: &Arc<Holder>,
        connection: ConnectionId,
        is_clean: bool,
        place: Option<Owner>,
    ) -> Claim {
        let abandoned = self.feed.abandoned;
        let clients = &mut self.clients;
        clients.forget_timers(id);
        clients.last_serial = clients.last_serial.wrapping_add(1).max(1);
        let serial = clients.last_serial;
        let client = clients.by_id.entry(Arc::clone(id)).or_insert_with(|| {
            let holder = Arc::clone(holder);
            Box::new(Client::new(serial, holder))
        });
        let is_own = client.is_of(holder);
        if !is_own && !client.holder.is_anonymous() {
            let due = client.due();
            self.restore_timers(id, due);
            return Claim::Foreign;
        }
        // What nobody in particular holds is given up to who has a name, and nothing of it is handed over.
        let is_clean = is_clean || !is_own;
        let is_held = client.owner().filter(|owner| *owner != connection && abandoned & bit(owner.shard()) == 0);
        if let Some(owner) = is_held {
            let serial = client.serial;
            self.wait_for(serial, owner, connection);
            return Claim::Wait;
        }
        if let Err(code) = clients.promise(id, place, is_own, self.limits.mqtt_sessions_max) {
            self.leave_unclaimed(id, connection);
            return Claim::Full(code);
        }
        self.take_client(id, holder, connection, is_clean)
    }

    /// Closes a client's connection, and another one that waits for its identifier.
    fn wait_for(&mut self, serial: u32, owner: ConnectionId, connection: ConnectionId) {
        let earlier = self.clients.waiting.insert(serial, connection).filter(|earlier| *earlier != connection);
        self.wakes |= self.clients.tell(owner, Mail::Evict(owner));
        if let Some(earlier) = earlier {
            self.wakes |= self.clients.tell(earlier, Mail::Evict(earlier));
        }
    }

    fn restore_timers(&mut self, id: &Arc<str>, (expires_ms, will_ms, serial): (u64, Option<u64>, u32)) {
        for due_ms in [Some(expires_ms).filter(|&ms| ms > 0), will_ms].into_iter().flatten() {
            self.clients.timers.insert((due_ms, serial), Arc::clone(id));
        }
    }

    /// A connection lets its client go: what is kept of it for `expiry_ms`, and its will, unless it took that back.
    pub fn release(
        &mut self,
        id: &Arc<str>,
        connection: ConnectionId,
        kept: Option<Kept>,
        will: Option<Will>,
        expiry_ms: u64,
        now: Now,
    ) {
        let Some(client) = self.clients.by_id.get_mut(id).filter(|client| client.owner() == Some(connection)) else {
            self.due_wills.extend(will);
            return;
        };
        client.set_owner(None);
        let (serial, hold, tenant) = (client.serial, client.hold.take(), Arc::clone(&client.holder.tenant));
        let waiting = self.clients.waiting.remove(&serial);
        let is_promised = client.place().is_some();
        let mut kept = kept.filter(|_| is_promised || waiting.is_some());
        if let Some(kept) = kept.as_mut().filter(|_| waiting.is_none()) {
            self.return_shared(&mut kept.in_flight, false);
        }
        self.note_session(id, kept.as_ref(), expiry_ms, now.wall_ms.saturating_add(expiry_ms));
        let delay_ms = will.as_ref().map_or(0, |will| will.delay_ms.min(expiry_ms));
        let mut due = (0, None, serial);
        if kept.is_none() || delay_ms == 0 {
            self.note_will(id, None);
            self.due_wills.extend(will);
        } else if let Some(will) = will {
            self.note_will(id, Some((&will, now.wall_ms.saturating_add(delay_ms))));
            due.1 = Some(now.mono_ms + delay_ms);
            if let Some(client) = self.clients.by_id.get_mut(id) {
                client.will = Some(Box::new((now.mono_ms + delay_ms, will)));
            }
        }
        if let Some(kept) = kept {
            self.own(&kept, &tenant);
            if kept.stands().next().is_some() {
                self.holders.add_client(serial, id);
            }
            due.0 = now.mono_ms.saturating_add(expiry_ms);
            let away = self.count_kept_away(id, &kept, now.mono_ms);
            if let Some(client) = self.clients.by_id.get_mut(id) {
                client.kept = Some(Box::new(kept));
                (client.expires_ms, client.away) = (due.0, away.map(Box::new));
            }
            self.clients.away += 1;
            self.restore_timers(id, due);
        } else if waiting.is_none() {
            self.clients.remove(id);
        }
        // What is kept holds now what the connection held.
        self.end_hold(hold);
        if let Some(waiting) = waiting {
            self.clients.freed.insert(serial, waiting);
            self.wakes |= self.clients.tell(waiting, Mail::Free(waiting));
        }
    }

    /// What a shard has to do for its clients, appended to `into`.
    pub fn take_mail(&mut self, shard: u8, into: &mut Vec<Mail>) {
        if let Some(mail) = self.clients.mail.get_mut(&shard) {
            into.append(mail);
        }
    }

    /// Wills that are due now.
    pub fn take_wills(&mut self) -> Vec<Will> {
        std::mem::take(&mut self.due_wills)
    }

    /// Ends sessions and delays that have run out, at most `count`. True when more may be due.
    pub(in crate::node) fn sweep_clients(&mut self, mono_ms: u64, count: usize) -> bool {
        for _ in 0..count {
            let Some(entry) = self.clients.timers.first_entry().filter(|entry| entry.key().0 <= mono_ms) else {
                return false;
            };
            let ((due_ms, _), id) = entry.remove_entry();
            let Some(client) = self.clients.by_id.get_mut(&id) else { continue };
            let is_over = client.kept.is_some() && client.expires_ms <= due_ms;
            if (is_over || client.will.as_ref().is_some_and(|will| will.0 <= due_ms))
                && let Some(will) = client.will.take()
            {
                self.clients.timers.remove(&(will.0, client.serial));
                self.due_wills.push(will.1);
                self.note_will(&id, None);
            }
            if is_over {
                let client = self.clients.by_id.get_mut(&id);
                let kept = client.and_then(|client| Some((client.kept.take()?, Arc::clone(&client.holder.tenant))));
                self.note_session(&id, None, 0, 0);
                self.clients.remove(&id);
                self.clients.away -= 1;
                if let Some((mut kept, tenant)) = kept {
                    self.return_shared(&mut kept.in_flight, false);
                    self.disown(&kept, &tenant);
                }
            }
        }
        true
    }
}
