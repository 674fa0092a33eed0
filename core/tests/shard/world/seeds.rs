//! How many random cases a test tries. Each run has one seed, which a failure prints, so that it can be repeated.
use std::hash::{BuildHasher, RandomState};

use proptest::test_runner::{Config, RngSeed};

/// So many cases, or as many as `PROPTEST_CASES` says. Set `PROPTEST_RNG_SEED` to repeat a run that failed.
#[allow(clippy::disallowed_methods, reason = "the tester chooses how many cases are tried")]
#[allow(clippy::print_stderr, reason = "the seed of a run that fails")]
pub(crate) fn seeded(cases: u32) -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok()).unwrap_or(cases);
    let config = Config::default();
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(0_u8),
    };
    #[allow(clippy::disallowed_macros, reason = "a failed test shows it, nothing else does")]
    {
        eprintln!("PROPTEST_RNG_SEED={seed}");
    }
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..config }
}
