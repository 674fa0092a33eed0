//! Publishers that number their publishes: a publish that is sent again is one message, whatever others do meanwhile; where the node
//! cannot know, it says so and publishes nothing.
use std::sync::Arc;

use godwit_core::codes::Code;
use godwit_core::command::Numbered;
use godwit_core::holder::Holder;
use godwit_core::message::{Draft, Kind};
use godwit_core::node::{Node, Outcome};

use crate::support::{at_ms, new_node, position, publish};

const MAX: usize = 100;
const WINDOW: usize = 4;
const AGE_MS: u64 = 1_000;

fn node() -> Node {
    new_node(|settings| {
        settings.limits.publishers_max = MAX;
        settings.limits.publishers_age_ms_max = AGE_MS;
        settings.limits.commands_in_flight_max = WINDOW;
    })
}

fn who(identity: &str) -> Arc<Holder> {
    Holder::new("", "basic", identity)
}

/// `number`, `floor`, and whether it is sent again.
fn send(node: &mut Node, publisher: &str, content: &str, numbered: (u64, u64, bool), ms: u64) -> Outcome {
    let mut draft = Draft::new(Kind::Json, content.as_bytes(), "", who("me"), 1);
    let (number, floor, is_again) = numbered;
    draft.numbered = Some((publisher.into(), Numbered { number, floor, is_again }));
    publish(node, "/a", draft, at_ms(ms))
}

fn first(sequence: u64) -> Outcome {
    Outcome::Published { at: Some(position(7, sequence)), is_duplicate: false }
}

fn duplicate(sequence: u64) -> Outcome {
    Outcome::Published { at: Some(position(7, sequence)), is_duplicate: true }
}

#[test]
fn a_publish_sent_again_after_110_000_others_is_one_message() {
    let mut node = node();
    assert!(node.attach_publisher(&who("me"), (0, 0), "mine", Some(1), at_ms(0)).is_some());
    assert_eq!(send(&mut node, "mine", "1", (1, 1, false), 0), first(1));
    for number in 1..=110_000 {
        assert_eq!(send(&mut node, "theirs", "2", (number, number, false), 0), first(number + 1));
    }
    assert_eq!(send(&mut node, "mine", "1", (1, 1, true), 0), duplicate(1));
}

#[test]
fn other_content_under_a_number_is_a_conflict_and_a_lost_one_is_published() {
    let mut node = node();
    assert!(node.attach_publisher(&who("me"), (0, 0), "mine", Some(1), at_ms(0)).is_some());
    assert_eq!(send(&mut node, "mine", "1", (1, 1, false), 0), first(1));
    assert_eq!(send(&mut node, "mine", "2", (1, 1, true), 0), Outcome::Refused(Code::KeyConflict));
    // Number 2 never arrived.
    assert_eq!(send(&mut node, "mine", "3", (3, 1, false), 0), first(2));
    assert_eq!(send(&mut node, "mine", "2", (2, 1, true), 0), first(3));
    assert_eq!(send(&mut node, "mine", "2", (2, 2, true), 0), duplicate(3));
    assert_eq!(send(&mut node, "mine", "1", (1, 0, true), 0), Outcome::Refused(Code::NumberTooOld));
}

#[test]
fn below_its_window_nothing_is_published() {
    let mut node = node();
    for number in 1..=6 {
        assert_eq!(send(&mut node, "mine", "1", (number, 0, false), 0), first(number));
    }
    assert_eq!(send(&mut node, "mine", "1", (2, 0, true), 0), Outcome::Refused(Code::NumberTooOld));
    assert_eq!(send(&mut node, "mine", "1", (3, 0, true), 0), duplicate(3));
}

#[test]
fn what_was_sent_before_the_publisher_was_known_is_not_known() {
    let mut node = node();
    assert_eq!(send(&mut node, "mine", "1", (1, 1, true), 0), Outcome::Refused(Code::RepeatUnknown));
    assert!(node.attach_publisher(&who("me"), (0, 0), "mine", Some(3), at_ms(0)).is_some());
    assert_eq!(send(&mut node, "mine", "1", (2, 1, true), 0), Outcome::Refused(Code::RepeatUnknown));
    assert_eq!(send(&mut node, "mine", "1", (3, 1, true), 0), first(1));
}

#[test]
fn a_publisher_with_a_connection_is_not_forgotten_by_age_and_one_without_is() {
    let mut node = node();
    let scope = node.attach_publisher(&who("me"), (0, 0), "mine", Some(1), at_ms(0)).unwrap_or_else(|| panic!());
    assert_eq!(send(&mut node, "mine", "1", (1, 1, false), 0), first(1));
    assert_eq!(send(&mut node, "posted", "1", (1, 1, false), 0), first(2));
    node.sweep(at_ms(10 * AGE_MS));
    assert_eq!(node.totals().publishers, 1);
    assert_eq!(send(&mut node, "mine", "1", (1, 1, true), 10 * AGE_MS), duplicate(1));
    node.detach_publisher(scope, 0, at_ms(10 * AGE_MS));
    node.sweep(at_ms(11 * AGE_MS - 1));
    assert_eq!(send(&mut node, "mine", "1", (1, 1, true), 11 * AGE_MS - 1), duplicate(1));
    node.sweep(at_ms(11 * AGE_MS));
    assert_eq!(node.totals().publishers, 0);
}

#[test]
fn without_room_nobody_new_is_known_and_the_last_fifth_is_for_small_holders() {
    let mut node = node();
    let mut attach = |identity: &str, number: usize| {
        node.attach_publisher(&who(identity), (0, 0), &format!("{identity}{number}"), None, at_ms(0)).is_some()
    };
    assert_eq!((0..MAX).filter(|number| attach("greedy", *number)).count(), MAX * 4 / 5);
    assert_eq!((0..MAX).filter(|number| attach(&format!("small{number}"), *number)).count(), MAX / 5);
    assert!(attach("greedy", 0), "one that is known comes again");
}

#[test]
fn another_holder_has_other_numbers() {
    let mut node = node();
    assert_eq!(send(&mut node, "mine", "1", (1, 1, false), 0), first(1));
    let mut draft = Draft::new(Kind::Json, b"1", "", who("other"), 1);
    draft.numbered = Some(("mine".into(), Numbered { number: 1, floor: 1, is_again: false }));
    assert_eq!(publish(&mut node, "/a", draft, at_ms(0)), first(2));
}

#[test]
fn who_was_connected_to_a_shard_that_gave_up_is_forgotten_by_age() {
    let mut node = node();
    for shard in [0, 1] {
        let name = format!("of {shard}");
        assert!(node.attach_publisher(&who("me"), (shard, 0), &name, Some(1), at_ms(0)).is_some());
    }
    node.abandon(1);
    node.sweep(at_ms(0));
    node.sweep(at_ms(AGE_MS));
    assert_eq!(node.totals().publishers, 1);
}
