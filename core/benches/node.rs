//! What accepting a message costs, and what a subject keeps: `cargo bench -p godwit-core --bench node`.
//! Prints ns for each append and each drained entry, and bytes for each subject, by the growth of resident memory.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "measures with the clock and /proc"
)]
use std::sync::Arc;
use std::time::Instant;

use godwit_core::message::{Batch, Draft, Kind};
use godwit_core::node::{Entry, Node};
use godwit_core::position::Now;
use godwit_core::settings::Settings;

const TURN: usize = 64;

fn main() {
    // First, while the allocator has nothing of earlier runs to give.
    measure_subjects(100_000);
    measure_appends("1 subject, 1 shard listens", 1, 1_000_000, 1);
    measure_appends("100 subjects, 1 shard listens", 100, 1_000_000, 1);
    measure_appends("10,000 subjects, 1 shard listens", 10_000, 1_000_000, 1);
    measure_appends("100,000 subjects, nobody listens", 100_000, 1_000_000, 0);
    measure_appends("100 subjects, 8 shards listen", 100, 1_000_000, 8);
}

fn content(number: usize) -> String {
    let json = format!(r#"{{"number":{number},"bid":101.25,"ask":101.50,"venue":"XETRA","note":"#);
    let fill = 144 - json.len() - 3;
    format!("{json}\"{}\"}}", "x".repeat(fill))
}

fn new_node() -> Node {
    Node::new(&Settings { run: 1, seed: 0x1234_5678_9abc_def0, epoch: 1, ..Settings::default() })
}

fn fill(batch: &mut Batch, names: &[String], from: usize, contents: &[String], identity: &Arc<str>) {
    batch.clear();
    for number in from..from + TURN {
        let draft = Draft::new(Kind::Json, contents[number % contents.len()].as_bytes(), "", Arc::clone(identity), 1);
        batch.push(&names[number * 7919 % names.len()], draft);
    }
}

fn measure_appends(title: &str, subjects: usize, count: usize, shards: u8) {
    let mut node = new_node();
    let now = Now { mono_ms: 1, wall_ms: 1 };
    let names: Vec<String> = (0..subjects).map(|number| format!("/bench/eu/subject-{number}")).collect();
    for shard in 0..shards {
        for name in &names {
            drop(node.open(shard, name, now));
        }
    }
    let contents: Vec<String> = (0..1_000).map(content).collect();
    let (mut batch, mut outcomes, mut told): (_, _, Vec<Entry>) = (Batch::default(), Vec::new(), Vec::new());
    let identity: Arc<str> = "bench".into();
    let (mut appending, mut draining) = (0.0, 0.0);
    for turn in 0..count / TURN {
        let now = Now { mono_ms: turn as u64 / 64, wall_ms: turn as u64 / 64 };
        outcomes.clear();
        fill(&mut batch, &names, turn * TURN, &contents, &identity);
        let start = Instant::now();
        node.append(&mut batch, &mut outcomes, now);
        appending += start.elapsed().as_secs_f64();
        for shard in 0..shards {
            let start = Instant::now();
            node.drain(shard, &mut told, usize::MAX);
            draining += start.elapsed().as_secs_f64();
            told.clear();
        }
    }
    let each = 1e9 / count as f64;
    println!("{title}: {:.0} ns an append, {:.0} ns to drain", appending * each, draining * each);
}

fn measure_subjects(count: usize) {
    let before = resident_bytes();
    let mut node = new_node();
    let now = Now { mono_ms: 1, wall_ms: 1 };
    let identity: Arc<str> = "bench".into();
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    let start = Instant::now();
    for number in 0..count {
        let name = format!("/bench/eu/s{number:06}");
        drop(node.open(0, &name, now));
        batch.clear();
        outcomes.clear();
        batch.push(&name, Draft::new(Kind::Json, content(number).as_bytes(), "", Arc::clone(&identity), 1));
        node.append(&mut batch, &mut outcomes, now);
        let mut told = Vec::new();
        node.drain(0, &mut told, usize::MAX);
    }
    let spent = start.elapsed().as_secs_f64() * 1e9 / count as f64;
    let grown = (resident_bytes() - before) as f64 / count as f64;
    println!("{count} subjects of one message: {grown:.0} B each, {spent:.0} ns to open and append each");
    println!("{:?}", node.totals());
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
}
