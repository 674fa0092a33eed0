//! The snapshot against a plain union of fields: retained messages only, the newest value of each field, the head of the log
//! beside it, gone when it is too old or when the subject keeps none.
use godwit_core::codes::Code;
use godwit_core::command::Ack;
use godwit_core::holder::Holder;
use godwit_core::message::{Draft, FromMqtt, Kind, NO_EXPIRY, fields};
use godwit_core::mqtt::Qos;
use godwit_core::node::{Node, Outcome, check_patterns};
use godwit_core::settings::{JournalSettings, PatternSettings};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{at_ms, cases, draft, new_node, publish};

const AGE_MS: u64 = 1_280;

#[derive(Clone, Debug)]
enum Content {
    Json(Value),
    Text(String),
}

fn any_content() -> impl Strategy<Value = Content> {
    let field = (prop::sample::select(vec!["a", "b", "c", "d\"e", "é"]), 0..100_i32);
    let object = prop::collection::vec(field, 0..4)
        .prop_map(|fields| {
            fields
                .into_iter()
                .map(|(name, value)| {
                    (name.to_owned(), if value % 4 == 0 { Value::Null } else { json!({"v": [value, null, "}"]}) })
                })
                .collect()
        })
        .prop_map(|map: Map<String, Value>| Content::Json(Value::Object(map)));
    prop_oneof![
        8 => object,
        1 => (0..9_i32).prop_map(|number| Content::Json(json!([number]))),
        1 => "[a-z]{0,5}".prop_map(Content::Text),
    ]
}

#[derive(Clone, Debug)]
struct Publish {
    content: Content,
    retain: Option<bool>,
    merge: Option<bool>,
    is_guaranteed: bool,
    pass_ms: u64,
}

fn any_publish() -> impl Strategy<Value = Publish> {
    (
        any_content(),
        prop::option::weighted(0.3, any::<bool>()),
        prop::option::weighted(0.6, any::<bool>()),
        prop::bool::weighted(0.9),
        prop_oneof![9 => 0..50_u64, 1 => 0..2_000_u64],
    )
        .prop_map(|(content, retain, merge, is_guaranteed, pass_ms)| Publish {
            content,
            retain,
            merge,
            is_guaranteed,
            pass_ms,
        })
}

/// A newer content over an older state: it replaces, unless it is a patch.
fn unite(old: Option<Content>, new: Content, merges: bool) -> Content {
    let Content::Json(Value::Object(new)) = new else { return new };
    if !merges {
        return Content::Json(Value::Object(new));
    }
    let mut state = if let Some(Content::Json(Value::Object(old))) = old { old } else { Map::new() };
    state.extend(new);
    state.retain(|_, value| !value.is_null());
    Content::Json(Value::Object(state))
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn the_snapshot_is_the_last_retained_message_with_patches_merged(
        publishes in prop::collection::vec(any_publish(), 1..40),
        expires in any::<bool>(),
        merges in any::<bool>(),
    ) {
        let mut node = new_node(|settings| {
            settings.limits.log_messages_max = 3;
            settings.patterns = vec![PatternSettings {
                pattern: "/a/*".into(),
                merge: merges.then_some(true),
                snapshot_age_ms_max: expires.then_some(AGE_MS),
                ..PatternSettings::default()
            }];
        });
        let (mut state, mut last_ms, mut ms): (Option<Content>, u64, u64) = (None, 0, 0);
        let mut count = 0;
        for one in publishes {
            ms += one.pass_ms;
            node.sweep(at_ms(ms));
            // Between the age and a little later both are right; the node's answer decides.
            let log = node.find("/a/b");
            let shown = log.and_then(|log| node.snapshot(log, at_ms(ms)));
            let age_ms = ms - last_ms;
            if shown.is_none() && state.is_some() {
                prop_assert!(expires && age_ms >= AGE_MS);
                state = None;
            }
            prop_assert!(!(expires && shown.is_some() && age_ms > AGE_MS + AGE_MS / 128 + 2_000));

            let (kind, text) = match &one.content {
                Content::Json(value) => (Kind::Json, value.to_string()),
                Content::Text(text) => (Kind::Text, text.clone()),
            };
            let mut draft = Draft::new(kind, text.as_bytes(), "", Holder::new("", "basic", "me"), 1);
            draft.is_retained = one.retain;
            draft.merge = one.merge;
            draft.is_guaranteed = one.is_guaranteed;
            publish(&mut node, "/a/b", draft, at_ms(ms));
            count += u64::from(one.is_guaranteed);
            if one.retain.unwrap_or(one.is_guaranteed) {
                last_ms = ms;
                state = Some(unite(state.take(), one.content, one.merge.unwrap_or(merges)));
            }
            let Some(log) = node.find("/a/b") else { continue };
            let snapshot = node.snapshot(log, at_ms(ms));
            prop_assert_eq!(snapshot.is_some(), state.is_some());
            let (Some(snapshot), Some(state)) = (snapshot, &state) else { continue };
            prop_assert_eq!(snapshot.at.sequence, count);
            match state {
                Content::Text(text) => prop_assert_eq!(snapshot.content(), text.as_bytes()),
                Content::Json(value) => {
                    let content: Value = serde_json::from_slice(snapshot.content()).expect("valid");
                    prop_assert_eq!(&content, value);
                }
            }
            prop_assert_eq!(node.totals().snapshots, 1);
        }
    }
}

#[test]
fn a_pattern_turns_the_snapshot_off() {
    let mut node = new_node(|settings| {
        let off = PatternSettings { pattern: "/a/**".into(), snapshot: Some(false), ..PatternSettings::default() };
        let on = PatternSettings { pattern: "/a/b".into(), snapshot: Some(true), ..PatternSettings::default() };
        settings.patterns = vec![on, off];
    });
    for (subject, is_kept) in [("/a/b", true), ("/a/c", false), ("/b", true)] {
        publish(&mut node, subject, Draft::new(Kind::Text, b"x", "", Holder::new("", "basic", "me"), 1), at_ms(0));
        let log = node.find(subject).expect("is kept");
        assert_eq!(node.snapshot(log, at_ms(0)).is_some(), is_kept, "{subject}");
    }
}

#[test]
fn a_patch_that_would_make_the_snapshot_too_large_is_refused_and_no_member_is_lost() {
    let mut node = new_node(|settings| settings.limits.snapshot_bytes_max = 13);
    let mut merge = |content: &str| {
        let mut patch = draft(content);
        patch.merge = Some(true);
        publish(&mut node, "/a", patch, at_ms(0))
    };
    for content in [r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":4}"#] {
        assert!(matches!(merge(content), Outcome::Published { .. }), "{content}");
    }
    assert_eq!(merge(r#"{"ccccc":3}"#), Outcome::Refused(Code::SnapshotTooBig));
    assert!(matches!(merge(r#"{"a":null}"#), Outcome::Published { .. }));
    let log = node.find("/a").expect("is kept");
    let snapshot = node.snapshot(log, at_ms(0)).expect("is kept");
    assert_eq!((snapshot.content(), snapshot.at.sequence), (&br#"{"b":2}"#[..], 4));
}

#[test]
fn what_is_published_where_replies_are_awaited_is_not_retained_unless_asked() {
    let mut node = new_node(|_| {});
    publish(&mut node, "/ask", Draft::new(Kind::Text, b"?", "/reply/1", Holder::new("", "basic", "me"), 1), at_ms(0));
    let log = node.open(0, "/reply/2", at_ms(0)).expect("opens");
    publish(&mut node, "/ask", Draft::new(Kind::Text, b"?", "/reply/2", Holder::new("", "basic", "me"), 1), at_ms(0));
    for subject in ["/reply/1", "/reply/2"] {
        publish(&mut node, subject, Draft::new(Kind::Text, b"!", "", Holder::new("", "basic", "you"), 2), at_ms(0));
        assert!(node.snapshot(node.find(subject).expect("is kept"), at_ms(0)).is_none(), "{subject}");
    }
    let mut draft = Draft::new(Kind::Text, b"!", "", Holder::new("", "basic", "you"), 2);
    draft.is_retained = Some(true);
    publish(&mut node, "/reply/2", draft, at_ms(0));
    assert!(node.snapshot(log, at_ms(0)).is_some());
}

#[test]
fn small_retained_states_stay_while_unretained_bulk_goes() {
    let mut node = new_node(|settings| settings.limits.logs_bytes_max = 1 << 20);
    for number in 0..400 {
        publish(&mut node, &format!("/state/{number}"), draft("{\"on\":true}"), at_ms(1));
    }
    let image = format!("\"{}\"", "x".repeat(20_000));
    for number in 0..500 {
        let mut bulk = draft(&image);
        bulk.is_retained = Some(false);
        publish(&mut node, &format!("/image/{}", number % 5), bulk, at_ms(2));
    }
    assert_eq!((node.totals().snapshots, node.totals().evicted_snapshots), (400, 0));
}

#[test]
fn large_snapshots_go_before_small_ones_and_never_for_larger_ones() {
    for by_bound in [false, true] {
        let mut node = new_node(|settings| {
            let bound =
                if by_bound { &mut settings.limits.snapshots_bytes_max } else { &mut settings.limits.logs_bytes_max };
            *bound = 1 << 20;
        });
        for number in 0..1_330 {
            publish(&mut node, &format!("/state/{number}"), draft("{\"on\":true}"), at_ms(1));
        }
        let image = format!("\"{}\"", "x".repeat(50_000));
        for number in 0..200 {
            publish(&mut node, &format!("/image/{}", number % 20), draft(&image), at_ms(2));
        }
        let kept = |node: &Node, subject: String| {
            node.find(&subject).is_some_and(|log| node.snapshot(log, at_ms(3)).is_some())
        };
        let states = (0..1_330).filter(|number| kept(&node, format!("/state/{number}"))).count();
        let images = (0..20).filter(|number| kept(&node, format!("/image/{number}"))).count();
        assert_eq!(states, 1_330, "{by_bound}");
        assert!((8..20).contains(&images), "{by_bound}: {images}");
        assert!(node.totals().evicted_snapshots > 0);
    }
}

#[test]
fn a_patch_on_a_snapshot_that_was_evicted_is_not_the_whole() {
    let mut node = new_node(|settings| settings.limits.snapshots_bytes_max = 1_000);
    let mut merge = |content: &str| {
        let mut patch = draft(content);
        patch.merge = Some(true);
        publish(&mut node, "/a", patch, at_ms(0));
        node.find("/a").and_then(|log| node.snapshot(log, at_ms(0))).map(|shown| shown.content().to_vec())
    };
    assert!(merge(r#"{"a":1}"#).is_some());
    assert!(merge(&format!(r#"{{"b":"{}"}}"#, "x".repeat(1_000))).is_none(), "there is no room");
    assert!(merge(r#"{"c":1}"#).is_none());
    publish(&mut node, "/a", draft(r#"{"d":1}"#), at_ms(0));
    let log = node.find("/a").unwrap();
    assert_eq!(node.snapshot(log, at_ms(0)).unwrap().content(), br#"{"d":1}"#);
}

#[test]
fn mqtt_publishes_are_retained_without_asking_where_a_pattern_says_so() {
    let mut node = new_node(|settings| {
        let always = Some("always".to_owned());
        settings.patterns =
            vec![PatternSettings { pattern: "/sensors/**".into(), mqtt_retain: always, ..PatternSettings::default() }];
    });
    for (subject, is_kept) in [("/sensors/1", true), ("/commands/1", false)] {
        let mqtt = FromMqtt { qos: Qos::AtLeastOnce, publisher: 1, expiry_s: NO_EXPIRY };
        let mut draft = draft("1").from_mqtt(mqtt, |_| {});
        draft.is_retained = Some(false);
        publish(&mut node, subject, draft, at_ms(0));
        let log = node.find(subject).expect("is kept");
        assert_eq!(node.snapshot(log, at_ms(0)).is_some(), is_kept, "{subject}");
    }
    let mqtt = FromMqtt { qos: Qos::AtLeastOnce, publisher: 1, expiry_s: NO_EXPIRY };
    let mut empty = draft("").from_mqtt(mqtt, |_| {});
    empty.is_retained = Some(false);
    publish(&mut node, "/sensors/1", empty, at_ms(0));
    let log = node.find("/sensors/1").expect("is kept");
    assert!(node.snapshot(log, at_ms(0)).is_none(), "as a restart takes its row");
}

#[test]
fn subjects_kept_out_of_the_journal_leave_no_row_and_refuse_the_disk() {
    let mut node = new_node(|settings| {
        settings.journal = Some(JournalSettings::default());
        settings.patterns =
            vec![PatternSettings { pattern: "/ticks/**".into(), journal: Some(false), ..PatternSettings::default() }];
    });
    for subject in ["/ticks/1", "/orders/1", "/ticks/1"] {
        publish(&mut node, subject, draft("1"), at_ms(0));
    }
    let mut rows = Vec::new();
    node.take_rows(&mut rows);
    assert_eq!(rows.iter().map(|row| &*row.message.subject).collect::<Vec<_>>(), ["/orders/1"]);
    // A token beyond the last row would be unknown to a node that was killed.
    assert_eq!((node.arrival(), node.token_bound()), (3, rows[0].message.arrival));
    let mut asks = draft("1");
    asks.ack = Ack::Disk;
    assert_eq!(publish(&mut node, "/ticks/1", asks, at_ms(0)), Outcome::Refused(Code::AckUnavailable));
}

#[test]
fn what_the_journal_leaves_out_cannot_wait_for_the_disk() {
    let of = |visible: &str| {
        let visible = Some(visible.to_owned());
        vec![PatternSettings { pattern: "/a/**".into(), journal: Some(false), visible, ..PatternSettings::default() }]
    };
    assert!(check_patterns(&of("accepted")).is_ok());
    assert_eq!(check_patterns(&of("journaled")).expect_err("is refused").code, Code::FieldInvalid);
}

#[test]
fn a_removal_after_a_purge_of_an_idle_subject_finds_nothing() {
    let mut node = new_node(|settings| settings.journal = Some(JournalSettings::default()));
    let removal = || {
        let mut removal = draft("");
        (removal.is_removal, removal.is_retained) = (true, Some(true));
        removal
    };
    publish(&mut node, "/a", draft("1"), at_ms(0));
    while node.purge("/a", None).is_some_and(|purged| purged.has_more) {}
    assert_eq!(publish(&mut node, "/a", removal(), at_ms(1)), Outcome::Refused(Code::SnapshotMissing));
    publish(&mut node, "/a", draft("2"), at_ms(1));
    assert!(matches!(publish(&mut node, "/a", removal(), at_ms(1)), Outcome::Awaits { .. }));
}

#[test]
fn an_mqtt_message_that_replaces_fields_is_measured_without_those() {
    let mut node = new_node(|settings| settings.limits.snapshot_bytes_max = 150);
    for (name, is_guaranteed) in [("a", true), ("b", true), ("c", false), ("d", false)] {
        let fields = fields::hold_last(vec![(name, "x".repeat(90).as_str())], 8);
        let mqtt = FromMqtt { qos: Qos::AtLeastOnce, publisher: 1, expiry_s: NO_EXPIRY };
        let mut draft = draft("1").with_fields(&fields).from_mqtt(mqtt, |_| {});
        (draft.is_retained, draft.is_guaranteed) = (Some(true), is_guaranteed);
        let outcome = publish(&mut node, "/a", draft, at_ms(0));
        assert!(matches!(outcome, Outcome::Published { .. }), "{name}: {outcome:?}");
    }
}
