//! Wills of clients that a node lost with itself: what they would have done to a subject's state they do when the node begins again.
use std::sync::Arc;

use super::admit::{come_as, settings};
use super::end::{packet, text};
use crate::world::World;
use godwit_core::holder::Holder;
use godwit_core::journal::KeptMessage;
use godwit_core::node::PastRun;
use godwit_core::position::Position;
use godwit_core::settings::JournalSettings;

const RUN: u64 = 0xc0;

/// A CONNECT of MQTT 5.0 with a token and a retained will on `state`.
fn connect(will: &str) -> Vec<u8> {
    let properties = [5, 0x11, 0, 0, 0xff, 0xff];
    let head = [&text("MQTT"), &[5, 0x80 | 0x20 | 0x08 | 0x04, 0, 0][..], &properties, &text("c")].concat();
    packet(0x10, &[&head, &[0][..], &text("state"), &text(will), &text("token")].concat())
}

fn new_world(run: u64) -> World {
    let mut settings = settings();
    settings.journal = Some(JournalSettings::default());
    (settings.run, settings.epoch) = (RUN + run, 7 + run);
    World::new(settings, 1, false)
}

#[test]
fn a_retained_will_without_content_takes_the_state_away_after_a_restart() {
    for (will, expected) in [("", None), ("gone", Some(&b"gone"[..]))] {
        let mut world = new_world(0);
        come_as(&mut world, Holder::new("", "authorizer", "ann"), &connect(will));
        let notes = world.node.lock().unwrap().take_notes();
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
