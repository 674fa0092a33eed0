//! What one address, one identity or one tenant uses of a node, all its connections together: counts that end with them, and
//! buckets that fill again with time. One table a node, shared by its shards; who spends touches a few atomics and no lock.
//! Invariant: an account is forgotten when it is as good as none (no connection, nothing owed); only where the table is full of
//! debtors without a connection does one go that owes the least of those looked at, so that nobody is forgiven by making others owe.
mod bounds;
mod bucket;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::holder::Holder;
pub use bounds::{Bounds, Scope, Share, What};
pub use bucket::{Bucket, Rate};

/// Places looked at when one has to go.
const LOOKS: usize = 16;
/// Places that one sweep looks at.
const SWEEP_EACH: usize = 4_096;

/// Whose account it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Address(u128),
    /// What an address has shown and was refused: a token's hash.
    Tried(u128, u64),
    Holder(Arc<Holder>),
    Tenant(Arc<str>),
}

impl Key {
    /// Tells addresses apart.
    pub fn fold(&self) -> u64 {
        match self {
            Self::Address(address) => (*address >> 64) as u64 ^ *address as u64,
            _ => 0,
        }
    }

    /// An IPv4 address, or the network of 64 bits of an IPv6 address: whoever has one has all of that.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(network_of(address))
    }

    /// A token that this address was refused, by its hash.
    pub fn of_tried(address: IpAddr, tried: u64) -> Self {
        Self::Tried(network_of(address), tried)
    }
}

fn network_of(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => u128::from(ip.to_ipv6_mapped()),
        IpAddr::V6(ip) => u128::from(ip) >> 64 << 64,
    }
}

/// What is spent by doing something, as rates.
#[derive(Debug, Default)]
pub struct RateCost {
    pub publishes: Bucket,
    pub publish_bytes: Bucket,
    pub subscribes: Bucket,
}

impl RateCost {
    /// How long it takes until all that was taken has been made good.
    pub fn owed_ns(&self, now_ns: u64) -> u64 {
        let Self { publishes, publish_bytes, subscribes } = self;
        [publishes, publish_bytes, subscribes].map(|bucket| bucket.owed_ns(now_ns)).into_iter().max().unwrap_or(0)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Account {
    pub rate_cost: RateCost,
    pub connects: Bucket,
    pub failures: Bucket,
    /// Refusals that were still answered in words.
    pub answers: Bucket,
    connections: AtomicU32,
    subscriptions: AtomicU32,
    /// Subscriptions of sessions whose clients are away.
    away: AtomicU32,
}

impl Account {
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn subscriptions(&self) -> u32 {
        self.subscriptions.load(Ordering::Relaxed)
    }

    /// Subscriptions of sessions whose clients are away.
    pub fn away(&self) -> u32 {
        self.away.load(Ordering::Relaxed)
    }

    /// Subscriptions began, or were moved here.
    pub fn add_subscriptions(&self, count: u32) {
        self.subscriptions.fetch_add(count, Ordering::Relaxed);
    }

    pub fn remove_subscriptions(&self, count: u32) {
        // It removes what it has added: there is always as much.
        let _ = self
            .subscriptions
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some(held.saturating_sub(count)));
    }

    fn owed_ns(&self, now_ns: u64) -> u64 {
        let buckets = [&self.connects, &self.failures, &self.answers];
        buckets.iter().map(|bucket| bucket.owed_ns(now_ns)).fold(self.rate_cost.owed_ns(now_ns), u64::max)
    }
}

/// A connection's place in an account, counted for as long as it is held.
#[derive(Debug)]
pub struct Member(Arc<Account>);

impl Member {
    /// None: the account holds as many connections as it may; 0 is no limit.
    pub fn enter(account: Arc<Account>, connections_max: u32) -> Option<Self> {
        let before = account.connections.fetch_add(1, Ordering::Relaxed);
        let member = Self(account);
        (connections_max == 0 || before < connections_max).then_some(member)
    }

    pub fn account(&self) -> &Account {
        &self.0
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Subscriptions of a session whose client is away, counted for as long as it is held.
#[derive(Debug)]
pub struct Away {
    accounts: Box<[Arc<Account>]>,
    count: u32,
}

impl Away {
    pub fn new(accounts: Box<[Arc<Account>]>, count: u32) -> Self {
        accounts.iter().for_each(|account| {
            account.away.fetch_add(count, Ordering::Relaxed);
        });
        Self { accounts, count }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.accounts.iter().for_each(|account| {
            account.away.fetch_sub(self.count, Ordering::Relaxed);
        });
    }
}

/// All accounts of a node.
#[derive(Debug, Default)]
pub struct Accounts {
    table: Mutex<Table>,
    /// As many as there are, readable without the lock.
    count: AtomicU32,
    /// Accounts that were forgotten while they owed.
    forgiven: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    places: Vec<Option<(Key, Arc<Account>)>>,
    by_key: HashMap<Key, u32>,
    free: Vec<u32>,
    /// Where the sweep goes on, and where the next one to go is looked for.
    swept: usize,
    random: u64,
}

impl Accounts {
    /// The account of a key; a new one, where there is none.
    pub fn open(&self, key: Key, rate_limit_entries_max: usize, now_ns: u64) -> Arc<Account> {
        let mut table = self.lock();
        if let Some((_, known)) = table.by_key.get(&key).and_then(|&place| table.places.get(place as usize)?.as_ref()) {
            return Arc::clone(known);
        }
        if table.by_key.len() >= rate_limit_entries_max.max(1) && table.forget_one(now_ns) {
            self.forgiven.fetch_add(1, Ordering::Relaxed);
        }
        let account = Arc::new(Account::default());
        table.insert(key, Arc::clone(&account));
        self.count.store(table.by_key.len() as u32, Ordering::Relaxed);
        account
    }

    /// The account of a key, if there is one.
    pub fn find(&self, key: &Key) -> Option<Arc<Account>> {
        if self.is_empty() {
            return None;
        }
        let table = self.lock();
        let place = *table.by_key.get(key)?;
        table.places.get(place as usize)?.as_ref().map(|(_, account)| Arc::clone(account))
    }

    /// Forgets, of some, those that are as good as none.
    pub fn sweep(&self, now_ns: u64) {
        if self.is_empty() {
            return;
        }
        let mut table = self.lock();
        for _ in 0..SWEEP_EACH.min(table.places.len()) {
            let place = table.swept % table.places.len();
            table.swept = place + 1;
            if table.owes(place, now_ns) == Some(0) {
                table.remove(place);
            }
        }
        self.count.store(table.by_key.len() as u32, Ordering::Relaxed);
    }

    pub fn len(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn forgiven(&self) -> u64 {
        self.forgiven.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn insert(&mut self, key: Key, account: Arc<Account>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            (self.places.len() - 1) as u32
        });
        self.by_key.insert(key.clone(), place);
        if let Some(found) = self.places.get_mut(place as usize) {
            *found = Some((key, account));
        }
    }

    fn remove(&mut self, place: usize) {
        if let Some((key, _)) = self.places.get_mut(place).and_then(Option::take) {
            self.by_key.remove(&key);
            self.free.push(place as u32);
        }
    }

    /// What an account owes that nobody holds; none where there is none such.
    fn owes(&self, place: usize, now_ns: u64) -> Option<u64> {
        let (_, account) = self.places.get(place)?.as_ref()?;
        (Arc::strong_count(account) == 1).then(|| account.owed_ns(now_ns))
    }

    /// Makes room: of some places, chosen so that nobody can foresee them, the one that owes least. True when it owed something.
    fn forget_one(&mut self, now_ns: u64) -> bool {
        let mut least: Option<(u64, usize)> = None;
        for _ in 0..LOOKS {
            // Keys come from a hash with a secret; the order of places follows who came when, and this walk does not.
            self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(now_ns | 1);
            let place = (self.random >> 33) as usize % self.places.len().max(1);
            if let Some(owed_ns) = self.owes(place, now_ns)
                && least.is_none_or(|(found_ns, _)| owed_ns < found_ns)
            {
                least = Some((owed_ns, place));
            }
        }
        let Some((owed_ns, place)) = least else { return false };
        self.remove(place);
        owed_ns > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn name(text: &str) -> Key {
        Key::Holder(Holder::new("", "basic", text))
    }

    #[test]
    fn an_address_is_counted_by_what_one_customer_has() {
        let of = |text: &str| Key::of_address(text.parse().unwrap());
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }

    #[test]
    fn a_place_is_given_back_when_its_connection_goes() {
        let accounts = Accounts::default();
        let open = || accounts.open(name("ann"), 10, 0);
        let first = Member::enter(open(), 2).unwrap();
        let second = Member::enter(open(), 2).unwrap();
        assert!(Member::enter(open(), 2).is_none());
        assert_eq!(open().connections(), 2, "a refused one is not counted");
        drop(first);
        assert!(Member::enter(open(), 2).is_some());
        assert_eq!(second.account().connections(), 1);
    }

    #[test]
    fn what_owes_nothing_is_forgotten_and_what_owes_or_is_held_is_not() {
        let accounts = Accounts::default();
        let rate = Rate::per_second(1, 1_000);
        accounts.open(name("debtor"), 10, 0).connects.take(rate, 0, 5);
        accounts.open(name("visitor"), 10, 0);
        let held = Member::enter(accounts.open(name("guest"), 10, 0), 0);
        accounts.sweep(SECOND_NS);
        assert_eq!(accounts.len(), 2);
        assert!(accounts.find(&name("visitor")).is_none() && accounts.find(&name("debtor")).is_some());
        drop(held);
        accounts.sweep(6 * SECOND_NS);
        assert!(accounts.is_empty() && accounts.find(&name("debtor")).is_none());
    }

    #[test]
    fn a_full_table_forgets_who_owes_little_and_not_who_owes_much() {
        let accounts = Accounts::default();
        let rate = Rate::per_second(10, 1_000);
        let mutant = name("mutant");
        accounts.open(mutant.clone(), 1_000, 0).failures.take(rate, 0, 500);
        for number in 0..20_000_u32 {
            let one = accounts.open(name(&format!("stranger-{number}")), 1_000, 0);
            one.connects.take(rate, 0, 1);
        }
        assert!(accounts.len() <= 1_001, "{}", accounts.len());
        assert!(accounts.find(&mutant).is_some_and(|one| one.failures.wait_ms(rate, 0, 1).is_some()));
        assert!(accounts.forgiven() > 18_000);
    }

    #[test]
    fn accounts_with_connections_are_kept_beyond_the_limit() {
        let accounts = Accounts::default();
        let members: Vec<_> =
            (0..100).map(|n| Member::enter(accounts.open(name(&format!("{n}")), 10, 0), 1).unwrap()).collect();
        assert_eq!(accounts.len(), 100, "connections bound their number");
        assert!((0..100).all(|n| accounts.find(&name(&format!("{n}"))).is_some_and(|one| one.connections() == 1)));
        drop(members);
        accounts.sweep(0);
        assert!(accounts.is_empty());
    }
}
