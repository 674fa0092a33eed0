//! A node's threads, started and stopped together, and what another thread (Python's) may ask of them.
//! Invariant: after `stop`, and after a failed `start`, no thread and no descriptor of the node's sockets is left.

mod operate;

use crate::clock::Clock;
use crate::driver::{DriverOptions, ListenOptions, Preference, bind_shards, raise_descriptor_limit};
use crate::journal::{self, JournalFigures, Resumed};
use crate::node_shared::{Figures, Listed, NodeShared, ShardSlot};
use crate::publications::Publications;
use crate::queue::lock;
use crate::shard::{Numbered, Opened, Plan, live};
use crate::survey::{Found, Question, Surveys};
use crate::tls::Certificates;
use godwit_core::codes::Code;
use godwit_core::node::{self, Heard, Node, Totals};
use godwit_core::position::Position;
use godwit_core::report::{ConnectionId, ConnectionList, ConnectionRow, Order, Report, SubjectRow};
use godwit_core::rights::Rights;
use godwit_core::settings::Settings;
use godwit_core::shard::check_access;
use godwit_core::subject::Pattern;
use godwit_journal::disk::{Disk, RealDisk};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

const SHARDS_MAX: usize = 64;
/// How long a list of connections is waited for; a shard answers within a turn.
const PATIENCE: Duration = Duration::from_secs(2);
/// Turns of shards that one list of connections may take: a million connections are searched in a thousand.
const LIST_TURNS_MAX: usize = 256;
/// Sockets beyond a shard's share of the connections, so that it is the core that refuses, with a code.
const SPARE_SOCKETS: u32 = 1024;
/// Places that every shard has, if the node may have so many connections.
const TABLE_MIN: usize = 65_536;

/// A listener's name and where it is bound.
pub type Named = (String, SocketAddr);

/// What a started node says of itself.
#[derive(Clone, Debug)]
pub struct Started {
    /// Each listener's name and what it is bound to.
    pub addresses: Vec<Named>,
    /// `io_uring` or `readiness`.
    pub driver: String,
    /// Why it is not io_uring; empty when it is, or was not asked for.
    pub driver_reason: String,
    pub shards: usize,
    /// From the journal, where there is one.
    pub resumed: Option<Resumed>,
    /// The process's limit of open descriptors, raised as far as it goes.
    pub descriptors_max: u64,
}

/// The node's figures.
#[derive(Clone, Debug)]
pub struct Stats {
    pub totals: Totals,
    pub reports_dropped: u64,
    pub journal: Option<JournalFigures>,
    pub shards: Vec<Figures>,
}

pub struct Engine {
    /// Those of the start; what has been changed since stands in `current`.
    settings: Arc<Settings>,
    current: Mutex<Arc<Settings>>,
    node: Arc<Mutex<Node>>,
    pub(crate) node_shared: Arc<NodeShared>,
    clock: Clock,
    surveys: Surveys,
    asks: AtomicU64,
    /// Revocations are counted one after the other.
    revoking: Mutex<()>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Reads the settings (core's `Settings` as JSON).
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn new(settings: &str) -> Result<Self, String> {
        let mut settings = read_settings(settings)?;
        if usize::from(settings.shards) > SHARDS_MAX {
            return Err(format!("shards: {} are more than {SHARDS_MAX}", settings.shards));
        }
        if settings.shards == 0 {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            settings.shards = cores.min(SHARDS_MAX) as u8;
        }
        if settings.seed == 0 {
            settings.seed = RandomState::new().hash_one(settings.run);
        }
        let node_shared = NodeShared::new(usize::from(settings.shards)).map_err(|error| error.to_string())?;
        node_shared.certify(read_certificates(&settings)?);
        let settings = Arc::new(settings);
        Ok(Self {
            node: Arc::new(Mutex::new(Node::new(&settings))),
            current: Mutex::new(Arc::clone(&settings)),
            settings,
            node_shared: Arc::new(node_shared),
            clock: Clock::start(),
            surveys: Surveys::default(),
            asks: AtomicU64::new(0),
            revoking: Mutex::default(),
            threads: Mutex::default(),
        })
    }

    /// Listens and starts the shards.
    ///
    /// # Errors
    /// When an address is taken or not ours, a thread cannot be made, or the driver that the settings name does not work.
    pub fn start(&self) -> io::Result<Started> {
        self.start_on(Arc::new(RealDisk))
    }

    /// The same with the journal on another disk: so a test can put one there that is full, lies or dies.
    pub fn start_on(&self, disk: Arc<dyn Disk>) -> io::Result<Started> {
        let mut threads = lock(&self.threads);
        if !threads.is_empty() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the node has been started"));
        }
        let descriptors_max = raise_descriptor_limit()?;
        let resumed = journal::begin(&self.settings, disk, &self.node, &self.node_shared, || self.clock.now())?;
        let (addresses, listeners) = self.listen()?;
        let (opened, outcomes) = mpsc::channel::<Opened>();
        let result = listeners.into_iter().enumerate().try_for_each(|(index, listeners)| {
            let plan = self.plan(index as u8, listeners);
            let opened = opened.clone();
            let thread = std::thread::Builder::new().name(format!("godwit-{index}"));
            threads.push(thread.spawn(move || live(plan, &opened))?);
            Ok(())
        });
        drop(opened);
        // Every thread says once how it began.
        let outcomes: io::Result<Vec<_>> = result.and_then(|()| outcomes.iter().take(threads.len()).collect());
        match outcomes {
            Ok(outcomes) => {
                // The kernel may refuse one shard what it gave another: then the reason is told with the lesser driver.
                let outcome = outcomes.iter().find(|(_, reason)| !reason.is_empty()).or(outcomes.first());
                let (driver, driver_reason) = outcome.cloned().unwrap_or_default();
                let (driver, shards) = (driver.to_owned(), outcomes.len());
                Ok(Started { addresses, driver, driver_reason, shards, resumed, descriptors_max })
            }
            Err(error) => {
                self.join(&mut threads);
                Err(error)
            }
        }
    }

    /// Binds every listener once for each shard; returns the sockets by shard, each with its number in the settings.
    fn listen(&self) -> io::Result<(Vec<Named>, Vec<Vec<Numbered>>)> {
        let shards = usize::from(self.settings.shards);
        let mut by_shard: Vec<Vec<Numbered>> = (0..shards).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        for (number, listener) in self.settings.listeners.iter().enumerate() {
            let address = listener.address.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
            let sockets = match bind_shards(address, shards, &ListenOptions::default()) {
                Err(_) if listener.is_optional => continue,
                // The kind stays; which of the ports it was, only this place knows.
                sockets => sockets.map_err(|error| {
                    io::Error::new(error.kind(), format!("{} on {}: {error}", listener.name, listener.address))
                })?,
            };
            let bound = sockets.first().map(TcpListener::local_addr).transpose()?;
            addresses.push((listener.name.clone(), bound.unwrap_or(address)));
            by_shard.iter_mut().zip(sockets).for_each(|(of_shard, socket)| of_shard.push((number as u8, socket)));
        }
        Ok((addresses, by_shard))
    }

    fn plan(&self, index: u8, listeners: Vec<Numbered>) -> Plan {
        // The limit is the node's; a shard's table, which costs the kernel 8 bytes a place, has room for twice its share.
        let connections_max = self.settings.limits.connections_max;
        let share = connections_max.div_ceil(usize::from(self.settings.shards));
        let places = connections_max.min(TABLE_MIN.max(2 * share));
        let sockets_max = u32::try_from(places).unwrap_or(u32::MAX).saturating_add(SPARE_SOCKETS);
        Plan {
            index,
            settings: Arc::clone(&self.settings),
            node: Arc::clone(&self.node),
            node_shared: Arc::clone(&self.node_shared),
            clock: self.clock,
            options: DriverOptions {
                preference: Preference::named(&self.settings.driver).unwrap_or_default(),
                sockets_max,
                ..DriverOptions::default()
            },
            listeners,
        }
    }

    /// Ends the threads; their sockets close with them. Stopping twice is stopping once.
    pub fn stop(&self) {
        self.join(&mut lock(&self.threads));
    }

    fn join(&self, threads: &mut Vec<JoinHandle<()>>) {
        for shard in 0..self.node_shared.slots.len() {
            let _ = self.node_shared.order(shard, Order::Stop); // never refused
        }
        for thread in threads.drain(..) {
            // A shard's panic has been caught and reported in the thread itself.
            let _ = thread.join();
        }
        self.node_shared.journaling().iter().for_each(|journaling| journaling.close());
    }

    /// Readable once the reports that wait are to be taken.
    pub fn report_descriptor(&self) -> RawFd {
        self.node_shared.reports.descriptor()
    }

    /// Takes all reports that wait.
    pub fn reports(&self) -> Vec<Report> {
        self.node_shared.reports.take()
    }

    /// Carries out decisions; each goes to the shard of its connection, a drain to all.
    ///
    /// # Errors
    /// Shards did not take their orders in time: so many of these were not given.
    pub fn order(&self, orders: Vec<Order>) -> Result<(), usize> {
        let mut refused = 0;
        for order in orders {
            let connection = match &order {
                Order::Grant { connection, .. }
                | Order::Refuse { connection, .. }
                | Order::Answer { connection, .. }
                | Order::Close { connection, .. } => Some(*connection),
                Order::ListConnections { list, .. } => Some(list.after),
                Order::ShowConnection { connection, .. } => Some(*connection),
                _ => None,
            };
            let is_given = match connection {
                Some(connection) => self.node_shared.order(usize::from(connection.shard()), order),
                None => self.node_shared.order_all(&order),
            };
            refused += usize::from(!is_given);
        }
        if refused == 0 { Ok(()) } else { Err(refused) }
    }

    /// Begins a drain; the report `Drained` says that all shards are empty.
    pub fn drain(&self, grace_ms: u64, spread_ms: u64) {
        // A shard that takes no orders has nothing to drain.
        let _ = self.order(vec![Order::Drain { grace_ms, spread_ms }]);
    }

    /// Takes over other settings while the node runs, and waits until the shards go by them; those of its start (listeners, shards,
    /// driver, names) stay as they are.
    ///
    /// # Errors
    /// A sentence that says what does not fit, and nothing has changed.
    pub fn configure(&self, settings: &str) -> Result<(), String> {
        let mut settings = read_settings(settings)?;
        let start = &self.settings;
        (settings.node, settings.driver) = (start.node.clone(), start.driver.clone());
        (settings.run, settings.seed, settings.epoch, settings.shards) =
            (start.run, start.seed, start.epoch, start.shards);
        settings.listeners.clone_from(&start.listeners);
        settings.asks_on_connect = start.asks_on_connect;
        settings.journal = journal::take_over(start, settings.journal);
        settings.limits.connections_max = start.limits.connections_max;
        let certificates = read_certificates(&settings)?;
        self.node_shared.certify(certificates);
        let settings = Arc::new(settings);
        *lock(&self.current) = Arc::clone(&settings);
        self.node_shared.journaling().iter().for_each(|journaling| journaling.set_retention(&settings));
        lock(&self.node).configure(&settings);
        let mut from = Some(0);
        while let Some(slot) = from {
            from = lock(&self.node).resolve_again(slot);
        }
        let is_given = self.node_shared.order_all(&Order::Configure(settings));
        self.node_shared.settle();
        if is_given { Ok(()) } else { Err("a shard does not take its orders".to_owned()) }
    }

    /// At most `max` accepted messages for the audit, oldest first, and how many it has lost since start.
    pub fn take_heard(&self, max: usize, bytes_max: usize) -> (Vec<Heard>, u64) {
        lock(&self.node).take_heard(max, bytes_max)
    }

    /// An empty list of what the node itself is to publish.
    pub fn publications(&self) -> Publications {
        let limits = &lock(&self.current).limits;
        Publications::new(limits.message_bytes_max, limits.content_depth_max)
    }

    /// Publishes as the node itself, under one acquisition; for each its position, or why not.
    pub fn publish(&self, mut publications: Publications) -> Vec<Result<Position, Code>> {
        let mut outcomes = Vec::with_capacity(publications.batch.len());
        publications.batch.accepted_us = self.clock.us();
        let wakes = lock(&self.node).append(&mut publications.batch, &mut outcomes, self.clock.now());
        self.node_shared.journal();
        self.node_shared.wake(wakes);
        publications.answer(outcomes)
    }

    pub fn stats(&self) -> Stats {
        self.surveys.rest();
        let totals = lock(&self.node).totals();
        let shards = self.node_shared.slots.iter().map(ShardSlot::show).collect();
        Stats {
            totals,
            reports_dropped: self.node_shared.reports.dropped(),
            journal: self.node_shared.show_journal(),
            shards,
        }
    }

    /// Subjects after `after` in name order.
    pub fn subjects(&self, after: &str, limit: usize, pattern: Option<&Pattern>) -> Vec<SubjectRow> {
        let mut rows = Vec::new();
        let mut from = after.to_owned();
        // The node looks at a bounded number of names under one acquisition.
        while rows.len() < limit {
            let (mut found, next) = lock(&self.node).subjects(&from, limit - rows.len(), pattern);
            rows.append(&mut found);
            let Some(next) = next else { break };
            from = next;
        }
        rows
    }

    /// Subjects searched and sorted, as they were a moment ago: the node is not walked for it.
    pub fn survey(&self, question: &Question) -> Found {
        self.surveys.find(&self.node, question, || self.clock.now().wall_ms)
    }

    /// Connections after `list.after` in the order of their places, shard by shard, and where to go on when there may be more.
    /// A shard looks at a bounded number of places in a turn, this at a bounded number of turns.
    pub fn connections(&self, mut list: ConnectionList) -> (Vec<ConnectionRow>, Option<ConnectionId>) {
        let (mut rows, limit) = (Vec::new(), list.limit);
        for _ in 0..LIST_TURNS_MAX {
            let shard = usize::from(list.after.shard());
            list.limit = limit - rows.len() as u32;
            let (found, next) = self.ask(shard, |ask| Order::ListConnections { ask, list: list.clone() });
            rows.extend(found);
            let next = match next {
                None if shard + 1 >= self.node_shared.slots.len() => return (rows, None),
                None => ConnectionId::new(shard as u8 + 1, 0, 0),
                Some(next) => next,
            };
            if rows.len() >= limit as usize {
                return (rows, Some(next));
            }
            list.after = next;
        }
        (rows, Some(list.after))
    }

    /// One connection with the stand of each of its subscriptions.
    pub fn connection(&self, connection: ConnectionId) -> Option<ConnectionRow> {
        let shard = usize::from(connection.shard());
        self.ask(shard, |ask| Order::ShowConnection { ask, connection }).0.pop()
    }

    fn ask(&self, shard: usize, order: impl FnOnce(u64) -> Order) -> Listed {
        if shard >= self.node_shared.slots.len() {
            return (Vec::new(), None);
        }
        let ask = self.asks.fetch_add(1, Ordering::Relaxed);
        self.node_shared.list(shard, ask, order(ask), PATIENCE)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

fn read_settings(text: &str) -> Result<Settings, String> {
    let settings: Settings = serde_json::from_str(text).map_err(|error| error.to_string())?;
    node::check_patterns(&settings.patterns).map_err(|refusal| refusal.reason)?;
    Rights::compile(settings.anonymous.as_deref().unwrap_or_default()).map_err(|refusal| refusal.reason)?;
    check_access(&settings).map_err(|refusal| refusal.reason)?;
    Preference::named(&settings.driver)?;
    Ok(settings)
}

/// The certificates, where a listener shows any.
fn read_certificates(settings: &Settings) -> Result<Option<Certificates>, String> {
    let is_used = settings.listeners.iter().any(|listener| listener.is_tls);
    is_used.then(|| Certificates::read(&settings.tls)).transpose()
}
