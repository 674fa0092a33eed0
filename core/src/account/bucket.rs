//! A rate, and what has been taken of it: a bucket that fills again with time, kept as one number. Pure, and without a lock: the
//! shards of a node take from the same bucket.
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
/// Nobody waits longer than this for what was taken: a single very large thing does not shut its sender out for a day.
const WAIT_NS_MAX: u64 = 600 * SECOND_NS;

/// So many in a time, and how much of that may come at once after a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// 0: there is no limit.
    count: u64,
    period_ns: u64,
    burst_ns: u64,
}

impl Rate {
    pub fn per_second(count: u64, burst_ms: u64) -> Self {
        Self { count, period_ns: SECOND_NS, burst_ns: burst_ms.saturating_mul(1_000_000) }
    }

    /// All of a minute's may come at once.
    pub fn per_minute(count: u64) -> Self {
        Self { count, period_ns: 60 * SECOND_NS, burst_ns: 60 * SECOND_NS }
    }

    pub const fn is_off(self) -> bool {
        self.count == 0
    }

    fn price_ns(self, units: u64) -> u64 {
        let price = u128::from(units) * u128::from(self.period_ns) / u128::from(self.count.max(1));
        u64::try_from(price).unwrap_or(u64::MAX).min(WAIT_NS_MAX)
    }
}

/// The moment (monotonic ns) at which all that was taken has been made good; one that lies in the past is a full bucket.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

impl Bucket {
    /// How long to wait (ms, at least 1) before so many may be taken; none: now. A full bucket gives any number once, so that
    /// what is larger than a burst passes too.
    pub fn wait_ms(&self, rate: Rate, now_ns: u64, units: u64) -> Option<u32> {
        let owed_ns = self.owed_ns(now_ns);
        if rate.is_off() || owed_ns == 0 {
            return None;
        }
        let over_ns = owed_ns.saturating_add(rate.price_ns(units)).saturating_sub(rate.burst_ns).min(owed_ns);
        (over_ns > 0).then(|| u32::try_from(over_ns.div_ceil(1_000_000)).unwrap_or(u32::MAX))
    }

    /// Takes so many, whatever that leaves to be made good.
    pub fn take(&self, rate: Rate, now_ns: u64, units: u64) {
        if !rate.is_off() {
            let price_ns = rate.price_ns(units);
            let next = |made_ns: u64| {
                let from = made_ns.max(now_ns);
                from.saturating_add(price_ns).min(now_ns.saturating_add(WAIT_NS_MAX.max(rate.burst_ns)))
            };
            // Never refused: the closure always has an answer.
            let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |made_ns| Some(next(made_ns)));
        }
    }

    /// Both: true when they were there.
    pub fn try_take(&self, rate: Rate, now_ns: u64, units: u64) -> bool {
        let is_there = self.wait_ms(rate, now_ns, units).is_none();
        if is_there {
            self.take(rate, now_ns, units);
        }
        is_there
    }

    /// How far (ns) it is from full.
    pub fn owed_ns(&self, now_ns: u64) -> u64 {
        self.0.load(Ordering::Relaxed).saturating_sub(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_rate_is_kept_over_time_whatever_the_pauses_and_a_burst_is_one_of_its_size() {
        let (rate, bucket) = (Rate::per_second(10, 1_000), Bucket::default());
        let mut now_ns = 5_000 * MS;
        let take_all = |now_ns: u64| (0..100).take_while(|_| bucket.try_take(rate, now_ns, 1)).count();
        assert_eq!(take_all(now_ns), 10, "a second's worth at once");
        for _ in 0..50 {
            now_ns += 250 * MS;
            assert!((2..=3).contains(&take_all(now_ns)), "and then ten a second");
        }
        now_ns += 3_600_000 * MS;
        assert_eq!(take_all(now_ns), 10, "an hour's pause saves up no more than that");
    }

    #[test]
    fn who_must_wait_is_told_how_long_and_not_a_millisecond_too_little() {
        let (rate, bucket) = (Rate::per_second(4, 500), Bucket::default());
        let now_ns = 77 * MS;
        assert!(bucket.try_take(rate, now_ns, 1) && bucket.try_take(rate, now_ns, 1));
        let wait_ms = bucket.wait_ms(rate, now_ns, 1).unwrap();
        assert_eq!(wait_ms, 250);
        assert!(!bucket.try_take(rate, now_ns + u64::from(wait_ms - 1) * MS, 1));
        assert!(bucket.try_take(rate, now_ns + u64::from(wait_ms) * MS, 1));
    }

    #[test]
    fn what_is_larger_than_a_burst_passes_a_full_bucket_and_is_made_good_afterwards() {
        let (rate, bucket) = (Rate::per_second(1_000, 1_000), Bucket::default());
        assert!(bucket.try_take(rate, MS, 5_000));
        assert_eq!(bucket.wait_ms(rate, MS, 1), Some(4_001));
        assert!(!bucket.try_take(rate, 3_000 * MS, 5_000));
        assert!(bucket.try_take(rate, 5_001 * MS, 5_000));
        let huge = Bucket::default();
        huge.take(rate, 0, u64::MAX);
        assert!(huge.owed_ns(0) <= WAIT_NS_MAX);
    }

    #[test]
    fn a_limit_that_is_off_takes_nothing() {
        let (rate, bucket) = (Rate::per_second(0, 1_000), Bucket::default());
        assert!((0..1_000).all(|_| bucket.try_take(rate, 0, u64::MAX)));
        assert_eq!(bucket.owed_ns(0), 0);
    }
}
