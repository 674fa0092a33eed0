//! What sessions hold of the logs while they are connected, and while they return: for each subscription at QoS 1 or 2 the arrival after which
//! something may still have to be sent. Owns the order: what comes next is held before what was held is released, so that no group ends and
//! no message goes in between. Its shard tells where a session stands; what is noted here may be older, never newer.
use std::sync::Arc;

use super::super::Node;
use super::{Kept, Owed};
use crate::mqtt::split_shared;
use crate::report::ConnectionId;

/// What one connected session holds.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// Selectors, with the arrivals after which they are held.
    stands: Vec<(Arc<str>, u64)>,
    /// Groups of its tenant that count the session as away until it is a member again.
    groups: Vec<Box<str>>,
    tenant: Arc<str>,
}

impl Hold {
    pub(super) fn stands(&self) -> impl Iterator<Item = (&str, u64)> {
        self.stands.iter().map(|(selector, arrival)| (&**selector, *arrival))
    }

    /// Nothing up to an arrival is held any more.
    pub(super) fn raise(&mut self, floor: u64, owed: &mut Owed) {
        for (selector, arrival) in self.stands.iter_mut().filter(|(_, arrival)| *arrival < floor) {
            owed.add(selector, floor);
            owed.remove(selector, *arrival);
            *arrival = floor;
        }
    }
}

impl Node {
    /// A client resumed: until its cursors are attached, the connection holds what the session held.
    pub(super) fn hand_over(&mut self, id: &str, kept: &Kept, is_over: bool) {
        let stands = kept.stands().map(|(selector, arrival)| (Arc::from(selector), arrival)).collect();
        let shared = kept.subscriptions.iter().filter(|one| split_shared(&one.selector).is_some());
        let groups = shared.map(|one| one.selector.clone()).collect();
        let client = self.clients.by_id.get_mut(id);
        let tenant = client.as_ref().map_or_else(Arc::default, |client| Arc::clone(&client.holder.tenant));
        let hold = Hold { stands, groups, tenant };
        match client.filter(|_| !is_over) {
            Some(client) => client.hold = Some(Box::new(hold)),
            None => self.end_hold(Some(Box::new(hold))),
        }
    }

    /// Where a connected session stands: what it has yet to be sent of each selector came after the arrival.
    pub fn hold(&mut self, id: &str, connection: ConnectionId, stands: Vec<(Arc<str>, u64)>) {
        let Some(client) = self.clients.by_id.get_mut(id).filter(|client| client.owner() == Some(connection)) else {
            return;
        };
        let (before, serial) = (client.hold.take(), client.serial);
        for (selector, arrival) in &stands {
            self.owed.add(selector, *arrival);
        }
        if !stands.is_empty() {
            client.hold = Some(Box::new(Hold { stands, ..Hold::default() }));
            if let Some((id, _)) = self.clients.by_id.get_key_value(id) {
                self.holders.add_client(serial, id);
            }
        }
        self.end_hold(before);
    }

    /// Lets go of what a connection held.
    pub(super) fn end_hold(&mut self, hold: Option<Box<Hold>>) {
        let Some(hold) = hold else { return };
        for (selector, arrival) in &hold.stands {
            self.owed.remove(selector, *arrival);
        }
        for name in &hold.groups {
            if let Some(name) = split_shared(name) {
                self.count_away(name, &hold.tenant, false);
            }
        }
    }
}
