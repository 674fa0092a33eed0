//! May it have more? What a connection, its address, its identity and its tenant may use of the node, asked at the same places on
//! every wire: when a socket is accepted, when it is known who came, at each subscription and each publish. Owns the questions and
//! their answers; counts and buckets are `account`'s. A scope without a limit has no account and costs nothing.
use std::net::IpAddr;
use std::sync::Arc;

use crate::account::{Account, Key, Member, Rate, RateCost, Scope, What};
use crate::codes::Code;
use crate::command::Refusal;
use crate::shard::Shard;
use crate::shard::connection::{Access, Connection, Phase};

/// Refusals a second that one address is told in words; past them its sockets are just closed.
const ANSWERS: u64 = 10;

/// A limit was reached.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct Excess {
    pub(in crate::shard) scope: Scope,
    pub(in crate::shard) what: What,
    /// When to come again; 0: when somebody has left.
    pub(in crate::shard) wait_ms: u32,
}

impl Excess {
    pub(in crate::shard) const fn limit(self) -> &'static str {
        self.scope.limit(self.what)
    }

    /// What the peer is told.
    pub(in crate::shard) fn refusal(self) -> Refusal {
        let (code, does) = match self.what {
            What::Publishes => (Code::RateExceeded, "publishes more messages a second than it may"),
            What::PublishBytes => (Code::RateExceeded, "publishes more bytes a second than it may"),
            What::Subscribes => (Code::RateExceeded, "subscribes more often than it may"),
            What::Connects => (Code::ConnectsTooMany, "connects more often than it may"),
            What::Failures => (Code::ConnectsTooMany, "has shown more tokens that were refused than it may"),
            What::Places => {
                (Code::ConnectsTooMany, "has its share of the node's connections, which are nearly all taken")
            }
            What::Connections => (Code::ConnectsTooMany, "has as many connections as it may have"),
            What::Subscriptions => (Code::SubscriptionsTooMany, "has as many subscriptions as it may have"),
        };
        let after = if self.wait_ms > 0 { format!("; try again in {} ms", self.wait_ms) } else { String::new() };
        let reason = format!("this {} {does} (limits.{}){after}", self.scope.noun(), self.limit());
        Refusal { after_ms: self.wait_ms, ..Refusal::new(code, reason) }
    }
}

/// What becomes of a socket that comes from an address.
#[derive(Debug)]
pub(in crate::shard) enum Entry {
    /// It is counted, where anything has to be.
    Free(Option<Member>),
    /// It is told so, once it has said what it speaks.
    Refused(Excess),
    /// It is closed without a word: it has been told often enough.
    Ignored(Excess),
}

/// What a connection takes from, beside itself.
fn accounts(connection: &Connection) -> impl Iterator<Item = (Scope, &Account)> {
    let address = connection.member.as_ref().map(|member| (Scope::Address, member.account()));
    address.into_iter().chain(connection.access.iter().flat_map(|access| access.accounts()))
}

impl Access {
    /// The accounts of who it is.
    fn accounts(&self) -> impl Iterator<Item = (Scope, &Account)> {
        let identity = self.identity_member.as_ref().map(|member| (Scope::Identity, member.account()));
        let tenant = self.tenant_member.as_ref().map(|member| (Scope::Tenant, member.account()));
        identity.into_iter().chain(tenant)
    }
}

impl Shard {
    pub(in crate::shard) fn now_ns(&self) -> u64 {
        self.now.mono_ms.saturating_mul(1_000_000)
    }

    fn share(&self, scope: Scope) -> &crate::account::Share {
        match scope {
            Scope::Connection => &self.bounds.connection,
            Scope::Address => &self.bounds.address,
            Scope::Identity => &self.bounds.identity,
            Scope::Tenant => &self.bounds.tenant,
        }
    }

    /// A limit was reached: counted under its name.
    pub(in crate::shard) fn note_excess(&mut self, excess: Excess) {
        Arc::make_mut(&mut self.counters.codes).limits.add(excess.limit());
    }

    /// A socket comes from an address, or is said by a trusted proxy to come from it; `is_new`: that is a connect.
    pub(in crate::shard) fn enter(&mut self, address: IpAddr, is_new: bool) -> Entry {
        let share = self.bounds.address;
        if share.is_off() || self.doors.proxies.contains(address) {
            return Entry::Free(None);
        }
        let now_ns = self.now_ns();
        let account = self.accounts.open(Key::of_address(address), self.bounds.rate_limit_entries_max, now_ns);
        let wait_ms = account.connects.wait_ms(share.connects, now_ns, 1).filter(|_| is_new);
        let what = if let Some(wait_ms) = wait_ms {
            (What::Connects, wait_ms)
        } else {
            if is_new {
                account.connects.take(share.connects, now_ns, 1);
            }
            match Member::enter(Arc::clone(&account), share.connections_max) {
                Some(member) => return Entry::Free(Some(member)),
                None => (What::Connections, 0),
            }
        };
        let excess = Excess { scope: Scope::Address, what: what.0, wait_ms: what.1 };
        self.note_excess(excess);
        if account.answers.try_take(Rate::per_second(ANSWERS, 1_000), now_ns, 1) {
            Entry::Refused(excess)
        } else {
            Entry::Ignored(excess)
        }
    }

    /// It is known who a connection is: what it is counted with from now on, unless that has as many as it may.
    pub(in crate::shard) fn join_accounts(&mut self, socket: u32, access: &mut Access) -> Result<(), Excess> {
        let known = self.connections.get(socket).and_then(|connection| connection.access.clone());
        if let Some(known) = known.filter(|known| known.is_same_member(access)) {
            // A renewal is no new connection.
            access.identity_member.clone_from(&known.identity_member);
            access.tenant_member.clone_from(&known.tenant_member);
            return Ok(());
        }
        let (now_ns, bounds) = (self.now_ns(), self.bounds);
        // One that takes over takes the place of the other, which goes [MQTT-3.1.4-3].
        let takes_over = self.takes_over(socket, &access.holder);
        let places = |max| if takes_over { 0 } else { max };
        let excess = |scope, what, wait_ms| Excess { scope, what, wait_ms };
        let mut identity = None;
        if !access.is_anonymous && !bounds.identity.is_off() {
            let key = Key::Holder(Arc::clone(&access.holder));
            let account = self.accounts.open(key, bounds.rate_limit_entries_max, now_ns);
            if let Some(wait_ms) = account.connects.wait_ms(bounds.identity.connects, now_ns, 1) {
                return Err(excess(Scope::Identity, What::Connects, wait_ms));
            }
            account.connects.take(bounds.identity.connects, now_ns, 1);
            let member = Member::enter(account, places(bounds.identity.connections_max));
            identity = Some(Arc::new(member.ok_or(excess(Scope::Identity, What::Connections, 0))?));
        }
        if !access.holder.tenant.is_empty() && !bounds.tenant.is_off() {
            let account = self.accounts.open(
                Key::Tenant(Arc::clone(&access.holder.tenant)),
                bounds.rate_limit_entries_max,
                now_ns,
            );
            let member = Member::enter(account, places(bounds.tenant.connections_max));
            access.tenant_member = Some(Arc::new(member.ok_or(excess(Scope::Tenant, What::Connections, 0))?));
        }
        access.identity_member = identity;
        Ok(())
    }

    /// Gives a connection other rights, and moves what it holds to the accounts of who it is now.
    pub(in crate::shard) fn set_access(&mut self, socket: u32, access: Option<Arc<Access>>) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let held = connection.cursors;
        if held > 0 {
            connection.access.iter().flat_map(|old| old.accounts()).for_each(|(_, one)| one.remove_subscriptions(held));
            access.iter().flat_map(|new| new.accounts()).for_each(|(_, one)| one.add_subscriptions(held));
        }
        connection.access = access;
    }

    /// A connection that is closing no longer counts for its identity and tenant: its peer may be slow to answer the close.
    pub(in crate::shard) fn leave_accounts(&mut self, socket: u32) {
        let access = self.connections.get(socket).and_then(|connection| connection.access.clone());
        if let Some(access) = access.filter(|access| access.accounts().next().is_some()) {
            let uncounted = Access { identity_member: None, tenant_member: None, ..Access::clone(&access) };
            self.set_access(socket, Some(Arc::new(uncounted)));
        }
    }

    /// The same of its address.
    pub(in crate::shard) fn set_member(&mut self, socket: u32, member: Option<Member>) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let held = connection.cursors;
        if let Some(old) = &connection.member {
            old.account().remove_subscriptions(held);
        }
        if let Some(new) = &member {
            new.account().add_subscriptions(held);
        }
        connection.member = member;
    }

    /// A subscription of a connection began.
    pub(in crate::shard) fn count_subscription(connection: &Connection) {
        accounts(connection).for_each(|(_, account)| account.add_subscriptions(1));
    }

    /// A subscription of a connection ended.
    pub(in crate::shard) fn uncount_subscription(connection: &Connection) {
        accounts(connection).for_each(|(_, account)| account.remove_subscriptions(1));
    }

    /// Whether a connection may have one more subscription, and may ask for it so soon.
    pub(in crate::shard) fn may_subscribe(&mut self, socket: u32) -> Result<(), Refusal> {
        self.may_hold(socket)?;
        self.spend(socket, What::Subscribes, 1)
    }

    /// Whether a connection may change a subscription that it has: only its rates bound that.
    pub(in crate::shard) fn may_change_subscription(&mut self, socket: u32) -> Result<(), Refusal> {
        self.spend(socket, What::Subscribes, 1)
    }

    /// Whether a connection may have one more subscription. Sessions that are away count, but for one that is being resumed: else none of
    /// them could be, where a quota was lowered.
    pub(in crate::shard) fn may_hold(&mut self, socket: u32) -> Result<(), Refusal> {
        let Some(connection) = self.connections.get(socket) else { return Ok(()) };
        let excess = |scope, what, wait_ms| Excess { scope, what, wait_ms };
        let held_max = self.settings.limits.subscriptions_per_connection_max;
        let mut found =
            (connection.cursors as usize >= held_max).then(|| excess(Scope::Connection, What::Subscriptions, 0));
        let is_resuming = connection.mqtt.as_ref().is_some_and(|mqtt| mqtt.is_arriving());
        for (scope, account) in accounts(connection) {
            let held_max = self.share(scope).subscriptions_max;
            let away = if is_resuming { 0 } else { account.away() };
            if found.is_none() && held_max > 0 && account.subscriptions().saturating_add(away) >= held_max {
                found = Some(excess(scope, What::Subscriptions, 0));
            }
        }
        if let Some(excess) = found {
            return Err(self.refuse_excess(excess));
        }
        Ok(())
    }

    /// Takes a publish of so many bytes from every rate that bounds the connection.
    pub(in crate::shard) fn spend_publish(&mut self, socket: u32, bytes: usize) -> Result<(), Refusal> {
        self.spend(socket, What::Publishes, 1)?;
        self.spend(socket, What::PublishBytes, bytes as u64)
    }

    /// What was paid before a question is not paid again.
    pub(super) fn spend(&mut self, socket: u32, what: What, units: u64) -> Result<(), Refusal> {
        if self.take_prepaid(socket, what) {
            return Ok(());
        }
        self.pay(socket, what, units)
    }

    /// All rates are asked before any is taken from.
    pub(super) fn pay(&mut self, socket: u32, what: What, units: u64) -> Result<(), Refusal> {
        let now_ns = self.now_ns();
        let own = rate_of(&self.bounds.connection, what);
        if !own.is_off()
            && let Some(connection) = self.connections.get_mut(socket)
        {
            connection.details();
        }
        let Some(connection) = self.connections.get(socket) else { return Ok(()) };
        let rate_cost = connection.details.as_ref().map(|details| (Scope::Connection, &details.rate_cost));
        let shared = accounts(connection).map(|(scope, account)| (scope, &account.rate_cost));
        let mut found = None;
        for (scope, rate_cost) in rate_cost.into_iter().chain(shared) {
            let rate = rate_of(self.share(scope), what);
            if let Some(wait_ms) = bucket_of(rate_cost, what).wait_ms(rate, now_ns, units) {
                found = Some(Excess { scope, what, wait_ms });
                break;
            }
        }
        if let Some(excess) = found {
            return Err(self.refuse_excess(excess));
        }
        let rate_cost = connection.details.as_ref().map(|details| (Scope::Connection, &details.rate_cost));
        let shared = accounts(connection).map(|(scope, account)| (scope, &account.rate_cost));
        for (scope, rate_cost) in rate_cost.into_iter().chain(shared) {
            bucket_of(rate_cost, what).take(rate_of(self.share(scope), what), now_ns, units);
        }
        Ok(())
    }

    fn take_prepaid(&mut self, socket: u32, what: What) -> bool {
        let details = self.connections.get_mut(socket).and_then(|connection| connection.details.as_mut());
        let count = match (details, what) {
            (Some(details), What::Publishes) => &mut details.prepaid.publishes,
            (Some(details), What::Subscribes) => &mut details.prepaid.subscribes,
            _ => return false,
        };
        let is_paid = *count > 0;
        *count = count.saturating_sub(1);
        is_paid
    }

    fn refuse_excess(&mut self, excess: Excess) -> Refusal {
        self.note_excess(excess);
        excess.refusal()
    }

    /// A connection shows another token: to its address and its identity that is a connect, and is paid before the server judges it.
    pub(in crate::shard) fn spend_login(&mut self, socket: u32) -> Result<(), Excess> {
        let now_ns = self.now_ns();
        let Some(connection) = self.connections.get(socket) else { return Ok(()) };
        let mut found = None;
        for (scope, account) in accounts(connection) {
            let wait_ms = account.connects.wait_ms(self.share(scope).connects, now_ns, 1);
            found = found.or(wait_ms.map(|wait_ms| Excess { scope, what: What::Connects, wait_ms }));
        }
        if let Some(excess) = found {
            self.note_excess(excess);
            return Err(excess);
        }
        for (scope, account) in accounts(connection) {
            account.connects.take(self.share(scope).connects, now_ns, 1);
        }
        Ok(())
    }

    /// Other limits are in force: who is here is counted with the accounts that these ask for, and nobody is sent away.
    pub(in crate::shard) fn count_again(&mut self, socket: u32) {
        let Some(connection) = self.connections.get(socket) else { return };
        let (address, access) = (connection.peer.address().ip(), connection.access.clone());
        let is_closing = connection.phase == Phase::Closing;
        let (now_ns, bounds) = (self.now_ns(), self.bounds);
        let enter = |accounts: &crate::account::Accounts, key| {
            Member::enter(accounts.open(key, bounds.rate_limit_entries_max, now_ns), 0)
        };
        let counts_address = !bounds.address.is_off() && !self.doors.proxies.contains(address);
        if counts_address != connection.member.is_some() {
            let member = counts_address.then(|| enter(&self.accounts, Key::of_address(address))).flatten();
            self.set_member(socket, member);
        }
        let Some(access) = access.filter(|access| !access.is_anonymous && !is_closing) else { return };
        let mut counted = Access::clone(&access);
        let (holder, tenant) = (Arc::clone(&access.holder), Arc::clone(&access.holder.tenant));
        if bounds.identity.is_off() == access.identity_member.is_some() {
            let member = (!bounds.identity.is_off()).then(|| enter(&self.accounts, Key::Holder(holder))).flatten();
            counted.identity_member = member.map(Arc::new);
        }
        if (bounds.tenant.is_off() || tenant.is_empty()) == access.tenant_member.is_some() {
            let is_counted = !bounds.tenant.is_off() && !tenant.is_empty();
            let member = is_counted.then(|| enter(&self.accounts, Key::Tenant(tenant))).flatten();
            counted.tenant_member = member.map(Arc::new);
        }
        self.set_access(socket, Some(Arc::new(counted)));
    }
}

fn rate_of(share: &crate::account::Share, what: What) -> Rate {
    match what {
        What::Publishes => share.publishes,
        What::PublishBytes => share.publish_bytes,
        What::Subscribes => share.subscribes,
        _ => Rate::default(),
    }
}

fn bucket_of(rate_cost: &RateCost, what: What) -> &crate::account::Bucket {
    match what {
        What::PublishBytes => &rate_cost.publish_bytes,
        What::Subscribes => &rate_cost.subscribes,
        _ => &rate_cost.publishes,
    }
}
