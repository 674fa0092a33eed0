//! Where rows wait for the writer: bounded in bytes, in order, never blocking whoever puts them there.
//! Owns the rule for what happens when it is full. Messages hold their publishers back; what is dropped all the same is counted, and of
//! messages the arrivals are kept, so that the missing range can be reported.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit_core::journal::{AccessRow, DeliveryRow, FeedbackRow, LatencyRow, MessageRow, Rows, StatsRow};

use crate::progress::Progress;
use crate::settings::Settings;
use crate::{Lost, Stream};

/// Rows that wait this much are written without waiting for more.
const WRITE_BYTES: usize = 256 << 10;

/// The way in; cloning shares it.
#[derive(Clone, Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    progress: Progress,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    messages_bytes_max: usize,
    rows_bytes_max: usize,
    write_interval: Duration,
    rows_interval: Duration,
}

#[derive(Debug, Default)]
struct State {
    waiting: Waiting,
    /// Bytes the writer has taken and does not know to be on the disk.
    unsynced_bytes: usize,
    is_asleep: bool,
    is_closed: bool,
    /// Somebody waits for what is in it.
    is_urgent: bool,
    messages_since: Option<Instant>,
    rows_since: Option<Instant>,
}

/// What the writer takes at once.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) access: Vec<AccessRow>,
    pub(crate) deliveries: Vec<DeliveryRow>,
    pub(crate) latency: Vec<LatencyRow>,
    pub(crate) stats: Vec<StatsRow>,
    pub(crate) feedback: Vec<FeedbackRow>,
    pub(crate) lost: Vec<Lost>,
    /// A publisher waits for the disk.
    pub(crate) needs_disk: bool,
    bytes: [usize; Stream::ALL.len()],
}

impl Queue {
    pub(crate) fn new(settings: &Settings, progress: Progress) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            messages_bytes_max: settings.messages_bytes_max,
            rows_bytes_max: settings.rows_bytes_max,
            write_interval: Duration::from_millis(settings.write_interval_ms),
            rows_interval: Duration::from_millis(settings.sync_interval_ms),
        };
        Self { shared: Arc::new(shared), progress }
    }

    /// Takes all messages out of `rows`, in order of arrival; the next call's are later ones. Never blocks on the disk. `hurries`:
    /// somebody waits until they are written (a row that needs the disk hurries by itself).
    pub fn push_messages(&self, rows: &mut Vec<MessageRow>, hurries: bool) {
        if rows.is_empty() {
            return;
        }
        let bytes = rows.iter().map(MessageRow::cost_bytes).sum::<usize>();
        let needs_disk = rows.iter().any(|row| row.needs_disk);
        let mut state = self.state();
        let stream = Stream::Messages as usize;
        let held = state.waiting.bytes[stream] + state.unsynced_bytes;
        let room = if self.progress.is_failing() { 1 } else { 2 };
        if held > 0 && held + bytes > room * self.shared.messages_bytes_max {
            self.drop_messages(&mut state, rows);
            return;
        }
        state.waiting.bytes[stream] += bytes;
        state.waiting.messages.append(rows);
        state.waiting.needs_disk |= needs_disk;
        state.is_urgent |= needs_disk || hurries || state.waiting.bytes[stream] >= WRITE_BYTES;
        let is_first = state.messages_since.is_none();
        state.messages_since.get_or_insert_with(Instant::now);
        self.wake(state, is_first);
    }

    /// The same for rows of any stream. What does not fit is dropped and counted.
    pub fn push(&self, rows: Rows) {
        let stream = match rows {
            Rows::Messages(mut rows) => return self.push_messages(&mut rows, false),
            Rows::Access(_) => Stream::Access,
            Rows::Deliveries(_) => Stream::Deliveries,
            Rows::Latency(_) => Stream::Latency,
            Rows::Stats(_) => Stream::Stats,
            Rows::Feedback(_) => Stream::Feedback,
        };
        let (bytes, count) = (rows.cost_bytes(), rows.len() as u64);
        if count == 0 {
            return;
        }
        let mut state = self.state();
        let held = state.waiting.bytes[stream as usize];
        if held > 0 && held + bytes > self.shared.rows_bytes_max {
            self.progress.add_lost(stream, count);
            Lost::add(&mut state.waiting.lost, Lost { stream, count, arrivals: None });
            return;
        }
        state.waiting.bytes[stream as usize] += bytes;
        match rows {
            Rows::Messages(_) => {}
            Rows::Access(mut rows) => state.waiting.access.append(&mut rows),
            Rows::Deliveries(mut rows) => state.waiting.deliveries.append(&mut rows),
            Rows::Latency(mut rows) => state.waiting.latency.append(&mut rows),
            Rows::Stats(mut rows) => state.waiting.stats.append(&mut rows),
            Rows::Feedback(mut rows) => state.waiting.feedback.append(&mut rows),
        }
        state.is_urgent |= state.waiting.bytes[stream as usize] >= WRITE_BYTES;
        let is_first = state.rows_since.is_none();
        state.rows_since.get_or_insert_with(Instant::now);
        self.wake(state, is_first);
    }

    /// Whether publishers should not be read until the writer has caught up. A disk that fails holds nobody: what it
    /// cannot take is dropped past the limit, and told.
    pub fn holds_publishers(&self) -> bool {
        let state = self.state();
        let held = state.waiting.bytes[Stream::Messages as usize] + state.unsynced_bytes;
        held > self.shared.messages_bytes_max / 2 && !self.progress.is_failing()
    }

    /// Bytes that wait or are not known to be on the disk.
    pub fn bytes(&self) -> usize {
        let state = self.state();
        state.waiting.bytes.iter().sum::<usize>() + state.unsynced_bytes
    }

    /// Has the writer write and sync what is there now.
    pub fn flush(&self) {
        let mut state = self.state();
        state.is_urgent = true;
        state.waiting.needs_disk = true;
        self.wake(state, true);
    }

    /// Lets the writer end once it has taken everything.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        self.wake(state, true);
    }

    /// What there is to be written: at once where it is urgent or waited long enough, or at `until` at the latest. None: closed
    /// and empty.
    pub(crate) fn take(&self, until: Instant) -> Option<Waiting> {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let due = state.due(self.shared.write_interval, self.shared.rows_interval).unwrap_or(until).min(until);
            if state.is_closed && state.is_empty() {
                return None;
            }
            if state.is_urgent || state.is_closed || due <= now {
                return Some(state.take(now, self.shared.rows_interval));
            }
            state.is_asleep = true;
            let wait = due.saturating_duration_since(now);
            state = self.shared.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
            state.is_asleep = false;
        }
    }

    /// Everything, whatever its age.
    pub(crate) fn take_all(&self) -> Waiting {
        self.state().take_rows()
    }

    pub(crate) fn set_unsynced_bytes(&self, bytes: usize) {
        self.state().unsynced_bytes = bytes;
    }

    fn drop_messages(&self, state: &mut State, rows: &mut Vec<MessageRow>) {
        let arrivals = rows.first().zip(rows.last()).map(|(first, last)| (first.message.arrival, last.message.arrival));
        let count = rows.len() as u64;
        rows.clear();
        if let Some((_, last)) = arrivals {
            self.progress.add_lost_arrival(last);
        }
        self.progress.add_lost(Stream::Messages, count);
        Lost::add(&mut state.waiting.lost, Lost { stream: Stream::Messages, count, arrivals });
    }

    /// Wakes the writer where that lets it begin, or where it has to count from now (`is_first`); else it wakes by itself.
    fn wake(&self, state: MutexGuard<'_, State>, is_first: bool) {
        let must = state.is_asleep && (state.is_urgent || is_first);
        drop(state);
        if must {
            self.shared.wake.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.waiting.bytes.iter().all(|bytes| *bytes == 0) && self.waiting.lost.is_empty() && !self.waiting.needs_disk
    }

    fn due(&self, write_interval: Duration, rows_interval: Duration) -> Option<Instant> {
        let messages = self.messages_since.map(|since| since + write_interval);
        let rows = self.rows_since.map(|since| since + rows_interval);
        messages.into_iter().chain(rows).min()
    }

    /// Messages as they are; of the other streams only what has waited long enough, so that they make few batches.
    fn take(&mut self, now: Instant, rows_interval: Duration) -> Waiting {
        let others_due = self.rows_since.is_some_and(|since| since + rows_interval <= now)
            || self.waiting.bytes.iter().skip(1).any(|bytes| *bytes >= WRITE_BYTES);
        if others_due || self.is_closed || self.waiting.needs_disk && self.waiting.messages.is_empty() {
            return self.take_rows();
        }
        let mut taken = Waiting { needs_disk: self.waiting.needs_disk, ..Waiting::default() };
        taken.messages = std::mem::take(&mut self.waiting.messages);
        taken.lost = std::mem::take(&mut self.waiting.lost);
        self.unsynced_bytes += std::mem::take(&mut self.waiting.bytes[Stream::Messages as usize]);
        self.waiting.needs_disk = false;
        self.is_urgent = false;
        self.messages_since = None;
        taken
    }

    fn take_rows(&mut self) -> Waiting {
        self.is_urgent = false;
        self.messages_since = None;
        self.rows_since = None;
        self.unsynced_bytes += self.waiting.bytes[Stream::Messages as usize];
        std::mem::take(&mut self.waiting)
    }
}
