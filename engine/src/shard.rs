//! One thread of the node: a driver and a core shard, and nothing between them but bytes, the time and orders.
//! It sleeps until a socket, a waker or the core's next deadline, and never polls. When it panics, its connections are given
//! up, the failure is counted and reported, and the other shards go on.

use crate::clock::{Clock, ThreadClock};
use crate::driver::{self, DriverOptions, Event, Sent};
use crate::links::Links;
use crate::node_shared::NodeShared;
use crate::priority::take_short_slices;
use crate::queue::lock;
use crate::socket_output::{Sockets, outcome};
use crate::tls::{self, Turned};
use godwit_core::node::Node;
use godwit_core::report::{Order, Report};
use godwit_core::settings::Settings;
use godwit_core::shard::Shard;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long news waits for company before Python is woken for it.
const NEWS_MS: u64 = 20;

/// How often keys that no record needed since are folded.
const FOLD_MS: u64 = 5_000;

/// A listening socket and its listener's number in the settings.
pub(crate) type Numbered = (u8, TcpListener);

/// How often the driver may give back what a rush of receives has touched.
const REST_MS: u64 = 500;

/// Plaintext of one buffer of records; what is more was one large burst.
const PLAIN_BYTES: usize = 65_536;

/// What a shard's thread is made from.
pub(crate) struct Plan {
    pub(crate) index: u8,
    pub(crate) settings: Arc<Settings>,
    pub(crate) node: Arc<Mutex<Node>>,
    pub(crate) node_shared: Arc<NodeShared>,
    pub(crate) clock: Clock,
    pub(crate) options: DriverOptions,
    /// Each with its number in the settings.
    pub(crate) listeners: Vec<Numbered>,
}

/// How a shard's driver was chosen.
pub(crate) type Opened = io::Result<(&'static str, String)>;

/// A shard's whole life, on its own thread. Says through `opened` whether it began.
pub(crate) fn live(plan: Plan, opened: &Sender<Opened>) {
    let (index, node, node_shared) = (plan.index, Arc::clone(&plan.node), Arc::clone(&plan.node_shared));
    take_short_slices();
    let turning = match Turning::begin(plan) {
        Ok((turning, name, reason)) => {
            let _ = opened.send(Ok((name, reason)));
            turning
        }
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    supervise(index, &node, &node_shared, || turning.run());
}

/// Runs a shard to its end. One that fails is told nothing more by the node, and its failure is reported.
fn supervise(index: u8, node: &Mutex<Node>, node_shared: &NodeShared, run: impl FnOnce() -> io::Result<()>) {
    let reason = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => format!("the driver failed: {error}"),
        Err(panic) => say(panic.as_ref()),
    };
    lock(node).abandon(index);
    if let Some(slot) = node_shared.slots.get(usize::from(index)) {
        lock(&slot.figures).has_failed = true;
        slot.orders.close();
    }
    let mut reports = vec![Report::ShardFailed { shard: index, reason }];
    reports.extend(node_shared.drained(index));
    node_shared.reports.push(&mut reports);
}

fn say(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

struct Turning {
    index: usize,
    /// The driver's listeners by their numbers in the settings.
    numbers: Vec<u8>,
    settings: Arc<Settings>,
    is_journaling: bool,
    sockets: Sockets,
    shard: Shard,
    /// What the sockets with links have said, in turn.
    plain: Vec<u8>,
    node_shared: Arc<NodeShared>,
    clock: Clock,
    orders: Vec<Order>,
    sent: Vec<Sent>,
    reports: Vec<Report>,
    /// When Python is to be woken for news (monotonic ms).
    ring_ms: Option<u64>,
    turns: u64,
    /// When keys that rest are folded next (monotonic ms), and when the driver gives back what a rush has touched.
    fold_ms: u64,
    rest_ms: u64,
}

impl Turning {
    fn begin(plan: Plan) -> io::Result<(Self, &'static str, String)> {
        let mut opened = driver::open(&plan.options)?;
        let (mut listeners, mut numbers) = (Vec::new(), Vec::new());
        for (number, listener) in plan.listeners {
            listeners.push(opened.driver.listen(listener)?);
            numbers.push(number);
        }
        let index = usize::from(plan.index);
        if let Some(slot) = plan.node_shared.slots.get(index) {
            // Each slot is set once: shards are numbered.
            let _ = slot.waker.set(opened.driver.waker());
            if let Some(clock) = ThreadClock::of_this_thread() {
                let _ = slot.cpu.set(clock);
            }
        }
        let turning = Self {
            index,
            numbers,
            is_journaling: plan.settings.journal.is_some(),
            settings: Arc::clone(&plan.settings),
            sockets: Sockets {
                driver: opened.driver,
                listeners,
                node_shared: Arc::clone(&plan.node_shared),
                links: Links::default(),
                clock: plan.clock,
            },
            plain: Vec::new(),
            shard: Shard::new(plan.index, plan.settings, plan.node),
            node_shared: plan.node_shared,
            clock: plan.clock,
            orders: Vec::new(),
            sent: Vec::new(),
            reports: Vec::new(),
            ring_ms: None,
            turns: 0,
            fold_ms: 0,
            rest_ms: 0,
        };
        Ok((turning, opened.name, opened.reason))
    }

    /// Turns until the order to stop.
    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::new();
        let mut wait = Some(Duration::ZERO);
        loop {
            self.sockets.driver.turn(&mut events, wait)?;
            let now = self.clock.now();
            self.shard.begin(now);
            if self.is_journaling {
                self.shard.set_clock_us(self.clock.us());
            }
            for event in &events {
                if self.take(*event) {
                    self.shard.end_ledger();
                    self.write_down();
                    return Ok(());
                }
            }
            self.settle_links()?;
            self.shard.turn(&mut self.sockets);
            self.settle()?;
            self.node_shared.wake(self.shard.take_wakes());
            self.tell(now.mono_ms);
            self.write_down();
            let is_waiting = self.sockets.links.is_waiting();
            let deadline_ms = self.shard.deadline_ms().min(self.ring_ms.unwrap_or(u64::MAX));
            let rest_ms = if is_waiting { 0 } else { deadline_ms.saturating_sub(now.mono_ms) };
            wait = (is_waiting || deadline_ms != u64::MAX).then(|| Duration::from_millis(rest_ms));
        }
    }

    /// Hands one event to the core; true when the node stops.
    fn take(&mut self, event: Event) -> bool {
        let (shard, sockets) = (&mut self.shard, &mut self.sockets);
        match event {
            Event::Accepted { listener, socket, peer } => {
                let number = self.numbers.get(listener as usize).copied().unwrap_or(0);
                if self.link(number, socket, peer) {
                    self.shard.accept(socket, peer, number, &mut self.sockets);
                } else {
                    self.sockets.driver.close(socket);
                }
            }
            Event::Data { socket, buffer } => {
                let mut lent = sockets.driver.lend(buffer);
                if sockets.links.has(socket) {
                    self.receive_linked(socket, &mut lent);
                } else {
                    shard.receive(socket, &mut lent, sockets);
                }
                self.sockets.driver.take_back(lent);
            }
            Event::Gone { socket, .. } => shard.gone(socket, sockets),
            Event::Writable { socket } => {
                if sockets.links.writable(socket) {
                    shard.writable(socket);
                }
            }
            Event::Wake => return self.take_orders(),
            // A node connects to nobody yet.
            Event::Connected { socket, .. } => sockets.driver.close(socket),
        }
        false
    }

    /// Opens the link that a listener asks for; false when the connection cannot be served.
    fn link(&mut self, listener: u8, socket: u32, peer: SocketAddr) -> bool {
        let Some(asked) = self.settings.listeners.get(usize::from(listener)) else { return true };
        let awaits_header = asked.proxy_protocol && self.shard.trusts(peer);
        if !asked.is_tls && !awaits_header {
            return true;
        }
        let certificates = if asked.is_tls { self.node_shared.certificates() } else { None };
        (!asked.is_tls || certificates.is_some())
            && self.sockets.links.open(socket, certificates.as_ref(), awaits_header)
    }

    /// Hands on what a linked socket's bytes say.
    fn receive_linked(&mut self, socket: u32, bytes: &mut [u8]) {
        let mut plain = std::mem::take(&mut self.plain);
        let received = self.sockets.links.receive(socket, bytes, &mut plain);
        if let Some(address) = received.address {
            self.shard.set_peer(socket, address);
        }
        if let Some(certificate) = received.certificate {
            self.shard.set_certificate(socket, certificate);
        }
        if !plain.is_empty() {
            self.shard.receive(socket, &mut plain, &mut self.sockets);
        }
        plain.clear();
        plain.shrink_to(PLAIN_BYTES);
        self.plain = plain;
        if let Some(fault) = received.fault {
            self.shard.refuse_handshake(socket, fault);
        }
        if received.turned != Turned::Open {
            self.shard.gone(socket, &mut self.sockets);
        }
    }

    /// Sends what links have to say themselves, and tells the core which sockets take plaintext again.
    fn settle_links(&mut self) -> io::Result<()> {
        let Sockets { driver, links, .. } = &mut self.sockets;
        if links.send_own(driver.as_mut()) || links.is_pending() {
            driver.flush(&mut self.sent)?;
            for sent in self.sent.drain(..) {
                // Nothing of the core's is in flight between turns.
                let _ = links.sent(driver.as_mut(), sent);
            }
        }
        for socket in self.sockets.links.take_writable() {
            self.shard.writable(socket);
        }
        Ok(())
    }

    fn take_orders(&mut self) -> bool {
        let mut orders = std::mem::take(&mut self.orders);
        if let Some(slot) = self.node_shared.slots.get(self.index) {
            slot.orders.take(&mut orders);
        }
        let (mut is_stopping, count) = (false, orders.len());
        for order in orders.drain(..) {
            is_stopping |= matches!(order, Order::Stop);
            self.shard.order(order, &mut self.sockets);
        }
        if let Some(slot) = self.node_shared.slots.get(self.index) {
            slot.orders.finish(count);
        }
        self.orders = orders;
        is_stopping
    }

    /// Answers every pending send, and what the core sends upon that, until nothing is pending.
    fn settle(&mut self) -> io::Result<()> {
        while self.shard.is_pending() || self.sockets.links.is_pending() {
            self.sockets.driver.flush(&mut self.sent)?;
            for sent in self.sent.drain(..) {
                let answer = self.sockets.links.sent(self.sockets.driver.as_mut(), sent);
                let answer = answer.unwrap_or_else(|sent| Some((sent.token as u32, sent.outcome)));
                if let Some((token, sending)) = answer {
                    self.shard.sent(token, outcome(sending), &mut self.sockets);
                }
            }
            self.shard.more(&mut self.sockets);
        }
        Ok(())
    }

    /// Hands what the turn noted of connections and deliveries to the journal.
    fn write_down(&mut self) {
        if self.is_journaling
            && let Some(journaling) = self.node_shared.journaling()
        {
            self.shard.take_rows(|rows| journaling.push(rows));
            self.shard.take_asks(|ask| journaling.read_back(ask));
        }
    }

    /// Shows the turn's reports and figures.
    fn tell(&mut self, now_ms: u64) {
        self.turns += 1;
        if now_ms >= self.rest_ms {
            self.rest_ms = now_ms + REST_MS;
            self.sockets.driver.rest();
        }
        if now_ms >= self.fold_ms {
            self.fold_ms = now_ms + FOLD_MS;
            tls::rest();
        }
        self.shard.take_reports(&mut self.reports);
        if self.node_shared.report(&mut self.reports) && self.ring_ms.is_none() {
            self.ring_ms = Some(now_ms + NEWS_MS);
        }
        if self.ring_ms.is_some_and(|ring_ms| now_ms >= ring_ms) {
            self.ring_ms = None;
            self.node_shared.reports.ring();
        }
        if let Some(slot) = self.node_shared.slots.get(self.index) {
            let mut figures = lock(&slot.figures);
            figures.shard.clone_from(self.shard.counters());
            figures.driver = self.sockets.driver.counters();
            figures.turns = self.turns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{io, lock, supervise};
    use crate::node_shared::NodeShared;
    use godwit_core::node::Node;
    use godwit_core::report::Report;
    use godwit_core::settings::Settings;
    use std::sync::Mutex;

    #[test]
    fn a_shard_that_panics_is_reported_and_the_others_go_on() {
        let node = Mutex::new(Node::new(&Settings::default()));
        let node_shared = NodeShared::new(2).unwrap();
        supervise(0, &node, &node_shared, || {
            let _held = lock(&node);
            panic!("an assertion did not hold")
        });
        supervise(1, &node, &node_shared, || Err(io::Error::other("no ring")));
        let reports = node_shared.reports.take();
        let reasons: Vec<_> = reports
            .iter()
            .filter_map(|report| match report {
                Report::ShardFailed { shard, reason } => Some((*shard, reason.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, [(0, "an assertion did not hold"), (1, "the driver failed: no ring")]);
        assert!(matches!(reports.last(), Some(Report::Drained { .. })), "nobody waits for a shard that failed");
        assert!(node_shared.slots.iter().all(|slot| lock(&slot.figures).has_failed));
        assert_eq!(lock(&node).totals().accepted, 0, "the node is of use after a panic under its lock");
    }
}
