//! What the journal costs, measured on a real disk: `measure commit|write|restart DIR NUMBER` prints one line of JSON.
//! commit: 64 messages in flight, each waiting for the disk, for so many seconds. write: so many rows that nobody waits for, in turns of 64,
//! and the writer thread's CPU for each. restart: so many kept messages, closed, opened and loaded again.
#![allow(clippy::expect_used)] // a program that is run by hand says what is wrong by failing
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use godwit_core::journal::{KeptMessage, MessageRow};
use godwit_core::message::{Kind, LogId};
use godwit_core::position::Position;
use godwit_journal::disk::RealDisk;
use godwit_journal::{Budget, Journal, Settings};

const IN_FLIGHT: u64 = 64;
const CONTENT_BYTES: usize = 200;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, directory, number] = &words[..] else {
        eprintln!("usage: measure commit|write|restart DIR NUMBER");
        std::process::exit(2);
    };
    let number: u64 = number.parse().expect("a number");
    let directory = Path::new(directory).join("journal");
    match what.as_str() {
        "commit" => measure_commit(&directory, Duration::from_secs(number)),
        "write" => measure_write(&directory, number),
        _ => measure_restart(&directory, number),
    }
    let _ = std::fs::remove_dir_all(&directory); // ours, and made for this
}

fn settings(directory: &Path, run: u64) -> Settings {
    Settings { directory: directory.to_owned(), node: "bench".into(), run, epoch: run, ..Settings::default() }
}

fn rows(arrivals: std::ops::RangeInclusive<u64>, needs_disk: bool, names: &[Arc<str>]) -> Vec<MessageRow> {
    let content = [b'x'; CONTENT_BYTES];
    let make = |arrival: u64| {
        let subject = Arc::clone(&names[arrival as usize % names.len()]);
        let sequence = arrival / names.len() as u64 + 1;
        let mut kept = KeptMessage::new(1, 0, subject, Position { epoch: 1, sequence });
        kept.arrival = arrival;
        kept.time_ms = 1_795_250_000_000 + arrival / 100;
        kept.kind = Kind::Bytes;
        let message = kept.carry(&content, "", &[]).into_message(LogId { slot: 0, generation: 0 });
        let (holder, key) = (godwit_core::holder::Holder::nobody(), None);
        MessageRow { message: Arc::new(message), holder, key, numbered: None, is_mqtt: false, needs_disk }
    };
    arrivals.map(make).collect()
}

fn names(count: usize) -> Vec<Arc<str>> {
    (0..count).map(|number| format!("/bench/subject/{number}").into()).collect()
}

fn measure_commit(directory: &Path, time: Duration) {
    let (wake, woken) = channel();
    let (journal, _) = Journal::open(&settings(directory, 1), Arc::new(RealDisk), move || {
        let _ = wake.send(()); // nobody listens after the end
    })
    .expect("a journal");
    let (names, mut arrival, mut latencies) = (names(100), 0, Vec::new());
    let mut ready = rows(1..=IN_FLIGHT, true, &names);
    let began = Instant::now();
    while began.elapsed() < time {
        let sent = Instant::now();
        arrival += ready.len() as u64;
        journal.queue().push_messages(&mut ready, false);
        // What a node does while it waits: take in the next.
        ready = rows(arrival + 1..=arrival + IN_FLIGHT, true, &names);
        while journal.progress().synced_arrival() < arrival {
            let _ = woken.recv_timeout(Duration::from_secs(1)); // looked at again, whatever woke it
        }
        latencies.push(sent.elapsed());
    }
    let took = began.elapsed().as_secs_f64();
    let (syncs, sync_us) = journal.progress().syncs();
    latencies.sort_unstable();
    println!(
        "{{\"rows_s\": {:.0}, \"groups\": {}, \"group_bytes\": {}, \"group_us\": {:.1}, \"group_us_p99\": {}, \"sync_us\": {:.1}}}",
        arrival as f64 / took,
        latencies.len(),
        journal.progress().bytes() / latencies.len() as u64,
        took / latencies.len() as f64 * 1e6,
        latencies[latencies.len() * 99 / 100].as_micros(),
        sync_us as f64 / syncs as f64,
    );
}

fn measure_write(directory: &Path, count: u64) {
    let (journal, _) = Journal::open(&settings(directory, 1), Arc::new(RealDisk), || {}).expect("a journal");
    let names = names(100);
    let (mut arrival, began) = (0, Instant::now());
    while arrival < count {
        let mut turn = rows(arrival + 1..=arrival + IN_FLIGHT, false, &names);
        arrival += IN_FLIGHT;
        journal.queue().push_messages(&mut turn, false);
        while journal.queue().holds_publishers() {
            std::thread::yield_now();
        }
    }
    journal.queue().flush();
    while journal.progress().synced_arrival() < arrival {
        std::thread::yield_now();
    }
    let took = began.elapsed().as_secs_f64();
    println!(
        "{{\"rows\": {arrival}, \"rows_s\": {:.0}, \"writer_us\": {:.3}, \"row_bytes\": {:.1}}}",
        arrival as f64 / took,
        thread_cpu_us("journal") / arrival as f64,
        journal.progress().bytes() as f64 / arrival as f64,
    );
}

/// The CPU that a thread of this process has taken, in microseconds.
fn thread_cpu_us(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc").flatten();
    let is_meant = |path: &Path| std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let task = tasks.map(|task| task.path()).find(|path| is_meant(path)).expect("the thread");
    let figures = std::fs::read_to_string(task.join("schedstat")).expect("schedstat");
    figures.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") / 1000.0
}

fn measure_restart(directory: &Path, count: u64) {
    let (journal, _) = Journal::open(&settings(directory, 1), Arc::new(RealDisk), || {}).expect("a journal");
    let names = names(1000);
    let mut arrival = 0;
    while arrival < count {
        journal.queue().push_messages(&mut rows(arrival + 1..=arrival + 1000, false, &names), false);
        arrival += 1000;
        while journal.queue().holds_publishers() {
            std::thread::yield_now();
        }
    }
    assert!(journal.close(arrival), "all of it is on the disk");
    let began = Instant::now();
    let (journal, _) = Journal::open(&settings(directory, 2), Arc::new(RealDisk), || {}).expect("a journal");
    let opened = began.elapsed();
    let mut bytes = 0;
    let budget = Budget { messages: u64::MAX, bytes: u64::MAX, oldest_ms: 0 };
    let loaded = journal
        .reader()
        .load(budget, 2, &mut |messages| bytes += messages.iter().map(|kept| kept.content().len()).sum::<usize>())
        .expect("a journal that can be read");
    assert_eq!((loaded.messages, bytes), (arrival, arrival as usize * CONTENT_BYTES));
    let took = began.elapsed().as_secs_f64();
    println!("{{\"messages\": {arrival}, \"open_s\": {:.3}, \"load_s\": {took:.3}}}", opened.as_secs_f64());
}
