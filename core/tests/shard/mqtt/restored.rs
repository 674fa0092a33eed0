//! Sessions of a run before: what they are told of messages that no journal keeps.
use super::admit::{come_as, connect_with, has, settings, taken};
use super::end::{packet, subscribe};
use crate::world::World;
use godwit_core::holder::Holder;
use godwit_core::node::PastRun;
use godwit_core::settings::{JournalSettings, PatternSettings};

const RUN: u64 = 0xd0;

fn world(run: u64) -> World {
    let mut settings = settings();
    settings.journal = Some(JournalSettings::default());
    let pattern =
        PatternSettings { pattern: "/volatile/**".into(), journal: Some(false), ..PatternSettings::default() };
    settings.patterns = vec![pattern];
    (settings.run, settings.epoch) = (RUN + run, 7 + run);
    World::new(settings, 1, false)
}

#[test]
fn a_session_that_comes_back_after_a_restart_may_have_missed_what_no_journal_keeps() {
    for (filter, qos, is_reported) in [
        ("volatile/#", 1, true),
        ("#", 1, true),
        ("volatile/a", 2, true),
        ("volatile/#", 0, false),
        ("kept/#", 1, false),
    ] {
        let ann = || Holder::new("", "authorizer", "ann");
        let mut before = world(0);
        let place = come_as(&mut before, ann(), &connect_with("c", false));
        let filters = subscribe(&[(filter, qos)]);
        before.bytes(place, &packet(0x82, &[&filters[2..4], &[0], &filters[4..]].concat()));
        before.turn_all();
        before.gone(place);
        before.turn_all();
        let notes = before.take_notes();

        let mut after = world(1);
        let now = after.now;
        {
            let mut node = after.node.lock().unwrap();
            node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 8, began: 1, last: 1 }]);
            for (name, text) in notes.iter().filter_map(|(name, text)| Some((name, text.as_deref()?))) {
                node.restore_note(name, text, 0, now);
            }
            node.finish_restore(now);
        }
        for expected in [is_reported, false] {
            let place = come_as(&mut after, ann(), &connect_with("c", false));
            let connack = taken(&mut after, place);
            assert_eq!(connack[2..4], [1, 0], "{filter}");
            assert_eq!(has(&connack, "godwit-missed") && has(&connack, "unknown"), expected, "{filter} at QoS {qos}");
            after.gone(place);
            after.turn_all();
        }
    }
}

#[test]
fn a_retained_state_of_patches_is_sent_again_as_it_was_sent_first() {
    let mut settings = settings();
    let merge = PatternSettings { pattern: "/state".into(), merge: Some(true), ..PatternSettings::default() };
    settings.patterns = vec![merge];
    let mut world = World::new(settings, 1, false);
    for content in [r#"{"a":1}"#, r#"{"b":2}"#] {
        let publisher = world.connect(0);
        world.ask(publisher, &format!(r#"{{"publish":"/state","content":{content}}}"#));
    }
    let ann = || Holder::new("", "authorizer", "ann");
    let place = come_as(&mut world, ann(), &connect_with("c", false));
    let filters = subscribe(&[("state", 1)]);
    world.bytes(place, &packet(0x82, &[&filters[2..4], &[0], &filters[4..]].concat()));
    world.turn_all();
    let whole = r#"{"a":1,"b":2}"#;
    assert!(has(&taken(&mut world, place), whole));
    world.gone(place);
    world.turn_all();
    let place = come_as(&mut world, ann(), &connect_with("c", false));
    let again = taken(&mut world, place);
    assert!(has(&again, "state") && has(&again, whole), "{}", String::from_utf8_lossy(&again));
}
