//! One thread's part of the node, as a state machine: connections, streams, cursors, timers. Given bytes and the time it
//! decides what is sent; its owner (the engine) moves the bytes. It shares the `Node` with the other shards and locks it for
//! short batches only. Invariant: after a turn every stream holds all its messages up to `arrived`, and every cursor is at
//! the head, waits for its socket, or waits in `behind`.
mod absorb;
mod access;
mod catch_up;
mod congestion;
mod connection;
mod counts;
mod encode;
mod gap;
mod history;
mod http;
mod inbound;
mod join;
mod ledger;
mod list;
mod mqtt;
mod orders;
mod outbound;
mod private;
mod session;
mod streams;
mod subscribe;
mod sweep;
mod watch;
mod windows;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::account::{Accounts, Bounds};
use crate::codes::Code;
use crate::command::Id;
use crate::cursor::Cursor;
use crate::message::Batch;
use crate::node::{ConnectionCount, Entry, Mail, Node, Outcome};
use crate::position::Now;
use crate::report::{Counters, Report};
use crate::settings::Settings;
use crate::slab::Slab;
use crate::websocket::Inflater;

pub use access::check as check_access;
use connection::{Access, Connection};
use outbound::{Flight, Frames};
use streams::Streams;
use watch::Watch;

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// So many bytes were taken now; fewer than given means that the socket is full.
    Done(usize),
    /// The answer comes by `Shard::sent` in this turn; until then the bytes stay where they are.
    Pending,
    /// The socket takes nothing now.
    Blocked,
    /// The socket is dead; its `gone` follows.
    Gone,
}

/// The way out: what a shard asks of its sockets. `bytes` passed to `send` neither move nor change until the send is answered.
pub trait SocketOutput {
    fn send(&mut self, socket: u32, bytes: &[u8], token: u32) -> Sending;
    /// Says `writable` once when the socket takes bytes again.
    fn want_write(&mut self, socket: u32);
    fn pause_read(&mut self, socket: u32);
    fn resume_read(&mut self, socket: u32);
    /// Closes for good; the shard has forgotten the socket. Its number is free once the owner says so by accepting on it anew.
    fn close(&mut self, socket: u32);
    /// Ends the sending half: the peer reads the end behind everything sent. The socket still has to be closed.
    fn finish(&mut self, socket: u32);
    fn stop_accepting(&mut self);
    /// Messages were accepted that are to be written down.
    fn journal(&mut self) {}
    /// The time now (monotonic µs, modulo 2³²): asked where there is a journal, once for some slices.
    fn clock_us(&mut self) -> u32 {
        0
    }
    /// Wakes the shards of a mask: they have something to read in the feed. Called before this shard's own sending.
    fn wake(&mut self, shards: u64);
}

/// See the module.
#[derive(Debug)]
pub struct Shard {
    index: u8,
    settings: Arc<Settings>,
    node: Arc<Mutex<Node>>,
    connection_count: ConnectionCount,
    anonymous: Option<Arc<Access>>,
    doors: access::Doors,
    /// What connections, addresses, identities and tenants may use, and what they do use.
    bounds: Bounds,
    accounts: Arc<Accounts>,
    now: Now,
    /// The time that resume tokens carry: the wall clock's, but it never runs backwards.
    resume_token_ms: u64,
    connections: Slab<Connection>,
    cursors: Slab<Cursor>,
    streams: Streams,
    watches: Vec<Watch>,
    /// Connections whose watches are owed the state, and that have taken all that was private.
    stating: Vec<u32>,
    serial: u32,
    /// The feed has been absorbed up to here.
    arrived: u64,
    /// Resume tokens name no later arrival.
    token_bound: u64,
    /// The same, as of the last time that what had been noted for one turn was sent.
    delivered: u64,
    /// HTTP requests that wait for a message: until when (monotonic ms), and whose.
    polls: BTreeSet<(u64, u32)>,
    /// The feed held more than a turn takes.
    has_more: bool,
    batch: Batch,
    /// Whose publishes the batch holds, in the same order.
    batch_ids: Vec<Id>,
    outcomes: Vec<Outcome>,
    entries: Vec<Entry>,
    singles: Vec<absorb::Single>,
    dirty: Vec<u32>,
    /// Connections with something to send in this turn beside a dirty stream.
    ready: Vec<u32>,
    behind: VecDeque<u32>,
    flights: Vec<Flight>,
    buffers: Vec<Frames>,
    press: encode::Press,
    inflater: Inflater,
    /// The last message that was inflated.
    inflated: Vec<u8>,
    closing: Vec<u32>,
    /// Connections to end: their frames' rests are more than the shard may hold, or a send failed.
    doomed: Vec<(u32, Code)>,
    /// Publishers that are not read while the node is congested.
    congesting: Vec<u32>,
    reports: Vec<Report>,
    wakes: u64,
    next_sweep_ms: u64,
    /// Connections whose tokens end soon, by when (wall clock).
    expiring: BTreeSet<(u64, u32)>,
    sweep_from: u32,
    /// Logs in the node, as of the last sweep.
    node_size: u32,
    drain: Option<orders::Drain>,
    clients: HashMap<Box<str>, Arc<str>>,
    /// What other connections' clients ask of ours.
    mail: Vec<Mail>,
    /// Streams of MQTT groups by the group's number, and those that may have something to deal.
    shared: HashMap<u32, u32>,
    dealing: mqtt::Dealing,
    /// MQTT connections whose time is short: each sweep looks at them.
    hasty: Vec<u32>,
    counters: Counters,
    /// What is read back from the journal.
    history: history::History,
    written: ledger::Written,
    /// In this second (monotonic): how many refused commands the server was told of.
    refusals_told: (u32, u32),
}

impl Shard {
    pub fn new(index: u8, settings: Arc<Settings>, node: Arc<Mutex<Node>>) -> Self {
        let doors = access::Doors::new(&settings);
        let accounts = lock(&node).accounts();
        let connection_count = lock(&node).connection_count();
        Self {
            index,
            written: ledger::Written::new(&settings),
            bounds: Bounds::of(&settings.limits),
            press: encode::Press::new(&settings),
            anonymous: Access::anonymous(&settings),
            settings,
            node,
            connection_count,
            doors,
            accounts,
            now: Now::default(),
            resume_token_ms: 0,
            connections: Slab::default(),
            cursors: Slab::default(),
            streams: Streams::default(),
            watches: Vec::new(),
            stating: Vec::new(),
            serial: 0,
            arrived: 0,
            token_bound: u64::MAX,
            delivered: 0,
            polls: BTreeSet::new(),
            has_more: false,
            batch: Batch::default(),
            batch_ids: Vec::new(),
            outcomes: Vec::new(),
            entries: Vec::new(),
            singles: Vec::new(),
            dirty: Vec::new(),
            ready: Vec::new(),
            behind: VecDeque::new(),
            flights: Vec::new(),
            buffers: Vec::new(),
            inflater: Inflater::default(),
            inflated: Vec::new(),
            closing: Vec::new(),
            doomed: Vec::new(),
            congesting: Vec::new(),
            reports: Vec::new(),
            wakes: 0,
            next_sweep_ms: 0,
            expiring: BTreeSet::new(),
            sweep_from: 0,
            node_size: 0,
            drain: None,
            clients: HashMap::new(),
            mail: Vec::new(),
            shared: HashMap::new(),
            dealing: mqtt::Dealing::default(),
            hasty: Vec::new(),
            counters: Counters::default(),
            history: history::History::default(),
            refusals_told: (0, 0),
        }
    }

    /// Tells the shard the time; to be called before anything else in a turn.
    pub fn begin(&mut self, now: Now) {
        self.written.turns = self.written.turns.wrapping_add(1);
        if let Some(ledger) = &mut self.written.ledger {
            ledger.begin();
        }
        self.now = now;
        self.resume_token_ms = self.resume_token_ms.max(now.wall_ms);
    }

    /// The same time in µs, modulo 2³²: what is accepted in this turn counts from it.
    pub fn set_clock_us(&mut self, us: u32) {
        self.batch.accepted_us = us;
    }

    /// Ends a turn: publishes are numbered, the feed is absorbed, and what can be sent is handed to `out`. Afterwards every
    /// pending send is answered by `sent` and `more` is called, until nothing is pending.
    pub fn turn<O: SocketOutput>(&mut self, out: &mut O) {
        self.commit();
        if std::mem::take(&mut self.written.has_rows) {
            out.journal();
        }
        self.give_acks(out);
        self.end_disk_waits();
        out.wake(self.take_wakes());
        self.absorb_feed();
        self.take_mail(out);
        self.deal();
        self.close_windows();
        self.end_expired();
        if self.now.mono_ms >= self.next_sweep_ms {
            self.sweep(out);
        }
        self.tell_states();
        self.look_at_polls();
        // Nothing of a window is in flight yet: from here on none is trimmed.
        self.take_pages(out);
        self.catch_up_some(out);
        self.deliver(out);
        self.relieve(out);
        self.more(out);
        self.counters.catching_up = self.behind.len() as u64;
        self.counters.window_bytes = self.streams.window_bytes as u64;
    }

    /// When the shard wants its next turn at the latest (monotonic ms), if nothing happens before.
    pub fn deadline_ms(&self) -> u64 {
        if self.has_more
            || !self.behind.is_empty()
            || !self.ready.is_empty()
            || !self.stating.is_empty()
            || !self.dealing.streams.is_empty()
            || self.has_pages()
        {
            return self.now.mono_ms;
        }
        let relief_ms = if self.congesting.is_empty() { u64::MAX } else { self.now.mono_ms + 1 };
        let poll_ms = self.polls.first().map_or(u64::MAX, |&(deadline_ms, _)| deadline_ms);
        let expiry_ms = self
            .expiring
            .first()
            .map_or(u64::MAX, |&(at_ms, _)| self.now.mono_ms + at_ms.saturating_sub(self.now.wall_ms));
        self.streams.deadline_ms().min(expiry_ms).min(self.next_sweep_ms).min(relief_ms).min(poll_ms)
    }

    /// Shards that got something to do, as a mask; forgotten by the call.
    pub fn take_wakes(&mut self) -> u64 {
        std::mem::take(&mut self.wakes) & !(1 << self.index)
    }

    /// Reports since the last call, appended to `into`.
    pub fn take_reports(&mut self, into: &mut Vec<Report>) {
        into.append(&mut self.reports);
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Numbers the turn's publishes under one acquisition and answers them.
    fn commit(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let node = Arc::clone(&self.node);
        let mut held = lock(&node);
        self.wakes |= held.append(&mut self.batch, &mut outcomes, self.now) | held.take_wakes();
        self.await_disk(&outcomes, &mut held);
        let is_congested = held.is_congested();
        self.written.has_rows |= held.has_journal();
        drop(held);
        if is_congested {
            self.note_congestion();
        }
        self.answer_publishes(&mut outcomes);
        outcomes.clear();
        self.outcomes = outcomes;
        self.batch.clear();
    }
}

/// The node, whatever happened to the last who held it: its methods leave it whole at every step.
pub(crate) fn lock(node: &Mutex<Node>) -> MutexGuard<'_, Node> {
    node.lock().unwrap_or_else(PoisonError::into_inner)
}
