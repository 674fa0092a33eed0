//! A load from start to end: opens the threads, takes the plan's steps one after another, reads the server's CPU and memory
//! at their borders, and keeps the result. A step that makes no progress for too long is a fault, and so is the time limit.
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use godwit_engine::driver::{self, DriverOptions, Preference, raise_descriptor_limit};
use serde::Serialize;

use crate::dialect::{self, Dialect};
use crate::histogram::Percentiles;
use crate::meter::{self, Machine, Reading};
use crate::plan::{Plan, Step};
use crate::silent::{Silent, Told};
use crate::tally::{Sums, Tally};
use crate::tls::Believed;
use crate::worker::Worker;

const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Receive buffers of all threads together (16 kB each).
const BUFFERS_MAX: u32 = 8_192;

/// One step as it went.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepResult {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    /// Of the server's processes, during the step.
    pub(crate) cpu_seconds: f64,
    /// Of their threads, during the step: how often one had nothing to do.
    pub(crate) rests: u64,
    /// Of the server's processes, at the step's end.
    pub(crate) pss_kb: u64,
    /// At the step's end.
    #[serde(flatten)]
    pub(crate) machine: Machine,
    #[serde(flatten)]
    pub(crate) counts: Sums,
    /// From the intended time of a message to its delivery, or from a connection's begin to its subscription.
    pub(crate) latency: Percentiles,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<Told>,
}

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct RunResult {
    pub(crate) driver: String,
    /// Of the server's processes before the first connection.
    pub(crate) pss_kb_before: u64,
    pub(crate) machine_before: Machine,
    pub(crate) steps: Vec<StepResult>,
    /// Every delivery that was due came once, in order.
    pub(crate) is_exact: bool,
    pub(crate) fault: Option<String>,
}

/// A load that runs on threads of its own.
pub struct LoadGenerator {
    plan: Arc<Plan>,
    tally: Arc<Tally>,
    result: Arc<Mutex<Option<RunResult>>>,
    coordinator: Option<JoinHandle<()>>,
    start: Instant,
}

impl LoadGenerator {
    /// # Errors
    /// A sentence that says what is wrong with the plan.
    pub fn new(plan: &str) -> Result<Self, String> {
        let plan = Plan::parse(plan)?;
        let tally = Tally::new(plan.threads as usize);
        Ok(Self {
            plan: Arc::new(plan),
            tally: Arc::new(tally),
            result: Arc::default(),
            coordinator: None,
            start: Instant::now(),
        })
    }

    /// Begins; a second start does nothing.
    ///
    /// # Errors
    /// When the dialect or driver is unknown, or a thread cannot be made.
    pub fn start(&mut self) -> Result<(), String> {
        if self.coordinator.is_some() {
            return Ok(());
        }
        let host = self.plan.address.to_string();
        let dialect: Arc<dyn Dialect> = dialect::of_name(&self.plan.dialect, &host, self.plan.content_bytes)
            .ok_or_else(|| format!("the dialect {:?} is not known", self.plan.dialect))?
            .into();
        if self.plan.is_acked && !dialect.acks() {
            return Err(format!("the dialect {:?} has no acknowledgements", self.plan.dialect));
        }
        if dialect.is_bound_to_subject() && self.plan.publishers > 0 && self.plan.publishers < self.plan.subjects {
            return Err(format!("the dialect {:?} needs a publisher for each subject", self.plan.dialect));
        }
        let preference = match self.plan.driver.as_str() {
            "auto" => Preference::Probe,
            "io_uring" => Preference::Uring,
            "readiness" => Preference::Readiness,
            other => return Err(format!("the driver {other:?} is not known")),
        };
        // One that cannot be raised is met where it binds: at a connect, which says so.
        let _ = raise_descriptor_limit();
        self.start = Instant::now();
        let run = Run {
            plan: Arc::clone(&self.plan),
            tally: Arc::clone(&self.tally),
            dialect,
            preference,
            start: self.start,
            sums: Sums::default(),
            reading: Reading::default(),
            seconds: 0.0,
            expected: 0,
            due: 0,
            subscribed: 0,
            is_away: false,
            silent: None,
        };
        let result = Arc::clone(&self.result);
        let coordinator = std::thread::Builder::new().name("loadgen".to_owned()).spawn(move || {
            let outcome = run.run();
            if let Ok(mut place) = result.lock() {
                *place = Some(outcome);
            }
        });
        self.coordinator = Some(coordinator.map_err(|error| format!("no thread for the load: {error}"))?);
        Ok(())
    }

    /// Where the load stands, as JSON.
    pub fn progress(&self) -> String {
        let step = self.plan.steps.get(self.tally.step.load(Ordering::Acquire)).map_or("", Step::name);
        let is_over = self.result.lock().is_ok_and(|result| result.is_some());
        serde_json::json!({
            "step": step,
            "seconds": self.start.elapsed().as_secs_f64(),
            "is_over": is_over,
            "counts": self.tally.sums(),
        })
        .to_string()
    }

    /// The result as JSON once the load is over; waits for its end.
    pub fn result(&mut self) -> String {
        if let Some(coordinator) = self.coordinator.take() {
            drop(coordinator.join());
        }
        let result = self.result.lock().ok().and_then(|result| result.clone());
        let result = result.unwrap_or_else(|| RunResult {
            fault: Some("the load was not run to its end".to_owned()),
            ..RunResult::default()
        });
        serde_json::to_string(&result).unwrap_or_default()
    }

    /// Ends the load early; the result then says so.
    pub fn stop(&mut self) {
        self.tally.fail("stopped");
    }
}

impl Drop for LoadGenerator {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Run {
    plan: Arc<Plan>,
    tally: Arc<Tally>,
    dialect: Arc<dyn Dialect>,
    preference: Preference,
    start: Instant,
    sums: Sums,
    reading: Reading,
    /// When the last step ended.
    seconds: f64,
    /// Messages published by the steps so far.
    expected: u64,
    /// The deliveries these make to those who were subscribed when they were published.
    due: u64,
    /// Subscribers that were asked to connect.
    subscribed: u32,
    is_away: bool,
    silent: Option<Silent>,
}

impl Run {
    fn run(mut self) -> RunResult {
        let threads: Vec<_> = (0..self.plan.threads).filter_map(|index| self.open_thread(index)).collect();
        self.reading = meter::read(&self.plan.pids);
        let mut result = RunResult {
            pss_kb_before: self.reading.pss_kb,
            machine_before: self.reading.machine,
            is_exact: true,
            ..RunResult::default()
        };
        self.seconds = self.start.elapsed().as_secs_f64();
        let plan = Arc::clone(&self.plan);
        for (place, step) in plan.steps.iter().enumerate() {
            if self.tally.is_stopped() {
                break;
            }
            self.tally.step.store(place, Ordering::Release);
            let told = self.take(step);
            let mut done = self.measure(step);
            done.told = told;
            self.tally.step.store(place + 1, Ordering::Release);
            done.latency = self.take_latency((place + 1) * threads.len());
            result.steps.push(done);
        }
        result.is_exact = self.sums.lost == 0 && self.sums.repeated == 0 && self.sums.missed == 0;
        result.fault = self.tally.fault();
        if result.fault.is_none() {
            self.tally.is_stopped.store(true, Ordering::Release);
        }
        result.driver = self.tally.driver();
        for thread in threads {
            if thread.join().is_err() {
                result.fault.get_or_insert_with(|| "a thread of the load failed".to_owned());
            }
        }
        result.is_exact &= result.fault.is_none();
        result
    }

    fn open_thread(&self, index: u32) -> Option<JoinHandle<()>> {
        let (plan, tally, dialect) = (Arc::clone(&self.plan), Arc::clone(&self.tally), Arc::clone(&self.dialect));
        let (preference, start) = (self.preference, self.start);
        let thread = std::thread::Builder::new().name(format!("loadgen-{index}")).spawn(move || {
            if let Some(core) = plan.core {
                stay_on(core);
            }
            let buffers_max = (BUFFERS_MAX / plan.threads).clamp(64, 1_024) as u16;
            let options = DriverOptions { preference, buffers_max, ..DriverOptions::default() };
            match driver::open(&options) {
                Ok(opened) => {
                    tally.use_driver(opened.name);
                    let is_last = plan.is_last;
                    let tls = match plan.tls.as_ref().map(Believed::read).transpose() {
                        Ok(tls) => tls,
                        Err(fault) => return tally.fail(fault),
                    };
                    let mut worker = Worker::new(index, plan, tally, dialect, opened, start);
                    worker.tls = tls;
                    worker.run();
                    if is_last {
                        std::mem::forget(worker);
                    }
                }
                Err(error) => tally.fail(format!("the generator's driver cannot be opened: {error}")),
            }
        });
        thread.map_err(|error| self.tally.fail(format!("no thread for the load: {error}"))).ok()
    }

    /// Lets one step happen to its end.
    fn take(&mut self, step: &Step) -> Option<Told> {
        let plan = Arc::clone(&self.plan);
        match step {
            Step::Publish { messages, .. } => {
                let before = plan.deliveries(self.subscribed, self.expected);
                self.expected += messages;
                self.due += plan.deliveries(self.subscribed, self.expected) - before;
            }
            Step::Leave { .. } => self.is_away = true,
            Step::Return { .. } => self.is_away = false,
            Step::Connect { upto, .. } => {
                self.is_away = false;
                self.subscribed = plan.subscribers.min(*upto);
            }
            Step::Pause { seconds, .. } => {
                let end = Instant::now() + Duration::from_secs_f64(*seconds);
                while Instant::now() < end && !self.tally.is_stopped() {
                    std::thread::sleep(LOOK_EVERY * 10);
                }
                return None;
            }
            Step::Silence { clients, .. } => {
                match Silent::open(plan.address, &*self.dialect, *clients) {
                    Ok(silent) => self.silent = Some(silent),
                    Err(fault) => self.tally.fail(fault),
                }
                return None;
            }
            Step::Wake { .. } => {
                let last = plan.share(0, self.expected).saturating_sub(1) as u32;
                let deadline = Instant::now() + Duration::from_secs_f64(plan.stall_seconds_max);
                return self.silent.take().map(|silent| silent.wake(&*self.dialect, last, deadline));
            }
        }
        self.wait_for(step);
        None
    }

    fn wait_for(&self, step: &Step) {
        let (mut seen, mut moved) = (self.tally.sums(), Instant::now());
        while !self.tally.is_stopped() {
            let sums = self.tally.sums();
            if self.is_done(step, &sums) {
                return;
            }
            if sums != seen {
                (seen, moved) = (sums, Instant::now());
            }
            if moved.elapsed().as_secs_f64() > self.plan.stall_seconds_max {
                self.tally.fail(format!("no progress in step {:?} at {sums:?}", step.name()));
            }
            if self.start.elapsed().as_secs_f64() > self.plan.seconds_max {
                self.tally.fail(format!("the time was up in step {:?} at {sums:?}", step.name()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn is_done(&self, step: &Step, sums: &Sums) -> bool {
        let plan = &self.plan;
        let all = u64::from(self.subscribed) + u64::from(plan.publishers);
        let is_published = sums.published == self.expected && (!plan.is_acked || sums.acked == self.expected);
        let is_delivered = sums.delivered + sums.lost + sums.missed >= self.due;
        match step {
            Step::Connect { .. } => sums.live == all,
            Step::Leave { .. } => sums.live == u64::from(plan.publishers),
            Step::Return { .. } => sums.live == all && is_delivered,
            _ => is_published && (self.is_away || is_delivered),
        }
    }

    fn measure(&mut self, step: &Step) -> StepResult {
        let (sums, reading) = (self.tally.sums(), meter::read(&self.plan.pids));
        let seconds = self.start.elapsed().as_secs_f64();
        let result = StepResult {
            name: step.name().to_owned(),
            seconds: seconds - self.seconds,
            cpu_seconds: (reading.cpu_ns - self.reading.cpu_ns.min(reading.cpu_ns)) as f64 / 1e9,
            rests: reading.rests.saturating_sub(self.reading.rests),
            pss_kb: reading.pss_kb,
            machine: reading.machine,
            counts: sums.since(&self.sums),
            latency: Percentiles::default(),
            told: None,
        };
        (self.sums, self.reading, self.seconds) = (sums, reading, seconds);
        result
    }

    fn take_latency(&self, handed_in: usize) -> Percentiles {
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.tally.handed_in.load(Ordering::Acquire) < handed_in
            && !self.tally.is_stopped()
            && Instant::now() < deadline
        {
            std::thread::sleep(LOOK_EVERY);
        }
        match self.tally.latency.lock() {
            Ok(mut latency) => {
                let percentiles = latency.percentiles();
                latency.clear();
                percentiles
            }
            Err(_) => Percentiles::default(),
        }
    }
}

#[cfg(target_os = "linux")]
fn stay_on(core: usize) {
    // SAFETY: a zeroed set is an empty set; the set is of this frame and as large as the call is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

#[cfg(not(target_os = "linux"))]
fn stay_on(_core: usize) {}
