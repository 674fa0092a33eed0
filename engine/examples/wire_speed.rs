//! How long one publish takes to parse and one message to write, a core, in nanoseconds. Run with
//! `cargo run --release -p godwit-engine --example wire_speed`; the goals are 1,000 ns (JSON) and 300 ns (binary) a publish.

use std::hint::black_box;
use std::time::Instant;

use godwit_core::codec::{self, Wire};
use godwit_core::command::{MessageView, Push};
use godwit_core::http::read_head;
use godwit_core::limits::Limits;
use godwit_core::message::Kind;
use godwit_core::position::Position;
use godwit_core::websocket::{Reader, frame};

const ROUNDS: usize = 200_000;

fn measure(name: &str, mut work: impl FnMut()) {
    let best = (0..5).map(|_| {
        let begin = Instant::now();
        (0..ROUNDS).for_each(|_| work());
        begin.elapsed().as_nanos() as f64 / ROUNDS as f64
    });
    let best = best.fold(f64::INFINITY, f64::min);
    println!("{name:32} {best:7.1} ns");
}

fn main() {
    let limits = Limits::default();
    let content = br#"{"symbol":"IBM","bid":183.25,"ask":183.27,"last":183.26,"volume":1203300,"time":1795250000123,"flags":["a","b"],"venue":"XNYS","side":"buy"}"#;
    let json = [br#"{"id":12345,"publish":"/stocks/nyse/ibm","content":"#.as_slice(), content, b"}"].concat();
    let binary = [b"\x43\x01\x00\x00\x10/stocks/nyse/ibm".as_slice(), content].concat();
    println!("content {} bytes, JSON {} bytes, binary {} bytes", content.len(), json.len(), binary.len());
    for (wire, payload) in [(Wire::Json, &json), (Wire::Binary, &binary)] {
        measure(&format!("parse a publish, {}", wire.name()), || {
            let mut commands = codec::commands(wire, black_box(payload), &limits).ok();
            black_box(commands.as_mut().and_then(codec::Commands::next)).map(drop).unwrap_or_default();
        });
        let mut masked = Vec::new();
        frame(&mut masked, if wire == Wire::Json { 1 } else { 2 }, [0; 4], payload);
        let mut reader = Reader::default();
        measure(&format!("read its frame, {}", wire.name()), || {
            let mut input = black_box(masked.as_mut_slice());
            black_box(reader.read(&mut input, &limits).is_ok());
        });
        let at = Some(Position { epoch: 7, sequence: 123_456 });
        let view = MessageView {
            number: 5,
            base_time_ms: 1_795_250_000_000,
            subject: "/stocks/nyse/ibm",
            at,
            after: None,
            time_ms: 1_795_250_000_123,
            kind: Kind::Json,
            fields: &[],
            content,
            reply_to: None,
            conflated: 0,
            pattern: None,
            is_snapshot: false,
            is_patch: false,
            is_removal: false,
        };
        let mut out = Vec::with_capacity(1 << 16);
        measure(&format!("write a message, {}", wire.name()), || {
            out.clear();
            codec::push(wire, black_box(&mut out), black_box(&Push::Message(view)));
        });
    }
    let head = b"GET /v1/live HTTP/1.1\r\nHost: 127.0.0.1:8800\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: godwit.v1.json\r\n\r\n";
    measure("answer a request head", || {
        black_box(read_head(black_box(head), &limits).is_ok());
    });
    measure("merge two snapshots", || {
        black_box(godwit_core::json::merge(black_box(content), black_box(content), godwit_core::json::Nulls::Remove));
    });
    measure("merge one field", || {
        black_box(godwit_core::json::merge(
            black_box(content),
            black_box(br#"{"bid":183.24}"#),
            godwit_core::json::Nulls::Remove,
        ));
    });
}
