//! What waits to be seen from the disk, and what comes behind it: nothing of it is forgotten meanwhile, and what it will make of a snapshot
//! counts before it is made.
use godwit_core::codes::Code;
use godwit_core::node::{Node, Outcome, Progress};
use godwit_core::settings::{JournalSettings, PatternSettings, Settings};

use crate::support::{at_ms, draft, new_node, publish};

fn slow_node(change: impl FnOnce(&mut Settings)) -> Node {
    new_node(|settings| {
        settings.journal = Some(JournalSettings::default());
        let visible = Some("journaled".to_owned());
        settings.patterns =
            vec![PatternSettings { pattern: "/slow/**".to_owned(), visible, ..PatternSettings::default() }];
        change(settings);
    })
}

fn show(node: &mut Node, synced: u64) {
    node.journaled(Progress { synced, ..Progress::default() });
}

fn state(node: &Node, subject: &str) -> Option<String> {
    let snapshot = node.snapshot(node.find(subject)?, at_ms(1))?;
    Some(String::from_utf8_lossy(snapshot.content()).into_owned())
}

fn patch(node: &mut Node, subject: &str, content: &str) -> Outcome {
    let mut patch = draft(content);
    patch.merge = Some(true);
    publish(node, subject, patch, at_ms(1))
}

#[test]
fn a_standard_state_behind_one_that_waits_is_kept() {
    let mut node = slow_node(|_| {});
    publish(&mut node, "/slow/1", draft("1"), at_ms(1));
    let mut standard = draft("2");
    (standard.is_guaranteed, standard.is_retained) = (false, Some(true));
    publish(&mut node, "/b", standard, at_ms(1));
    for ms in 0..8 {
        node.sweep(at_ms(900_000 + ms));
    }
    show(&mut node, 1);
    assert_eq!(state(&node, "/b").as_deref(), Some("2"));
}

#[test]
fn patches_that_wait_count_in_the_size_of_the_snapshot() {
    for is_guaranteed in [true, false] {
        let mut node = slow_node(|settings| settings.limits.snapshot_bytes_max = 16);
        publish(&mut node, "/slow/0", draft("1"), at_ms(1));
        let mut patch = |content: &str| {
            let mut patch = draft(content);
            (patch.merge, patch.is_retained, patch.is_guaranteed) = (Some(true), Some(true), is_guaranteed);
            publish(&mut node, "/slow/1", patch, at_ms(1))
        };
        for content in [r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":3}"#] {
            assert!(matches!(patch(content), Outcome::Published { .. }), "{content}");
        }
        assert_eq!(patch(r#"{"c":3}"#), Outcome::Refused(Code::SnapshotTooBig));
        assert!(matches!(patch(r#"{"b":null}"#), Outcome::Published { .. }));
        assert!(matches!(patch(r#"{"c":3}"#), Outcome::Published { .. }));
        show(&mut node, 9);
        assert_eq!(state(&node, "/slow/1").as_deref(), Some(r#"{"a":3,"c":3}"#));
    }
}

#[test]
fn snapshots_of_all_subjects_have_one_bound_whether_seen_or_not() {
    for subject in ["/a", "/slow/1"] {
        let mut node = slow_node(|settings| settings.limits.snapshots_bytes_max = 1_000);
        for member in 0..20 {
            for subject in ["/first", subject] {
                let content = format!(r#"{{"member{member}":"{}"}}"#, "x".repeat(20));
                assert!(matches!(patch(&mut node, subject, &content), Outcome::Published { .. }), "{content}");
                show(&mut node, u64::MAX >> 1);
                assert!(node.totals().snapshot_bytes <= 1_000);
            }
        }
        assert!(node.totals().evicted_snapshots > 0, "{subject}");
    }
}

#[test]
fn a_removal_behind_a_removal_that_waits_finds_nothing() {
    let mut node = slow_node(|_| {});
    let removal = || {
        let mut removal = draft("");
        (removal.is_removal, removal.is_retained) = (true, Some(true));
        removal
    };
    publish(&mut node, "/slow/1", draft("1"), at_ms(1));
    assert!(matches!(publish(&mut node, "/slow/1", removal(), at_ms(1)), Outcome::Awaits { .. }));
    assert_eq!(publish(&mut node, "/slow/1", removal(), at_ms(1)), Outcome::Refused(Code::SnapshotMissing));
}

/// The writer's queue alone drops rows: it knows which are missing, so that readers are told of them after a restart.
#[test]
fn no_row_is_dropped_on_its_way_to_the_writer_whether_the_disk_fails_or_not() {
    for is_failing in [false, true] {
        let mut node = slow_node(|settings| {
            settings.journal = Some(JournalSettings { messages_bytes_max: 1_000, ..JournalSettings::default() });
        });
        node.journaled(Progress { is_failing, ..Progress::default() });
        for number in 0..50 {
            publish(&mut node, "/a", draft(&number.to_string()), at_ms(1));
        }
        let mut rows = Vec::new();
        node.take_rows(&mut rows);
        assert_eq!(rows.len(), 50, "failing {is_failing}");
    }
}
