//! The node's shared state, used as a shard uses it: append, drain, place, read, walk, listen, sweep.
use godwit_core::codes::Code;
use godwit_core::message::Batch;
use godwit_core::node::{Entry, Outcome, Place, Stride};

use crate::support::{at_ms, draft, new_node, pattern, position, publish};

fn published(sequence: u64) -> Outcome {
    Outcome::Published { at: Some(position(7, sequence)), is_repeat: false }
}

#[test]
fn shards_are_told_what_they_listen_to_in_order_of_arrival() {
    let mut node = new_node(|_| {});
    let now = at_ms(0);
    node.open(0, "/a/b", now).expect("opens");
    node.open_pattern(3, &pattern("/a/**"), now).expect("opens");
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    for subject in ["/a/b", "/c", "/a/c", "/a/b"] {
        batch.push(subject, draft("{}"));
    }
    assert_eq!(node.append(&mut batch, &mut outcomes, now), 0b1001);
    assert_eq!(outcomes, [published(1), published(1), published(1), published(2)]);
    let mut told = |shard| {
        let mut entries = Vec::new();
        assert!(!node.drain(shard, &mut entries, 100));
        let name = |entry: &Entry| match entry {
            Entry::Message(message) => message.arrival,
            Entry::Interest { .. } => 0,
        };
        entries.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(told(0), [1, 4]);
    assert_eq!(told(3), [1, 3, 4]);
    assert!(told(1).is_empty());
    assert_eq!(node.drained_to(0), 4);
}

#[test]
fn a_log_that_moved_on_tells_how_much_is_missing() {
    let mut node = new_node(|settings| settings.limits.log_messages_max = 3);
    let now = at_ms(0);
    let log = node.open(0, "/a", now).expect("opens");
    for sequence in 1..=5 {
        assert_eq!(publish(&mut node, "/a", draft("1"), now), published(sequence));
    }
    assert_eq!(node.place(log, position(7, 2), now), Place::Served { arrival: 2, count: 3 });
    assert_eq!(node.place(log, position(7, 5), now), Place::Served { arrival: 5, count: 0 });
    let Place::Gap { missed, oldest, oldest_arrival, .. } = node.place(log, position(7, 0), now) else {
        panic!("served what is gone")
    };
    assert_eq!((missed, oldest, oldest_arrival), (Some(2), position(7, 2), 2));
    let mut out = Vec::new();
    let read = node.read(log, 0, 5, &mut out, 1 << 20);
    assert_eq!((read.reached, out.len()), (2, 0));
    assert_eq!(read.hole.and_then(|hole| hole.missed), Some(2));
    let read = node.read(log, 2, 5, &mut out, 1 << 20);
    assert!(read.is_done && out.len() == 3);
}

#[test]
fn a_walk_finds_everything_of_a_pattern_between_two_arrivals() {
    let mut node = new_node(|_| {});
    for subject in ["/a/x", "/b/x", "/a/y", "/a/x"] {
        publish(&mut node, subject, draft("1"), at_ms(0));
    }
    let (mut out, mut holes) = (Vec::new(), Vec::new());
    let stride = Stride { entries_max: 100, bytes_max: 1 << 20 };
    let walk = node.walk(&pattern("/a/*"), 1, 4, &mut out, &mut holes, stride);
    assert!(!walk.is_lost && walk.reached == 4 && holes.is_empty());
    assert_eq!(out.iter().map(|message| message.arrival).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_key_makes_one_message_of_a_repeated_publish() {
    let mut node = new_node(|_| {});
    let keyed = |content| {
        let mut draft = draft(content);
        draft.key = Some(b"k1"[..].into());
        draft
    };
    assert_eq!(publish(&mut node, "/a", keyed("1"), at_ms(0)), published(1));
    let repeat = Outcome::Published { at: Some(position(7, 1)), is_repeat: true };
    assert_eq!(publish(&mut node, "/a", keyed("1"), at_ms(0)), repeat);
    assert_eq!(publish(&mut node, "/a", keyed("2"), at_ms(0)), Outcome::Refused(Code::KeyConflict));
    assert_eq!(publish(&mut node, "/b", keyed("2"), at_ms(0)), published(1));
    let mut anonymous = keyed("1");
    anonymous.identity = "".into();
    assert_eq!(publish(&mut node, "/a", anonymous, at_ms(0)), Outcome::Refused(Code::KeyInvalid));
}

#[test]
fn a_forgotten_subject_returns_in_a_new_epoch() {
    let mut node = new_node(|settings| settings.limits.snapshot_age_ms_max = 1_000);
    publish(&mut node, "/a", draft("1"), at_ms(0));
    let mark = node.mark(0);
    for ms in [1, 1_000_000, 2_000_000] {
        while node.sweep(at_ms(ms)) {}
    }
    assert_eq!(node.totals().subjects, 0);
    // A pattern that does not hold what was forgotten has lost nothing.
    assert_eq!(node.place_mark(mark, &pattern("/b/**")), Ok(0));
    assert!(node.place_mark(mark, &pattern("/**")).is_err());
    let again = publish(&mut node, "/a", draft("1"), at_ms(2_000_001));
    assert_eq!(again, Outcome::Published { at: Some(position(8, 1)), is_repeat: false });
}

#[test]
fn interest_is_told_at_once_and_its_end_a_moment_later() {
    let mut node = new_node(|_| {});
    node.watch(5, &pattern("/o/**"));
    let log = node.open(0, "/o/eu", at_ms(0)).expect("opens");
    node.open(0, "/x", at_ms(0)).expect("opens");
    node.open_pattern(1, &pattern("/**"), at_ms(0)).expect("opens");
    assert_eq!(node.take_wakes(), 1 << 5);
    let mut state = Vec::new();
    assert_eq!(node.interest_state(&pattern("/o/**"), None, 10, &mut state), None);
    assert_eq!(state.iter().map(|name| &**name).collect::<Vec<_>>(), ["/**", "/o/eu"]);
    node.close(0, log, at_ms(10));
    node.sweep(at_ms(1_000));
    node.sweep(at_ms(1_010));
    let mut told = Vec::new();
    node.drain(5, &mut told, 10);
    let told: Vec<_> = told
        .iter()
        .map(|entry| match entry {
            Entry::Interest { selector, has_subscribers, .. } => (&**selector, *has_subscribers),
            Entry::Message(message) => (&*message.subject, true),
        })
        .collect();
    assert_eq!(told, [("/o/eu", true), ("/**", true), ("/o/eu", false)]);
}
