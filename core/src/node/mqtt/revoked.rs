//! What a revocation ends of MQTT clients: sessions of a revoked identity, and wills that would speak in its name. Owns the counts of it, over
//! the life of the node: whoever gives the order reports what was added.
use std::sync::Arc;

use super::super::Node;
use crate::holder::Revoked;

/// Timers of clients looked at under one acquisition of the node.
const LOOKS_MAX: usize = 4_096;

/// What revocations have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub connections: u64,
    pub sessions: u64,
    /// Wills that will not be published.
    pub wills: u64,
}

impl Node {
    /// What revocations have ended since the node began.
    pub fn ended(&self) -> Ended {
        self.ended
    }

    /// Adds what a shard ended by itself.
    pub fn note_ended(&mut self, more: Ended) {
        let Ended { connections, sessions, wills } = more;
        self.ended.connections += connections;
        self.ended.sessions += sessions;
        self.ended.wills += wills;
    }

    /// Withholds the delayed wills of whom a revocation means, and ends the sessions of an identity that it names, of some clients
    /// that are away; `from` is where to go on. A revoked token leaves its holder's session: another token may resume it.
    pub fn revoke_away(&mut self, revoked: &Revoked, from: Option<(u64, u32)>) -> Option<(u64, u32)> {
        if from.is_none() {
            let due = self.due_wills.len();
            self.due_wills.retain(|will| !revoked.covers(&will.draft.holder, will.token.as_deref()));
            self.ended.wills += (due - self.due_wills.len()) as u64;
        }
        let timers = self.clients.timers.range(from.unwrap_or_default()..).take(LOOKS_MAX + 1);
        let mut looked: Vec<_> = timers.map(|(key, id)| (*key, Arc::clone(id))).collect();
        let next = (looked.len() > LOOKS_MAX).then(|| looked.pop()).flatten().map(|(key, _)| key);
        for (_, id) in looked {
            self.revoke_client(&id, revoked);
        }
        next
    }

    fn revoke_client(&mut self, id: &Arc<str>, revoked: &Revoked) {
        let Some(client) = self.clients.by_id.get_mut(id) else { return };
        let is_meant = |token| revoked.covers(&client.holder, token);
        let ends_session = client.owner().is_none() && client.kept.is_some() && is_meant(None);
        let ends_will = client
            .will
            .as_ref()
            .is_some_and(|will| ends_session || revoked.covers(&will.1.draft.holder, will.1.token.as_deref()));
        if ends_will && let Some(will) = client.will.take() {
            self.clients.timers.remove(&(will.0, client.serial));
            self.ended.wills += 1;
            self.note_will(id, None);
        }
        if ends_session {
            self.clients.forget_timers(id);
            let client = self.clients.by_id.get_mut(id);
            let kept = client.and_then(|client| Some((client.kept.take()?, Arc::clone(&client.holder.tenant))));
            self.note_session(id, None, 0, 0);
            self.clients.remove(id);
            self.clients.away -= 1;
            self.ended.sessions += 1;
            if let Some((mut kept, tenant)) = kept {
                self.return_shared(&mut kept.in_flight, false);
                self.disown(&kept, &tenant);
            }
        }
    }
}
