//! What can happen to a node's log and feed, in any order.
use proptest::prelude::*;

pub(crate) const SUBJECTS: [&str; 6] = ["/a", "/a/x", "/a/y", "/b/x", "/b/y/z", "/c"];
pub(crate) const PATTERNS: [&str; 5] = ["/**", "/a/**", "/*/x", "/b/*/*", "/d/*"];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Publish {
        subject: usize,
        times: usize,
        is_guaranteed: bool,
    },
    Open {
        shard: u8,
        subject: usize,
    },
    Close {
        which: usize,
    },
    OpenPattern {
        shard: u8,
        pattern: usize,
    },
    ClosePattern {
        which: usize,
    },
    Drain {
        shard: u8,
        max: usize,
    },
    Pass {
        ms: u64,
    },
    Sweep,
    /// Begin to read everything of a pattern after a share of the feed.
    Scan {
        pattern: usize,
        share: f64,
    },
    /// The same for a subject.
    Read {
        subject: usize,
        share: f64,
    },
    /// One call of each reader.
    Advance {
        entries_max: usize,
        bytes_max: usize,
    },
    Place {
        subject: usize,
        back: u64,
    },
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    let subject = 0..SUBJECTS.len();
    prop_oneof![
        8 => (subject.clone(), prop_oneof![8 => 1..5_usize, 1 => 40..90_usize], prop::bool::weighted(0.85))
            .prop_map(|(subject, times, is_guaranteed)| Step::Publish { subject, times, is_guaranteed }),
        2 => (0..3_u8, subject.clone()).prop_map(|(shard, subject)| Step::Open { shard, subject }),
        2 => any::<usize>().prop_map(|which| Step::Close { which }),
        1 => (0..3_u8, 0..PATTERNS.len()).prop_map(|(shard, pattern)| Step::OpenPattern { shard, pattern }),
        1 => any::<usize>().prop_map(|which| Step::ClosePattern { which }),
        2 => (0..3_u8, 0..6_usize).prop_map(|(shard, max)| Step::Drain { shard, max }),
        2 => prop_oneof![1..500_u64, 4_000..15_000_u64].prop_map(|ms| Step::Pass { ms }),
        2 => Just(Step::Sweep),
        2 => (0..PATTERNS.len(), 0.0..=1.0_f64).prop_map(|(pattern, share)| Step::Scan { pattern, share }),
        2 => (subject.clone(), 0.0..=1.0_f64).prop_map(|(subject, share)| Step::Read { subject, share }),
        4 => (1..8_usize, 1..1_200_usize)
            .prop_map(|(entries_max, bytes_max)| Step::Advance { entries_max, bytes_max }),
        2 => (subject, 0..12_u64).prop_map(|(subject, back)| Step::Place { subject, back }),
    ]
}
