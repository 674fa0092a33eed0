//! Writes a small journal with rows in every stream that a node writes: `sample DIR`. What it writes is kept in journal/tests/sample, so that
//! readers of today are held to the files of yesterday. The process ends without closing it: the last segments stay open.
#![allow(clippy::expect_used)] // a program that is run by hand says what is wrong by failing
use std::path::PathBuf;
use std::sync::Arc;

use godwit_core::command::Outcome;
use godwit_core::holder::Holder;
use godwit_core::journal::{
    AccessKind, AccessRow, DeliveryRow, KeptMessage, LatencyRow, MessageRow, Peer, Range, Rows, StatsRow,
};
use godwit_core::message::{Kind, LogId};
use godwit_core::mqtt::Qos;
use godwit_core::position::Position;
use godwit_core::report::ConnectionId;
use godwit_journal::disk::RealDisk;
use godwit_journal::{Journal, Settings, Stream};

const TIME_MS: u64 = 1_795_250_000_000;

fn main() {
    let directory: PathBuf = std::env::args().nth(1).expect("usage: sample DIR").into();
    let settings = |run: u64| Settings {
        directory: directory.join("journal"),
        node: "n1".into(),
        run,
        epoch: run,
        write_interval_ms: 0,
        sync_interval_ms: 1,
        ..Settings::default()
    };
    let (journal, _) = Journal::open(&settings(0xa1), Arc::new(RealDisk), || {}).expect("a journal");
    write(&journal, 1..=20);
    assert!(journal.close(20), "all of it is on the disk");
    let (journal, _) = Journal::open(&settings(0xa2), Arc::new(RealDisk), || {}).expect("a journal");
    for arrival in 21..=30 {
        write(&journal, arrival..=arrival);
        let is_written = || journal.progress().rows(Stream::Stats) >= arrival - 20;
        while journal.progress().synced_arrival() < arrival || !is_written() {
            std::thread::yield_now();
        }
    }
    std::process::exit(0);
}

fn write(journal: &Journal, arrivals: std::ops::RangeInclusive<u64>) {
    for arrival in arrivals {
        journal.queue().push_messages(&mut vec![message(arrival)], false);
        journal.queue().push(Rows::Access(vec![access(arrival)]));
        journal.queue().push(Rows::Deliveries(vec![delivery(arrival)]));
        journal.queue().push(Rows::Latency(vec![latency(arrival)]));
        journal.queue().push(Rows::Stats(vec![stats(arrival)]));
    }
}

fn peer() -> Peer {
    let holder = Holder::new("acme", "jwt:https://id.example", "alice");
    Peer { connection: ConnectionId(7), holder, client: "sample/1".into() }
}

fn message(arrival: u64) -> MessageRow {
    let at = Position { epoch: 5, sequence: arrival };
    let mut kept = KeptMessage::new(1, 0, format!("/sample/{}", arrival % 3).into(), at);
    (kept.arrival, kept.time_ms) = (arrival, TIME_MS + arrival);
    let is_mqtt = arrival.is_multiple_of(2);
    kept.is_retained = arrival.is_multiple_of(3);
    (kept.kind, kept.qos) = if is_mqtt { (Kind::Bytes, Qos::AtLeastOnce) } else { (Kind::Json, Qos::ExactlyOnce) };
    if is_mqtt {
        kept.expiry_s = 60;
    }
    let content = format!("{{\"number\":{arrival}}}");
    let kept = match is_mqtt {
        true => kept.carry(content.as_bytes(), "", &[0x01, 0x01]),
        false => kept.carry(content.as_bytes(), "/replies", &[]),
    };
    MessageRow {
        message: Arc::new(kept.into_message(LogId { slot: 0, generation: 0 })),
        holder: Holder::new("acme", "jwt:https://id.example", "alice"),
        key: (!is_mqtt).then(|| format!("key-{arrival}").into_bytes().into()),
        numbered: is_mqtt.then(|| ("0123456789abcdef".into(), arrival)),
        is_mqtt,
        needs_disk: false,
    }
}

fn access(arrival: u64) -> AccessRow {
    let kind = if arrival.is_multiple_of(2) { AccessKind::Subscribed } else { AccessKind::Disconnected };
    let is_subscribed = kind == AccessKind::Subscribed;
    AccessRow {
        time_us: (TIME_MS + arrival) * 1_000,
        kind,
        peer: peer(),
        address: ([127, 0, 0, 1], 50_000).into(),
        protocol: "json",
        selector: is_subscribed.then(|| "/sample/**".into()),
        outcome: is_subscribed.then_some(Outcome::Recovered),
        at: is_subscribed.then(|| "a1.3.1795250000003".into()),
        code: (!is_subscribed).then_some(4000),
        reason: (!is_subscribed).then(|| "done".into()),
        duration_ms: (!is_subscribed).then_some(arrival),
    }
}

fn delivery(arrival: u64) -> DeliveryRow {
    let range = match arrival % 2 {
        0 => Range::Pattern { run: 0xa1, from: Some(arrival), to: arrival + 9 },
        _ => Range::Subject { epoch: 5, from: Some(arrival), to: arrival + 9 },
    };
    DeliveryRow {
        time_us: (TIME_MS + arrival) * 1_000,
        peer: peer(),
        selector: "/sample/**".into(),
        range,
        count: 7,
        bytes: 700,
        conflated: 1,
        gaps: 1,
        gap_count: (!arrival.is_multiple_of(3)).then_some(2),
        is_confirmed: false,
    }
}

fn latency(arrival: u64) -> LatencyRow {
    let buckets = vec![0, 1, arrival, 3, 0].into();
    LatencyRow { time_ms: TIME_MS + arrival, tenant: None, selector: "/sample/**".into(), period_ms: 10_000, buckets }
}

fn stats(arrival: u64) -> StatsRow {
    let is_now = arrival.is_multiple_of(2);
    StatsRow {
        time_ms: TIME_MS + arrival,
        metric: "messages_in".into(),
        scope: "node".into(),
        label: "".into(),
        window: if is_now { "now" } else { "1min" }.into(),
        covered_s: if is_now { 0.0 } else { 60.0 },
        value: is_now.then_some(1.5),
        max: (!is_now).then_some(3.5),
        mean: (!is_now).then_some(2.25),
        deviation: (!is_now).then_some(0.5),
    }
}
