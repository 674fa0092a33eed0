//! Which arrivals are older than an age. A message does not carry the monotonic time, and wall time may jump; so for each
//! age that the settings name, a short ring of (time, arrival) says up to which arrival everything is at least that old.
//! Never too early; late by at most 1/128 of the age.
use std::collections::VecDeque;

const STEPS: u64 = 128;

/// The number of an age that was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Age(u16);

#[derive(Debug)]
struct Ring {
    age_ms: u64,
    /// At this monotonic time, this was the last arrival; what came back from the journal may be older than the clock.
    seen: VecDeque<(i64, u64)>,
    cutoff: u64,
}

#[derive(Debug, Default)]
pub(super) struct Ages {
    rings: Vec<Ring>,
}

impl Ages {
    /// Age 0 is never reached. At most 65,536 ages are told apart; settings name a few.
    pub(super) fn register(&mut self, age_ms: u64) -> Age {
        if let Some(at) = self.rings.iter().position(|ring| ring.age_ms == age_ms) {
            return Age(at as u16);
        }
        if self.rings.len() > usize::from(u16::MAX) {
            return Age(0);
        }
        self.rings.push(Ring { age_ms, seen: VecDeque::new(), cutoff: 0 });
        Age((self.rings.len() - 1) as u16)
    }

    /// Notes that `arrival` was the last one at `mono_ms`.
    pub(super) fn tick(&mut self, mono_ms: u64, arrival: u64) {
        self.note(mono_ms as i64, arrival);
    }

    /// The same of a moment that may have been before the clock began.
    pub(super) fn note(&mut self, mono_ms: i64, arrival: u64) {
        for ring in &mut self.rings {
            if ring.age_ms == 0 {
                continue;
            }
            while let Some(&(time, up_to)) = ring.seen.front()
                && time.saturating_add_unsigned(ring.age_ms) <= mono_ms
            {
                ring.cutoff = up_to;
                ring.seen.pop_front();
            }
            let last = ring.seen.back().copied();
            let is_due = last.is_none_or(|(time, _)| mono_ms >= time.saturating_add_unsigned(ring.age_ms / STEPS));
            if is_due && arrival > last.map_or(ring.cutoff, |(_, up_to)| up_to) {
                ring.seen.push_back((mono_ms, arrival));
            }
        }
    }

    /// Everything up to this arrival has reached the age.
    pub(super) fn cutoff(&self, age: Age) -> u64 {
        self.rings.get(usize::from(age.0)).map_or(0, |ring| ring.cutoff)
    }
}
