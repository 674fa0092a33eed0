//! Snapshots that patches made, after a restart that begins behind the message they were merged into: whole, with what is only further
//! back, or not what it was before.
use std::sync::Arc;

use godwit_core::journal::KeptMessage;
use godwit_core::message::Kind;
use godwit_core::node::{Node, PastRun};
use godwit_core::position::Now;
use godwit_core::settings::{JournalSettings, PatternSettings};

use crate::support::{at_ms, new_node, position};

const RUN: u64 = 0xc0;
/// Between the first row and the second.
const LONG_MS: u64 = 50_000;

/// A row of `/a` at this arrival; what begins with `+` is a patch, and `-` takes the state away.
fn row(arrival: u64, text: &str) -> KeptMessage {
    let mut kept = KeptMessage::new(RUN, arrival - 1, Arc::from("/a"), position(7, arrival));
    (kept.arrival, kept.is_retained, kept.kind) = (arrival, true, Kind::Json);
    kept.time_ms = at_ms(if arrival == 1 { 0 } else { LONG_MS - 2 + arrival }).wall_ms;
    (kept.is_patch, kept.is_removal) = (text.starts_with('+'), text == "-");
    kept.carry(text.trim_start_matches(['+', '-']).as_bytes(), "", &[])
}

fn now() -> Now {
    at_ms(60_000)
}

/// A node that was given the rows from `from` on, and of those before what it asked for, newest first.
fn begin(rows: &[&str], from: usize, age_ms_max: Option<u64>) -> Node {
    let mut node = new_node(|settings| {
        (settings.run, settings.epoch) = (RUN + 1, 8);
        settings.journal = Some(JournalSettings::default());
        let ages = PatternSettings { pattern: "/a".into(), snapshot_age_ms_max: age_ms_max, ..Default::default() };
        settings.patterns = vec![ages];
    });
    let all: Vec<KeptMessage> = rows.iter().enumerate().map(|(index, text)| row(index as u64 + 1, text)).collect();
    let newest = position(7, rows.len() as u64);
    node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 8, began: 1, last: rows.len() as u64 }]);
    all[from..].iter().for_each(|row| node.restore(row.clone(), now()));
    for row in all[..from].iter().rev() {
        if node.needs_snapshot("/a") {
            node.restore_snapshot(row.clone(), Some(newest), now());
        }
    }
    node.finish_restore(now());
    node
}

fn state(node: &Node) -> Option<String> {
    let snapshot = node.snapshot(node.find("/a")?, now())?;
    Some(String::from_utf8_lossy(snapshot.content()).into_owned())
}

#[test]
fn wherever_a_node_begins_a_snapshot_is_what_it_was() {
    let cases: [(&[&str], Option<&str>); 8] = [
        (&[r#"{"a":1,"b":2}"#, r#"+{"b":3}"#, r#"+{"c":4}"#], Some(r#"{"a":1,"b":3,"c":4}"#)),
        (&[r#"{"a":1,"b":2}"#, r#"+{"a":null}"#, r#"+{"c":4}"#], Some(r#"{"b":2,"c":4}"#)),
        (&[r#"{"a":0}"#, r#"+{"a":1}"#, r#"+{"b":2}"#], Some(r#"{"a":1,"b":2}"#)),
        (&[r#"{"x":1}"#, r#"{"a":1}"#, r#"+{"b":2}"#], Some(r#"{"a":1,"b":2}"#)),
        (&[r#"{"x":1}"#, "-", r#"+{"b":2}"#, r#"+{"b":null}"#], Some("{}")),
        (&[r#"{"x":1}"#, r#"+{"a":1}"#, "-"], None),
        (&["[1]", r#"+{"a":1}"#, r#"+{"b":2}"#], Some(r#"{"a":1,"b":2}"#)),
        (&[r#"+{"a":1}"#, r#"+{"b":2}"#, r#"+{"a":null}"#], Some(r#"{"b":2}"#)),
    ];
    for (rows, expected) in cases {
        for from in 0..=rows.len() {
            assert_eq!(state(&begin(rows, from, None)).as_deref(), expected, "{rows:?} from {from}");
        }
    }
}

#[test]
fn a_patch_is_not_merged_into_what_was_too_old_when_it_came() {
    let rows = [r#"{"x":1}"#, r#"+{"a":1}"#, r#"+{"b":2}"#];
    for from in 1..=3 {
        let begun = |age_ms_max| state(&begin(&rows, from, Some(age_ms_max)));
        assert_eq!(begun(LONG_MS + 1).as_deref(), Some(r#"{"x":1,"a":1,"b":2}"#), "from {from}");
        assert_eq!(begun(LONG_MS).as_deref(), Some(r#"{"a":1,"b":2}"#), "from {from}");
    }
}
