//! What all MQTT sessions and groups of a node are owed together. Owns who goes first past that bound: the holder with most, of the identity with
//! most, of the tenant with most.
use std::collections::HashMap;
use std::sync::Arc;

use super::super::Node;
use super::holders::{GROUP, Holder};

/// Whose share of the node's bound it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Client(Arc<crate::holder::Holder>),
    /// Its name, and its tenant.
    Group(Arc<str>, Option<Arc<str>>),
}

impl Owner {
    /// The tenant whose share comes first, if any.
    fn tenant(&self) -> Option<Arc<str>> {
        let tenant = match self {
            Self::Client(holder) => Some(&holder.tenant),
            Self::Group(_, tenant) => tenant.as_ref(),
        };
        tenant.filter(|tenant| !tenant.is_empty()).cloned()
    }
}

impl Node {
    /// Past the node's bound the holder with most, of the identity with most, of the tenant with most, is to be owed less.
    pub(super) fn limit_owed(&mut self) {
        let limits = &self.limits;
        let bytes_max = match limits.mqtt_owed_node_bytes_max {
            0 => limits.logs_bytes_max / 4,
            bytes_max => bytes_max.min(limits.logs_bytes_max / 2),
        };
        let Some(excess) = self.counts.owed_bytes.checked_sub(bytes_max).filter(|excess| *excess > 0) else { return };
        let (mut shares, mut tenants): (HashMap<Owner, usize>, HashMap<Arc<str>, usize>) = Default::default();
        let all: Vec<(u64, usize, Owner)> =
            self.holders.all.iter().map(|(key, holder)| (*key, holder.bytes, self.debt_owner(*key, holder))).collect();
        for (_, bytes, owner) in &all {
            *shares.entry(owner.clone()).or_default() += bytes;
            if let Some(tenant) = owner.tenant() {
                *tenants.entry(tenant).or_default() += bytes;
            }
        }
        let weight = |one: &&(u64, usize, Owner)| {
            let own = shares.get(&one.2).copied().unwrap_or(0);
            let all = one.2.tenant().and_then(|tenant| tenants.get(&tenant).copied()).unwrap_or(own);
            (all, own, one.1)
        };
        if let Some((key, bytes, _)) = all.iter().max_by_key(weight) {
            self.holders.begin(*key, Some(bytes.saturating_sub(excess)));
        }
    }

    /// Whose a holder is; a group is its own, in its tenant's share.
    fn debt_owner(&self, key: u64, holder: &Holder) -> Owner {
        let client = self.clients.by_id.get(&holder.name).filter(|_| key < GROUP);
        match client {
            Some(client) => Owner::Client(Arc::clone(&client.holder)),
            None => Owner::Group(Arc::clone(&holder.name), self.groups.tenant(key as u32)),
        }
    }
}
