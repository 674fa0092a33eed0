//! What a delivery costs the shard itself, the kernel's part left out: `cargo bench -p godwit-core --bench deliver`.
//! Prints ns for each delivery into sockets that take everything and do nothing, with the journal's ledger
//! and without. What is counted for the statistics is part of both. Cursors and connections of other subjects lie between those
//! that are walked, as they do in a node where clients come in any order.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "measures with the clock"
)]
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use godwit_core::holder::Holder;
use godwit_core::message::{Batch, Draft, Kind};
use godwit_core::node::Node;
use godwit_core::position::Now;
use godwit_core::settings::{JournalSettings, RuleSettings, Settings};
use godwit_core::shard::{Sending, Shard, SocketOutput};

/// Takes everything at once.
struct Sink(u64);

impl SocketOutput for Sink {
    fn send(&mut self, _socket: u32, bytes: &[u8], _token: u32) -> Sending {
        self.0 += bytes.len() as u64;
        Sending::Done(bytes.len())
    }
    fn want_write(&mut self, _socket: u32) {}
    fn pause_read(&mut self, _socket: u32) {}
    fn resume_read(&mut self, _socket: u32) {}
    fn close(&mut self, _socket: u32) {}
    fn finish(&mut self, _socket: u32) {}
    fn stop_accepting(&mut self) {}
    fn wake(&mut self, _shards: u64) {}
}

fn main() {
    for (subjects, subscribers) in [(1, 1_000), (100, 100)] {
        for is_journaled in [false, true] {
            // The first round warms up.
            let ns = (0..6).map(|_| measure(subjects, subscribers, is_journaled)).skip(1).fold(f64::MAX, f64::min);
            let with = if is_journaled { "with" } else { "without" };
            println!("{subjects} x {subscribers}, {with} the journal's ledger: {ns:.1} ns a delivery");
        }
    }
}

/// ns a delivery, each message in a turn of its own.
fn measure(subjects: usize, subscribers: usize, is_journaled: bool) -> f64 {
    let (mut shard, node) = open(is_journaled);
    let (mut sink, mut now) = (Sink(0), Now { mono_ms: 1_000, wall_ms: 1_795_250_000_000 });
    shard.begin(now);
    for socket in 0..(subjects * subscribers) as u32 {
        join(&mut shard, socket, socket as usize % subjects, &mut sink);
    }
    shard.turn(&mut sink);
    let holder = Holder::new("", "basic", "bench");
    let content = format!("{{\"x\":\"{}\"}}", "y".repeat(134));
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    let messages = 500_000 / subscribers;
    let (sent, mut spent_ns) = (sink.0, 0_u128);
    for number in 0..messages {
        now = Now { mono_ms: now.mono_ms + 4, wall_ms: now.wall_ms + 4 };
        batch.clear();
        outcomes.clear();
        let draft = Draft::new(Kind::Json, content.as_bytes(), "", Arc::clone(&holder), u32::MAX);
        batch.push(&format!("/bench/{}", number % subjects), draft);
        if let Ok(mut node) = node.lock() {
            node.append(&mut batch, &mut outcomes, now);
        }
        shard.begin(now);
        let start = Instant::now();
        shard.turn(&mut sink);
        spent_ns += start.elapsed().as_nanos();
        shard.take_rows(drop);
    }
    assert!(sink.0 - sent > (messages * subscribers * content.len()) as u64, "every message to every subscriber");
    spent_ns as f64 / (messages * subscribers) as f64
}

fn open(is_journaled: bool) -> (Shard, Arc<Mutex<Node>>) {
    let rules = vec![RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: "allow".into() }];
    let mut settings = Settings { shards: 1, anonymous: Some(rules), run: 1, epoch: 1, ..Settings::default() };
    settings.journal = is_journaled.then(JournalSettings::default);
    let settings = Arc::new(settings);
    let node = Arc::new(Mutex::new(Node::new(&settings)));
    (Shard::new(0, settings, Arc::clone(&node)), node)
}

fn join(shard: &mut Shard, socket: u32, subject: usize, sink: &mut Sink) {
    shard.accept(socket, SocketAddr::from(([127, 0, 0, 1], 4_000)), 0, sink);
    let head = "GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: godwit.v1.json\r\n\r\n";
    shard.receive(socket, &mut head.as_bytes().to_vec(), sink);
    let command = format!("{{\"id\":1,\"subscribe\":\"/bench/{subject}\"}}");
    // A mask of zeros leaves the bytes as they are.
    let mut frame = vec![0x81, 0x80 | command.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(command.as_bytes());
    shard.receive(socket, &mut frame, sink);
}
