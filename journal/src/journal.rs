//! A journal that is open: its lock, its threads, the ways in and out. Owns beginning and ending; what the threads do is the writer's
//! and the sealer's.
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Stream;
use crate::background;
use crate::background::seal::{Keep, Sealer, wall_ms};
use crate::boot;
use crate::catalog::Catalog;
use crate::disk::Disk;
use crate::progress::Progress;
use crate::queue::Queue;
use crate::reader::Reader;
use crate::recover::{Recovered, recover};
use crate::run_history::read_run_history;
use crate::runs::{Follows, RunRecord, choose_epoch};
use crate::segment_writer::Closed;
use crate::settings::{Retention, Settings};
use crate::writer::{Moment, Writer};

/// How often what is too old is looked for.
const RETAIN_EVERY: Duration = Duration::from_secs(10);
const SEAL_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What the journal holds of earlier runs, as it was found at the start.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Oldest first; this run is not among them.
    pub runs: Vec<RunRecord>,
    /// What this run follows; none where it is the first.
    pub follows: Option<Follows>,
    /// The epoch that this run begins with: at least the one asked for.
    pub epoch: u64,
    /// Messages behind the last one that is good are damaged.
    pub is_end_damaged: bool,
    /// What was found wrong and what was done about it: a sentence each, for the log.
    pub said: Vec<String>,
}

/// Why there is no journal.
#[derive(Debug)]
pub enum OpenError {
    /// Another node has it.
    Locked,
    /// The directory cannot be made, read or locked.
    Disk(io::Error),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Locked => f.write_str("another node writes this journal"),
            Self::Disk(error) => write!(f, "the journal cannot be opened: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock { Self::Locked } else { Self::Disk(error) }
    }
}

/// An open journal. Dropped without `close`, it ends like a process that was killed, but that what waits is still written.
#[derive(Debug)]
pub struct Journal {
    queue: Queue,
    reader: Reader,
    progress: Progress,
    writer: Option<JoinHandle<bool>>,
    sealer: Option<JoinHandle<()>>,
    to_writer: Sender<u64>,
    to_sealer: Sender<Job>,
    _lock: Box<dyn Any + Send>,
}

enum Job {
    Seal(Closed),
    Retain(Vec<(Stream, Retention)>),
    Stop,
}

impl Journal {
    /// Takes the directory, finds out what it holds, and begins this run in its chain. `notify` is called from the journal's threads
    /// whenever `progress` has changed. A disk that cannot be written to now does not stop this: the journal then begins failing.
    pub fn open(
        settings: &Settings,
        disk: Arc<dyn Disk>,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Result<(Self, Past), OpenError> {
        Self::open_keeping(settings, disk, notify, None)
    }

    /// The same; messages go once `keep` has kept the snapshots that they made.
    pub fn open_keeping(
        settings: &Settings,
        disk: Arc<dyn Disk>,
        notify: impl Fn() + Send + Sync + 'static,
        keep: Option<Keep>,
    ) -> Result<(Self, Past), OpenError> {
        disk.create_folder(&settings.directory)?;
        let lock = disk.lock(&settings.directory.join("lock"))?;
        let catalog = Catalog::new(&settings.directory, &settings.node);
        let progress = Progress::default();
        for stream in Stream::ALL {
            catalog.lock(stream).check_format(&*disk)?; // of all, before anything of one is changed
        }
        let sealer = Sealer { disk: Arc::clone(&disk), catalog: catalog.clone(), progress: progress.clone(), keep };
        let was_cut = !boot::is_same(&*disk, &settings.directory);
        let mut recovered = Vec::with_capacity(Stream::ALL.len());
        for stream in Stream::ALL {
            recovered.push(recover(stream, &*disk, &catalog, was_cut)?);
        }
        let reader = Reader::new(&disk, &catalog, &progress);
        let past = find_past(settings, &mut recovered, &reader)?;
        let is_whole = past.follows.is_none_or(|follows| follows.is_clean) || !was_cut;
        for of in &mut recovered {
            of.settle(&*disk, &catalog, is_whole)?;
            // Before anything follows them, the rows that came back are copied to where a power cut leaves them: a sync of their file
            // proves nothing if one failed just before the last run was killed. And readers find every segment where the one before it ends.
            of.closed.retain(|closed| sealer.seal(*closed).is_err());
        }
        boot::remember(&*disk, &settings.directory);
        let next: Vec<u64> = recovered.iter().map(|of| of.next).collect();
        let damaged = recovered.iter().map(|of| of.damaged).sum();
        progress.add_damaged(damaged);
        let of_run = Settings { epoch: past.epoch, ..settings.clone() };
        let mut writer = Writer::new(&of_run, &progress, &disk, &catalog, &next)?;
        let clock = Clock::new();
        writer.begin(past.follows, clock.now());
        let queue = Queue::new(settings, progress.clone());
        let (to_sealer, jobs) = channel();
        for closed in recovered.into_iter().flat_map(|of| of.closed) {
            let _ = to_sealer.send(Job::Seal(closed)); // its receiver lives until we stop it
        }
        let (to_writer, last_arrival) = channel();
        let notify = Arc::new(notify);
        let writer = {
            let notify = Arc::clone(&notify);
            let (queue, to_sealer) = (queue.clone(), to_sealer.clone());
            let run = move || run_writer(writer, &queue, &clock, &to_sealer, &last_arrival, &*notify);
            std::thread::Builder::new().name("journal".to_owned()).spawn(run)?
        };
        let retention = list_retention(settings);
        let sealer = background::spawn("journal-seal", move || run_sealer(&sealer, &jobs, retention, &*notify))?;
        let (writer, sealer) = (Some(writer), Some(sealer));
        Ok((Self { queue, reader, progress, writer, sealer, to_writer, to_sealer, _lock: lock }, past))
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Other bounds of what is kept, from now on.
    pub fn set_retention(&self, settings: &Settings) {
        let _ = self.to_sealer.send(Job::Retain(list_retention(settings))); // gone only once we stop it
    }

    /// Writes what waits, ends the run after `last_arrival`, and seals. True when all of it is on the disk.
    pub fn close(mut self, last_arrival: u64) -> bool {
        let _ = self.to_writer.send(last_arrival); // its thread may have ended by itself; then it says so below
        self.stop()
    }

    fn stop(&mut self) -> bool {
        self.queue.close();
        let is_clean = self.writer.take().is_some_and(|thread| thread.join().unwrap_or(false));
        let _ = self.to_sealer.send(Job::Stop); // it may have ended by itself
        if let Some(thread) = self.sealer.take() {
            let _ = thread.join(); // a panic there has been printed; what it left is sealed at the next start
        }
        is_clean
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.stop();
    }
}

fn list_retention(settings: &Settings) -> Vec<(Stream, Retention)> {
    let find = |stream: Stream| settings.retention.get(stream.name()).map(|retention| (stream, *retention));
    Stream::ALL.into_iter().filter_map(find).collect()
}

/// What the files that were recovered say of earlier runs, and what this run begins with.
fn find_past(settings: &Settings, recovered: &mut [Recovered], reader: &Reader) -> io::Result<Past> {
    let runs = read_run_history(reader)?;
    let mut with_streams = recovered.iter().zip(Stream::ALL);
    Ok(Past {
        is_end_damaged: with_streams.any(|(of, stream)| of.is_end_damaged && stream == Stream::Messages),
        said: recovered.iter_mut().flat_map(|of| std::mem::take(&mut of.said)).collect(),
        follows: find_last(&runs, reader),
        epoch: choose_epoch(settings.epoch, settings.run, &runs),
        runs,
    })
}

/// The run that this one follows: the last that began, and how far the journal holds it.
fn find_last(runs: &[RunRecord], reader: &Reader) -> Option<Follows> {
    let last = runs.last()?;
    let held = reader.last_arrival_of(last.run).unwrap_or(0);
    Some(Follows { run: last.run, arrival: last.ended.unwrap_or(held), is_clean: last.ended.is_some() })
}

/// Monotonic time from the journal's start.
#[derive(Clone, Copy, Debug)]
struct Clock(Instant);

impl Clock {
    fn new() -> Self {
        Self(Instant::now())
    }

    fn now(&self) -> Moment {
        let mono_ms = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        Moment { mono_ms, wall_ms: wall_ms() }
    }
}

fn run_writer(
    mut writer: Writer,
    queue: &Queue,
    clock: &Clock,
    to_sealer: &Sender<Job>,
    last_arrival: &Receiver<u64>,
    notify: &dyn Fn(),
) -> bool {
    let mut closed = Vec::new();
    let hand_over = |closed: &mut Vec<Closed>| {
        for closed in closed.drain(..) {
            let _ = to_sealer.send(Job::Seal(closed)); // without it the segment is sealed at the next start
        }
    };
    loop {
        let until = Instant::now() + Duration::from_millis(writer.rest_ms(clock.now()));
        let Some(waiting) = queue.take(until) else { break };
        let has_changed = writer.turn(&waiting, clock.now(), &mut closed);
        drop(waiting);
        queue.set_unsynced_bytes(writer.unsynced_bytes());
        hand_over(&mut closed);
        if has_changed {
            notify();
        }
    }
    let waiting = queue.take_all();
    let is_clean = match last_arrival.try_recv() {
        Ok(arrival) => writer.end(&waiting, arrival, clock.now(), &mut closed),
        Err(_) => {
            writer.turn(&waiting, clock.now(), &mut closed);
            false
        }
    };
    hand_over(&mut closed);
    notify();
    is_clean
}

fn run_sealer(sealer: &Sealer, jobs: &Receiver<Job>, mut retention: Vec<(Stream, Retention)>, notify: &dyn Fn()) {
    let mut waiting: VecDeque<Closed> = VecDeque::new();
    let mut not_removed = None;
    let mut look_at = Instant::now() + RETAIN_EVERY; // a node that starts reads first
    loop {
        let wait = if waiting.is_empty() { RETAIN_EVERY } else { SEAL_AGAIN_AFTER };
        let is_last = match jobs.recv_timeout(wait) {
            Ok(Job::Seal(closed)) => {
                waiting.push_back(closed);
                false
            }
            Ok(Job::Retain(fresh)) => {
                retention = fresh;
                look_at = Instant::now();
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => true,
        };
        // What cannot be sealed now is tried again after the others: it may be one file that cannot be read, or the disk may be full.
        let mut not_sealed = None;
        while let Some(closed) = waiting.pop_front() {
            if let Err(error) = sealer.seal_beside(closed) {
                not_sealed = Some(format!("a segment of {} cannot be sealed: {error}", closed.stream.name()));
                waiting.push_back(closed);
                break;
            }
        }
        if Instant::now() >= look_at {
            look_at = Instant::now() + RETAIN_EVERY;
            not_removed = None;
            for (stream, bounds) in &retention {
                // It is tried again in a while; what would block waits for the start to end.
                let tried = sealer.retain(*stream, *bounds, wall_ms());
                if let Err(error) = tried
                    && error.kind() != io::ErrorKind::WouldBlock
                {
                    not_removed = Some(format!("old segments of {} cannot be removed: {error}", stream.name()));
                }
            }
        }
        if sealer.progress.set_sealing(not_sealed.or_else(|| not_removed.clone())) {
            notify();
        }
        if is_last {
            return;
        }
    }
}
