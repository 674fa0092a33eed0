//! What clients may do to a node, and what it does then.

use crate::client::{Client, Node, UPGRADE, frame};
use godwit_core::report::{ConnectionId, ConnectionList};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

fn at(message: &str) -> u64 {
    let from = message.find(r#""at":"7."#).map(|at| at + 8).unwrap_or_else(|| panic!("no position in {message}"));
    message[from..].split('"').next().unwrap().parse().unwrap()
}

pub(crate) fn a_client_that_never_reads_costs_the_others_nothing(driver: &str) {
    let node =
        Node::start(driver, 2, r#""log_messages_max":100,"stream_window_bytes_max":65536,"ping_interval_ms":600000"#);
    let mut deaf: Vec<Client> = (0..5).map(|_| node.client()).collect();
    let mut reader = node.client();
    for client in deaf.iter_mut().chain([&mut reader]) {
        client.send(r#"{"id":1,"subscribe":"/a"}"#);
        assert!(client.read().contains("subscribed"));
    }
    let mut publisher = node.client();
    let content = "x".repeat(1000);
    const MESSAGES: u64 = 20_000;
    for number in 1..=MESSAGES {
        publisher.send(&format!(r#"{{"id":1,"publish":"/a","text":"{content}"}}"#));
        assert_eq!(at(&publisher.read()), number);
        assert_eq!(at(&reader.read()), number, "the reader misses nothing");
    }
    for figures in node.engine.stats().shards {
        assert!(figures.shard.window_bytes <= 256 * 1024 && figures.shard.held_bytes == 0, "{figures:?}");
    }
    // Each of them still hears how far the log has moved on, and stands at the head afterwards.
    for client in &mut deaf {
        let (mut last, mut gaps) = (0, 0);
        while last < MESSAGES {
            let message = client.read();
            gaps += u64::from(message.contains(r#"{"gap""#));
            if !message.contains(r#"{"gap""#) && !message.contains(r#""snapshot":true"#) && gaps == 0 {
                assert_eq!(at(&message), last + 1, "nothing missing without a gap");
            }
            last = at(&message);
        }
        assert!(gaps >= 1, "a gap is told");
    }
}

pub(crate) fn half_a_handshake_is_ended_by_its_deadline(driver: &str) {
    let node = Node::start(driver, 1, r#""handshake_ms_max":1000"#);
    let began = Instant::now();
    let mut silent = Client::connect(node.address());
    let mut slow = Client::connect(node.address());
    slow.stream.write_all(&UPGRADE[..40]).unwrap();
    while silent.fill() {}
    while slow.fill() {}
    assert!(began.elapsed().as_millis() >= 900, "before the deadline");
    node.until("both are forgotten", |_| node.connections() == 0);
}

pub(crate) fn a_node_stops_under_load(driver: &str) {
    let node = Node::start(driver, 2, "");
    let clients: Vec<Client> = (0..4).map(|_| node.client()).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, mut client) in clients.into_iter().enumerate() {
            let is_over = &is_over;
            scope.spawn(move || {
                client.send(r#"{"id":1,"subscribe":"/load/**"}"#);
                let batch: Vec<u8> =
                    (0..50).flat_map(|_| frame(&format!(r#"{{"publish":"/load/{number}","content":1}}"#))).collect();
                let mut writer = client.stream.try_clone().unwrap();
                scope.spawn(move || while writer.write_all(&batch).is_ok() {});
                while client.next().is_some() {}
                assert!(is_over.load(Ordering::Acquire), "ended before the node did: {}", client.farewell);
            });
        }
        node.until("the load runs", |engine| engine.stats().totals.accepted > 20_000);
        is_over.store(true, Ordering::Release);
        node.engine.stop();
    });
}

pub(crate) fn a_broken_connection_is_given_up_and_its_number_used_again(driver: &str) {
    let node = Node::start(driver, 1, "");
    let mut publisher = node.client();
    let mut steady = node.client();
    steady.send(r#"{"id":1,"subscribe":"/a"}"#);
    steady.read();
    for round in 1..=100_u64 {
        let mut fleeting = node.client();
        fleeting.send(r#"{"id":1,"subscribe":"/a"}"#);
        fleeting.read();
        publisher.send(r#"{"id":1,"publish":"/a","content":1}"#);
        publisher.read();
        assert_eq!(at(&steady.read()), round);
        // Closed with a message unread: the node's socket is reset.
        drop(fleeting);
    }
    node.until("all that broke are forgotten", |_| node.connections() == 2);
    let list = ConnectionList { after: ConnectionId(0), limit: 10, search: None, is_behind: false };
    let (rows, _) = node.engine.connections(list);
    assert!(rows.iter().all(|row| row.connection.slot() < 100), "numbers are used again");
}

pub(crate) fn a_flood_of_publishes_is_answered_in_order_by_two_shards(driver: &str) {
    let node = Node::start(driver, 2, r#""log_messages_max":10000"#);
    let address = node.address();
    std::thread::scope(|scope| {
        for number in 0..6 {
            scope.spawn(move || {
                let mut client = Client::open(address);
                client.send(&format!(r#"{{"id":0,"subscribe":"/flood/{number}"}}"#));
                client.read();
                let mut writer = client.stream.try_clone().unwrap();
                scope.spawn(move || {
                    let publish = |id| frame(&format!(r#"{{"id":{id},"publish":"/flood/{number}","content":{id}}}"#));
                    for block in 0..100 {
                        let bytes: Vec<u8> = (1..=100).flat_map(|id| publish(block * 100 + id)).collect();
                        writer.write_all(&bytes).unwrap();
                    }
                });
                let (mut answered, mut heard) = (0, 0);
                while answered < 10_000 || heard < 10_000 {
                    let message = client.read();
                    if message.contains("published") {
                        answered += 1;
                        assert!(message.starts_with(&format!(r#"{{"id":{answered},"#)), "{message}");
                    } else if message.contains(r#"{"message""#) {
                        heard += 1;
                        assert_eq!(at(&message), heard);
                    } else {
                        assert!(!message.contains("error"), "{message}");
                    }
                }
            });
        }
    });
    assert_eq!(node.engine.stats().totals.accepted, 60_000);
}
