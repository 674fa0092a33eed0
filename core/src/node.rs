//! Everything that is one per node: the feed, the logs and their names, idempotency keys, who listens, and interest.
//! One `Node` stands behind one lock that all shards share; every method is a short section. It sends nothing and encodes
//! nothing: that is the shards'. What is accepted is never unsaid: a position is given once.
mod ages;
mod append;
mod directory;
mod feed;
mod forgotten;
mod index;
mod interest;
mod journal;
mod keys;
mod listen;
mod listeners;
mod log;
mod mqtt;
mod names;
mod pattern_scan;
mod policy;
mod read;
mod replies;
mod report;
mod room;
mod snapshot;
mod sweep;

use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::account::{Accounts, Bucket};
use crate::limits::Limits;
use crate::settings::Settings;

pub use append::Outcome;
pub use feed::{Entry, Heard, Lag, Lost, SHARDS_MAX};
pub(crate) use journal::NotesProgress;
pub use journal::{PastRun, Progress, Restored};
pub use mqtt::{
    Before, Came, Claim, Dealt, Ended, InFlight, Inherited, Kept, KeptSubscription, Mail, Missed, NOBODY, Overdue,
    Portion, Received, Sender, Will,
};
pub use names::Owner;
pub(crate) use names::Shares;
pub use pattern_scan::{Found, MISSING_MAX, PatternScan, ScanBudget, ScanRange};
pub use policy::{Policy, check as check_patterns};
pub use read::{Head, MissingRange, PositionState, Read};
pub use report::Totals;
pub use room::{ConnectionCount, Purged};
pub use snapshot::Snapshot;

/// One node's shared state.
#[derive(Debug)]
pub struct Node {
    run: u64,
    /// Numbers the subjects that begin now.
    epoch: u64,
    /// When the epoch last rose (monotonic); it rises at most once a second.
    epoch_ms: Option<u64>,
    limits: Limits,
    policies: policy::Policies,
    ages: ages::Ages,
    names: names::Names,
    index: index::Index,
    /// Runs before this one, where there is a journal.
    runs: journal::Runs,
    feed: feed::Feed,
    /// What an audit hears; none where there is none.
    tap: Option<feed::Tap>,
    /// What waits to be written down; none where there is no journal.
    journal: Option<Box<journal::Journal>>,
    unseen: journal::Unseen,
    /// What the journal's file of snapshots is to be told.
    states: journal::States,
    /// While rows of the journal come back.
    restoring: Option<Box<journal::Restoring>>,
    directory: directory::Directory,
    interest: interest::Interest,
    keys: keys::Keys,
    publishers: keys::Publishers,
    /// Names that somebody awaits replies on but that have no log yet, as hashes; a ring.
    replies: replies::Replies,
    forgotten: forgotten::Forgotten,
    /// What was accepted up to here was not read at the start: it may be in the journal, and is in no log.
    unread: u64,
    accounts: Arc<Accounts>,
    /// Rates of subjects without a log, by their names' hashes: some share one. Empty until one is needed.
    strangers: Vec<Bucket>,
    clients: mqtt::Clients,
    owed: mqtt::Owed,
    holders: mqtt::Holders,
    /// The last arrival of what was let go though somebody was owed it.
    skipped: u64,
    groups: mqtt::Groups,
    due_wills: Vec<Will>,
    wills: Arc<mqtt::WillTable>,
    /// Whose wills of an earlier run are withheld.
    revoked: crate::holder::RevokedNames,
    /// What revocations have ended.
    ended: mqtt::Ended,
    /// Who subscribes next.
    asking: names::Owner,
    /// Who opens a subject or pattern reads what there is and leaves: nobody hears of interest.
    is_reading: bool,
    /// When what is accepted now was (monotonic µs, modulo 2³²).
    accepted_us: u32,
    /// Highest wall time seen; resume tokens carry it, and it never runs back.
    time_ms: u64,
    random: u64,
    /// The last log that was looked at for something large.
    looked: u32,
    /// How many were looked at so far.
    looks: u64,
    /// Logs that were found to have something that nobody is owed.
    unowed: BinaryHeap<(usize, u32)>,
    /// So many logs may be looked at for that at once.
    look_credit: u32,
    counts: report::Counts,
    sweep: sweep::Progress,
    /// Shards that gave up and whose patterns were closed.
    closed: u64,
    /// Shards that were told of interest and not yet woken.
    wakes: u64,
    connection_count: ConnectionCount,
}

impl Node {
    pub fn new(settings: &Settings) -> Self {
        let limits = settings.limits.clone();
        let secret = (settings.seed, settings.run.rotate_left(32) ^ settings.seed.rotate_left(17));
        let mut ages = ages::Ages::default();
        Self {
            run: settings.run,
            epoch: settings.epoch.max(1),
            epoch_ms: None,
            policies: policy::Policies::new(settings, &mut ages),
            ages,
            names: names::Names::new(secret),
            index: index::Index::default(),
            runs: journal::Runs::default(),
            tap: feed::Tap::new(&settings.tap),
            journal: settings.journal.as_ref().map(|settings| Box::new(journal::Journal::new(settings))),
            unseen: journal::Unseen::default(),
            states: journal::States::new(settings.journal.is_some()),
            restoring: None,
            feed: feed::Feed::new(limits.feed_entries_max, limits.feed_bytes_max),
            directory: directory::Directory::new(secret),
            interest: interest::Interest::new(secret, limits.interest_debounce_ms),
            keys: keys::Keys::new(secret, limits.idempotency_keys_max, limits.idempotency_keys_age_ms_max),
            publishers: keys::Publishers::default(),
            replies: replies::Replies::default(),
            forgotten: forgotten::Forgotten::default(),
            unread: 0,
            accounts: Arc::default(),
            strangers: Vec::new(),
            clients: mqtt::Clients::default(),
            owed: mqtt::Owed::default(),
            holders: mqtt::Holders::default(),
            skipped: 0,
            groups: mqtt::Groups::default(),
            due_wills: Vec::new(),
            wills: Arc::default(),
            revoked: crate::holder::RevokedNames::new(&settings.revoked),
            ended: mqtt::Ended::default(),
            asking: names::Owner::default(),
            is_reading: false,
            accepted_us: 0,
            time_ms: 0,
            random: secret.0 ^ secret.1 | 1,
            looked: 0,
            looks: 0,
            unowed: BinaryHeap::new(),
            look_credit: room::LOOK_ALL_MAX,
            counts: report::Counts::default(),
            sweep: sweep::Progress::default(),
            closed: 0,
            wakes: 0,
            connection_count: ConnectionCount::default(),
            limits,
        }
    }

    /// What addresses, identities and tenants use.
    pub fn accounts(&self) -> Arc<Accounts> {
        Arc::clone(&self.accounts)
    }

    pub fn run(&self) -> u64 {
        self.run
    }

    /// The connections of all shards.
    pub fn connection_count(&self) -> ConnectionCount {
        self.connection_count.clone()
    }

    /// The last accepted arrival; 0 none.
    pub fn arrival(&self) -> u64 {
        self.index.head()
    }

    /// Moves at most `max` entries that concern `shard` to `out`, in order of arrival. True when more remain.
    pub fn drain(&mut self, shard: u8, out: &mut Vec<Entry>, max: usize) -> bool {
        self.feed.drain(shard, out, max)
    }

    /// The shard has been told everything that concerns it up to this arrival.
    pub fn drained_to(&self, shard: u8) -> u64 {
        self.feed.drained_to(shard, self.index.head())
    }

    pub fn lag(&self) -> Lag {
        self.feed.lag()
    }

    /// At most `max` messages (of `bytes_max` bytes, but at least one) for the audit, oldest first, and how many it has lost
    /// since start.
    pub fn take_heard(&mut self, max: usize, bytes_max: usize) -> (Vec<Heard>, u64) {
        self.tap.as_mut().map(|tap| tap.take(max, bytes_max)).unwrap_or_default()
    }

    /// Whether publishers should not be read for now: a shard is half a feed behind.
    pub fn is_congested(&self) -> bool {
        self.feed.is_congested()
            || self.unseen.holds_publishers()
            || self.tap.as_ref().is_some_and(feed::Tap::holds_publishers)
            || self.journal.as_ref().is_some_and(|journal| journal.holds_publishers())
    }

    /// Some: the shard fell a whole feed behind since it was last asked, and was not told some entries. It drops its windows,
    /// catches up from the logs, which had none of the standard messages named here, and asks for the state of interest
    /// again. Told once; entries flow again.
    pub fn window_misses(&mut self, shard: u8) -> Option<Vec<Lost>> {
        self.feed.take_fall(shard)
    }

    /// Whether an MQTT session is over that is short of a message of a log.
    pub fn ends_session(&self, log: crate::message::LogId) -> bool {
        self.names.get(log).is_some_and(|log| self.policies.get(log.policy).ends_session)
    }

    /// How a subject's messages are kept and sent.
    pub fn policy(&mut self, subject: &str) -> &Policy {
        let number = match self.names.find(subject).and_then(|id| self.names.get(id)) {
            Some(log) => log.policy,
            None => self.policies.resolve(subject, false, &mut self.ages),
        };
        self.policies.get(number)
    }
}
