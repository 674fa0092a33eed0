//! Who publishes at QoS 2, and says everything again until it is completed.

use std::collections::VecDeque;

use super::TOPICS;
use super::end::{End, packet, text};
use crate::world::World;

/// A publish of QoS 2 under way.
pub(super) struct Outgoing {
    id: u16,
    topic: usize,
    pub(super) number: u32,
    is_released: bool,
}

pub(super) struct Publisher {
    pub(super) end: End,
    pub(super) under_way: VecDeque<Outgoing>,
    last_id: u16,
}

impl Publisher {
    pub(super) fn new(n: u64) -> Self {
        Self { end: End::new(&format!("p{n}"), n == 0), under_way: VecDeque::new(), last_id: 0 }
    }

    fn bytes(&self, one: &Outgoing, is_again: bool) -> Vec<u8> {
        if one.is_released {
            return packet(0x62, &one.id.to_be_bytes());
        }
        let properties: &[u8] = if self.end.is_five { &[0] } else { &[] };
        let body =
            [&text(TOPICS[one.topic]), &one.id.to_be_bytes()[..], properties, &one.number.to_be_bytes()].concat();
        packet(if is_again { 0x3c } else { 0x34 }, &body)
    }

    pub(super) fn publish(&mut self, world: &mut World, topic: usize, number: u32) {
        // Identifiers come again soon.
        self.last_id = self.last_id % 40 + 1;
        while self.under_way.iter().any(|one| one.id == self.last_id) {
            self.last_id = self.last_id % 40 + 1;
        }
        let one = Outgoing { id: self.last_id, topic, number, is_released: false };
        self.end.say(world, &self.bytes(&one, false));
        self.under_way.push_back(one);
    }

    pub(super) fn hear(&mut self, world: &mut World) {
        for (first, body) in self.end.hear(world) {
            let id = body.get(..2).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]));
            match first {
                0x20 => {
                    let again: Vec<_> = self.under_way.iter().map(|one| self.bytes(one, true)).collect();
                    again.iter().for_each(|bytes| self.end.say(world, bytes));
                }
                0x50 => {
                    assert_eq!(body.len(), 2, "a publish is refused: {body:x?}");
                    if let Some(one) = self.under_way.iter_mut().find(|one| one.id == id) {
                        one.is_released = true;
                        self.end.say(world, &packet(0x62, &id.to_be_bytes()));
                    }
                }
                // 5.0 may say that it knows nothing of it: then it had been completed.
                0x70 => self.under_way.retain(|one| one.id != id || !one.is_released),
                0xe0 => {}
                other => panic!("{other:x} {body:x?} to a publisher"),
            }
        }
    }
}
