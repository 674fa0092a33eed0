//! A client that takes over its own connection. Owns that it needs no second place: what quotas of connections and the memory of wills
//! ask of a new client, it has already. A client beyond the quota of its address stays connected only until its identity is known.
use super::Excess;
use crate::account::{Key, Member, What};
use crate::codes::Code;
use crate::holder::Holder;
use crate::mqtt::{Fault, Reason};
use crate::node::Node;
use crate::shard::mqtt::Mqtt;
use crate::shard::{Shard, lock};

/// So many times the quota of an address may be here while it is found out who takes over.
const ARRIVING_TIMES: u32 = 2;

impl Shard {
    /// Whether a connection that arrives will end another one of the same client.
    pub(in crate::shard) fn takes_over(&self, socket: u32, holder: &Holder) -> bool {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        let name = mqtt.filter(|mqtt| mqtt.is_arriving()).and_then(|mqtt| mqtt.name());
        name.is_some_and(|name| lock(&self.node).is_connected(&holder.client_key(name), holder))
    }

    /// A CONNECT from an address at its quota continues if it may be a takeover.
    pub(in crate::shard) fn check_turned_away(&mut self, socket: u32) -> Result<(), Fault> {
        let Some(excess) = self.turned_away(socket) else { return Ok(()) };
        let address = self.connections.get(socket).map(|connection| connection.peer.address().ip());
        if let Some(address) = address.filter(|_| excess.may_take_over()) {
            let (now_ns, entries_max) = (self.now_ns(), self.bounds.rate_limit_entries_max);
            let account = self.accounts.open(Key::of_address(address), entries_max, now_ns);
            let max = self.bounds.address.connections_max.saturating_mul(ARRIVING_TIMES);
            if let Some(member) = Member::enter(account, max) {
                self.set_member(socket, Some(member));
                return Ok(());
            }
        }
        Err(self.refuse_place(excess))
    }

    /// It is known which client comes: beyond the quota of its address only one that is connected from there stays.
    pub(in crate::shard) fn settle_turned_away(
        &mut self,
        socket: u32,
        holder: &Holder,
        node: &Node,
    ) -> Result<(), Fault> {
        let Some(excess) = self.turned_away(socket) else { return Ok(()) };
        let origin = self.origin(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(()) };
        let key = connection.mqtt.as_deref().map(Mqtt::client_key);
        if !key.is_some_and(|id| node.is_connected_from(id, holder, origin)) {
            return Err(self.refuse_place(excess));
        }
        connection.details().turned_away = None;
        Ok(())
    }

    fn turned_away(&self, socket: u32) -> Option<Excess> {
        self.connections.get(socket)?.details.as_ref()?.turned_away
    }

    fn refuse_place(&mut self, excess: Excess) -> Fault {
        self.counters.count_refused(Code::ConnectsTooMany);
        Fault::refused(excess.refusal(), Reason::QUOTA)
    }
}

impl Excess {
    /// Whether an MQTT client that takes over its own connection is not concerned.
    pub(in crate::shard) fn may_take_over(self) -> bool {
        self.what == What::Connections
    }
}
