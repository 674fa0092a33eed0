//! Shares of what the whole node has: whom a connection is counted as, in the tables that all holders and addresses fill together.
use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher13;

use super::Excess;
use crate::account::{Key, Scope, What};
use crate::node::Node;
use crate::shard::Shard;

impl Shard {
    /// What an address counts under among the node's connections. This machine's own, and proxies, have no share: others stand behind them.
    pub(in crate::shard) fn share_of(&self, address: IpAddr) -> u32 {
        let address = address.to_canonical();
        if address.is_loopback() || self.doors.proxies.contains(address) {
            return 0;
        }
        let mut hasher = SipHasher13::new_with_keys(self.settings.seed, 1);
        hasher.write_u64(Key::of_address(address).fold());
        (hasher.finish() as u32).max(1)
    }

    /// A connection comes from another address than was thought; false where that has its share of all connections.
    pub(in crate::shard) fn move_share(&mut self, socket: u32, address: IpAddr) -> bool {
        let origin = self.share_of(address);
        let Some(connection) = self.connections.get_mut(socket) else { return true };
        let is_in = self.connection_count.move_address(
            self.index,
            connection.origin,
            origin,
            self.settings.limits.connections_max,
        );
        connection.origin = if is_in { origin } else { 0 };
        is_in
    }

    pub(in crate::shard) fn note_share_excess(&mut self) -> Excess {
        let excess = Excess { scope: Scope::Address, what: What::Places, wait_ms: 0 };
        self.note_excess(excess);
        excess
    }

    /// Whose places of shared tables a connection takes.
    pub(in crate::shard) fn origin(&self, socket: u32) -> u64 {
        let address = self.connections.get(socket).map(|connection| connection.peer.address().ip());
        address.map_or(0, |address| Key::of_address(address).fold())
    }

    /// What begins for a connection from here on is counted as its own.
    pub(in crate::shard) fn ask_as(&mut self, socket: u32, node: &mut Node) {
        let access = self.connections.get(socket).and_then(|connection| connection.access.as_ref());
        let owner = access.map(|access| node.owner_of(&access.holder, self.origin(socket)));
        node.ask_as(owner.unwrap_or_default());
        self.streams.opener = owner.unwrap_or_default();
    }
}
