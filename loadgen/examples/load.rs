//! Runs the plan on standard input and prints its result: `cargo run --release -p godwit-loadgen --example load < plan.json`.
use std::io::Read;

fn main() -> Result<(), String> {
    let mut plan = String::new();
    std::io::stdin().read_to_string(&mut plan).map_err(|error| error.to_string())?;
    let mut loadgen = godwit_loadgen::LoadGenerator::new(&plan)?;
    loadgen.start()?;
    println!("{}", loadgen.result());
    Ok(())
}
