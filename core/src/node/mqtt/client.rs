//! One MQTT client as the node knows it. Owns whose it is.
use std::sync::Arc;

use super::{Kept, Will, holds};
use crate::account::Away;
use crate::holder::Holder;
use crate::node::names::Owner;
use crate::report::ConnectionId;

#[derive(Debug)]
pub(super) struct Client {
    /// Names the client in messages, so that it can be left out of what it published itself.
    pub(super) serial: u32,
    pub(super) holder: Arc<Holder>,
    owner: ConnectionId,
    /// Where its connection came from, as shares count addresses.
    pub(super) origin: u64,
    pub(super) kept: Option<Box<Kept>>,
    pub(super) expires_ms: u64,
    /// What is kept counts with its holder, where a quota asks for that.
    pub(super) away: Option<Box<Away>>,
    /// Whose place of the table its session has, from the CONNECT that asked for it on; the node's own: it has none.
    place: Owner,
    pub(super) will: Option<Box<(u64, Will)>>,
    /// What it holds while it is connected, or until it has its place again.
    pub(super) hold: Option<Box<holds::Hold>>,
    /// Its will while it is connected.
    pub(super) connected_will: Option<Box<Will>>,
    /// The journal's notes hold its session, and its will.
    pub(super) has_note: bool,
    pub(super) has_will_note: bool,
    is_connected: bool,
}

impl Client {
    pub(super) fn owner(&self) -> Option<ConnectionId> {
        self.is_connected.then_some(self.owner)
    }

    pub(super) fn set_owner(&mut self, owner: Option<ConnectionId>) {
        (self.owner, self.is_connected) = (owner.unwrap_or(ConnectionId(0)), owner.is_some());
    }

    pub(super) fn place(&self) -> Option<Owner> {
        Some(self.place).filter(|place| *place != Owner::default())
    }

    /// Gives it another place; returns the one before.
    pub(super) fn set_place(&mut self, place: Option<Owner>) -> Option<Owner> {
        let before = self.place();
        self.place = place.unwrap_or_default();
        before
    }

    /// Whether somebody owns it. Of one that an older node wrote down it is not known who vouched for its owner.
    pub(super) fn is_of(&self, holder: &Holder) -> bool {
        let is_known = !self.holder.authority.is_empty();
        let Holder { tenant, authority, identity } = holder;
        self.holder.identity == *identity
            && self.holder.tenant == *tenant
            && (self.holder.authority == *authority || !is_known)
    }

    /// Neither connected, nor is anything kept of it.
    pub(super) fn is_nobodys(&self) -> bool {
        !self.is_connected && self.kept.is_none() && self.will.is_none()
    }

    /// When what is kept of it expires, and its will is due, with its serial.
    pub(super) fn due(&self) -> (u64, Option<u64>, u32) {
        (self.expires_ms, self.will.as_ref().map(|will| will.0), self.serial)
    }

    pub(super) fn new(serial: u32, holder: Arc<Holder>) -> Self {
        Self {
            serial,
            holder,
            owner: ConnectionId(0),
            origin: 0,
            kept: None,
            expires_ms: 0,
            away: None,
            place: Owner::default(),
            will: None,
            hold: None,
            connected_will: None,
            has_note: false,
            has_will_note: false,
            is_connected: false,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_client_takes_of_the_node_is_small() {
        assert!(size_of::<super::Client>() <= 88, "{}", size_of::<super::Client>());
    }
}
