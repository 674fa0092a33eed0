//! What it costs to unfold a key (docs/decisions/008-keys-that-fold.md), beside sealing a small record with one that is unfolded.
//! `cargo run --release -p godwit-engine --example key_speed`
#![allow(
    clippy::disallowed_macros,
    clippy::expect_used,
    reason = "a program says what it measured, or why it could not"
)]

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

const ROUNDS: u32 = 200_000;
const RECORD_BYTES: usize = 150;

fn unfold(algorithm: &'static Algorithm, key: &[u8]) -> LessSafeKey {
    let key = UnboundKey::new(algorithm, key).expect("a key of the algorithm's length");
    LessSafeKey::new(key)
}

/// Nanoseconds of one call, the least of seven runs.
fn measure(mut call: impl FnMut()) -> f64 {
    let run = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    };
    (0..7).map(|_| run(&mut call)).fold(f64::INFINITY, f64::min)
}

fn main() {
    for (name, algorithm) in
        [("AES-128-GCM", &AES_128_GCM), ("AES-256-GCM", &AES_256_GCM), ("ChaCha20-Poly1305", &CHACHA20_POLY1305)]
    {
        let key = vec![7; algorithm.key_len()];
        let unfolding = measure(|| {
            let _ = black_box(unfold(algorithm, black_box(&key)));
        });
        let (unfolded, mut record) = (unfold(algorithm, &key), vec![0; RECORD_BYTES]);
        let sealing = measure(|| {
            let nonce = Nonce::assume_unique_for_key([1; 12]);
            let tag = unfolded.seal_in_place_separate_tag(nonce, Aad::empty(), black_box(&mut record));
            let _ = black_box(tag.expect("it seals"));
        });
        println!("{name}: unfolding {unfolding:.0} ns, sealing {RECORD_BYTES} bytes {sealing:.0} ns");
    }
}
