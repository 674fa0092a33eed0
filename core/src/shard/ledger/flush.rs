//! When what was noted becomes rows: ranges a share at a time, each once it has grown for an interval; latencies all at
//! once, and a stream's when nobody listens to it any more.
use std::sync::Arc;

use super::{LOOKS_MIN, Ledger, SHARE};
use crate::journal::{LatencyRow, Rows};
use crate::position::Now;
use crate::settings::Settings;
use crate::shard::Shard;

impl Ledger {
    /// What was timed of a stream since the last time becomes a row: a period is over, or the stream.
    pub(in crate::shard) fn end_latency(&mut self, id: u32, selector: &Arc<str>, settings: &Settings, now: Now) {
        let Some(buckets) = self.latency.get_mut(id as usize).and_then(Option::take) else { return };
        if !settings.journals(selector) {
            return;
        }
        self.latencies.push(LatencyRow {
            time_ms: now.wall_ms,
            tenant: None,
            selector: Arc::clone(selector),
            period_ms: now.mono_ms.saturating_sub(self.timed_ms),
            buckets: Box::from(&buckets[..]),
        });
    }
}

impl Shard {
    /// Ranges that have grown for long enough become rows, a share of them at a time, and latencies do.
    pub(in crate::shard) fn sweep_ledger(&mut self) {
        let now_ms = self.now.mono_ms;
        let Some(ledger) = &mut self.written.ledger else { return };
        ledger.now_ms = now_ms;
        for _ in 0..(ledger.grown.len() / SHARE).max(LOOKS_MIN) {
            let Some(ledger) = &mut self.written.ledger else { return };
            let interval_ms = ledger.interval_ms;
            let Some((_, id)) = ledger.grown.pop_front_if(|(since_ms, _)| *since_ms + interval_ms <= now_ms) else {
                break;
            };
            ledger.at(id).is_noted = false;
            if self.is_amid(id) {
                if let Some(ledger) = &mut self.written.ledger {
                    ledger.grow(id, 0, 0);
                }
            } else if self.cursors.get(id).is_some() {
                self.end_range(id);
            }
        }
        if self.written.ledger.as_ref().is_some_and(|ledger| ledger.timed_ms + ledger.interval_ms <= now_ms) {
            self.flush_latency();
        }
    }

    fn flush_latency(&mut self) {
        let Some(ledger) = &mut self.written.ledger else { return };
        for id in 0..ledger.latency.len() as u32 {
            if let Some(stream) = self.streams.get(id) {
                ledger.end_latency(id, &stream.name, &self.settings, self.now);
            }
        }
        ledger.timed_ms = self.now.mono_ms;
    }

    /// Rows since the last call.
    pub fn take_rows(&mut self, mut each: impl FnMut(Rows)) {
        let Some(ledger) = &mut self.written.ledger else { return };
        if !ledger.access.is_empty() {
            each(Rows::Access(std::mem::take(&mut ledger.access)));
        }
        if !ledger.deliveries.is_empty() {
            each(Rows::Deliveries(std::mem::take(&mut ledger.deliveries)));
        }
        if !ledger.latencies.is_empty() {
            each(Rows::Latency(std::mem::take(&mut ledger.latencies)));
        }
    }

    /// All ranges and latencies become rows: the node stops.
    pub fn end_ledger(&mut self) {
        let ids: Vec<u32> = self.cursors.indices_from(0).collect();
        for id in ids {
            self.end_range(id);
        }
        for stream in self.streams.indices_from(0).collect::<Vec<u32>>() {
            self.note_dealt(stream);
        }
        self.flush_latency();
    }
}
