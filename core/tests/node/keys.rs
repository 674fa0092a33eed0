//! Idempotency keys against a plain list: the first publish decides, a repeat is told its position, other content conflicts,
//! and the oldest go by count and by age.
use godwit_core::codes::Code;
use godwit_core::command::Numbered;
use godwit_core::holder::Holder;
use godwit_core::message::{Draft, Kind};
use godwit_core::node::Outcome;
use godwit_core::position::Position;
use godwit_core::settings::{PatternSettings, Settings};
use proptest::prelude::*;

use crate::support::{at_ms, cases, new_node, publish};

const KEYS_MAX: usize = 5;
const AGE_MS: u64 = 1_000;

#[derive(Clone, Debug)]
struct Publish {
    identity: usize,
    subject: usize,
    key: usize,
    content: usize,
    is_guaranteed: bool,
    pass_ms: u64,
    sweeps: bool,
}

fn any_publish() -> impl Strategy<Value = Publish> {
    (0..2_usize, 0..2_usize, 0..4_usize, 0..2_usize, prop::bool::weighted(0.8), 0..300_u64, any::<bool>()).prop_map(
        |(identity, subject, key, content, is_guaranteed, pass_ms, sweeps)| Publish {
            identity,
            subject,
            key,
            content,
            is_guaranteed,
            pass_ms,
            sweeps,
        },
    )
}

struct Known {
    scope: (usize, usize, usize),
    content: (usize, bool),
    at: Option<Position>,
    added_ms: u64,
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn keys_do_as_a_plain_list_does(publishes in prop::collection::vec(any_publish(), 1..60)) {
        let mut node = new_node(|settings| {
            settings.limits.idempotency_keys_max = KEYS_MAX;
            settings.limits.idempotency_keys_age_ms_max = AGE_MS;
        });
        let mut list: Vec<Known> = Vec::new();
        let mut ms = 0;
        for one in publishes {
            ms += one.pass_ms;
            if one.sweeps {
                node.sweep(at_ms(ms));
            }
            let mut draft = Draft::new(Kind::Text, &[b'0' + one.content as u8], "", Holder::new("", "basic", ["me", "you"][one.identity]), 1);
            draft.key = Some(vec![b'k', one.key as u8].into());
            draft.is_guaranteed = one.is_guaranteed;
            let outcome = publish(&mut node, ["/a", "/b"][one.subject], draft, at_ms(ms));
            list.retain(|known| known.added_ms + AGE_MS > ms);
            let scope = (one.identity, one.subject, one.key);
            let content = (one.content, one.is_guaranteed);
            match list.iter().find(|known| known.scope == scope) {
                Some(known) if known.content == content => {
                    prop_assert_eq!(outcome, Outcome::Published { at: known.at, is_duplicate: true });
                }
                Some(_) => prop_assert_eq!(outcome, Outcome::Refused(Code::KeyConflict)),
                None => {
                    let Outcome::Published { at, is_duplicate: false } = outcome else { panic!("{outcome:?}") };
                    prop_assert_eq!(at.is_some(), one.is_guaranteed);
                    if list.len() == KEYS_MAX {
                        list.remove(0);
                    }
                    list.push(Known { scope, content, at, added_ms: ms });
                }
            }
            prop_assert!(node.totals().keys <= KEYS_MAX as u64);
        }
    }
}

#[test]
fn whoever_has_many_keys_pushes_out_its_own_and_nobody_elses() {
    let mut node = new_node(|settings| {
        settings.limits.idempotency_keys_max = 1_000;
        settings.limits.idempotency_keys_age_ms_max = 1 << 40;
    });
    let mut keyed = |identity: &str, key: &str, ms: u64| {
        let holder = Holder::new("", "authorizer", identity);
        let mut draft = Draft::new(Kind::Text, b"1", "", holder, 1);
        draft.key = Some(key.as_bytes().into());
        match publish(&mut node, "/k", draft, at_ms(ms)) {
            Outcome::Published { is_duplicate, .. } => is_duplicate,
            other => panic!("{other:?}"),
        }
    };
    assert!((0..9).all(|n| !keyed("ann", &format!("key-of-ann-{n}"), n)));
    assert!((0..5_000).all(|n| !keyed("greedy", &format!("key-of-greedy-{n}"), 10 + n)));
    assert!((0..9).all(|n| keyed("ann", &format!("key-of-ann-{n}"), 10_000)), "ann's keys are all remembered");
    assert!((4_300..5_000).all(|n| keyed("greedy", &format!("key-of-greedy-{n}"), 10_000)), "and the newest of others");
    assert!(!keyed("greedy", "key-of-greedy-4000", 10_001), "the oldest have gone");
}

#[test]
fn a_publish_that_left_the_merge_to_its_pattern_is_the_same_after_the_pattern_changes() {
    for merges in [true, false] {
        let change = |settings: &mut Settings, merge: Option<bool>| {
            settings.patterns = vec![PatternSettings { pattern: "/a".into(), merge, ..PatternSettings::default() }];
        };
        let mut node = new_node(|settings| change(settings, Some(merges)));
        let keyed = |merge: Option<bool>| {
            let mut draft = Draft::new(Kind::Json, b"{}", "", Holder::new("", "basic", "me"), 1);
            (draft.key, draft.merge) = (Some(b"k1".as_slice().into()), merge);
            draft
        };
        let numbered = || {
            let mut draft = keyed(None);
            draft.key = None;
            draft.numbered = Some(("mine".into(), Numbered { number: 1, floor: 1, is_again: false }));
            draft
        };
        for draft in [keyed(None), numbered()] {
            publish(&mut node, "/a", draft, at_ms(0));
        }
        for merge in [Some(!merges), None] {
            let mut settings = Settings::default();
            change(&mut settings, merge);
            node.configure(&settings);
            for (draft, sequence) in [(keyed(None), 1), (numbered(), 2)] {
                let at = Some(Position { epoch: 7, sequence });
                assert_eq!(publish(&mut node, "/a", draft, at_ms(1)), Outcome::Published { at, is_duplicate: true });
            }
            let other = publish(&mut node, "/a", keyed(Some(!merges)), at_ms(1));
            assert_eq!(other, Outcome::Refused(Code::KeyConflict), "what it says itself is part of it");
        }
    }
}
