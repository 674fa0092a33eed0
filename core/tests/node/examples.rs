//! The node's shared state, used as a shard uses it: append, drain, place, read, walk, listen, sweep.
use godwit_core::codes::Code;
use godwit_core::command::GapReason;
use godwit_core::message::{Batch, FromMqtt, NO_EXPIRY};
use godwit_core::mqtt::Qos;
use godwit_core::node::{Entry, Found, MISSING_MAX, Node, Outcome, PositionState, ScanBudget, ScanRange};

use crate::support::{at_ms, draft, new_node, pattern, position, publish};

fn published(sequence: u64) -> Outcome {
    Outcome::Published { at: Some(position(7, sequence)), is_duplicate: false }
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
    let mut drained = |shard| {
        let mut entries = Vec::new();
        assert!(!node.drain(shard, &mut entries, 100));
        let name = |entry: &Entry| match entry {
            Entry::Message(message) => message.arrival,
            Entry::Interest { .. } => 0,
        };
        entries.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(drained(0), [1, 4]);
    assert_eq!(drained(3), [1, 3, 4]);
    assert!(drained(1).is_empty());
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
    assert_eq!(node.place(log, position(7, 2), now), PositionState::Served { arrival: 2, count: 3 });
    assert_eq!(node.place(log, position(7, 5), now), PositionState::Served { arrival: 5, count: 0 });
    let PositionState::Gap { missed, oldest, oldest_arrival, .. } = node.place(log, position(7, 0), now) else {
        panic!("served what is gone")
    };
    assert_eq!((missed, oldest, oldest_arrival), (Some(2), position(7, 2), 2));
    let mut out = Vec::new();
    let read = node.read(log, 0, 5, &mut out, 1 << 20);
    assert_eq!((read.reached, out.len()), (2, 0));
    assert_eq!(read.missing.and_then(|range| range.missed), Some(2));
    let read = node.read(log, 2, 5, &mut out, 1 << 20);
    assert!(read.is_done && out.len() == 3);
}

#[test]
fn a_walk_finds_everything_of_a_pattern_between_two_arrivals() {
    let mut node = new_node(|_| {});
    for subject in ["/a/x", "/b/x", "/a/y", "/a/x"] {
        publish(&mut node, subject, draft("1"), at_ms(0));
    }
    let mut found = Found::default();
    let budget = ScanBudget { entries_max: 100, bytes_max: 1 << 20, missing_max: MISSING_MAX };
    let scan = node.scan_pattern(&pattern("/a/*"), ScanRange { after: 1, until: 4, budget }, &mut found);
    assert!(!scan.is_lost && scan.reached == 4 && found.missing.is_empty());
    assert_eq!(found.messages.iter().map(|message| message.arrival).collect::<Vec<_>>(), [3, 4]);
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
    let repeat = Outcome::Published { at: Some(position(7, 1)), is_duplicate: true };
    assert_eq!(publish(&mut node, "/a", keyed("1"), at_ms(0)), repeat);
    assert_eq!(publish(&mut node, "/a", keyed("2"), at_ms(0)), Outcome::Refused(Code::KeyConflict));
    assert_eq!(publish(&mut node, "/b", keyed("2"), at_ms(0)), published(1));
    let mut anonymous = keyed("1");
    anonymous.holder = godwit_core::holder::Holder::nobody();
    assert_eq!(publish(&mut node, "/a", anonymous, at_ms(0)), Outcome::Refused(Code::KeyInvalid));
}

#[test]
fn a_forgotten_subject_returns_in_a_new_epoch() {
    let mut node = new_node(|settings| settings.limits.snapshot_age_ms_max = 1_000);
    publish(&mut node, "/a", draft("1"), at_ms(0));
    let resume_token = node.resume_token(0);
    for ms in [1, 1_000_000, 2_000_000] {
        while node.sweep(at_ms(ms)) {}
    }
    assert_eq!(node.totals().subjects, 0);
    // A pattern that does not hold what was forgotten has lost nothing.
    assert_eq!(node.place_resume_token(resume_token, &pattern("/b/**")), Ok(0));
    assert!(node.place_resume_token(resume_token, &pattern("/**")).is_err());
    let again = publish(&mut node, "/a", draft("1"), at_ms(2_000_001));
    assert_eq!(again, Outcome::Published { at: Some(position(8, 1)), is_duplicate: false });
    // What is gone is counted, and at the end of it nothing is.
    let log = node.find("/a").expect("it is back");
    let place = |sequence| node.place(log, position(7, sequence), at_ms(2_000_002));
    assert!(
        matches!(place(0), PositionState::Gap { missed: Some(1), reason: GapReason::Expired, .. }),
        "{:?}",
        place(0)
    );
    assert!(matches!(place(1), PositionState::Served { count: 1, .. }), "{:?}", place(1));
}

#[test]
fn a_retained_message_that_expired_is_let_go_and_its_subject_too() {
    for (expiry_s, left) in [(5, 0), (NO_EXPIRY, 1)] {
        let mut node = new_node(|_| {});
        let mut retained = draft("1");
        retained.mqtt = Some(FromMqtt { qos: Qos::AtLeastOnce, publisher: 1, expiry_s });
        publish(&mut node, "/a", retained, at_ms(0));
        while node.sweep(at_ms(4_000)) {}
        assert_eq!((node.totals().subjects, node.totals().snapshots), (1, 1));
        // Its history ends by age, an hour later.
        for ms in [5_001, 4_000_000, 8_000_000] {
            while node.sweep(at_ms(ms)) {}
        }
        assert_eq!((node.totals().subjects, node.totals().snapshots), (left, left));
    }
}

#[test]
fn interest_is_told_at_once_and_its_end_a_moment_later() {
    let mut node = new_node(|_| {});
    node.watch(5, &pattern("/o/**")).expect("watches");
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
    let mut drained = Vec::new();
    node.drain(5, &mut drained, 10);
    let drained: Vec<_> = drained
        .iter()
        .map(|entry| match entry {
            Entry::Interest { selector, has_subscribers, .. } => (&**selector, *has_subscribers),
            Entry::Message(message) => (&*message.subject, true),
        })
        .collect();
    assert_eq!(drained, [("/o/eu", true), ("/**", true), ("/o/eu", false)]);
}

#[test]
fn a_shard_that_falls_a_whole_feed_behind_is_told_so_and_goes_on() {
    let mut node = new_node(|settings| settings.limits.feed_entries_max = 10);
    let log = node.open(0, "/a", at_ms(0)).expect("opens");
    node.open_pattern(1, &pattern("/**"), at_ms(0)).expect("opens");
    node.open_pattern(0, &pattern("/b/*"), at_ms(0)).expect("opens");
    let standard = |node: &mut Node, subject| {
        let mut draft = draft("1");
        draft.is_guaranteed = false;
        publish(node, subject, draft, at_ms(0));
    };
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    for _ in 0..4 {
        batch.push("/a", draft("1"));
    }
    node.append(&mut batch, &mut outcomes, at_ms(0));
    assert!(!node.is_congested());
    publish(&mut node, "/a", draft("1"), at_ms(0));
    assert!(node.is_congested());
    let mut drained = Vec::new();
    assert!(!node.drain(1, &mut drained, 100));
    standard(&mut node, "/a");
    for _ in 0..6 {
        publish(&mut node, "/a", draft("1"), at_ms(0));
    }
    standard(&mut node, "/a");
    standard(&mut node, "/b/x");
    drained.clear();
    let lost = node.window_misses(0).expect("fell");
    assert_eq!(lost.iter().map(|lost| (&*lost.subject, lost.count)).collect::<Vec<_>>(), [("/a", 2), ("/b/x", 1)]);
    assert!(node.window_misses(0).is_none() && node.window_misses(1).is_none());
    assert_eq!(node.drained_to(0), 14);
    // The log still has all the others.
    let mut out = Vec::new();
    assert!(node.read(log, 0, 14, &mut out, 1 << 20).is_done && out.len() == 11);
    publish(&mut node, "/a", draft("1"), at_ms(0));
    node.drain(0, &mut drained, 100);
    assert!(matches!(&drained[..], [Entry::Message(message)] if message.arrival == 15));
    node.abandon(1);
    assert_eq!(node.lag().entries, 0);
}

#[test]
fn a_long_feed_remembers_exactly_what_it_let_go() {
    let mut node = new_node(|settings| settings.limits.log_messages_max = 8);
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    for round in 0..200 {
        batch.clear();
        for number in 0..1_000 {
            batch.push(if number == 500 && round % 50 == 0 { "/quiet" } else { "/loud" }, draft("1"));
        }
        node.append(&mut batch, &mut outcomes, at_ms(round));
    }
    // The oldest message that is kept, the first of the quiet ones, keeps the index; nothing before it does.
    assert_eq!(node.totals().index_entries, 200_000 - 500);
    let (mut found, mut reached, mut missed) = (Found::default(), 500, 0);
    while reached < 200_000 {
        let budget = ScanBudget { entries_max: 50_000, bytes_max: 1 << 20, missing_max: MISSING_MAX };
        let scan = node.scan_pattern(&pattern("/**"), ScanRange { after: reached, until: 200_000, budget }, &mut found);
        assert!(!scan.is_lost);
        reached = scan.reached;
    }
    for (_, subject, range) in &found.missing {
        assert_eq!(&**subject, "/loud");
        missed += range.missed.expect("a scan knows");
    }
    assert_eq!(missed as usize + found.messages.len(), 200_000 - 500);
}

#[test]
fn listings_go_on_where_they_stopped() {
    let mut node = new_node(|_| {});
    let names: Vec<String> = (0..700).map(|number| format!("/{}/{number:03}", ["a", "a-b", "b"][number % 3])).collect();
    for name in &names {
        publish(&mut node, name, draft("1"), at_ms(0));
    }
    for text in ["/a/*", "/**", "/*/007", "/a-b/001", "/a/**", "/c/*"] {
        let pattern = pattern(text);
        let mut wanted: Vec<&str> = names.iter().map(String::as_str).filter(|name| pattern.matches(name)).collect();
        wanted.sort_unstable();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            after = node.names(&pattern, after.as_deref(), 7, &mut found);
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), wanted, "{text}");
        let (mut rows, mut after) = (Vec::new(), Some(String::new()));
        while let Some(from) = after {
            let (more, next) = node.subjects(&from, 7, Some(&pattern));
            rows.extend(more);
            after = next;
        }
        assert_eq!(rows.iter().map(|row| &*row.subject).collect::<Vec<_>>(), wanted, "{text}");
    }
}

#[test]
fn a_subject_that_was_never_numbered_is_forgotten_without_a_new_epoch() {
    let mut node = new_node(|_| {});
    let log = node.open(0, "/a", at_ms(0)).expect("opens");
    let at = node.head(log).at;
    node.close(0, log, at_ms(0));
    assert_eq!(node.totals().subjects, 0);
    publish(&mut node, "/a", draft("1"), at_ms(1));
    let log = node.find("/a").expect("is kept");
    assert_eq!(node.place(log, at, at_ms(1)), PositionState::Served { arrival: 0, count: 1 });
}

#[test]
fn the_listeners_of_a_shard_that_gave_up_are_closed() {
    let mut node = new_node(|_| {});
    node.watch(0, &pattern("/**")).expect("watches");
    node.watch(1, &pattern("/**")).expect("watches");
    node.open(1, "/a", at_ms(0)).expect("opens");
    for shard in [0, 1, 2] {
        node.open(shard, "/b", at_ms(0)).expect("opens");
        node.open_pattern(shard, &pattern("/c/*"), at_ms(0)).expect("opens");
    }
    node.open_pattern(1, &pattern("/d/*"), at_ms(0)).expect("opens");
    node.abandon(1);
    for ms in [1, 2_000, 2_001] {
        while node.sweep(at_ms(ms)) {}
    }
    let mut state = Vec::new();
    assert_eq!(node.interest_state(&pattern("/**"), None, 100, &mut state), None);
    assert_eq!(state.iter().map(|name| &**name).collect::<Vec<_>>(), ["/b", "/c/*"]);
    assert_eq!(node.find("/a"), None);
    publish(&mut node, "/c/x", draft("1"), at_ms(3_000));
    let mut drained = Vec::new();
    assert!(!node.drain(1, &mut drained, 10) && drained.is_empty());
    node.drain(2, &mut drained, 10);
    assert_eq!(drained.len(), 1);
}
