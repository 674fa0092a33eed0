//! Snapshots of the journal's file against the rows that come back: each is whole up to its own arrival.
use std::sync::Arc;

use godwit_core::command::Ack;
use godwit_core::holder::Holder;
use godwit_core::journal::{KeptMessage, SavedState};
use godwit_core::message::{Draft, Kind};
use godwit_core::node::{Node, Outcome, PastRun, Progress};
use godwit_core::settings::{JournalSettings, PatternSettings};

use crate::support::{at_ms, new_node, position, publish};

const RUN: u64 = 0xc0;

fn journaled(epoch: u64) -> Node {
    new_node(|settings| {
        (settings.run, settings.epoch) = (RUN + epoch, epoch);
        settings.journal = Some(JournalSettings::default());
        let off = PatternSettings { pattern: "/off".into(), journal: Some(false), ..Default::default() };
        settings.patterns = vec![off];
    })
}

/// A row of `/a`; what begins with `+` is a patch, and `-` takes the state away.
fn row(arrival: u64, text: &str) -> KeptMessage {
    let mut kept = KeptMessage::new(RUN, arrival - 1, Arc::from("/a"), position(7, arrival));
    (kept.arrival, kept.is_retained, kept.kind) = (arrival, true, Kind::Json);
    (kept.time_ms, kept.is_patch, kept.is_removal) = (at_ms(0).wall_ms, text.starts_with('+'), text == "-");
    kept.carry(text.trim_start_matches(['+', '-']).as_bytes(), "", &[])
}

/// A snapshot of the file that holds everything up to an arrival.
fn saved(arrival: u64, text: &str, is_standard: bool) -> KeptMessage {
    let mut kept = row(arrival, text);
    kept.sequence = if is_standard { 0 } else { arrival };
    kept
}

fn state(node: &Node, subject: &str) -> Option<String> {
    let snapshot = node.snapshot(node.find(subject)?, at_ms(0))?;
    Some(String::from_utf8_lossy(snapshot.content()).into_owned())
}

fn begin(rows: &[(u64, &str)], saved: Option<KeptMessage>) -> (Node, bool) {
    let mut node = journaled(8);
    node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 8, began: 1, last: 9 }]);
    rows.iter().for_each(|(arrival, text)| node.restore(row(*arrival, text), at_ms(0)));
    let newest = (position(7, 9), 9);
    let is_back = saved.is_some_and(|saved| node.restore_state(saved, newest, at_ms(0)));
    node.finish_restore(at_ms(0));
    (node, is_back)
}

#[test]
fn the_later_of_the_file_and_the_rows_is_the_state() {
    type Case = (&'static [(u64, &'static str)], (u64, &'static str, bool), Option<&'static str>);
    let cases: [Case; 9] = [
        (&[], (3, r#"{"a":1}"#, false), Some(r#"{"a":1}"#)),
        (&[(5, r#"{"b":1}"#)], (3, r#"{"a":1}"#, false), Some(r#"{"b":1}"#)),
        (&[(5, r#"+{"b":2}"#)], (3, r#"{"a":1}"#, false), Some(r#"{"a":1,"b":2}"#)),
        (&[(5, r#"+{"b":2}"#), (6, r#"+{"a":null}"#)], (3, r#"{"a":1}"#, false), Some(r#"{"b":2}"#)),
        // The file has the patch already.
        (&[(5, r#"+{"b":2}"#), (6, r#"+{"c":3}"#)], (5, r#"{"a":1,"b":2}"#, false), Some(r#"{"a":1,"b":2,"c":3}"#)),
        (&[(5, "-")], (3, r#"{"a":1}"#, false), None),
        (&[(5, "-")], (7, r#"{"a":1}"#, true), Some(r#"{"a":1}"#)),
        (&[(5, r#"{"b":1}"#)], (7, r#"{"a":1}"#, true), Some(r#"{"a":1}"#)),
        (&[(5, r#"{"b":1}"#)], (3, r#"{"a":1}"#, true), Some(r#"{"b":1}"#)),
    ];
    for (rows, (arrival, text, is_standard), expected) in cases {
        let (node, _) = begin(rows, Some(saved(arrival, text, is_standard)));
        assert_eq!(state(&node, "/a").as_deref(), expected, "{rows:?} and {text} at {arrival}");
    }
}

#[test]
fn a_purge_takes_what_the_file_has() {
    let mut node = journaled(8);
    node.restore_note("purge /a", "5", 1, at_ms(0));
    node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 8, began: 1, last: 9 }]);
    assert!(!node.restore_state(saved(5, "1", false), (position(7, 5), 5), at_ms(0)));
    assert!(node.restore_state(saved(6, "2", false), (position(7, 6), 6), at_ms(0)));
    node.finish_restore(at_ms(0));
    assert_eq!(state(&node, "/a").as_deref(), Some("2"));
}

#[test]
fn a_snapshot_beyond_the_rows_of_a_run_that_was_killed_is_older_than_the_next_run_s() {
    let run = |run, began, last| PastRun { run: RUN + run, epoch: 7 + run, epoch_end: 8 + run, began, last };
    // The rows of the first run up to 3 are there.
    let cases = [
        (9, None, Some(5), Some("2")),
        (9, None, None, Some("1")),
        (9, Some("8 7"), None, Some("1")),
        (9, Some("9 7"), None, None),
        (9, Some("5 8"), None, None),
        (3, Some("9 7"), Some(5), Some("2")),
    ];
    for (arrival, purge, later, expected) in cases {
        let mut node = journaled(9);
        node.begin_restore(vec![run(0, 1, 3), run(1, 4, 6)]);
        if let Some(text) = purge {
            node.restore_note("purge /a", text, 1, at_ms(0));
        }
        if let Some(later) = later {
            let mut row = row(later, "2");
            (row.run, row.epoch, row.sequence) = (RUN + 1, 8, 1);
            node.restore(row, at_ms(0));
        }
        node.restore_state(saved(arrival, "1", false), (position(7, arrival), arrival), at_ms(0));
        node.finish_restore(at_ms(0));
        assert_eq!(state(&node, "/a").as_deref(), expected, "{arrival} {purge:?} {later:?}");
    }
}

/// What an earlier life gave later arrivals than the journal holds is older than what follows.
#[test]
fn what_follows_a_snapshot_of_a_lost_arrival_is_later_than_it() {
    let (mut node, is_back) = begin(&[], Some(saved(50, "1", true)));
    assert!(is_back);
    let changed = node.take_changed_states(10);
    assert_eq!(changed.iter().map(|subject| &**subject).collect::<Vec<_>>(), ["/a"]);
    let line = node.state_to_save("/a", 0).expect("is kept").text();
    let (again, ..) = SavedState::parse("/a", &line).expect("is a line");
    let draft = Draft::new(Kind::Json, b"2", "", Holder::nobody(), 1);
    publish(&mut node, "/a", draft, at_ms(1));
    assert!(again.arrival < node.arrival());
}

#[test]
fn the_file_is_told_of_standard_states_and_of_what_it_has() {
    let mut node = journaled(1);
    let put = |node: &mut Node, subject: &str, text: &str, is_guaranteed: bool, is_removal: bool| {
        let mut draft = Draft::new(Kind::Json, text.as_bytes(), "", Holder::new("", "basic", "me"), 1);
        (draft.is_guaranteed, draft.is_retained, draft.is_removal) = (is_guaranteed, Some(true), is_removal);
        draft.ack = Ack::Cached;
        assert!(!matches!(publish(node, subject, draft, at_ms(0)), Outcome::Refused(_)), "{subject}");
    };
    for (subject, is_guaranteed) in [("/row", true), ("/loose", false), ("/off", false)] {
        put(&mut node, subject, "1", is_guaranteed, false);
    }
    let names = |node: &mut Node| -> Vec<String> {
        node.take_changed_states(10).iter().map(|subject| subject.to_string()).collect()
    };
    assert_eq!(names(&mut node), ["/loose"]);
    assert_eq!(names(&mut node), Vec::<String>::new());
    put(&mut node, "/loose", "", true, true);
    assert_eq!(names(&mut node), ["/loose"]);
    assert!(node.state_to_save("/loose", 0).is_none() && node.state_to_save("/off", 0).is_none());
    // Rows up to here go: one that a later row makes anew needs no line.
    let until = node.arrival();
    assert!(node.state_to_save("/row", until).is_some());
    put(&mut node, "/row", "2", true, false);
    assert!(node.state_to_save("/row", until).is_some(), "the later row is not on the disk yet");
    let synced = node.arrival();
    node.journaled(Progress { synced, ..Progress::default() });
    assert!(node.state_to_save("/row", until).is_none());
    put(&mut node, "/row", "3", true, false);
    let lost = node.arrival();
    node.journaled(Progress { synced: lost, lost, ..Progress::default() });
    assert!(node.state_to_save("/row", until).is_some(), "the later row was lost");
}

#[test]
fn a_line_says_all_of_a_snapshot() {
    let mut node = journaled(1);
    for (subject, kind, content) in
        [("/json", Kind::Json, &b"{\"a\":1}"[..]), ("/text", Kind::Text, b"a\nb"), ("/bytes", Kind::Bytes, b"\xff\x00")]
    {
        let mut draft = Draft::new(kind, content, "/reply", Holder::nobody(), 1);
        draft.is_retained = Some(true);
        publish(&mut node, subject, draft, at_ms(5));
        let text = node.state_to_save(subject, 0).expect("is kept").text();
        assert!(!text.contains(['\n', '\t']), "{text}");
        let (kept, at, arrival) = SavedState::parse(subject, &text).expect("is a line");
        assert_eq!((kept.content(), kept.kind, kept.time_ms), (content, kind, at_ms(5).wall_ms));
        assert_eq!((at.sequence, arrival, kept.arrival), (1, node.arrival(), node.arrival()));
    }
    for bad in ["", "{}", "null", r#"{"at":"x"}"#] {
        assert!(SavedState::parse("/a", bad).is_none(), "{bad}");
    }
}
