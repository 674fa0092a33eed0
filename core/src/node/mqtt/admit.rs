//! What a shard has to know of a session before it restores it, and the way back where it cannot. Owns that a session which is refused
//! now is the same at the client's next try.
use std::sync::Arc;

use super::super::Node;
use super::{Claim, Kept, Will};
use crate::holder::Holder;
use crate::message::LogId;
use crate::position::Now;
use crate::report::ConnectionId;

/// What a claim ended: when the session would have expired, and its delayed will with the time when it was due (monotonic ms).
#[derive(Debug)]
pub struct Before {
    pub(super) expires_ms: u64,
    pub(super) will: Option<Box<(u64, Will)>>,
}

impl Node {
    /// What the session of a client that is away subscribes to, if this identity owns it.
    pub fn kept_selectors(&self, id: &str, holder: &Holder) -> impl Iterator<Item = &str> {
        let client = self.clients.by_id.get(id).filter(|client| client.is_of(holder));
        let kept = client.and_then(|client| client.kept.as_ref());
        kept.into_iter().flat_map(|kept| kept.subscriptions.iter().map(|subscription| &*subscription.selector))
    }

    /// Whether a connection of this identity has the client now.
    pub fn is_connected(&self, id: &str, holder: &Holder) -> bool {
        let client = self.clients.by_id.get(id);
        client.is_some_and(|client| client.owner().is_some() && client.is_of(holder))
    }

    /// The same, and the connection came from this address.
    pub fn is_connected_from(&self, id: &str, holder: &Holder, origin: u64) -> bool {
        self.is_connected(id, holder) && self.clients.by_id.get(id).is_some_and(|client| client.origin == origin)
    }

    /// Where the connection of a client came from, once it has it.
    pub fn note_origin(&mut self, id: &str, connection: ConnectionId, origin: u64) {
        if let Some(client) = self.clients.by_id.get_mut(id).filter(|client| client.owner() == Some(connection)) {
            client.origin = origin;
        }
    }

    /// The subject of a message in flight, where its log is known.
    pub fn subject_of(&self, log: LogId) -> Option<&str> {
        self.names.get(log).map(|log| &*log.subject)
    }

    /// A claim that was granted led to a refusal: the session and its will are kept as they were.
    pub fn put_back(&mut self, id: &Arc<str>, connection: ConnectionId, kept: Kept, before: Before, now: Now) {
        let will = before.will.map(|boxed| {
            let (due_ms, mut will) = *boxed;
            will.delay_ms = due_ms.saturating_sub(now.mono_ms).max(1);
            will
        });
        let left_ms = before.expires_ms.saturating_sub(now.mono_ms).max(1);
        self.release(id, connection, Some(kept), will, left_ms, now);
    }

    /// What is kept of a client stays as it was; one of which nothing is kept is forgotten.
    pub(super) fn leave_unclaimed(&mut self, id: &Arc<str>, connection: ConnectionId) {
        let Some(client) = self.clients.by_id.get(id) else { return };
        if client.kept.is_some() || client.will.is_some() {
            let due = client.due();
            let is_free_for_another = self.clients.freed.get(&due.2).is_some_and(|freed| *freed != connection);
            self.restore_timers(id, due);
            if !is_free_for_another {
                self.return_kept(id);
            }
        } else if client.owner().is_none() {
            self.clients.remove(id);
        }
    }

    /// Whether another connection waits for a client's present one to go.
    pub fn is_awaited(&self, id: &str) -> bool {
        self.clients.by_id.get(id).is_some_and(|client| self.clients.waiting.contains_key(&client.serial))
    }

    /// Whether a connection that waited may claim its client identifier: no newer one has come since.
    pub fn is_next(&self, id: &str, connection: ConnectionId) -> bool {
        self.clients.by_id.get(id).is_none_or(|client| {
            let tables = [&self.clients.waiting, &self.clients.freed];
            tables.iter().any(|table| table.get(&client.serial) == Some(&connection))
        })
    }

    /// A connection that waited for its client identifier has gone. Where another one waits, or the identifier is free for another one,
    /// that one continues the session.
    pub fn stop_waiting(&mut self, id: &str, connection: ConnectionId) {
        let Some(client) = self.clients.by_id.get(id) else { return };
        if self.clients.waiting.get(&client.serial) == Some(&connection) {
            self.clients.waiting.remove(&client.serial);
        } else if self.clients.freed.get(&client.serial) == Some(&connection) {
            // The identifier became free for it, but it left before it took it.
            self.clients.freed.remove(&client.serial);
            if client.is_nobodys() {
                self.clients.remove(id);
            } else {
                self.return_kept(id);
            }
        }
    }

    /// The session of a client is away: what groups dealt to it at QoS 1 goes to other members.
    fn return_kept(&mut self, id: &str) {
        let kept = self.clients.by_id.get_mut(id).and_then(|client| client.kept.as_mut());
        let Some(mut in_flight) = kept.map(|kept| std::mem::take(&mut kept.in_flight)) else { return };
        self.return_shared(&mut in_flight, false);
        if let Some(kept) = self.clients.by_id.get_mut(id).and_then(|client| client.kept.as_mut()) {
            kept.in_flight = in_flight;
        }
    }

    /// The client is this connection's from here on.
    pub(super) fn take_client(
        &mut self,
        id: &Arc<str>,
        holder: &Arc<Holder>,
        connection: ConnectionId,
        is_clean: bool,
    ) -> Claim {
        let Some(client) = self.clients.by_id.get_mut(id) else { return Claim::Foreign };
        client.set_owner(Some(connection));
        client.holder = Arc::clone(holder);
        // Those of a connection whose shard gave up.
        let (stale, lost) = (client.hold.take(), client.connected_will.take());
        self.clients.waiting.remove(&client.serial);
        self.clients.freed.remove(&client.serial);
        let mut kept = client.kept.take().map(|kept| *kept);
        client.away = None;
        let (will, expires_ms) = (client.will.take(), client.expires_ms);
        let serial = client.serial;
        self.end_hold(stale);
        if let Some(lost) = lost {
            self.note_will(id, None);
            // Nothing of its session is left in this run, so that its delay is over, too.
            self.end_with_will(*lost);
        }
        if is_clean {
            self.note_session(id, None, 0, 0);
        }
        if will.is_some() {
            self.note_will(id, None);
        }
        if kept.is_some() {
            self.clients.away -= 1;
        }
        if let Some(kept) = kept.as_mut().filter(|_| is_clean) {
            self.return_shared(&mut kept.in_flight, false);
        }
        if let Some(kept) = &kept {
            self.hand_over(id, kept, is_clean);
        }
        let mut before = Before { expires_ms, will };
        if is_clean {
            // The session ends here, and with it the delay of its will.
            self.due_wills.extend(before.will.take().map(|will| will.1));
        }
        Claim::Granted { serial, kept: kept.filter(|_| !is_clean), before }
    }
}
