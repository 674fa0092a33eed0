//! What accepting a message costs, and what a subject keeps: `cargo bench -p godwit-core --bench node`.
//! Prints ns for each append and each drained entry, and bytes for each subject, by the growth of resident memory.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "measures with the clock and /proc"
)]
use std::sync::Arc;

use godwit_core::holder::Holder;
use godwit_core::message::{Batch, Draft, Kind};
use godwit_core::node::{Entry, Found, MISSING_MAX, Node, ScanBudget, ScanRange};
use godwit_core::position::Now;
use godwit_core::settings::Settings;
use godwit_core::subject::Pattern;

const TURN: usize = 64;

fn main() {
    // First, while the allocator has nothing of earlier runs to give.
    measure_subjects(100_000);
    measure_sweeps(1_000_000);
    measure_walks(500_000);
    measure_appends("1 subject, 1 shard listens", 1, 1_000_000, 1);
    measure_appends("100 subjects, 1 shard listens", 100, 1_000_000, 1);
    measure_appends("10,000 subjects, 1 shard listens", 10_000, 1_000_000, 1);
    measure_appends("100,000 subjects, nobody listens", 100_000, 1_000_000, 0);
    measure_full("10,000 subjects in 16 MB, 1 shard listens", 10_000, 1_000_000, 1, 16 << 20);
    measure_full("100,000 subjects in 16 MB, nobody listens", 100_000, 1_000_000, 0, 16 << 20);
    measure_appends("100 subjects, 8 shards listen", 100, 1_000_000, 8);
}

/// Prints what it takes to walk the feed for a pattern of 10 subjects among 10,000, and for all of them.
fn measure_walks(count: usize) {
    let mut node = new_node();
    let holder = Holder::new("", "basic", "bench");
    let names: Vec<String> = (0..10_000).map(|number| format!("/bench/{}/{number}", number % 1_000)).collect();
    let contents: Vec<String> = (0..1_000).map(content).collect();
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    for turn in 0..count / TURN {
        fill(&mut batch, &names, turn * TURN, &contents, &holder);
        outcomes.clear();
        node.append(&mut batch, &mut outcomes, Now { mono_ms: 1, wall_ms: 1 });
    }
    for (text, rounds) in [("/bench/7/*", 1_000), ("/bench/**", 10)] {
        let Ok(pattern) = Pattern::parse(text) else { return };
        let (start, mut found) = (spent_ns(), 0);
        for _ in 0..rounds {
            let mut reached = 0;
            while reached < node.arrival() {
                let mut brought = Found::default();
                let budget = ScanBudget { entries_max: 4_096, bytes_max: 65_536, missing_max: MISSING_MAX };
                let way = ScanRange { after: reached, until: node.arrival(), budget };
                reached = node.scan_pattern(&pattern, way, &mut brought).reached;
                found += brought.messages.len();
            }
        }
        let each = (spent_ns() - start) / 1e3 / f64::from(rounds);
        let found = found / rounds as usize;
        println!("walk of {text} over {count} arrivals: {each:.0} us for {found} messages");
    }
}

/// Prints what a round of sweeps over many logs takes: each call is one section under the lock.
fn measure_sweeps(count: usize) {
    let mut node = new_node();
    let holder = Holder::new("", "basic", "bench");
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    for number in 0..count {
        batch.clear();
        outcomes.clear();
        let mut draft = Draft::new(Kind::Text, b"x", "", Arc::clone(&holder), 1);
        draft.is_retained = Some(false);
        batch.push(&format!("/bench/eu/s{number:07}"), draft);
        node.append(&mut batch, &mut outcomes, Now { mono_ms: 1, wall_ms: 1 });
    }
    for (what, mono_ms) in [("nothing to do", 2), ("ages begin", 10_000), ("all forgotten", 400_000)] {
        let (mut calls, start) = (0, spent_ns());
        loop {
            let has_more = node.sweep(Now { mono_ms, wall_ms: mono_ms });
            calls += 1;
            if !has_more {
                break;
            }
        }
        let each = (spent_ns() - start) / 1e6 / f64::from(calls);
        println!("sweep of {count} subjects, {what}: {calls} calls, {each:.2} ms each");
    }
}

fn content(number: usize) -> String {
    let json = format!(r#"{{"number":{number},"bid":101.25,"ask":101.50,"venue":"XETRA","note":"#);
    let fill = 144 - json.len() - 3;
    format!("{json}\"{}\"}}", "x".repeat(fill))
}

fn new_node() -> Node {
    Node::new(&Settings { run: 1, seed: 0x1234_5678_9abc_def0, epoch: 1, ..Settings::default() })
}

fn fill(batch: &mut Batch, names: &[String], from: usize, contents: &[String], holder: &Arc<Holder>) {
    batch.clear();
    for number in from..from + TURN {
        let draft = Draft::new(Kind::Json, contents[number % contents.len()].as_bytes(), "", Arc::clone(holder), 1);
        batch.push(&names[number * 7919 % names.len()], draft);
    }
}

fn measure_appends(title: &str, subjects: usize, count: usize, shards: u8) {
    measure_full(title, subjects, count, shards, 1 << 40);
}

/// As many appends, to a node that may keep no more than so many bytes.
fn measure_full(title: &str, subjects: usize, count: usize, shards: u8, logs_bytes_max: usize) {
    let mut settings = Settings { run: 1, seed: 0x1234_5678_9abc_def0, epoch: 1, ..Settings::default() };
    settings.limits.logs_bytes_max = logs_bytes_max;
    let mut node = Node::new(&settings);
    let now = Now { mono_ms: 1, wall_ms: 1 };
    let names: Vec<String> = (0..subjects).map(|number| format!("/bench/eu/subject-{number}")).collect();
    for shard in 0..shards {
        for name in &names {
            drop(node.open(shard, name, now));
        }
    }
    let contents: Vec<String> = (0..1_000).map(content).collect();
    let (mut batch, mut outcomes, mut entries): (_, _, Vec<Entry>) = (Batch::default(), Vec::new(), Vec::new());
    let holder = Holder::new("", "basic", "bench");
    // What building the drafts costs is measured apart and taken off.
    let start = spent_ns();
    for turn in 0..count / TURN {
        fill(&mut batch, &names, turn * TURN, &contents, &holder);
    }
    let building = spent_ns() - start;
    let start = spent_ns();
    for turn in 0..count / TURN {
        let now = Now { mono_ms: turn as u64 / 64, wall_ms: turn as u64 / 64 };
        outcomes.clear();
        fill(&mut batch, &names, turn * TURN, &contents, &holder);
        node.append(&mut batch, &mut outcomes, now);
        for shard in 0..shards {
            node.drain(shard, &mut entries, usize::MAX);
            entries.clear();
        }
    }
    let each = (spent_ns() - start - building) / count as f64;
    let refused = node.totals().refused;
    println!("{title}: {each:.0} ns an append and its drains, {refused} refused");
}

fn measure_subjects(count: usize) {
    let before = resident_bytes();
    let mut node = new_node();
    let now = Now { mono_ms: 1, wall_ms: 1 };
    let holder = Holder::new("", "basic", "bench");
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    let start = spent_ns();
    for number in 0..count {
        let name = format!("/bench/eu/s{number:06}");
        drop(node.open(0, &name, now));
        batch.clear();
        outcomes.clear();
        batch.push(&name, Draft::new(Kind::Json, content(number).as_bytes(), "", Arc::clone(&holder), 1));
        node.append(&mut batch, &mut outcomes, now);
        let mut entries = Vec::new();
        node.drain(0, &mut entries, usize::MAX);
    }
    let spent = (spent_ns() - start) / count as f64;
    let grown = (resident_bytes() - before) as f64 / count as f64;
    println!("{count} subjects of one message: {grown:.0} B each, {spent:.0} ns to open and append each");
    println!("{:?}", node.totals());
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
}

/// What this thread has spent on a processor, so that a busy machine measures the same.
fn spent_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}
