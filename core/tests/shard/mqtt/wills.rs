//! Wills of clients that a node lost with itself: what they would have done to a subject's state they do when the node begins again.
use std::sync::Arc;

use super::admit::{come_as, settings};
use super::end::{listeners, packet, text};
use crate::world::World;
use godwit_core::holder::Holder;
use godwit_core::journal::KeptMessage;
use godwit_core::node::{PastRun, Progress};
use godwit_core::position::{Now, Position};
use godwit_core::report::{Order, Report};
use godwit_core::rights::Rights;
use godwit_core::settings::{JournalSettings, Listener, PatternSettings, RuleSettings, Settings};

const RUN: u64 = 0xc0;

/// A CONNECT of MQTT 5.0 with a token and a retained will on `state`.
fn connect(will: &str) -> Vec<u8> {
    let properties = [5, 0x11, 0, 0, 0xff, 0xff];
    let head = [&text("MQTT"), &[5, 0x80 | 0x20 | 0x08 | 0x04, 0, 0][..], &properties, &text("c")].concat();
    packet(0x10, &[&head, &[0][..], &text("state"), &text(will), &text("token")].concat())
}

fn new_world(run: u64) -> World {
    world_with(run, |_| {})
}

fn world_with(run: u64, change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = settings();
    change(&mut settings);
    settings.journal = Some(JournalSettings::default());
    (settings.run, settings.epoch) = (RUN + run, 7 + run);
    World::new(settings, 1, false)
}

#[test]
fn a_retained_will_without_content_takes_the_state_away_after_a_restart() {
    for (will, expected) in [("", None), ("gone", Some(&b"gone"[..]))] {
        let mut world = new_world(0);
        come_as(&mut world, Holder::new("", "authorizer", "ann"), &connect(will));
        let notes = world.take_notes();
        assert!(notes.keys().any(|name| name == "will c"), "{notes:?}");

        let mut world = new_world(1);
        let now = world.now;
        {
            let mut node = world.node.lock().unwrap();
            let mut state = KeptMessage::new(RUN, 0, Arc::from("/state"), Position { epoch: 7, sequence: 1 });
            (state.arrival, state.is_retained, state.time_ms) = (1, true, now.wall_ms);
            node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 8, began: 1, last: 1 }]);
            let text = notes["will c"].as_deref().expect("a will");
            assert!(node.restore_note("will c", text, 0, now));
            node.restore(state.carry(b"on", "", &[]), now);
            node.finish_restore(now);
        }
        world.advance(2_000);
        (0..2).for_each(|_| world.turn(0));
        let node = world.node.lock().unwrap();
        let snapshot = node.snapshot(node.find("/state").expect("is kept"), now);
        assert_eq!(snapshot.as_ref().map(|snapshot| snapshot.content()), expected, "{will:?}");
    }
}

/// What a will is that a client leaves to the next run, whose settings are changed; none: it is withheld.
fn will_after(came: impl FnOnce(&mut World), change: impl FnOnce(&mut Settings)) -> Option<String> {
    let mut world = new_world(0);
    came(&mut world);
    let notes = world.take_notes();
    let mut world = world_with(1, change);
    let now = world.now;
    {
        let mut node = world.node.lock().unwrap();
        node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 8, began: 1, last: 1 }]);
        assert!(node.restore_note("will c", notes["will c"].as_deref().expect("a will"), 0, now));
        node.finish_restore(now);
    }
    world.advance(2_000);
    (0..2).for_each(|_| world.turn(0));
    let is_reported = world.reports().iter().any(|report| matches!(report, Report::Refused { .. }));
    let node = world.node.lock().unwrap();
    let snapshot = node.find("/state").and_then(|log| node.snapshot(log, now));
    let content = snapshot.map(|snapshot| String::from_utf8_lossy(snapshot.content()).into_owned());
    assert_eq!(is_reported, content.is_none(), "what is withheld is reported");
    content
}

/// Ann, of an issuer's key.
fn come_by_token(world: &mut World) {
    let place = world.accept_from(0, ([127, 0, 0, 1], 4000).into(), 1);
    world.bytes(place, &connect("gone"));
    world.turn_all();
    let question = world.reports().into_iter().find_map(|report| match report {
        Report::Authorize { connection, .. } => Some(connection),
        _ => None,
    });
    let mut rights = Rights::compile(&super::admit::all()).expect("rules");
    rights.source = Some("jwt:https://id\nkey-1".into());
    let holder = Holder::new("", "jwt:https://id", "ann");
    let connection = question.expect("a question");
    world.order(0, Order::Grant { connection, holder, rights: Arc::new(rights), expires_ms: None, token: None });
    world.turn_all();
}

fn come_as_ann(world: &mut World) {
    come_as(world, Holder::new("", "basic", "ann"), &connect("gone"));
}

fn trust(vouchers: &[&str]) -> impl FnOnce(&mut Settings) {
    let trusted = vouchers.iter().map(|voucher| (*voucher).to_owned()).collect();
    |settings| settings.trusted = Some(trusted)
}

#[test]
fn a_will_after_a_restart_is_judged_as_its_client_would_be() {
    let gone = Some("gone".to_owned());
    assert_eq!(will_after(come_as_ann, |_| {}), gone);
    let roles = |role: &'static str| move |settings: &mut Settings| settings.listeners[1].role = role.into();
    assert_eq!(will_after(come_as_ann, roles("publish")), gone);
    assert_eq!(will_after(come_as_ann, roles("subscribe")), None, "its listener is for subscribers now");
    let only =
        |network: &'static str| move |settings: &mut Settings| settings.publisher_addresses = vec![network.into()];
    assert_eq!(will_after(come_as_ann, only("127.0.0.0/8")), gone);
    assert_eq!(will_after(come_as_ann, only("10.0.0.0/8")), None, "nothing is published from its address now");
    let without = |role: &'static str| {
        move |settings: &mut Settings| {
            settings.listeners = vec![Listener { role: role.into(), ..listeners().remove(0) }];
        }
    };
    assert_eq!(
        will_after(come_as_ann, without("subscribe")),
        None,
        "its listener is no more, and no other takes publishes"
    );
    assert_eq!(will_after(come_as_ann, without("both")), gone);
}

#[test]
fn a_will_whose_voucher_is_trusted_no_longer_is_withheld() {
    let gone = Some("gone".to_owned());
    for trusted in [&["jwt:https://id"][..], &["basic", "jwt:https://id\nkey-1"]] {
        assert_eq!(will_after(come_by_token, trust(trusted)), gone, "{trusted:?}");
    }
    for trusted in [&["jwt:https://id\nkey-2", "jwt:https://i", "jwt:https://id2"][..], &["anonymous"], &[]] {
        assert_eq!(will_after(come_by_token, trust(trusted)), None, "{trusted:?}");
    }
    assert_eq!(will_after(come_as_ann, trust(&["basic\nann"])), gone);
    assert_eq!(will_after(come_as_ann, trust(&["basic\nbob", "basic\nan"])), None, "her token is taken back");
}

#[test]
fn a_will_of_nobody_has_the_rights_that_nobody_has_now() {
    let come = |world: &mut World| {
        let place = world.accept_from(0, ([127, 0, 0, 1], 4000).into(), 1);
        let properties = [5, 0x11, 0, 0, 0xff, 0xff];
        let head = [&text("MQTT"), &[5, 0x20 | 0x08 | 0x04, 0, 0][..], &properties, &text("c")].concat();
        world.bytes(place, &packet(0x10, &[&head, &[0][..], &text("state"), &text("gone")].concat()));
        world.turn_all();
    };
    let anonymous = |pattern: &str| {
        let rule = RuleSettings { pattern: pattern.into(), actions: "publish".into(), verdict: "allow".into() };
        move |settings: &mut Settings| settings.anonymous = Some(vec![rule])
    };
    assert_eq!(will_after(come, anonymous("/state")), Some("gone".to_owned()));
    assert_eq!(will_after(come, anonymous("/other")), None);
    assert_eq!(will_after(come, |settings| settings.anonymous = None), None);
}

#[test]
fn a_shard_that_gave_up_leaves_nothing_of_a_client_without_a_session_that_had_a_will() {
    let mut world = new_world(0);
    let head = [&text("MQTT"), &[5, 0x80 | 0x04 | 0x02, 0, 0][..], &[0], &text("c")].concat();
    let holder = Holder::new("", "basic", "ann");
    come_as(
        &mut world,
        Arc::clone(&holder),
        &packet(0x10, &[&head, &[0][..], &text("state"), &text("gone"), &text("token")].concat()),
    );
    let now = world.now;
    let mut node = world.node.lock().unwrap();
    assert!(node.is_connected("c", &holder) && node.take_notes()["will c"].is_some());
    node.abandon(0);
    node.sweep(now);
    assert!(!node.is_connected("c", &holder), "nobody waits for it");
    assert_eq!(node.take_notes()["will c"], None);
}

/// A client that claims an identifier finds wills that are due, among them those of other clients.
#[test]
fn a_client_that_is_refused_takes_nobodys_will_with_it() {
    let mut world = new_world(0);
    let ann = || Holder::new("", "authorizer", "ann");
    let keep = [5, 0x11, 0, 0, 0xff, 0xff];
    let delay = [5, 0x18, 0, 0, 0x0e, 0x10];
    let head = [&text("MQTT"), &[5, 0x80 | 0x04, 0, 0][..], &keep, &text("c"), &delay].concat();
    let says = packet(0x10, &[&head, &text("will")[..], &text("gone"), &text("token")].concat());
    let place = come_as(&mut world, ann(), &says);
    world.gone(place);
    come_as(&mut world, ann(), &super::admit::connect_with("d", false));
    let listener = world.connect(0);
    world.ask(listener, r#"{"id":1,"subscribe":"/will"}"#);

    let place = world.accept_from(0, ([127, 0, 0, 1], 4000).into(), 1);
    world.bytes(place, &super::admit::connect_with("d", false));
    world.turn_all();
    let asked = |report| if let Report::Authorize { connection, .. } = report { Some(connection) } else { None };
    let connection = world.reports().into_iter().find_map(asked).expect("a question");
    let later = Now { mono_ms: world.now.mono_ms + 3_601_000, ..world.now };
    world.node.lock().unwrap().sweep(later);
    let (holder, rights) =
        (Holder::new("", "authorizer", "bob"), Rights::compile(&super::admit::all()).expect("rules"));
    world.order(0, Order::Grant { connection, holder, rights: Arc::new(rights), expires_ms: None, token: None });
    world.turn_all();
    assert_eq!(world.socket(place).taken[3], 0x85, "the name is somebody else's");
    let heard = world.heard(listener);
    assert!(heard.iter().any(|line| line["text"] == "gone"), "{heard:?}");
}

#[test]
fn a_will_is_published_although_the_disk_that_its_topic_promises_fails() {
    let mut world = world_with(0, |settings| {
        let mqtt_ack = Some("disk".to_owned());
        settings.patterns = vec![PatternSettings { pattern: "/state".into(), mqtt_ack, ..PatternSettings::default() }];
    });
    let place = come_as(&mut world, Holder::new("", "authorizer", "ann"), &connect("gone"));
    world.node.lock().unwrap().journaled(Progress { is_failing: true, ..Progress::default() });
    world.gone(place);
    world.turn_all();
    world.advance(2_000);
    world.turn_all();
    let node = world.node.lock().unwrap();
    let snapshot = node.find("/state").and_then(|log| node.snapshot(log, world.now));
    assert_eq!(snapshot.as_ref().map(|snapshot| snapshot.content()), Some(&b"gone"[..]));
}

#[test]
fn a_will_whose_subject_is_out_of_the_journal_leaves_nothing_on_the_disk() {
    for is_kept in [false, true] {
        let mut world = world_with(0, |settings| {
            settings.patterns = vec![PatternSettings {
                pattern: "/state".into(),
                journal: Some(is_kept),
                ..PatternSettings::default()
            }];
        });
        come_as(&mut world, Holder::new("", "authorizer", "ann"), &connect("gone"));
        let notes = format!("{:?}", world.take_notes());
        assert_eq!(notes.contains("\"will "), is_kept, "{notes}");
    }
}
