//! One thread of a load: a driver and its share of the connections. It does what the step in force asks, hears what comes,
//! publishes what is due, and stores its counts once a turn. Nothing is allocated for a message.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use godwit_engine::driver::{Driver, Event, Sending, Sent};

use crate::client::{Client, Ear, Stage};
use crate::dialect::{Dialect, Outgoing, Role};
use crate::histogram::Histogram;
use crate::pace::{Due, Pace};
use crate::plan::{Plan, Step};
use crate::source::source_address;
use crate::tally::{Sums, Tally};
use crate::tls::Believed;

/// A publisher with more than this unsent waits for its socket.
const UNSENT_MAX: usize = 256 * 1024;
const WAIT_MAX: Duration = Duration::from_millis(5);

pub(crate) struct Worker {
    pub(crate) index: u32,
    pub(crate) plan: Arc<Plan>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) dialect: Arc<dyn Dialect>,
    pub(crate) driver: Box<dyn Driver>,
    /// A driver that waits in whole milliseconds: do not wait for what is due sooner.
    pub(crate) waits_in_ms: bool,
    pub(crate) start: Instant,
    pub(crate) clients: Vec<Client>,
    /// The number each client expects next, apart from the clients so that the slowest is found quickly.
    pub(crate) numbers: Vec<u32>,
    pub(crate) by_socket: Vec<u32>,
    /// Clients with bytes to send.
    pub(crate) dirty: Vec<u32>,
    pub(crate) counts: Sums,
    pub(crate) latency: Histogram,
    pub(crate) pace: Option<Pace>,
    /// Clients that the step in force has not yet come to, and how many are being opened.
    pub(crate) next: usize,
    pub(crate) opening: u32,
    /// How often subscribers have connected, to take other source addresses each time.
    pub(crate) round: u8,
    pub(crate) step: Option<usize>,
    pub(crate) tls: Option<Believed>,
    /// What the last records said.
    pub(crate) plain: Vec<u8>,
}

impl Worker {
    /// The subscribers `index`, `index + threads`, … and, on the first thread, all publishers.
    pub(crate) fn new(
        index: u32,
        plan: Arc<Plan>,
        tally: Arc<Tally>,
        dialect: Arc<dyn Dialect>,
        opened: godwit_engine::driver::Opened,
        start: Instant,
    ) -> Self {
        let subscribers = (index..plan.subscribers).step_by(plan.threads as usize);
        let publishers = 0..if index == 0 { plan.publishers } else { 0 };
        let clients: Vec<Client> = publishers
            .map(|n| Role::Publisher(n % plan.subjects))
            .chain(subscribers.map(|n| Role::Subscriber(n % plan.subjects)))
            .map(Client::new)
            .collect();
        Self {
            index,
            waits_in_ms: opened.name != "io_uring",
            driver: opened.driver,
            numbers: vec![0; clients.len()],
            clients,
            plan,
            tally,
            dialect,
            start,
            by_socket: Vec::new(),
            dirty: Vec::new(),
            counts: Sums::default(),
            latency: Histogram::default(),
            pace: None,
            next: 0,
            opening: 0,
            round: 0,
            step: None,
            tls: None,
            plain: Vec::new(),
        }
    }

    /// Runs until the load is stopped.
    pub(crate) fn run(&mut self) {
        if let Err(fault) = self.run_turns() {
            self.tally.fail(fault);
        }
    }

    fn run_turns(&mut self) -> Result<(), String> {
        let broken = |error: std::io::Error| format!("the generator's driver failed: {error}");
        let (mut events, mut sent) = (Vec::new(), Vec::new());
        let mut wait = Duration::ZERO;
        while !self.tally.is_stopped() {
            self.driver.turn(&mut events, Some(wait)).map_err(broken)?;
            let now_ns = self.start.elapsed().as_nanos() as u64;
            for event in &events {
                self.handle(*event, now_ns)?;
            }
            self.look_at_step(now_ns);
            wait = self.act(now_ns)?;
            self.send(&mut sent).map_err(broken)?;
            self.store();
        }
        Ok(())
    }

    fn look_at_step(&mut self, now_ns: u64) {
        let step = self.tally.step.load(Ordering::Acquire);
        if self.step == Some(step) {
            return;
        }
        if self.step.is_some() {
            if let Ok(mut latency) = self.tally.latency.lock() {
                latency.add(&self.latency);
            }
            self.latency.clear();
            self.tally.handed_in.fetch_add(1, Ordering::AcqRel);
        }
        self.step = Some(step);
        self.next = 0;
        let plan = Arc::clone(&self.plan);
        let Some(step) = plan.steps.get(step) else { return };
        self.pace = if self.index == 0 { Pace::of_step(step, now_ns, &self.counts) } else { None };
        if matches!(step, Step::Connect { .. } | Step::Return { .. }) {
            self.round = self.round.wrapping_add(1);
        }
    }

    /// Does what the step asks for now; returns how long the next turn may wait.
    fn act(&mut self, now_ns: u64) -> Result<Duration, String> {
        let plan = Arc::clone(&self.plan);
        match self.step.and_then(|step| plan.steps.get(step)) {
            Some(Step::Connect { upto, .. }) => self.open_more(*upto, now_ns)?,
            Some(Step::Return { .. }) => self.open_more(u32::MAX, now_ns)?,
            Some(Step::Leave { .. }) => self.close_subscribers(),
            Some(Step::Publish { .. }) => return Ok(self.publish_due(now_ns)),
            _ => {}
        }
        Ok(WAIT_MAX)
    }

    /// Begins connections, those of the publishers and of the first `upto` subscribers.
    fn open_more(&mut self, upto: u32, now_ns: u64) -> Result<(), String> {
        let opening_max = self.plan.opening_max.div_ceil(self.plan.threads);
        let mine = upto.saturating_sub(self.index).div_ceil(self.plan.threads) as usize;
        let last = mine.saturating_add(self.publishers()).min(self.clients.len());
        while self.opening < opening_max && self.next < last {
            let index = self.next;
            self.next += 1;
            if self.clients[index].stage != Stage::Away {
                continue;
            }
            let from = source_address(self.plan.address, self.round, index as u32 * self.plan.threads + self.index);
            let socket =
                self.driver.connect(self.plan.address, from).map_err(|error| say_begin(&error, self.counts.live))?;
            let client = &mut self.clients[index];
            (client.stage, client.socket, client.began_ns) = (Stage::Connecting, socket, now_ns);
            if self.by_socket.len() <= socket as usize {
                self.by_socket.resize(socket as usize + 1, u32::MAX);
            }
            self.by_socket[socket as usize] = index as u32;
            self.opening += 1;
        }
        Ok(())
    }

    fn close_subscribers(&mut self) {
        for client in self.clients.iter_mut().skip(self.next) {
            if matches!(client.role, Role::Subscriber(_)) && client.stage != Stage::Away {
                self.driver.close(client.socket);
                if let Some(place) = self.by_socket.get_mut(client.socket as usize) {
                    *place = u32::MAX;
                }
                self.counts.live -= 1;
                client.leave();
            }
        }
        self.next = self.clients.len();
    }

    fn publish_due(&mut self, now_ns: u64) -> Duration {
        let Some(pace) = &mut self.pace else { return WAIT_MAX };
        let subjects = u64::from(self.plan.subjects);
        let publishers = u64::from(self.plan.publishers.max(1));
        let slowest = if pace.ahead_max > 0 { self.tally.slowest() } else { 0 };
        for turn in 0.. {
            let acked = if self.plan.is_acked { self.counts.acked } else { u64::MAX };
            let stamp_ns = match pace.due(now_ns, acked, turn) {
                Due::Now { stamp_ns } => stamp_ns,
                Due::At { ns } => return wait_until(ns, self.start, self.waits_in_ms),
                Due::Waiting => return WAIT_MAX,
            };
            let (number, subject) = (self.counts.published / subjects, self.counts.published % subjects);
            let publisher = (subject % publishers) as usize;
            let is_ahead = pace.ahead_max > 0 && number >= slowest + pace.ahead_max;
            let client = &mut self.clients[publisher];
            if is_ahead || client.pending.len() > UNSENT_MAX {
                return Duration::from_micros(if is_ahead { 50 } else { 500 });
            }
            if client.pending.is_empty() {
                self.dirty.push(publisher as u32);
            }
            let message =
                Outgoing { subject: subject as u32, number: number as u32, stamp_ns, wants_ack: self.plan.is_acked };
            self.dialect.publish(message, &mut client.pending);
            self.counts.published += 1;
            pace.issue();
        }
        WAIT_MAX
    }

    fn handle(&mut self, event: Event, now_ns: u64) -> Result<(), String> {
        match event {
            Event::Data { socket, buffer } => {
                let heard = match self.client_of(socket) {
                    Some(index) => self.hear(index, buffer, now_ns),
                    None => Ok(()),
                };
                self.driver.release(buffer);
                heard
            }
            Event::Connected { socket, errno } => {
                let Some(index) = self.client_of(socket) else { return Ok(()) };
                if errno != 0 {
                    let error = std::io::Error::from_raw_os_error(errno);
                    return Err(format!("a connection was refused: {error}"));
                }
                let client = &mut self.clients[index];
                client.stage = Stage::Opening;
                client.tls = self.tls.as_ref().map(Believed::begin).transpose()?;
                self.dialect.greet(client.role, &mut client.pending);
                self.dirty.push(index as u32);
                Ok(())
            }
            Event::Writable { socket } => {
                if let Some(index) = self.client_of(socket) {
                    self.clients[index].is_blocked = false;
                    self.dirty.push(index as u32);
                }
                Ok(())
            }
            Event::Gone { socket, errno } => match self.client_of(socket) {
                Some(index) => {
                    let client = &self.clients[index];
                    Err(format!(
                        "the server closed a connection ({:?}, {:?}, errno {errno})",
                        client.role, client.stage
                    ))
                }
                None => Ok(()),
            },
            Event::Accepted { .. } | Event::Wake => Ok(()),
        }
    }

    fn hear(&mut self, index: usize, buffer: godwit_engine::driver::Buffer, now_ns: u64) -> Result<(), String> {
        let bytes = self.driver.bytes(buffer);
        self.counts.reads += 1;
        self.counts.bytes += bytes.len() as u64;
        let client = &mut self.clients[index];
        let (was_idle, stage) = (client.pending.is_empty(), client.stage);
        self.plain.clear();
        let bytes: &[u8] = match &mut client.tls {
            Some(tls) => {
                tls.open(bytes, &mut client.pending, &mut self.plain)?;
                &self.plain
            }
            None => bytes,
        };
        let mut ear = Ear {
            dialect: &*self.dialect,
            now_ns,
            is_acked: self.plan.is_acked,
            keeps_places: self.plan.keeps_places,
            number: &mut self.numbers[index],
            counts: &mut self.counts,
            latency: &mut self.latency,
        };
        client.hear(bytes, &mut ear)?;
        if was_idle && !client.pending.is_empty() {
            self.dirty.push(index as u32);
        }
        if client.stage != stage && client.stage == Stage::Live {
            self.opening -= 1;
        }
        Ok(())
    }

    /// How many of this thread's clients, the first of them, publish.
    fn publishers(&self) -> usize {
        if self.index == 0 { self.plan.publishers as usize } else { 0 }
    }

    fn client_of(&self, socket: u32) -> Option<usize> {
        self.by_socket.get(socket as usize).filter(|&&index| index != u32::MAX).map(|&index| index as usize)
    }

    /// Sends what clients have to say; what the kernel does not take now waits for `Writable`.
    fn send(&mut self, sent: &mut Vec<Sent>) -> std::io::Result<()> {
        sent.clear();
        let mut dirty = std::mem::take(&mut self.dirty);
        for &index in &dirty {
            let client = &mut self.clients[index as usize];
            if client.is_blocked || client.pending.is_empty() {
                continue;
            }
            if let Some(tls) = &mut client.tls {
                tls.seal(&mut client.pending)?;
                if client.pending.is_empty() {
                    continue;
                }
            }
            // Until the answer: a client may stand in the list twice.
            client.is_blocked = true;
            // SAFETY: `pending` is neither changed nor moved before the flush below has returned.
            let outcome = unsafe { self.driver.send(client.socket, &client.pending, u64::from(index)) };
            if outcome != Sending::Pending {
                sent.push(Sent { token: u64::from(index), outcome });
            }
        }
        self.driver.flush(sent)?;
        dirty.clear();
        self.dirty = dirty;
        for answer in sent.iter() {
            let client = &mut self.clients[answer.token as usize];
            let is_write = matches!((client.role, answer.outcome), (Role::Publisher(_), Sending::Done(_)));
            self.counts.writes += u64::from(is_write);
            if let (Some(tls), Sending::Done(bytes)) = (&mut client.tls, answer.outcome) {
                tls.left(bytes);
            }
            match answer.outcome {
                Sending::Done(bytes) if bytes == client.pending.len() => {
                    client.is_blocked = false;
                    client.pending.clear();
                    if matches!(client.role, Role::Subscriber(_)) {
                        client.pending = Vec::new();
                    }
                    continue;
                }
                Sending::Done(bytes) => drop(client.pending.drain(..bytes)),
                Sending::Blocked | Sending::Pending => {}
                // The `Gone` event says the rest.
                Sending::Gone => continue,
            }
            self.driver.want_write(client.socket);
        }
        Ok(())
    }

    fn store(&self) {
        let Some(shared) = self.tally.counts.get(self.index as usize) else { return };
        let counts = &self.counts;
        let slowest = self.numbers.get(self.publishers()..).and_then(|numbers| numbers.iter().min().copied());
        for (place, value) in [
            (&shared.live, counts.live),
            (&shared.delivered, counts.delivered),
            (&shared.lost, counts.lost),
            (&shared.repeated, counts.repeated),
            (&shared.gaps, counts.gaps),
            (&shared.missed, counts.missed),
            (&shared.snapshots, counts.snapshots),
            (&shared.published, counts.published),
            (&shared.acked, counts.acked),
            (&shared.writes, counts.writes),
            (&shared.reads, counts.reads),
            (&shared.bytes, counts.bytes),
            (&shared.slowest, slowest.map_or(u64::MAX, u64::from)),
        ] {
            place.store(value, Ordering::Release);
        }
    }
}

/// Why a connection could not be begun; where a thread's table is full, what to do.
fn say_begin(error: &std::io::Error, live: u64) -> String {
    if error.raw_os_error() == Some(libc::EMFILE) {
        return format!(
            "a thread of the generator holds {live} connections and no more descriptors: it needs more threads, or RLIMIT_NOFILE raised"
        );
    }
    format!("a connection could not be begun: {error}")
}

fn wait_until(due_ns: u64, start: Instant, waits_in_ms: bool) -> Duration {
    let wait = Duration::from_nanos(due_ns).saturating_sub(start.elapsed());
    if waits_in_ms && wait < Duration::from_millis(1) { Duration::ZERO } else { wait.min(WAIT_MAX) }
}
