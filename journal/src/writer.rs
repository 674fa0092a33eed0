//! The journal's hand: takes what waits, writes it, syncs it when somebody waits for that or it is time, and tries a failing disk again.
//! Owns when; a segment writer owns how. The time is a parameter, and nothing here waits: the thread around it does.
use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::boot;
use crate::catalog::Catalog;
use crate::disk::Disk;
use crate::encode::rows::Origin;
use crate::progress::Progress;
use crate::queue::Waiting;
use crate::runs::{Follows, RunRow};
use crate::segment_writer::{Closed, SegmentWriter};
use crate::settings::Settings;
use crate::{Lost, Stream};

/// When something happens: monotonic and wall time, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) mono_ms: u64,
    pub(crate) wall_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Writer {
    settings: Settings,
    progress: Progress,
    disk: Arc<dyn Disk>,
    /// In the order of `Stream`. One that gets no rows leaves no file.
    segment_writers: Vec<SegmentWriter>,
    synced_ms: u64,
    probed_ms: u64,
}

impl Writer {
    /// `next` are the offsets to go on with, by stream.
    pub(crate) fn new(
        settings: &Settings,
        progress: &Progress,
        disk: &Arc<dyn Disk>,
        catalog: &Catalog,
        next: &[u64],
    ) -> io::Result<Self> {
        let origin = Arc::new(Origin { node: settings.node.clone(), run: format!("{:x}", settings.run) });
        let segment_writer = |(stream, next): (Stream, &u64)| SegmentWriter::new(stream, &origin, disk, catalog, *next);
        let mut segment_writers =
            Stream::ALL.into_iter().zip(next).map(segment_writer).collect::<io::Result<Vec<_>>>()?;
        if let Some(messages) = segment_writers.first_mut() {
            messages.begin_preallocation();
        }
        Ok(Self {
            settings: settings.clone(),
            progress: progress.clone(),
            disk: Arc::clone(disk),
            segment_writers,
            synced_ms: 0,
            probed_ms: 0,
        })
    }

    /// Begins the run: its row is the first thing that this run puts on the disk.
    pub(crate) fn begin(&mut self, follows: Option<Follows>, now: Moment) {
        let row = RunRow { follows, ..RunRow::new("began", self.settings.epoch, now.wall_ms) };
        self.segment_writer(Stream::Runs).take(&[row]);
        self.write(now);
        self.sync(now, true);
        self.tell();
    }

    /// One round. True when what others may wait for has changed.
    pub(crate) fn turn(&mut self, waiting: &Waiting, now: Moment, closed: &mut Vec<Closed>) -> bool {
        self.take(waiting, now);
        if self.is_failing() && now.mono_ms.saturating_sub(self.probed_ms) >= self.settings.probe_interval_ms {
            self.probed_ms = now.mono_ms;
            self.probe(now);
        }
        self.write(now);
        let interval = self.settings.sync_interval_ms;
        let is_due = now.mono_ms.saturating_sub(self.synced_ms) >= interval;
        let is_much = self.held_bytes() >= self.settings.sync_bytes_max;
        if is_due || is_much || waiting.needs_disk {
            self.sync(now, is_due || is_much);
        }
        if self.is_failing() && self.segment_writer(Stream::Messages).give_preallocated_up() {
            self.probe(now); // it fails only if that did not help
        }
        let (bytes_max, age_ms_max) = (self.settings.segment_bytes_max, self.settings.segment_age_ms_max);
        if waiting.needs_disk && !self.is_failing() {
            self.segment_writer(Stream::Messages).ask_preallocation(bytes_max);
        }
        for segment_writer in &mut self.segment_writers {
            closed.extend(std::iter::from_fn(|| segment_writer.rotate(now.mono_ms, bytes_max, age_ms_max, false)));
        }
        self.tell()
    }

    fn take(&mut self, waiting: &Waiting, now: Moment) {
        self.segment_writer(Stream::Messages).take(&waiting.messages);
        self.take_rows(Stream::Access, &waiting.access);
        self.take_rows(Stream::Deliveries, &waiting.deliveries);
        self.take_rows(Stream::Latency, &waiting.latency);
        self.take_rows(Stream::Stats, &waiting.stats);
        self.take_rows(Stream::Feedback, &waiting.feedback);
        let reason = self.progress.reason();
        let lost: Vec<RunRow> = waiting.lost.iter().map(|lost| self.describe_loss(lost, reason.clone(), now)).collect();
        self.segment_writer(Stream::Runs).take(&lost);
        self.progress.add_rows(Stream::Messages, waiting.messages.len() as u64, 0);
    }

    /// Rows that nobody waits for; what a failing disk leaves no room for is dropped, and counted.
    fn take_rows<R: crate::encode::rows::Row>(&mut self, stream: Stream, rows: &[R]) {
        let bytes_max = self.settings.rows_bytes_max;
        let segment_writer = self.segment_writer(stream);
        if segment_writer.failure().is_some() && segment_writer.held_bytes() > bytes_max {
            self.progress.add_lost(stream, rows.len() as u64);
            return;
        }
        segment_writer.take(rows);
        self.progress.add_rows(stream, rows.len() as u64, 0);
    }

    fn describe_loss(&self, lost: &Lost, reason: Option<String>, now: Moment) -> RunRow {
        RunRow {
            stream: Some(lost.stream.name()),
            from_arrival: lost.arrivals.map(|arrivals| arrivals.0),
            to_arrival: lost.arrivals.map(|arrivals| arrivals.1),
            count: Some(lost.count),
            reason: Some(reason.unwrap_or_else(|| "the disk was too slow".to_owned())),
            ..RunRow::new("lost", self.settings.epoch, now.wall_ms)
        }
    }

    fn probe(&mut self, now: Moment) {
        for segment_writer in &mut self.segment_writers {
            segment_writer.probe(now.mono_ms);
        }
    }

    fn write(&mut self, now: Moment) {
        for segment_writer in &mut self.segment_writers {
            let bytes = segment_writer.write(now.mono_ms);
            self.progress.add_rows(segment_writer.stream(), 0, bytes);
        }
    }

    /// Messages always, first; the other streams where it is their time.
    fn sync(&mut self, now: Moment, all: bool) {
        for segment_writer in self.segment_writers.iter_mut().take(if all { usize::MAX } else { 1 }) {
            if segment_writer.has_unsynced() {
                let began = Instant::now();
                segment_writer.sync();
                self.progress.add_sync(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
        }
        if all {
            self.synced_ms = now.mono_ms;
        }
    }

    /// Ends the run: everything that waits is written and synced, and if all of it is, the row that says so. What is open is
    /// closed. True when the run ended in order.
    pub(crate) fn end(&mut self, waiting: &Waiting, arrival: u64, now: Moment, closed: &mut Vec<Closed>) -> bool {
        self.segment_writer(Stream::Messages).end_preallocation();
        self.take(waiting, now);
        self.probe(now);
        self.write(now);
        self.sync(now, true);
        let mut is_settled = self.segment_writers.iter().all(SegmentWriter::is_settled);
        if is_settled {
            let row = RunRow { to_arrival: Some(arrival), ..RunRow::new("ended", self.settings.epoch, now.wall_ms) };
            self.segment_writer(Stream::Runs).take(&[row]);
            self.write(now);
            self.sync(now, true);
            is_settled = self.segment_writers.iter().all(SegmentWriter::is_settled);
        }
        for segment_writer in &mut self.segment_writers {
            closed.extend(std::iter::from_fn(|| segment_writer.rotate(now.mono_ms, 0, 0, true)));
        }
        for segment_writer in &self.segment_writers {
            self.progress.add_lost(segment_writer.stream(), segment_writer.held_rows());
        }
        self.tell();
        is_settled
    }

    /// How long nothing has to be done, if nothing comes.
    pub(crate) fn rest_ms(&self, now: Moment) -> u64 {
        let until = |since: u64, interval: u64| (since + interval).saturating_sub(now.mono_ms);
        let sync = self.segment_writers.iter().any(SegmentWriter::has_unsynced);
        let sync = sync.then(|| until(self.synced_ms, self.settings.sync_interval_ms));
        let probe = self.is_failing().then(|| until(self.probed_ms, self.settings.probe_interval_ms));
        let oldest = self.segment_writers.iter().filter_map(SegmentWriter::opened_ms).min();
        let seal = oldest.map(|opened| until(opened, self.settings.segment_age_ms_max));
        [sync, probe, seal].into_iter().flatten().min().unwrap_or(60_000).max(1)
    }

    /// Bytes of messages that are not known to be on the disk.
    pub(crate) fn unsynced_bytes(&self) -> usize {
        self.segment_writers.first().map_or(0, SegmentWriter::held_bytes)
    }

    fn held_bytes(&self) -> usize {
        self.segment_writers.iter().map(SegmentWriter::held_bytes).sum()
    }

    fn is_failing(&self) -> bool {
        self.segment_writers.iter().any(|segment_writer| segment_writer.failure().is_some())
    }

    fn tell(&mut self) -> bool {
        let before = self.progress.reached();
        let reason = self.segment_writers.iter().find_map(SegmentWriter::failure).map(str::to_owned);
        let is_news = self.progress.set_failing(reason.as_deref());
        if is_news && reason.is_some() {
            boot::forget(&*self.disk, &self.settings.directory);
        }
        let (journaled, synced) = self.segment_writers.first().map_or((0, 0), SegmentWriter::arrivals);
        self.progress.set_journaled(journaled);
        self.progress.set_synced(synced);
        let held = self.segment_writer(Stream::Feedback).held_rows();
        self.progress.set_feedback_synced(self.progress.rows(Stream::Feedback) - held);
        self.progress.set_unsynced_bytes(self.held_bytes());
        is_news || before != self.progress.reached()
    }

    /// There is a segment writer for each stream, in the order of `Stream::ALL`.
    fn segment_writer(&mut self, stream: Stream) -> &mut SegmentWriter {
        &mut self.segment_writers[stream as usize]
    }
}
