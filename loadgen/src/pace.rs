//! When the next message is due. Open loop: message `n` is due at `start + n / rate` whatever happened to those before it,
//! and carries that time as its stamp. Closed loop: as many as the window allows, each due now.
use crate::plan::Step;
use crate::tally::Sums;

/// Messages issued in one turn at most, so that reading never waits long for publishing.
const TURN_MAX: u64 = 512;

pub(crate) struct Pace {
    start_ns: u64,
    messages: u64,
    interval_ns: f64,
    in_flight: u64,
    pub(crate) ahead_max: u64,
    issued: u64,
    acked_before: u64,
}

/// What may be issued now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now {
        stamp_ns: u64,
    },
    At {
        ns: u64,
    },
    /// The window is full, or all is issued: something must be heard first.
    Waiting,
}

impl Pace {
    /// The pace of a publish step that begins now; `counts` are the sums so far.
    pub(crate) fn of_step(step: &Step, now_ns: u64, counts: &Sums) -> Option<Self> {
        let Step::Publish { messages, rate, in_flight, ahead_max, .. } = step else { return None };
        Some(Self {
            start_ns: now_ns,
            messages: *messages,
            interval_ns: if *rate > 0.0 { 1e9 / rate } else { 0.0 },
            in_flight: *in_flight,
            ahead_max: *ahead_max,
            issued: 0,
            acked_before: counts.acked,
        })
    }

    /// Whether the next message is due; `acked` counts since the load began, `turn` those issued in this turn.
    pub(crate) fn due(&self, now_ns: u64, acked: u64, turn: u64) -> Due {
        let in_flight = self.issued - (acked - self.acked_before).min(self.issued);
        if self.issued == self.messages || (self.in_flight > 0 && in_flight >= self.in_flight) {
            return Due::Waiting;
        }
        if self.interval_ns == 0.0 {
            return if turn < TURN_MAX { Due::Now { stamp_ns: now_ns } } else { Due::At { ns: now_ns } };
        }
        let due_ns = self.start_ns + (self.issued as f64 * self.interval_ns) as u64;
        if due_ns <= now_ns && turn < TURN_MAX { Due::Now { stamp_ns: due_ns } } else { Due::At { ns: due_ns } }
    }

    pub(crate) fn issue(&mut self) {
        self.issued += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: f64, in_flight: u64) -> Pace {
        let step = Step::Publish { name: String::new(), messages: 1_000, rate, in_flight, ahead_max: 0 };
        Pace::of_step(&step, 1_000, &Sums::default()).unwrap()
    }

    #[test]
    fn a_late_publisher_keeps_the_intended_times() {
        let mut pace = pace(1e6, 0);
        for n in 0..3 {
            assert_eq!(pace.due(900_000, 0, n), Due::Now { stamp_ns: 1_000 + n * 1_000 });
            pace.issue();
        }
        assert_eq!(pace.due(1_500, 0, 3), Due::At { ns: 4_000 });
    }

    #[test]
    fn a_full_window_waits_for_an_acknowledgement() {
        let mut pace = pace(0.0, 2);
        pace.issue();
        pace.issue();
        assert_eq!(pace.due(5_000, 0, 0), Due::Waiting);
        assert_eq!(pace.due(5_000, 1, 0), Due::Now { stamp_ns: 5_000 });
    }
}
