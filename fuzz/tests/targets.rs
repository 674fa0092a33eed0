//! The fuzz targets, one a parser. Under `cargo test` each makes a bounded random pass.

use bolero::check;

#[test]
fn frames() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::frames(input));
}

#[test]
fn head() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::head(input));
}

#[test]
fn chunks() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::chunks(input));
}

#[test]
fn json() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::json(input));
}

#[test]
fn json_commands() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::json_commands(input));
}

#[test]
fn binary_commands() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::binary_commands(input));
}

#[test]
fn extensions() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::extensions(input));
}

#[test]
fn deflate() {
    check!().with_iterations(2_000).for_each(|input: &[u8]| godwit_fuzz::deflate(input));
}

#[test]
fn proxy() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::proxy(input));
}

#[test]
fn names() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::names(input));
}

#[test]
fn places() {
    check!().with_iterations(50_000).for_each(|input: &[u8]| godwit_fuzz::places(input));
}

#[test]
fn mqtt() {
    check!().with_iterations(20_000).for_each(|input: &[u8]| godwit_fuzz::mqtt(input));
}

#[test]
fn mqtt_session() {
    let steps = bolero::produce::<Vec<u8>>().with().len(0usize..2_000);
    check!()
        .with_iterations(1_000)
        .with_max_len(20_000)
        .with_generator(steps)
        .for_each(|input| godwit_fuzz::mqtt_session(input));
}

#[test]
fn session() {
    let steps = bolero::produce::<Vec<u8>>().with().len(0usize..1_500);
    check!()
        .with_iterations(300)
        .with_max_len(20_000)
        .with_generator(steps)
        .for_each(|input| godwit_fuzz::session(input));
}

#[test]
fn journal() {
    check!().with_iterations(100).for_each(|input: &[u8]| godwit_fuzz::journal(input));
}
