//! What connections cost in memory, counted allocation by allocation: what a client needs only for a while is let go, and a large
//! answer is not copied each time a socket takes a little of it.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "shard/world/mod.rs"]
mod world;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use godwit_core::rights::{Rights, SharedRules};
use godwit_core::settings::RuleSettings;
use world::{Place, World, open_settings};

/// Counts what is held, and all that ever was.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// The counts are the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

// SAFETY: everything is the system's allocator's; counting touches no memory of anybody.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        TAKEN.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What is held more than at a time before. The harness itself may have let go of a little since then.
fn held_since(before: usize) -> usize {
    HELD.load(Relaxed).saturating_sub(before)
}

const CLIENTS: usize = 512;

/// What so many clients hold when each has said `commands` and all have rested for a while.
fn held_after(commands: &[&str], halves: bool) -> usize {
    let mut world = World::new(open_settings(), 1, false);
    world.turn_all();
    let places: Vec<Place> = (0..CLIENTS).map(|_| world.connect(0)).collect();
    for &place in &places {
        for command in commands {
            let frame = world::masked(command.as_bytes());
            let (first, second) = frame.split_at(if halves { 5 } else { frame.len() });
            world.bytes(place, first);
            if halves {
                world.bytes(place, second);
            }
            world.turn(0);
        }
    }
    for _ in 0..40 {
        world.advance(250);
        world.turn_all();
    }
    for &place in &places {
        let heard = world.heard(place);
        assert!(heard.len() >= commands.len() && heard.iter().all(|reply| reply.get("error").is_none()), "{heard:?}");
        let socket = world.socket(place);
        assert!(!socket.is_closed);
        socket.forget();
    }
    HELD.load(Relaxed)
}

#[test]
fn a_client_that_has_said_who_it_is_keeps_its_name_and_no_more() {
    let _alone = ALONE.lock();
    let before = HELD.load(Relaxed);
    let subscribe = r#"{"id":1,"subscribe":"/a/b"}"#;
    let cost = |commands: &[&str], halves| (held_after(commands, halves) - before) / CLIENTS;
    let plain = cost(&[subscribe], false);
    let unnamed = cost(&[r#"{"id":1,"connect":{}}"#, subscribe], true);
    let named = cost(&[r#"{"id":1,"connect":{"client":"app"}}"#, subscribe], true);
    assert!(unnamed < plain + 16, "{plain} bytes a client, {unnamed} after a connect and halves of messages");
    assert!(named < plain + 80, "{plain} bytes a client, {named} with a name");
}

#[test]
fn ten_thousand_rules_are_held_once_for_all_connections_of_a_holder() {
    let _alone = ALONE.lock();
    let rules: Vec<RuleSettings> = (0..10_000)
        .map(|number| RuleSettings {
            pattern: format!("/rooms/{number}/**"),
            actions: "both".into(),
            verdict: "allow".into(),
        })
        .collect();
    let (mut shared, mut held) = (SharedRules::default(), Vec::new());
    let before = HELD.load(Relaxed);
    let mut grant = || {
        let mut rights = Rights::compile(&rules).expect("rules");
        rights.share(&mut shared);
        held.push(rights);
        held_since(before)
    };
    let one = grant();
    let many = (1..100).map(|_| grant()).last().expect("a count");
    assert!(many < one + 100 * 1_000, "{one} bytes for one connection, {many} for a hundred");
    assert!(one < 10_000 * 400, "{one} bytes");
    drop(held);
    assert!(held_since(before) < one / 10, "they go with the last who has them");
}

#[test]
fn a_large_answer_is_not_copied_each_time_it_is_cut() {
    let _alone = ALONE.lock();
    let content = "x".repeat(500_000);
    let mut world = World::new(open_settings(), 1, false);
    let place = world.accept(0);
    let head = format!(
        "POST /v1/messages?subject=/a HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    world.bytes(place, [head.as_bytes(), content.as_bytes()].concat().as_slice());
    world.turn_all();
    world.socket(place).taken = Vec::with_capacity(600_000);
    world.socket(place).room = 1_000;
    world.bytes(place, b"GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\n\r\n");
    world.turn_all();
    let before = TAKEN.load(Relaxed);
    for _ in 0..200 {
        world.give_room(place, 4_000);
        world.turn_all();
    }
    let copied = TAKEN.load(Relaxed) - before;
    let text = String::from_utf8(std::mem::take(&mut world.socket(place).taken)).expect("text");
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with(&content), "{} bytes", text.len());
    assert_eq!(world.shard(0).counters().held_bytes, 0, "nothing is held any more");
    assert!(copied < content.len(), "{copied} bytes were allocated on the way");
}
