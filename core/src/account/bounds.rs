//! What one connection, address, identity or tenant may use, as the limits say it. Owns the names under which reaching a bound is
//! counted: those of the limits.
use super::bucket::Rate;
use crate::limits::Limits;

/// Of whom something is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Connection,
    Address,
    Identity,
    Tenant,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Publishes,
    PublishBytes,
    Subscribes,
    Connects,
    Failures,
    Connections,
    /// A share of all connections of the node.
    Places,
    Subscriptions,
}

/// What one of a scope may use; a rate that is off, or 0, is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    pub publishes: Rate,
    pub publish_bytes: Rate,
    pub subscribes: Rate,
    pub connects: Rate,
    pub failures: Rate,
    pub connections_max: u32,
    pub subscriptions_max: u32,
}

impl Share {
    /// Nothing has to be counted for it.
    pub fn is_off(&self) -> bool {
        let rates = [self.publishes, self.publish_bytes, self.subscribes, self.connects];
        rates.iter().all(|rate| rate.is_off()) && self.connections_max == 0 && self.subscriptions_max == 0
    }
}

/// The shares of all scopes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub connection: Share,
    pub address: Share,
    pub identity: Share,
    pub tenant: Share,
    pub rate_limit_entries_max: usize,
}

impl Bounds {
    pub fn of(limits: &Limits) -> Self {
        let rate = |count: usize| Rate::per_second(count as u64, limits.burst_ms_max);
        let count = |max: usize| u32::try_from(max).unwrap_or(u32::MAX);
        Self {
            connection: Share {
                publishes: rate(limits.publishes_per_second_max),
                publish_bytes: rate(limits.publish_bytes_per_second_max),
                subscribes: rate(limits.subscribes_per_second_max),
                ..Share::default()
            },
            address: Share {
                publishes: rate(limits.publishes_per_second_per_address_max),
                publish_bytes: rate(limits.publish_bytes_per_second_per_address_max),
                subscribes: rate(limits.subscribes_per_second_per_address_max),
                connects: rate(limits.connects_per_second_per_address_max),
                failures: Rate::per_minute(limits.token_failures_per_minute_per_address_max as u64),
                connections_max: count(limits.connections_per_address_max),
                subscriptions_max: count(limits.subscriptions_per_address_max),
            },
            identity: Share {
                publishes: rate(limits.publishes_per_second_per_identity_max),
                publish_bytes: rate(limits.publish_bytes_per_second_per_identity_max),
                subscribes: rate(limits.subscribes_per_second_per_identity_max),
                connects: rate(limits.connects_per_second_per_identity_max),
                connections_max: count(limits.connections_per_identity_max),
                subscriptions_max: count(limits.subscriptions_per_identity_max),
                ..Share::default()
            },
            tenant: Share {
                publishes: rate(limits.publishes_per_second_per_tenant_max),
                publish_bytes: rate(limits.publish_bytes_per_second_per_tenant_max),
                connections_max: count(limits.connections_per_tenant_max),
                subscriptions_max: count(limits.subscriptions_per_tenant_max),
                ..Share::default()
            },
            rate_limit_entries_max: limits.rate_limit_entries_max,
        }
    }
}

impl Scope {
    /// Whom a refusal speaks of.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Address => "address",
            Self::Identity => "identity",
            Self::Tenant => "tenant",
        }
    }

    /// The limit that bounds something in this scope.
    pub const fn limit(self, what: What) -> &'static str {
        match (what, self) {
            (What::Publishes, Self::Connection) => "publishes_per_second_max",
            (What::Publishes, Self::Address) => "publishes_per_second_per_address_max",
            (What::Publishes, Self::Identity) => "publishes_per_second_per_identity_max",
            (What::Publishes, Self::Tenant) => "publishes_per_second_per_tenant_max",
            (What::PublishBytes, Self::Connection) => "publish_bytes_per_second_max",
            (What::PublishBytes, Self::Address) => "publish_bytes_per_second_per_address_max",
            (What::PublishBytes, Self::Identity) => "publish_bytes_per_second_per_identity_max",
            (What::PublishBytes, Self::Tenant) => "publish_bytes_per_second_per_tenant_max",
            (What::Subscribes, Self::Connection) => "subscribes_per_second_max",
            (What::Subscribes, Self::Address) => "subscribes_per_second_per_address_max",
            (What::Subscribes, _) => "subscribes_per_second_per_identity_max",
            (What::Connects, Self::Address | Self::Connection) => "connects_per_second_per_address_max",
            (What::Connects, _) => "connects_per_second_per_identity_max",
            (What::Failures, _) => "token_failures_per_minute_per_address_max",
            (What::Places, _) => "connections_max",
            (What::Connections, Self::Address | Self::Connection) => "connections_per_address_max",
            (What::Connections, Self::Identity) => "connections_per_identity_max",
            (What::Connections, Self::Tenant) => "connections_per_tenant_max",
            (What::Subscriptions, Self::Connection) => "subscriptions_per_connection_max",
            (What::Subscriptions, Self::Address) => "subscriptions_per_address_max",
            (What::Subscriptions, Self::Identity) => "subscriptions_per_identity_max",
            (What::Subscriptions, Self::Tenant) => "subscriptions_per_tenant_max",
        }
    }
}
