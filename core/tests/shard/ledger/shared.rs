//! What a shared subscription is dealt adds up: its rows follow one another, and each message of a row's range was handed to one member, or
//! is told missing, whoever comes, goes, or takes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::{deliveries, journaling};
use crate::mqtt::{come, connect, listeners, packet, subscribe};
use crate::world::seeds::seeded;
use crate::world::{Place, World};
use godwit_core::journal::{DeliveryRow, KeptMessage, Range};
use godwit_core::node::PastRun;
use godwit_core::position::Position;
use proptest::prelude::*;
use serde_json::json;

struct Life {
    world: World,
    publisher: Place,
    members: Vec<Place>,
    published: u64,
    rows: Vec<DeliveryRow>,
}

impl Life {
    fn new(log_messages_max: usize) -> Self {
        let mut settings = journaling();
        settings.listeners = listeners();
        settings.limits.log_messages_max = log_messages_max;
        settings.limits.mqtt_inflight_max = 4;
        let mut world = World::new(settings, 2, false);
        let publisher = world.connect(0);
        Self { world, publisher, members: Vec::new(), published: 0, rows: Vec::new() }
    }

    /// Clean sessions: what one has not settled at QoS 1 goes to the others.
    fn join(&mut self, shard: usize, qos: u8) {
        let mut hello = connect("", false);
        hello[9] |= 2;
        let place = come(&mut self.world, shard, &hello);
        self.world.bytes(place, &subscribe(&[("$share/g/#", qos)]));
        self.members.push(place);
    }

    fn publish(&mut self, count: u64) {
        for _ in 0..count {
            self.published += 1;
            let subject = ["/a", "/b"][self.published as usize % 2];
            self.world.say(self.publisher, &json!({"publish": subject, "content": 1}).to_string());
        }
        self.world.turn(0);
    }

    /// A member says of all packet identifiers that it has them.
    fn settle(&mut self, index: usize) {
        for id in 1..=4 {
            self.world.bytes(self.members[index], &packet(0x40, &[0, id]));
        }
    }

    fn listen(&mut self) {
        for shard in 0..2 {
            self.rows.extend(deliveries(self.world.take_rows(shard)));
        }
    }

    fn end(mut self) -> Result<(), TestCaseError> {
        for _ in 0..8 {
            self.world.advance(300);
            self.world.turn_all();
        }
        for place in self.members.clone() {
            self.world.gone(place);
        }
        self.world.turn_all();
        self.listen();
        let mut stands: HashMap<u64, u64> = HashMap::new();
        let mut dealt = 0;
        // Whichever shard looks first writes them.
        let place =
            |row: &DeliveryRow| if let Range::Pattern { from, to, .. } = row.range { (to, from) } else { (0, None) };
        self.rows.sort_by_key(place);
        for row in &self.rows {
            let Range::Pattern { from: Some(from), to, .. } = row.range else { panic!("{row:?}") };
            prop_assert_eq!(&*row.selector, "$share/g/**");
            prop_assert!((row.peer.connection.0 as i64) < 0, "it is nobody's connection");
            let stand = stands.insert(row.peer.connection.0, to);
            prop_assert!(stand.is_none_or(|stand| stand + 1 == from), "{stand:?} then {row:?}");
            let accounted = row.count + row.conflated + row.gap_count.unwrap_or(u64::MAX / 2);
            prop_assert!(accounted >= to + 1 - from && row.count <= to + 1 - from, "{row:?}");
            dealt += row.count;
        }
        prop_assert!(dealt <= self.published);
        Ok(())
    }
}

proptest! {
    #![proptest_config(seeded(128))]

    #[test]
    fn a_group_is_dealt_each_message_of_its_ranges_once_or_it_is_told_missing(
        log_messages_max in prop::sample::select(vec![3_usize, 1_000]),
        steps in prop::collection::vec((0..6_u8, 0..8_usize, any::<bool>()), 1..50),
    ) {
        let mut life = Life::new(log_messages_max);
        for (what, which, one) in steps {
            let index = which % life.members.len().max(1);
            match what {
                0 if life.members.len() < 5 => life.join(usize::from(one), which as u8 % 2),
                1 | 2 => life.publish(1 + which as u64),
                3 if !life.members.is_empty() => life.settle(index),
                4 if !life.members.is_empty() && which < 3 => {
                    let place = life.members.swap_remove(index);
                    life.world.gone(place);
                }
                5 => life.world.advance(400),
                _ => life.world.turn_all(),
            }
            life.listen();
        }
        life.end()?;
    }
}

#[test]
fn what_a_lost_member_had_not_settled_is_dealt_again_and_counts_once() {
    let mut life = Life::new(1_000);
    life.join(0, 1);
    life.join(1, 1);
    life.publish(6); // three each, under way
    life.world.turn_all();
    let lost = life.members.swap_remove(0);
    life.world.gone(lost);
    for _ in 0..3 {
        life.world.turn_all();
        life.settle(0);
    }
    life.publish(1);
    life.world.turn_all();
    life.settle(0);
    life.world.turn_all();
    let left = life.members.swap_remove(0);
    life.world.gone(left);
    life.listen();
    assert_eq!(
        life.rows.iter().map(|row| (row.count, row.gaps)).fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1)),
        (7, 0)
    );
}

#[test]
fn after_a_restart_a_group_goes_on_where_it_stood() {
    let mut life = Life::new(1_000);
    for name in ["one", "two"] {
        let place = come(&mut life.world, 0, &connect(name, false));
        life.world.bytes(place, &subscribe(&[("$share/g/#", 1)]));
        life.world.turn(0);
        life.world.gone(place);
        life.world.turn(0);
    }
    let notes = life.world.take_notes();
    let mut next = Life::new(1_000);
    let now = next.world.now;
    {
        let mut node = next.world.node.lock().unwrap();
        node.begin_restore(vec![PastRun { run: 0xb0, epoch: 5, epoch_end: u64::MAX, began: 1, last: 4 }]);
        for (name, text) in &notes {
            assert!(node.restore_note(name, text.as_deref().unwrap(), 0, now));
        }
        for sequence in 1..=3 {
            let mut kept = KeptMessage::new(0xb0, sequence, Arc::from("/a"), Position { epoch: 5, sequence });
            (kept.arrival, kept.time_ms) = (sequence + 1, now.wall_ms);
            node.restore(kept.carry(b"old", "", &[]), now);
        }
        assert_eq!(node.finish_restore(now).sessions, 2);
    }
    next.publish(1); // while they are away
    let place = come(&mut next.world, 0, &connect("one", false));
    next.world.turn(0);
    next.publish(1);
    for id in 1..=3 {
        next.world.bytes(place, &packet(0x40, &[0, id])); // four may be under way
    }
    next.world.turn_all();
    let taken = std::mem::take(&mut next.world.socket(place).taken);
    let publishes = |bytes: &[u8]| bytes.windows(4).filter(|found| *found == [0x32, 6, 0, 1]).count();
    let olds = taken.windows(3).filter(|found| *found == b"old").count();
    assert_eq!((publishes(&taken), olds), (2, 3), "{taken:x?}");
}
