//! Clients whose connections are gone without a word. Owns that nobody waits for them, and that their wills are published.
use std::sync::Arc;

use super::super::Node;
use super::super::listeners::bit;
use super::{Client, Mail, PendingWill};
use crate::position::Now;
use crate::report::ConnectionId;

impl Node {
    /// The connection that a mail was for is no more: nothing is kept of it.
    pub fn abandon_client(&mut self, connection: ConnectionId, now: Now) {
        let found = self.clients.by_id.iter().find(|(_, client)| client.owner() == Some(connection));
        if let Some(id) = found.map(|(id, _)| Arc::clone(id)) {
            self.release(&id, connection, None, None, 0, now);
        }
    }

    /// These shards gave up: of their clients stays what the journal holds.
    pub(in crate::node) fn abandon_clients(&mut self, shards: u64, now: Now) {
        self.abandon_waiting(shards);
        let owned = |client: &&mut Box<Client>| client.owner().is_some_and(|owner| shards & bit(owner.shard()) != 0);
        let owners = self.clients.by_id.iter_mut().filter(|(_, client)| owned(client));
        let wills: Vec<_> = owners
            .filter_map(|(id, client)| {
                let will = client.connected_will.take()?;
                client.has_will_note = false; // it is published below, or noted again with its delay
                Some((Arc::clone(id), will))
            })
            .collect();
        let of = |client: &Client| client.owner().filter(|owner| shards & bit(owner.shard()) != 0);
        let is_noted = |client: &Client| client.has_note || client.has_will_note;
        let clients = self.clients.by_id.iter().filter(|(_, client)| !is_noted(client));
        let gone: Vec<_> = clients.filter_map(|(id, client)| Some((Arc::clone(id), of(client)?))).collect();
        for (id, owner) in gone {
            self.release(&id, owner, None, None, 0, now);
        }
        for (id, will) in wills {
            self.settle_will(PendingWill { id, due_ms: 0, will: *will }, now);
        }
        self.free_noted(shards);
    }

    /// Connections of these shards wait for no client identifier any more.
    fn abandon_waiting(&mut self, shards: u64) {
        let clients = &self.clients;
        let waiting = clients.by_id.iter().filter_map(|(id, client)| {
            let connection = clients.waiting.get(&client.serial).or(clients.freed.get(&client.serial))?;
            (shards & bit(connection.shard()) != 0).then(|| (Arc::clone(id), *connection))
        });
        for (id, connection) in waiting.collect::<Vec<_>>() {
            self.stop_waiting(&id, connection);
        }
    }

    /// A session that the journal holds stays with its lost connection until it is claimed: who waits for it has to claim it now.
    fn free_noted(&mut self, shards: u64) {
        let clients = &self.clients;
        let owned = clients
            .by_id
            .values()
            .filter(|client| client.owner().is_some_and(|owner| shards & bit(owner.shard()) != 0));
        let freed: Vec<_> =
            owned.filter_map(|client| Some((client.serial, *clients.waiting.get(&client.serial)?))).collect();
        for (serial, connection) in freed {
            self.clients.waiting.remove(&serial);
            self.clients.freed.insert(serial, connection);
            self.wakes |= self.clients.tell(connection, Mail::Free(connection));
        }
    }
}
