//! How long things took: counts in buckets that grow with the value, so that memory is fixed and nothing is rounded by
//! more than 1.6 %. Owns recording, merging and percentiles; what was timed is the caller's.
use serde::Serialize;

/// Each power of two is cut into this many buckets.
const CUT_BITS: u32 = 6;
const CUT: usize = 1 << CUT_BITS;
/// Up to 2^44 ns, almost five hours; longer counts as that.
const POWERS: usize = 44 - CUT_BITS as usize + 1;

/// Counts of nanoseconds.
#[derive(Clone)]
pub(crate) struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

/// What a histogram says, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) count: u64,
    pub(crate) mean_us: f64,
    pub(crate) p10_us: f64,
    pub(crate) p25_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p75_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; POWERS * CUT].into_boxed_slice(), count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, ns: u64) {
        let place = bucket(ns).min(self.counts.len() - 1);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum_ns, self.max_ns) = (0, 0, 0);
    }

    /// The value that `share` of all recorded values do not pass.
    pub(crate) fn percentile_ns(&self, share: f64) -> u64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return highest(place).min(self.max_ns);
            }
        }
        self.max_ns
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let at = |share| self.percentile_ns(share) as f64 / 1e3;
        Percentiles {
            count: self.count,
            mean_us: if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 / 1e3 },
            p10_us: at(0.1),
            p25_us: at(0.25),
            p50_us: at(0.5),
            p75_us: at(0.75),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.max_ns as f64 / 1e3,
        }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < CUT as u64 {
        return ns as usize;
    }
    let power = 63 - ns.leading_zeros();
    let shift = power - CUT_BITS;
    ((shift as usize + 1) << CUT_BITS) + (ns >> shift) as usize - CUT
}

/// The largest value that falls into a bucket.
fn highest(place: usize) -> u64 {
    if place < CUT {
        return place as u64;
    }
    let shift = (place >> CUT_BITS) - 1;
    (((place & (CUT - 1)) + CUT + 1) as u64) << shift.min(57) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_never_strays_by_more_than_its_share() {
        for power in 0..44 {
            for step in 0..100 {
                let ns = (1u64 << power) + step * (1u64 << power) / 100;
                let top = highest(bucket(ns));
                assert!(top >= ns && top as f64 <= ns as f64 * 1.017 + 1.0, "{ns} {top}");
            }
        }
    }

    #[test]
    fn percentiles_of_a_ramp_are_its_shares() {
        let mut ramp = Histogram::default();
        (1..=100_000).for_each(|us| ramp.record(us * 1_000));
        let says = ramp.percentiles();
        for (got, wanted) in [(says.p50_us, 50_000.0), (says.p99_us, 99_000.0), (says.p999_us, 99_900.0)] {
            assert!((got / wanted - 1.0).abs() < 0.02, "{got} {wanted}");
        }
        assert_eq!((says.max_us, says.count), (100_000.0, 100_000));
    }

    #[test]
    fn adding_is_recording_both() {
        let (mut left, mut right, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for ns in [5, 500, 5_000_000, u64::MAX >> 20] {
            left.record(ns);
            right.record(ns * 3);
            both.record(ns);
            both.record(ns * 3);
        }
        left.add(&right);
        assert_eq!(left.percentiles(), both.percentiles());
    }

    #[test]
    fn an_empty_histogram_says_zero() {
        assert_eq!(Histogram::default().percentiles(), Percentiles::default());
    }
}
